// Tests plain bundles: when and to whom they are sent, how they end, limits, simulations and their
// failures, and heads or cancels that come meanwhile.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { bundleHash } from "../../../../relay/domain/bundle.ts";
import type { SimulationErrorCode } from "../../../../relay/domain/simulation.ts";
import { SLICE_MS } from "../../../../shared/clock.ts";
import { PlainFixture as Fixture, type PlainOptions } from "./auctionFixture.ts";

const RANGE = { first: 101, last: 105, uuid: "u" };
const SENT = "send t1 for 101 to a,b";

describe("a bundle that is taken", () => {
	test("is sent at once for the next block to all builders, under the hash of its transactions", async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1, 2]);
		assert.equal(hash, bundleHash([1, 2].map((label) => fixture.mined(label).tx.hash)));
		assert.deepEqual(fixture.lines(), ["send t1 t2 for 101 to a,b"]);
		assert.deepEqual(fixture.published, ["? 101 ACCEPTED", "? 101 SENT"]);
		assert.deepEqual([fixture.status(hash, 101), fixture.detail(hash, 101)?.bid], ["SENT", null]);
		assert.deepEqual(fixture.outcomes, ["accepted"]);
	});

	test("is sent for every block of its range, with a status for each, and is gone afterwards", async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1], { first: 102, last: 103, uuid: "u" });
		assert.deepEqual([fixture.lines(), fixture.status(hash, 102)], [[], "ACCEPTED"]);
		for (let i = 0; i < 4; i += 1) await fixture.block();
		assert.deepEqual(fixture.lines(), ["send t1 for 102 to a,b", "send t1 for 103 to a,b"]);
		assert.deepEqual(
			[102, 103, 104].map((block) => fixture.status(hash, block)),
			["NOT_INCLUDED notChosen", "NOT_INCLUDED notChosen", undefined],
		);
		// Its last block has come: there is nothing to cancel.
		fixture.table.cancel("me", "u");
		assert.deepEqual(fixture.lines(), []);
	});
});

const REFUND = { percent: 50, recipient: null, bodyIdx: 0 };
for (const [name, refunding, builders, isTaken] of [
	["where no builder pays refunds", [], null, false],
	["of a builder that pays none", ["b"], ["a"], false],
	["of builders of which one pays", ["b"], ["a", "b"], true],
	["of all, of which one pays", ["b"], null, true],
] as const) {
	test(`a refund ${name}: ${isTaken ? "taken" : "refused"}; without one the bundle is taken`, async () => {
		const fixture = new Fixture({ refunding });
		const outcome = await fixture.plainBundle([1], { refund: REFUND, builders });
		assert.equal(outcome.outcome === "rejected" ? outcome.code : "taken", isTaken ? "taken" : "NO_BIDDING");
		if (!isTaken) assert.deepEqual([fixture.lines(), fixture.published], [[], []]);
		await fixture.taken([1], { builders });
	});
}

/**
 * An event for a bundle of t1 and t2 for 101 to 105 or for later blocks, the calls to builders
 * after that, and its final status in its first block.
 */
const ENDS: readonly (readonly [
	name: string,
	options: PlainOptions,
	ends: (fixture: Fixture) => unknown,
	lines: readonly string[],
	status: string,
])[] = [
	["a block holds it", {}, (f) => f.block([f.mined(1), f.mined(2)]), [], "INCLUDED"],
	["a part of it is mined by itself", {}, (f) => f.block([f.mined(2)]), [], "DROPPED transactionMined"],
	[
		"it is cancelled",
		{ builders: ["b"] },
		(f) => f.table.cancel("me", "u"),
		["cancel it for 101 at b"],
		"CANCELLED",
	],
	[
		"it is cancelled before its first block",
		{ first: 104 },
		(f) => f.table.cancel("me", "u"),
		[],
		"CANCELLED",
	],
	[
		"a bundle for a later block takes its uuid",
		{},
		(f) => f.taken([3], { first: 130, uuid: "u" }),
		["cancel it for 101 at a,b"],
		"REPLACED",
	],
	[
		"a bid takes its uuid",
		{},
		async (f) => f.accepted("A", await f.target("T"), 5n, { uuid: "u" }),
		["cancel it for 101 at a,b", "send T A for 101 to a,b"],
		"REPLACED",
	],
];

test("an ended bundle is not sent again, and is cancelled at builders that have it for a coming block", async () => {
	for (const [name, options, ends, lines, status] of ENDS) {
		const fixture = new Fixture();
		const hash = await fixture.taken([1, 2], { ...RANGE, ...options });
		fixture.lines();
		await ends(fixture);
		await fixture.turn();
		const ended = fixture.status(hash, options.first ?? 101);
		assert.deepEqual([fixture.lines(), ended], [lines, status], name);
		for (let i = 0; i < 5; i += 1) await fixture.block();
		assert.deepEqual(fixture.lines(), [], name);
	}
});

describe("a uuid", () => {
	test("passes to a new bundle under the same name; builders that do not get that one receive a cancel", async () => {
		const fixture = new Fixture();
		const old = await fixture.taken([1], RANGE);
		const same = await fixture.taken([2], RANGE);
		assert.deepEqual([fixture.lines(), fixture.names], [[SENT, "send t2 for 101 to a,b"], 1]);
		const fewer = await fixture.taken([3], { ...RANGE, builders: ["a"] });
		assert.deepEqual(fixture.lines(), ["send t3 for 101 to a", "cancel it for 101 at b"]);
		assert.deepEqual(
			[old, same, fewer].map((hash) => fixture.status(hash, 101)),
			["REPLACED", "REPLACED", "SENT"],
		);
		await fixture.block();
		assert.deepEqual(fixture.lines(), ["send t3 for 102 to a"]);
	});
});

describe("without a uuid", () => {
	const ONE = 1;
	const OWN = 2;
	for (const [name, first, last, bundles, more] of [
		["the same blocks", 102, 103, ONE, {}],
		["more blocks", 101, 105, ONE, {}],
		["fewer blocks", 103, 103, ONE, {}],
		["blocks that begin where the others end", 104, 105, ONE, {}],
		["blocks that end where the others begin", 101, 101, ONE, {}],
		["blocks behind one that is in neither", 105, 105, OWN, {}],
		["another owner", 102, 103, OWN, { owner: "you" }],
		["a uuid", 102, 103, OWN, { uuid: "u" }],
	] as const) {
		test(`again for ${name}: ${bundles === ONE ? "one bundle for all of them" : "a bundle of its own"}`, async () => {
			const fixture = new Fixture();
			await fixture.taken([1], { first: 102, last: 103 });
			await fixture.taken([1], { first, last, ...more });
			for (let i = 0; i < 6; i += 1) await fixture.block();
			const blocks = new Set([102, 103]);
			for (let block: number = first; block <= last; block += 1) blocks.add(block);
			const expected = [...blocks].sort().map((block) => `send t1 for ${block} to a,b`);
			const lines = fixture.lines();
			assert.deepEqual([...new Set(lines)], expected);
			if (bundles === ONE) assert.equal(lines.length, expected.length);
			assert.equal(fixture.names, bundles);
		});
	}
});

test("the limit on a client's transactions in bundles holds whatever keys it signs with", async () => {
	const bytes = { total: 10_000, perClient: 10_000 };
	const fixture = new Fixture({ plain: { transactions: { total: 7, perClient: 5 }, bytes } });
	const network = "me";
	await fixture.taken([1, 2], { uuid: "u" });
	await fixture.taken([3, 4], { owner: "me too", network });
	const own = await fixture.refused([5, 6], { owner: "me three", network });
	assert.equal(own, "LIMIT limit exceeded: too many bundles from this client");
	assert.equal(fixture.simulations.plain.length, 2, "it is refused before it costs the node anything");
	// In the place of one of its own there is room, and others have theirs until all of it is taken.
	await fixture.taken([5, 6, 7], { uuid: "u" });
	await fixture.taken([8], { owner: "you" });
	const all = await fixture.refused([1, 2], { owner: "you" });
	assert.equal(all, "LIMIT limit exceeded: too many bundles in all");
	await fixture.block();
	await fixture.taken([5, 6]);
});

const NEXT = { first: 101 };

for (const [fails, expected] of [
	["EXECUTION_REVERTED", "BUNDLE_REVERTED bundle reverted: no luck (body[1])"],
	["OUT_OF_GAS", "BUNDLE_REVERTED bundle reverted: it is OUT_OF_GAS (body[1])"],
	["INSUFFICIENT_FUNDS", "BAD_TRANSACTION it is INSUFFICIENT_FUNDS (body[1])"],
	["NONCE_GAP", "BAD_TRANSACTION it is NONCE_GAP (body[1])"],
	["FEE_CAP_TOO_LOW", "BAD_TRANSACTION it is FEE_CAP_TOO_LOW (body[1])"],
] as const) {
	test(`${fails} in its only block: refused with the reason, nothing is sent, and the bundle with its uuid stays`, async () => {
		const fixture = new Fixture();
		const old = await fixture.taken([3], RANGE);
		fixture.lines();
		fixture.published.length = 0;
		fixture.simulations.fails.set("t2", fails);
		assert.equal(await fixture.refused([1, 2], { ...NEXT, uuid: "u" }), expected);
		assert.deepEqual([fixture.lines(), fixture.published, fixture.status(old, 101)], [[], [], "SENT"]);
	});
}

test("an entry that may revert may fail in execution, but must be valid in the block", async () => {
	const fixture = new Fixture();
	fixture.simulations.fails.set("t1", "EXECUTION_REVERTED");
	await fixture.taken([1, 2], { ...NEXT, mayRevert: [1] });
	assert.deepEqual(fixture.lines(), ["send t1 t2 for 101 to a,b"]);
	fixture.simulations.fails.set("t1", "NONCE_GAP");
	assert.match(await fixture.refused([1, 3], { ...NEXT, mayRevert: [1] }), /^BAD_TRANSACTION/);
});

test("funds and nonces of later entries are not checked against the account, since earlier entries may provide them", async () => {
	const fixture = new Fixture();
	fixture.accounts.balances.set(fixture.signerOf(2).address, 0n);
	await fixture.taken([1, 2, { by: fixture.signerOf(1), nonce: 1 }]);
	assert.match(await fixture.refused([2]), /^BAD_TRANSACTION insufficient funds/);
});

test("before a refusal the account is read again, and the bundle is retried if it has changed", async () => {
	const fixture = new Fixture();
	const { address } = fixture.signerOf(1);
	fixture.accounts.balances.set(address, 1n);
	const paid = fixture.taken([1]);
	fixture.accounts.onFresh = () => {
		fixture.accounts.balances.delete(address);
		return 101;
	};
	await fixture.clock.advance(200);
	await paid;
	assert.deepEqual([fixture.laterHeads, fixture.lines()], [1, ["send t1 for 101 to a,b"]]);
});

for (const fails of ["INSUFFICIENT_FUNDS", "NONCE_GAP", "FEE_CAP_TOO_LOW"] as const) {
	test(`${fails} while its range has later blocks: it is accepted and sent when it passes`, async () => {
		const fixture = new Fixture();
		await fixture.taken([2], RANGE);
		fixture.simulations.fails.set("t1", fails);
		const hash = await fixture.taken([1], RANGE);
		assert.deepEqual(fixture.lines(), ["send t2 for 101 to a,b", "cancel it for 101 at a,b"]);
		await fixture.block();
		fixture.simulations.fails.clear();
		await fixture.block();
		assert.deepEqual(fixture.lines(), ["send t1 for 103 to a,b"]);
		assert.deepEqual(
			[101, 102, 103].map((block) => fixture.status(hash, block)),
			["NOT_INCLUDED invalid", "NOT_INCLUDED invalid", "SENT"],
		);
	});
}

test("is SENT when a request is written; a bundle that was never sent has no reason for its end", async () => {
	const fixture = new Fixture();
	fixture.builders.holding = true;
	const hash = await fixture.taken([1], RANGE);
	assert.deepEqual([fixture.status(hash, 101), fixture.detail(hash, 101)?.placed], ["ACCEPTED", false]);
	await fixture.block();
	assert.equal(fixture.status(hash, 101), "NOT_INCLUDED");
	for (const leaves of fixture.builders.waiting.splice(0).slice(-1)) leaves();
	assert.deepEqual([fixture.status(hash, 102), fixture.detail(hash, 102)?.placed], ["SENT", true]);
	await fixture.block();
	assert.equal(fixture.status(hash, 102), "NOT_INCLUDED notChosen");
});

describe("at each head", () => {
	test("what the node refuses is tried again when that is said, and for the next head if it is not", async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1], RANGE);
		fixture.tried();
		const rows = [
			["refused", ["t1 in 102", "t1 in 102", "t1 in 102"], "NOT_INCLUDED notSimulated"],
			["impossible", ["t1 in 103"], "NOT_INCLUDED notSimulated"],
			[null, ["t1 in 104"], "SENT"],
		] as const;
		for (const [fails, tried] of rows) {
			if (fails === null) fixture.simulations.fails.clear();
			else fixture.simulations.fails.set("t1", fails);
			await fixture.block();
			await fixture.clock.advance(2_000);
			await fixture.clock.advance(2_000);
			assert.deepEqual(fixture.tried(), tried);
		}
		const stages = [102, 103, 104].map((block) => fixture.status(hash, block));
		assert.deepEqual(
			stages,
			rows.map(([, , stage]) => stage),
		);
	});

	test("it is simulated again: if it fails it is not sent for that block, and is tried again for the next", async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1], RANGE);
		const fails: readonly (SimulationErrorCode | null)[] = ["EXECUTION_REVERTED", "INSUFFICIENT_FUNDS", null];
		for (const code of fails) {
			if (code === null) fixture.simulations.fails.clear();
			else fixture.simulations.fails.set("t1", code);
			await fixture.block();
		}
		assert.deepEqual(fixture.tried(), ["t1 in 101", "t1 in 102", "t1 in 103", "t1 in 104"]);
		assert.deepEqual(fixture.lines(), ["send t1 for 101 to a,b", "send t1 for 104 to a,b"]);
		assert.deepEqual(
			[101, 102, 103, 104].map((block) => fixture.status(hash, block)),
			["NOT_INCLUDED notChosen", "NOT_INCLUDED reverted", "NOT_INCLUDED invalid", "SENT"],
		);
	});
});

/**
 * The time range of a bundle for blocks 101 to 103, which come at 1212, 1224 and 1236. Then the
 * blocks that it is tried and sent for.
 */
const TIMES = [
	["a time at which the first block is", { from: 1_212, until: 1_212 }, [101]],
	["no time before the second block's", { from: 1_213, until: Number.POSITIVE_INFINITY }, [102, 103]],
	["no time behind the second block's", { from: 0, until: 1_224 }, [101, 102]],
	["a time between two blocks", { from: 1_213, until: 1_223 }, []],
] as const;
for (const [name, times, blocks] of TIMES) {
	test(`a bundle for ${name} is sent for the blocks of that time, and its status says why it is not for others`, async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1], { first: 101, last: 103, times });
		for (let i = 0; i < 3; i += 1) await fixture.block();
		assert.deepEqual(
			fixture.lines(),
			blocks.map((block) => `send t1 for ${block} to a,b`),
		);
		// It may well fail at another time. Only where there is no right one it is simulated at a wrong
		// one.
		assert.deepEqual(
			[...new Set(fixture.tried())],
			(blocks.length > 0 ? blocks : [101]).map((block) => `t1 in ${block}`),
		);
		assert.deepEqual(
			[101, 102, 103].map((block) => fixture.status(hash, block)),
			[101, 102, 103].map(
				(block) => `NOT_INCLUDED ${blocks.some((one) => one === block) ? "notChosen" : "timestamp"}`,
			),
		);
	});
}

test("when slots are missed before the next block, bundles go out or are cancelled by its new time", async () => {
	const fixture = new Fixture();
	const early = await fixture.taken([1], { first: 101, times: { from: 0, until: 1_212 } });
	const late = await fixture.taken([2], { first: 101, times: { from: 1_224, until: 1_224 } });
	assert.deepEqual(fixture.lines(), [SENT]);
	await fixture.missSlots(1);
	assert.deepEqual(fixture.lines(), ["cancel it for 101 at a,b", "send t2 for 101 to a,b"]);
	assert.deepEqual(fixture.statuses(101, early, late), ["NOT_INCLUDED timestamp", "SENT"]);
	// A time that was published may be taken back.
	await fixture.missSlots(0);
	assert.deepEqual(fixture.statuses(101, early, late), ["SENT", "NOT_INCLUDED timestamp"]);
});

test("a bundle with a time that has passed is refused, and one with a time goes only to builders that check it", async () => {
	const fixture = new Fixture();
	const times = { from: 0, until: 1_199 };
	assert.equal(await fixture.refused([1], { times }), "BLOCK_PAST bundle maxTimestamp 1199 is in the past");
	fixture.builders.timed = ["b"];
	const timed = { times: { from: 1_212, until: 1_212 } };
	await fixture.taken([1], timed);
	assert.deepEqual(fixture.lines(), ["send t1 for 101 to b"]);
	const none = "NO_BIDDING no builder accepts minTimestamp and maxTimestamp";
	assert.equal(await fixture.refused([1], { ...timed, builders: ["a"] }), none);
});

test("the same bundle again with other times replaces it at the builders", async () => {
	const fixture = new Fixture();
	const times = [
		{ from: 0, until: 1_212 },
		{ from: 1_212, until: Number.POSITIVE_INFINITY },
	];
	for (const one of times) await fixture.taken([1], { times: one });
	assert.deepEqual(
		fixture.builders.sent.map((one) => one.times),
		times,
	);
	assert.equal(fixture.names, 1);
});

/** An event while it is tried for 102, the calls to builders then, and its recorded status. */
const MEANWHILE: readonly (readonly [
	name: string,
	happens: (fixture: Fixture) => unknown,
	lines: readonly string[],
	status: string,
])[] = [
	["the next head", (f) => f.block(), ["send t1 for 103 to a,b"], "NOT_INCLUDED notSimulated"],
	["a cancel", (f) => f.table.cancel("me", "u"), [], "CANCELLED"],
	["a block that holds it", (f) => f.block([f.mined(1)]), [], "INCLUDED"],
];
for (const [name, happens, lines, status] of MEANWHILE) {
	test(`${name} during its simulation aborts that, and its result is ignored`, async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1], RANGE);
		fixture.simulations.holding.add("t1");
		await fixture.block();
		const trial = fixture.simulations.plain.at(-1);
		fixture.simulations.holding.clear();
		fixture.simulations.isLate = true;
		fixture.lines();
		await happens(fixture);
		assert.equal(trial?.signal?.aborted, true);
		assert.deepEqual(fixture.lines(), lines);
		fixture.simulations.finish("t1");
		await fixture.turn();
		assert.deepEqual(fixture.lines(), []);
		const block = status === "CANCELLED" ? 101 : 102;
		assert.equal(fixture.status(hash, block), status);
	});
}

/**
 * An event while the accounts of a new bundle are asked for, the refusal's code or its stage, and
 * the calls to builders.
 */
const RACES: readonly (readonly [
	name: string,
	options: PlainOptions,
	happens: (fixture: Fixture) => unknown,
	expected: string,
	lines: readonly string[],
])[] = [
	["its only block comes", NEXT, (f) => f.block(), "BLOCK_PAST", []],
	["a block of its range comes", RANGE, (f) => f.block(), "SENT", ["send t1 for 102 to a,b"]],
	["its cancel comes", RANGE, (f) => f.table.cancel("me", "u"), "CANCELLED", []],
	[
		"a later one of its uuid is faster",
		RANGE,
		(f) => f.taken([2], RANGE),
		"REPLACED",
		["send t2 for 101 to a,b"],
	],
	["the very same one is faster", RANGE, (f) => f.taken([1], RANGE), "SENT", ["send t1 for 101 to a,b"]],
];

test("what happens while a new bundle is simulated counts", async () => {
	for (const [name, options, happens, expected, lines] of RACES) {
		const fixture = new Fixture();
		const open = fixture.holdAccounts();
		const sent = fixture.plainBundle([1], options);
		await fixture.turn();
		fixture.accounts.gate = Promise.resolve();
		await happens(fixture);
		open();
		const outcome = await sent;
		const result = outcome.outcome === "rejected" ? outcome.code : fixture.status(outcome.hash, fixture.next);
		assert.deepEqual([result, fixture.lines()], [expected, lines], name);
	}
});

describe("the chain", () => {
	test("drops the block that contains it: it is sent for the rest of its range, and may still be cancelled", async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1], RANGE);
		await fixture.block([fixture.mined(1)]);
		assert.equal(fixture.status(hash, 101), "INCLUDED");
		fixture.lines();
		await fixture.reorganise();
		assert.deepEqual(
			[fixture.status(hash, 101), fixture.detail(hash, 101)?.blockHash, fixture.lines()],
			["NOT_INCLUDED reorganised", null, ["send t1 for 102 to a,b"]],
		);
		fixture.table.cancel("me", "u");
		assert.deepEqual(
			[fixture.status(hash, 102), fixture.lines()],
			["CANCELLED", ["cancel it for 102 at a,b"]],
		);
	});
});

test("many bundles are looked at in slices, for one head after another", async () => {
	const fixture = new Fixture();
	const hashes: string[] = [];
	for (let i = 1; i <= 30; i += 1) hashes.push(await fixture.taken([i], { first: 101, last: 105 }));
	// As if a slice's time were over at each reading.
	let ms = fixture.clock.monotonic();
	fixture.clock.monotonic = () => {
		ms += SLICE_MS;
		return ms;
	};
	const missed = (block: number) =>
		hashes.filter((hash) => fixture.status(hash, block) === "NOT_INCLUDED notChosen").length;
	const first = fixture.block();
	const inOneTurn = missed(101);
	assert.ok(inOneTurn > 0 && inOneTurn < 10, `${inOneTurn} in one turn`);
	const second = fixture.block();
	assert.equal(missed(101), inOneTurn);
	await Promise.all([first, second]);
	await fixture.turn();
	assert.equal(missed(101), hashes.length);
	assert.ok(hashes.every((hash) => fixture.status(hash, 103) === "SENT"));
});
