// Observes rows that the relay has no answer for. By the chain, rows end as mined, replaced, dropped or expired. By the
// fallback's status pages, rows end that their users ended there, and those that it abandoned or lost are marked so.

import { nextTurn } from "../../shared/clock.ts";
import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { Upstream } from "../domain/ports.ts";
import type { CallResult } from "../domain/request.ts";
import { abandonedBy, isHolder, type Row } from "../domain/row.ts";
import {
	current,
	dueMined,
	endedByUser,
	endingOf,
	isBelieved,
	isInRelaysBlock,
	noRecord,
	type Observed,
	QUESTION_MS,
	reopen,
} from "./observed.ts";
import type { ObserveRelay } from "./observeRelay.ts";

/** Calls in one batch: as many as a relay takes. */
const MAX_CALLS = 100;
/** Rows handled before the event loop is let go, so that submissions do not wait. */
const ROWS_AT_ONCE = 1_000;
/** Equal answers in a row before one is believed: a node may be a block behind another. */
const ANSWERS = 2;
/** While the chain can't be read, a row expires this much later, in ms. */
const GRACE_MS = 600_000;

/** An account's rows that are due, and the earliest time that one of them was last asked for. */
interface DueSender {
	readonly from: string;
	readonly rows: Row[];
	since: number;
}

export class ObserveChain {
	readonly #observed: Observed;
	readonly #relay: Pick<ObserveRelay, "answers" | "answersFor">;

	constructor(observed: Observed, relay: Pick<ObserveRelay, "answers" | "answersFor">) {
		this.#observed = observed;
		this.#relay = relay;
	}

	/** Asks for the accounts that were not asked for the longest, then for recently mined rows. */
	async ask(): Promise<void> {
		const { stopping } = this.#observed;
		const senders = await this.#due();
		if (senders.length > 0 && !stopping.aborted) await this.#askForLive(senders);
		if (!stopping.aborted) await this.#askForMined();
	}

	/** Accounts with due rows, at most one batch. */
	async #due(): Promise<readonly DueSender[]> {
		const { rows, clock, slotMs } = this.#observed;
		const now = clock.monotonic();
		const senders = new Map<string, DueSender>();
		let seen = 0;
		for (const row of rows.open()) {
			seen += 1;
			if (seen % ROWS_AT_ONCE === 0) await nextTurn();
			if (row.requests > 0 || this.#relay.answersFor(row, now)) continue;
			this.#expire(row, GRACE_MS);
			const { chainAt } = row.notes;
			if (now - chainAt < slotMs / 2) continue;
			const { from } = row;
			const sender = senders.get(from) ?? { from, since: chainAt, rows: [] };
			senders.set(from, sender);
			sender.rows.push(row);
			sender.since = Math.min(sender.since, chainAt);
		}
		const all = [...senders.values()];
		if (all.length <= MAX_CALLS) return all;
		// No difference: both may be −∞.
		return all.sort((a, b) => (a.since === b.since ? 0 : a.since < b.since ? -1 : 1)).slice(0, MAX_CALLS);
	}

	async #askForLive(senders: readonly DueSender[]): Promise<void> {
		const { clock, stopping } = this.#observed;
		const params = senders.map(({ from }) => [from, "latest"]);
		const counts = await this.#batch("eth_getTransactionCount", params);
		if (counts === null || stopping.aborted) return;
		const now = clock.monotonic();
		const used: Row[] = [];
		for (const [i, { rows }] of senders.entries()) {
			const count = counts[i];
			const next = count?.ok === true ? parseNodeQuantity(count.result) : null;
			for (const row of rows) {
				row.notes.chainAt = now;
				if (next === null) continue;
				if (next > row.nonce) used.push(row);
				else {
					row.notes.misses = 0;
					this.#expire(row, 0);
				}
			}
		}
		for (let at = 0; at < used.length && !stopping.aborted; at += MAX_CALLS) {
			const some = used.slice(at, at + MAX_CALLS);
			const receipts = await this.#receipts(some);
			for (const [i, row] of some.entries()) this.#nonceUsed(row, receipts?.[i]);
		}
	}

	/** Its nonce is used: mined itself, or by another transaction. */
	#nonceUsed(asked: Row, receipt: CallResult | undefined): void {
		const { rows } = this.#observed;
		const row = current(this.#observed, asked);
		if (row === null || receipt?.ok !== true) return;
		if (receipt.result !== null) {
			rows.end(row, "mined");
			return;
		}
		row.notes.misses += 1;
		if (row.notes.misses < ANSWERS) return;
		const isReplaced = hasSibling(rows.of(row.from), row) || hasSibling(rows.mined(), row);
		rows.end(row, isReplaced ? "replaced" : "dropped");
	}

	/** Expires a row whose time was over `ms` ago. */
	#expire(asked: Row, ms: number): void {
		const { rows, clock } = this.#observed;
		const row = clock.now() < asked.aliveUntil + ms ? null : current(this.#observed, asked);
		if (row !== null && clock.now() >= row.aliveUntil + ms) rows.end(row, "expired");
	}

	/** Reopens mined rows whose receipt has disappeared in a reorganisation. */
	async #askForMined(): Promise<void> {
		const due = dueMined(this.#observed, MAX_CALLS, (row) => !this.#relay.answers || !isInRelaysBlock(row));
		const receipts = due.length === 0 ? null : await this.#receipts(due);
		for (const [i, row] of due.entries()) {
			const { hash, notes } = row;
			const receipt = receipts?.[i];
			if (receipt?.ok !== true || this.#observed.rows.get(hash)?.notes !== notes) continue;
			notes.misses = receipt.result === null ? notes.misses + 1 : 0;
			if (notes.misses >= ANSWERS) reopen(this.#observed, row);
		}
	}

	#receipts(rows: readonly Row[]): Promise<readonly CallResult[] | null> {
		return this.#batch(
			"eth_getTransactionReceipt",
			rows.map(({ hash }) => [hash]),
		);
	}

	#batch(method: string, all: readonly (readonly string[])[]): Promise<readonly CallResult[] | null> {
		return this.#observed.chain.batch(
			all.map((params) => ({ method, params })),
			QUESTION_MS,
		);
	}
}

function hasSibling(rows: Iterable<Row>, row: Row): boolean {
	for (const one of rows) if (one.from === row.from && one.nonce === row.nonce && one !== row) return true;
	return false;
}

/** Requests in one pass: a third party's rate limits apply to boost as one client. */
const MAX_QUESTIONS = 10;
const HOLDER = "fallback";
const OPTIONS = { deadlineMs: QUESTION_MS, caller: null };

export class ObservePages {
	readonly #observed: Observed;
	readonly #fallback: Upstream;

	constructor(observed: Observed, fallback: Upstream) {
		this.#observed = observed;
		this.#fallback = fallback;
	}

	/** Reads the pages of the rows that were not asked for the longest, each at most once a slot. */
	async ask(): Promise<void> {
		const { rows, clock, slotMs, stopping } = this.#observed;
		// Pages of other dialects don't show whether its user ended it.
		if (this.#fallback.dialect?.name !== "mevblocker") return;
		const now = clock.monotonic();
		const due: Row[] = [];
		for (const row of rows.open())
			if (isOnlyAtFallback(row) && now - row.notes.pageAt >= slotMs) due.push(row);
		if (due.length > MAX_QUESTIONS)
			due.sort((one, other) => (one.notes.pageAt < other.notes.pageAt ? -1 : 1));
		let questions = 0;
		for (const asked of due) {
			if (current(this.#observed, asked) === null) continue;
			// If its page is blank again, there is a second request for its hash.
			questions += isBelieved(asked.notes, HOLDER) ? 2 : 1;
			if (stopping.aborted || questions > MAX_QUESTIONS || this.#fallback.breaker.isUnavailable) return;
			asked.notes.pageAt = now;
			await this.#read(asked);
		}
	}

	/** A page with a stage is one of a relay like ours; from other pages only "unknown" is used. */
	async #read(asked: Row): Promise<void> {
		const page = await this.#fallback.statusPage(asked.hash, OPTIONS);
		const row = current(this.#observed, asked);
		if (typeof page !== "object" || page === null || row === null) return;
		const { status, stage = null } = page as { status?: unknown; stage?: unknown };
		const ending = status === "FAILED" ? endingOf(stage) : undefined;
		if (ending === "cancelled" || ending === "replaced") endedByUser(this.#observed, row, ending, HOLDER);
		else if (!isOnlyAtFallback(row)) return;
		else if (status === "UNKNOWN" && stage === null) await this.#blank(row);
		else {
			row.notes.unknown[HOLDER] = 0;
			// The fallback no longer tries it, so that another upstream may get it.
			if (ending === "expired" || ending === "dropped")
				this.#observed.rows.change(row.hash, (one) => abandonedBy(one, HOLDER));
		}
	}

	/** It is lost if its page was blank often enough and the hash is unknown too. */
	async #blank(asked: Row): Promise<void> {
		if (!isBelieved(asked.notes, HOLDER)) {
			noRecord(this.#observed, asked, HOLDER);
			return;
		}
		if (this.#observed.stopping.aborted) return;
		const call = { method: "eth_getTransactionByHash", params: [asked.hash] };
		const known = await this.#fallback.call(call, OPTIONS);
		const row = current(this.#observed, asked);
		if (row === null || !isOnlyAtFallback(row) || known?.ok !== true || this.#fallback.breaker.isUnavailable)
			return;
		if (known.result === null) noRecord(this.#observed, row, HOLDER);
		else row.notes.unknown[HOLDER] = 0;
	}
}

function isOnlyAtFallback({ requests, at }: Row): boolean {
	return requests === 0 && isHolder(at.fallback) && !isHolder(at.relay);
}
