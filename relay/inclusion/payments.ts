// Reads payments from the node: the transfers of a block, and what a transaction paid to the coinbase. Bids and refunds are
// judged elsewhere.

import { parseNodeQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import { type Fields, fieldsOf, readAddress } from "../domain/nodeJson.ts";
import type { PaidBlock, PaymentReader } from "../domain/ports.ts";
import { address, hash as hashOf, quantity, record } from "./blockReader.ts";

const ASK_MS = 5_000;

/** Wei that `address` received in a frame of the call tracer and its nested frames, less what it sent. */
export type ReceivedByFrames = (frame: Readonly<Record<string, unknown>>, address: string) => bigint;

export function paymentReader(dependencies: {
	readonly node: Pick<JsonRpcClient, "call">;
	readonly received: ReceivedByFrames;
}): PaymentReader {
	const { node, received } = dependencies;
	/** The result as an object, or null. */
	const ask = async (method: string, params: readonly unknown[]): Promise<Fields | null> => {
		const answer = await node.call({ method, params }, ASK_MS);
		if (!answer.ok) throw new UpstreamError("notJsonRpc");
		return fieldsOf(answer.result);
	};
	return {
		async block(hash) {
			const block = await ask("eth_getBlockByHash", [hash, true]);
			return block === null ? null : readPaidBlock(block);
		},
		async brought(hash, block) {
			const receipt = await ask("eth_getTransactionReceipt", [hash]);
			const price = parseNodeQuantity(receipt?.effectiveGasPrice);
			const gas = parseNodeQuantity(receipt?.gasUsed);
			if (price === null || gas === null) throw new UpstreamError("notJsonRpc");
			const fees = gas * (price - block.baseFee);
			const answer = await node.call(
				{ method: "debug_traceTransaction", params: [hash, { tracer: "callTracer" }] },
				ASK_MS,
			);
			const frame = answer.ok ? fieldsOf(answer.result) : null;
			if (frame !== null) return { fees, transfers: received(frame, block.coinbase) };
			return { fees, transfers: receipt?.status === "0x0" ? 0n : null };
		},
		async canonicalHash(number) {
			const block = await ask("eth_getBlockByNumber", [toQuantity(number), false]);
			return block === null ? null : hashOf(block.hash);
		},
	};
}

function readPaidBlock(block: Fields): PaidBlock {
	const { transactions } = block;
	if (!Array.isArray(transactions)) throw new UpstreamError("notJsonRpc");
	return {
		number: Number(quantity(block.number)),
		timestamp: Number(quantity(block.timestamp)),
		coinbase: address(block.miner),
		baseFee: parseNodeQuantity(block.baseFeePerGas) ?? 0n,
		transactions: transactions.map((one: unknown) => {
			const tx = record(one);
			return {
				hash: hashOf(tx.hash),
				from: address(tx.from),
				to: readAddress(tx.to),
				value: quantity(tx.value),
			};
		}),
	};
}
