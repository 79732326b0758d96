// Reads the head of a chain, and the terms of its next block, as numbers and bigints.

import type { ChainRpc } from "./chainRpc.ts";

/** The head of a chain, with the terms of the block after it. */
export interface ChainHead {
	readonly number: number;
	readonly hash: string;
	/** Unix seconds. */
	readonly timestamp: number;
	/** Of the next block: wei a gas, and gas. */
	readonly nextBaseFee: bigint;
	readonly nextGasLimit: bigint;
}

/** Reads the head. The node is asked for the next base fee, since cheat codes can set it. */
export async function readHead(rpc: ChainRpc): Promise<ChainHead> {
	const [latest, pending] = (await rpc.all([
		{ method: "eth_getBlockByNumber", params: ["latest", false] },
		{ method: "eth_getBlockByNumber", params: ["pending", false] },
	])) as [Record<string, string>, Record<string, string>];
	return {
		number: Number(latest.number),
		hash: String(latest.hash),
		timestamp: Number(latest.timestamp),
		nextBaseFee: BigInt(pending.baseFeePerGas ?? 0),
		nextGasLimit: BigInt(pending.gasLimit ?? 0),
	};
}

/** A mined block. */
export interface MinedBlock {
	readonly number: number;
	readonly hash: string;
	readonly parentHash: string;
	readonly timestamp: number;
	readonly baseFeePerGas: bigint;
	readonly gasUsed: bigint;
	/** Hashes. */
	readonly transactions: readonly string[];
}

/** Reads the latest block. */
export async function readLatestBlock(rpc: ChainRpc): Promise<MinedBlock> {
	const block = (await rpc.call("eth_getBlockByNumber", ["latest", false])) as Record<string, unknown>;
	return {
		number: Number(block.number),
		hash: String(block.hash),
		parentHash: String(block.parentHash),
		timestamp: Number(block.timestamp),
		baseFeePerGas: BigInt(String(block.baseFeePerGas)),
		gasUsed: BigInt(String(block.gasUsed)),
		transactions: block.transactions as string[],
	};
}

/** Each address's nonce at block `number`. */
export async function readNonces(
	rpc: ChainRpc,
	addresses: readonly string[],
	number: number,
): Promise<Map<string, number>> {
	const tag = quantity(number);
	const counts = await rpc.all(
		addresses.map((address) => ({ method: "eth_getTransactionCount", params: [address, tag] })),
	);
	return new Map(addresses.map((address, i) => [address, Number(counts[i])]));
}

/** `0x` hex without leading zeros. */
export function quantity(value: number | bigint): string {
	return `0x${value.toString(16)}`;
}
