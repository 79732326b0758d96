// Parses blocks, and single fields of them, from the node's JSON. Malformed JSON is an UpstreamError.

import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { Authorization } from "../../shared/ethereum/rlp.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Block } from "../domain/chain.ts";
import {
	type Fields,
	fieldsOf,
	readAddress,
	readAuthorization,
	readHash,
	readHeader,
} from "../domain/nodeJson.ts";

/** Recovers the signer of an EIP-7702 authorization: a lower-case address, or null if the signature is invalid. */
export type AuthorityOf = (authorization: Authorization) => string | null;

/**
 * Parses the answer to `eth_getBlockByHash` or `…ByNumber` with full transactions. Throws an UpstreamError.
 */
export function readBlock(json: unknown, authorityOf: AuthorityOf): Block {
	const block = record(json);
	if (!Array.isArray(block.transactions)) throw new UpstreamError("notJsonRpc");
	const transactions: { hash: string; from: string }[] = [];
	const touched = new Set<string>();
	for (const entry of block.transactions) {
		const transaction = record(entry);
		const from = address(transaction.from);
		transactions.push({ hash: hash(transaction.hash), from });
		touched.add(from);
		for (const authority of authorities(transaction.authorizationList, authorityOf)) touched.add(authority);
	}
	return {
		...known(readHeader(block)),
		transactions,
		touched: [...touched],
	};
}

/**
 * The signers of an authorization list, whose nonces it may have raised. Those of invalid authorizations (wrong nonce, other
 * chain) are included too, which only costs a read of the account. https://eips.ethereum.org/EIPS/eip-7702
 */
function authorities(list: unknown, authorityOf: AuthorityOf): string[] {
	if (!Array.isArray(list)) return [];
	// A malformed entry is skipped, so that the relay can still follow the chain.
	return list.flatMap((entry) => {
		const authorization = readAuthorization(entry);
		const authority = authorization === null ? null : authorityOf(authorization);
		return authority ?? [];
	});
}

/** The fields of an object. Throws an UpstreamError. */
export function record(value: unknown): Fields {
	return known(fieldsOf(value));
}

/** A number; less strict than with clients, because some nodes pad with zeros. Throws an UpstreamError. */
export function quantity(value: unknown): bigint {
	return known(parseNodeQuantity(value));
}

/** Lower case. Throws an UpstreamError. */
export function hash(value: unknown): string {
	return known(readHash(value));
}

/** Lower case. Throws an UpstreamError. */
export function address(value: unknown): string {
	return known(readAddress(value));
}

function known<T>(value: T | null): T {
	if (value === null) throw new UpstreamError("notJsonRpc");
	return value;
}
