// Observes, on the chain, the rows that the relay gives no answers for. The chain shows which rows
// were mined, replaced, dropped or expired.

import { inSlices } from "../../shared/clock.ts";
import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { RpcAnswer, RpcCall } from "../../shared/jsonrpc/client.ts";
import type { Row } from "../domain/row.ts";
import {
	currentRow,
	type ObserverContext,
	QUESTION_MS,
	relayReportsReorg,
	reopen,
	takeDueEnded,
} from "./observed.ts";
import type { RelayObserver } from "./observeRelay.ts";

/** Calls in one batch: the maximum that a relay accepts. */
const MAX_CALLS = 100;
/** Equal answers in a row that are needed, since a node may be a block behind another. */
const EQUAL_ANSWERS = 2;
/** While the chain can't be read, a row expires this much later, in ms. */
const EXPIRY_GRACE_MS = 600_000;

/** An account's rows that are due. `since`: when the row that waits longest was last checked. */
interface DueSender {
	readonly from: string;
	readonly rows: Row[];
	since: number;
}

export class ChainObserver {
	readonly #context: ObserverContext;
	readonly #relay: Pick<RelayObserver, "canBeAsked" | "answersFor">;

	constructor(observed: ObserverContext, relay: Pick<RelayObserver, "canBeAsked" | "answersFor">) {
		this.#context = observed;
		this.#relay = relay;
	}

	/**
	 * Asks about the accounts whose last check is oldest, then about rows that the chain ended
	 * lately. Resolves with the time it took to scan all rows, in ms.
	 */
	async ask(): Promise<number> {
		const { stopping } = this.#context;
		const { senders, scanMs } = await this.#dueSenders();
		if (senders.length > 0 && !stopping.aborted) await this.#askForLive(senders);
		if (!stopping.aborted) await this.#askForEnded();
		return scanMs;
	}

	/**
	 * Accounts with live rows that are due, at most one batch. Expires rows that are long overdue.
	 */
	async #dueSenders(): Promise<{ readonly senders: readonly DueSender[]; readonly scanMs: number }> {
		const { rows, clock, slot } = this.#context;
		const now = clock.monotonic();
		const senders = new Map<string, DueSender>();
		const scanMs = await inSlices(rows.allLive(), clock, (row) => {
			if (row.requests > 0 || this.#relay.answersFor(row, now)) return;
			this.#expire(row, EXPIRY_GRACE_MS);
			const { checkedAt } = row.notes;
			if (now - checkedAt < slot.ms / 2) return;
			const { from } = row;
			const sender = senders.get(from) ?? { from, since: checkedAt, rows: [] };
			senders.set(from, sender);
			sender.rows.push(row);
			sender.since = Math.min(sender.since, checkedAt);
		});
		const all = [...senders.values()];
		// Compared, not subtracted: both may be −∞.
		if (all.length > MAX_CALLS) all.sort((a, b) => (a.since === b.since ? 0 : a.since < b.since ? -1 : 1));
		return { senders: all.slice(0, MAX_CALLS), scanMs };
	}

	async #askForLive(senders: readonly DueSender[]): Promise<void> {
		const { clock, stopping } = this.#context;
		const params = senders.map(({ from }) => [from, "latest"]);
		const counts = await this.#batch("eth_getTransactionCount", params);
		if (counts === null || stopping.aborted) return;
		const now = clock.monotonic();
		const used: Row[] = [];
		for (const [i, { rows }] of senders.entries()) {
			const count = counts[i];
			const next = count?.ok === true ? parseNodeQuantity(count.result) : null;
			await inSlices(rows, clock, (row) => {
				row.notes.checkedAt = now;
				if (next === null) return;
				if (next > row.nonce) used.push(row);
				else {
					row.notes.contradictions = 0;
					this.#expire(row, 0);
				}
			});
		}
		for (let at = 0; at < used.length && !stopping.aborted; at += MAX_CALLS) {
			const some = used.slice(at, at + MAX_CALLS);
			const receipts = await this.#receipts(some);
			await inSlices(some.entries(), clock, ([i, row]) => this.#endMined(row, receipts?.[i]));
			await inSlices(some.entries(), clock, ([i, row]) => this.#endOvertaken(row, receipts?.[i]));
		}
	}

	/** The row's own transaction used its nonce. */
	#endMined(asked: Row, receipt: RpcAnswer | undefined): void {
		const row = currentRow(this.#context, asked);
		if (row !== null && receipt?.ok === true && receipt.result !== null) this.#context.rows.end(row, "mined");
	}

	/**
	 * Another transaction used its nonce: that of a row, which replaced it, or one from elsewhere.
	 */
	#endOvertaken(asked: Row, receipt: RpcAnswer | undefined): void {
		const { rows } = this.#context;
		const row = currentRow(this.#context, asked);
		if (row === null || receipt?.ok !== true || receipt.result !== null) return;
		row.notes.contradictions += 1;
		if (row.notes.contradictions < EQUAL_ANSWERS) return;
		rows.end(row, hasMinedSibling(rows.reopenable(), row) ? "replaced" : "dropped");
	}

	/** Expires a row whose life has been over for `ms`. */
	#expire(asked: Row, ms: number): void {
		const { rows } = this.#context;
		if (rows.isMisdated(asked)) rows.extendLife(asked.hash);
		const row = rows.isOver(asked, ms, ms > 0) ? currentRow(this.#context, asked) : null;
		if (row !== null && rows.isOver(row, ms, ms > 0)) rows.end(row, "expired");
	}

	/**
	 * Reopens rows that a reorganisation brings back: mined ones without a receipt now, and dropped
	 * ones whose nonce is free.
	 */
	async #askForEnded(): Promise<void> {
		const due = takeDueEnded(
			this.#context,
			MAX_CALLS,
			(row) => !this.#relay.canBeAsked || !relayReportsReorg(row),
		);
		if (due.length === 0) return;
		const answers = await this.#context.chain.batch(due.map(questionOf), QUESTION_MS);
		for (const [i, row] of due.entries()) {
			const { hash, version, notes } = row;
			const isEnd = confirmsEnd(row, answers?.[i]);
			if (isEnd === null || this.#context.rows.get(hash)?.version !== version) continue;
			notes.contradictions = isEnd ? 0 : notes.contradictions + 1;
			if (notes.contradictions >= EQUAL_ANSWERS) reopen(this.#context, row);
		}
	}

	#receipts(rows: readonly Row[]): Promise<readonly RpcAnswer[] | null> {
		return this.#batch(
			"eth_getTransactionReceipt",
			rows.map(({ hash }) => [hash]),
		);
	}

	#batch(method: string, all: readonly (readonly string[])[]): Promise<readonly RpcAnswer[] | null> {
		return this.#context.chain.batch(
			all.map((params) => ({ method, params })),
			QUESTION_MS,
		);
	}
}

/** The call that shows whether the chain still ends a row. */
function questionOf({ desired, hash, from }: Row): RpcCall {
	return desired === "mined"
		? { method: "eth_getTransactionReceipt", params: [hash] }
		: { method: "eth_getTransactionCount", params: [from, "latest"] };
}

/**
 * Whether the answer to {@link questionOf} shows that the chain still ends the row; null: it shows
 * nothing.
 */
function confirmsEnd({ desired, nonce }: Row, answer: RpcAnswer | undefined): boolean | null {
	if (answer?.ok !== true) return null;
	if (desired === "mined") return answer.result !== null;
	const next = parseNodeQuantity(answer.result);
	return next === null ? null : next > nonce;
}

function hasMinedSibling(ended: Iterable<Row>, { from, nonce }: Row): boolean {
	for (const one of ended)
		if (one.desired === "mined" && one.from === from && one.nonce === nonce) return true;
	return false;
}
