// Plain bundles are simulated before they go out: what is refused, what waits for a later block of its range, what is
// tried again at each head, and what meets a head, a cancel, another bundle or a reorganisation on its way.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { SimulationErrorCode } from "../../../../relay/domain/simulation.ts";
import { PlainFixture as Fixture, type PlainOptions } from "./plainFixture.ts";

const RANGE = { first: 101, last: 104, uuid: "u" };
const NEXT = { first: 101 };

test("a bundle is tried as the next block, all of it, on behalf of its client", async () => {
	const fixture = new Fixture();
	await fixture.taken([1, 2], { ...NEXT, owner: "you" });
	const [request] = fixture.simulations.plain;
	assert.deepEqual(
		[request?.labels, request?.client, request?.block.number, request?.block.stateBlock],
		["t1 t2", "you", 101, 100],
	);
	assert.equal(request?.accounts.size, 2);
});

for (const [fails, expected] of [
	["EXECUTION_REVERTED", "BUNDLE_REVERTED bundle reverted: no luck (body[1])"],
	["OUT_OF_GAS", "BUNDLE_REVERTED bundle reverted: it is OUT_OF_GAS (body[1])"],
	["INSUFFICIENT_FUNDS", "BAD_TRANSACTION it is INSUFFICIENT_FUNDS (body[1])"],
	["NONCE_GAP", "BAD_TRANSACTION it is NONCE_GAP (body[1])"],
	["FEE_CAP_TOO_LOW", "BAD_TRANSACTION it is FEE_CAP_TOO_LOW (body[1])"],
] as const) {
	test(`${fails} in its only block: refused, told why, nothing goes out; what holds its uuid stays`, async () => {
		const fixture = new Fixture();
		const old = await fixture.taken([3], RANGE);
		fixture.lines();
		fixture.told.length = 0;
		fixture.simulations.fails.set("t2", fails);
		assert.equal(await fixture.refused([1, 2], { ...NEXT, uuid: "u" }), expected);
		assert.deepEqual([fixture.lines(), fixture.told, fixture.status(old, 101)], [[], [], "SENT"]);
	});
}

test("what may revert may; what may revert and can't be in the block may not", async () => {
	const fixture = new Fixture();
	fixture.simulations.fails.set("t1", "EXECUTION_REVERTED");
	await fixture.taken([1, 2], { ...NEXT, mayRevert: [1] });
	assert.deepEqual(fixture.lines(), ["send t1 t2 for 101 to a,b"]);
	fixture.simulations.fails.set("t1", "NONCE_GAP");
	assert.match(await fixture.refused([1, 3], { ...NEXT, mayRevert: [1] }), /^BAD_TRANSACTION/);
});

test("unfunded, of a used nonce or of a contract: refused by the accounts alone", async () => {
	const fixture = new Fixture();
	const { address } = fixture.signerOf(1);
	fixture.accounts.balances.set(address, 1n);
	const poor = /^BAD_TRANSACTION insufficient funds for gas \* price \+ value: balance 1,/;
	assert.match(await fixture.refused([1]), poor);
	fixture.accounts.balances.delete(address);
	fixture.accounts.nonces.set(address, 1n);
	const used = await fixture.refused([2, 1], { first: 101, last: 120 });
	assert.match(used, /^BAD_TRANSACTION nonce too low:.*\(body\[1\]\)$/);
	fixture.accounts.nonces.delete(address);
	fixture.accounts.contracts.add(address);
	assert.match(await fixture.refused([2, 1]), /^BUNDLE_REVERTED .*sender not an eoa/);
	assert.deepEqual(fixture.tried(), []);
});

test("of a later entry's funds and nonce nothing is said by its account: those before it may bring them", async () => {
	const fixture = new Fixture();
	const { address } = fixture.signerOf(2);
	fixture.accounts.balances.set(address, 0n);
	await fixture.taken([1, 2, { by: fixture.signerOf(1), nonce: 1 }]);
	assert.equal(fixture.tried().length, 1);
});

for (const [name, fail] of [
	["accounts", (fixture: Fixture) => Object.assign(fixture.accounts, { down: true })],
	["verdict", (fixture: Fixture) => fixture.simulations.fails.set("t1", "NODE_UNAVAILABLE")],
] as const) {
	test(`a node that gives no ${name} on a new one: thrown as such, nothing is kept`, async () => {
		const fixture = new Fixture();
		fail(fixture);
		await assert.rejects(fixture.plainBundle([1]), { data: { reason: "node unavailable" } });
		assert.deepEqual([fixture.lines(), fixture.outcomes], [[], ["failed"]]);
	});
}

test("before it is refused for an account that is asked for once more, and it is tried again where it has changed", async () => {
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
	test(`${fails} while its range has later blocks: it is kept, replaces, goes out when it passes, and says so`, async () => {
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

test("for a later block it is tried as that: what may come before then is waited for, what reverts is refused", async () => {
	const fixture = new Fixture();
	fixture.simulations.fails.set("t1", "INSUFFICIENT_FUNDS");
	fixture.simulations.fails.set("t2", "EXECUTION_REVERTED");
	const hash = await fixture.taken([1], { first: 103 });
	assert.match(await fixture.refused([2], { first: 103 }), /^BUNDLE_REVERTED/);
	assert.deepEqual(fixture.tried(), ["t1 in 103", "t2 in 103"]);
	assert.equal(fixture.status(hash, 103), "ACCEPTED");
	fixture.simulations.fails.clear();
	await fixture.block();
	assert.deepEqual(fixture.tried(), []);
	await fixture.block();
	assert.deepEqual([fixture.tried(), fixture.lines()], [["t1 in 103"], ["send t1 for 103 to a,b"]]);
});

describe("at each head", () => {
	test("it is tried again: what fails goes to nobody for that block, and is tried for the next", async () => {
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

	test("what has failed is tried behind what has passed", async () => {
		const fixture = new Fixture();
		fixture.simulations.fails.set("t1", "INSUFFICIENT_FUNDS");
		for (const label of [1, 2]) await fixture.taken([label], { ...RANGE, uuid: `u${label}` });
		fixture.tried();
		await fixture.block();
		const priorities = fixture.simulations.plain.map(({ labels, priority }) => `${labels} ${priority}`);
		assert.deepEqual(priorities.sort(), ["t1 held", "t2 again"]);
	});

	test("where the node gives no verdict it is asked again, until it does", async () => {
		const fixture = new Fixture();
		await fixture.taken([1], RANGE);
		fixture.lines();
		fixture.simulations.fails.set("t1", "NODE_UNAVAILABLE");
		await fixture.block();
		await fixture.clock.advance(600);
		assert.deepEqual(fixture.lines(), []);
		fixture.simulations.fails.clear();
		await fixture.clock.advance(500);
		assert.deepEqual(fixture.lines(), ["send t1 for 102 to a,b"]);
		fixture.plain.stop();
	});
});

/** What happens while it is tried for 102, what goes out then, and what its record says of 102. */
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
	test(`while it is tried comes ${name}: that trial is ended, and its verdict counts for nothing`, async () => {
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
		const told = status === "CANCELLED" ? 101 : 102;
		assert.equal(fixture.status(hash, told), status);
	});
}

interface Race {
	readonly name: string;
	readonly options: PlainOptions;
	readonly happens: (fixture: Fixture) => unknown;
	/** The refusal's code, or the stage in `block`. */
	readonly expected: string;
	readonly block?: number;
	readonly lines: readonly string[];
}
/** What happens while the accounts of a new one are asked for. */
const RACES: readonly Race[] = [
	{
		name: "its only block comes: it is in the past",
		options: NEXT,
		happens: (fixture) => fixture.block(),
		...{ expected: "BLOCK_PAST", lines: [] },
	},
	{
		name: "a block of its range comes: the rest goes out",
		options: RANGE,
		happens: (fixture) => fixture.block(),
		...{ expected: "SENT", block: 102, lines: ["send t1 for 102 to a,b"] },
	},
	{
		name: "its cancel comes: it has ended",
		options: RANGE,
		happens: (fixture) => fixture.table.cancel("me", "u"),
		...{ expected: "CANCELLED", lines: [] },
	},
	{
		name: "a later bundle of its uuid is faster: it is replaced, and never goes out",
		options: RANGE,
		happens: (fixture) => fixture.taken([2], RANGE),
		...{ expected: "REPLACED", lines: ["send t2 for 101 to a,b"] },
	},
	{
		name: "the very same bundle is faster: it is out once, and told so",
		options: RANGE,
		happens: (fixture) => fixture.taken([1], RANGE),
		...{ expected: "SENT", lines: ["send t1 for 101 to a,b"] },
	},
];
for (const { name, options, happens, expected, block = 101, lines } of RACES) {
	test(`while a new one is looked at ${name}`, async () => {
		const fixture = new Fixture();
		const open = fixture.holdAccounts();
		const sent = fixture.plainBundle([1], options);
		await fixture.turn();
		fixture.accounts.gate = Promise.resolve();
		await happens(fixture);
		open();
		const outcome = await sent;
		const told = outcome.outcome === "refused" ? outcome.code : fixture.status(outcome.hash, block);
		assert.deepEqual([told, fixture.lines()], [expected, lines]);
	});
}

describe("the chain", () => {
	test("went on by blocks that were missed: what it was out for is over, and told so", async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1], { first: 101, last: 102 });
		const [, , last] = [1, 2, 3].map(() => fixture.chain.make());
		assert.ok(last !== undefined);
		await fixture.came({ applied: [last], reverted: [] }, true);
		assert.equal(fixture.status(hash, 101), "NOT_INCLUDED notChosen");
		await fixture.block();
		assert.deepEqual(fixture.lines(), ["send t1 for 101 to a,b"]);
	});

	test("has another block of the same number: it is sent again for the next one", async () => {
		const fixture = new Fixture();
		await fixture.block();
		await fixture.taken([1], { first: 102 });
		await fixture.reorganise();
		assert.deepEqual(fixture.lines(), Array(2).fill("send t1 for 102 to a,b"));
	});

	test("took back the block that held it: it goes out for the rest of its range, and may still be cancelled", async () => {
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

	test("has it in a block of the other branch too: it is included there, and goes out no more", async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1], RANGE);
		await fixture.block([fixture.mined(1)]);
		fixture.lines();
		const other = await fixture.reorganise([fixture.mined(1)]);
		assert.deepEqual([fixture.status(hash, 101), fixture.lines()], ["INCLUDED", []]);
		assert.equal(fixture.detail(hash, 101)?.blockHash, other.hash);
	});

	test("took back all of eight blocks, the first of which held it: it is told so, though its range is over", async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1], NEXT);
		await fixture.block([fixture.mined(1)]);
		for (let i = 0; i < 7; i += 1) await fixture.block();
		const reverted = fixture.chain.unmake(8);
		await fixture.came({ applied: reverted.map(() => fixture.chain.make([], "b")), reverted });
		assert.equal(fixture.status(hash, 101), "NOT_INCLUDED reorganised");
	});

	for (const kind of ["bid", "bundle"] as const) {
		test(`took it back when a ${kind} had its uuid: it does not come back`, async () => {
			const fixture = new Fixture();
			const target = fixture.target("T");
			await fixture.taken([1], RANGE);
			await fixture.block([fixture.mined(1)]);
			fixture.sendTarget(target);
			if (kind === "bid") await fixture.accepted("A", target, 5n, { uuid: "u" });
			else await fixture.taken([2], { first: 102, uuid: "u" });
			fixture.lines();
			await fixture.reorganise();
			const again = fixture.lines().filter((line) => line.startsWith("send t1"));
			assert.deepEqual(again, []);
		});
	}
});
