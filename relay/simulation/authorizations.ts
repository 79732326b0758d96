// Which entries of a transaction's authorization list (EIP-7702) take effect for an account. It does not know the
// account's code: an account with a contract's code would not be followed, but can't have signed anything.

import type { Authorization } from "../../shared/ethereum/rlp.ts";
import { type DecodedTransaction, senderOfAuthorization } from "../../shared/ethereum/transaction.ts";

/** Who signed a transaction, and the authorizations that came with it. */
export type Signer = Pick<DecodedTransaction, "from" | "chainId" | "authorizationList">;

/**
 * The authorizations of `authority` that take effect, in order, where its nonce is `nonce` before `tx`. Each takes a
 * nonce; the sender's own ones come behind the nonce of the transaction itself.
 * https://eips.ethereum.org/EIPS/eip-7702#behavior
 */
export function effectiveAuthorizations(
	tx: Signer,
	authority: string,
	nonce: bigint,
): readonly Authorization[] {
	let next = authority === tx.from ? nonce + 1n : nonce;
	const effective: Authorization[] = [];
	for (const authorization of tx.authorizationList) {
		const { chainId } = authorization;
		if (authorization.nonce !== next || (chainId !== 0n && chainId !== tx.chainId)) continue;
		// Last, since to recover is dear.
		if (senderOfAuthorization(authorization) !== authority) continue;
		effective.push(authorization);
		next += 1n;
	}
	return effective;
}
