// Decides which transactions of a sender's nonce chain are simulated, and what happens to each of them after that. Pure.

import type { EndpointPolicy } from "./domain/endpoints.ts";
import type { QueueReason } from "./domain/events.ts";
import type { SimulationError, SimulationOutcome } from "./domain/simulation.ts";

/** One transaction of a chain, in nonce order from the account's nonce on. */
export interface Link {
	readonly policy: EndpointPolicy;
	/** Whether it has passed a simulation before. */
	readonly passed: boolean;
	/** Names of the builders that may have it by its path alone. */
	readonly eligible: readonly string[];
}

/** How a link fared; undefined: it was not simulated. */
export type LinkOutcome = SimulationOutcome | undefined;

/** What to do with a link now. */
export type LinkPlan =
	| { readonly do: "send"; readonly builders: readonly string[] }
	/** Held: its own simulation fails. */
	| { readonly do: "hold"; readonly error: SimulationError }
	/** Waits for a link before it. */
	| { readonly do: "wait"; readonly reason: QueueReason };

/** Whether a link goes out only if it passes now. */
export function mustPass({ policy, passed }: Pick<Link, "policy" | "passed">): boolean {
	return policy.simulated && (policy.resimulated || !passed);
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
