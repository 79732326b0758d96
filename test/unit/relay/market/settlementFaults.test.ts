// Refunds when something goes wrong: the node fails, a block is taken back or comes again, the process starts anew.

import assert from "node:assert/strict";
import { test } from "node:test";
import { A, SettlementScene as Scene, told } from "./settlementScene.ts";

test("the node fails, then answers: it is asked again with the next block", async () => {
	const scene = new Scene();
	const record = scene.mined(1, [A]);
	scene.lay([record.hash, "0xa", { value: 900n }]);
	scene.failing.add("0x101");
	await scene.run();
	assert.equal(told(record), undefined);
	assert.equal(scene.warnings.length, 1);
	scene.failing.clear();
	await scene.run();
	assert.equal(told(record), "0xa 1000 1000 0 900 900");
});

test("what a backrun brought can't be had yet: nothing is told by half, and asked again", async () => {
	const scene = new Scene();
	const [one, two] = [scene.mined(1, [A]), scene.mined(2, [{ backrun: "0xb", bid: 500n }])];
	scene.lay([one.hash, "0xa", two.hash, "0xb", { value: 900n }, { value: 450n }]);
	scene.unreadable.add("0xb");
	await scene.run();
	assert.deepEqual([told(one), told(two)], [undefined, undefined]);
	scene.unreadable.clear();
	await scene.run();
	assert.deepEqual([one.refund, two.refund], ["900", "450"]);
});

test("a block that the node keeps failing on does not hold up the refunds of others", async () => {
	const scene = new Scene();
	scene.mined(1, [A], "0xbad");
	scene.failing.add("0xbad");
	const other = scene.mined(2, [{ backrun: "0xb", bid: 500n }]);
	scene.lay([other.hash, "0xb", { value: 450n }]);
	await scene.run();
	assert.equal(told(other), "0xb 500 500 0 450 450");
});

test("a block that the node does not have is asked for again", async () => {
	const scene = new Scene();
	const record = scene.mined(1, [A]);
	await scene.run();
	assert.deepEqual([told(record), scene.warnings], [undefined, []]);
	scene.lay([record.hash, "0xa", { value: 900n }]);
	await scene.run();
	assert.equal(record.refund, "900");
});

test("one run at a time: a block that comes meanwhile starts no second one", async () => {
	const scene = new Scene();
	const record = scene.mined(1, [A]);
	scene.lay([record.hash, "0xa", { value: 900n }]);
	let open = () => {};
	scene.gate = new Promise((resolve) => {
		open = resolve;
	});
	scene.settlement.run();
	scene.settlement.run();
	await scene.clock.advance(0);
	assert.deepEqual(scene.asked, ["0x101"]);
	open();
	await scene.background.join();
	assert.equal(record.events.filter(({ type }) => type === "refunded").length, 1);
});

test("its block is taken back while it is read: nothing is told of it", async () => {
	const scene = new Scene();
	const record = scene.mined(1, [A]);
	scene.lay([record.hash, "0xa", { value: 900n }]);
	let open = () => {};
	scene.gate = new Promise((resolve) => {
		open = resolve;
	});
	scene.settlement.run();
	await scene.clock.advance(0);
	scene.ledger.emit(record.hash, { type: "reorged", at: 3, block: 101 });
	open();
	await scene.background.join();
	assert.deepEqual([told(record), record.refund, scene.warnings], [undefined, "0", []]);
});

test("reorganised into another block, and back into the first one: each time the refund is that block's", async () => {
	const scene = new Scene();
	const record = scene.mined(1, [A]);
	scene.lay([record.hash, "0xa", { value: 900n }]);
	await scene.run();
	assert.equal(record.refund, "900");
	const move = async (hash: string) => {
		scene.ledger.emit(record.hash, { type: "reorged", at: 3, block: 101 });
		assert.equal(record.refund, "0");
		scene.include(record, hash);
		await scene.run();
	};
	scene.lay([record.hash, "0xa", { value: 7n }], "0x101b");
	await move("0x101b");
	assert.equal(record.refund, "7");
	await move("0x101");
	assert.equal(record.refund, "900");
	assert.deepEqual(scene.warnings, []);
});

test("mined one block later than its backrun was sent for: there was nothing to refund", async () => {
	const scene = new Scene();
	const record = scene.mined(1, [A]);
	scene.ledger.emit(record.hash, { type: "reorged", at: 3, block: 101 });
	scene.include(record, "0x102", 102);
	scene.lay([record.hash, "0xa", { value: 900n }], "0x102", 102);
	await scene.run();
	assert.equal(told(record), undefined);
});

test("after a restart what was told is not told again, and what was not is", async () => {
	const scene = new Scene();
	const one = scene.mined(1, [A]);
	scene.lay([one.hash, "0xa", { value: 900n }]);
	await scene.run();
	const two = scene.mined(2, [{ backrun: "0xb", bid: 500n }], "0x101b");
	const after = new Scene(scene.ledger.entries());
	after.lay([two.hash, "0xb", { value: 450n }], "0x101b");
	await after.run();
	assert.deepEqual(after.asked, ["0x101b"]);
	assert.equal(after.ledger.get(two.hash)?.record.refund, "450");
	assert.equal(after.ledger.get(one.hash)?.record.refund, "900");
});

test("a fault of ours in one run does not end the runs to come", async () => {
	const scene = new Scene();
	const record = scene.mined(1, [A]);
	scene.lay([record.hash, "0xa", { value: 900n }]);
	scene.broken = true;
	await scene.run();
	assert.equal(scene.warnings.length, 1);
	scene.broken = false;
	await scene.run();
	assert.equal(record.refund, "900");
});
