// Bundles of unsigned calls that are ready to be run: what the client asked for and the block it named come in, the
// block of each bundle and the calls as a node takes them go out. It asks nothing.

import { toQuantity } from "../../../shared/ethereum/hex.ts";
import type { CallBundle, UnsignedCall } from "../../domain/callMany.ts";
import type { BaseState, CallBlock, NodeBlock } from "./blocks.ts";

/** Calls in their order, the blocks they run in, and the state that the first one builds on. */
export interface CallsRun {
	readonly base: BaseState;
	readonly blocks: readonly BlockCalls[];
}

export interface BlockCalls {
	readonly block: CallBlock;
	readonly calls: readonly UnsignedCall[];
}

/**
 * The bundles with their blocks: the first one's is `within`, each further one's comes a block and `slotSeconds` later;
 * what one overrides stays so for those behind it.
 */
export function planBlocks(
	bundles: readonly CallBundle[],
	within: NodeBlock,
	blobBaseFee: bigint,
	slotSeconds: number,
): readonly BlockCalls[] {
	const { header, mixHash } = within;
	let block: CallBlock = {
		stateBlock: header.number,
		number: header.number,
		timestamp: header.timestamp,
		baseFee: header.baseFee,
		blobBaseFee,
		gasLimit: header.gasLimit,
		feeRecipient: header.miner,
		prevRandao: mixHash,
	};
	return bundles.map(({ transactions, blockOverride }, i) => {
		if (i > 0) block = { ...block, number: block.number + 1, timestamp: block.timestamp + slotSeconds };
		block = {
			...block,
			number: blockOverride.blockNumber ?? block.number,
			timestamp: blockOverride.timestamp ?? block.timestamp,
			baseFee: blockOverride.baseFee ?? block.baseFee,
			gasLimit: blockOverride.gasLimit ?? block.gasLimit,
			feeRecipient: blockOverride.coinbase ?? block.feeRecipient,
		};
		return { block, calls: transactions };
	});
}

/** The gas that a call has. */
export function gasOf(call: UnsignedCall, block: CallBlock): bigint {
	return call.gas ?? block.gasLimit;
}

/** A call as a node takes it; the nonce is the account's at that point, whatever it is. */
export function unsignedCallObject(call: UnsignedCall, block: CallBlock): Record<string, unknown> {
	const { from, to, gasPrice, maxFeePerGas, maxPriorityFeePerGas, accessList } = call;
	return {
		from,
		...(to === null ? {} : { to }),
		gas: toQuantity(gasOf(call, block)),
		value: toQuantity(call.value),
		input: call.data,
		...(gasPrice === null ? {} : { gasPrice: toQuantity(gasPrice) }),
		...(maxFeePerGas === null ? {} : { maxFeePerGas: toQuantity(maxFeePerGas) }),
		...(maxPriorityFeePerGas === null ? {} : { maxPriorityFeePerGas: toQuantity(maxPriorityFeePerGas) }),
		...(accessList.length === 0 ? {} : { accessList }),
	};
}
