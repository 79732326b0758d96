// The next block's fees by formulas and by the node, and the coinbases of the last blocks.

import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import { Coinbases } from "../../../../relay/chain/coinbases.ts";
import { nextBaseFee, nextBlobBaseFee, nextBlockReader } from "../../../../relay/chain/nextBlock.ts";
import type { Block } from "../../../../relay/domain/chain.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { Slots } from "../../../../shared/ethereum/slots.ts";
import { always, PRAGUE } from "../../../support/forks.ts";
import type { NodeFault } from "../../../support/nodes.ts";
import { startProxiedChain } from "./nodeFixture.ts";

const SLOTS = new Slots({ setMs: 12_000 }, { clock: systemClock });

const { proxy, client } = await startProxiedChain();

const HEAD: Block = {
	number: 100,
	hash: `0x${"11".repeat(32)}`,
	parentHash: `0x${"22".repeat(32)}`,
	timestamp: 1_700_000_000,
	gasLimit: 60_000_000n,
	gasUsed: 30_000_000n,
	baseFee: 1_000_000_000n,
	excessBlobGas: 0n,
	blobGasUsed: 0n,
	miner: `0x${"00".repeat(20)}`,
	transactions: [],
	touched: [],
};
const BLOB = 131_072n;

describe("nextBaseFee", () => {
	// The first three are go-ethereum's TestCalcBaseFee; the rest follow from EIP-1559.
	const rows: readonly [string, Partial<Block>, bigint][] = [
		["at the target it stays", { gasLimit: 20_000_000n, gasUsed: 10_000_000n }, 1_000_000_000n],
		["below it falls", { gasLimit: 20_000_000n, gasUsed: 9_000_000n }, 987_500_000n],
		["above it rises", { gasLimit: 20_000_000n, gasUsed: 11_000_000n }, 1_012_500_000n],
		["an empty block takes an eighth off", { gasUsed: 0n }, 875_000_000n],
		["a full block adds an eighth", { gasUsed: 60_000_000n }, 1_125_000_000n],
		["it rises by one wei at least", { gasUsed: 30_000_001n, baseFee: 7n }, 8n],
		["seven wei do not fall any more", { gasUsed: 0n, baseFee: 7n }, 7n],
		["eight wei fall to seven", { gasUsed: 0n, baseFee: 8n }, 7n],
		["zero rises to one", { gasUsed: 60_000_000n, baseFee: 0n }, 1n],
		["no gas limit", { gasLimit: 0n, gasUsed: 0n }, 1_000_000_000n],
	];
	for (const [name, fields, expected] of rows) {
		test(name, () => assert.equal(nextBaseFee({ ...HEAD, ...fields }), expected));
	}
});

describe("nextBlobBaseFee", () => {
	const TARGET = 14n * BLOB;
	/** e^(TWO / 11684671) is 2 rounded down, and of one less 1. */
	const TWO = 8_099_199n;
	const DEAR = 10n ** 9n;
	const rows: readonly [string, excess: bigint, used: bigint, baseFee: bigint, expected: bigint][] = [
		["no excess, at the target", 0n, TARGET, 0n, 1n],
		["the last excess of one wei", TWO - 1n, TARGET, 0n, 1n],
		["the first excess of two", TWO, TARGET, 0n, 2n],
		["below the target the difference is taken off", TWO + BLOB, TARGET - BLOB, 0n, 2n],
		["to nothing at the least", BLOB, 0n, 0n, 1n],
		["EIP-7918: not while blobs cost less than their execution", TWO, 0n, DEAR, 2n],
		["EIP-7918: then a third of what was used is added", TWO - BLOB, 3n * BLOB, DEAR, 2n],
		["EIP-7918: and no more", TWO - BLOB - 1n, 3n * BLOB, DEAR, 1n],
	];
	for (const [name, excessBlobGas, blobGasUsed, baseFee, expected] of rows) {
		test(name, () => {
			assert.equal(nextBlobBaseFee({ ...HEAD, excessBlobGas, blobGasUsed, baseFee }), expected);
		});
	}
});

describe("nextBlockReader on a chain", () => {
	const next = async (head: Block) =>
		nextBlockReader({ slots: SLOTS }, { node: client, forks: always(PRAGUE) })(head);

	const own = `0x${HEAD.baseFee.toString(16)}`;
	test("believes the node where it differs from the formulas", async () => {
		const result = { baseFeePerGas: [own, "0x5"], baseFeePerBlobGas: ["0x1", "0x77"] };
		proxy.setFault({ kind: "result", result });
		const { number, timestamp, baseFee, blobBaseFee } = await next(HEAD);
		assert.deepEqual([number, timestamp, baseFee, blobBaseFee], [101, 1_700_000_012, 5n, 0x77n]);
	});

	const history = (lists: object): NodeFault => ({ kind: "result", result: lists });
	const faults: readonly [string, NodeFault][] = [
		["an error", { kind: "error", code: -32601, message: "no" }],
		["HTML", { kind: "html", status: 502 }],
		["a closed connection", { kind: "destroy" }],
		["no lists", history({})],
		["a list that ends at the head", history({ baseFeePerGas: [own] })],
		["another block's fee", history({ baseFeePerGas: ["0x1", "0x2"], baseFeePerBlobGas: ["0x1", "0x9"] })],
	];
	for (const [name, fault] of faults) {
		test(`${name}: falls back to both formulas`, async () => {
			proxy.setFault(fault);
			const excessBlobGas = 300n * BLOB;
			const head = { ...HEAD, gasUsed: 60_000_000n, excessBlobGas, blobGasUsed: 14n * BLOB };
			const told = await next(head);
			// An eighth up; and, as the floor of EIP-7918 holds, a third of 14 blobs on top:
			// e^(39933269/11684671).
			assert.equal(told.baseFee, 1_125_000_000n);
			assert.equal(told.blobBaseFee, 30n);
		});
	}
});

describe("the coinbases of the last blocks", () => {
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
		assert.ok(
			Math.abs((counts.get(1) ?? 0) - DRAWS / 4) < 5 * Math.sqrt((DRAWS * 3) / 16),
			`${counts.get(1)}`,
		);
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
});
