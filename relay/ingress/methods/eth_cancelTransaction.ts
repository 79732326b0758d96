// eth_cancelTransaction: answers true once the cancel is on disk. Best effort: builders are told, and it may still be
// mined.

import { z } from "zod";
import { type CallContext, isWebPage } from "../../../shared/http/callContext.ts";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import { hash } from "../../../shared/jsonrpc/method.ts";
import type { CancelRequest } from "../../domain/submission.ts";
import { relayMethod } from "../methodDependencies.ts";

/** The address of a client whose connection is gone. */
const UNKNOWN = "unknown";

export const eth_cancelTransaction = relayMethod({
	name: "eth_cancelTransaction",
	summary:
		"Cancels a pending transaction: for its submitter, by network address, or its sender, by X-Flashbots-Signature.",
	params: [{ name: "hash", schema: hash }],
	result: z.literal(true),
	ordered: true,
	async handle([wanted], context, { canceller }) {
		if (await canceller.cancel(cancelRequest(wanted, context))) return true as const;
		throw new RpcError("rejected", "transaction not found or no longer pending");
	},
});

/** The network address of a visitor does not speak for him where a web page uses it. */
function cancelRequest(hash: string, { transport, client, origin }: CallContext): CancelRequest {
	const speaks = !isWebPage(origin) && client.address !== UNKNOWN;
	return {
		hash,
		address: speaks ? client.address : null,
		signer: transport === "http" ? client.signer : null,
	};
}
