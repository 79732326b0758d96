// The blocks that the bundles of one eth_callMany run in.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallBlockOverride } from "../../../../../relay/domain/callMany.ts";
import { blocksOf, type CallBlock } from "../../../../../relay/simulation/callMany/blocks.ts";

const WITHIN: CallBlock = {
	...{ stateBlock: 99, number: 100, timestamp: 1_200, baseFee: 7n, blobBaseFee: 1n, gasLimit: 30_000_000n },
	...{ feeRecipient: "0xminer", prevRandao: null, beaconRoot: null },
};

test("each bundle runs a block later than the one before it, and what one overrides stays so for the later ones", () => {
	const overrides: readonly CallBlockOverride[] = [
		{},
		{ baseFee: 9n, gasLimit: 1_000n, coinbase: "0xother" },
		{},
		{ blockNumber: 200, timestamp: 5_000 },
		{ baseFee: 3n },
	];
	const blocks = blocksOf(
		overrides.map((blockOverride) => ({ transactions: [], blockOverride })),
		WITHIN,
	);
	const other = { baseFee: 9n, gasLimit: 1_000n, feeRecipient: "0xother" };
	assert.deepEqual(blocks, [
		WITHIN,
		{ ...WITHIN, ...other, number: 101, timestamp: 1_212 },
		{ ...WITHIN, ...other, number: 102, timestamp: 1_224 },
		{ ...WITHIN, ...other, number: 200, timestamp: 5_000 },
		{ ...WITHIN, ...other, baseFee: 3n, number: 201, timestamp: 5_012 },
	]);
});
