// Decides what happens to each transaction of a sender's nonce chain after its simulation, and carries it out: events,
// dispatches to the builders, and what searchers may see. It asks the node for nothing.

import type { Clock } from "../shared/clock.ts";
import type { NextBlock } from "./domain/chain.ts";
import { type EndpointPolicy, policyOf } from "./domain/endpoints.ts";
import type { QueueReason } from "./domain/events.ts";
import type { Broadcaster, EventSink } from "./domain/ports.ts";
import type { TransactionRecord } from "./domain/record.ts";
import type { SimulationError, SimulationErrorCode, SimulationOutcome } from "./domain/simulation.ts";
import type { PoolEntry, SenderChain } from "./transactions/pool.ts";
import type { Transactions } from "./transactions/transactions.ts";

/** One transaction of a chain, in nonce order from the account's nonce on. */
export interface Link {
	readonly policy: EndpointPolicy;
	/** Whether it has passed a simulation before. */
	readonly passed: boolean;
	/** Names of the builders that may have it by its path alone. */
	readonly eligible: readonly string[];
}

/** What to do with a link now. */
export type LinkPlan =
	| { readonly do: "send"; readonly builders: readonly string[] }
	/** Held: its own simulation fails. */
	| { readonly do: "hold"; readonly error: SimulationError }
	/** Waits for a link before it. */
	| { readonly do: "wait"; readonly reason: QueueReason };

/** Whether a link goes out only if it passes now. */
export function mustPass(link: Link): boolean {
	return link.policy.simulated && (link.policy.resimulated || !link.passed);
}

/**
 * How many links from the first on must be simulated: up to the last one that must pass. Behind a link that is
 * never simulated (`/nochecks`) none is, since the state it leaves is not known.
 */
export function linksToSimulate(links: readonly Link[]): number {
	const unchecked = links.findIndex((link) => !link.policy.simulated);
	const known = unchecked < 0 ? links : links.slice(0, unchecked);
	return known.findLastIndex(mustPass) + 1;
}

/**
 * A plan for each link. `outcomes` are those of the first links; once one failed, those behind it have none.
 * A builder that may not have one link gets none behind it: it could not execute them.
 */
export function planChain(
	links: readonly Link[],
	outcomes: readonly (SimulationOutcome | undefined)[],
): readonly LinkPlan[] {
	let builders: readonly string[] | null = null;
	let waitsFor: QueueReason | null = null;
	let unchecked = false;
	return links.map((link, i): LinkPlan => {
		if (waitsFor !== null) return { do: "wait", reason: waitsFor };
		if (!link.policy.simulated) {
			unchecked = true;
		} else if (unchecked) {
			waitsFor = "behindUnchecked";
			return { do: "wait", reason: waitsFor };
		} else if (mustPass(link)) {
			const outcome = outcomes[i];
			if (outcome?.ok !== true) {
				// Without an outcome: a link before it, which goes out all the same, fails now, and the state behind is not known.
				waitsFor = outcome === undefined && i > 0 ? "behindUnchecked" : "behindHeld";
				return outcome === undefined
					? { do: "wait", reason: waitsFor }
					: { do: "hold", error: outcome.error };
			}
		}
		const before: readonly string[] = builders ?? link.eligible;
		// Mostly the very same list: chains are planned for each new link.
		builders = before === link.eligible ? before : before.filter((name) => link.eligible.includes(name));
		return { do: "send", builders };
	});
}

/** Records by hash, as far as a chain needs them. */
export interface Records {
	get(hash: string): { readonly record: TransactionRecord } | undefined;
}

/** What the searchers' side is told. */
export interface Searchers {
	/** Shows them a transaction; one that they have been shown is left alone. */
	share(entry: PoolEntry): void;
	/** A chain was planned: for the next block it is known what is out and what waits. */
	chainPlanned(chain: SenderChain): void;
}

export interface ChainActionsOptions {
	readonly txTtlBlocks: number;
}

export interface ChainActionsDependencies {
	readonly transactions: Pick<Transactions, "goesOut" | "staysIn">;
	readonly records: Records;
	readonly events: EventSink;
	readonly broadcaster: Broadcaster;
	readonly searchers: Searchers;
	readonly clock: Clock;
	readonly onStep: (step: "broadcast", seconds: number) => void;
}

/** A chain with what was found out and decided. */
export interface PlannedChain extends SenderChain {
	/** Of the first links of `ready`. */
	readonly outcomes: readonly (SimulationOutcome | undefined)[];
	/** One for each of `ready`. */
	readonly plans: readonly LinkPlan[];
	readonly next: NextBlock;
}

/** What searchers see of a link, and whether one stands before it that they don't. */
interface Sight {
	readonly isSeen: boolean;
	readonly behindHidden: boolean;
}

/** Carries out plans. */
export class ChainActions {
	readonly #options: ChainActionsOptions;
	readonly #deps: ChainActionsDependencies;

	constructor(options: ChainActionsOptions, dependencies: ChainActionsDependencies) {
		this.#options = options;
		this.#deps = dependencies;
	}

	/** What stands behind a gap waits for the block `next` or a later one; told before anything is asked of the node. */
	wait(waiting: readonly PoolEntry[], next: NextBlock): void {
		for (const entry of waiting) {
			if (policyOf(entry.transaction.path).shared === "always") this.#deps.searchers.share(entry);
			this.#wait(entry, "nonceGap", next);
		}
	}

	/** Does what was decided. */
	act(planned: PlannedChain): void {
		const { ready, outcomes, plans, next } = planned;
		const sights = this.#sights(planned);
		ready.forEach((entry, i) => {
			this.#note(entry, outcomes[i], next, isDiscreet(sights[i]));
			if (sights[i]?.isSeen) this.#deps.searchers.share(entry);
		});
		ready.forEach((entry, i) => {
			const [plan, sight] = [plans[i], sights[i]];
			if (plan !== undefined && sight !== undefined) this.#apply(entry, plan, next, sight);
		});
		this.#deps.searchers.chainPlanned(planned);
	}

	/**
	 * What searchers see of each link. Behind one that they don't see, none is shown for being likely to be backrun; and
	 * of one that they know, only is told whether it passes, since how it fares tells what the hidden one does.
	 */
	#sights({ ready, outcomes }: PlannedChain): readonly Sight[] {
		let behindHidden = false;
		return ready.map(({ transaction: { tx, path } }, i) => {
			const { shared } = policyOf(path);
			const outcome = outcomes[i];
			const isLikely = shared === "likely" && outcome?.ok === true && outcome.emitsEvents === true;
			const isKnown = shared === "always" || this.#deps.records.get(tx.hash)?.record.shared === true;
			const isSeen = isKnown || (isLikely && !behindHidden);
			const sight = { isSeen, behindHidden };
			behindHidden ||= !isSeen;
			return sight;
		});
	}

	/** Takes down a simulation that counts: one that passed, or one that the transaction must pass. */
	#note(entry: PoolEntry, outcome: SimulationOutcome | undefined, next: NextBlock, discreet: boolean): void {
		if (outcome?.ok !== true) return;
		const { events, clock, records } = this.#deps;
		const { hash } = entry.transaction.tx;
		const again = policyOf(entry.transaction.path).resimulated;
		const record = records.get(hash)?.record;
		if (!again && record?.passed === true) return;
		const last = record?.events.findLast((event) => event.type === "simulated");
		if (last?.type === "simulated" && last.block === next.number && record?.stage === "BROADCAST") return;
		const gasUsed = discreet ? null : Number(outcome.gasUsed);
		this.#leaveQueue(entry, next);
		events.emit(hash, { type: "simulated", at: clock.now(), block: next.number, gasUsed });
	}

	#apply(entry: PoolEntry, plan: LinkPlan, next: NextBlock, sight: Sight): void {
		const { transactions, events, clock, broadcaster, records } = this.#deps;
		const { hash } = entry.transaction.tx;
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
			if (!isTold(records.get(hash)?.record, error, next)) {
				events.emit(hash, { type: "simulationFailed", at: clock.now(), block: next.number, error });
			}
			// It went out for this very block and fails now: the builders are told.
			if (entry.outFor === next.number) {
				broadcaster.cancel(entry.transaction, [...entry.sentTo], next.number);
				transactions.staysIn(entry);
			}
			return;
		}
		const builders = transactions.goesOut(entry, next.number, plan.builders);
		const begun = clock.monotonic();
		const { behindHidden } = sight;
		events.emit(hash, { type: "broadcast", at: clock.now(), block: next.number, behindHidden });
		const lastBlock = firstBlock + this.#options.txTtlBlocks - 1;
		broadcaster.send({ transaction: entry.transaction, block: next.number, lastBlock }, builders);
		this.#deps.onStep("broadcast", (clock.monotonic() - begun) / 1000);
	}

	#wait(entry: PoolEntry, reason: QueueReason, { number }: NextBlock): void {
		const { transactions, events, clock, records } = this.#deps;
		const { hash } = entry.transaction.tx;
		// Should its turn come again for the same block, it is sent and told again.
		transactions.staysIn(entry);
		const record = records.get(hash)?.record;
		const last = record?.events.findLast((event) => event.type === "queued");
		const known = record?.stage === "QUEUED" && last?.type === "queued" && last.reason === reason;
		if (!known) events.emit(hash, { type: "queued", at: clock.now(), block: number - 1, reason });
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

/** Whether of a link only is told that it is there and whether it passes: how it fares tells of one before it. */
function isDiscreet(sight: Sight | undefined): boolean {
	return sight?.isSeen === true && sight.behindHidden;
}

/** Whether all of `builders` have been given it for `block`. */
function isSent(entry: PoolEntry, builders: readonly string[], block: number): boolean {
	return entry.outFor === block && builders.every((name) => entry.outTo.has(name));
}

/** For these it waits as long as it takes: told once, and not anew for each block's fee. */
const WAITS_FOR_FEE: ReadonlySet<SimulationErrorCode> = new Set(["FEE_CAP_TOO_LOW", "BLOB_FEE_CAP_TOO_LOW"]);

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
