// The parameters of eth_cancelTransaction: the hash, and optionally the sender's signature over Cancel(transaction), typed data that a
// wallet shows. Unlike a body's signature it works on every transport and for each call of a batch by itself.

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

/** Who has signed the cancel of `wanted`, in lower case. Throws RpcError `invalidParams` if that is nobody's signature. */
export function cancelSigner(chainId: bigint, wanted: string, given: string): string {
	const signer = cancelledBy(chainId, wanted, given);
	if (signer !== null) return signer;
	throw new RpcError(
		"invalidParams",
		`invalid params: signature: expected one over Cancel(bytes32 transaction) on chain ${chainId}, with r, s and v in range`,
	);
}
