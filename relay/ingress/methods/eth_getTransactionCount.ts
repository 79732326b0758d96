// eth_getTransactionCount: the node's count; with `pending`, raised over the account's private transactions.

import { z } from "zod";
import { toQuantity } from "../../../shared/ethereum/hex.ts";
import { address, blockReference } from "../../../shared/jsonrpc/method.ts";
import { callerOf, relayMethod } from "../methodDependencies.ts";

export const eth_getTransactionCount = relayMethod({
	name: "eth_getTransactionCount",
	summary: "The account's next nonce; with the tag pending, private transactions count too.",
	params: [
		{ name: "address", schema: address },
		{ name: "block", schema: blockReference.optional() },
	],
	result: z.string().describe("the count as 0x hex"),
	async handle([account, block = "latest"], context, { pending, node }) {
		const caller = callerOf(context);
		if (block !== "pending") return node.transactionCount(account, block, caller);
		return toQuantity(pending.pendingNonce(account, await node.pendingCount(account, caller)));
	},
});
