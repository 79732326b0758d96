// Parses a node's block with full transactions, and pieces of its JSON; what does not fit is an UpstreamError.

import { readQuantity } from "../../shared/ethereum/hex.ts";
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

/** Who signed an EIP-7702 authorization: a lower-case address, or null where the signature is none. */
export type AuthorityOf = (authorization: Authorization) => string | null;

/** A block's name: enough to see whether it is known. */
export interface BlockRef {
	readonly number: number;
	readonly hash: string;
}

/** Number and hash of a block given with or without its transactions. Throws an UpstreamError for anything else. */
export function readBlockRef(json: unknown): BlockRef {
	const block = record(json);
	return { number: Number(quantity(block.number)), hash: hash(block.hash) };
}

/**
 * The block of `json`, the answer to `eth_getBlockByHash` or `…ByNumber` with full transactions. Throws an
 * UpstreamError where it is no such thing.
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
 * Accounts whose nonce an authorization list raised, or would have: one that the chain skipped (wrong nonce, other
 * chain) is named too, which costs a look at the account and nothing else. https://eips.ethereum.org/EIPS/eip-7702
 */
function authorities(list: unknown, authorityOf: AuthorityOf): string[] {
	if (!Array.isArray(list)) return [];
	// One odd entry shall not keep the relay from following the chain.
	return list.flatMap((entry) => {
		const authorization = readAuthorization(entry);
		const authority = authorization === null ? null : authorityOf(authorization);
		return authority ?? [];
	});
}

/** The fields of an object. Throws an UpstreamError for anything else. */
export function record(value: unknown): Fields {
	return known(fieldsOf(value));
}

/** Not as strict as with clients: some nodes pad with zeros. Throws an UpstreamError. */
export function quantity(value: unknown): bigint {
	return known(readQuantity(value));
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
