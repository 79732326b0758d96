// Refunds read back: which transfer of the coinbase is whose, and what was owed by whose terms. Records are real, the
// chain is laid down by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { A, COINBASE, SettlementFixture as Fixture, type Row, told, USER } from "./settlementFixture.ts";

test("target, backrun, refund: everything that was bid, brought, owed and paid is told, by whom and to whom", async () => {
	const fixture = new Fixture();
	const record = fixture.mined(1, [A]);
	fixture.proceeds.set("0xa", 1_100n);
	fixture.lay([record.hash, "0xa", { value: 990n }]);
	await fixture.run();
	assert.deepEqual(record.events.at(-1), {
		...{ type: "refunded", at: fixture.clock.now(), block: 101, bundle: "bundle of 0xa", backrun: "0xa" },
		...{
			bid: "1000",
			brought: "1100",
			cost: "0",
			owed: "990",
			paid: "990",
			payer: COINBASE,
			recipient: USER,
		},
	});
	assert.equal(record.refund, "990");
	await fixture.run();
	assert.deepEqual(fixture.asked, ["0x101"]);
});

const ROWS: readonly (readonly [string, readonly Partial<Row>[], bigint])[] = [
	["nothing was paid", [], 0n],
	["another amount was paid", [{ value: 5n }], 5n],
	["the owed amount goes before another one", [{ value: 5n }, { value: 900n }], 900n],
	["somebody else paid it", [{ value: 900n, from: "0xother" }], 0n],
	["it was paid to somebody else", [{ value: 900n, to: "0xother" }], 0n],
	["a creation by the coinbase is no payment", [{ value: 900n, to: null }], 0n],
	["a payment of nothing is none", [{ value: 0n }, { value: 3n }], 3n],
];
for (const [name, payments, paid] of ROWS) {
	test(`${name}: ${paid} wei were paid`, async () => {
		const fixture = new Fixture();
		const record = fixture.mined(1, [A]);
		fixture.lay([record.hash, "0xa", ...payments]);
		await fixture.run();
		assert.equal(told(record), `0xa 1000 1000 0 900 ${paid}`);
		assert.equal(record.refund, paid.toString());
	});
}

test("a payment before the backrun is not for it", async () => {
	const fixture = new Fixture();
	const record = fixture.mined(1, [A]);
	fixture.lay([{ value: 900n }, record.hash, { value: 900n }, "0xa"]);
	await fixture.run();
	assert.equal(told(record), "0xa 1000 1000 0 900 0");
});

test("without a refund recipient the sender is the one", async () => {
	const fixture = new Fixture();
	const record = fixture.mined(1, [A]);
	Object.assign(record, { refundRecipient: null });
	fixture.lay([record.hash, "0xa", { value: 900n }, { value: 900n, to: record.from }]);
	await fixture.run();
	const event = record.events.at(-1);
	assert.deepEqual(event?.type === "refunded" && [event.recipient, event.paid], [record.from, "900"]);
});

test("several targets of one recipient: each gets the payment of exactly its amount, whatever the order", async () => {
	const fixture = new Fixture();
	const one = fixture.mined(1, [{ backrun: "0xa", bid: 1_000n }]);
	const two = fixture.mined(2, [{ backrun: "0xb", bid: 500n }]);
	fixture.lay([one.hash, "0xa", two.hash, "0xb", { value: 450n }, { value: 900n }]);
	await fixture.run();
	assert.deepEqual([told(one), told(two)], ["0xa 1000 1000 0 900 900", "0xb 500 500 0 450 450"]);
});

test("two of the same amount are two payments; one payment is only one of them, the first", async () => {
	for (const count of [2, 1]) {
		const fixture = new Fixture();
		const one = fixture.mined(1, [{ backrun: "0xa", bid: 1_000n }]);
		const two = fixture.mined(2, [{ backrun: "0xb", bid: 1_000n }]);
		const payments = Array.from({ length: count }, () => ({ value: 900n }));
		fixture.lay([two.hash, "0xb", one.hash, "0xa", ...payments]);
		await fixture.run();
		assert.deepEqual([two.refund, one.refund], ["900", count === 2 ? "900" : "0"]);
	}
});

test("an exact payment of a later one is not given to an earlier one that was paid less", async () => {
	const fixture = new Fixture();
	const one = fixture.mined(1, [{ backrun: "0xa", bid: 1_000n }]);
	const two = fixture.mined(2, [{ backrun: "0xb", bid: 500n }]);
	fixture.lay([one.hash, "0xa", two.hash, "0xb", { value: 450n }, { value: 890n }]);
	await fixture.run();
	assert.deepEqual([one.refund, two.refund], ["890", "450"]);
});

test("of builders with other terms it is the one whose terms fit what was paid, else the one that owes the most", async () => {
	for (const [paid, expected] of [
		[470n, "0xa 1000 1000 30 470 470"],
		[900n, "0xa 1000 1000 0 900 900"],
		[7n, "0xa 1000 1000 0 900 7"],
		[0n, "0xa 1000 1000 0 900 0"],
	] as const) {
		const fixture = new Fixture();
		fixture.terms.set("b", { percent: 50, refundGas: 3 });
		const record = fixture.mined(1, [{ ...A, builders: ["b", "a"] }]);
		fixture.lay([record.hash, "0xa", { value: paid }]);
		await fixture.run();
		assert.equal(told(record), expected);
	}
});

test("a builder that is no longer in the list owes nothing that is known; what was paid is told", async () => {
	const fixture = new Fixture();
	const record = fixture.mined(1, [{ ...A, builders: ["gone"] }]);
	fixture.lay([record.hash, "0xa", { value: 42n }]);
	await fixture.run();
	assert.equal(told(record), "0xa 1000 1000 0 0 42");
});

test("of several that were sent for the block it is the one that is in it; none of another block counts", async () => {
	const fixture = new Fixture();
	const record = fixture.mined(1, [
		{ backrun: "0xa", bid: 1_000n },
		{ backrun: "0xb", bid: 2_000n },
		{ backrun: "0xc", bid: 3_000n, block: 102 },
	]);
	fixture.lay([record.hash, "0xc", "0xa", { value: 900n }]);
	await fixture.run();
	assert.equal(told(record), "0xa 1000 1000 0 900 900");
});

test("no backrun of ours is in the block, or only before its target: nothing is told, and not asked twice", async () => {
	for (const rows of [["target"], ["0xa", "target"]]) {
		const fixture = new Fixture();
		const record = fixture.mined(1, [A]);
		fixture.lay([...rows.map((row) => (row === "target" ? record.hash : row)), { value: 900n }]);
		await fixture.run();
		await fixture.run();
		assert.deepEqual([told(record), record.refund, fixture.asked], [undefined, "0", ["0x101"]]);
	}
});

test("what had no backrun, or is not mined, is never asked about", async () => {
	const fixture = new Fixture();
	fixture.mined(1, []);
	fixture.mined(2, [{ ...A, block: 100 }]);
	const pending = fixture.mined(3, [A]);
	fixture.records.emit(pending.hash, { type: "reorged", at: 3, block: 101 });
	await fixture.run();
	assert.deepEqual(fixture.asked, []);
});
