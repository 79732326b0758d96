// Determines which of a transaction's authorizations take effect, and the nonces that they use
// (EIP-7702). Pure, except that recovered signers are remembered.

import { type DecodedTransaction, senderOfAuthorization } from "../../shared/ethereum/transaction.ts";
import type { Authorization } from "../../shared/ethereum/transactionFields.ts";

/** A transaction's sender, and its authorizations. */
export type Signer = Pick<DecodedTransaction, "from" | "chainId" | "authorizationList">;

/** Authorizations for the transaction's chain, or for any chain. */
export function authorizationsForChain({ chainId, authorizationList }: Signer): readonly Authorization[] {
	return authorizationList.filter((one) => one.chainId === 0n || one.chainId === chainId);
}

/** The authorizations of `tx` for its chain, by signer, in order. */
export function authorizationsBySigner(tx: Signer): ReadonlyMap<string, readonly Authorization[]> {
	const bySigner = new Map<string, Authorization[]>();
	for (const authorization of authorizationsForChain(tx)) {
		const authority = senderOfAuthorization(authorization);
		if (authority === null) continue;
		const own = bySigner.get(authority);
		if (own === undefined) bySigner.set(authority, [authorization]);
		else own.push(authorization);
	}
	return bySigner;
}

/**
 * The last effective one of an account's own authorizations. `nonce` is the account's next nonce
 * when the first one counts. Each effective one uses a nonce.
 * https://eips.ethereum.org/EIPS/eip-7702#behavior
 */
export function lastEffective(own: readonly Authorization[], nonce: bigint): Authorization | null {
	let last: Authorization | null = null;
	let next = nonce;
	for (const authorization of own) {
		if (authorization.nonce !== next) continue;
		last = authorization;
		next += 1n;
	}
	return last;
}

/**
 * Counts the nonces that `tx` uses: its sender's next one, and one for each effective
 * authorization.
 */
export function useNonces(nonces: Map<string, bigint>, tx: Signer): void {
	nonces.set(tx.from, (nonces.get(tx.from) ?? 0n) + 1n);
	for (const authorization of authorizationsForChain(tx)) {
		const authority = senderOfAuthorization(authorization) ?? "";
		if (nonces.get(authority) === authorization.nonce) nonces.set(authority, authorization.nonce + 1n);
	}
}
