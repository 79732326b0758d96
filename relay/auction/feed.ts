// The fields of a transaction that searchers may see: never a signature, a blob or an
// authorization. The rules in senderRunner.ts decide which transactions are disclosed.

import { bytesToHex, toQuantity } from "../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { entriesOf } from "../../shared/ethereum/transactionFields.ts";

/**
 * The partial pending transaction: quantities in hex, `to` null for a creation. Legacy and type-1
 * transactions carry `gasPrice`, repeated in both EIP-1559 fee fields. Authorizations (EIP-7702)
 * contain signatures and are left out.
 */
export function partialPendingTransaction(tx: DecodedTransaction): Record<string, unknown> {
	return {
		chainId: toQuantity(tx.chainId),
		to: tx.to,
		value: toQuantity(tx.value),
		data: bytesToHex(tx.data),
		accessList: entriesOf(tx.accessList),
		nonce: toQuantity(tx.nonce),
		maxPriorityFeePerGas: toQuantity(tx.maxPriorityFeePerGas),
		maxFeePerGas: toQuantity(tx.maxFeePerGas),
		...(tx.gasPrice === null ? {} : { gasPrice: toQuantity(tx.gasPrice) }),
		...(tx.maxFeePerBlobGas === null
			? {}
			: { maxFeePerBlobGas: toQuantity(tx.maxFeePerBlobGas), blobVersionedHashes: tx.blobVersionedHashes }),
		gas: toQuantity(tx.gasLimit),
		type: toQuantity(tx.type),
		hash: tx.hash,
		from: tx.from,
	};
}
