// Decides which transactions of a sender's nonce chain must be simulated, and what to do with each one afterwards. Pure.

import type { EndpointPolicy } from "./domain/endpoints.ts";
import type { QueueReason } from "./domain/events.ts";
import type { SimulationError, SimulationOutcome } from "./domain/simulation.ts";

/** One transaction of a sender's chain of consecutive nonces. */
export interface Link {
	readonly policy: EndpointPolicy;
	/** Whether it has ever passed a simulation. */
	readonly passed: boolean;
	/** Names of the builders that its path allows. */
	readonly eligible: readonly string[];
}

/** The result of a link's simulation; undefined: it was not simulated. */
export type LinkOutcome = SimulationOutcome | undefined;

/** What to do with a link now. */
export type LinkPlan =
	| { readonly do: "send"; readonly builders: readonly string[] }
	/** Its own simulation fails. */
	| { readonly do: "hold"; readonly error: SimulationError }
	/** An earlier link must go first. */
	| { readonly do: "wait"; readonly reason: QueueReason };

/** Whether a link may be sent only if it passes a simulation for this block. */
export function mustPass({ policy, passed }: Pick<Link, "policy" | "passed">): boolean {
	return policy.simulated && (policy.resimulated || !passed);
}

/**
 * How many links, from the first, must be simulated: up to the last one that must pass. Links behind one that is never
 * simulated (`/nochecks`) are not simulated, since the state that it leaves is unknown.
 */
export function linksToSimulate(links: readonly Link[]): number {
	const unchecked = links.findIndex((link) => !link.policy.simulated);
	const known = unchecked < 0 ? links : links.slice(0, unchecked);
	return known.findLastIndex(mustPass) + 1;
}

/**
 * A plan for each link. `outcomes` belong to the first links; links behind a failed one have none. A builder that may not
 * receive a link does not receive those behind it either, since it could not execute them.
 */
export function planChain(links: readonly Link[], outcomes: readonly LinkOutcome[]): readonly LinkPlan[] {
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
				// No outcome: an earlier link that is sent regardless fails now, so the state behind it is unknown.
				waitsFor = outcome === undefined && i > 0 ? "behindUnchecked" : "behindHeld";
				return outcome === undefined
					? { do: "wait", reason: waitsFor }
					: { do: "hold", error: outcome.error };
			}
		}
		const before: readonly string[] = builders ?? link.eligible;
		// Usually the same array, so it is not copied.
		builders = before === link.eligible ? before : before.filter((name) => link.eligible.includes(name));
		return { do: "send", builders };
	});
}
