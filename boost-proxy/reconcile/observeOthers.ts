// Turns what others than the relay say of rows that it can't speak for into facts. The chain: rows end as mined, replaced,
// dropped or, when their time is over, expired. A fallback's status pages: what its user ended there ends here, and what it gave
// up or has lost it does not have; whether something is mined is the chain's to say.

import { nextTurn } from "../../shared/clock.ts";
import { readQuantity } from "../../shared/ethereum/hex.ts";
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

/** Calls in one batch: as many as a relay takes, and few enough for the fallback, which may be the one that is asked. */
const MAX_CALLS = 100;
/** Rows that are gone through at once: a submission waits for no more of them. */
const ROWS_AT_ONCE = 1_000;
/** Answers in a row that must say the same before it is believed: a node may be a block behind another. */
const ANSWERS = 2;
/** Where nobody can be asked for the chain, a row outlives its time by so much at most, in ms. */
const GRACE_MS = 600_000;

/** An account's rows that are to be asked for, and when the first of them was asked for the last time. */
interface DueSender {
	readonly from: string;
	readonly rows: Row[];
	since: number;
}

/** Observes the chain. */
export class ObserveChain {
	readonly #observed: Observed;
	/** What the relay says comes first. */
	readonly #relay: Pick<ObserveRelay, "speaks" | "speaksFor">;

	constructor(observed: Observed, relay: Pick<ObserveRelay, "speaks" | "speaksFor">) {
		this.#observed = observed;
		this.#relay = relay;
	}

	/** Asks for the accounts that were not asked for the longest, then for what was mined a moment ago. */
	async ask(): Promise<void> {
		const { stopping } = this.#observed;
		const senders = await this.#due();
		if (senders.length > 0 && !stopping.aborted) await this.#askForLive(senders);
		if (!stopping.aborted) await this.#askForMined();
	}

	/** Accounts that have a row to be asked for, at most as many as fit into one batch. */
	async #due(): Promise<readonly DueSender[]> {
		const { rows, clock, slotMs } = this.#observed;
		const now = clock.monotonic();
		const senders = new Map<string, DueSender>();
		let looked = 0;
		for (const row of rows.open()) {
			looked += 1;
			if (looked % ROWS_AT_ONCE === 0) await nextTurn();
			if (row.requests > 0 || this.#relay.speaksFor(row, now)) continue;
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
		// Not by a difference: both may be −∞.
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
			const next = count?.ok === true ? readQuantity(count.result) : null;
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

	/** Its nonce is used: by itself, or by another one. */
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

	/** Its time was over so many ms ago. */
	#expire(asked: Row, ms: number): void {
		const { rows, clock } = this.#observed;
		const row = clock.now() < asked.aliveUntil + ms ? null : current(this.#observed, asked);
		if (row !== null && clock.now() >= row.aliveUntil + ms) rows.end(row, "expired");
	}

	/** A receipt that is gone: its block was taken back. */
	async #askForMined(): Promise<void> {
		const due = dueMined(this.#observed, MAX_CALLS, (row) => !this.#relay.speaks || !isInRelaysBlock(row));
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

/** Questions in one pass: each is a request of its own, and limits are about us. */
const MAX_QUESTIONS = 10;
const HOLDER = "fallback";
const ASKING = { deadlineMs: QUESTION_MS, caller: null };

/** Observes a fallback. */
export class ObservePages {
	readonly #observed: Observed;
	readonly #fallback: Upstream;

	constructor(observed: Observed, fallback: Upstream) {
		this.#observed = observed;
		this.#fallback = fallback;
	}

	/** Reads the pages of those that were not asked for the longest, each once a slot at most. */
	async ask(): Promise<void> {
		const { rows, clock, slotMs, stopping } = this.#observed;
		// The others' pages don't say who ended it.
		if (this.#fallback.dialect?.name !== "mevblocker") return;
		const now = clock.monotonic();
		const due: Row[] = [];
		for (const row of rows.open()) if (isItsAlone(row) && now - row.notes.pageAt >= slotMs) due.push(row);
		if (due.length > MAX_QUESTIONS)
			due.sort((one, other) => (one.notes.pageAt < other.notes.pageAt ? -1 : 1));
		let questions = 0;
		for (const asked of due) {
			if (current(this.#observed, asked) === null) continue;
			// Where its page is blank again, its hash is asked for too.
			questions += isBelieved(asked.notes, HOLDER) ? 2 : 1;
			if (stopping.aborted || questions > MAX_QUESTIONS || this.#fallback.breaker.isUnavailable) return;
			asked.notes.pageAt = now;
			await this.#read(asked);
		}
	}

	/** A relay of ours tells the stage; another one's page says nothing here, but that it knows nothing. */
	async #read(asked: Row): Promise<void> {
		const page = await this.#fallback.statusPage(asked.hash, ASKING);
		const row = current(this.#observed, asked);
		if (typeof page !== "object" || page === null || row === null) return;
		const { status, stage = null } = page as { status?: unknown; stage?: unknown };
		const ending = status === "FAILED" ? endingOf(stage) : undefined;
		if (ending === "cancelled" || ending === "replaced") endedByUser(this.#observed, row, ending, HOLDER);
		else if (!isItsAlone(row)) return;
		else if (status === "UNKNOWN" && stage === null) await this.#blank(row);
		else {
			row.notes.unknown[HOLDER] = 0;
			// It tries it no longer: who is well may have it.
			if (ending === "expired" || ending === "dropped")
				this.#observed.rows.change(row.hash, (one) => abandonedBy(one, HOLDER));
		}
	}

	/** It is lost where its page was blank often enough and its hash is not known either. */
	async #blank(asked: Row): Promise<void> {
		if (!isBelieved(asked.notes, HOLDER)) {
			noRecord(this.#observed, asked, HOLDER);
			return;
		}
		if (this.#observed.stopping.aborted) return;
		const call = { method: "eth_getTransactionByHash", params: [asked.hash] };
		const known = await this.#fallback.call(call, ASKING);
		const row = current(this.#observed, asked);
		if (row === null || !isItsAlone(row) || known?.ok !== true || this.#fallback.breaker.isUnavailable)
			return;
		if (known.result === null) noRecord(this.#observed, row, HOLDER);
		else row.notes.unknown[HOLDER] = 0;
	}
}

function isItsAlone({ requests, at }: Row): boolean {
	return requests === 0 && isHolder(at.fallback) && !isHolder(at.relay);
}
