// eth_getTransactionByHash: our own pending transactions first, else the node's; the signature is hidden in both.

import { z } from "zod";
import {
	minedTransaction,
	pendingTransaction,
	type RpcTransaction,
} from "../../../shared/ethereum/rpcTransaction.ts";
import { hash } from "../../../shared/jsonrpc/method.ts";
import { callerOf, relayMethod } from "../methodDependencies.ts";

export const eth_getTransactionByHash = relayMethod({
	name: "eth_getTransactionByHash",
	summary: "A transaction, pending private ones included; gasPrice, v, r, s and yParity are always 0x0.",
	params: [{ name: "hash", schema: hash }],
	result: z.record(z.string(), z.unknown()).nullable().describe("the transaction, or null"),
	async handle([wanted], context, { pending, node, chainId }) {
		const own = pending.pending(wanted);
		if (own !== null) return pendingTransaction(own.tx);
		const found = await node.transactionByHash(wanted, callerOf(context));
		return found === null ? null : minedTransaction(found as RpcTransaction, chainId);
	},
});
