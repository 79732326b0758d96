// PER SENDER: what comes in is a sender whose chain of nonces may have changed, what goes out are simulations,
// events and dispatches for the next block. Called by the pipeline for each submission and by the block loop for
// each head; for one sender it runs once at a time.

import type { Background } from "../shared/background.ts";
import type { Clock, Timer } from "../shared/clock.ts";
import { UpstreamError } from "../shared/jsonrpc/client.ts";
import type { Block, NextBlock } from "./domain/chain.ts";
import { type Link, type LinkPlan, linksToSimulate, planChain } from "./domain/chainPlan.ts";
import { policyOf } from "./domain/endpoints.ts";
import type { Accounts, Broadcaster, EventSink, InclusionReader, Simulations, Tip } from "./domain/ports.ts";
import type { TransactionRecord } from "./domain/record.ts";
import type { BlockContext, SimulationOutcome, SimulationPriority } from "./domain/simulation.ts";
import type { Pool, PoolEntry } from "./pool/pool.ts";

/** Records by hash, as far as a chain needs them. */
export interface Records {
	get(hash: string): { readonly record: TransactionRecord } | undefined;
}

export interface ChainRunnerOptions {
	readonly txTtlBlocks: number;
	/** The coinbase that `block` is simulated with. */
	readonly feeRecipientOf: (block: number) => string;
}

export interface ChainRunnerDependencies {
	readonly pool: Pool;
	readonly records: Records;
	readonly events: EventSink;
	readonly accounts: Accounts;
	readonly inclusions: InclusionReader;
	readonly tip: Tip;
	readonly simulations: Simulations;
	readonly broadcaster: Broadcaster;
	readonly background: Background;
	readonly clock: Clock;
	readonly onStep: (step: "account" | "simulation" | "broadcast", seconds: number) => void;
}

interface Job {
	priority: SimulationPriority;
	fresh: boolean;
	again: boolean;
}

/** How soon a chain is looked at again when the node did not answer, in ms. */
const NODE_RETRY_MS = 1_000;
const RANK: Readonly<Record<SimulationPriority, number>> = { new: 0, again: 1, held: 2 };

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
	 * Calls for a sender that is being looked at are merged into one more look.
	 */
	run(sender: string, priority: SimulationPriority, fresh: boolean): void {
		if (this.#stopped) return;
		const job = this.#jobs.get(sender);
		if (job !== undefined) {
			if (RANK[priority] < RANK[job.priority]) job.priority = priority;
			job.fresh ||= fresh;
			job.again = true;
			return;
		}
		const begun: Job = { priority, fresh, again: true };
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
				await this.#look(sender, priority, fresh);
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

	async #look(sender: string, priority: SimulationPriority, fresh: boolean): Promise<void> {
		const { pool, tip } = this.#deps;
		const head = tip.head();
		const next = tip.next();
		if (head === null || next === null) return;
		if (fresh && !(await this.#refresh(sender, head))) {
			this.run(sender, priority, fresh);
			return;
		}
		const { ready, waiting } = pool.chain(sender);
		for (const entry of waiting) this.#wait(entry, "nonceGap");
		const links = ready.map((entry) => this.#link(entry));
		const count = linksToSimulate(links);
		const outcomes = count === 0 ? [] : await this.#simulate(sender, ready.slice(0, count), next, priority);
		// The world may have moved while the node was asked: what was found out is then of no use.
		if (
			tip.head()?.hash !== head.hash ||
			ready.some((entry) => pool.get(entry.transaction.tx.hash) !== entry)
		) {
			this.run(sender, priority, fresh);
			return;
		}
		ready.forEach((entry, i) => {
			this.#note(entry, outcomes[i], next);
		});
		planChain(links, outcomes).forEach((plan, i) => {
			const entry = ready[i];
			if (entry !== undefined) this.#apply(entry, plan, next);
		});
		const unavailable = outcomes.some((one) => one?.ok === false && one.error.code === "NODE_UNAVAILABLE");
		if (unavailable) this.#retry(sender);
	}

	/**
	 * Asks for the account, and ends what its nonce has passed. Answers false where the chain moved meanwhile: what was
	 * found out is then of no use. Throws UpstreamError.
	 */
	async #refresh(sender: string, head: Block): Promise<boolean> {
		const { accounts, pool, events, clock, inclusions, tip } = this.#deps;
		const begun = clock.monotonic();
		const account = await accounts.get(sender);
		this.#deps.onStep("account", (clock.monotonic() - begun) / 1000);
		// One whose write is under way is not told of yet: it is looked at again when that is done.
		const used = pool.setAccount(account).filter((entry) => entry.durable);
		if (used.length === 0) return true;
		// One that was admitted while its block was worked off may have used the nonce itself.
		const found = await inclusions.inclusions(
			used.map((entry) => entry.transaction.tx.hash),
			account.block,
		);
		if (tip.head()?.hash !== head.hash) return false;
		used.forEach((entry, i) => {
			const { hash } = entry.transaction.tx;
			if (pool.get(hash) !== entry) return;
			pool.remove(entry);
			const mined = found[i];
			const at = clock.now();
			if (mined) {
				const { hash: _, ...place } = mined;
				events.emit(hash, { type: "included", at, ...place });
			} else events.emit(hash, { type: "dropped", at, block: head.number });
		});
		return true;
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
		next: NextBlock,
		priority: SimulationPriority,
	): Promise<readonly SimulationOutcome[]> {
		const { accounts, simulations, clock } = this.#deps;
		const account = await accounts.get(sender);
		const block: BlockContext = {
			...next,
			stateBlock: next.number - 1,
			feeRecipient: this.#options.feeRecipientOf(next.number),
		};
		const begun = clock.monotonic();
		const chain = entries.map((entry) => entry.transaction.tx);
		const outcomes = await simulations.simulate(
			{ block, sender, nonce: account.nonce, balance: account.balance, chain },
			priority,
		);
		this.#deps.onStep("simulation", (clock.monotonic() - begun) / 1000);
		return outcomes;
	}

	/** Takes down a simulation that counts: one that passed, or one that the transaction must pass. */
	#note(entry: PoolEntry, outcome: SimulationOutcome | undefined, next: NextBlock): void {
		if (outcome?.ok !== true) return;
		const { events, clock, records } = this.#deps;
		const { hash } = entry.transaction.tx;
		const again = policyOf(entry.transaction.path).resimulated;
		const record = records.get(hash)?.record;
		if (!again && record?.passed === true) return;
		const last = record?.events.findLast((event) => event.type === "simulated");
		if (last?.type === "simulated" && last.block === next.number && record?.stage === "BROADCAST") return;
		const gasUsed = Number(outcome.gasUsed);
		this.#leaveQueue(entry, next);
		events.emit(hash, { type: "simulated", at: clock.now(), block: next.number, gasUsed });
	}

	#apply(entry: PoolEntry, plan: LinkPlan, next: NextBlock): void {
		const { events, clock, broadcaster, records } = this.#deps;
		const { hash } = entry.transaction.tx;
		if (plan.do === "wait") {
			this.#wait(entry, plan.reason);
			return;
		}
		if (plan.do === "send" && isOut(entry, plan.builders, next.number)) return;
		const firstBlock = this.#leaveQueue(entry, next);
		if (plan.do === "hold") {
			const { error } = plan;
			// It has passed for this block and is out: that the node can't say so again now changes nothing.
			if (error.code === "NODE_UNAVAILABLE" && entry.outFor === next.number) return;
			const record = records.get(hash)?.record;
			const told = record?.stage === "SIMULATION_FAILED" && record.block === next.number;
			if (!told || record?.simulationError?.message !== error.message) {
				events.emit(hash, { type: "simulationFailed", at: clock.now(), block: next.number, error });
			}
			// It went out for this very block and fails now: the builders are told.
			if (entry.outFor === next.number) {
				broadcaster.cancel(entry.transaction, [...entry.sentTo], next.number);
				entry.outFor = null;
			}
			return;
		}
		const had = entry.outFor === next.number ? [...entry.outTo] : [];
		const builders = plan.builders.filter((name) => !had.includes(name));
		entry.outFor = next.number;
		entry.outTo = new Set([...had, ...builders]);
		entry.sentTo = new Set([...entry.sentTo, ...builders]);
		const begun = clock.monotonic();
		events.emit(hash, { type: "broadcast", at: clock.now(), block: next.number });
		const lastBlock = firstBlock + this.#options.txTtlBlocks - 1;
		broadcaster.send({ transaction: entry.transaction, block: next.number, lastBlock }, builders);
		this.#deps.onStep("broadcast", (clock.monotonic() - begun) / 1000);
	}

	#wait(entry: PoolEntry, reason: "nonceGap" | "behindHeld" | "behindUnchecked"): void {
		const { events, clock, records } = this.#deps;
		const { hash } = entry.transaction.tx;
		// Should its turn come again for the same block, it is sent and told again.
		entry.outFor = null;
		const record = records.get(hash)?.record;
		const last = record?.events.findLast((event) => event.type === "queued");
		const known = record?.stage === "QUEUED" && last?.type === "queued" && last.reason === reason;
		if (!known) events.emit(hash, { type: "queued", at: clock.now(), reason });
	}

	/** It is its turn: its life starts, where it had not. Answers the first block of its life. */
	#leaveQueue(entry: PoolEntry, next: NextBlock): number {
		const { events, clock, records } = this.#deps;
		const { hash } = entry.transaction.tx;
		const record = records.get(hash)?.record;
		if (record?.stage === "QUEUED" || record?.firstBlock === null) {
			events.emit(hash, { type: "ready", at: clock.now(), block: next.number });
		}
		return record?.firstBlock ?? next.number;
	}
}

/** Whether all of `builders` have been given it for `block`. */
function isOut(entry: PoolEntry, builders: readonly string[], block: number): boolean {
	return entry.outFor === block && builders.every((name) => entry.outTo.has(name));
}
