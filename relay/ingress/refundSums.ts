// The sums of refunds for the operator: a line for each combination of month, recipient, sender,
// referrer and builder. The unpaid refunds come first, then the others. The table may be large, so
// it is read once for each, and a page covers a bounded part of it.

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

/** Refunds that a page reads, of both parts. */
const PAGE_ROWS = 10_000;
/** Refunds between two turns of the event loop. */
const SLICE_ROWS = 500;
/** The two parts of the list. A place is one of them, and a place in the table of refunds. */
const [UNPAID, PAID] = ["unpaid", "paid"] as const;
const PLACE = /^(?:un)?paid(?:\/0x[0-9a-f]{40}\/\d{12}\/0x[0-9a-f]{64})?$/;

/** Whether it may be the `next` of a page. */
export function isPlace(text: string): boolean {
	return PLACE.test(text);
}

/** Returns the function that reads a page of the sums; `from`: the place where it begins. */
export function refundSums({ refunds, builders }: RefundSumsDependencies) {
	const namesOf = ({ at, recipient, sender, referrer = "", payer }: RefundRow): readonly string[] => {
		const builder = builders.builtBy(payer).join(" ") || payer;
		return [monthOf(at), recipient, sender, referrer, builder];
	};
	return async (from: string | null): Promise<RefundSumsPage> => {
		const [first = UNPAID, ...place] = (from ?? UNPAID).split("/");
		const lines: (readonly string[])[] = [];
		let rows = 0;
		for (const part of first === UNPAID ? [UNPAID, PAID] : [PAID]) {
			const sums = new Sums();
			for await (const [at, row] of refunds.all(part === first ? place.join("/") : "")) {
				if (rows === PAGE_ROWS) return { lines: [...lines, ...sums.lines()], next: `${part}/${at}` };
				rows += 1;
				if (rows % SLICE_ROWS === 0) await nextTurn();
				// By each refund alone, so that none is lost or repeated if another comes or goes between
				// two pages.
				if (lackOf(row) > 0n === (part === UNPAID)) sums.add(namesOf(row), row);
			}
			lines.push(...sums.lines());
		}
		return { lines, next: null };
	};
}

/** Wei that were owed and not paid. */
function lackOf(row: RefundRow): bigint {
	const [owed, paid] = [BigInt(row.owed), BigInt(row.paid)];
	return owed > paid ? owed - paid : 0n;
}

/** Sums of refunds by their combinations. */
class Sums {
	readonly #sums = new Map<string, { refunds: number; owed: bigint; paid: bigint; unpaid: bigint }>();

	add(names: readonly string[], row: RefundRow): void {
		const key = JSON.stringify(names);
		const sum = this.#sums.get(key) ?? { refunds: 0, owed: 0n, paid: 0n, unpaid: 0n };
		sum.refunds += 1;
		sum.owed += BigInt(row.owed);
		sum.paid += BigInt(row.paid);
		sum.unpaid += lackOf(row);
		this.#sums.set(key, sum);
	}

	/** The line that lacks most comes first. */
	lines(): readonly (readonly string[])[] {
		return [...this.#sums]
			.sort(([, one], [, other]) => Number(other.unpaid - one.unpaid))
			.map(([key, { refunds, owed, paid, unpaid }]) => [
				...(JSON.parse(key) as readonly string[]),
				...[refunds, owed, paid, unpaid].map(String),
			]);
	}
}

/** The month in UTC, such as 2026-01; empty if it is not known. */
function monthOf(at: number | undefined): string {
	return at === undefined ? "" : isoTime(at).slice(0, 7);
}
