// The coinbases of the last blocks against what they should be: which can be drawn, and how often.

import assert from "node:assert/strict";
import { it } from "node:test";
import { Coinbases } from "../../../../relay/chain/coinbases.ts";
import type { Block } from "../../../../relay/domain/chain.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ScriptedNode } from "../../../support/nodes.ts";

const miner = (index: number) => `0x${index.toString(16).padStart(40, "0")}`;
const block = (number: number, index: number) => ({ number, miner: miner(index) }) as Block;
const DRAWS = 6_400;

/** How often each was drawn, by its index. */
function drawn(coinbases: Coinbases): Map<number, number> {
	const counts = new Map<number, number>();
	for (let i = 0; i < DRAWS; i++) {
		const index = Number(BigInt(coinbases.draw()));
		counts.set(index, (counts.get(index) ?? 0) + 1);
	}
	return counts;
}

it("are drawn as often as they came", () => {
	const coinbases = new Coinbases();
	const applied = Array.from({ length: 64 }, (_, i) => block(100 + i, i < 16 ? 1 : 2));
	coinbases.blocksCame({ reverted: [], applied });
	const counts = drawn(coinbases);
	assert.equal(counts.size, 2);
	// A quarter of the draws, and five standard deviations.
	assert.ok(Math.abs((counts.get(1) ?? 0) - DRAWS / 4) < 5 * Math.sqrt((DRAWS * 3) / 16), `${counts.get(1)}`);
});

it("are forgotten after 64 blocks, and when their block is taken back", () => {
	const coinbases = new Coinbases();
	coinbases.blocksCame({ reverted: [], applied: [block(1, 1), block(2, 2)] });
	assert.deepEqual(new Set(drawn(coinbases).keys()), new Set([1, 2]));
	coinbases.blocksCame({ reverted: [block(2, 2)], applied: [block(2, 3)] });
	assert.deepEqual(new Set(drawn(coinbases).keys()), new Set([1, 3]));
	coinbases.blocksCame({ reverted: [], applied: Array.from({ length: 63 }, (_, i) => block(3 + i, 4)) });
	assert.deepEqual(new Set(drawn(coinbases).keys()), new Set([3, 4]));
	coinbases.blocksCame({ reverted: [], applied: [block(66, 4)] });
	assert.deepEqual(new Set(drawn(coinbases).keys()), new Set([4]));
});

it("do not come from the genesis, once there is a block", () => {
	const coinbases = new Coinbases();
	coinbases.blocksCame({ reverted: [], applied: [block(0, 7)] });
	assert.deepEqual(new Set(drawn(coinbases).keys()), new Set([7]));
	coinbases.blocksCame({ reverted: [], applied: [block(1, 8)] });
	assert.deepEqual(new Set(drawn(coinbases).keys()), new Set([8]));
});

it("are asked of the node at the start", async () => {
	const node = new ScriptedNode({
		eth_blockNumber: () => "0x50",
		eth_getBlockByNumber: ([number]) => ({
			miner: miner(Number(number) < 0x20 ? 1 : 2)
				.toUpperCase()
				.replace("X", "x"),
		}),
	});
	const coinbases = new Coinbases();
	await coinbases.read(node, silentLogger);
	const counts = drawn(coinbases);
	assert.deepEqual(new Set(counts.keys()), new Set([1, 2]));
	// Blocks 17 to 31 of 17 to 80.
	const expected = (DRAWS * 15) / 64;
	assert.ok(Math.abs((counts.get(1) ?? 0) - expected) < 5 * Math.sqrt(expected), `${counts.get(1)}`);
});
