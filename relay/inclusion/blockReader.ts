// Parses blocks, and single fields of them, from the node's JSON. Malformed JSON is an
// UpstreamError.

import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import { senderOfAuthorization } from "../../shared/ethereum/transaction.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Fields } from "../../shared/jsonrpc/fields.ts";
import type { Block } from "../domain/chain.ts";
import { fieldsOf, readAddress, readAuthorization, readHash, readHeader } from "../domain/nodeJson.ts";
import type { Recoveries } from "../domain/recoveries.ts";

/**
 * Parses the answer to `eth_getBlockByHash` or `…ByNumber` with full transactions. Rejects with an
 * UpstreamError.
 */
export async function readBlock(json: unknown, recoveries: Pick<Recoveries, "each">): Promise<Block> {
	const block = record(json);
	if (!Array.isArray(block.transactions)) throw new UpstreamError("notJsonRpc");
	const transactions: { hash: string; from: string }[] = [];
	const touched = new Set<string>();
	const authorizations: unknown[] = [];
	for (const entry of block.transactions) {
		const transaction = record(entry);
		const from = address(transaction.from);
		transactions.push({ hash: hash(transaction.hash), from });
		touched.add(from);
		if (Array.isArray(transaction.authorizationList)) authorizations.push(...transaction.authorizationList);
	}
	const header = known(readHeader(block));
	// The signers' nonces may have been raised. Invalid authorizations (wrong nonce, other chain)
	// are included too, which only costs a read of the account.
	// https://eips.ethereum.org/EIPS/eip-7702
	await recoveries.each(authorizations, null, (entry) => {
		const authorization = readAuthorization(entry);
		// A malformed entry is skipped, so that the relay can still follow the chain.
		const authority = authorization === null ? null : senderOfAuthorization(authorization);
		if (authority !== null) touched.add(authority);
	});
	return { ...header, transactions, touched: [...touched] };
}

/** The fields of an object. Throws an UpstreamError. */
export function record(value: unknown): Fields {
	return known(fieldsOf(value));
}

/**
 * A number; less strict than with clients, because some nodes pad with zeros. Throws an
 * UpstreamError.
 */
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
