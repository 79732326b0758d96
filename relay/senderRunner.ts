// Runs a sender's transactions in nonce order. It reads the account, simulates the transactions
// that must pass, and carries out the plan of senderPlan.ts. Each submission and each head requests
// a run; a sender has one run at a time.

import type { Background } from "../shared/background.ts";
import { clientOf } from "../shared/client.ts";
import type { Clock, Timer } from "../shared/clock.ts";
import { BLOB_BYTES } from "../shared/ethereum/sidecar.ts";
import { UpstreamError } from "../shared/jsonrpc/client.ts";
import type { Traces } from "../shared/tracing/traces.ts";
import type { Broadcaster } from "./broadcast/fanout.ts";
import type { AccountState, Block, NextBlock, Tip } from "./domain/chain.ts";
import { policyOf } from "./domain/endpoints.ts";
import { chainWorth } from "./domain/highestFirst.ts";
import type { Accounts, Simulations } from "./domain/ports.ts";
import type { TransactionRecord } from "./domain/record.ts";
import {
	askAgainMs,
	blockContext,
	type SimulationError,
	type SimulationOutcome,
	type SimulationPriority,
} from "./domain/simulation.ts";
import { blockProblem } from "./domain/transactionRules.ts";
import type { ReceiptReader } from "./inclusion/receipts.ts";
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
	/** The coinbase of a simulated block. */
	readonly feeRecipientOf: () => string;
}

/** The part of the market that the runner calls. */
export interface Searchers {
	/**
	 * Called once the plan is known: which of a sender's transactions are sent for the next block
	 * and which wait.
	 */
	senderPlanned(transactions: SenderTransactions): void;
}

export interface SenderRunnerDependencies {
	readonly transactions: Transactions;
	readonly accounts: Accounts;
	readonly inclusions: ReceiptReader;
	readonly tip: Tip;
	readonly simulations: Simulations;
	readonly broadcaster: Pick<Broadcaster, "eligible" | "send">;
	readonly searchers: Searchers;
	readonly background: Background;
	readonly clock: Clock;
	readonly traces: Traces;
	readonly onStep: (step: "account" | "simulation" | "broadcast", seconds: number) => void;
}

/** The priority of a run's simulation; merged requests use the one with the lowest rank. */
type Priority = Exclude<SimulationPriority, "bid">;
const RANK: Readonly<Record<Priority, number>> = { new: 0, again: 1, held: 2 };

/** The requests for a sender that is being run. */
interface Job {
	priority: Priority;
	/** Whether the account must be read again. */
	refresh: boolean;
	/** Whether another run is needed. */
	isDue: boolean;
	/**
	 * Removes the current run's simulation from the queue if one of its transactions has left the
	 * pool.
	 */
	withdraw: () => void;
}

/**
 * Whether searchers see a transaction, and whether an earlier one of its sender is hidden from
 * them.
 */
interface Visibility {
	readonly isVisible: boolean;
	readonly behindHidden: boolean;
}

const NOTHING = (): void => {};
/** Delay before a sender is run again when the node did not answer, in ms. */
const NODE_RETRY_MS = 1_000;

/** Runs all senders. */
export class SenderRunner {
	readonly #options: SenderRunnerOptions;
	readonly #dependencies: SenderRunnerDependencies;
	readonly #jobs = new Map<string, Job>();
	readonly #retries = new Map<string, Timer>();
	#stopped = false;

	constructor(options: SenderRunnerOptions, dependencies: SenderRunnerDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
	}

	/**
	 * Runs the sender. `refresh`: its nonce may have changed. Calls during a run are merged into one
	 * further run.
	 */
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
		const begun: Job = { priority, refresh, isDue: true, withdraw: NOTHING };
		this.#jobs.set(sender, begun);
		this.#dependencies.background.run("chain", () => this.#runWhileDue(sender, begun));
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
				// Calls during the run set these again.
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
		const timer = this.#dependencies.clock.after(afterMs, () => {
			this.#retries.delete(sender);
			this.run(sender, "held", true);
		});
		this.#retries.set(sender, timer);
	}

	async #runOnce(sender: string, priority: Priority, refresh: boolean, job: Job): Promise<void> {
		const { tip, transactions, searchers } = this.#dependencies;
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
			if (entry.transaction.sharing === "always") transactions.shared(entry.transaction);
			transactions.waits(entry, "nonceGap", next.number);
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

	/**
	 * The outcomes that the plan needs. The first transaction whose fees or rules the block forbids
	 * fails without a simulation.
	 */
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
	 * Reads the account, ends transactions whose nonce is used, and revives dropped ones whose
	 * nonce is free. Returns false if the head changed during the read, so that the result is
	 * stale. Throws UpstreamError.
	 */
	async #refresh(sender: string, head: Block, priority: Priority): Promise<boolean> {
		const { transactions, clock, inclusions, tip } = this.#dependencies;
		const { pool, records } = transactions;
		const begun = clock.monotonic();
		const account = await this.#account(sender, priority);
		this.#dependencies.onStep("account", (clock.monotonic() - begun) / 1000);
		if (tip.head()?.hash !== head.hash) return false;
		// Excludes transactions that are still being written: the sender is run again after the
		// write.
		const used = transactions.accountRead(account);
		if (used.length === 0) return true;
		// Each transaction either used its nonce itself or lost it. The former happens if it was
		// admitted while its block was processed.
		const hashes = used.map((entry) => entry.transaction.tx.hash);
		const found = await inclusions.inclusions(hashes, account.block);
		if (tip.head()?.hash !== head.hash) return false;
		const followed = found.filter((one) => one !== "unfollowed");
		// The nonces may be used only in a block outside the followed chain.
		if (followed.length < found.length) throw new UpstreamError("notJsonRpc");
		used.forEach((entry, i) => {
			if (!pool.holds(entry)) return;
			const { transaction } = entry;
			const known = records.get(transaction.tx.hash);
			const mined = followed[i];
			if (mined && known !== undefined) transactions.included({ transaction, record: known.record }, mined);
			else transactions.dropped(entry, head.number);
		});
		return true;
	}

	/** Reads the account, urgently for a new submission, charged to the sender's client. */
	#account(sender: string, priority: Priority): Promise<AccountState> {
		const { accounts, transactions } = this.#dependencies;
		return accounts.get(sender, transactions.clientOf(sender), priority === "new");
	}

	#factsOf(entry: PoolEntry): TransactionFacts {
		const { size, sidecar } = entry.transaction.tx;
		return {
			policy: policyOf(entry.transaction.path),
			passed: this.#recordOf(entry)?.passed ?? false,
			eligible: this.#dependencies.broadcaster.eligible(entry.transaction),
			bytes: size - (sidecar?.blobCount ?? 0) * BLOB_BYTES,
		};
	}

	#recordOf({ transaction }: PoolEntry): TransactionRecord | undefined {
		return this.#dependencies.transactions.records.get(transaction.tx.hash)?.record;
	}

	async #simulate(
		sender: string,
		entries: readonly PoolEntry[],
		{ next, priority, job }: { readonly next: NextBlock; readonly priority: Priority; readonly job: Job },
	): Promise<readonly SimulationOutcome[]> {
		const { simulations, clock, transactions, traces } = this.#dependencies;
		const account = await this.#account(sender, priority);
		const block = blockContext(next, this.#options.feeRecipientOf());
		const begun = clock.monotonic();
		const unwanted = new AbortController();
		job.withdraw = () => {
			if (!entries.every((entry) => transactions.pool.holds(entry))) unwanted.abort();
		};
		try {
			const outcomes = await simulations.simulate({
				block,
				priority,
				mayWait: true,
				signal: unwanted.signal,
				// Only the last transaction needs the simulation; the others are run for the state
				// before it.
				client: clientOf(entries.at(-1)?.transaction.submitterAddress ?? ""),
				accounts: new Map([[sender, account]]),
				transactions: entries.map((entry) => entry.transaction.tx),
			});
			if (traces.isOn) {
				const ms = clock.monotonic() - begun;
				for (const [i, { transaction }] of entries.entries()) {
					const outcome = outcomes[i]?.ok === true ? "passed" : "held";
					traces.past("relay.simulation", transaction.tx.hash, ms, { outcome, block: next.number });
				}
			}
			return outcomes;
		} finally {
			job.withdraw = NOTHING;
			this.#dependencies.onStep("simulation", (clock.monotonic() - begun) / 1000);
		}
	}

	/**
	 * Records the outcomes, shows searchers what they may see, and carries out the plans for the
	 * block `next`.
	 */
	#carryOut(
		ready: readonly PoolEntry[],
		outcomes: readonly MaybeOutcome[],
		plans: readonly TransactionPlan[],
		next: NextBlock,
	): void {
		const { transactions } = this.#dependencies;
		const visibility = this.#visibility(ready, outcomes);
		ready.forEach((entry, i) => {
			const outcome = outcomes[i];
			if (outcome?.ok === true)
				transactions.passed(entry, next.number, Number(outcome.gasUsed), hidesDetails(visibility[i]));
			if (visibility[i]?.isVisible) transactions.shared(entry.transaction);
		});
		const worth = chainWorth(ready, next);
		ready.forEach((entry, i) => {
			const [plan, visible] = [plans[i], visibility[i]];
			if (plan !== undefined && visible !== undefined)
				this.#carryOutOne(entry, plan, { next, worth }, visible);
		});
	}

	/**
	 * The visibility of each transaction to searchers. Behind a hidden transaction, only paths that
	 * always share show a new one. If searchers already see one there, they learn only whether it
	 * passes: details would reveal the hidden one's effects.
	 */
	#visibility(ready: readonly PoolEntry[], outcomes: readonly MaybeOutcome[]): readonly Visibility[] {
		let behindHidden = false;
		return ready.map((entry, i) => {
			const { sharing } = entry.transaction;
			const outcome = outcomes[i];
			const isLikely = sharing === "likely" && outcome?.ok === true && outcome.emitsEvents === true;
			const isShared = sharing === "always" || this.#recordOf(entry)?.shared === true;
			const isNext = this.#dependencies.transactions.disclosures.isWaiting(entry.transaction);
			const isVisible = isShared || isNext || (isLikely && !behindHidden);
			const visible = { isVisible, behindHidden };
			behindHidden ||= !isVisible;
			return visible;
		});
	}

	#carryOutOne(
		entry: PoolEntry,
		plan: TransactionPlan,
		{ next, worth }: { readonly next: NextBlock; readonly worth: number },
		visible: Visibility,
	): void {
		const { transactions, clock, broadcaster } = this.#dependencies;
		if (plan.do === "wait") {
			transactions.waits(entry, plan.reason, next.number);
			return;
		}
		if (plan.do === "hold") {
			transactions.held(entry, shownError(plan.error, visible), next.number);
			return;
		}
		const begun = clock.monotonic();
		const out = transactions.goesOut(entry, {
			block: next.number,
			builders: plan.builders,
			unsimulated: plan.unsimulated === undefined ? null : shownError(plan.unsimulated, visible),
		});
		if (out === null) return;
		const { transaction } = entry;
		const left = () => transactions.left(transaction.tx.hash, next.number, visible.behindHidden);
		const { lastBlock } = out;
		broadcaster.send({ transaction, block: next.number, lastBlock, worth, left }, out.builders);
		this.#dependencies.onStep("broadcast", (clock.monotonic() - begun) / 1000);
	}
}

/**
 * Whether details of its simulation must be hidden, since they would reveal a hidden transaction
 * before it.
 */
function hidesDetails(visible: Visibility | undefined): boolean {
	return visible?.isVisible === true && visible.behindHidden;
}

/** The error that may be shown: its code with a fixed message if details must be hidden. */
function shownError(error: SimulationError, visible: Visibility): SimulationError {
	if (!hidesDetails(visible)) return error;
	return { code: error.code, message: "hidden while earlier transactions of its sender are pending" };
}
