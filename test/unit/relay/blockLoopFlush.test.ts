// What must not wait for the next block: it is on disk in a moment, gathered, and without a block.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction } from "../../support/txFactory.ts";
import { StagesScene } from "./stagesScene.ts";

/** A scene with one transaction out, of which all is written. */
async function start() {
	const scene = new StagesScene();
	const transaction = privateTransaction();
	await scene.take(transaction);
	await scene.transactions.flush(true);
	let writes = 0;
	const { write } = scene.disk;
	scene.disk.write = (changes) => {
		writes += 1;
		return write.call(scene.disk, changes);
	};
	return { scene, transaction, writes: () => writes };
}

function bundle(scene: StagesScene, { tx }: PrivateTransaction, backrun: string): void {
	const what = { bundle: "0xb", backrun, bid: "1", builders: ["a"] };
	scene.ledger.emit(tx.hash, { type: "bundled", at: 1, block: 101, ...what });
	scene.loop.flushSoon();
}

/** Which backruns are on disk behind the transaction. */
async function written(scene: StagesScene, { tx }: PrivateTransaction): Promise<string[]> {
	for await (const { record } of scene.store.load()) {
		if (record.hash !== tx.hash) continue;
		return record.events.flatMap((event) => (event.type === "bundled" ? [event.backrun] : []));
	}
	return [];
}

test("it is written within 50 ms, what came meanwhile with it, and that once", async () => {
	const { scene, transaction, writes } = await start();
	bundle(scene, transaction, "0x1");
	await scene.clock.advance(30);
	bundle(scene, transaction, "0x2");
	await scene.clock.advance(19);
	assert.deepEqual([await written(scene, transaction), writes()], [[], 0]);
	await scene.clock.advance(1);
	await scene.quiet();
	assert.deepEqual([await written(scene, transaction), writes()], [["0x1", "0x2"], 1]);
	assert.equal(scene.clock.timers, 0);
	bundle(scene, transaction, "0x3");
	await scene.clock.advance(50);
	await scene.quiet();
	assert.deepEqual(await written(scene, transaction), ["0x1", "0x2", "0x3"]);
	assert.deepEqual(scene.faults, []);
});

test("another process on the same disk knows of it", async () => {
	const { scene, transaction } = await start();
	bundle(scene, transaction, "0x1");
	await scene.clock.advance(50);
	await scene.quiet();
	const next = await scene.restart();
	assert.deepEqual(await written(next, transaction), ["0x1"]);
});

test("a disk that fails is told of, and it is written with the next block", async () => {
	const { scene, transaction } = await start();
	scene.disk.broken = true;
	bundle(scene, transaction, "0x1");
	await scene.clock.advance(50);
	await scene.quiet();
	assert.deepEqual([await written(scene, transaction), scene.faults.length], [[], 1]);
	scene.disk.broken = false;
	await scene.block();
	assert.deepEqual(await written(scene, transaction), ["0x1"]);
});

test("stopped: nothing is written behind it", async () => {
	const { scene, transaction, writes } = await start();
	bundle(scene, transaction, "0x1");
	scene.loop.stop();
	bundle(scene, transaction, "0x2");
	assert.equal(scene.clock.timers, 0);
	await scene.clock.advance(1_000);
	assert.equal(writes(), 0);
});
