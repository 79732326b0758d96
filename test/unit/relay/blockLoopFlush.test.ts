// What must not wait for the next block: it is on disk in a moment, gathered, and without a block.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction } from "../../support/txFactory.ts";
import { StagesFixture } from "./stagesFixture.ts";

/** A fixture with one transaction out, of which all is written. */
async function start() {
	const fixture = new StagesFixture();
	const transaction = privateTransaction();
	await fixture.take(transaction);
	await fixture.transactions.flush(true);
	let writes = 0;
	const { write } = fixture.disk;
	fixture.disk.write = (changes) => {
		writes += 1;
		return write.call(fixture.disk, changes);
	};
	return { fixture, transaction, writes: () => writes };
}

function bundle(fixture: StagesFixture, { tx }: PrivateTransaction, backrun: string): void {
	const what = { bundle: "0xb", backrun, bid: "1", builders: ["a"] };
	fixture.records.emit(tx.hash, { type: "bundled", at: 1, block: 101, ...what });
	fixture.loop.flushSoon();
}

/** Which backruns are on disk behind the transaction. */
async function written(fixture: StagesFixture, { tx }: PrivateTransaction): Promise<string[]> {
	for await (const { record } of fixture.store.load()) {
		if (record.hash !== tx.hash) continue;
		return record.events.flatMap((event) => (event.type === "bundled" ? [event.backrun] : []));
	}
	return [];
}

test("it is written within 50 ms, what came meanwhile with it, and that once", async () => {
	const { fixture, transaction, writes } = await start();
	bundle(fixture, transaction, "0x1");
	await fixture.clock.advance(30);
	bundle(fixture, transaction, "0x2");
	await fixture.clock.advance(19);
	assert.deepEqual([await written(fixture, transaction), writes()], [[], 0]);
	await fixture.clock.advance(1);
	await fixture.quiet();
	assert.deepEqual([await written(fixture, transaction), writes()], [["0x1", "0x2"], 1]);
	assert.equal(fixture.clock.timers, 0);
	bundle(fixture, transaction, "0x3");
	await fixture.clock.advance(50);
	await fixture.quiet();
	assert.deepEqual(await written(fixture, transaction), ["0x1", "0x2", "0x3"]);
	assert.deepEqual(fixture.faults, []);
});

test("another process on the same disk knows of it", async () => {
	const { fixture, transaction } = await start();
	bundle(fixture, transaction, "0x1");
	await fixture.clock.advance(50);
	await fixture.quiet();
	const next = await fixture.restart();
	assert.deepEqual(await written(next, transaction), ["0x1"]);
});

test("a disk that fails is told of, and it is written with the next block", async () => {
	const { fixture, transaction } = await start();
	fixture.disk.broken = true;
	bundle(fixture, transaction, "0x1");
	await fixture.clock.advance(50);
	await fixture.quiet();
	assert.deepEqual([await written(fixture, transaction), fixture.faults.length], [[], 1]);
	fixture.disk.broken = false;
	await fixture.block();
	assert.deepEqual(await written(fixture, transaction), ["0x1"]);
});

test("stopped: nothing is written behind it", async () => {
	const { fixture, transaction, writes } = await start();
	bundle(fixture, transaction, "0x1");
	fixture.loop.stop();
	bundle(fixture, transaction, "0x2");
	assert.equal(fixture.clock.timers, 0);
	await fixture.clock.advance(1_000);
	assert.equal(writes(), 0);
});
