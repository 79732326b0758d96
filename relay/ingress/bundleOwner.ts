// The owner of a bundle: the verified signer, or else the client. Uuids and status of bundles are kept by owner.

import { type CallContext, clientOf, isWebPage } from "../../shared/http/callContext.ts";

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
