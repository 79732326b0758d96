// Turns the market's outcome of a bundle into the hash or the searcher's error. A refusal that cost a simulation is
// charged for.

import type { Client } from "../../shared/http/callContext.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { BundleOutcome } from "../domain/bundle.ts";

/** What a bundle that fails its simulation weighs beyond the one of its call: as much as an eth_call in all. */
export const FAILED_SIMULATION_WEIGHT = 9;

/** The bundle's hash. Throws RpcError `limit` or `rejected`, with the refusal's code as `data.reason`. */
export function bundleHash(
	outcome: BundleOutcome,
	client: Client,
	charge: (client: Client, weight: number) => void,
): string {
	if (outcome.outcome === "accepted") return outcome.hash;
	const { code, message, simulated } = outcome;
	if (simulated) charge(client, FAILED_SIMULATION_WEIGHT);
	throw new RpcError(code === "LIMIT" ? "limit" : "rejected", message, { reason: code });
}
