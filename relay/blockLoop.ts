// PER BLOCK: what comes in is a change of the canonical chain, what goes out is, in this order: what was mined or
// came back, what expired, the next round of simulations and dispatches, and what is settled for good.

import type { Clock } from "../shared/clock.ts";
import { pause } from "../shared/clock.ts";
import { type Logger, safeError } from "../shared/log.ts";
import type { ChainRunner } from "./chainRunner.ts";
import type { Block, ChainUpdate, NextBlock } from "./domain/chain.ts";
import { mustPass } from "./domain/chainPlan.ts";
import { policyOf } from "./domain/endpoints.ts";
import { isLive, isMined } from "./domain/lifecycle.ts";
import type { Accounts, Broadcaster, InclusionReader, TransactionStore } from "./domain/ports.ts";
import type { TransactionRecord } from "./domain/record.ts";
import { NOBODY, type Pool, type PoolEntry } from "./pool/pool.ts";
import type { Ledger, LedgerEntry } from "./status/ledger.ts";

/** How many blocks a mined or ended transaction is watched for: a builder may have mined it, a block may go. */
export const WATCH_BLOCKS = 64;
/** How long one behind a nonce gap waits at most, in ms: go-ethereum's lifetime of a queued transaction. */
export const GAP_LIFE_MS = 3 * 3600 * 1000;
/** Between two tries while the node does not answer, in ms. */
const RETRY_MS = 500;
/** How often receipts that should be there are asked for again. */
const RECEIPT_TRIES = 5;
/** Senders looked at before other work gets its turn. */
const SLICE = 200;

export interface BlockLoopOptions {
	readonly txTtlBlocks: number;
}

export interface BlockLoopDependencies {
	readonly pool: Pool;
	readonly ledger: Ledger;
	readonly store: TransactionStore & { purge(now: number): Promise<number> };
	readonly accounts: Accounts;
	readonly inclusions: InclusionReader;
	readonly broadcaster: Broadcaster;
	readonly runner: Pick<ChainRunner, "run">;
	/** Set once a head's inclusions are known. */
	readonly tip: { set(head: Block, next: NextBlock | null): void };
	/** What the block after the head allows. */
	readonly nextOf: () => NextBlock | null;
	/** Told of each head before anything is sent for the next block. */
	readonly onHead: (block: number) => void;
	readonly clock: Clock;
	readonly log: Logger;
}

/** Follows the chain. */
export class BlockLoop {
	readonly #options: BlockLoopOptions;
	readonly #deps: BlockLoopDependencies;
	readonly #stop = new AbortController();

	constructor(options: BlockLoopOptions, dependencies: BlockLoopDependencies) {
		this.#options = options;
		this.#deps = dependencies;
	}

	/** Takes up what was live when the process last ran; before the first head. */
	restore(entries: Iterable<LedgerEntry>): void {
		for (const entry of entries) {
			this.#deps.ledger.open(entry);
			if (isLive(entry.record.stage)) this.#revive(entry);
		}
	}

	/** Begins no further try. */
	stop(): void {
		this.#stop.abort();
	}

	/** Works one change off; while the node does not answer it tries again, so that no block is passed over. */
	async onUpdate(update: ChainUpdate): Promise<void> {
		const { log, clock } = this.#deps;
		while (!this.#stop.signal.aborted) {
			try {
				await this.#apply(update);
				return;
			} catch (thrown) {
				log.warn("block could not be worked off, trying again", {
					block: update.head.number,
					fault: safeError(thrown),
				});
				await pause(clock, RETRY_MS, this.#stop.signal);
			}
		}
	}

	async #apply(update: ChainUpdate): Promise<void> {
		const { pool, accounts, onHead, nextOf, tip } = this.#deps;
		const head = update.head.number;
		this.#takeBack(update);
		await this.#include(update);
		accounts.setHead(head);
		if (update.gap) await this.#reconsider();
		tip.set(update.head, nextOf());
		onHead(head);
		const touched = new Set([...update.applied, ...update.reverted].flatMap((block) => block.touched));
		this.#expire(head);
		let looked = 0;
		for (const sender of pool.senders()) {
			this.#look(sender, update.gap || touched.has(sender));
			looked += 1;
			if (looked % SLICE === 0) await new Promise((resolve) => setImmediate(resolve));
		}
		await this.#settle(head);
	}

	/** What was in blocks that are no longer in the chain is pending again. */
	#takeBack(update: ChainUpdate): void {
		const { pool, ledger, clock } = this.#deps;
		const ancestor = Math.min(update.head.number, ...update.reverted.map((block) => block.number - 1));
		if (update.reverted.length > 0 || update.gap) pool.rewind(ancestor);
		if (update.reverted.length === 0) return;
		for (const entry of ledger.entries()) {
			const { record } = entry;
			const inBlock = isMined(record.stage) || record.stage === "DROPPED";
			if (!inBlock || record.block === null || record.block <= ancestor) continue;
			ledger.emit(record.hash, { type: "reorged", at: clock.now(), block: record.block });
			if (isLive(record.stage)) this.#revive(entry);
		}
	}

	/** Asks where ours among the blocks' transactions were mined; after a gap, for all of ours. */
	async #include(update: ChainUpdate): Promise<void> {
		const { ledger, inclusions, clock, pool } = this.#deps;
		const hashes = update.gap
			? [...ledger.entries()].map(({ record }) => record.hash)
			: update.applied.flatMap((block) =>
					block.transactions.map(({ hash }) => hash).filter((hash) => ledger.get(hash) !== undefined),
				);
		let found = await inclusions.inclusions(hashes, update.head.number);
		// They stand in the blocks: a node that has no receipt is behind with it, or has just given up the block.
		for (let left = RECEIPT_TRIES; left > 0 && !update.gap && found.includes(null); left--) {
			await pause(clock, RETRY_MS, this.#stop.signal);
			found = await inclusions.inclusions(hashes, update.head.number);
		}
		hashes.forEach((hash, i) => {
			const entry = ledger.get(hash);
			const at = found[i];
			if (entry === undefined || at === undefined) return;
			if (at === null) {
				this.#missing(entry, update.gap);
				return;
			}
			const pooled = pool.get(hash);
			if (pooled !== undefined) pool.remove(pooled);
			const { block, blockHash, index, reverted } = at;
			if (isMined(entry.record.stage)) {
				if (minedIn(entry.record) === blockHash) return;
				// After a gap: it moved to another block while nobody looked.
				ledger.emit(hash, { type: "reorged", at: clock.now(), block: entry.record.block ?? block });
			}
			ledger.emit(hash, { type: "included", at: clock.now(), block, blockHash, index, reverted });
		});
	}

	/** Found nowhere after a gap, though it was mined as far as we knew: its block is gone. */
	#missing(entry: LedgerEntry, gap: boolean): void {
		const { ledger, clock } = this.#deps;
		const { record } = entry;
		if (!gap || !isMined(record.stage)) return;
		ledger.emit(record.hash, { type: "reorged", at: clock.now(), block: record.block ?? 0 });
		if (isLive(record.stage)) this.#revive(entry);
	}

	/** After a gap: what was dropped for a nonce that is free (again) is pending again. */
	async #reconsider(): Promise<void> {
		const { ledger, accounts, clock } = this.#deps;
		for (const entry of [...ledger.entries()]) {
			const { record, transaction } = entry;
			if (record.stage !== "DROPPED") continue;
			const account = await accounts.get(transaction.tx.from);
			if (account.nonce > transaction.tx.nonce) continue;
			ledger.emit(record.hash, { type: "reorged", at: clock.now(), block: record.block ?? 0 });
			this.#revive(entry);
		}
	}

	/** Back into the pool. Where its place is taken, it was replaced. */
	#revive(entry: LedgerEntry): void {
		const { pool, ledger, clock } = this.#deps;
		const { transaction, record } = entry;
		const pooled: PoolEntry = {
			transaction,
			durable: true,
			outFor: null,
			outTo: NOBODY,
			sentTo: this.#sentTo(entry),
		};
		if (pool.insert(pooled, transaction.tx.nonce, 0)) return;
		const holder = pool.at(transaction.tx.from, transaction.tx.nonce);
		if (holder === undefined || holder.transaction.tx.hash === record.hash) return;
		const by = holder.transaction.tx.hash;
		ledger.emit(record.hash, { type: "replaced", at: clock.now(), block: record.block ?? 0, by });
	}

	/** The builders that have had it, as far as it is known: answers of the last moments may not have been written. */
	#sentTo({ transaction, record }: LedgerEntry): ReadonlySet<string> {
		const sent = record.deliveries.filter(({ kind }) => kind !== "cancel").map(({ builder }) => builder);
		const wasOut = record.events.some(({ type }) => type === "broadcast");
		return new Set(sent.length === 0 && wasOut ? this.#deps.broadcaster.eligible(transaction) : sent);
	}

	/** Ends what has lived its blocks, or waited too long behind a gap. */
	#expire(head: number): void {
		const { pool, ledger, clock } = this.#deps;
		for (const { record } of ledger.entries()) {
			const entry = pool.get(record.hash);
			if (entry === undefined) continue;
			const over =
				record.firstBlock === null
					? clock.now() - record.receivedAt > GAP_LIFE_MS
					: head + 1 >= record.firstBlock + this.#options.txTtlBlocks;
			if (!over) continue;
			pool.remove(entry);
			ledger.emit(record.hash, { type: "expired", at: clock.now(), block: head });
			this.#withdrawPrivate(entry, head);
		}
	}

	/** A bundle names its block and lapses by itself; a private transaction stays until it is cancelled. */
	#withdrawPrivate(entry: PoolEntry, head: number): void {
		const { broadcaster } = this.#deps;
		if (policyOf(entry.transaction.path).form !== "private") return;
		broadcaster.cancel(entry.transaction, [...entry.sentTo], head + 1);
	}

	/** One sender for the new next block: simulated where it must be, else sent again as it is. */
	#look(sender: string, fresh: boolean): void {
		const { pool, ledger, runner } = this.#deps;
		const { ready } = pool.chain(sender);
		const passed = ready.map((entry) => ledger.get(entry.transaction.tx.hash)?.record.passed === true);
		const checked = ready.map((entry, i) =>
			mustPass({ policy: policyOf(entry.transaction.path), passed: passed[i] === true, eligible: [] }),
		);
		// What is out and must pass again goes before what failed: its user waits for this very block.
		const priority = checked.some((must, i) => must && passed[i] === true) ? "again" : "held";
		runner.run(sender, priority, fresh || checked.includes(true));
	}

	/** What was mined or has ended 64 blocks ago is final; the rest of what changed is written. */
	async #settle(head: number): Promise<void> {
		const { ledger, store, clock } = this.#deps;
		const settled: TransactionRecord[] = [];
		for (const { record } of ledger.entries()) {
			if (isLive(record.stage) || record.block === null) continue;
			if (record.block + WATCH_BLOCKS <= head) settled.push(record);
		}
		if (settled.length > 0) {
			await store.settle(settled, clock.now());
			for (const record of settled) ledger.forget(record.hash);
		}
		await this.flush(false);
		await store.purge(clock.now());
	}

	/** Writes what changed; `all`: deliveries that nothing else came with too. */
	async flush(all: boolean): Promise<void> {
		const { ledger, store } = this.#deps;
		const changed = ledger.takeChanged(all);
		try {
			await store.update(changed);
		} catch (thrown) {
			ledger.putBack(changed);
			throw thrown;
		}
	}
}

function minedIn(record: TransactionRecord): string | undefined {
	const last = record.events.findLast((event) => event.type === "included");
	return last?.type === "included" ? last.blockHash : undefined;
}
