// Tests what each block does to the relay's transactions: inclusion, reorganisations, expiry, missed blocks, the end
// of watching, and a restart.

import assert from "node:assert/strict";
import { test } from "node:test";
import { GAP_LIFE_S } from "../../../relay/blockLoop.ts";
import { WATCH_BLOCKS } from "../../../relay/chainChanges.ts";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, testAccount } from "../../support/txFactory.ts";
import { FakeDisk } from "./fakeDisk.ts";
import { blocks, scenario } from "./scenarios.ts";
import { StagesFixture } from "./stagesFixture.ts";

const SENDER = testAccount(0).address;
const OTHER = testAccount(1);
const at = (nonce: number, path: PrivateTransaction["path"] = "fast") => privateTransaction({ nonce, path });

scenario("what is in a block is included, is sent no more, and is told with its place", async (fixture) => {
	const [one, two] = [at(0), at(1)];
	await fixture.take(one, two);
	fixture.builders.take();
	await fixture.block({ mined: [one] });
	const record = fixture.records.get(one.tx.hash)?.record;
	assert.deepEqual(record?.events.at(-1), {
		...{
			type: "included",
			at: fixture.clock.now(),
			block: 101,
			blockHash: "0x65",
			index: 0,
			reverted: false,
		},
	});
	assert.deepEqual([fixture.stage(one), fixture.stage(two)], ["INCLUDED", "BROADCAST"]);
	assert.deepEqual(fixture.builders.take(), ["send 1 for 102 to a,b"]);
	await fixture.block({ mined: [two], reverted: true });
	assert.equal(fixture.stage(two), "REVERTED");
	assert.equal(fixture.pool.size, 0);
});

scenario("a block that goes takes its transactions back, and they go out again", async (fixture) => {
	const [one, two, three] = [at(0), at(1), at(2)];
	await fixture.take(one, two, three);
	await fixture.block({ mined: [one] });
	await fixture.block({ mined: [two] });
	fixture.builders.take();
	fixture.node.nonces.set(SENDER, 0n);
	// One block for two: what the account was after block 102 must not count against what it is now.
	await fixture.reorganise(2, { fork: "b" });
	assert.deepEqual(
		[one, two, three].map((tx) => fixture.stage(tx)),
		["BROADCAST", "BROADCAST", "BROADCAST"],
	);
	assert.deepEqual(
		fixture.builders.take(),
		[0, 1, 2].map((nonce) => `send ${nonce} for 102 to a,b`),
	);
	await fixture.block({ mined: [one, two], fork: "b" });
	assert.deepEqual(fixture.life(one).slice(-4), ["included", "reorged", "broadcast", "included"]);
	assert.equal(fixture.records.get(two.tx.hash)?.record.block, 102);
});

scenario("what moves to another block of the same height is included there", async (fixture) => {
	const tx = at(0);
	await fixture.take(tx);
	await fixture.block({ mined: [tx] });
	fixture.builders.take();
	await fixture.reorganise(1, { mined: [tx], fork: "b" });
	assert.equal(fixture.stage(tx), "INCLUDED");
	assert.deepEqual(fixture.records.get(tx.tx.hash)?.record.events.at(-1)?.type, "included");
	assert.deepEqual(fixture.builders.take(), []);
});

scenario("a nonce that others used in a block that goes is free again", async (fixture) => {
	const tx = at(0);
	await fixture.take(tx);
	await fixture.block({ used: { [SENDER]: 1n } });
	assert.equal(fixture.stage(tx), "DROPPED");
	fixture.builders.take();
	fixture.node.nonces.set(SENDER, 0n);
	await fixture.reorganise(1, { fork: "b" });
	assert.deepEqual([fixture.stage(tx), fixture.builders.take()], ["BROADCAST", ["send 0 for 102 to a,b"]]);
});

scenario("a replaced one whose replacement's block goes stays replaced", async (fixture) => {
	const old = at(0);
	const fresh = privateTransaction({ nonce: 0, maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 12n });
	await fixture.take(old, fresh);
	await fixture.block({ mined: [old] });
	assert.deepEqual([fixture.stage(old), fixture.stage(fresh)], ["INCLUDED", "DROPPED"]);
	fixture.node.nonces.set(SENDER, 0n);
	await fixture.reorganise(1, { fork: "b" });
	assert.deepEqual([fixture.stage(old), fixture.stage(fresh)], ["REPLACED", "BROADCAST"]);
});

scenario("it lives 25 blocks, then it is expired; a private one is withdrawn", async (fixture) => {
	const [bundle, secret] = [at(0), at(1, "nochecks")];
	await fixture.take(bundle, secret);
	await blocks(fixture, 24);
	const last = fixture.builders.take().slice(-2);
	assert.deepEqual(last, ["send 0 for 125 to a,b", "send 1 for 125 until 125 to a,b"]);
	await fixture.block();
	assert.deepEqual([fixture.stage(bundle), fixture.stage(secret)], ["EXPIRED", "EXPIRED"]);
	assert.deepEqual(fixture.builders.take(), ["cancel 1 for 126 at a,b"]);
	assert.equal(fixture.pool.size, 0);
});

scenario(
	"what a builder mines after its end is included, and its block's going takes it back to its end",
	async (fixture) => {
		const tx = at(0);
		await fixture.take(tx);
		await blocks(fixture, 30);
		await fixture.block({ mined: [tx] });
		assert.equal(fixture.stage(tx), "INCLUDED");
		fixture.node.nonces.set(SENDER, 0n);
		await fixture.reorganise(1, { fork: "b" });
		assert.equal(fixture.stage(tx), "EXPIRED");
	},
);

scenario("what waits behind a gap is given up after three hours", async (fixture) => {
	const tx = at(5);
	await fixture.take(tx);
	await blocks(fixture, GAP_LIFE_S / 12 - 1);
	assert.equal(fixture.stage(tx), "QUEUED");
	await fixture.block();
	assert.equal(fixture.stage(tx), "EXPIRED");
});

for (const [name, end] of [
	["mined", (fixture: StagesFixture, tx: PrivateTransaction) => fixture.block({ mined: [tx] })],
	["dropped", (fixture: StagesFixture) => fixture.block({ used: { [SENDER]: 1n } })],
	["expired", (fixture: StagesFixture) => blocks(fixture, 25)],
] as const) {
	scenario(
		`what is ${name} is watched for ${WATCH_BLOCKS} blocks, then settled for good`,
		async (fixture) => {
			const tx = at(0);
			await fixture.take(tx);
			await end(fixture, tx);
			const stage = fixture.stage(tx);
			await blocks(fixture, WATCH_BLOCKS - 1);
			assert.equal(fixture.stage(tx), stage);
			await fixture.block();
			assert.equal(fixture.records.size, 0);
			assert.equal((await fixture.store.settled(tx.tx.hash))?.stage, stage);
			assert.deepEqual(
				[...fixture.disk.map.keys()].filter((key) => key.startsWith("p/") || key.startsWith("s/")),
				[],
			);
		},
	);
}

scenario("after blocks that could not be seen one by one, all is asked anew", async (fixture) => {
	const [mined, moved, gone, pending] = [at(0), at(1), at(2), privateTransaction({ by: OTHER })];
	await fixture.take(mined, moved, gone, pending);
	await fixture.block({ mined: [moved, gone] });
	const hash = fixture.head.hash;
	fixture.node.mined.delete(gone.tx.hash);
	fixture.node.mined.set(moved.tx.hash, { ...at101(moved), block: 103, blockHash: "0x67" });
	fixture.node.mined.set(mined.tx.hash, { ...at101(mined), blockHash: hash });
	fixture.node.nonces.set(SENDER, 2n);
	await fixture.block();
	await fixture.block();
	fixture.builders.take();
	await fixture.work([], [], true);
	assert.deepEqual(
		[mined, moved, gone, pending].map((tx) => fixture.stage(tx)),
		["INCLUDED", "INCLUDED", "BROADCAST", "BROADCAST"],
	);
	assert.equal(fixture.records.get(moved.tx.hash)?.record.block, 103);
	assert.deepEqual(fixture.life(moved).slice(-3), ["included", "reorged", "included"]);
});

const at101 = ({ tx }: PrivateTransaction) => ({
	...{ hash: tx.hash, block: 101, blockHash: "0x65", index: 0, reverted: false },
});

scenario("what is where it was is not taken back, however long its life was", async (fixture) => {
	const tx = at(0);
	await fixture.take(tx);
	for (let i = 0; i < 300; i += 1) {
		fixture.records.emit(tx.tx.hash, { type: "broadcast", at: 1, block: 101 });
	}
	await fixture.block({ mined: [tx] });
	const omitted = fixture.records.get(tx.tx.hash)?.record.omitted;
	const life = fixture.life(tx).length;
	await fixture.work([], [], true);
	assert.equal(fixture.stage(tx), "INCLUDED");
	assert.deepEqual(
		[fixture.records.get(tx.tx.hash)?.record.omitted, fixture.life(tx).length],
		[omitted, life],
		"it was told as taken back and included again",
	);
});

scenario("while the node is silent no block is passed over", async (fixture) => {
	const tx = at(0);
	await fixture.take(tx);
	fixture.node.down = true;
	const working = fixture.block({ mined: [tx] });
	await fixture.clock.advance(2_000);
	assert.deepEqual([fixture.stage(tx), fixture.tip.head()?.number], ["BROADCAST", 100]);
	fixture.node.down = false;
	await fixture.clock.advance(500);
	await working;
	assert.deepEqual([fixture.stage(tx), fixture.tip.head()?.number], ["INCLUDED", 101]);
});

scenario(
	"a disk that fails does not stop the blocks; what changed is written when it is well again",
	async (fixture) => {
		const [one, two] = [at(0), at(1)];
		await fixture.take(one, two);
		fixture.builders.take();
		fixture.disk.broken = true;
		await fixture.block({ mined: [one] });
		assert.deepEqual(fixture.builders.take(), ["send 1 for 102 to a,b"]);
		const told = fixture.faults.splice(0).map((line) => line.slice(0, line.indexOf(" {")));
		assert.deepEqual(told, ["records could not be written"]);
		fixture.disk.broken = false;
		await fixture.block();
		const next = await fixture.restart();
		assert.deepEqual([next.stage(one), next.stage(two)], ["INCLUDED", "BROADCAST"]);
	},
);

scenario("stopping ends the tries", async (fixture) => {
	const tx = at(0);
	await fixture.take(tx);
	fixture.node.down = true;
	const working = fixture.block({ mined: [tx] });
	await fixture.clock.advance(1_000);
	fixture.loop.stop();
	await working;
	assert.equal(fixture.clock.timers, 0);
});

scenario("after a restart all that was pending is pending and goes out again", async (fixture) => {
	const [fast, waiting, checked] = [at(0), at(2), privateTransaction({ by: OTHER, path: "noreverts" })];
	await fixture.take(fast, waiting, checked);
	await fixture.block();
	const next = await fixture.restart();
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
	scenario(`what is admitted anew while ${when} is kept, here and on disk`, async (fixture) => {
		const tx = at(0);
		await fixture.take(tx);
		await blocks(fixture, 25 + watched);
		assert.equal(fixture.stage(tx), "EXPIRED");
		fixture.disk.hold = true;
		const submitting = fixture.submit(tx);
		await fixture.clock.advance(0);
		const working = fixture.block();
		for (let i = 0; i < 20; i += 1) {
			fixture.disk.finish(true, 1);
			await fixture.clock.advance(0);
		}
		fixture.disk.hold = false;
		await Promise.all([submitting, working]);
		await fixture.quiet();
		assert.notEqual(fixture.pool.get(tx.tx.hash), undefined, "it is not in the pool");
		assert.equal(fixture.stage(tx), "BROADCAST");
		assert.notEqual((await fixture.restart()).stage(tx), undefined, "it is not on disk");
	});
}

test("a store that is empty is a start with nothing", async () => {
	const next = await new StagesFixture(new FakeDisk()).restart();
	assert.deepEqual([next.records.size, next.pool.size], [0, 0]);
});
