// What a bidder's backruns did in blocks, and how long that is held against it: the rule as a table.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	bidderOf,
	type ConductFact,
	type DatedFact,
	factsOf,
	isKept,
	mayHave,
	type Round,
	type RoundBid,
	standingOf,
} from "../../../../relay/auction/conduct.ts";

const BIDDER = { owner: "me", client: "net", sender: "0xs", contract: "0xc" };
const BLOCK_TIME_MS = 100_000;

function bid(
	backrun: string,
	value: bigint,
	took: Record<string, string> = { a: "accepted", b: "accepted" },
): RoundBid {
	const deliveries = Object.entries(took).map(([builder, answer]) => {
		const late = answer === "late";
		const at = late ? BLOCK_TIME_MS - 999 : BLOCK_TIME_MS - 1_000;
		return { at, builder, kind: "bundle" as const, answer: late ? "accepted" : (answer as "accepted") };
	});
	return { bundle: `of ${backrun}`, backrun, bidder: BIDDER, value, deliveries } as RoundBid;
}

/** `kind backrun` of each fact, with what was paid. */
function facts(round: Partial<Round>): readonly string[] {
	const whole: Round = { time: BLOCK_TIME_MS, makers: ["a", "b"], bids: [], landed: null, ...round };
	return factsOf(whole).map(({ kind, bundle, paid }) => `${kind} ${bundle} ${paid}`);
}

const landed = (backrun: string, transfers: bigint | null, brought = transfers ?? 0n) => ({
	backrun,
	transfers,
	brought,
});

for (const [transfers, kind] of [
	[100n, "landed"],
	[99n, "landed"],
	[98n, "short"],
	[0n, "short"],
	[1_000n, "landed"],
] as const) {
	test(`a bid of 100 that paid ${transfers}: ${kind}`, () => {
		assert.deepEqual(facts({ bids: [bid("x", 100n)], landed: landed("x", transfers) }), [
			`${kind} of x ${transfers}`,
		]);
	});
}

test("priority fees are no payment; what the node can't tell is held against nobody", () => {
	assert.deepEqual(facts({ bids: [bid("x", 100n)], landed: landed("x", 1n, 1_000n) }), ["short of x 1"]);
	assert.deepEqual(facts({ bids: [bid("x", 100n)], landed: landed("x", null, 100n) }), ["landed of x null"]);
});

const LOST: readonly (readonly [string, Partial<Round>, boolean])[] = [
	["to a lower one", { landed: landed("y", 50n) }, true],
	["to none", {}, true],
	["to a dearer one", { landed: landed("y", 101n) }, false],
	["to one that brought as much with its fees", { landed: landed("y", 50n, 100n) }, false],
	["where nobody can be told to have made the block", { makers: [] }, false],
	[
		"where one of those who may have made it refused it",
		{ bids: [bid("x", 100n, { a: "accepted", b: "rejected" })] },
		false,
	],
	["where it failed to reach one of them", { bids: [bid("x", 100n, { a: "accepted", b: "failed" })] }, false],
	["where one of them has not answered", { bids: [bid("x", 100n, { a: "accepted" })] }, false],
	["where one of them had it late", { bids: [bid("x", 100n, { a: "accepted", b: "late" })] }, false],
	[
		"where one that it did not reach can't have made the block",
		{ makers: ["a"], bids: [bid("x", 100n, { a: "accepted" })] },
		true,
	],
];
for (const [name, round, isLoss] of LOST) {
	test(`a bid of 100 that lost ${name}: ${isLoss ? "a loss" : "no loss"}`, () => {
		const found = facts({ bids: [bid("x", 100n)], ...round });
		assert.deepEqual(found, isLoss ? ["lost of x null"] : []);
	});
}

test("a builder surely has not got what failed, was rejected or never left", () => {
	assert.deepEqual(
		(["accepted", "timeout", undefined, "failed", "rejected", "unsent"] as const).map(mayHave),
		[true, true, true, false, false, false],
	);
});

const dated = (kind: ConductFact["kind"], block: number): DatedFact => ({
	...{ kind, block, bundle: "b", bidder: BIDDER, bid: "100", paid: kind === "short" ? "1" : null },
});

test("who was short is barred for 32 blocks, twice as long with each time, 7,200 at most", () => {
	const blocks = Array.from({ length: 10 }, (_, i) => 1_000_000 + i * 10_000);
	for (const [i, block] of blocks.entries()) {
		const known = blocks.slice(0, i + 1).map((one) => dated("short", one));
		const until = block + Math.min(32 * 2 ** i, 7_200);
		assert.deepEqual(standingOf(known, until)?.bar, { until, bid: 100n, paid: 1n, block });
		assert.equal(standingOf(known, until + 1), null);
	}
});

const BEHIND: readonly (readonly [string, readonly DatedFact[], number | null])[] = [
	["two losses", [dated("lost", 1), dated("lost", 2)], null],
	["three", [1, 2, 3].map((n) => dated("lost", n)), 67],
	["three in 64 blocks", [1, 2, 64].map((n) => dated("lost", n)), 128],
	["three in 65", [1, 2, 65].map((n) => dated("lost", n)), null],
	["landing between", [dated("lost", 1), dated("lost", 2), dated("landed", 3), dated("lost", 4)], null],
	["a short one between", [dated("lost", 1), dated("lost", 2), dated("short", 3), dated("lost", 4)], 68],
	["many, the last three count", [1, 30, 60, 90].map((n) => dated("lost", n)), 154],
];
for (const [name, known, until] of BEHIND) {
	test(`${name}: ${until === null ? "as anybody" : `behind until block ${until}`}`, () => {
		assert.equal(standingOf(known, 66)?.behindUntil ?? null, until);
		if (until !== null) assert.equal(standingOf(known, until + 1)?.behindUntil ?? null, null);
	});
}

test("a creation and a transfer to the fixed coinbase call no contract: they count by their sender", () => {
	const by = { owner: "me", network: "net" };
	const contract = (to: string | null, fixed?: string) => bidderOf({ from: "0xs", to }, by, fixed).contract;
	assert.deepEqual(
		[contract("0xc"), contract(null), contract("0xf", "0xf"), contract("0xf")],
		["0xc", "0xs", "0xs", "0xf"],
	);
	assert.deepEqual(bidderOf({ from: "0xs", to: "0xc" }, null, undefined), {
		...BIDDER,
		owner: null,
		client: null,
	});
});

test("what can't count any more is not kept", () => {
	assert.deepEqual([isKept({ kind: "lost" }, 100, 291), isKept({ kind: "lost" }, 100, 292)], [true, false]);
	assert.ok(isKept({ kind: "short" }, 100, 50_000) && !isKept({ kind: "short" }, 100, 50_500));
});
