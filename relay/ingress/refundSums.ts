// The sums of refunds for the operator: a line for each combination of month, recipient, sender,
// referrer and builder. Lines with unpaid refunds come first. The table of refunds may be large, so
// it is read twice, in its order, and a page holds a bounded part of it.

import { isoTime, nextTurn } from "../../shared/clock.ts";
import type { Fanout } from "../broadcast/fanout.ts";
import type { RefundRow } from "../domain/refundRow.ts";
import type { RefundTable } from "../transactions/refundTable.ts";

export const SUM_COLUMNS = [
	...["month", "recipient", "sender", "referrer", "builder"],
	...["refunds", "owed", "paid", "unpaid"],
] as const;

/** A part of the lines, as {@link SUM_COLUMNS}; `next`: the place of the next page, or null. */
export interface RefundSumsPage {
	readonly lines: readonly (readonly string[])[];
	readonly next: string | null;
}

interface RefundSumsDependencies {
	readonly refunds: Pick<RefundTable, "all">;
	readonly builders: Pick<Fanout, "builtBy">;
}

/** A page ends behind the group that reaches one of these. */
const PAGE_LINES = 1_000;
const PAGE_ROWS = 10_000;
/** Rows between two turns of the event loop. */
const SLICE_ROWS = 500;
/** The two parts of the list. A place is one of them, and a place in the table of refunds. */
const [UNPAID, PAID] = ["unpaid", "paid"] as const;
const PLACE = /^(?:un)?paid(?:\/0x[0-9a-f]{40}\/\d{12}\/0x[0-9a-f]{64})?$/;

/** Whether it may be the `next` of a page. */
export function isPlace(text: string): boolean {
	return PLACE.test(text);
}

/** Refunds of one combination. Wei. */
interface Sum {
	readonly names: readonly string[];
	refunds: number;
	owed: bigint;
	paid: bigint;
	/** The part of `owed` that was not paid; a refund that was paid twice makes up for no other. */
	unpaid: bigint;
}

/** Returns the function that reads a page of the sums; `from`: the place where it begins. */
export function refundSums({ refunds, builders }: RefundSumsDependencies) {
	const namesOf = ({ at, recipient, sender, referrer = "", payer }: RefundRow): readonly string[] => {
		const builder = builders.builtBy(payer).join(" ") || payer;
		return [monthOf(at), recipient, sender, referrer, builder];
	};
	return async (from: string | null): Promise<RefundSumsPage> => {
		const [part = UNPAID, ...place] = (from ?? UNPAID).split("/");
		const lines: (readonly string[])[] = [];
		let rows = 0;
		for (const now of part === UNPAID ? [UNPAID, PAID] : [PAID]) {
			let group: Group | null = null;
			for await (const [at, row] of refunds.all(now === part ? place.join("/") : "")) {
				const names = namesOf(row);
				if (group !== null && !group.holds(names)) {
					lines.push(...group.lines(now === UNPAID));
					group = null;
					if (lines.length >= PAGE_LINES || rows >= PAGE_ROWS) return { lines, next: `${now}/${at}` };
				}
				group ??= new Group(names);
				group.add(names, row);
				rows += 1;
				if (rows % SLICE_ROWS === 0) await nextTurn();
			}
			lines.push(...(group?.lines(now === UNPAID) ?? []));
			if (now === UNPAID && (lines.length >= PAGE_LINES || rows >= PAGE_ROWS)) return { lines, next: PAID };
		}
		return { lines, next: null };
	};
}

/**
 * A recipient's refunds of one month, which lie together in the table. If there are too many, the
 * next group continues, so that a combination may have several lines.
 */
class Group {
	readonly #month: string | undefined;
	readonly #recipient: string | undefined;
	readonly #sums = new Map<string, Sum>();
	#rows = 0;

	constructor([month, recipient]: readonly string[]) {
		this.#month = month;
		this.#recipient = recipient;
	}

	/** Whether the next refund belongs to it. */
	holds([month, recipient]: readonly string[]): boolean {
		return this.#rows < PAGE_ROWS && month === this.#month && recipient === this.#recipient;
	}

	add(names: readonly string[], row: RefundRow): void {
		this.#rows += 1;
		const key = JSON.stringify(names);
		const sum = this.#sums.get(key) ?? { names, refunds: 0, owed: 0n, paid: 0n, unpaid: 0n };
		const [owed, paid] = [BigInt(row.owed), BigInt(row.paid)];
		sum.refunds += 1;
		sum.owed += owed;
		sum.paid += paid;
		if (owed > paid) sum.unpaid += owed - paid;
		this.#sums.set(key, sum);
	}

	/** The lines with unpaid refunds, or the others. */
	lines(isUnpaid: boolean): readonly (readonly string[])[] {
		return [...this.#sums.values()]
			.filter(({ unpaid }) => unpaid > 0n === isUnpaid)
			.map(({ names, refunds, owed, paid, unpaid }) => [
				...names,
				...[refunds, owed, paid, unpaid].map(String),
			]);
	}
}

/** The month in UTC, such as 2026-01; empty if it is not known. */
function monthOf(at: number | undefined): string {
	return at === undefined ? "" : isoTime(at).slice(0, 7);
}
