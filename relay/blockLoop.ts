// Processes each block. It records mined and reorganised transactions and expires old ones. It then
// simulates and sends again the transactions that can be in the next block, and archives the final
// ones. Long passes over all transactions yield to other work.

import type { Background } from "../shared/background.ts";
import { type Clock, inSlices, nextTurn, pause } from "../shared/clock.ts";
import { type Logger, safeError } from "../shared/log.ts";
import type { Broadcaster } from "./broadcast/fanout.ts";
import { type Block, type ChainTip, type ChainUpdate, earlierTime, type NextBlock } from "./domain/chain.ts";
import { mustPass, policyOf } from "./domain/endpoints.ts";
import type { DeliveryAnswer } from "./domain/events.ts";
import { chainWorth, HighestFirst } from "./domain/highestFirst.ts";
import type { Accounts } from "./domain/ports.ts";
import {
	holdersOf,
	isLive,
	isMined,
	isUserEnd,
	type LifeEvent,
	type TransactionRecord,
} from "./domain/record.ts";
import { WATCH_BLOCKS } from "./domain/transaction.ts";
import type { FoundInclusion, ReceiptReader } from "./inclusion/receipts.ts";
import type { SenderRunner } from "./senderRunner.ts";
import type { PoolEntry } from "./transactions/pool.ts";
import type { RecordEntry } from "./transactions/records.ts";
import type { Transactions } from "./transactions/transactions.ts";

/** Delay between attempts while the node does not answer, in ms. */
const RETRY_MS = 500;
/**
 * How often missing receipts are requested again before the head is processed without them, and the
 * pause before each try, in ms.
 */
const RECEIPT_TRIES = 3;
const RECEIPT_MS = 100;
/**
 * How many transactions are served before a pause; a sender's transactions are not split. If every
 * builder queue is then longer than this, the loop waits for the builders. All pauses of a head end
 * within `PATIENCE_MS`, in ms.
 */
const SERVED = 64;
const PATIENCE_MS = 2_000;
/** Answers that show that a builder has received a cancel. */
const ACKNOWLEDGED: ReadonlySet<DeliveryAnswer> = new Set(["accepted", "rejected"]);

export interface BlockLoopDependencies {
	readonly transactions: Transactions;
	readonly accounts: Accounts;
	readonly inclusions: ReceiptReader;
	readonly broadcaster: Broadcaster;
	readonly runner: Pick<SenderRunner, "run">;
	/** Advanced to a head once its inclusions are known. */
	readonly tip: ChainTip;
	/** The fees and limits of the block after the head. */
	readonly nextOf: () => NextBlock | null;
	/**
	 * Resolves when it is known whether this relay is still the core. If it is not, nothing is
	 * sent.
	 */
	readonly confirm: () => Promise<void>;
	/** Called in this order for each head, before anything is sent for the next block. */
	readonly onHead: readonly ((update: ChainUpdate) => void)[];
	readonly background: Background;
	readonly clock: Clock;
	readonly log: Logger;
}

/** A sender to run, with the arguments of {@link SenderRunner.run}. */
interface SenderRun {
	readonly sender: string;
	readonly client: string;
	readonly worth: number;
	/** How many of its transactions the run examines. */
	readonly count: number;
	readonly priority: "again" | "held";
	readonly refresh: boolean;
}

/** Processes the chain's updates, one at a time. */
export class BlockLoop {
	readonly #dependencies: BlockLoopDependencies;
	/**
	 * Transactions that are in a block for which the node has no receipt yet, with the block's
	 * number.
	 */
	readonly #awaitingReceipt = new Map<string, number>();
	/** Senders of transactions whose block has left the chain, until they are run. */
	readonly #exposed = new Set<string>();
	readonly #stop = new AbortController();
	/** Resolves when all senders of the last head are served. */
	#serving: Promise<void> = Promise.resolve();
	/** Whether the next head waits for `#serving`. */
	#isNextDue = false;
	/** Whether a head has been processed since the start. */
	#resumed = false;
	#isPurging = false;

	constructor(dependencies: BlockLoopDependencies) {
		this.#dependencies = dependencies;
	}

	/** Stops retrying. */
	stop(): void {
		this.#stop.abort();
	}

	/** Processes one update; retries while the node does not answer, so that no block is skipped. */
	async onUpdate(update: ChainUpdate): Promise<void> {
		const { log, clock, background } = this.#dependencies;
		this.#isNextDue = true;
		await this.#serving;
		this.#isNextDue = false;
		while (!this.#stop.signal.aborted) {
			try {
				await this.#follow(update);
				break;
			} catch (thrown) {
				log.warn("could not process block, retrying", {
					block: update.head.number,
					fault: safeError(thrown),
				});
				await pause(clock, RETRY_MS, this.#stop.signal);
			}
		}
		if (this.#stop.signal.aborted) return;
		await this.#review(update.head.number);
		// A later head does not wait while builders accept this head's transactions.
		this.#serving = new Promise((resolve) => {
			background.run("senders", () => this.#runSenders(update).finally(resolve));
		});
		await this.#archive(update.head);
	}

	async #follow(update: ChainUpdate): Promise<void> {
		const { accounts, confirm, onHead, nextOf, tip, transactions, runner, clock } = this.#dependencies;
		const confirmed = confirm();
		await this.#undoReverted(update);
		await this.#include(update);
		// The machine may have been paused for long. Another relay may have taken over, and users
		// may have cancelled there.
		await confirmed;
		accounts.setHead(update.head);
		const next = nextOf();
		tip.set(update.head, next);
		if (next !== null) transactions.setNext(next);
		for (const follow of onHead) follow(update);
		// Anybody may send these transactions now, so they don't wait for the work on all others.
		await inSlices(this.#exposed, clock, (sender) => runner.run(sender, "new", true));
		this.#exposed.clear();
	}

	/**
	 * Undoes inclusions in blocks that have left the chain. Repeating it for the same update does
	 * nothing.
	 */
	async #undoReverted({ head, reverted, gap }: ChainUpdate): Promise<void> {
		const { transactions, clock } = this.#dependencies;
		const ancestor = Math.min(head.number, ...reverted.map((block) => block.number - 1));
		if (reverted.length > 0 || gap) transactions.rewind(ancestor);
		if (reverted.length === 0) return;
		for (const [hash, block] of this.#awaitingReceipt) {
			if (block <= ancestor) continue;
			transactions.exposed(hash, block);
			this.#stopAwaiting(hash);
			const from = transactions.records.get(hash)?.record.from;
			if (from !== undefined) this.#exposed.add(from);
		}
		for (const block of reverted) {
			await inSlices(block.transactions, clock, ({ hash }) => {
				const entry = transactions.records.get(hash);
				if (entry === undefined || !isMined(entry.record.stage)) return;
				if (entry.record.blockHash !== block.hash) return;
				transactions.reorged(entry);
				this.#exposed.add(entry.record.from);
			});
		}
	}

	/**
	 * Records which of our transactions the new blocks contain; after a gap, checks all of ours.
	 * Throws UpstreamError when the node does not answer.
	 */
	async #include(update: ChainUpdate): Promise<void> {
		const { transactions, inclusions, clock } = this.#dependencies;
		const { records } = transactions;
		const head = update.head.number;
		const standing = new Map(this.#awaitingReceipt);
		for (const block of update.applied) {
			for (const { hash } of block.transactions) if (records.get(hash)) standing.set(hash, block.number);
		}
		const hashes = update.gap
			? [...records.entries()].map(({ record }) => record.hash)
			: [...standing.keys()];
		let found = await inclusions.inclusions(hashes, head);
		const coinbases = new Map(update.applied.map(({ hash, miner }) => [hash, miner]));
		const isNew = (i: number) => !this.#awaitingReceipt.has(hashes[i] ?? "");
		const isMissing = (at: FoundInclusion) => at === "unfollowed" || (at === null && !update.gap);
		for (let left = RECEIPT_TRIES; left > 0; left--) {
			// Without a receipt for a mined transaction, the node lags behind or has just dropped the
			// block.
			if (!found.some((at, i) => isMissing(at) && isNew(i))) break;
			await pause(clock, RECEIPT_MS, this.#stop.signal);
			found = await inclusions.inclusions(hashes, head);
		}
		await inSlices(hashes.entries(), clock, ([i, hash]) => {
			const entry = records.get(hash);
			const at = found[i] ?? null;
			const isFollowed = at !== null && at !== "unfollowed";
			if (entry === undefined || isFollowed) this.#awaitingReceipt.delete(hash);
			if (entry === undefined) return;
			const { block } = entry.record;
			if (isFollowed) {
				const coinbase = coinbases.get(at.blockHash);
				transactions.included(entry, coinbase === undefined ? at : { ...at, coinbase });
			} else if (isMissing(at)) this.#awaitReceipt(hash, standing.get(hash) ?? block ?? head, head);
			// It was recorded as mined but is in no block any more.
			else if (isMined(entry.record.stage)) transactions.reorged(entry);
		});
	}

	/** Waits for the receipt of a mined transaction, for WATCH_BLOCKS at most. */
	#awaitReceipt(hash: string, block: number, head: number): void {
		if (block + WATCH_BLOCKS <= head) this.#stopAwaiting(hash);
		else {
			this.#awaitingReceipt.set(hash, block);
			this.#dependencies.transactions.awaitReceipt(hash);
		}
	}

	/**
	 * Makes the transaction pending again: its block has left the chain, or the receipt never came.
	 */
	#stopAwaiting(hash: string): void {
		const { transactions } = this.#dependencies;
		const entry = transactions.records.get(hash);
		if (this.#awaitingReceipt.delete(hash) && entry !== undefined) transactions.revive(entry);
	}

	/** For each record, repeats cancels that no builder confirmed, and expires old transactions. */
	async #review(head: number): Promise<void> {
		const { transactions, clock, runner } = this.#dependencies;
		const isFirst = !this.#resumed;
		this.#resumed = true;
		const changed = new Set<string>();
		await inSlices(transactions.records.entries(), clock, (entry) => {
			this.#cancelAgain(entry, head, isFirst);
			if (transactions.expireIfOver(entry, head)) changed.add(entry.record.from);
		});
		// Later nonces of these senders may have to wait now. Run only after all expiries of this head.
		await inSlices(changed, clock, (sender) => runner.run(sender, "held", false));
	}

	/**
	 * Repeats the cancel of an ended transaction at builders that did not acknowledge it. They
	 * could not be reached, or (at the first head) the process stopped before it sent the cancel.
	 * Bundles need this only for the block after `head`, private transactions as long as the record
	 * is watched.
	 */
	#cancelAgain({ record, transaction }: RecordEntry, head: number, isFirst: boolean): void {
		const { broadcaster } = this.#dependencies;
		if (isLive(record.stage) || isMined(record.stage)) return;
		const last = record.events.findLast((event) => isUserEnd(event) || isExpiry(event));
		if (last === undefined) return;
		// If the transaction expired before its user ended it, this repeats the cancel of the
		// expiry.
		const isBare = isUserEnd(last) && last.builders.length === 0;
		const end = (isBare ? record.events.findLast(isExpiry) : undefined) ?? last;
		const isPrivate = policyOf(transaction.path).form === "private";
		if (!isPrivate && (!isUserEnd(end) || end.block < head)) return;
		const builders = isUserEnd(end)
			? end.builders
			: [...holdersOf(record, () => broadcaster.eligible(transaction))];
		const answers = record.deliveries.filter(
			({ kind, at, backrun }) => kind === "cancel" && backrun !== true && at >= end.at,
		);
		const unnotified = builders.filter((name) => {
			const own = answers.filter(({ builder }) => builder === name);
			// No answer yet: the cancel is still on its way, unless the process has just started.
			return own.length === 0 ? isFirst : own.every(({ answer }) => !ACKNOWLEDGED.has(answer));
		});
		if (unnotified.length > 0) broadcaster.cancel(transaction, unnotified, head + 1);
	}

	/**
	 * Runs all senders whose first transaction can be in the next block or whose nonce the blocks
	 * changed, and those with dropped transactions, whose nonces may be free again. The highest
	 * paying senders run first. The others wait until a builder queue is short enough.
	 */
	async #runSenders(update: ChainUpdate): Promise<void> {
		const { transactions, clock, runner, nextOf, broadcaster } = this.#dependencies;
		const { pool, records } = transactions;
		const touched = new Set([...update.applied, ...update.reverted].flatMap((block) => block.touched));
		const next = nextOf();
		const due = new HighestFirst<SenderRun>();
		const dropped = new Set(records.droppedSenders());
		const consider = (sender: string, moved: boolean): void => {
			const run = this.#runOf(sender, moved, update.head.number, next);
			if (run !== null) due.add(run);
		};
		await inSlices(pool.senders(), clock, (sender) => {
			const isDropped = dropped.delete(sender);
			consider(sender, isDropped || update.gap || touched.has(sender));
		});
		await inSlices(dropped, clock, (sender) => consider(sender, true));
		const until = clock.monotonic() + PATIENCE_MS;
		let served = 0;
		for (const { sender, count, priority, refresh } of due.inOrder()) {
			if (this.#stop.signal.aborted) return;
			runner.run(sender, priority, refresh);
			served += count;
			if (served < SERVED) continue;
			served = 0;
			await nextTurn();
			while (broadcaster.leastWaiting > SERVED && clock.monotonic() < until && !this.#isNextDue) {
				await pause(clock, 1, this.#stop.signal);
				if (this.#stop.signal.aborted) return;
			}
		}
	}

	/** How to run the sender; null if it need not run. */
	#runOf(sender: string, moved: boolean, head: number, next: NextBlock | null): SenderRun | null {
		const { transactions } = this.#dependencies;
		const { pool, records } = transactions;
		const canGoOut = transactions.fitToNext(sender);
		const { ready, waiting } = pool.transactionsOf(sender);
		const passed = ready.map((entry) => records.get(entry.transaction.tx.hash)?.record.passed === true);
		const checked = ready.map(({ transaction: { path } }, i) =>
			mustPass({ policy: policyOf(path), passed: passed[i] === true }),
		);
		const [first] = ready;
		if (!canGoOut && !moved && !this.#isHeldNow(first, head, checked[0] === true)) return null;
		// A transaction that builders have and that must pass again goes before one that failed.
		const priority = checked.some((must, i) => must && passed[i] === true) ? "again" : "held";
		const worth = next === null ? 0 : chainWorth(ready, next);
		const count = ready.length + waiting.length;
		const client = transactions.clientOf(sender, { ready, waiting });
		return { sender, client, worth, count, priority, refresh: moved || checked.includes(true) };
	}

	/**
	 * Whether to record that a sender's first transaction is not sent from now on. It can't be in
	 * the next block. Either it was sent for this head and the base fee has risen above its cap, or
	 * a new fork's rules forbid it.
	 */
	#isHeldNow(first: PoolEntry | undefined, head: number, isChecked: boolean): boolean {
		if (first === undefined) return false;
		const { pool, records } = this.#dependencies.transactions;
		const { tx } = first.transaction;
		if (pool.nextProblem(tx)?.code !== "FORK_RULES")
			return pool.givenFor(first, head).length > 0 && isChecked;
		return records.get(tx.hash)?.record.simulationError?.code !== "FORK_RULES";
	}

	/**
	 * Writes the changes, and archives transactions that were mined or ended 64 blocks ago. If the
	 * store fails, processing continues and the write is repeated with the next block.
	 */
	async #archive(head: Block): Promise<void> {
		const { transactions, clock, background, log } = this.#dependencies;
		const isOver = ({ stage, block }: TransactionRecord) =>
			!isLive(stage) && block !== null && block + WATCH_BLOCKS <= head.number;
		try {
			await transactions.keeper.flush(false);
			const final: RecordEntry[] = [];
			await inSlices(transactions.records.entries(), clock, (entry) => {
				if (isOver(entry.record)) final.push(entry);
			});
			await transactions.keeper.archive(final, isOver);
		} catch (thrown) {
			log.error("could not write records", { block: head.number, fault: safeError(thrown) });
			return;
		}
		if (this.#isPurging) return;
		this.#isPurging = true;
		background.run("purge", () => this.#purge(head));
	}

	/** Deletes old records in the background. */
	async #purge(head: Block): Promise<void> {
		const { transactions, clock, log } = this.#dependencies;
		try {
			await transactions.keeper.purge(earlierTime(clock.now(), head));
		} catch (thrown) {
			log.error("could not delete old records", { block: head.number, fault: safeError(thrown) });
		} finally {
			this.#isPurging = false;
		}
	}
}

function isExpiry(event: LifeEvent): boolean {
	return event.type === "expired";
}
