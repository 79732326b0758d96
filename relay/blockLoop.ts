// What is done for each block: what was mined or came back, what expired, the next round of simulations and dispatches,
// and what is settled for good. Only what can be in the next block costs more than a look at it, and no look holds up
// other work.

import type { Background } from "../shared/background.ts";
import { type Clock, nextTurn, pause, type Timer } from "../shared/clock.ts";
import { clientOf } from "../shared/http/callContext.ts";
import { type Logger, safeError } from "../shared/log.ts";
import { mustPass } from "./chainPlan.ts";
import type { ChainRunner } from "./chainRunner.ts";
import { type Block, type ChainTip, type ChainUpdate, earlierTime, type NextBlock } from "./domain/chain.ts";
import { policyOf } from "./domain/endpoints.ts";
import type { DeliveryAnswer } from "./domain/events.ts";
import type { Accounts, Broadcaster, InclusionReader } from "./domain/ports.ts";
import {
	buildersWith,
	isLive,
	isMined,
	isUserEnd,
	type LifeEvent,
	type TransactionRecord,
} from "./domain/record.ts";
import { WATCH_BLOCKS } from "./domain/transaction.ts";
import type { RecordEntry } from "./transactions/records.ts";
import type { Transactions } from "./transactions/transactions.ts";

/** How long one behind a nonce gap waits at most, in seconds of the chain: go-ethereum's lifetime of a queued transaction. */
export const GAP_LIFE_S = 3 * 3600;
/** Between two tries while the node does not answer, in ms. */
const RETRY_MS = 500;
/** How often receipts that should be there are asked for again before the head is worked off. */
const RECEIPT_TRIES = 3;
/** How long what must not wait for the next block is gathered, in ms. */
const FLUSH_MS = 50;
/** How long a walk over all that is held goes on before other work has its turn, in ms. */
const TURN_MS = 5;
/** Answers by which a builder shows that it was told. */
const WAS_TOLD: ReadonlySet<DeliveryAnswer> = new Set(["accepted", "rejected"]);

export interface BlockLoopOptions {
	readonly txTtlBlocks: number;
	readonly slotSeconds: number;
}

export interface BlockLoopDependencies {
	readonly transactions: Transactions;
	readonly accounts: Accounts;
	readonly inclusions: InclusionReader;
	readonly broadcaster: Broadcaster;
	readonly runner: Pick<ChainRunner, "run">;
	/** Set once a head's inclusions are known. */
	readonly tip: ChainTip;
	/** What the block after the head allows. */
	readonly nextOf: () => NextBlock | null;
	/** Told of each head before anything is sent for the next block. */
	readonly onHead: (update: ChainUpdate) => void;
	readonly background: Background;
	readonly clock: Clock;
	readonly log: Logger;
}

/** Follows the chain. */
export class BlockLoop {
	readonly #options: BlockLoopOptions;
	readonly #deps: BlockLoopDependencies;
	/** Transactions that stand in a block of the chain while the node has no receipt for them yet, with its number. */
	readonly #awaited = new Map<string, number>();
	readonly #stop = new AbortController();
	/** Whether a head was worked off since the start. */
	#resumed = false;
	#flushing: Timer | null = null;
	#isPurging = false;

	constructor(options: BlockLoopOptions, dependencies: BlockLoopDependencies) {
		this.#options = options;
		this.#deps = dependencies;
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
		const { accounts, onHead, nextOf, tip, transactions } = this.#deps;
		this.#takeBack(update);
		await this.#include(update);
		accounts.setHead(update.head.number);
		const next = nextOf();
		tip.set(update.head, next);
		if (next !== null) transactions.pool.setNext(next);
		onHead(update);
		// Behind the tip: what is found dropped from here on is judged by the new chain.
		if (update.gap || update.reverted.length > 0) await this.#reconsider();
	}

	/** What was in blocks that are no longer in the chain is what it was before. May be called again for one update. */
	#takeBack({ head, reverted, gap }: ChainUpdate): void {
		const { transactions } = this.#deps;
		const ancestor = Math.min(head.number, ...reverted.map((block) => block.number - 1));
		if (reverted.length > 0 || gap) transactions.pool.rewind(ancestor);
		if (reverted.length === 0) return;
		for (const [hash, block] of this.#awaited) if (block > ancestor) this.#giveUp(hash);
		for (const block of reverted) {
			for (const { hash } of block.transactions) {
				const entry = transactions.records.get(hash);
				if (entry === undefined || !isMined(entry.record.stage)) continue;
				if (entry.record.blockHash === block.hash) transactions.reorged(entry, block.number);
			}
		}
	}

	/**
	 * Takes down where ours among the blocks' transactions were mined; after a gap, all of ours. Throws UpstreamError
	 * where the node does not tell.
	 */
	async #include(update: ChainUpdate): Promise<void> {
		const { transactions, inclusions, clock } = this.#deps;
		const { records } = transactions;
		const head = update.head.number;
		const standing = new Map(this.#awaited);
		for (const block of update.applied) {
			for (const { hash } of block.transactions) if (records.get(hash)) standing.set(hash, block.number);
		}
		const hashes = update.gap
			? [...records.entries()].map(({ record }) => record.hash)
			: [...standing.keys()];
		let found = await inclusions.inclusions(hashes, head);
		const isNew = (i: number) => !this.#awaited.has(hashes[i] ?? "");
		for (let left = RECEIPT_TRIES; left > 0 && !update.gap; left--) {
			// A node without a receipt for what stands in the block is behind with it, or has just given up the block.
			if (!found.some((at, i) => at === null && isNew(i))) break;
			await pause(clock, RETRY_MS, this.#stop.signal);
			found = await inclusions.inclusions(hashes, head);
		}
		hashes.forEach((hash, i) => {
			const entry = records.get(hash);
			const at = found[i];
			if (entry === undefined || at) this.#awaited.delete(hash);
			if (entry === undefined) return;
			if (at) transactions.included(entry, at);
			else if (!update.gap) this.#await(hash, standing.get(hash) ?? head, head);
			// Found nowhere, though it was mined as far as we knew: its block is gone.
			else if (isMined(entry.record.stage)) transactions.reorged(entry, entry.record.block ?? 0);
		});
	}

	/**
	 * What was dropped for a nonce that is free again is pending again: after a gap or a reorganisation, when the accounts
	 * are those of the new head. Throws UpstreamError.
	 */
	async #reconsider(): Promise<void> {
		const { transactions, accounts } = this.#deps;
		for (const entry of [...transactions.records.entries()]) {
			const { record, transaction } = entry;
			if (record.stage !== "DROPPED") continue;
			const account = await accounts.get(transaction.tx.from, clientOf(transaction.origin));
			if (account.nonce > transaction.tx.nonce || record.stage !== "DROPPED") continue;
			transactions.reorged(entry, record.block ?? 0);
		}
	}

	/** It stands in a block: nothing is sent or ended until the receipt tells how it went. */
	#await(hash: string, block: number, head: number): void {
		if (block + WATCH_BLOCKS <= head) this.#giveUp(hash);
		else {
			this.#awaited.set(hash, block);
			this.#deps.transactions.withhold(hash);
		}
	}

	/** No receipt will come. */
	#giveUp(hash: string): void {
		const { transactions } = this.#deps;
		const entry = transactions.records.get(hash);
		if (this.#awaited.delete(hash) && entry !== undefined) transactions.revive(entry);
	}

	/** Each transaction that is held or watched: whether its end must be told again, and whether its life is over. */
	async #review(head: number): Promise<void> {
		const { transactions, clock, runner } = this.#deps;
		const isFirst = !this.#resumed;
		this.#resumed = true;
		const changed = new Set<string>();
		await inTurns(transactions.records.entries(), clock, (entry) => {
			this.#cancelAgain(entry, head, isFirst);
			if (this.#expire(entry, head)) changed.add(entry.record.from);
		});
		// What stands behind it may wait from now on, or no longer: once all of its age have ended.
		for (const sender of changed) runner.run(sender, "held", false);
	}

	/**
	 * Tells builders again to forget a transaction that has ended, where none of them answered: it could not be reached,
	 * or (at the first head) the process ended before. A private transaction stays with them, a bundle until the block after
	 * `head`.
	 */
	#cancelAgain({ record, transaction }: RecordEntry, head: number, isFirst: boolean): void {
		const { broadcaster } = this.#deps;
		if (isLive(record.stage) || isMined(record.stage)) return;
		const last = record.events.findLast((event) => isUserEnd(event) || isExpiry(event));
		if (last === undefined) return;
		// One that had expired before its user ended it was with nobody then, unless they could not be told.
		const isBare = isUserEnd(last) && last.builders.length === 0;
		const end = (isBare ? record.events.findLast(isExpiry) : undefined) ?? last;
		const isPrivate = policyOf(transaction.path).form === "private";
		if (!isPrivate && (!isUserEnd(end) || end.block < head)) return;
		const builders = isUserEnd(end)
			? end.builders
			: [...buildersWith(record, () => broadcaster.eligible(transaction))];
		const answers = record.deliveries.filter(
			({ kind, at, backrun }) => kind === "cancel" && backrun !== true && at >= end.at,
		);
		const unnotified = builders.filter((name) => {
			const own = answers.filter(({ builder }) => builder === name);
			// Without any answer it is on its way, unless the process has just begun.
			return own.length === 0 ? isFirst : own.every(({ answer }) => !WAS_TOLD.has(answer));
		});
		if (unnotified.length > 0) broadcaster.cancel(transaction, unnotified, head + 1);
	}

	/** Ends what has lived its blocks, or waited too long behind a gap; answers whether it did. */
	#expire({ record }: RecordEntry, head: number): boolean {
		const { transactions } = this.#deps;
		const { txTtlBlocks, slotSeconds } = this.#options;
		if (!isLive(record.stage)) return false;
		const entry = transactions.pool.get(record.hash);
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
	 * Every sender whose first transaction can be in the next block: simulated where it must be, else sent again as it is.
	 * Beside these whoever's nonce the blocks have moved.
	 */
	async #runChains(update: ChainUpdate): Promise<void> {
		const { transactions, clock } = this.#deps;
		const touched = new Set([...update.applied, ...update.reverted].flatMap((block) => block.touched));
		await inTurns(transactions.pool.senders(), clock, (sender) => {
			this.#runChain(sender, update.gap || touched.has(sender), update.head.number);
		});
	}

	#runChain(sender: string, moved: boolean, head: number): void {
		const { transactions, runner } = this.#deps;
		const { pool, records } = transactions;
		const canGoOut = pool.canGoOut(sender);
		const { ready } = pool.chain(sender);
		const passed = ready.map((entry) => records.get(entry.transaction.tx.hash)?.record.passed === true);
		const checked = ready.map(({ transaction: { path } }, i) =>
			mustPass({ policy: policyOf(path), passed: passed[i] === true }),
		);
		// It was out, and the base fee has risen above it: its user is told that it is held.
		const isHeldNow = ready[0]?.outFor === head && checked[0] === true;
		if (!canGoOut && !moved && !isHeldNow) return;
		// What is out and must pass again goes before what failed: its user waits for this very block.
		const priority = checked.some((must, i) => must && passed[i] === true) ? "again" : "held";
		runner.run(sender, priority, moved || checked.includes(true));
	}

	/**
	 * What changed is written; what was mined or has ended 64 blocks ago is final. A store that fails holds up no block:
	 * what was not written is written with a later one.
	 */
	async #settle(head: Block): Promise<void> {
		const { transactions, clock, background, log } = this.#deps;
		const isOver = ({ stage, block }: TransactionRecord) =>
			!isLive(stage) && block !== null && block + WATCH_BLOCKS <= head.number;
		try {
			await transactions.flush(false);
			const final: RecordEntry[] = [];
			await inTurns(transactions.records.entries(), clock, (entry) => {
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
		const { transactions, clock, log } = this.#deps;
		try {
			await transactions.store.purge(earlierTime(clock.now(), head));
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

function isExpiry(event: LifeEvent): boolean {
	return event.type === "expired";
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
