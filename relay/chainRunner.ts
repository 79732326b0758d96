// Simulates a sender's chain of nonces that may have changed, plans each of its transactions, and carries the plans out:
// events, dispatches to the builders, and what searchers may see. Called by the pipeline for each submission and by the
// block loop for each head; for one sender it runs once at a time.

import type { Background } from "../shared/background.ts";
import type { Clock, Timer } from "../shared/clock.ts";
import { clientOf } from "../shared/http/callContext.ts";
import { UpstreamError } from "../shared/jsonrpc/client.ts";
import { type Link, type LinkOutcome, type LinkPlan, linksToSimulate, planChain } from "./chainPlan.ts";
import type { Block, NextBlock, Tip } from "./domain/chain.ts";
import { policyOf } from "./domain/endpoints.ts";
import type { QueueReason } from "./domain/events.ts";
import type { Accounts, Broadcaster, InclusionReader, Simulations } from "./domain/ports.ts";
import type { TransactionRecord } from "./domain/record.ts";
import {
	blockContext,
	type SimulationError,
	type SimulationErrorCode,
	type SimulationOutcome,
	type SimulationPriority,
} from "./domain/simulation.ts";
import type { PrivateTransaction } from "./domain/transaction.ts";
import { feeProblem } from "./domain/transactionRules.ts";
import type { PoolEntry, SenderChain } from "./transactions/pool.ts";
import type { Transactions } from "./transactions/transactions.ts";

export interface ChainRunnerOptions {
	readonly txTtlBlocks: number;
	/** The coinbase of a simulated block. */
	readonly feeRecipientOf: () => string;
}

/** What the searchers' side is told. */
export interface Searchers {
	/** Shows them a transaction; one that they have been shown is left alone. */
	share(transaction: PrivateTransaction): void;
	/** A chain was planned: for the next block it is known what is out and what waits. */
	chainPlanned(chain: SenderChain): void;
}

export interface ChainRunnerDependencies {
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

/** How soon a run is due; one that was asked for twice is as urgent as the more urgent one. */
type Urgency = Exclude<SimulationPriority, "bid">;
const RANK: Readonly<Record<Urgency, number>> = { new: 0, again: 1, held: 2 };

interface Job {
	priority: Urgency;
	fresh: boolean;
	again: boolean;
	/** Takes its simulation out of the queue where that is of no use any more. */
	withdraw: () => void;
}

/** What searchers see of a link, and whether one stands before it that they don't. */
interface Sight {
	readonly isSeen: boolean;
	readonly behindHidden: boolean;
}

/** How soon a chain is simulated and planned again when the node did not answer, in ms. */
const NODE_RETRY_MS = 1_000;
/** For these it waits as long as it takes: told once, and not anew for each block's fee. */
const WAITS_FOR_FEE: ReadonlySet<SimulationErrorCode> = new Set(["FEE_CAP_TOO_LOW", "BLOB_FEE_CAP_TOO_LOW"]);

/** Runs senders' chains. */
export class ChainRunner {
	readonly #options: ChainRunnerOptions;
	readonly #deps: ChainRunnerDependencies;
	readonly #jobs = new Map<string, Job>();
	readonly #retries = new Map<string, Timer>();
	#stopped = false;

	constructor(options: ChainRunnerOptions, dependencies: ChainRunnerDependencies) {
		this.#options = options;
		this.#deps = dependencies;
	}

	/**
	 * Looks at the sender's chain soon. `fresh`: the account's nonce may have changed since it was last asked for.
	 * Calls during a run are merged into one more run.
	 */
	run(sender: string, priority: Urgency, fresh: boolean): void {
		if (this.#stopped) return;
		const job = this.#jobs.get(sender);
		if (job !== undefined) {
			if (RANK[priority] < RANK[job.priority]) job.priority = priority;
			job.fresh ||= fresh;
			job.again = true;
			job.withdraw();
			return;
		}
		const begun: Job = { priority, fresh, again: true, withdraw: () => {} };
		this.#jobs.set(sender, begun);
		this.#deps.background.run("chain", () => this.#work(sender, begun));
	}

	/** Begins nothing more; what runs is joined by its background. */
	stop(): void {
		this.#stopped = true;
		for (const timer of this.#retries.values()) timer.cancel();
	}

	async #work(sender: string, job: Job): Promise<void> {
		try {
			while (job.again && !this.#stopped) {
				const { priority, fresh } = job;
				job.again = false;
				job.fresh = false;
				job.priority = "held";
				await this.#reconcile(sender, priority, fresh, job);
			}
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
			this.#retry(sender);
		} finally {
			this.#jobs.delete(sender);
		}
	}

	#retry(sender: string): void {
		if (this.#retries.has(sender) || this.#stopped) return;
		const timer = this.#deps.clock.after(NODE_RETRY_MS, () => {
			this.#retries.delete(sender);
			this.run(sender, "held", true);
		});
		this.#retries.set(sender, timer);
	}

	async #reconcile(sender: string, priority: Urgency, fresh: boolean, job: Job): Promise<void> {
		const { tip, transactions, searchers } = this.#deps;
		const { pool } = transactions;
		const head = tip.head();
		const next = tip.next();
		if (head === null || next === null) return;
		if (fresh && !(await this.#refresh(sender, head, priority))) {
			this.run(sender, priority, fresh);
			return;
		}
		const chain = pool.chain(sender);
		const { ready } = chain;
		// What stands behind a gap; told before anything is asked of the node.
		for (const entry of chain.waiting) {
			if (policyOf(entry.transaction.path).shared === "always") searchers.share(entry.transaction);
			this.#wait(entry, "nonceGap", next);
		}
		const links = ready.map((entry) => this.#link(entry));
		const outcomes = await this.#outcomes(sender, ready, links, { next, priority, job });
		// The world may have moved while the node was asked: what was found out is then of no use.
		if (tip.head()?.hash !== head.hash || !ready.every((entry) => pool.holds(entry))) {
			this.run(sender, priority, fresh);
			return;
		}
		this.#act(ready, outcomes, planChain(links, outcomes), next);
		searchers.chainPlanned(chain);
		const unavailable = outcomes.some((one) => one?.ok === false && one.error.code === "NODE_UNAVAILABLE");
		if (unavailable) this.#retry(sender);
	}

	/**
	 * How the links (the sender's transactions in a row) fare that must pass, as far as that can be found out. Simulation stops
	 * before the first one whose fees are too low for the block.
	 */
	async #outcomes(
		sender: string,
		ready: readonly PoolEntry[],
		links: readonly Link[],
		run: { readonly next: NextBlock; readonly priority: Urgency; readonly job: Job },
	): Promise<readonly LinkOutcome[]> {
		const problems = ready.map(({ transaction }) => feeProblem(transaction.tx, run.next));
		const dear = problems.findIndex((problem) => problem !== null);
		const count = linksToSimulate(dear < 0 ? links : links.slice(0, dear));
		const simulated = count === 0 ? [] : await this.#simulate(sender, ready.slice(0, count), run);
		return ready.map((_, i) => {
			const error = i === dear ? problems[i] : null;
			return error ? { ok: false, error } : simulated[i];
		});
	}

	/**
	 * Asks for the account, and ends what its nonce has passed. Answers false where the chain moved meanwhile: what was
	 * found out is then of no use. Throws UpstreamError.
	 */
	async #refresh(sender: string, head: Block, priority: Urgency): Promise<boolean> {
		const { transactions, accounts, clock, inclusions, tip } = this.#deps;
		const { pool, records } = transactions;
		const begun = clock.monotonic();
		const account = await accounts.get(sender, this.#client(sender), priority === "new");
		this.#deps.onStep("account", (clock.monotonic() - begun) / 1000);
		// One that is still being written is left out: the sender is run again when that is done.
		const used = pool.setAccount(account).filter((entry) => entry.durable);
		if (used.length === 0) return true;
		// One that was admitted while its block was being processed may have used the nonce itself.
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

	/** The client in whose share of the node it runs: the one that sent the first of the chain. */
	#client(sender: string): string {
		const { ready, waiting } = this.#deps.transactions.pool.chain(sender);
		return clientOf((ready[0] ?? waiting[0])?.transaction.origin ?? "");
	}

	#link(entry: PoolEntry): Link {
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
		{ next, priority, job }: { readonly next: NextBlock; readonly priority: Urgency; readonly job: Job },
	): Promise<readonly SimulationOutcome[]> {
		const { accounts, simulations, clock, transactions } = this.#deps;
		const account = await accounts.get(sender, this.#client(sender), priority === "new");
		const block = blockContext(next, this.#options.feeRecipientOf());
		const begun = clock.monotonic();
		const unwanted = new AbortController();
		job.withdraw = () => {
			if (!entries.every((entry) => transactions.pool.holds(entry))) unwanted.abort();
		};
		try {
			return await simulations.simulate({
				...{ block, priority, mayWait: true, signal: unwanted.signal },
				client: clientOf(entries.at(-1)?.transaction.origin ?? ""),
				accounts: new Map([[sender, account]]),
				transactions: entries.map((entry) => entry.transaction.tx),
			});
		} finally {
			job.withdraw = () => {};
			this.#deps.onStep("simulation", (clock.monotonic() - begun) / 1000);
		}
	}

	/** Does what was decided for the block `next`. */
	#act(
		ready: readonly PoolEntry[],
		outcomes: readonly LinkOutcome[],
		plans: readonly LinkPlan[],
		next: NextBlock,
	): void {
		const sights = this.#sights(ready, outcomes);
		ready.forEach((entry, i) => {
			this.#note(entry, outcomes[i], next, isDiscreet(sights[i]));
			if (sights[i]?.isSeen) this.#deps.searchers.share(entry.transaction);
		});
		ready.forEach((entry, i) => {
			const [plan, sight] = [plans[i], sights[i]];
			if (plan !== undefined && sight !== undefined) this.#apply(entry, plan, next, sight);
		});
	}

	/**
	 * What searchers see of each link. Behind one that they don't see, none is shown for being likely to be backrun; and
	 * of one that they know, only is told whether it passes, since how it fares tells what the hidden one does.
	 */
	#sights(ready: readonly PoolEntry[], outcomes: readonly LinkOutcome[]): readonly Sight[] {
		let behindHidden = false;
		return ready.map((entry, i) => {
			const { shared } = policyOf(entry.transaction.path);
			const outcome = outcomes[i];
			const isLikely = shared === "likely" && outcome?.ok === true && outcome.emitsEvents === true;
			const isKnown = shared === "always" || this.#recordOf(entry)?.shared === true;
			const isSeen = isKnown || (isLikely && !behindHidden);
			const sight = { isSeen, behindHidden };
			behindHidden ||= !isSeen;
			return sight;
		});
	}

	/** Takes down a simulation that counts: one that passed, or one that the transaction must pass. */
	#note(entry: PoolEntry, outcome: LinkOutcome, next: NextBlock, discreet: boolean): void {
		if (outcome?.ok !== true) return;
		const { transactions, clock } = this.#deps;
		const { tx, path } = entry.transaction;
		const record = this.#recordOf(entry);
		if (!policyOf(path).resimulated && record?.passed === true) return;
		const last = record?.events.findLast((event) => event.type === "simulated");
		if (last?.type === "simulated" && last.block === next.number && record?.stage === "BROADCAST") return;
		const gasUsed = discreet ? null : Number(outcome.gasUsed);
		this.#leaveQueue(entry, next);
		transactions.records.emit(tx.hash, { type: "simulated", at: clock.now(), block: next.number, gasUsed });
	}

	#apply(entry: PoolEntry, plan: LinkPlan, next: NextBlock, sight: Sight): void {
		const { transactions, clock, broadcaster } = this.#deps;
		const { transaction } = entry;
		const about = { at: clock.now(), block: next.number };
		if (plan.do === "wait") {
			this.#wait(entry, plan.reason, next);
			return;
		}
		if (plan.do === "send" && isSent(entry, plan.builders, next.number)) return;
		const firstBlock = this.#leaveQueue(entry, next);
		if (plan.do === "hold") {
			const error = isDiscreet(sight) ? withoutDetails(plan.error) : plan.error;
			// It has passed for this block and is out: that the node can't say so again now changes nothing.
			if (error.code === "NODE_UNAVAILABLE" && entry.outFor === next.number) return;
			if (!isTold(this.#recordOf(entry), error, next))
				transactions.records.emit(transaction.tx.hash, { type: "simulationFailed", ...about, error });
			// It went out for this very block and fails now: the builders are told.
			if (entry.outFor === next.number) {
				broadcaster.cancel(transaction, [...entry.sentTo], next.number);
				transactions.staysIn(entry);
			}
			return;
		}
		const builders = transactions.goesOut(entry, next.number, plan.builders);
		const begun = clock.monotonic();
		const { behindHidden } = sight;
		transactions.records.emit(transaction.tx.hash, { type: "broadcast", ...about, behindHidden });
		const lastBlock = firstBlock + this.#options.txTtlBlocks - 1;
		broadcaster.send({ transaction, block: next.number, lastBlock }, builders);
		this.#deps.onStep("broadcast", (clock.monotonic() - begun) / 1000);
	}

	#wait(entry: PoolEntry, reason: QueueReason, { number }: NextBlock): void {
		const { transactions, clock } = this.#deps;
		// Should its turn come again for the same block, it is sent and told again.
		transactions.staysIn(entry);
		const record = this.#recordOf(entry);
		const last = record?.events.findLast((event) => event.type === "queued");
		if (record?.stage === "QUEUED" && last?.type === "queued" && last.reason === reason) return;
		const event = { type: "queued", at: clock.now(), block: number - 1, reason } as const;
		transactions.records.emit(entry.transaction.tx.hash, event);
	}

	/** It is its turn: its life starts, where it had not. Answers the first block of its life. */
	#leaveQueue(entry: PoolEntry, { number }: NextBlock): number {
		const { transactions, clock } = this.#deps;
		const record = this.#recordOf(entry);
		if (record?.stage === "QUEUED" || record?.firstBlock === null)
			transactions.records.emit(record.hash, { type: "ready", at: clock.now(), block: number });
		return record?.firstBlock ?? number;
	}
}

/** Whether of a link only is told that it is there and whether it passes: how it fares tells of one before it. */
function isDiscreet(sight: Sight | undefined): boolean {
	return sight?.isSeen === true && sight.behindHidden;
}

/** Whether all of `builders` have been given it for `block`. */
function isSent(entry: PoolEntry, builders: readonly string[], block: number): boolean {
	return entry.outFor === block && builders.every((name) => entry.outTo.has(name));
}

/** Whether the record tells that it is held for `error`. */
function isTold(record: TransactionRecord | undefined, error: SimulationError, next: NextBlock): boolean {
	const last = record?.stage === "SIMULATION_FAILED" ? record.simulationError : null;
	if (last?.code !== error.code) return false;
	if (WAITS_FOR_FEE.has(error.code)) return true;
	return record?.block === next.number && last.message === error.message;
}

/** The error by its code alone. */
function withoutDetails({ code }: SimulationError): SimulationError {
	return { code, message: "not told while transactions before it are pending" };
}
