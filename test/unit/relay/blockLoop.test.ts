// Tests what each block does to the relay's transactions: inclusion, reorganisations, expiry, missed blocks, the end
// of watching, and a restart.

import assert from "node:assert/strict";
import { test } from "node:test";
import { GAP_LIFE_S } from "../../../relay/blockLoop.ts";
import { WATCH_BLOCKS } from "../../../relay/chainChanges.ts";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, testAccount } from "../../support/txFactory.ts";
import { HandDisk } from "./handDisk.ts";
import { StagesScene } from "./stagesScene.ts";
import { blocks, story } from "./stories.ts";

const SENDER = testAccount(0).address;
const OTHER = testAccount(1);
const at = (nonce: number, path: PrivateTransaction["path"] = "fast") => privateTransaction({ nonce, path });

story("what is in a block is included, is sent no more, and is told with its place", async (scene) => {
	const [one, two] = [at(0), at(1)];
	await scene.take(one, two);
	scene.builders.take();
	await scene.block({ mined: [one] });
	const record = scene.ledger.get(one.tx.hash)?.record;
	assert.deepEqual(record?.events.at(-1), {
		...{ type: "included", at: scene.clock.now(), block: 101, blockHash: "0x65", index: 0, reverted: false },
	});
	assert.deepEqual([scene.stage(one), scene.stage(two)], ["INCLUDED", "BROADCAST"]);
	assert.deepEqual(scene.builders.take(), ["send 1 for 102 to a,b"]);
	await scene.block({ mined: [two], reverted: true });
	assert.equal(scene.stage(two), "REVERTED");
	assert.equal(scene.pool.size, 0);
});

story("a block that goes takes its transactions back, and they go out again", async (scene) => {
	const [one, two, three] = [at(0), at(1), at(2)];
	await scene.take(one, two, three);
	await scene.block({ mined: [one] });
	await scene.block({ mined: [two] });
	scene.builders.take();
	scene.node.nonces.set(SENDER, 0n);
	// One block for two: what the account was after block 102 must not count against what it is now.
	await scene.reorganise(2, { fork: "b" });
	assert.deepEqual(
		[one, two, three].map((tx) => scene.stage(tx)),
		["BROADCAST", "BROADCAST", "BROADCAST"],
	);
	assert.deepEqual(
		scene.builders.take(),
		[0, 1, 2].map((nonce) => `send ${nonce} for 102 to a,b`),
	);
	await scene.block({ mined: [one, two], fork: "b" });
	assert.deepEqual(scene.life(one).slice(-4), ["included", "reorged", "broadcast", "included"]);
	assert.equal(scene.ledger.get(two.tx.hash)?.record.block, 102);
});

story("what moves to another block of the same height is included there", async (scene) => {
	const tx = at(0);
	await scene.take(tx);
	await scene.block({ mined: [tx] });
	scene.builders.take();
	await scene.reorganise(1, { mined: [tx], fork: "b" });
	assert.equal(scene.stage(tx), "INCLUDED");
	assert.deepEqual(scene.ledger.get(tx.tx.hash)?.record.events.at(-1)?.type, "included");
	assert.deepEqual(scene.builders.take(), []);
});

story("a nonce that others used in a block that goes is free again", async (scene) => {
	const tx = at(0);
	await scene.take(tx);
	await scene.block({ used: { [SENDER]: 1n } });
	assert.equal(scene.stage(tx), "DROPPED");
	scene.builders.take();
	scene.node.nonces.set(SENDER, 0n);
	await scene.reorganise(1, { fork: "b" });
	assert.deepEqual([scene.stage(tx), scene.builders.take()], ["BROADCAST", ["send 0 for 102 to a,b"]]);
});

story("a replaced one whose replacement's block goes stays replaced", async (scene) => {
	const old = at(0);
	const fresh = privateTransaction({ nonce: 0, maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 12n });
	await scene.take(old, fresh);
	await scene.block({ mined: [old] });
	assert.deepEqual([scene.stage(old), scene.stage(fresh)], ["INCLUDED", "DROPPED"]);
	scene.node.nonces.set(SENDER, 0n);
	await scene.reorganise(1, { fork: "b" });
	assert.deepEqual([scene.stage(old), scene.stage(fresh)], ["REPLACED", "BROADCAST"]);
});

story("it lives 25 blocks, then it is expired; a private one is withdrawn", async (scene) => {
	const [bundle, secret] = [at(0), at(1, "nochecks")];
	await scene.take(bundle, secret);
	await blocks(scene, 24);
	const last = scene.builders.take().slice(-2);
	assert.deepEqual(last, ["send 0 for 125 to a,b", "send 1 for 125 until 125 to a,b"]);
	await scene.block();
	assert.deepEqual([scene.stage(bundle), scene.stage(secret)], ["EXPIRED", "EXPIRED"]);
	assert.deepEqual(scene.builders.take(), ["cancel 1 for 126 at a,b"]);
	assert.equal(scene.pool.size, 0);
});

story(
	"what a builder mines after its end is included, and its block's going takes it back to its end",
	async (scene) => {
		const tx = at(0);
		await scene.take(tx);
		await blocks(scene, 30);
		await scene.block({ mined: [tx] });
		assert.equal(scene.stage(tx), "INCLUDED");
		scene.node.nonces.set(SENDER, 0n);
		await scene.reorganise(1, { fork: "b" });
		assert.equal(scene.stage(tx), "EXPIRED");
	},
);

story("what waits behind a gap is given up after three hours", async (scene) => {
	const tx = at(5);
	await scene.take(tx);
	await blocks(scene, GAP_LIFE_S / 12 - 1);
	assert.equal(scene.stage(tx), "QUEUED");
	await scene.block();
	assert.equal(scene.stage(tx), "EXPIRED");
});

for (const [name, end] of [
	["mined", (scene: StagesScene, tx: PrivateTransaction) => scene.block({ mined: [tx] })],
	["dropped", (scene: StagesScene) => scene.block({ used: { [SENDER]: 1n } })],
	["expired", (scene: StagesScene) => blocks(scene, 25)],
] as const) {
	story(`what is ${name} is watched for ${WATCH_BLOCKS} blocks, then settled for good`, async (scene) => {
		const tx = at(0);
		await scene.take(tx);
		await end(scene, tx);
		const stage = scene.stage(tx);
		await blocks(scene, WATCH_BLOCKS - 1);
		assert.equal(scene.stage(tx), stage);
		await scene.block();
		assert.equal(scene.ledger.size, 0);
		assert.equal((await scene.store.settled(tx.tx.hash))?.stage, stage);
		assert.deepEqual(
			[...scene.disk.map.keys()].filter((key) => key.startsWith("p/") || key.startsWith("s/")),
			[],
		);
	});
}

story("after blocks that could not be seen one by one, all is asked anew", async (scene) => {
	const [mined, moved, gone, pending] = [at(0), at(1), at(2), privateTransaction({ by: OTHER })];
	await scene.take(mined, moved, gone, pending);
	await scene.block({ mined: [moved, gone] });
	const hash = scene.head.hash;
	scene.node.mined.delete(gone.tx.hash);
	scene.node.mined.set(moved.tx.hash, { ...at101(moved), block: 103, blockHash: "0x67" });
	scene.node.mined.set(mined.tx.hash, { ...at101(mined), blockHash: hash });
	scene.node.nonces.set(SENDER, 2n);
	await scene.block();
	await scene.block();
	scene.builders.take();
	await scene.work([], [], true);
	assert.deepEqual(
		[mined, moved, gone, pending].map((tx) => scene.stage(tx)),
		["INCLUDED", "INCLUDED", "BROADCAST", "BROADCAST"],
	);
	assert.equal(scene.ledger.get(moved.tx.hash)?.record.block, 103);
	assert.deepEqual(scene.life(moved).slice(-3), ["included", "reorged", "included"]);
});

const at101 = ({ tx }: PrivateTransaction) => ({
	...{ hash: tx.hash, block: 101, blockHash: "0x65", index: 0, reverted: false },
});

story("what is where it was is not taken back, however long its life was", async (scene) => {
	const tx = at(0);
	await scene.take(tx);
	for (let i = 0; i < 300; i += 1) {
		scene.ledger.emit(tx.tx.hash, { type: "broadcast", at: 1, block: 101 });
	}
	await scene.block({ mined: [tx] });
	const omitted = scene.ledger.get(tx.tx.hash)?.record.omitted;
	const life = scene.life(tx).length;
	await scene.work([], [], true);
	assert.equal(scene.stage(tx), "INCLUDED");
	assert.deepEqual(
		[scene.ledger.get(tx.tx.hash)?.record.omitted, scene.life(tx).length],
		[omitted, life],
		"it was told as taken back and included again",
	);
});

story("while the node is silent no block is passed over", async (scene) => {
	const tx = at(0);
	await scene.take(tx);
	scene.node.down = true;
	const working = scene.block({ mined: [tx] });
	await scene.clock.advance(2_000);
	assert.deepEqual([scene.stage(tx), scene.tip.head()?.number], ["BROADCAST", 100]);
	scene.node.down = false;
	await scene.clock.advance(500);
	await working;
	assert.deepEqual([scene.stage(tx), scene.tip.head()?.number], ["INCLUDED", 101]);
});

story(
	"a disk that fails does not stop the blocks; what changed is written when it is well again",
	async (scene) => {
		const [one, two] = [at(0), at(1)];
		await scene.take(one, two);
		scene.builders.take();
		scene.disk.broken = true;
		await scene.block({ mined: [one] });
		assert.deepEqual(scene.builders.take(), ["send 1 for 102 to a,b"]);
		const told = scene.faults.splice(0).map((line) => line.slice(0, line.indexOf(" {")));
		assert.deepEqual(told, ["records could not be written"]);
		scene.disk.broken = false;
		await scene.block();
		const next = await scene.restart();
		assert.deepEqual([next.stage(one), next.stage(two)], ["INCLUDED", "BROADCAST"]);
	},
);

story("stopping ends the tries", async (scene) => {
	const tx = at(0);
	await scene.take(tx);
	scene.node.down = true;
	const working = scene.block({ mined: [tx] });
	await scene.clock.advance(1_000);
	scene.loop.stop();
	await working;
	assert.equal(scene.clock.timers, 0);
});

story("after a restart all that was pending is pending and goes out again", async (scene) => {
	const [fast, waiting, checked] = [at(0), at(2), privateTransaction({ by: OTHER, path: "noreverts" })];
	await scene.take(fast, waiting, checked);
	await scene.block();
	const next = await scene.restart();
	assert.deepEqual(
		[fast, waiting, checked].map((tx) => next.stage(tx)),
		["BROADCAST", "QUEUED", "BROADCAST"],
	);
	await next.work([], [], true);
	assert.deepEqual(next.builders.take().sort(), ["send 0 for 101 to a,b", "send 0 for 101 to a,b"]);
	assert.deepEqual([next.simulated, next.faults], [["0"], []], "/fast had passed already");
	// Who has had it is known still: a replacement is told to them.
	await next.take(
		privateTransaction({ nonce: 0, maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 12n }),
	);
	assert.equal(next.builders.take()[0], "cancel 0 for 101 at a,b");
});

for (const [when, watched] of [
	["a block comes", 10],
	["its former end is settled", WATCH_BLOCKS - 1],
] as const) {
	story(`what is admitted anew while ${when} is kept, here and on disk`, async (scene) => {
		const tx = at(0);
		await scene.take(tx);
		await blocks(scene, 25 + watched);
		assert.equal(scene.stage(tx), "EXPIRED");
		scene.disk.hold = true;
		const submitting = scene.submit(tx);
		await scene.clock.advance(0);
		const working = scene.block();
		for (let i = 0; i < 20; i += 1) {
			scene.disk.finish(true, 1);
			await scene.clock.advance(0);
		}
		scene.disk.hold = false;
		await Promise.all([submitting, working]);
		await scene.quiet();
		assert.notEqual(scene.pool.get(tx.tx.hash), undefined, "it is not in the pool");
		assert.equal(scene.stage(tx), "BROADCAST");
		assert.notEqual((await scene.restart()).stage(tx), undefined, "it is not on disk");
	});
}

test("a store that is empty is a start with nothing", async () => {
	const next = await new StagesScene(new HandDisk()).restart();
	assert.deepEqual([next.ledger.size, next.pool.size], [0, 0]);
});
