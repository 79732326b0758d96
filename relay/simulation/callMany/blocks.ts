// Reads blocks of the chain for `eth_callMany`, and derives the blocks that its calls run in.

import { toQuantity } from "../../../shared/ethereum/hex.ts";
import type { RpcAnswer, RpcCall } from "../../../shared/jsonrpc/client.ts";
import { isObject } from "../../../shared/jsonrpc/fields.ts";
import type { CallBundle, NamedBlock } from "../../domain/callMany.ts";
import { type Header, type NextBlock, timestampBehind } from "../../domain/chain.ts";
import { readHeader } from "../../domain/nodeJson.ts";
import type { EngineBlock } from "../engines/engine.ts";
import { blockOverrides, readHex } from "../engines/nodeObjects.ts";

/** Asks the node within the request's deadline. Throws RpcError if it does not answer. */
export type AskNode = (call: RpcCall) => Promise<RpcAnswer>;

/** A block of the chain. */
export interface NodeBlock {
	readonly header: Header;
	/** Its PREVRANDAO; null if the node does not answer with it. */
	readonly mixHash: string | null;
	/** EIP-4788; null if the chain has none. */
	readonly beaconRoot: string | null;
	/** Hashes in order, or objects if requested. */
	readonly transactions: readonly unknown[];
}

/** The block that calls run in. */
export interface CallBlock extends EngineBlock {
	/** 32 bytes of hex; null leaves it to the node. */
	readonly prevRandao: string | null;
	readonly beaconRoot: string | null;
}

/**
 * The block, with full transactions if `full`; null if the node does not have it, undefined if it
 * fails.
 */
export async function readBlock(
	ask: AskNode,
	named: NamedBlock,
	full = false,
): Promise<NodeBlock | null | undefined> {
	const block = typeof named === "bigint" ? toQuantity(named) : named === "pending" ? "latest" : named;
	const answer = await ask({ method: "eth_getBlockByNumber", params: [block, full] });
	if (!answer.ok) return undefined;
	return answer.result === null ? null : parseBlock(answer.result);
}

function parseBlock(value: unknown): NodeBlock | undefined {
	if (!isObject(value) || !Array.isArray(value.transactions)) return undefined;
	const header = readHeader(value);
	if (header === null) return undefined;
	return {
		header,
		mixHash: readHex(value.mixHash),
		beaconRoot: readHex(value.parentBeaconBlockRoot),
		transactions: value.transactions,
	};
}

/** The context for calls in an existing block. */
export function contextOf(
	{ header, mixHash, beaconRoot }: NodeBlock,
	{ stepMs }: Pick<NextBlock, "stepMs">,
	blobBaseFee: bigint,
): CallBlock {
	return {
		...(stepMs === undefined ? {} : { stepMs }),
		stateBlock: header.number,
		number: header.number,
		timestamp: header.timestamp,
		baseFee: header.baseFee,
		blobBaseFee,
		gasLimit: header.gasLimit,
		feeRecipient: header.miner,
		prevRandao: mixHash,
		beaconRoot,
	};
}

/** The block of each bundle: first `within`, then each a block later. Overrides stay in effect. */
export function blocksOf(bundles: readonly CallBundle[], within: CallBlock): readonly CallBlock[] {
	let block = within;
	return bundles.map(({ blockOverride }, i) => {
		if (i > 0) block = { ...block, number: block.number + 1, timestamp: timestampBehind(block, 1) };
		const { blockNumber, timestamp, baseFee, gasLimit, coinbase } = blockOverride;
		block = {
			...block,
			number: blockNumber ?? block.number,
			timestamp: timestamp ?? block.timestamp,
			baseFee: baseFee ?? block.baseFee,
			gasLimit: gasLimit ?? block.gasLimit,
			feeRecipient: coinbase ?? block.feeRecipient,
		};
		return block;
	});
}

/** Block overrides that make a call run in `block`. */
export function overridesOf(block: CallBlock): Record<string, string> {
	return {
		...blockOverrides(block),
		...(block.prevRandao === null ? {} : { prevRandao: block.prevRandao }),
	};
}
