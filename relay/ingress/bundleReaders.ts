// Decides whose bundles a read shows. Without a signature, it shows those of the network address.
// X-Flashbots-Signature shows only a key's settled bundles: it does not expire, so anybody who has
// seen it can repeat the read here. X-Leeward-Signature shows all bundles of the key.

import { clientOf } from "../../shared/client.ts";
import type { BundleReader } from "../domain/bundleStatus.ts";
import { bundleOwner, type OwnerContext } from "./bundleRequests.ts";
import type { VerifyRead } from "./readSignatures.ts";

/** The reader who makes the request, or the fault of its X-Leeward-Signature. */
export function bundleReader(
	context: OwnerContext,
	verifyRead: VerifyRead,
): BundleReader | { readonly error: string } {
	const { transport, client } = context;
	const from = clientOf(client.address);
	if (transport === "http" && client.readSignature !== undefined) {
		const checked = verifyRead(client.readSignature, "bundles");
		if ("error" in checked) return checked;
		return { owner: checked.signer, client: from, isLive: true };
	}
	const isLive = transport !== "http" || client.signer === null;
	return { owner: bundleOwner(context), client: from, isLive };
}
