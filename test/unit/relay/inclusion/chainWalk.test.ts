// Walks from one chain to another: single cases, and random walks through a tree of branches.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Block } from "../../../../relay/domain/chain.ts";
import { type WalkLimits, walk } from "../../../../relay/inclusion/chainWalk.ts";

const LIMITS: WalkLimits = { kept: 128, missed: 64 };

/** A block called `hash` on `parent`. */
function child(hash: string, parent: Block | null): Block {
	return {
		number: parent === null ? 0 : parent.number + 1,
		hash,
		parentHash: parent?.hash ?? "none",
		timestamp: 0,
		gasLimit: 0n,
		gasUsed: 0n,
		baseFee: 0n,
		excessBlobGas: 0n,
		blobGasUsed: 0n,
		miner: "",
		transactions: [],
		touched: [],
	};
}

/** `count` blocks on `parent`, called `prefix` and their number. */
function branch(prefix: string, parent: Block | null, count: number): Block[] {
	const blocks: Block[] = [];
	for (let i = 0; i < count; i++) {
		const on = blocks.at(-1) ?? parent;
		blocks.push(child(`${prefix}${on === null ? 0 : on.number + 1}`, on));
	}
	return blocks;
}

/** Answers parents out of `blocks`; counts. */
function parents(...blocks: readonly Block[][]) {
	const byHash = new Map(blocks.flat().map((block) => [block.hash, block]));
	const asked: string[] = [];
	return {
		asked,
		async parentOf(block: Block) {
			asked.push(block.parentHash);
			return byHash.get(block.parentHash) ?? null;
		},
	};
}

const names = (blocks: readonly Block[]) => blocks.map(({ hash }) => hash);
function last(blocks: readonly Block[]): Block {
	const block = blocks.at(-1);
	assert.ok(block !== undefined);
	return block;
}

const trunk = branch("a", null, 10);
const forkAt = (number: number, count: number, prefix: string) =>
	branch(prefix, trunk[number] ?? null, count);

describe("walk", () => {
	const rows: readonly (readonly [
		name: string,
		chain: readonly Block[],
		to: readonly Block[],
		reverted: string,
		applied: string,
		asked: number,
	])[] = [
		["the next block", trunk.slice(0, 9), trunk, "", "a9", 0],
		["three blocks on", trunk.slice(0, 7), trunk, "", "a7 a8 a9", 2],
		["another block of the same height", trunk, forkAt(8, 1, "b"), "a9", "b9", 0],
		["a longer branch", trunk, forkAt(7, 4, "c"), "a9 a8", "c8 c9 c10 c11", 3],
		["a shorter branch", trunk, forkAt(5, 1, "d"), "a9 a8 a7 a6", "d6", 0],
		["back to the oldest one kept", trunk.slice(4), trunk.slice(0, 5), "a9 a8 a7 a6 a5", "", 0],
		["a branch from the oldest one kept", trunk.slice(4), forkAt(4, 2, "e"), "a9 a8 a7 a6 a5", "e5 e6", 1],
	];
	for (const [name, chain, to, reverted, applied, asked] of rows) {
		test(name, async () => {
			const source = parents([...to], trunk);
			const way = await walk(chain, last(to), source.parentOf, LIMITS);
			assert.ok(way !== null);
			assert.deepEqual(names(way.update.reverted).join(" "), reverted);
			assert.deepEqual(names(way.update.applied).join(" "), applied);
			assert.equal(way.update.gap, false);
			assert.equal(way.update.head, last(to));
			assert.deepEqual(last(way.chain), last(to));
			assert.equal(source.asked.length, asked);
		});
	}

	test("every way in a tree of branches, one after another, leads where it should", async () => {
		const branches = [
			trunk,
			...[1, 3, 5, 7].map((at) => [...trunk.slice(0, at + 1), ...forkAt(at, 6, `f${at}-`)]),
		];
		const heads = branches.flatMap((path) => path.slice(2).map((_, i) => path.slice(0, i + 3)));
		let chain: readonly Block[] = trunk;
		let seed = 1;
		for (let i = 0; i < 500; i++) {
			seed = (seed * 48_271) % 2_147_483_647;
			const to = heads[seed % heads.length] ?? trunk;
			const way = await walk(chain, last(to), parents(...branches).parentOf, LIMITS);
			assert.ok(way !== null);
			if (last(chain).hash === last(to).hash) assert.deepEqual(way.update.applied, []);
			const common = chain.length - way.update.reverted.length;
			assert.deepEqual(names([...chain].slice(common).reverse()), names(way.update.reverted));
			assert.deepEqual(names([...chain.slice(0, common), ...way.update.applied]), names(to));
			chain = way.chain;
		}
	});
});
