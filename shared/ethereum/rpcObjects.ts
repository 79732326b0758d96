// Transactions as `eth_getTransactionByHash` shows them, and headers as `newHeads` does. Of a private one that is pending the signature never leaves:
// `gasPrice`, `v`, `r`, `s` and `yParity` are 0x0 for every type. The node's have these fields hidden too, unless the
// operator has them shown, by which clients can verify what is public anyway.

import { toQuantity } from "./hex.ts";
import type { DecodedTransaction } from "./transaction.ts";

/** JSON-RPC transaction object (interface section 2.2). */
export type RpcTransaction = Readonly<Record<string, unknown>>;

/** `always`: of all; `pending`: of what is pending and private. */
export const SIGNATURE_HIDING = ["always", "pending"] as const;
export type SignatureHiding = (typeof SIGNATURE_HIDING)[number];

const HIDDEN = { gasPrice: "0x0", v: "0x0", r: "0x0", s: "0x0", yParity: "0x0" } as const;

/** A pending private transaction. Blobs and authorizations, which are signatures too, are left out. */
export function pendingTransaction(tx: DecodedTransaction): RpcTransaction {
	return {
		blockHash: null,
		blockNumber: null,
		transactionIndex: null,
		hash: tx.hash,
		type: toQuantity(BigInt(tx.type)),
		chainId: toQuantity(tx.chainId),
		nonce: toQuantity(tx.nonce),
		from: tx.from,
		to: tx.to,
		value: toQuantity(tx.value),
		gas: toQuantity(tx.gasLimit),
		maxFeePerGas: toQuantity(tx.maxFeePerGas),
		maxPriorityFeePerGas: toQuantity(tx.maxPriorityFeePerGas),
		input: `0x${tx.data.toString("hex")}`,
		accessList: tx.accessList,
		...(tx.maxFeePerBlobGas === null
			? {}
			: { maxFeePerBlobGas: toQuantity(tx.maxFeePerBlobGas), blobVersionedHashes: tx.blobVersionedHashes }),
		...HIDDEN,
	};
}

/** The node's answer with the same fields: the fees of older types are both their gas price. */
export function minedTransaction(node: RpcTransaction, chainId: bigint): RpcTransaction {
	const price = node.gasPrice;
	return {
		...node,
		// Nodes leave it out of transactions that name no chain.
		chainId: node.chainId ?? toQuantity(chainId),
		maxFeePerGas: node.maxFeePerGas ?? price,
		maxPriorityFeePerGas: node.maxPriorityFeePerGas ?? price,
		accessList: node.accessList ?? [],
		...HIDDEN,
	};
}

/** What a node tells of a block beside its header: geth's `newHeads` has none of it. */
const BODY_FIELDS: ReadonlySet<string> = new Set([
	"transactions",
	"uncles",
	"withdrawals",
	"size",
	"totalDifficulty",
]);

/** The header of a block as a node told it. */
export function headerOf(block: object): Record<string, unknown> {
	return Object.fromEntries(Object.entries(block).filter(([name]) => !BODY_FIELDS.has(name)));
}
