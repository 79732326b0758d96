// Makes the JSON of transactions for `eth_getTransactionByHash`, and of headers for `newHeads`. It
// never shows the signature of a pending private transaction. `v`, `r`, `s` and `yParity` are 0x0
// for every type and in each authorization, and so is `gasPrice`. For the node's transactions, the
// caller chooses between the same form and the unchanged one, which clients can verify.

import { toQuantity } from "./hex.ts";
import type { DecodedTransaction } from "./transaction.ts";
import { type Authorization, entriesOf } from "./transactionFields.ts";

/** A transaction as a JSON-RPC object. */
export type RpcTransaction = Readonly<Record<string, unknown>>;

/** `always`: all transactions; `pending`: only pending private ones. */
export const SIGNATURE_HIDING = ["always", "pending"] as const;
export type SignatureHiding = (typeof SIGNATURE_HIDING)[number];

const HIDDEN = { gasPrice: "0x0", v: "0x0", r: "0x0", s: "0x0", yParity: "0x0" } as const;

/**
 * The signature of an authorization. go-ethereum and alloy do not decode an authorization without
 * one.
 */
const HIDDEN_AUTHORIZATION = { yParity: "0x0", r: "0x0", s: "0x0" } as const;

/** A pending private transaction, without blobs. */
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
		accessList: entriesOf(tx.accessList),
		...(tx.maxFeePerBlobGas === null
			? {}
			: { maxFeePerBlobGas: toQuantity(tx.maxFeePerBlobGas), blobVersionedHashes: tx.blobVersionedHashes }),
		...(tx.type === 4 ? { authorizationList: tx.authorizationList.map(hiddenAuthorization) } : {}),
		...HIDDEN,
	};
}

function hiddenAuthorization({ chainId, address, nonce }: Authorization): RpcTransaction {
	return { chainId: toQuantity(chainId), address, nonce: toQuantity(nonce), ...HIDDEN_AUTHORIZATION };
}

/**
 * A node's or fallback's transaction in the form of {@link pendingTransaction}. The authorizations
 * of a mined one keep their signatures, which are public then. For older types both fees are the
 * gas price.
 */
export function withoutSignature(found: RpcTransaction, chainId: bigint): RpcTransaction {
	const price = found.gasPrice;
	return {
		...found,
		// Nodes omit it if the transaction has no chain id.
		chainId: found.chainId ?? toQuantity(chainId),
		maxFeePerGas: found.maxFeePerGas ?? price,
		maxPriorityFeePerGas: found.maxPriorityFeePerGas ?? price,
		accessList: found.accessList ?? [],
		...((found.blockNumber ?? null) === null ? pendingAuthorizations(found) : {}),
		...HIDDEN,
	};
}

/**
 * The authorizations of a third party's pending transaction. A type 4 always gets a list, since
 * some parties hide it.
 */
function pendingAuthorizations({ type, authorizationList }: RpcTransaction): RpcTransaction {
	if (!Array.isArray(authorizationList)) return type === "0x4" ? { authorizationList: [] } : {};
	return {
		authorizationList: authorizationList.map((one: Partial<Record<string, unknown>>) => ({
			chainId: one?.chainId,
			address: one?.address,
			nonce: one?.nonce,
			...HIDDEN_AUTHORIZATION,
		})),
	};
}

/** Fields of a block that are not part of geth's `newHeads`. */
const BODY_FIELDS: ReadonlySet<string> = new Set([
	"transactions",
	"uncles",
	"withdrawals",
	"size",
	"totalDifficulty",
]);

/** The header of a node's block object. */
export function headerOf(block: object): Record<string, unknown> {
	return Object.fromEntries(Object.entries(block).filter(([name]) => !BODY_FIELDS.has(name)));
}
