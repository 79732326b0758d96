// What all requests about bundles share: whose a bundle is (the verified signer, or else the client), and the answer that the
// market's outcome becomes. A refusal that cost a simulation is charged for.

import { type CallContext, type Client, clientOf, isWebPage } from "../../shared/http/callContext.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { BundleOutcome } from "../domain/bundle.ts";

/**
 * The client that a bundle belongs to: the address that signed the request, else the network address; over a websocket
 * always the latter. What a web page sends from a visitor's browser comes from the visitor's address without being
 * the visitor's: it has a name of its own, so that no page can replace or watch what the visitor has sent.
 */
export function bundleOwner({ transport, client, origin }: OwnerContext): string {
	if (transport === "http" && client.signer !== null) return client.signer;
	return isWebPage(origin) ? `web ${client.address}` : client.address;
}

/** Who sent a bundle: its owner, and the network by which bundles are bounded, whatever keys sign them. */
export function bundleClient(context: OwnerContext): { readonly owner: string; readonly network: string } {
	return { owner: bundleOwner(context), network: clientOf(context.client.address) };
}

/** Whether the request may cancel what its client has sent; unsigned from a web page, it counts as a stranger's. */
export function mayCancel({ transport, client, origin }: OwnerContext): boolean {
	return (transport === "http" && client.signer !== null) || !isWebPage(origin);
}

/** What it needs to know of a request. */
export type OwnerContext = Pick<CallContext, "transport" | "client" | "origin">;

/** What a bundle that fails its simulation weighs beyond the one of its call: as much as an eth_call in all. */
export const FAILED_SIMULATION_WEIGHT = 9;

/** The hash of a bundle that was taken. Throws RpcError `limit` or `rejected`, with the refusal's code as `data.reason`. */
export function takenHash(
	outcome: BundleOutcome,
	client: Client,
	charge: (client: Client, weight: number) => void,
): string {
	if (outcome.outcome === "accepted") return outcome.hash;
	const { code, message, simulated } = outcome;
	if (simulated) charge(client, FAILED_SIMULATION_WEIGHT);
	throw new RpcError(code === "LIMIT" ? "limit" : "rejected", message, { reason: code });
}
