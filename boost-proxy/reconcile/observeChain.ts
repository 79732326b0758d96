// Observes rows that the relay does not answer for by the chain, which shows what was mined, replaced, dropped or expired.

import { inSlices } from "../../shared/clock.ts";
import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { RpcAnswer } from "../../shared/jsonrpc/client.ts";
import type { Row } from "../domain/row.ts";
import {
	currentRow,
	type ObserverContext,
	QUESTION_MS,
	relayReportsReorg,
	reopen,
	takeDueMined,
} from "./observed.ts";
import type { RelayObserver } from "./observeRelay.ts";

/** Calls in one batch: as many as a relay takes. */
const MAX_CALLS = 100;
/** Equal answers in a row before one is believed: a node may be a block behind another. */
const EQUAL_ANSWERS = 2;
/** While the chain can't be read, a row expires this much later, in ms. */
const EXPIRY_GRACE_MS = 600_000;

/** An account's rows that are due. `since`: when the one that waits longest was last checked. */
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
	 * Asks about the accounts that were not checked the longest, then about recently mined rows. Resolves with the ms that it took
	 * to go through all rows.
	 */
	async ask(): Promise<number> {
		const { stopping } = this.#context;
		const { senders, scanMs } = await this.#dueSenders();
		if (senders.length > 0 && !stopping.aborted) await this.#askForLive(senders);
		if (!stopping.aborted) await this.#askForMined();
		return scanMs;
	}

	/** Accounts with live rows that are due, at most one batch. Expires rows that are long overdue. */
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
					row.notes.missingReceipts = 0;
					this.#expire(row, 0);
				}
			});
		}
		for (let at = 0; at < used.length && !stopping.aborted; at += MAX_CALLS) {
			const some = used.slice(at, at + MAX_CALLS);
			const receipts = await this.#receipts(some);
			await inSlices(some.entries(), clock, ([i, row]) => this.#endUsedNonce(row, receipts?.[i]));
		}
	}

	/** Its nonce is used: it was mined itself, or another transaction was. */
	#endUsedNonce(asked: Row, receipt: RpcAnswer | undefined): void {
		const { rows } = this.#context;
		const row = currentRow(this.#context, asked);
		if (row === null || receipt?.ok !== true) return;
		if (receipt.result !== null) {
			rows.end(row, "mined");
			return;
		}
		row.notes.missingReceipts += 1;
		if (row.notes.missingReceipts < EQUAL_ANSWERS) return;
		const isReplaced = hasSibling(rows.liveOf(row.from), row) || hasSibling(rows.mined(), row);
		rows.end(row, isReplaced ? "replaced" : "dropped");
	}

	/** Expires a row whose time has been over for `ms`. */
	#expire(asked: Row, ms: number): void {
		const { rows } = this.#context;
		if (rows.isMisdated(asked)) rows.extendLife(asked.hash);
		const row = rows.isOver(asked, ms, ms > 0) ? currentRow(this.#context, asked) : null;
		if (row !== null && rows.isOver(row, ms, ms > 0)) rows.end(row, "expired");
	}

	/** Reopens mined rows whose receipt has disappeared in a reorganisation. */
	async #askForMined(): Promise<void> {
		const due = takeDueMined(
			this.#context,
			MAX_CALLS,
			(row) => !this.#relay.canBeAsked || !relayReportsReorg(row),
		);
		const receipts = due.length === 0 ? null : await this.#receipts(due);
		for (const [i, row] of due.entries()) {
			const { hash, version, notes } = row;
			const receipt = receipts?.[i];
			if (receipt?.ok !== true || this.#context.rows.get(hash)?.version !== version) continue;
			notes.missingReceipts = receipt.result === null ? notes.missingReceipts + 1 : 0;
			if (notes.missingReceipts >= EQUAL_ANSWERS) reopen(this.#context, row);
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

function hasSibling(rows: Iterable<Row>, row: Row): boolean {
	for (const one of rows) if (one.from === row.from && one.nonce === row.nonce && one !== row) return true;
	return false;
}
