// What is done for each block: what was mined or came back, what expired, the next round of simulations and dispatches,
// and what is settled for good. Only what can be in the next block costs more than a look at it, and no look holds up
// other work.

import type { Background } from "../shared/background.ts";
import { type Clock, nextTurn, pause, type Timer } from "../shared/clock.ts";
import { type Logger, safeError } from "../shared/log.ts";
import { mustPass } from "./chainActions.ts";
import { ChainChanges, type ChainChangesDependencies, WATCH_BLOCKS } from "./chainChanges.ts";
import type { ChainRunner } from "./chainRunner.ts";
import { type Block, type ChainUpdate, earlierTime, type NextBlock } from "./domain/chain.ts";
import { policyOf } from "./domain/endpoints.ts";
import { isLive } from "./domain/record.ts";
import type { RecordEntry } from "./transactions/records.ts";

/** How long one behind a nonce gap waits at most, in seconds of the chain: go-ethereum's lifetime of a queued transaction. */
export const GAP_LIFE_S = 3 * 3600;
/** Between two tries while the node does not answer, in ms. */
const RETRY_MS = 500;
/** How long what must not wait for the next block is gathered, in ms. */
const FLUSH_MS = 50;
/** How long a walk over all that is held goes on before other work has its turn, in ms. */
const TURN_MS = 5;

export interface BlockLoopOptions {
	readonly txTtlBlocks: number;
	readonly slotSeconds: number;
}

export interface BlockLoopDependencies extends ChainChangesDependencies {
	readonly store: { purge(now: number): Promise<number> };
	readonly runner: Pick<ChainRunner, "run">;
	/** Set once a head's inclusions are known. */
	readonly tip: { head(): Block | null; set(head: Block, next: NextBlock | null): void };
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
	#isPurging = false;

	constructor(options: BlockLoopOptions, dependencies: BlockLoopDependencies) {
		this.#options = options;
		this.#deps = dependencies;
		this.#changes = new ChainChanges(dependencies);
	}

	/** Takes up what was live when the process last ran; before the first head. */
	restore(entries: Iterable<RecordEntry>): void {
		// Where two have one place, it is the later one's.
		const latestFirst = [...entries].sort((a, b) => b.record.receivedAt - a.record.receivedAt);
		for (const entry of latestFirst) this.#deps.transactions.restore(entry);
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
		await this.#review(update.head.number);
		await this.#runChains(update);
		await this.#settle(update.head);
	}

	async #follow(update: ChainUpdate): Promise<void> {
		const { accounts, onHead, nextOf, tip, pool } = this.#deps;
		this.#changes.takeBack(update);
		await this.#changes.include(update, this.#stop.signal);
		accounts.setHead(update.head.number);
		const next = nextOf();
		tip.set(update.head, next);
		if (next !== null) pool.setNext(next);
		onHead(update);
		// Behind the tip: what is found dropped from here on is judged by the new chain.
		if (update.gap || update.reverted.length > 0) await this.#changes.reconsider();
	}

	/** Each transaction that is held or watched: whether its end must be told again, and whether its life is over. */
	async #review(head: number): Promise<void> {
		const { records, clock, runner } = this.#deps;
		const anew = !this.#resumed;
		this.#resumed = true;
		const changed = new Set<string>();
		await inTurns(records.entries(), clock, (entry) => {
			this.#changes.cancelAgain(entry, head, anew);
			if (this.#expire(entry, head)) changed.add(entry.record.from);
		});
		// What stands behind it may wait from now on, or no longer: once all of its age have ended.
		for (const sender of changed) runner.run(sender, "held", false);
	}

	/**
	 * Every sender whose first transaction can be in the next block: simulated where it must be, else sent again as it is.
	 * Beside these whoever's nonce the blocks have moved.
	 */
	async #runChains(update: ChainUpdate): Promise<void> {
		const { pool, clock } = this.#deps;
		const touched = new Set([...update.applied, ...update.reverted].flatMap((block) => block.touched));
		await inTurns(pool.senders(), clock, (sender) => {
			const canGoOut = pool.canGoOut(sender);
			this.#runChain(sender, canGoOut, update.gap || touched.has(sender), update.head.number);
		});
	}

	#runChain(sender: string, canGoOut: boolean, moved: boolean, head: number): void {
		const { pool, records, runner } = this.#deps;
		const { ready } = pool.chain(sender);
		const passed = ready.map((entry) => records.get(entry.transaction.tx.hash)?.record.passed === true);
		const checked = ready.map((entry, i) =>
			mustPass({ policy: policyOf(entry.transaction.path), passed: passed[i] === true, eligible: [] }),
		);
		// It was out, and the base fee has risen above it: its user is told that it is held.
		const isHeldNow = ready[0]?.outFor === head && checked[0] === true;
		if (!canGoOut && !moved && !isHeldNow) return;
		// What is out and must pass again goes before what failed: its user waits for this very block.
		const priority = checked.some((must, i) => must && passed[i] === true) ? "again" : "held";
		runner.run(sender, priority, moved || checked.includes(true));
	}

	/** Ends what has lived its blocks, or waited too long behind a gap; answers whether it did. */
	#expire({ record }: RecordEntry, head: number): boolean {
		const { transactions, pool } = this.#deps;
		const { txTtlBlocks, slotSeconds } = this.#options;
		if (!isLive(record.stage)) return false;
		const entry = pool.get(record.hash);
		if (entry === undefined || !entry.durable) return false;
		const last =
			record.firstBlock === null
				? (record.block ?? head) + Math.ceil(GAP_LIFE_S / slotSeconds)
				: record.firstBlock + txTtlBlocks - 1;
		if (head < last) return false;
		transactions.expired(entry, head);
		return true;
	}

	/**
	 * What changed is written; what was mined or has ended 64 blocks ago is final. A store that fails holds up no block:
	 * what was not written is written with a later one.
	 */
	async #settle(head: Block): Promise<void> {
		const { transactions, records, clock, background, log } = this.#deps;
		const isOver = ({ stage, block }: RecordEntry["record"]) =>
			!isLive(stage) && block !== null && block + WATCH_BLOCKS <= head.number;
		try {
			await transactions.flush(false);
			const final: RecordEntry[] = [];
			await inTurns(records.entries(), clock, (entry) => {
				if (isOver(entry.record)) final.push(entry);
			});
			await transactions.settle(final, isOver);
		} catch (thrown) {
			log.error("records could not be written", { block: head.number, fault: safeError(thrown) });
			return;
		}
		if (this.#isPurging) return;
		this.#isPurging = true;
		background.run("purge", () => this.#purge(head));
	}

	/** Beside the blocks, which need not wait for it. */
	async #purge(head: Block): Promise<void> {
		const { store, clock, log } = this.#deps;
		try {
			await store.purge(earlierTime(clock.now(), head));
		} catch (thrown) {
			log.error("old records could not be forgotten", { block: head.number, fault: safeError(thrown) });
		} finally {
			this.#isPurging = false;
		}
	}

	/** Writes what changed in a moment: what must not wait for the next block. */
	flushSoon(): void {
		const { clock, background } = this.#deps;
		if (this.#flushing !== null || this.#stop.signal.aborted) return;
		this.#flushing = clock.after(FLUSH_MS, () => {
			this.#flushing = null;
			background.run("records", () => this.#deps.transactions.flush(false));
		});
	}
}

/** Calls `visit` for each of `items`, those that come meanwhile included; other work has its turn in between. */
async function inTurns<T>(items: Iterable<T>, clock: Clock, visit: (item: T) => void): Promise<void> {
	let begun = clock.monotonic();
	for (const item of items) {
		visit(item);
		if (clock.monotonic() - begun < TURN_MS) continue;
		await nextTurn();
		begun = clock.monotonic();
	}
}
