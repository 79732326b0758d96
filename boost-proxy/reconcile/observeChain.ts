// Turns what the chain says of rows that the relay can't speak for into facts: nonces and receipts are read, a few accounts
// at a time, and rows end as mined, replaced, dropped or, when their time is over, expired.

import { readQuantity } from "../../shared/ethereum/hex.ts";
import type { Logger } from "../../shared/log.ts";
import type { Call, CallResult } from "../domain/delivery.ts";
import type { ChainReads, Rows } from "../domain/ports.ts";
import { type Ending, isHolder, type Row } from "../domain/row.ts";

export interface ObserveChainOptions {
	readonly slotMs: number;
	/** Of one batch, in ms. */
	readonly deadlineMs: number;
}

export interface ObserveChainDependencies {
	readonly rows: Rows;
	readonly chain: ChainReads;
	/** What the relay says, which comes first. */
	readonly relay: { readonly speaks: boolean; speaksFor(row: Row): boolean };
	readonly clock: { now(): number; monotonic(): number };
	readonly log: Logger;
}

/** Calls in one batch: as many as a relay takes, and few enough for the fallback, which may be the one that is asked. */
const MAX_CALLS = 100;
/** Answers in a row that must say the same before it is believed: a node may be a block behind another. */
const ANSWERS = 2;
/** Where nobody can be asked for the chain, a row outlives its time by so much at most, in ms. */
const GRACE_MS = 600_000;

/** Observes the chain. */
export class ObserveChain {
	readonly #options: ObserveChainOptions;
	readonly #with: ObserveChainDependencies;
	#stopped = false;

	constructor(options: ObserveChainOptions, dependencies: ObserveChainDependencies) {
		this.#options = options;
		this.#with = dependencies;
	}

	stop(): void {
		this.#stopped = true;
	}

	/** Asks for the accounts that were not asked for the longest. */
	async ask(): Promise<void> {
		const senders = this.#due();
		if (senders.length > 0) {
			const nonces = await this.#latest(senders.map(({ from }) => from));
			if (nonces !== null && !this.#stopped) await this.#judge(senders, nonces);
		}
		if (!this.#stopped) await this.#askForMined();
	}

	/** Accounts that have a row to be asked for, at most as many as fit into one batch. */
	#due(): readonly { readonly from: string; readonly rows: Row[] }[] {
		const { rows, relay, clock } = this.#with;
		const pauseMs = this.#options.slotMs / 2;
		const now = clock.monotonic();
		const senders = new Map<string, { from: string; since: number; rows: Row[] }>();
		const overdue: Row[] = [];
		for (const row of rows.open()) {
			if (row.requests > 0 || relay.speaksFor(row)) continue;
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
		for (const row of overdue) this.#end(row, "expired");
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
		for (let at = 0; at < used.length && !this.#stopped; at += MAX_CALLS) {
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
		const { rows, relay, clock } = this.#with;
		const now = clock.monotonic();
		const taken: Row[] = [];
		for (const row of rows.mined()) {
			if (taken.length >= MAX_CALLS) break;
			const { notes, at } = row;
			const isRelays = relay.speaks && !notes.byChain && isHolder(at.relay);
			if (isRelays || now - notes.chainAt < this.#options.slotMs / 2) continue;
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
		return this.#with.chain.batch(calls, this.#options.deadlineMs);
	}
}

function bySince(one: { readonly since: number }, other: { readonly since: number }): number {
	// Not a difference: both may be −∞.
	if (one.since === other.since) return 0;
	return one.since < other.since ? -1 : 1;
}
