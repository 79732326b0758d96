// Tests the end of a transaction's life: for how many blocks it is sent, what becomes of it then, and that one which
// a builder mines all the same is noticed.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Wallet } from "ethers";
import { BuilderClient } from "../devnet/builderClient.ts";
import { GWEI, RelayScene, type Signed } from "../support/relayScene.ts";
import { REVERTS } from "../support/simulationContracts.ts";
import { startSystem, type TestSystem } from "../support/startSystem.ts";
import { until } from "../support/until.ts";

const LIFE_BLOCKS = 3;
/** Blocks that what has ended is watched for. */
const WATCHED_BLOCKS = 64;
const BUMPED = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI };

let system: TestSystem;
let scene: RelayScene;

before(async () => {
	system = await startSystem({
		builders: [{ name: "dev", privateMethod: "eth_sendPrivateTransaction" }],
		env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
	});
	scene = new RelayScene(system);
});
after(() => system.stop());

async function passBlocks(count: number): Promise<void> {
	for (let i = 0; i < count; i += 1) await scene.passBlock();
}

async function fence(): Promise<void> {
	const tx = (await scene.actor()).sign();
	await scene.submit("/fast", tx);
	await scene.sent(tx);
}

/** Gives `tx` to the builder as somebody else would, who has it too. */
async function push(tx: Signed): Promise<void> {
	const stranger = new BuilderClient({ url: system.builder.url, wallet: new Wallet(`0x${"57".repeat(32)}`) });
	assert.equal(await stranger.call("eth_sendPrivateRawTransaction", tx.raw), tx.hash);
}

/** Lives through its whole life, in which nobody mines it. */
async function expire(tx: Signed, path = "/fast"): Promise<number> {
	const begins = (await scene.head()) + 1;
	await scene.submit(path, tx);
	const before = scene.deliveries(system.builder, tx).length;
	for (let i = 1; i <= LIFE_BLOCKS; i += 1) {
		await until(`sent ${i} times`, () => scene.deliveries(system.builder, tx).length === before + i);
		await scene.passBlock();
	}
	await scene.reaches(tx, "EXPIRED");
	return begins;
}

describe("a transaction that nobody mines", () => {
	it("goes out for each block of its life, then is EXPIRED and goes out no more", async () => {
		const actor = await scene.actor();
		const tx = actor.sign();
		const begins = await expire(tx);
		const last = begins + LIFE_BLOCKS - 1;
		const { status, transaction, simulationError } = await scene.status(tx);
		assert.deepEqual([status, transaction.from, simulationError], ["FAILED", actor.address, null]);
		assert.deepEqual([await scene.byHash(tx), await scene.pendingNonce(actor)], [null, 0]);
		await scene.passBlock();
		await fence();
		assert.deepEqual(scene.blocks(system.builder, tx), [begins, begins + 1, last]);
		assert.equal((await scene.life(tx)).at(-1), `expired ${last}`);
		await system.nextBlock();
		assert.equal(await scene.receipt(tx), null);
	});

	it("is admitted anew by the same bytes, for another life, and mined", async () => {
		const actor = await scene.actor();
		const tx = actor.sign();
		const begins = await expire(tx);
		await scene.passBlock();
		await scene.submit("/noreverts", tx);
		const again = (await scene.head()) + 1;
		assert.equal(await scene.pendingNonce(actor), 1);
		assert.equal((await scene.byHash(tx))?.hash, tx.hash);
		for (let i = 0; i < LIFE_BLOCKS - 1; i += 1) {
			await scene.sent(tx, { block: again + i });
			await scene.passBlock();
		}
		await scene.sent(tx, { block: again + LIFE_BLOCKS - 1 });
		const block = await system.nextBlock();
		const { status, fastMode } = await scene.reaches(tx, "INCLUDED");
		assert.deepEqual([status, fastMode, block], ["INCLUDED", false, again + LIFE_BLOCKS - 1]);
		const life = await scene.life(tx);
		const start = life.lastIndexOf(`received ${again - 1}`);
		assert.equal(life[start - 1], `expired ${begins + LIFE_BLOCKS - 1}`);
		assert.equal(life.at(-1), `included ${block}`);
	});

	it("on /nochecks is cancelled at its end, and was named no longer than its life before", async () => {
		const tx = (await scene.actor()).sign();
		const begins = await expire(tx, "/nochecks");
		const lastBlock = `0x${(begins + LIFE_BLOCKS - 1).toString(16)}`;
		const deliveries = scene.deliveries(system.builder, tx);
		assert.deepEqual(
			deliveries.map(({ param }) => param),
			deliveries.map(() => ({ tx: tx.raw, maxBlockNumber: lastBlock })),
		);
		assert.equal(deliveries.length, LIFE_BLOCKS);
		await until("the cancel", () => scene.cancels(system.builder, tx).length === 1);
		await system.nextBlock();
		assert.equal(await scene.receipt(tx), null);
	});

	it("that is held expires as well, and says what it failed of", async () => {
		const tx = (await scene.actor()).sign({ to: await scene.place(REVERTS) });
		await scene.submit("/fast", tx);
		await scene.reaches(tx, "SIMULATION_FAILED");
		await passBlocks(LIFE_BLOCKS);
		const { status, simulationError } = await scene.reaches(tx, "EXPIRED");
		assert.deepEqual(
			[status, simulationError],
			["FAILED", { code: "EXECUTION_REVERTED", message: "execution reverted" }],
		);
		assert.deepEqual(scene.deliveries(system.builder, tx), []);
	});

	it("is still EXPIRED after a restart, and its bytes are admitted anew", async () => {
		const tx = (await scene.actor()).sign();
		const begins = await expire(tx);
		await system.restart();
		assert.equal((await scene.status(tx)).stage, "EXPIRED");
		assert.equal((await scene.life(tx)).at(-1), `expired ${begins + LIFE_BLOCKS - 1}`);
		await scene.submit("/fast", tx);
		await scene.sent(tx);
		await system.nextBlock();
		await scene.reaches(tx, "INCLUDED");
	});
});

describe("what has ended and is mined all the same", () => {
	it("an expired one is INCLUDED", async () => {
		const actor = await scene.actor();
		const tx = actor.sign();
		await expire(tx);
		await scene.passBlock();
		await push(tx);
		const block = await system.nextBlock();
		const { status } = await scene.reaches(tx, "INCLUDED");
		assert.equal(status, "INCLUDED");
		assert.equal((await scene.life(tx)).at(-1), `included ${block}`);
		assert.equal(await scene.pendingNonce(actor), 1);
	});

	it("a replaced one is INCLUDED, and the one in its place is DROPPED", async () => {
		const actor = await scene.actor();
		const [old, fresh] = [actor.sign(), actor.sign({ ...BUMPED, to: await scene.place(REVERTS) })];
		await scene.submit("/fast", old);
		await scene.sent(old);
		await scene.submit("/fast", fresh);
		await scene.reaches(fresh, "SIMULATION_FAILED");
		await push(old);
		const block = await system.nextBlock();
		await scene.reaches(old, "INCLUDED");
		const { status } = await scene.reaches(fresh, "DROPPED");
		assert.equal(status, "FAILED");
		assert.deepEqual((await scene.life(fresh)).at(-1), `dropped ${block}`);
		assert.equal((await scene.life(old)).at(-1), `included ${block}`);
	});

	it("is seen in the last block in which it is watched, and no longer behind that", async () => {
		const [last, late] = [(await scene.actor()).sign(), (await scene.actor()).sign()];
		const begins = (await scene.head()) + 1;
		await scene.submit("/fast", last, late);
		for (let i = 0; i < LIFE_BLOCKS; i += 1) {
			for (const tx of [last, late]) await scene.sent(tx, { block: begins + i });
			await scene.passBlock();
		}
		for (const tx of [last, late]) await scene.reaches(tx, "EXPIRED");
		const ended = begins + LIFE_BLOCKS - 1;
		const blocks = WATCHED_BLOCKS - 1 - ((await scene.head()) - ended);
		await system.chain.rpc("anvil_mine", [`0x${blocks.toString(16)}`, "0xc"]);
		await scene.seesHead(ended + WATCHED_BLOCKS - 1);
		await scene.publish(last);
		assert.equal(await scene.passBlock(), ended + WATCHED_BLOCKS);
		await scene.reaches(last, "INCLUDED");
		await scene.publish(late);
		await scene.passBlock();
		await fence();
		assert.equal((await scene.receipt(late))?.ok, true);
		const { status, stage } = await scene.status(late);
		assert.deepEqual([status, stage], ["FAILED", "EXPIRED"]);
	});
});
