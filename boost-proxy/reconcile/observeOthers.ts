// Observes rows that the relay does not answer for. The chain shows which were mined, replaced, dropped or expired. The
// fallback's status pages show which it no longer has, by its own word: those are handed over again, and end by nothing that a
// third party says.

import { inSlices } from "../../shared/clock.ts";
import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { RpcAnswer } from "../../shared/jsonrpc/client.ts";
import type { Upstream } from "../domain/ports.ts";
import { isHolder, type Row } from "../domain/row.ts";
import {
	countNoRecord,
	currentRow,
	endingOf,
	type ObserverContext,
	QUESTION_MS,
	relayReportsReorg,
	reopen,
	takeDueMined,
	wouldBelieveNoRecord,
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

	/** Asks about the accounts that were not checked the longest, then about recently mined rows. */
	async ask(): Promise<void> {
		const { stopping } = this.#context;
		const senders = await this.#dueSenders();
		if (senders.length > 0 && !stopping.aborted) await this.#askForLive(senders);
		if (!stopping.aborted) await this.#askForMined();
	}

	/** Accounts with live rows that are due, at most one batch. Expires rows that are long overdue. */
	async #dueSenders(): Promise<readonly DueSender[]> {
		const { rows, clock, slot } = this.#context;
		const now = clock.monotonic();
		const senders = new Map<string, DueSender>();
		await inSlices(rows.allLive(), clock, (row) => {
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
		if (all.length <= MAX_CALLS) return all;
		// Compared, not subtracted: both may be −∞.
		return all.sort((a, b) => (a.since === b.since ? 0 : a.since < b.since ? -1 : 1)).slice(0, MAX_CALLS);
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

/** Requests in one pass: a third party's rate limits apply to boost as one client. */
const MAX_QUESTIONS = 10;
const FALLBACK = "fallback";
const OPTIONS = { deadlineMs: QUESTION_MS, caller: null };

export class PageObserver {
	readonly #context: ObserverContext;
	readonly #fallback: Upstream;

	constructor(observed: ObserverContext, fallback: Upstream) {
		this.#context = observed;
		this.#fallback = fallback;
	}

	/** Reads the pages of the rows whose pages were not read the longest, each at most once a slot. */
	async ask(): Promise<void> {
		const { rows, clock, slot, stopping } = this.#context;
		if (this.#fallback.dialect?.pages !== "ours") return;
		const now = clock.monotonic();
		const due: Row[] = [];
		for (const row of rows.allLive())
			if (isOnlyAtFallback(row) && now - row.notes.pageReadAt >= slot.ms) due.push(row);
		if (due.length > MAX_QUESTIONS)
			due.sort((one, other) => (one.notes.pageReadAt < other.notes.pageReadAt ? -1 : 1));
		let questions = 0;
		for (const asked of due) {
			if (currentRow(this.#context, asked) === null) continue;
			// If its page has no record again, the hash is asked for too.
			questions += wouldBelieveNoRecord(asked.notes, FALLBACK) ? 2 : 1;
			if (stopping.aborted || questions > MAX_QUESTIONS || this.#fallback.breaker.isUnavailable) return;
			asked.notes.pageReadAt = now;
			await this.#readPage(asked);
		}
	}

	/**
	 * A page that calls it ended, or has no record, shows that it is lost there if that is so often enough. It may be wrong, or a
	 * lie: it ends nothing, and a cancel still goes there. Only a relay like ours has pages with a stage.
	 */
	async #readPage(asked: Row): Promise<void> {
		const page = await this.#fallback.statusPage(asked.hash, OPTIONS);
		const row = currentRow(this.#context, asked);
		if (typeof page !== "object" || page === null || row === null || !isOnlyAtFallback(row)) return;
		const { status, stage = null } = page as { status?: unknown; stage?: unknown };
		const ending = endingOf(stage);
		const isEnded = status === "FAILED" && (stage === null || (ending !== undefined && ending !== "mined"));
		if (isEnded) countNoRecord(this.#context, row, FALLBACK);
		else if (status === "UNKNOWN" && stage === null) await this.#takeBlankPage(row);
		else row.notes.unknown[FALLBACK] = 0;
	}

	/** The page has no record. It is lost if that was so often enough and the hash is unknown too. */
	async #takeBlankPage(asked: Row): Promise<void> {
		if (!wouldBelieveNoRecord(asked.notes, FALLBACK)) {
			countNoRecord(this.#context, asked, FALLBACK);
			return;
		}
		if (this.#context.stopping.aborted) return;
		const call = { method: "eth_getTransactionByHash", params: [asked.hash] };
		const known = await this.#fallback.call(call, OPTIONS);
		const row = currentRow(this.#context, asked);
		if (row === null || !isOnlyAtFallback(row) || known?.ok !== true || this.#fallback.breaker.isUnavailable)
			return;
		if (known.result === null) countNoRecord(this.#context, row, FALLBACK);
		else row.notes.unknown[FALLBACK] = 0;
	}
}

function isOnlyAtFallback({ requests, at }: Row): boolean {
	return requests === 0 && isHolder(at.fallback) && !isHolder(at.relay);
}
