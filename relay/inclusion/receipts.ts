// Reads from receipts where transactions were mined, and with which result. Only the node's
// explicit null means "not mined", and only a receipt of a followed block means "mined". Behind a
// load balancer, a node may have another block for a moment.

import { toQuantity } from "../../shared/ethereum/hex.ts";
import {
	type JsonRpcClient,
	type RpcAnswer,
	type RpcCall,
	UpstreamError,
} from "../../shared/jsonrpc/client.ts";
import type { Header, Inclusion } from "../domain/chain.ts";
import { readHeader } from "../domain/nodeJson.ts";
import { hash as hashOf } from "./blockReader.ts";
import type { HeadTracker } from "./heads.ts";

/** Calls in one request: the logs of receipts can be large. */
const BATCH_CALLS = 100;
/** Requests in flight at once. */
const BATCHES_AT_ONCE = 4;
const BATCH_MS = 5_000;
const QUANTITY = /^0x[0-9a-f]{1,13}$/i;

/** Finds out from the node where transactions were mined. */
export type ReceiptReader = ReturnType<typeof receiptReader>;

/**
 * Null: not mined. "unfollowed": the node says that a block outside the followed chain contains it.
 */
export type FoundInclusion = Inclusion | "unfollowed" | null;

/** The part of an inclusion that the receipt has. */
type Receipt = Omit<Inclusion, "coinbase">;

interface ReceiptReaderDependencies {
	readonly node: Pick<JsonRpcClient, "batch">;
	readonly chain: Pick<HeadTracker, "coinbaseAt" | "has">;
}

export function receiptReader({ node, chain }: ReceiptReaderDependencies) {
	/** The results of `read` for the answers to any number of calls, in their order. */
	const ask = async <T>(
		calls: readonly RpcCall[],
		read: (answer: RpcAnswer | undefined, index: number) => T,
	): Promise<T[]> => {
		const found: T[] = new Array(calls.length);
		let next = 0;
		const work = async (): Promise<void> => {
			while (next < calls.length) {
				const start = next;
				next += BATCH_CALLS;
				const part = calls.slice(start, next);
				const answers = await node.batch(part, BATCH_MS);
				for (const i of part.keys()) found[start + i] = read(answers[i], start + i);
			}
		};
		await Promise.all(Array.from({ length: BATCHES_AT_ONCE }, work));
		return found;
	};
	/**
	 * Marks inclusions in blocks outside the followed chain as "unfollowed". For blocks older than
	 * the remembered ones, the node is asked again.
	 */
	const followed = async (found: readonly (Receipt | null)[]): Promise<FoundInclusion[]> => {
		const older = new Set<number>();
		for (const one of found) if (one && chain.has(one.block, one.blockHash) === null) older.add(one.block);
		const headers = new Map(await ask([...older].map(blockCall), readNumbered));
		return found.map((one) => {
			if (one === null) return null;
			const header = headers.get(one.block);
			const isFollowed = chain.has(one.block, one.blockHash) ?? header?.hash === one.blockHash;
			const coinbase = chain.coinbaseAt(one.block) ?? header?.miner;
			return isFollowed && coinbase !== undefined ? Object.assign(one, { coinbase }) : "unfollowed";
		});
	};
	return {
		/**
		 * For each hash, its inclusion in the followed chain up to `maxBlock`. Throws an
		 * UpstreamError.
		 */
		async inclusions(hashes: readonly string[], maxBlock: number): Promise<FoundInclusion[]> {
			const read = (answer: RpcAnswer | undefined, i: number) =>
				readInclusion(hashes[i] ?? "", answer, maxBlock);
			return followed(await ask(hashes.map(receiptCall), read));
		},
	};
}

function blockCall(number: number): RpcCall {
	return { method: "eth_getBlockByNumber", params: [toQuantity(number), false] };
}

/** A block's header, with its number. Throws an UpstreamError. */
function readNumbered(answer: RpcAnswer | undefined): readonly [number: number, header: Header] {
	const header = answer?.ok ? readHeader(answer.result) : null;
	if (header === null) throw new UpstreamError("notJsonRpc");
	return [header.number, header];
}

function receiptCall(hash: string): RpcCall {
	return { method: "eth_getTransactionReceipt", params: [hash] };
}

/** Null if not mined, or mined above `maxBlock`. Throws an UpstreamError for any other answer. */
function readInclusion(hash: string, answer: RpcAnswer | undefined, maxBlock: number): Receipt | null {
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
