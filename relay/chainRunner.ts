// Simulates a chain of nonces that may have changed and plans each of its links, which chainActions.ts carries out.
// Called by the pipeline for each submission and by the block loop for each head; for one sender it runs once at a
// time.

import type { Background } from "../shared/background.ts";
import type { Timer } from "../shared/clock.ts";
import { clientOf } from "../shared/http/callContext.ts";
import { UpstreamError } from "../shared/jsonrpc/client.ts";
import { ChainActions, type ChainActionsDependencies } from "./chainActions.ts";
import type { Block, NextBlock } from "./domain/chain.ts";
import { type Link, linksToSimulate, planChain } from "./domain/chainPlan.ts";
import { policyOf } from "./domain/endpoints.ts";
import type { Accounts, InclusionReader, Simulations, Tip } from "./domain/ports.ts";
import type { BlockContext, SimulationOutcome, SimulationPriority } from "./domain/simulation.ts";
import { feeProblem } from "./domain/transactionRules.ts";
import type { Pool, PoolEntry } from "./transactions/pool.ts";
import type { Transactions } from "./transactions/transactions.ts";

export interface ChainRunnerOptions {
	readonly txTtlBlocks: number;
	/** The coinbase of a simulated block. */
	readonly feeRecipientOf: () => string;
}

export interface ChainRunnerDependencies extends Omit<ChainActionsDependencies, "onStep"> {
	readonly transactions: Pick<Transactions, "included" | "dropped" | "goesOut" | "staysIn">;
	readonly pool: Pool;
	readonly accounts: Accounts;
	readonly inclusions: InclusionReader;
	readonly tip: Tip;
	readonly simulations: Simulations;
	readonly background: Background;
	readonly onStep: (step: "account" | "simulation" | "broadcast", seconds: number) => void;
}

interface Job {
	priority: Urgency;
	fresh: boolean;
	again: boolean;
	/** Takes its simulation out of the queue where that is of no use any more. */
	withdraw: () => void;
}

/** How soon a chain is looked at again when the node did not answer, in ms. */
const NODE_RETRY_MS = 1_000;
/** How soon a look at a chain is due; a look that was asked for twice is as urgent as the more urgent one. */
type Urgency = Exclude<SimulationPriority, "bid">;
const RANK: Readonly<Record<Urgency, number>> = { new: 0, again: 1, held: 2 };

/** Runs senders' chains. */
export class ChainRunner {
	readonly #options: ChainRunnerOptions;
	readonly #deps: ChainRunnerDependencies;
	readonly #actions: ChainActions;
	readonly #jobs = new Map<string, Job>();
	readonly #retries = new Map<string, Timer>();
	#stopped = false;

	constructor(options: ChainRunnerOptions, dependencies: ChainRunnerDependencies) {
		this.#options = options;
		this.#deps = dependencies;
		this.#actions = new ChainActions(options, dependencies);
	}

	/**
	 * Looks at the sender's chain soon. `fresh`: the account's nonce may have changed since it was last asked for.
	 * Calls for a sender that is being looked at are merged into one more look.
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
				await this.#look(sender, priority, fresh, job);
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

	async #look(sender: string, priority: Urgency, fresh: boolean, job: Job): Promise<void> {
		const { pool, tip } = this.#deps;
		const head = tip.head();
		const next = tip.next();
		if (head === null || next === null) return;
		if (fresh && !(await this.#refresh(sender, head, priority))) {
			this.run(sender, priority, fresh);
			return;
		}
		const { ready, waiting } = pool.chain(sender);
		this.#actions.wait(waiting, next);
		const links = ready.map((entry) => this.#link(entry));
		const outcomes = await this.#outcomes(sender, ready, links, { next, priority, job });
		// The world may have moved while the node was asked: what was found out is then of no use.
		if (
			tip.head()?.hash !== head.hash ||
			ready.some((entry) => pool.get(entry.transaction.tx.hash) !== entry)
		) {
			this.run(sender, priority, fresh);
			return;
		}
		const plans = planChain(links, outcomes);
		this.#actions.act({ ready, waiting, outcomes, plans, next });
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
		look: { readonly next: NextBlock; readonly priority: Urgency; readonly job: Job },
	): Promise<readonly (SimulationOutcome | undefined)[]> {
		const problems = ready.map(({ transaction }) => feeProblem(transaction.tx, look.next));
		const dear = problems.findIndex((problem) => problem !== null);
		const count = linksToSimulate(dear < 0 ? links : links.slice(0, dear));
		const simulated = count === 0 ? [] : await this.#simulate(sender, ready.slice(0, count), look);
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
		const { transactions, records, accounts, pool, clock, inclusions, tip } = this.#deps;
		const begun = clock.monotonic();
		const account = await accounts.get(sender, this.#client(sender), priority === "new");
		this.#deps.onStep("account", (clock.monotonic() - begun) / 1000);
		// One that is still being written is left out: the sender is looked at again when that is done.
		const used = pool.setAccount(account).filter((entry) => entry.durable);
		if (used.length === 0) return true;
		// One that was admitted while its block was being processed may have used the nonce itself.
		const found = await inclusions.inclusions(
			used.map((entry) => entry.transaction.tx.hash),
			account.block,
		);
		if (tip.head()?.hash !== head.hash) return false;
		used.forEach((entry, i) => {
			const { hash } = entry.transaction.tx;
			if (pool.get(hash) !== entry) return;
			const mined = found[i];
			const known = records.get(hash);
			if (mined && known !== undefined)
				transactions.included({ transaction: entry.transaction, record: known.record }, mined);
			else transactions.dropped(entry, head.number);
		});
		return true;
	}

	/** The client in whose share of the node it runs: the one that sent the first of the chain. */
	#client(sender: string): string {
		const { ready, waiting } = this.#deps.pool.chain(sender);
		return clientOf((ready[0] ?? waiting[0])?.transaction.origin ?? "");
	}

	#link(entry: PoolEntry): Link {
		return {
			policy: policyOf(entry.transaction.path),
			passed: this.#deps.records.get(entry.transaction.tx.hash)?.record.passed ?? false,
			eligible: this.#deps.broadcaster.eligible(entry.transaction),
		};
	}

	async #simulate(
		sender: string,
		entries: readonly PoolEntry[],
		{ next, priority, job }: { readonly next: NextBlock; readonly priority: Urgency; readonly job: Job },
	): Promise<readonly SimulationOutcome[]> {
		const { accounts, simulations, clock, pool } = this.#deps;
		const account = await accounts.get(sender, this.#client(sender), priority === "new");
		const block: BlockContext = {
			stateBlock: next.number - 1,
			feeRecipient: this.#options.feeRecipientOf(),
			...next,
		};
		const begun = clock.monotonic();
		const unwanted = new AbortController();
		job.withdraw = () => {
			if (entries.some((entry) => pool.get(entry.transaction.tx.hash) !== entry)) unwanted.abort();
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
}
