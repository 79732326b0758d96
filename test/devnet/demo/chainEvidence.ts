// Reads evidence from a node that traces: places in blocks, wei that reached an address, balances. It never asks the
// relay.

import type { JsonRpcProvider } from "ethers";

/** A mined transaction. Addresses lower case; amounts in wei. */
export interface Landed {
	readonly hash: string;
	readonly block: number;
	/** Place in its block. */
	readonly index: number;
	readonly from: string;
	readonly to: string;
	readonly value: bigint;
	readonly succeeded: boolean;
	/** What its sender paid for gas. */
	readonly gasCost: bigint;
	/** The part of {@link gasCost} that went to the coinbase. */
	readonly priorityFee: bigint;
}

/** One call of a `callTracer` trace. https://geth.ethereum.org/docs/developers/evm-tracing/built-in-tracers */
export interface TracedCall {
	readonly type: string;
	readonly to?: string;
	readonly value?: string;
	readonly error?: string;
	readonly calls?: readonly TracedCall[];
}

/** The node's word on it, null while it is not mined. */
export async function landed(node: JsonRpcProvider, hash: string): Promise<Landed | null> {
	const [transaction, receipt] = await Promise.all([
		node.getTransaction(hash),
		node.getTransactionReceipt(hash),
	]);
	if (transaction === null || receipt === null) return null;
	const block = await node.getBlock(receipt.blockNumber);
	return {
		hash,
		block: receipt.blockNumber,
		index: receipt.index,
		from: receipt.from.toLowerCase(),
		to: (receipt.to ?? "").toLowerCase(),
		value: transaction.value,
		succeeded: receipt.status === 1,
		gasCost: receipt.gasUsed * receipt.gasPrice,
		priorityFee: receipt.gasUsed * (receipt.gasPrice - (block?.baseFeePerGas ?? 0n)),
	};
}

/** The transaction's calls, as the node executes it again. */
export async function trace(node: JsonRpcProvider, hash: string): Promise<TracedCall> {
	return (await node.send("debug_traceTransaction", [hash, { tracer: "callTracer" }])) as TracedCall;
}

/** Wei that reached `address` by the call and what it calls; what failed is not counted, with all that is in it. */
export function reached(address: string, call: TracedCall): bigint {
	if (call.error !== undefined) return 0n;
	// A delegate or static call moves nothing.
	const moves = call.type === "CALL" && call.to?.toLowerCase() === address.toLowerCase();
	const own = moves ? BigInt(call.value ?? 0) : 0n;
	return (call.calls ?? []).reduce((sum, inner) => sum + reached(address, inner), own);
}

/** Hashes of a block's transactions, in order, and its coinbase in lower case. */
export async function blockAt(
	node: JsonRpcProvider,
	number: number,
): Promise<{ readonly transactions: readonly string[]; readonly coinbase: string }> {
	const block = await node.getBlock(number);
	if (block === null) throw new Error(`the node has no block ${number}`);
	return { transactions: block.transactions, coinbase: block.miner.toLowerCase() };
}
