// Decides which of a sender's consecutive transactions must be simulated, and the action for each
// one afterwards. Pure.

import { type EndpointPolicy, mustPass } from "./domain/endpoints.ts";
import type { QueueReason } from "./domain/events.ts";
import { isImpossible, type SimulationError, type SimulationOutcome } from "./domain/simulation.ts";

/**
 * The facts that the plan needs about a transaction. A sender's transactions are in nonce order,
 * without a gap.
 */
export interface TransactionFacts {
	readonly policy: EndpointPolicy;
	/** Whether it has ever passed a simulation. */
	readonly passed: boolean;
	/** Names of the builders that its path allows. */
	readonly eligible: readonly string[];
	/** Its bytes without blobs, which a simulation sends to the node. */
	readonly bytes: number;
}

/** The result of a transaction's simulation; undefined if it was not simulated. */
export type MaybeOutcome = SimulationOutcome | undefined;

/** The action for a transaction now. `hold` and `wait` mean that it is not sent for this block. */
export type TransactionPlan =
	| {
			readonly do: "send";
			readonly builders: readonly string[];
			/** Why it is sent without the simulation that it should have passed. */
			readonly unsimulated?: SimulationError;
	  }
	/** Its own simulation fails. */
	| { readonly do: "hold"; readonly error: SimulationError }
	/** An earlier transaction must go first. */
	| { readonly do: "wait"; readonly reason: QueueReason };

/**
 * Most bytes of one simulation, if it has several transactions: a request to the node has twice as
 * many digits. Eight transactions of 128 KiB rarely fit into one block.
 */
const MOST_BYTES = 1024 * 1024;

/**
 * How many transactions, from the first, must be simulated: up to the last one that must pass.
 * Transactions behind one that is never simulated (`/nochecks`), or behind {@link MOST_BYTES}, are
 * not simulated, since the state after it is unknown.
 */
export function countToSimulate(facts: readonly TransactionFacts[]): number {
	let bytes = 0;
	const end = facts.findIndex((one, i) => {
		bytes += one.bytes;
		return !one.policy.simulated || (bytes > MOST_BYTES && i > 0);
	});
	return (end < 0 ? facts : facts.slice(0, end)).findLastIndex(mustPass) + 1;
}

/**
 * A plan for each transaction. `outcomes` belong to the first transactions; those behind a failed
 * one have none. If a builder may not receive a transaction, it does not receive the later ones
 * either, since it could not execute them.
 *
 * A transaction that the node can't simulate is sent if its path allows a revert. Transactions
 * behind it on such a path are sent too.
 */
export function planTransactions(
	facts: readonly TransactionFacts[],
	outcomes: readonly MaybeOutcome[],
): readonly TransactionPlan[] {
	let builders: readonly string[] | null = null;
	let waitsFor: QueueReason | null = null;
	let behindUnchecked = false;
	/** Why an earlier transaction was not simulated; the state behind it is then unknown. */
	let unsimulated: SimulationError | null = null;
	return facts.map((one, i): TransactionPlan => {
		if (waitsFor !== null) return { do: "wait", reason: waitsFor };
		const ruledOut = forkProblem(outcomes[i]);
		if (ruledOut !== null) {
			waitsFor = "behindHeld";
			return { do: "hold", error: ruledOut };
		}
		if (!one.policy.simulated) {
			behindUnchecked = true;
		} else if (behindUnchecked) {
			waitsFor = "behindUnchecked";
			return { do: "wait", reason: waitsFor };
		} else if (mustPass(one)) {
			const outcome = outcomes[i];
			if (outcome?.ok === false && isImpossible(outcome)) unsimulated = outcome.error;
			const isUnknown = outcome === undefined || isImpossible(outcome);
			if (unsimulated !== null && isUnknown && !one.policy.resimulated) {
				builders = narrowed(builders, one.eligible);
				return { do: "send", builders, unsimulated };
			}
			if (outcome?.ok !== true) {
				// No outcome: an earlier transaction that is sent regardless fails now, so the
				// state behind it is unknown.
				waitsFor = outcome === undefined && i > 0 ? "behindUnchecked" : "behindHeld";
				return outcome === undefined
					? { do: "wait", reason: waitsFor }
					: { do: "hold", error: outcome.error };
			}
		}
		builders = narrowed(builders, one.eligible);
		return { do: "send", builders };
	});
}

/**
 * The error if the chain's rules no longer allow the transaction, which then no path sends; else
 * null.
 */
function forkProblem(outcome: MaybeOutcome): SimulationError | null {
	return outcome?.ok === false && outcome.error.code === "FORK_RULES" ? outcome.error : null;
}

/** The builders of earlier transactions (`before`) that are also `eligible`. */
function narrowed(before: readonly string[] | null, eligible: readonly string[]): readonly string[] {
	// Both are usually the same array, so it is not copied.
	if (before === null || before === eligible) return eligible;
	return before.filter((name) => eligible.includes(name));
}
