// Whose bundles a read shows. Unsigned ones are for their network address. Of a key's bundles, X-Flashbots-Signature opens what is
// settled: it does not expire, and whoever has seen it can repeat the read here. X-Leeward-Signature opens all of them.

import { clientOf } from "../../shared/client.ts";
import type { BundleReader } from "../domain/bundleStatus.ts";
import { bundleOwner, type OwnerContext } from "./bundleRequests.ts";
import type { VerifyRead } from "./readSignatures.ts";

/** The reader that a request is, or what is wrong with its X-Leeward-Signature. */
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
