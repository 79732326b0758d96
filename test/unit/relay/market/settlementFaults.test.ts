// Refunds when something goes wrong: the node fails, a block is taken back or comes again, the process starts anew.

import assert from "node:assert/strict";
import { test } from "node:test";
import { A, SettlementFixture as Fixture, told } from "./settlementFixture.ts";

test("the node fails, then answers: it is asked again with the next block", async () => {
	const fixture = new Fixture();
	const record = fixture.mined(1, [A]);
	fixture.lay([record.hash, "0xa", { value: 900n }]);
	fixture.failing.add("0x101");
	await fixture.run();
	assert.equal(told(record), undefined);
	assert.equal(fixture.warnings.length, 1);
	fixture.failing.clear();
	await fixture.run();
	assert.equal(told(record), "0xa 1000 1000 0 900 900");
});

test("what a backrun brought can't be had yet: nothing is told by half, and asked again", async () => {
	const fixture = new Fixture();
	const [one, two] = [fixture.mined(1, [A]), fixture.mined(2, [{ backrun: "0xb", bid: 500n }])];
	fixture.lay([one.hash, "0xa", two.hash, "0xb", { value: 900n }, { value: 450n }]);
	fixture.unreadable.add("0xb");
	await fixture.run();
	assert.deepEqual([told(one), told(two)], [undefined, undefined]);
	fixture.unreadable.clear();
	await fixture.run();
	assert.deepEqual([one.refund, two.refund], ["900", "450"]);
});

test("a block that the node keeps failing on does not hold up the refunds of others", async () => {
	const fixture = new Fixture();
	fixture.mined(1, [A], "0xbad");
	fixture.failing.add("0xbad");
	const other = fixture.mined(2, [{ backrun: "0xb", bid: 500n }]);
	fixture.lay([other.hash, "0xb", { value: 450n }]);
	await fixture.run();
	assert.equal(told(other), "0xb 500 500 0 450 450");
});

test("a block that the node does not have is asked for again", async () => {
	const fixture = new Fixture();
	const record = fixture.mined(1, [A]);
	await fixture.run();
	assert.deepEqual([told(record), fixture.warnings], [undefined, []]);
	fixture.lay([record.hash, "0xa", { value: 900n }]);
	await fixture.run();
	assert.equal(record.refund, "900");
});

test("one run at a time: a block that comes meanwhile starts no second one", async () => {
	const fixture = new Fixture();
	const record = fixture.mined(1, [A]);
	fixture.lay([record.hash, "0xa", { value: 900n }]);
	let open = () => {};
	fixture.gate = new Promise((resolve) => {
		open = resolve;
	});
	fixture.settlement.run();
	fixture.settlement.run();
	await fixture.clock.advance(0);
	assert.deepEqual(fixture.asked, ["0x101"]);
	open();
	await fixture.background.join();
	assert.equal(record.events.filter(({ type }) => type === "refunded").length, 1);
});

test("its block is taken back while it is read: nothing is told of it", async () => {
	const fixture = new Fixture();
	const record = fixture.mined(1, [A]);
	fixture.lay([record.hash, "0xa", { value: 900n }]);
	let open = () => {};
	fixture.gate = new Promise((resolve) => {
		open = resolve;
	});
	fixture.settlement.run();
	await fixture.clock.advance(0);
	fixture.records.emit(record.hash, { type: "reorged", at: 3, block: 101 });
	open();
	await fixture.background.join();
	assert.deepEqual([told(record), record.refund, fixture.warnings], [undefined, "0", []]);
});

test("reorganised into another block, and back into the first one: each time the refund is that block's", async () => {
	const fixture = new Fixture();
	const record = fixture.mined(1, [A]);
	fixture.lay([record.hash, "0xa", { value: 900n }]);
	await fixture.run();
	assert.equal(record.refund, "900");
	const move = async (hash: string) => {
		fixture.records.emit(record.hash, { type: "reorged", at: 3, block: 101 });
		assert.equal(record.refund, "0");
		fixture.include(record, hash);
		await fixture.run();
	};
	fixture.lay([record.hash, "0xa", { value: 7n }], "0x101b");
	await move("0x101b");
	assert.equal(record.refund, "7");
	await move("0x101");
	assert.equal(record.refund, "900");
	assert.deepEqual(fixture.warnings, []);
});

test("mined one block later than its backrun was sent for: there was nothing to refund", async () => {
	const fixture = new Fixture();
	const record = fixture.mined(1, [A]);
	fixture.records.emit(record.hash, { type: "reorged", at: 3, block: 101 });
	fixture.include(record, "0x102", 102);
	fixture.lay([record.hash, "0xa", { value: 900n }], "0x102", 102);
	await fixture.run();
	assert.equal(told(record), undefined);
});

test("after a restart what was told is not told again, and what was not is", async () => {
	const fixture = new Fixture();
	const one = fixture.mined(1, [A]);
	fixture.lay([one.hash, "0xa", { value: 900n }]);
	await fixture.run();
	const two = fixture.mined(2, [{ backrun: "0xb", bid: 500n }], "0x101b");
	const after = new Fixture(fixture.records.entries());
	after.lay([two.hash, "0xb", { value: 450n }], "0x101b");
	await after.run();
	assert.deepEqual(after.asked, ["0x101b"]);
	assert.equal(after.records.get(two.hash)?.record.refund, "450");
	assert.equal(after.records.get(one.hash)?.record.refund, "900");
});

test("a fault of ours in one run does not end the runs to come", async () => {
	const fixture = new Fixture();
	const record = fixture.mined(1, [A]);
	fixture.lay([record.hash, "0xa", { value: 900n }]);
	fixture.broken = true;
	await fixture.run();
	assert.equal(fixture.warnings.length, 1);
	fixture.broken = false;
	await fixture.run();
	assert.equal(record.refund, "900");
});
