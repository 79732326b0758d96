// Runs a sender's transactions in nonce order: reads the account, simulates those that must pass, and sends or holds each as
// senderPlan.ts decides. Called for each submission and for each head; one run per sender at a time.

import type { Background } from "../shared/background.ts";
import type { Clock, Timer } from "../shared/clock.ts";
import { clientOf } from "../shared/http/callContext.ts";
import { UpstreamError } from "../shared/jsonrpc/client.ts";
import type { AccountState, Block, NextBlock, Tip } from "./domain/chain.ts";
import { chainWorth } from "./domain/dearestFirst.ts";
import { policyOf } from "./domain/endpoints.ts";
import type { QueueReason } from "./domain/events.ts";
import type { Accounts, Broadcaster, InclusionReader, Simulations } from "./domain/ports.ts";
import type { TransactionRecord } from "./domain/record.ts";
import {
	askAgainMs,
	blockContext,
	type SimulationError,
	type SimulationErrorCode,
	type SimulationOutcome,
	type SimulationPriority,
} from "./domain/simulation.ts";
import type { PrivateTransaction } from "./domain/transaction.ts";
import { blockProblem } from "./domain/transactionRules.ts";
import {
	countToSimulate,
	type MaybeOutcome,
	planTransactions,
	type TransactionFacts,
	type TransactionPlan,
} from "./senderPlan.ts";
import type { PoolEntry, SenderTransactions } from "./transactions/pool.ts";
import type { Transactions } from "./transactions/transactions.ts";

export interface SenderRunnerOptions {
	readonly txTtlBlocks: number;
	/** The coinbase of a simulated block. */
	readonly feeRecipientOf: () => string;
}

/** The part of the market that the runner calls. */
export interface Searchers {
	/** Shows a transaction to searchers, once. */
	share(transaction: PrivateTransaction): void;
	/** Called when it is decided which of a sender's transactions are sent for the next block and which wait. */
	senderPlanned(transactions: SenderTransactions): void;
}

export interface SenderRunnerDependencies {
	readonly transactions: Transactions;
	readonly accounts: Accounts;
	readonly inclusions: InclusionReader;
	readonly tip: Tip;
	readonly simulations: Simulations;
	readonly broadcaster: Broadcaster;
	readonly searchers: Searchers;
	readonly background: Background;
	readonly clock: Clock;
	readonly onStep: (step: "account" | "simulation" | "broadcast", seconds: number) => void;
}

/** The priority of a run's simulation; merged requests take the one with the lowest rank. */
type Priority = Exclude<SimulationPriority, "bid">;
const RANK: Readonly<Record<Priority, number>> = { new: 0, again: 1, held: 2 };

/** What has been requested for a sender that is being run. */
interface Job {
	priority: Priority;
	/** Whether the account must be read again. */
	refresh: boolean;
	/** Whether another run is needed. */
	isDue: boolean;
	/** Removes the current run's simulation from the queue if one of its transactions has left the pool. */
	withdraw: () => void;
}

/** Whether searchers see a transaction, and whether an earlier one of its sender is hidden from them. */
interface Visibility {
	readonly isVisible: boolean;
	readonly behindHidden: boolean;
}

/** Delay before a sender is run again when the node did not answer, in ms. */
const NODE_RETRY_MS = 1_000;
/** Errors that may last for many blocks: recorded once, although the message changes with each block's fee. */
const WAITS_LONG: ReadonlySet<SimulationErrorCode> = new Set([
	"FEE_CAP_TOO_LOW",
	"BLOB_FEE_CAP_TOO_LOW",
	"FORK_RULES",
]);

/** Runs all senders. */
export class SenderRunner {
	readonly #options: SenderRunnerOptions;
	readonly #deps: SenderRunnerDependencies;
	readonly #jobs = new Map<string, Job>();
	readonly #retries = new Map<string, Timer>();
	#stopped = false;

	constructor(options: SenderRunnerOptions, dependencies: SenderRunnerDependencies) {
		this.#options = options;
		this.#deps = dependencies;
	}

	/** Runs the sender. `refresh`: its nonce may have changed. Calls during a run are merged into one further run. */
	run(sender: string, priority: Priority, refresh: boolean): void {
		if (this.#stopped) return;
		const job = this.#jobs.get(sender);
		if (job !== undefined) {
			if (RANK[priority] < RANK[job.priority]) job.priority = priority;
			job.refresh ||= refresh;
			job.isDue = true;
			job.withdraw();
			return;
		}
		const begun: Job = { priority, refresh, isDue: true, withdraw: () => {} };
		this.#jobs.set(sender, begun);
		this.#deps.background.run("chain", () => this.#runWhileDue(sender, begun));
	}

	/** Starts no further run; running ones are awaited through `background`. */
	stop(): void {
		this.#stopped = true;
		for (const timer of this.#retries.values()) timer.cancel();
	}

	async #runWhileDue(sender: string, job: Job): Promise<void> {
		try {
			while (job.isDue && !this.#stopped) {
				const { priority, refresh } = job;
				// Calls during the run raise these.
				job.isDue = false;
				job.refresh = false;
				job.priority = "held";
				await this.#runOnce(sender, priority, refresh, job);
			}
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
			this.#retry(sender, NODE_RETRY_MS);
		} finally {
			this.#jobs.delete(sender);
		}
	}

	#retry(sender: string, afterMs: number): void {
		if (this.#retries.has(sender) || this.#stopped) return;
		const timer = this.#deps.clock.after(afterMs, () => {
			this.#retries.delete(sender);
			this.run(sender, "held", true);
		});
		this.#retries.set(sender, timer);
	}

	async #runOnce(sender: string, priority: Priority, refresh: boolean, job: Job): Promise<void> {
		const { tip, transactions, searchers } = this.#deps;
		const { pool } = transactions;
		const head = tip.head();
		const next = tip.next();
		if (head === null || next === null) return;
		const mustRefresh = refresh || !pool.isNonceKnown(sender);
		if (mustRefresh && !(await this.#refresh(sender, head, priority))) {
			// Requests another run.
			this.run(sender, priority, refresh);
			return;
		}
		const all = pool.transactionsOf(sender);
		const { ready } = all;
		// Transactions behind a gap are recorded before the simulation of the others is awaited.
		for (const entry of all.waiting) {
			if (entry.transaction.shared === "always") searchers.share(entry.transaction);
			this.#wait(entry, "nonceGap", next);
		}
		const facts = ready.map((entry) => this.#factsOf(entry));
		const outcomes = await this.#outcomes(sender, ready, facts, { next, priority, job });
		// If the head or the pool has changed meanwhile, the outcomes are stale.
		if (tip.head()?.hash !== head.hash || !ready.every((entry) => pool.holds(entry))) {
			this.run(sender, priority, refresh);
			return;
		}
		this.#carryOut(ready, outcomes, planTransactions(facts, outcomes), next);
		searchers.senderPlanned(all);
		for (const outcome of outcomes) {
			const againMs = askAgainMs(outcome, NODE_RETRY_MS);
			if (againMs !== null) this.#retry(sender, againMs);
		}
	}

	/** The outcomes, as far as they are needed. The first that the block can't have by its fees or rules fails unsimulated. */
	async #outcomes(
		sender: string,
		ready: readonly PoolEntry[],
		facts: readonly TransactionFacts[],
		run: { readonly next: NextBlock; readonly priority: Priority; readonly job: Job },
	): Promise<readonly MaybeOutcome[]> {
		const problems = ready.map(({ transaction }) => blockProblem(transaction.tx, run.next));
		const firstUnfit = problems.findIndex((problem) => problem !== null);
		const count = countToSimulate(firstUnfit < 0 ? facts : facts.slice(0, firstUnfit));
		const simulated = count === 0 ? [] : await this.#simulate(sender, ready.slice(0, count), run);
		return ready.map((_, i) => {
			const error = i === firstUnfit ? problems[i] : null;
			return error ? { ok: false, error } : simulated[i];
		});
	}

	/**
	 * Reads the account, and ends transactions whose nonce is used. Returns false when the head changed meanwhile and the
	 * result is stale. Throws UpstreamError.
	 */
	async #refresh(sender: string, head: Block, priority: Priority): Promise<boolean> {
		const { transactions, clock, inclusions, tip } = this.#deps;
		const { pool, records } = transactions;
		const begun = clock.monotonic();
		const account = await this.#account(sender, priority);
		this.#deps.onStep("account", (clock.monotonic() - begun) / 1000);
		// Transactions that are still being written are skipped: the sender is run again after the write.
		const used = pool.setAccount(account).filter((entry) => entry.durable);
		if (used.length === 0) return true;
		// Each either used its nonce itself, if it was admitted while the block that contains it was processed, or lost it.
		const hashes = used.map((entry) => entry.transaction.tx.hash);
		const found = await inclusions.inclusions(hashes, account.block);
		if (tip.head()?.hash !== head.hash) return false;
		used.forEach((entry, i) => {
			if (!pool.holds(entry)) return;
			const { transaction } = entry;
			const known = records.get(transaction.tx.hash);
			const mined = found[i];
			if (mined && known !== undefined) transactions.included({ transaction, record: known.record }, mined);
			else transactions.dropped(entry, head.number);
		});
		return true;
	}

	/** Reads the account, urgently for a new submission, charged to the client of the sender's first transaction. */
	#account(sender: string, priority: Priority): Promise<AccountState> {
		const { accounts, transactions } = this.#deps;
		const { ready, waiting } = transactions.pool.transactionsOf(sender);
		const client = clientOf((ready[0] ?? waiting[0])?.transaction.submitterAddress ?? "");
		return accounts.get(sender, client, priority === "new");
	}

	#factsOf(entry: PoolEntry): TransactionFacts {
		return {
			policy: policyOf(entry.transaction.path),
			passed: this.#recordOf(entry)?.passed ?? false,
			eligible: this.#deps.broadcaster.eligible(entry.transaction),
		};
	}

	#recordOf({ transaction }: PoolEntry): TransactionRecord | undefined {
		return this.#deps.transactions.records.get(transaction.tx.hash)?.record;
	}

	async #simulate(
		sender: string,
		entries: readonly PoolEntry[],
		{ next, priority, job }: { readonly next: NextBlock; readonly priority: Priority; readonly job: Job },
	): Promise<readonly SimulationOutcome[]> {
		const { simulations, clock, transactions } = this.#deps;
		const account = await this.#account(sender, priority);
		const block = blockContext(next, this.#options.feeRecipientOf());
		const begun = clock.monotonic();
		const unwanted = new AbortController();
		job.withdraw = () => {
			if (!entries.every((entry) => transactions.pool.holds(entry))) unwanted.abort();
		};
		try {
			return await simulations.simulate({
				block,
				priority,
				mayWait: true,
				signal: unwanted.signal,
				// The last one is the one that needs the simulation; the others are run for the state before it.
				client: clientOf(entries.at(-1)?.transaction.submitterAddress ?? ""),
				accounts: new Map([[sender, account]]),
				transactions: entries.map((entry) => entry.transaction.tx),
			});
		} finally {
			job.withdraw = () => {};
			this.#deps.onStep("simulation", (clock.monotonic() - begun) / 1000);
		}
	}

	/** Records the outcomes, shows searchers what they may see, and carries out the plans for the block `next`. */
	#carryOut(
		ready: readonly PoolEntry[],
		outcomes: readonly MaybeOutcome[],
		plans: readonly TransactionPlan[],
		next: NextBlock,
	): void {
		const visibility = this.#visibility(ready, outcomes);
		ready.forEach((entry, i) => {
			this.#recordPass(entry, outcomes[i], next, hidesDetails(visibility[i]));
			if (visibility[i]?.isVisible) this.#deps.searchers.share(entry.transaction);
		});
		const worth = chainWorth(ready, next);
		ready.forEach((entry, i) => {
			const [plan, visible] = [plans[i], visibility[i]];
			if (plan !== undefined && visible !== undefined)
				this.#carryOutOne(entry, plan, { next, worth }, visible);
		});
	}

	/**
	 * What searchers may see of each transaction. Behind a hidden one, none is newly shown except on a path that always is; and
	 * of one that they see already, only whether it passes, since details would reveal what the hidden one does.
	 */
	#visibility(ready: readonly PoolEntry[], outcomes: readonly MaybeOutcome[]): readonly Visibility[] {
		let behindHidden = false;
		return ready.map((entry, i) => {
			const { shared } = entry.transaction;
			const outcome = outcomes[i];
			const isLikely = shared === "likely" && outcome?.ok === true && outcome.emitsEvents === true;
			const isShared = shared === "always" || this.#recordOf(entry)?.shared === true;
			const isVisible = isShared || (isLikely && !behindHidden);
			const visible = { isVisible, behindHidden };
			behindHidden ||= !isVisible;
			return visible;
		});
	}

	/** Records a passed simulation, unless it adds nothing to the record. */
	#recordPass(entry: PoolEntry, outcome: MaybeOutcome, next: NextBlock, hidesGas: boolean): void {
		if (outcome?.ok !== true) return;
		entry.gas = Number(outcome.gasUsed);
		const { transactions, clock } = this.#deps;
		const { tx, path } = entry.transaction;
		const record = this.#recordOf(entry);
		if (!policyOf(path).resimulated && record?.passed === true) return;
		const last = record?.events.findLast((event) => event.type === "simulated");
		if (last?.type === "simulated" && last.block === next.number && record?.stage === "BROADCAST") return;
		const gasUsed = hidesGas ? null : Number(outcome.gasUsed);
		this.#startLifetime(entry, next);
		transactions.records.emit(tx.hash, { type: "simulated", at: clock.now(), block: next.number, gasUsed });
	}

	#carryOutOne(
		entry: PoolEntry,
		plan: TransactionPlan,
		{ next, worth }: { readonly next: NextBlock; readonly worth: number },
		visible: Visibility,
	): void {
		const { transactions, clock, broadcaster } = this.#deps;
		const { transaction } = entry;
		const about = { at: clock.now(), block: next.number };
		if (plan.do === "wait") {
			this.#wait(entry, plan.reason, next);
			return;
		}
		if (plan.do === "send" && isSent(entry, plan.builders, next.number)) return;
		const firstBlock = this.#startLifetime(entry, next);
		if (plan.do === "hold") {
			const error = hidesDetails(visible) ? withoutDetails(plan.error) : plan.error;
			// It has passed and was sent for this block already: an unavailable node changes nothing.
			if (error.code === "NODE_UNAVAILABLE" && entry.sentForBlock === next.number) return;
			if (!isRecorded(this.#recordOf(entry), error, next))
				transactions.records.emit(transaction.tx.hash, { type: "simulationFailed", ...about, error });
			// It was sent for this block and fails now: cancel it at the builders.
			if (entry.sentForBlock === next.number) {
				broadcaster.cancel(transaction, [...entry.everSentTo], next.number);
				transactions.markUnsent(entry);
			}
			return;
		}
		if (plan.unsimulated !== undefined) this.#recordUnsimulated(entry, plan.unsimulated, next, visible);
		const builders = transactions.markSent(entry, next.number, plan.builders);
		const begun = clock.monotonic();
		const { behindHidden } = visible;
		transactions.records.emit(transaction.tx.hash, { type: "broadcast", ...about, behindHidden });
		const lastBlock = firstBlock + this.#options.txTtlBlocks - 1;
		broadcaster.send({ transaction, block: next.number, lastBlock, worth }, builders);
		this.#deps.onStep("broadcast", (clock.monotonic() - begun) / 1000);
	}

	/** Records that it is sent without a simulation, unless that is recorded. */
	#recordUnsimulated(entry: PoolEntry, error: SimulationError, next: NextBlock, visible: Visibility): void {
		const { transactions, clock } = this.#deps;
		const { stage, simulationError } = this.#recordOf(entry) ?? {};
		const told = hidesDetails(visible) ? withoutDetails(error) : error;
		if (stage === "BROADCAST" && simulationError?.message === told.message) return;
		const event = { type: "notSimulated", at: clock.now(), block: next.number, error: told } as const;
		transactions.records.emit(entry.transaction.tx.hash, event);
	}

	/** Records that it waits for an earlier transaction, unless that is recorded. */
	#wait(entry: PoolEntry, reason: QueueReason, { number }: NextBlock): void {
		const { transactions, clock } = this.#deps;
		// If it becomes ready again for the same block, it is sent again.
		transactions.markUnsent(entry);
		const record = this.#recordOf(entry);
		const last = record?.events.findLast((event) => event.type === "queued");
		if (record?.stage === "QUEUED" && last?.type === "queued" && last.reason === reason) return;
		const event = { type: "queued", at: clock.now(), block: number - 1, reason } as const;
		transactions.records.emit(entry.transaction.tx.hash, event);
	}

	/** Starts the transaction's lifetime, unless it has started. Returns its first block, which `emit` sets in the record. */
	#startLifetime(entry: PoolEntry, { number }: NextBlock): number {
		const { transactions, clock } = this.#deps;
		const record = this.#recordOf(entry);
		if (record?.stage === "QUEUED" || record?.firstBlock === null)
			transactions.records.emit(record.hash, { type: "ready", at: clock.now(), block: number });
		return record?.firstBlock ?? number;
	}
}

/** Whether details of its simulation must be hidden, since they would reveal a hidden transaction before it. */
function hidesDetails(visible: Visibility | undefined): boolean {
	return visible?.isVisible === true && visible.behindHidden;
}

/** Whether it was sent to all of `builders` for `block`. */
function isSent(entry: PoolEntry, builders: readonly string[], block: number): boolean {
	return entry.sentForBlock === block && builders.every((name) => entry.sentForBlockTo.has(name));
}

/** Whether the record already says that the transaction is held for `error`. */
function isRecorded(record: TransactionRecord | undefined, error: SimulationError, next: NextBlock): boolean {
	const last = record?.stage === "SIMULATION_FAILED" ? record.simulationError : null;
	if (last?.code !== error.code) return false;
	if (WAITS_LONG.has(error.code)) return true;
	return record?.block === next.number && last.message === error.message;
}

/** The error's code with a fixed message. */
function withoutDetails({ code }: SimulationError): SimulationError {
	return { code, message: "not told while transactions before it are pending" };
}
