// The parameters of eth_cancelTransaction: the hash, and optionally the sender's signature over
// Cancel(transaction), typed data that a wallet shows. A body's signature covers the whole body.
// This one works on every transport and for each call of a batch.

import { cancelledBy } from "./ethereum/typedData.ts";
import { RpcError } from "./jsonrpc/errors.ts";
import { hash, signature } from "./jsonrpc/method.ts";

export const CANCEL_PARAMS = [
	{ name: "hash", schema: hash },
	{
		name: "signature",
		schema: signature
			.optional()
			.describe("the sender's, over Cancel(bytes32 transaction) as typed data (EIP-712)"),
	},
] as const;

/**
 * The lower-case address that signed the cancel of `wanted`. Throws RpcError `invalidParams` if the
 * signature is invalid.
 */
export function cancelSigner(chainId: bigint, wanted: string, given: string): string {
	const signer = cancelledBy(chainId, wanted, given);
	if (signer !== null) return signer;
	throw new RpcError(
		"invalidParams",
		`invalid params: signature: expected one over Cancel(bytes32 transaction) on chain ${chainId}, with r, s and v in range`,
	);
}
