// PER BLOCK: what comes in is a change of the canonical chain, what goes out is, in this order: what was mined or
// came back, what expired, the next round of simulations and dispatches, and what is settled for good.

import type { Background } from "../shared/background.ts";
import { pause, type Timer } from "../shared/clock.ts";
import { type Logger, safeError } from "../shared/log.ts";
import { ChainChanges, type ChainChangesDependencies, WATCH_BLOCKS } from "./chainChanges.ts";
import type { ChainRunner } from "./chainRunner.ts";
import type { Block, ChainUpdate, NextBlock } from "./domain/chain.ts";
import { mustPass } from "./domain/chainPlan.ts";
import { policyOf } from "./domain/endpoints.ts";
import { isLive, type Stage } from "./domain/lifecycle.ts";
import type { TransactionStore } from "./domain/ports.ts";
import type { TransactionRecord } from "./domain/record.ts";
import type { LedgerEntry } from "./status/ledger.ts";

/** How long one behind a nonce gap waits at most, in ms: go-ethereum's lifetime of a queued transaction. */
export const GAP_LIFE_MS = 3 * 3600 * 1000;
/** Between two tries while the node does not answer, in ms. */
const RETRY_MS = 500;
/** How long what must not wait for the next block is gathered, in ms. */
const FLUSH_MS = 50;
/** Senders looked at before other work gets its turn. */
const SLICE = 200;

export interface BlockLoopOptions {
	readonly txTtlBlocks: number;
}

export interface BlockLoopDependencies extends ChainChangesDependencies {
	readonly store: TransactionStore & { purge(now: number): Promise<number> };
	readonly runner: Pick<ChainRunner, "run">;
	/** Set once a head's inclusions are known. */
	readonly tip: { set(head: Block, next: NextBlock | null): void };
	/** What the block after the head allows. */
	readonly nextOf: () => NextBlock | null;
	/** Told of each head before anything is sent for the next block. */
	readonly onHead: (update: ChainUpdate) => void;
	readonly background: Background;
	readonly log: Logger;
}

/** Follows the chain. */
export class BlockLoop {
	readonly #options: BlockLoopOptions;
	readonly #deps: BlockLoopDependencies;
	readonly #changes: ChainChanges;
	readonly #stop = new AbortController();
	/** Whether a head was worked off since the start. */
	#resumed = false;
	#flushing: Timer | null = null;

	constructor(options: BlockLoopOptions, dependencies: BlockLoopDependencies) {
		this.#options = options;
		this.#deps = dependencies;
		this.#changes = new ChainChanges(dependencies);
	}

	/** Takes up what was live when the process last ran; before the first head. */
	restore(entries: Iterable<LedgerEntry>): void {
		// Where two have one place, it is the later one's.
		const latestFirst = [...entries].sort((a, b) => b.record.receivedAt - a.record.receivedAt);
		for (const entry of latestFirst) this.#changes.restore(entry);
	}

	/** Begins no further try. */
	stop(): void {
		this.#stop.abort();
		this.#flushing?.cancel();
	}

	/** Works one change off; while the node does not answer it tries again, so that no block is passed over. */
	async onUpdate(update: ChainUpdate): Promise<void> {
		const { log, clock } = this.#deps;
		while (!this.#stop.signal.aborted) {
			try {
				await this.#follow(update);
				break;
			} catch (thrown) {
				log.warn("block could not be worked off, trying again", {
					block: update.head.number,
					fault: safeError(thrown),
				});
				await pause(clock, RETRY_MS, this.#stop.signal);
			}
		}
		if (this.#stop.signal.aborted) return;
		await this.#lookAtAll(update);
		await this.#settle(update.head.number);
	}

	async #follow(update: ChainUpdate): Promise<void> {
		const { accounts, onHead, nextOf, tip } = this.#deps;
		this.#changes.takeBack(update);
		await this.#changes.include(update, this.#stop.signal);
		accounts.setHead(update.head.number);
		tip.set(update.head, nextOf());
		onHead(update);
		// Behind the tip: what is found dropped from here on is judged by the new chain.
		if (update.gap || update.reverted.length > 0) await this.#changes.reconsider();
		this.#changes.cancelAgain(update.head.number, !this.#resumed);
		this.#resumed = true;
		this.#changes.heal();
		this.#expire(update.head.number);
	}

	/** Every sender for the new next block: simulated where it must be, else sent again as it is. */
	async #lookAtAll(update: ChainUpdate): Promise<void> {
		const touched = new Set([...update.applied, ...update.reverted].flatMap((block) => block.touched));
		let looked = 0;
		for (const sender of this.#deps.pool.senders()) {
			this.#look(sender, update.gap || touched.has(sender));
			looked += 1;
			if (looked % SLICE === 0) await new Promise((resolve) => setImmediate(resolve));
		}
	}

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

	/** Ends what has lived its blocks, or waited too long behind a gap. */
	#expire(head: number): void {
		const { pool, ledger, clock, broadcaster } = this.#deps;
		for (const { record } of ledger.entries()) {
			const entry = pool.get(record.hash);
			if (entry === undefined || !entry.durable) continue;
			const over =
				record.firstBlock === null
					? clock.now() - waitsSince(record) > GAP_LIFE_MS
					: head + 1 >= record.firstBlock + this.#options.txTtlBlocks;
			if (!over) continue;
			pool.remove(entry);
			ledger.emit(record.hash, { type: "expired", at: clock.now(), block: head });
			// A bundle names its block and lapses by itself; a private transaction stays until it is cancelled.
			if (policyOf(record.path).form === "private") {
				broadcaster.cancel(entry.transaction, [...entry.sentTo], head + 1);
			}
		}
	}

	/**
	 * What was mined or has ended 64 blocks ago is final; the rest of what changed is written. A store that fails holds
	 * up no block: what was not written is written with a later one.
	 */
	async #settle(head: number): Promise<void> {
		const { ledger, store, clock, pool, log } = this.#deps;
		const settled = new Map<TransactionRecord, Stage>();
		for (const { record } of ledger.entries()) {
			// In the pool: it is being admitted anew, and its bytes are needed.
			if (isLive(record.stage) || record.block === null || pool.get(record.hash) !== undefined) continue;
			if (record.block + WATCH_BLOCKS <= head && !ledger.isEnding(record.hash))
				settled.set(record, record.stage);
		}
		try {
			if (settled.size > 0) await store.settle([...settled.keys()], clock.now());
			// One that its user has ended meanwhile is settled with the next block.
			for (const [record, stage] of settled) {
				if (record.stage === stage && !ledger.isEnding(record.hash)) ledger.close(record);
			}
			await this.flush(false);
			await store.purge(clock.now());
		} catch (thrown) {
			log.error("records could not be written", { block: head, fault: safeError(thrown) });
		}
	}

	/** Writes what changed in a moment: what must not wait for the next block. */
	flushSoon(): void {
		const { clock, background } = this.#deps;
		if (this.#flushing !== null || this.#stop.signal.aborted) return;
		this.#flushing = clock.after(FLUSH_MS, () => {
			this.#flushing = null;
			background.run("records", () => this.flush(false));
		});
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

/** Since when it has waited for its turn, in ms: not the while before, in which it was out. */
function waitsSince({ events, receivedAt }: TransactionRecord): number {
	return events.findLast(({ type }) => type === "queued")?.at ?? receivedAt;
}
