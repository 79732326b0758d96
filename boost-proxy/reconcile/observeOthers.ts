// Turns what others than the relay say of rows that it can't speak for into facts. The chain: rows end as mined, replaced,
// dropped or, when their time is over, expired. A fallback's status pages: what its user ended there ends here, and what it gave
// up or has lost it does not have; whether something is mined is the chain's to say.

import { nextTurn } from "../../shared/clock.ts";
import { readQuantity } from "../../shared/ethereum/hex.ts";
import type { Upstream } from "../domain/ports.ts";
import type { Call, CallResult, UpstreamName } from "../domain/request.ts";
import { abandonedBy, type Ending, holdersOf, isHolder, lost, notHeld, type Row } from "../domain/row.ts";
import type { Observed, ObserveRelay } from "./observeRelay.ts";

/** Calls in one batch: as many as a relay takes, and few enough for the fallback, which may be the one that is asked. */
const MAX_CALLS = 100;
/** Rows that are gone through at once: a submission waits for no more of them. */
const ROWS_AT_ONCE = 1_000;
/** Answers in a row that must say the same before it is believed: a node may be a block behind another. */
const ANSWERS = 2;
/** Where nobody can be asked for the chain, a row outlives its time by so much at most, in ms. */
const GRACE_MS = 600_000;

/** Observes the chain. */
export class ObserveChain {
	readonly #with: Observed;
	/** What the relay says comes first. */
	readonly #relay: Pick<ObserveRelay, "speaks" | "speaksFor">;

	constructor(observed: Observed, relay: Pick<ObserveRelay, "speaks" | "speaksFor">) {
		this.#with = observed;
		this.#relay = relay;
	}

	/** Asks for the accounts that were not asked for the longest. */
	async ask(): Promise<void> {
		const senders = await this.#due();
		if (this.#with.stopping.aborted) return;
		if (senders.length > 0) {
			const nonces = await this.#latest(senders.map(({ from }) => from));
			if (nonces !== null && !this.#with.stopping.aborted) await this.#judge(senders, nonces);
		}
		if (!this.#with.stopping.aborted) await this.#askForMined();
	}

	/** Accounts that have a row to be asked for, at most as many as fit into one batch. */
	async #due(): Promise<readonly { readonly from: string; readonly rows: Row[] }[]> {
		const { rows, clock } = this.#with;
		const pauseMs = this.#with.slotMs / 2;
		const now = clock.monotonic();
		const senders = new Map<string, { from: string; since: number; rows: Row[] }>();
		const overdue: Row[] = [];
		let looked = 0;
		for (const row of rows.open()) {
			looked += 1;
			if (looked % ROWS_AT_ONCE === 0) await nextTurn();
			if (row.requests > 0 || this.#relay.speaksFor(row, now)) continue;
			if (clock.now() >= row.aliveUntil + GRACE_MS) overdue.push(row);
			const { chainAt } = row.notes;
			if (now - chainAt < pauseMs) continue;
			const { from } = row;
			const sender = senders.get(from);
			if (sender === undefined) senders.set(from, { from, since: chainAt, rows: [row] });
			else {
				sender.rows.push(row);
				sender.since = Math.min(sender.since, chainAt);
			}
		}
		for (const row of overdue) if (this.#still(row) !== null) this.#end(row, "expired");
		const all = [...senders.values()];
		return all.length <= MAX_CALLS ? all : all.sort(bySince).slice(0, MAX_CALLS);
	}

	async #judge(
		senders: readonly { readonly from: string; readonly rows: readonly Row[] }[],
		nonces: readonly (bigint | null)[],
	): Promise<void> {
		const { clock } = this.#with;
		const now = clock.monotonic();
		const used: Row[] = [];
		for (const [i, { rows }] of senders.entries()) {
			const next = nonces[i] ?? null;
			for (const row of rows) {
				const { notes } = row;
				notes.chainAt = now;
				if (next === null) continue;
				if (next > row.nonce) used.push(row);
				else {
					notes.misses = 0;
					this.#expire(row);
				}
			}
		}
		for (let at = 0; at < used.length && !this.#with.stopping.aborted; at += MAX_CALLS) {
			const some = used.slice(at, at + MAX_CALLS);
			const receipts = await this.#receipts(some.map(({ hash }) => hash));
			for (const [i, row] of some.entries()) this.#used(row, receipts?.[i]);
		}
	}

	/** Its nonce is used: by itself, or by another one. */
	#used(asked: Row, receipt: CallResult | undefined): void {
		const { rows } = this.#with;
		const row = this.#still(asked);
		if (row === null || receipt?.ok !== true) return;
		if (receipt.result !== null) {
			this.#end(row, "mined");
			return;
		}
		row.notes.misses += 1;
		if (row.notes.misses < ANSWERS) return;
		const siblings = rows.of(row.from).some((one) => one.nonce === row.nonce && one !== row);
		this.#end(row, siblings || rows.wasMined(row) ? "replaced" : "dropped");
	}

	#expire(asked: Row): void {
		const row = this.#still(asked);
		if (row !== null && this.#with.clock.now() >= row.aliveUntil) this.#end(row, "expired");
	}

	#end(row: Row, ending: Ending): void {
		this.#with.rows.end(row, ending);
	}

	/** The row as it is now; null where it ended, or a request sees to it. */
	#still(asked: Row): Row | null {
		const row = this.#with.rows.live(asked.hash);
		return row === null || row.requests > 0 || asked.notes !== row.notes ? null : row;
	}

	/** A receipt that is gone: its block was taken back. */
	async #askForMined(): Promise<void> {
		const { rows, log } = this.#with;
		const due = this.#dueMined();
		if (due.length === 0) return;
		const receipts = await this.#receipts(due.map(({ hash }) => hash));
		for (const [i, { hash, notes }] of due.entries()) {
			const receipt = receipts?.[i];
			if (receipt?.ok !== true || rows.get(hash)?.notes !== notes) continue;
			notes.misses = receipt.result === null ? notes.misses + 1 : 0;
			if (notes.misses < ANSWERS) continue;
			log.info("a mined transaction is open again", { hash });
			rows.reopen(hash);
		}
	}

	/** Mined ones that were not asked for in half a slot, and that the relay can't speak for. */
	#dueMined(): readonly Row[] {
		const { rows, clock } = this.#with;
		const now = clock.monotonic();
		const taken: Row[] = [];
		for (const row of rows.mined()) {
			if (taken.length >= MAX_CALLS) break;
			const { notes, at } = row;
			const isRelays = this.#relay.speaks && !notes.byChain && isHolder(at.relay);
			if (isRelays || now - notes.chainAt < this.#with.slotMs / 2) continue;
			notes.chainAt = now;
			taken.push(row);
		}
		return taken;
	}

	/** The accounts' next nonces; null for one without an answer, or for all. */
	async #latest(accounts: readonly string[]): Promise<readonly (bigint | null)[] | null> {
		const calls = accounts.map((from) => ({ method: "eth_getTransactionCount", params: [from, "latest"] }));
		const counts = await this.#batch(calls);
		return counts?.map((count) => (count.ok ? readQuantity(count.result) : null)) ?? null;
	}

	#receipts(hashes: readonly string[]): Promise<readonly CallResult[] | null> {
		return this.#batch(hashes.map((hash) => ({ method: "eth_getTransactionReceipt", params: [hash] })));
	}

	#batch(calls: readonly Call[]): Promise<readonly CallResult[] | null> {
		return this.#with.chain.batch(calls, this.#with.deadlineMs);
	}
}

function bySince(one: { readonly since: number }, other: { readonly since: number }): number {
	// Not a difference: both may be −∞.
	if (one.since === other.since) return 0;
	return one.since < other.since ? -1 : 1;
}

/** What a page says of a row; `blank`: it knows nothing of it. */
type PageWord = "cancelled" | "replaced" | "abandoned" | "blank" | "other";

/** Questions in one pass: each is a request of its own, and limits are about us. */
const MAX_QUESTIONS = 10;
/** So many blank pages in a row are a loss, if it does not know the hash either; doubling each time that it was lost. */
const BLANKS = 2;
const MAX_DOUBLINGS = 5;
/** A delivery that brought no verdict may still arrive for so long, in ms. */
const LATE_MS = 15_000;
const HOLDER: UpstreamName = "fallback";

/** Observes a fallback. */
export class ObservePages {
	readonly #with: Observed;
	readonly #fallback: Upstream;
	/** Questions that are left in this pass. */
	#questions = 0;

	constructor(observed: Observed, fallback: Upstream) {
		this.#with = observed;
		this.#fallback = fallback;
	}

	/** Reads the pages of those that were not asked for the longest, each once a slot at most. */
	async ask(): Promise<void> {
		const { rows, clock } = this.#with;
		// The others' pages don't say who ended it.
		if (this.#fallback.dialect?.name !== "mevblocker") return;
		const now = clock.monotonic();
		const due: Row[] = [];
		for (const row of rows.open()) {
			if (isItsAlone(row) && now - row.notes.pageAt >= this.#with.slotMs) due.push(row);
		}
		if (due.length > MAX_QUESTIONS)
			due.sort((one, other) => (one.notes.pageAt < other.notes.pageAt ? -1 : 1));
		this.#questions = MAX_QUESTIONS;
		for (const { hash } of due.slice(0, MAX_QUESTIONS)) {
			const asked = rows.live(hash);
			if (this.#with.stopping.aborted || this.#questions === 0 || this.#fallback.breaker.isUnavailable)
				return;
			if (asked !== null) await this.#read(asked, now);
		}
	}

	async #read(asked: Row, now: number): Promise<void> {
		const { rows } = this.#with;
		const { pageAt } = asked.notes;
		asked.notes.pageAt = now;
		this.#questions -= 1;
		const word = wordOf(await this.#fallback.statusPage(asked.hash, this.#asking));
		const row = this.#still(asked);
		if (word === null || row === null) return;
		const { hash, notes } = row;
		if (word === "cancelled" || word === "replaced") {
			const others = holdersOf(row).filter((name) => name !== HOLDER);
			rows.end(row, word, others);
			return;
		}
		if (!isItsAlone(row)) return;
		if (word === "blank") {
			// It comes first in the next pass where there is no question left for it.
			if (!(await this.#blank(row))) notes.pageAt = pageAt;
			return;
		}
		notes.blanks = 0;
		// It tries it no longer: who is well may have it.
		if (word === "abandoned") rows.change(hash, (one) => abandonedBy(one, HOLDER));
	}

	/** It is lost where its page was blank often enough and its hash is not known either. False: that can't be asked now. */
	async #blank(asked: Row): Promise<boolean> {
		const { rows, clock } = this.#with;
		const { hash, notes } = asked;
		const blanks = notes.blanks + 1;
		if (blanks < BLANKS * 2 ** Math.min(notes.pageLosses, MAX_DOUBLINGS)) {
			notes.blanks = blanks;
			return true;
		}
		if (this.#with.stopping.aborted || this.#questions === 0) return false;
		this.#questions -= 1;
		const call = { method: "eth_getTransactionByHash", params: [hash] };
		const known = await this.#fallback.call(call, this.#asking);
		const row = this.#still(asked);
		if (row === null || !isItsAlone(row) || known?.ok !== true || this.#fallback.breaker.isUnavailable)
			return true;
		if (known.result !== null) notes.blanks = 0;
		else if (row.acknowledged) {
			notes.blanks = 0;
			notes.pageLosses += 1;
			rows.change(hash, (one) => lost(one, HOLDER));
		} else if (clock.now() - row.receivedAt >= LATE_MS) {
			rows.change(hash, (one) => notHeld(one, HOLDER));
		}
		return true;
	}

	get #asking(): { readonly deadlineMs: number; readonly caller: null } {
		return { deadlineMs: this.#with.deadlineMs, caller: null };
	}

	/** The row as it is now; null where it is not the one that was asked about, or a request sees to it. */
	#still(asked: Row): Row | null {
		const row = this.#with.rows.live(asked.hash);
		return row !== null && row.notes === asked.notes && row.requests === 0 ? row : null;
	}
}

function isItsAlone({ requests, at }: Row): boolean {
	return requests === 0 && isHolder(at.fallback) && !isHolder(at.relay);
}

/** A relay of ours tells the stage; another one's page says nothing here, but that it knows nothing. Null: no page. */
function wordOf(page: unknown): PageWord | null {
	if (typeof page !== "object" || page === null) return null;
	const { status, stage = null } = page as { status?: unknown; stage?: unknown };
	if (status === "UNKNOWN") return stage === null ? "blank" : "other";
	if (status !== "FAILED") return "other";
	if (stage === "CANCELLED") return "cancelled";
	if (stage === "REPLACED") return "replaced";
	return stage === "EXPIRED" || stage === "DROPPED" ? "abandoned" : "other";
}
