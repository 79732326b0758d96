// Refunds read back: which transfer of the coinbase is whose, what was owed by whose terms, and what follows when the node
// fails, a block is taken back or the process starts anew. Records are real, the chain is laid down by hand.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
	A,
	B,
	COINBASE,
	SettlementFixture as Fixture,
	paidOf,
	type Row,
	type Sent,
	told,
	USER,
} from "./settlementFixture.ts";

/** Block 101 with one target and its backrun A, behind which the user is paid 900 wei. */
function paidBlock() {
	const fixture = new Fixture();
	const record = fixture.mined(1, [A]);
	fixture.lay([record.hash, "0xa", { value: 900n }]);
	return { fixture, record };
}

test("everything that was bid, brought, owed and paid is told, by whom and to whom, and asked for once", async () => {
	const fixture = new Fixture();
	const record = fixture.mined(1, [A]);
	fixture.proceeds.set("0xa", 1_100n);
	fixture.lay([record.hash, "0xa", { value: 990n }]);
	for (let i = 0; i < 2; i += 1) await fixture.run();
	assert.deepEqual(record.events.at(-1), {
		...{ type: "refunded", at: fixture.clock.now(), block: 101, bundle: "bundle of 0xa", backrun: "0xa" },
		...{ bid: "1000", brought: "1100", cost: "0", owed: "990", paid: "990" },
		...{ payer: COINBASE, recipient: USER },
	});
	assert.deepEqual([record.refund, fixture.asked], ["990", ["0x101"]]);
});

const [T, U] = ["target", "other target"];
const PAID = { value: 900n };
/** What the block holds, and what is told as bid, brought, cost, owed and paid; null: nothing is. */
const PAYMENTS: readonly (readonly [
	name: string,
	rows: readonly (string | Partial<Row>)[],
	string | null,
])[] = [
	["nothing was paid", [T, "0xa"], "0xa 1000 1000 0 900 0"],
	["another amount was paid", [T, "0xa", { value: 5n }], "0xa 1000 1000 0 900 5"],
	["the owed amount goes before another one", [T, "0xa", { value: 5n }, PAID], "0xa 1000 1000 0 900 900"],
	["somebody else paid it", [T, "0xa", { ...PAID, from: "0xother" }], "0xa 1000 1000 0 900 0"],
	["it was paid to somebody else", [T, "0xa", { ...PAID, to: "0xother" }], "0xa 1000 1000 0 900 0"],
	["a creation by the coinbase is no payment", [T, "0xa", { ...PAID, to: null }], "0xa 1000 1000 0 900 0"],
	["a payment of nothing is none", [T, "0xa", { value: 0n }, { value: 3n }], "0xa 1000 1000 0 900 3"],
	["a payment before the backrun is not for it", [PAID, T, PAID, "0xa"], "0xa 1000 1000 0 900 0"],
	["a backrun for another block does not count", [T, "0xc", "0xa", PAID], "0xa 1000 1000 0 900 900"],
	["no backrun of ours is in it", [T, PAID], null],
	["the backrun is before its target", ["0xa", T, PAID], null],
];
for (const [name, rows, expected] of PAYMENTS) {
	test(`${name}: ${expected?.split(" ").at(-1) ?? "nothing is told"}`, async () => {
		const fixture = new Fixture();
		const record = fixture.mined(1, [A, B, { backrun: "0xc", bid: 3_000n, block: 102 }]);
		fixture.lay(rows.map((row) => (row === T ? record.hash : row)));
		for (let i = 0; i < 2; i += 1) await fixture.run();
		assert.equal(told(record) ?? null, expected);
		assert.deepEqual([record.refund, fixture.asked], [paidOf(expected), ["0x101"]]);
	});
}

test("without a refund recipient the sender is the one", async () => {
	const fixture = new Fixture();
	const record = fixture.mined(1, [A]);
	Object.assign(record, { refundRecipient: null });
	fixture.lay([record.hash, "0xa", PAID, { ...PAID, to: record.from }]);
	await fixture.run();
	const event = record.events.at(-1);
	assert.deepEqual(event?.type === "refunded" && [event.recipient, event.paid], [record.from, "900"]);
});

/** Two targets of one recipient: what each one's backrun bid, what was paid, and what is told as each one's. */
const TWO: readonly (readonly [name: string, Sent, readonly bigint[], readonly [string, string]])[] = [
	["each its amount, whatever the order", B, [450n, 900n], ["900", "450"]],
	["an exact payment is not given to one that was paid less", B, [450n, 890n], ["890", "450"]],
	["the same amount twice", { ...B, bid: A.bid }, [900n, 900n], ["900", "900"]],
	["the same amount once: it is the first one's", { ...B, bid: A.bid }, [900n], ["900", "0"]],
];
for (const [name, other, payments, expected] of TWO) {
	test(`two targets, ${name}`, async () => {
		const fixture = new Fixture();
		const [two, one] = [fixture.mined(2, [other]), fixture.mined(1, [A])];
		const rows = [T, "0xa", U, other.backrun, ...payments.map((value) => ({ value }))];
		fixture.lay(rows.map((row) => (row === T ? one.hash : row === U ? two.hash : row)));
		await fixture.run();
		assert.deepEqual([one.refund, two.refund], expected);
	});
}

/** Builders that had the backrun, and what was paid. Builder `a` owes 90 percent, `b` half of it without its gas. */
const TERMS: readonly (readonly [name: string, readonly string[], paid: bigint, told: string])[] = [
	["the one whose terms fit what was paid", ["b", "a"], 470n, "0xa 1000 1000 30 470 470"],
	["the other one, whose terms fit", ["b", "a"], 900n, "0xa 1000 1000 0 900 900"],
	["the one that owes the most where none fits", ["b", "a"], 7n, "0xa 1000 1000 0 900 7"],
	["the one that owes the most where nothing was paid", ["b", "a"], 0n, "0xa 1000 1000 0 900 0"],
	["nobody's where it is no longer in the list", ["gone"], 42n, "0xa 1000 1000 0 0 42"],
];
for (const [name, builders, paid, expected] of TERMS) {
	test(`the terms are those of ${name}`, async () => {
		const fixture = new Fixture();
		fixture.terms.set("b", { percent: 50, refundGas: 3 });
		const record = fixture.mined(1, [{ ...A, builders }]);
		fixture.lay([record.hash, "0xa", { value: paid }]);
		await fixture.run();
		assert.equal(told(record), expected);
	});
}

test("what had no backrun, or is not mined, or in another block than its backrun, is not asked about or not told", async () => {
	const fixture = new Fixture();
	fixture.mined(1, []);
	fixture.mined(2, [{ ...A, block: 100 }]);
	const record = fixture.mined(3, [A]);
	fixture.records.emit(record.hash, { type: "reorged", at: 3, block: 101 });
	await fixture.run();
	assert.deepEqual(fixture.asked, []);
	fixture.include(record, "0x102", 102);
	fixture.lay([record.hash, "0xa", PAID], "0x102", 102);
	await fixture.run();
	assert.equal(told(record), undefined);
});

/** What goes wrong in a first run, what makes it good again, and whether it is worth a warning. */
const FAILURES: readonly (readonly [
	name: string,
	breaks: (fixture: Fixture) => void,
	mends: (fixture: Fixture) => void,
	warnings: number,
])[] = [
	["fails on the block", (f) => void f.failing.add("0x101"), (f) => f.failing.clear(), 1],
	["fails on what a backrun brought", (f) => void f.unreadable.add("0xb"), (f) => f.unreadable.clear(), 1],
	["does not have the block", (f) => void f.away.add("0x101"), (f) => f.away.clear(), 0],
	[
		"makes us throw what we never should",
		(f) => {
			f.broken = true;
		},
		(f) => {
			f.broken = false;
		},
		1,
	],
];
for (const [name, breaks, mends, warnings] of FAILURES) {
	test(`a node that ${name}: nothing is told by half, and it is asked again with the next block`, async () => {
		const fixture = new Fixture();
		const [one, two] = [fixture.mined(1, [A]), fixture.mined(2, [B])];
		fixture.lay([one.hash, "0xa", two.hash, "0xb", PAID, { value: 450n }]);
		breaks(fixture);
		await fixture.run();
		assert.deepEqual([told(one), told(two), fixture.warnings.length], [undefined, undefined, warnings]);
		mends(fixture);
		await fixture.run();
		assert.deepEqual([one.refund, two.refund], ["900", "450"]);
	});
}

test("a block that the node keeps failing on does not hold up the refunds of others", async () => {
	const { fixture, record } = paidBlock();
	fixture.mined(2, [B], "0xbad");
	fixture.failing.add("0xbad");
	await fixture.run();
	assert.equal(record.refund, "900");
});

describe("a block that comes while another is read", () => {
	test("starts no second run", async () => {
		const { fixture, record } = paidBlock();
		const open = fixture.hold();
		for (let i = 0; i < 2; i += 1) fixture.settlement.run();
		await fixture.clock.advance(0);
		assert.deepEqual(fixture.asked, ["0x101"]);
		open();
		await fixture.background.join();
		assert.equal(record.events.filter(({ type }) => type === "refunded").length, 1);
	});

	for (const moved of [false, true]) {
		test(`and takes that one back${moved ? ", and holds the target itself" : ""}: nothing is told of it`, async () => {
			const { fixture, record } = paidBlock();
			const open = fixture.hold();
			fixture.settlement.run();
			await fixture.clock.advance(0);
			fixture.records.emit(record.hash, { type: "reorged", at: 3, block: 101 });
			if (moved) fixture.include(record, "0x101b");
			open();
			await fixture.background.join();
			assert.deepEqual([told(record), record.refund, fixture.warnings], [undefined, "0", []]);
		});
	}
});

test("reorganised into another block, and back into the first one: each time the refund is that block's", async () => {
	const { fixture, record } = paidBlock();
	fixture.lay([record.hash, "0xa", { value: 7n }], "0x101b");
	await fixture.run();
	for (const [hash, refund] of [
		["0x101b", "7"],
		["0x101", "900"],
	] as const) {
		fixture.records.emit(record.hash, { type: "reorged", at: 3, block: 101 });
		assert.equal(record.refund, "0");
		fixture.include(record, hash);
		await fixture.run();
		assert.equal(record.refund, refund);
	}
	assert.deepEqual(fixture.warnings, []);
});

test("after a restart what was told is not told again, and what was not is", async () => {
	const { fixture, record: one } = paidBlock();
	await fixture.run();
	const two = fixture.mined(2, [B], "0x101b");
	const after = new Fixture(fixture.records.entries());
	after.lay([two.hash, "0xb", { value: 450n }], "0x101b");
	await after.run();
	assert.deepEqual(after.asked, ["0x101b"]);
	const refunds = [one, two].map(({ hash }) => after.records.get(hash)?.record.refund);
	assert.deepEqual(refunds, ["900", "450"]);
});
