// Reads from receipts where transactions were mined, and how they ended. Only the node's explicit null means "not mined".

import { toQuantity } from "../../shared/ethereum/hex.ts";
import { type JsonRpcClient, type RpcAnswer, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Inclusion } from "../domain/chain.ts";
import { hash as hashOf } from "./blockReader.ts";

/** Receipts in one request: their logs can be large. */
const BATCH_RECEIPTS = 100;
/** Requests in flight at once. */
const BATCHES_AT_ONCE = 4;
const BATCH_MS = 5_000;
const QUANTITY = /^0x[0-9a-f]{1,13}$/i;

/** Finds out from the node where transactions were mined. */
export type ReceiptReader = ReturnType<typeof receiptReader>;

export function receiptReader(dependencies: { readonly node: Pick<JsonRpcClient, "batch"> }) {
	return {
		/** For each hash its inclusion in the canonical chain up to `maxBlock`, or null. Throws an UpstreamError. */
		async inclusions(hashes: readonly string[], maxBlock: number): Promise<(Inclusion | null)[]> {
			const found: (Inclusion | null)[] = new Array(hashes.length).fill(null);
			let next = 0;
			const work = async (): Promise<void> => {
				while (next < hashes.length) {
					const start = next;
					next += BATCH_RECEIPTS;
					const part = hashes.slice(start, next);
					const answers = await dependencies.node.batch(part.map(receiptCall), BATCH_MS);
					part.forEach((hash, i) => {
						found[start + i] = readInclusion(hash, answers[i], maxBlock);
					});
				}
			};
			await Promise.all(Array.from({ length: BATCHES_AT_ONCE }, work));
			return found;
		},
	};
}

function receiptCall(hash: string) {
	return { method: "eth_getTransactionReceipt", params: [hash] };
}

/** Null if not mined, or mined above `maxBlock`. Throws an UpstreamError for any other answer. */
function readInclusion(hash: string, answer: RpcAnswer | undefined, maxBlock: number): Inclusion | null {
	// An error does not mean "not mined": the node may be indexing, or out of memory.
	if (answer === undefined || !answer.ok || answer.result === undefined)
		throw new UpstreamError("notJsonRpc");
	if (answer.result === null) return null;
	const { transactionHash, blockNumber, blockHash, transactionIndex, status } = answer.result as Record<
		string,
		unknown
	>;
	// Some nodes answer with a receipt of a pending transaction.
	if (blockNumber === null || blockHash === null) return null;
	const block = whole(blockNumber);
	const mined = {
		hash,
		block,
		blockHash: hashOf(blockHash),
		index: whole(transactionIndex),
		reverted: status === toQuantity(0),
	};
	if (hashOf(transactionHash) !== hash.toLowerCase()) throw new UpstreamError("notJsonRpc");
	return block > maxBlock ? null : mined;
}

function whole(value: unknown): number {
	if (typeof value !== "string" || !QUANTITY.test(value)) throw new UpstreamError("notJsonRpc");
	return Number(value);
}
