// What the chain says of entries that the relay can't speak for: nonces and receipts are read, a few accounts at a time,
// and entries end as mined, replaced, dropped or, when their time is over, expired.

import { readQuantity } from "../../shared/ethereum/hex.ts";
import type { OpenEntry } from "../domain/journalEntry.ts";
import type { Call, CallResult, ChainReads, Journal } from "../domain/ports.ts";
import type { FollowBook, Watch } from "./followBook.ts";
import type { FollowEndings } from "./followEndings.ts";
import type { MinedEntries } from "./followMined.ts";

export interface FollowChainOptions {
	readonly slotMs: number;
	/** Of one batch, in ms. */
	readonly deadlineMs: number;
}

export interface FollowChainDependencies {
	readonly journal: Journal;
	readonly chain: ChainReads;
	readonly book: FollowBook;
	readonly mined: MinedEntries;
	readonly endings: FollowEndings;
	/** What the relay says, which comes first. */
	readonly relay: { readonly speaks: boolean; speaksFor(entry: OpenEntry, watch: Watch): boolean };
	readonly clock: { now(): number; monotonic(): number };
}

/** Calls in one batch: as many as a relay takes, and few enough for the fallback, which may be the one that is asked. */
const MAX_CALLS = 100;
/** Looks in a row that must find the same before it is believed: a node may be a block behind another. */
const LOOKS = 2;
/** Where nobody can be asked for the chain, an entry outlives its time by so much at most, in ms. */
const GRACE_MS = 600_000;

/** Follows the chain. */
export class FollowChain {
	readonly #options: FollowChainOptions;
	readonly #with: FollowChainDependencies;
	#stopped = false;

	constructor(options: FollowChainOptions, dependencies: FollowChainDependencies) {
		this.#options = options;
		this.#with = dependencies;
	}

	stop(): void {
		this.#stopped = true;
	}

	/** Asks for the accounts that were not asked for the longest. */
	async look(): Promise<void> {
		const senders = this.#due();
		if (senders.length > 0) {
			const nonces = await this.#latest(senders.map(({ from }) => from));
			if (nonces !== null && !this.#stopped) await this.#judge(senders, nonces);
		}
		if (!this.#stopped) await this.#lookAtMined();
	}

	/** Accounts that have an entry to be asked for, at most as many as fit into one batch. */
	#due(): readonly { readonly from: string; readonly entries: OpenEntry[] }[] {
		const { journal, book, relay, endings, clock } = this.#with;
		const pauseMs = this.#options.slotMs / 2;
		const now = clock.monotonic();
		const senders = new Map<string, { from: string; since: number; entries: OpenEntry[] }>();
		const overdue: OpenEntry[] = [];
		for (const entry of journal.open()) {
			if (entry.underWay) continue;
			const watch = book.of(entry);
			if (relay.speaksFor(entry, watch)) continue;
			if (clock.now() >= entry.aliveUntil + GRACE_MS) overdue.push(entry);
			if (now - watch.chainAt < pauseMs) continue;
			const { from } = entry;
			const sender = senders.get(from);
			if (sender === undefined) senders.set(from, { from, since: watch.chainAt, entries: [entry] });
			else {
				sender.entries.push(entry);
				sender.since = Math.min(sender.since, watch.chainAt);
			}
		}
		for (const entry of overdue) endings.end(entry, "expired");
		const all = [...senders.values()];
		return all.length <= MAX_CALLS ? all : all.sort(bySince).slice(0, MAX_CALLS);
	}

	async #judge(
		senders: readonly { readonly from: string; readonly entries: readonly OpenEntry[] }[],
		nonces: readonly (bigint | null)[],
	): Promise<void> {
		const { book, clock } = this.#with;
		const now = clock.monotonic();
		const used: OpenEntry[] = [];
		for (const [i, { entries }] of senders.entries()) {
			const next = nonces[i] ?? null;
			for (const entry of entries) {
				const watch = book.of(entry);
				watch.chainAt = now;
				if (next === null) continue;
				if (next > entry.nonce) used.push(entry);
				else {
					watch.used = 0;
					this.#expire(entry);
				}
			}
		}
		for (let at = 0; at < used.length && !this.#stopped; at += MAX_CALLS) {
			const some = used.slice(at, at + MAX_CALLS);
			const receipts = await this.#receipts(some.map(({ hash }) => hash));
			for (const [i, entry] of some.entries()) this.#used(entry, receipts?.[i]);
		}
	}

	/** Its nonce is used: by itself, or by another one. */
	#used(asked: OpenEntry, receipt: CallResult | undefined): void {
		const { journal, book, mined, endings } = this.#with;
		const entry = this.#still(asked);
		if (entry === null || receipt?.ok !== true) return;
		if (receipt.result !== null) {
			endings.end(entry, "mined");
			return;
		}
		const watch = book.of(entry);
		watch.used += 1;
		if (watch.used < LOOKS) return;
		const siblings = journal.of(entry.from).some((one) => one.nonce === entry.nonce && one !== entry);
		endings.end(entry, siblings || mined.hasNonce(entry) ? "replaced" : "dropped");
	}

	#expire(asked: OpenEntry): void {
		const entry = this.#still(asked);
		if (entry === null || this.#with.clock.now() < entry.aliveUntil) return;
		this.#with.endings.end(entry, "expired");
	}

	/** The entry as it is now; null where it ended, or a request sees to it. */
	#still({ hash, receivedAt }: OpenEntry): OpenEntry | null {
		const entry = this.#with.journal.get(hash);
		return entry === null || entry.underWay || entry.receivedAt !== receivedAt ? null : entry;
	}

	/** A receipt that is gone: its block was taken back. */
	async #lookAtMined(): Promise<void> {
		const { mined, relay, endings } = this.#with;
		const due = mined.due(MAX_CALLS, this.#options.slotMs / 2, ({ byChain }) => byChain || !relay.speaks);
		if (due.length === 0) return;
		const receipts = await this.#receipts(due.map(({ hash }) => hash));
		for (const [i, one] of due.entries()) {
			const receipt = receipts?.[i];
			if (receipt?.ok !== true || mined.get(one.hash) !== one) continue;
			if (receipt.result !== null) one.gone = 0;
			else if (++one.gone >= LOOKS) endings.reopen(one.hash);
		}
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
		return this.#with.chain.batch(calls, this.#options.deadlineMs);
	}
}

function bySince(one: { readonly since: number }, other: { readonly since: number }): number {
	// Not a difference: both may be −∞.
	if (one.since === other.since) return 0;
	return one.since < other.since ? -1 : 1;
}
