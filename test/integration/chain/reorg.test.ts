// Reorganisations of a real chain that leave out, move or mine otherwise what was mined, and blocks
// that the relay has missed: each transaction returns to its right stage, and its events tell it in
// order.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Wallet } from "ethers";
import { BuilderClient } from "../../devnet/builderClient.ts";
import { REVERTS } from "../../support/contracts.ts";
import { type Actor, GWEI, RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";

const LIFE_BLOCKS = 6;
/** More than the relay catches up one by one. */
const MANY_BLOCKS = 70;
const BUMPED = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI };

let system: TestSystem;
let fixture: RelayFixture;

async function begin(env: Readonly<Record<string, string>>): Promise<void> {
	system = await startSystem({ proxied: true, env });
	fixture = new RelayFixture(system);
}
before(() => begin({ TX_TTL_BLOCKS: String(LIFE_BLOCKS) }));
after(() => system.stop());

/**
 * The last `depth` blocks go, as many others come; each of `mined` is in the block behind so many
 * others.
 */
async function reorganise(depth: number, mined: readonly (readonly [Signed, number])[] = []): Promise<void> {
	const pairs = mined.map(([{ raw }, behind]) => [raw, behind]);
	// anvil mines them one after another: the relay sees the last one only.
	const release = system.node?.hold();
	await system.chain.rpc("anvil_reorg", [depth, pairs]).finally(release);
}

async function blockHash(number: number): Promise<string> {
	const block = (await system.chain.rpc("eth_getBlockByNumber", [`0x${number.toString(16)}`, false])) as {
		hash: string;
	};
	return block.hash;
}

/** Submits on `path`, and has it mined; its block. */
async function mine(tx: Signed, path = "/fast", stage = "INCLUDED"): Promise<number> {
	await fixture.submit(path, tx);
	await fixture.waitUntilSent(tx);
	const block = await system.nextBlock();
	await fixture.reaches(tx, stage);
	return block;
}

/** It is pending for every client, and out for the next block. */
async function assertPendingAgain(tx: Signed, actor: Actor, pendingNonce: number): Promise<void> {
	const block = (await fixture.head()) + 1;
	await fixture.event(tx, "broadcast", (event) => event.block === block);
	await fixture.waitUntilSent(tx);
	await fixture.leftBlock(tx);
	const { status, rpc_timestamp } = await fixture.reaches(tx, "BROADCAST");
	assert.deepEqual([status, rpc_timestamp], ["UNKNOWN", null]);
	const shown = await fixture.byHash(tx);
	assert.deepEqual(
		[shown?.hash, shown?.blockHash, shown?.blockNumber, shown?.transactionIndex],
		[tx.hash, null, null, null],
	);
	assert.equal(await fixture.pendingNonce(actor), pendingNonce);
}

/** It is mined in `block` for every client. */
async function assertMined(tx: Signed, block: number): Promise<void> {
	assert.equal((await fixture.reaches(tx, "INCLUDED")).status, "INCLUDED");
	const hash = await blockHash(block);
	const last = (await fixture.events(tx)).findLast(({ type }) => type === "included");
	assert.deepEqual([last?.block, last?.blockHash], [block, hash]);
	assert.equal((await fixture.byHash(tx))?.blockHash, hash);
	const receipt = (await system.client.call("eth_getTransactionReceipt", [tx.hash])) as { blockHash: string };
	assert.equal(receipt.blockHash, hash);
}

describe("a block that is left out", () => {
	for (const [path, again] of [
		["/fast", false],
		["/noreverts", true],
	] as const) {
		it(`makes its transaction of ${path} pending again, and it is sent again and mined in another block`, async () => {
			const actor = await fixture.actor();
			const tx = actor.sign();
			const first = await mine(tx, path);
			await assertMined(tx, first);
			await reorganise(1);
			await assertPendingAgain(tx, actor, 1);
			const second = await system.nextBlock();
			await assertMined(tx, second);
			assert.equal(second, first + 1);
			assert.deepEqual(await fixture.life(tx), [
				`received ${first - 1}`,
				`ready ${first}`,
				`simulated ${first}`,
				`broadcast ${first}`,
				`included ${first}`,
				`reorged ${first}`,
				`exposed ${first}`,
				...(again ? [`simulated ${second}`] : []),
				`broadcast ${second}`,
				`included ${second}`,
			]);
		});
	}

	it("on /nochecks makes what was mined as reverted pending again, and REVERTED again", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign({ to: await fixture.placeCode(REVERTS) });
		const first = await mine(tx, "/nochecks", "REVERTED");
		await reorganise(1);
		await assertPendingAgain(tx, actor, 1);
		const second = await system.nextBlock();
		await fixture.reaches(tx, "REVERTED");
		assert.deepEqual((await fixture.life(tx)).slice(-5), [
			`included ${first}`,
			`reorged ${first}`,
			`exposed ${first}`,
			`broadcast ${second}`,
			`included ${second}`,
		]);
	});

	it("among three makes a chain of nonces pending again as a whole, and it is mined in order", async () => {
		const actor = await fixture.actor();
		const [one, two, three] = [0, 1, 2].map((nonce) => actor.sign({ nonce }));
		assert.ok(one && two && three);
		for (const tx of [one, two, three]) await mine(tx);
		await reorganise(3);
		for (const tx of [one, two, three]) await assertPendingAgain(tx, actor, 3);
		const block = await system.nextBlock();
		const places = [];
		for (const tx of [one, two, three]) {
			await assertMined(tx, block);
			places.push((await fixture.receipt(tx))?.index ?? -1);
		}
		assert.deepEqual(
			places,
			[...places].sort((a, b) => a - b),
		);
	});

	it("without a replacement (a rollback) counts once the head stays there", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign();
		const snapshot = await system.chain.snapshot();
		const block = await mine(tx);
		await system.chain.revert(snapshot);
		await fixture.event(tx, "reorged");
		await assertPendingAgain(tx, actor, 1);
		assert.equal(await system.nextBlock(), block);
		await assertMined(tx, block);
		assert.deepEqual((await fixture.life(tx)).slice(-5), [
			`included ${block}`,
			`reorged ${block}`,
			`exposed ${block}`,
			`broadcast ${block}`,
			`included ${block}`,
		]);
	});

	it("while the relay was away is noticed at its start", async () => {
		const actor = await fixture.actor();
		const [lost, moved] = [actor.sign({ nonce: 1 }), actor.sign({ nonce: 0 })];
		await fixture.submit("/fast", moved);
		const block = await mine(lost);
		await system.relay.stop();
		await reorganise(1, [[moved, 0]]);
		const other = await fixture.mineUnseen();
		await system.restart();
		await assertPendingAgain(lost, actor, 2);
		await assertMined(moved, block);
		assert.deepEqual((await fixture.life(moved)).slice(-4), [
			`included ${block}`,
			`reorged ${block}`,
			`exposed ${block}`,
			`included ${block}`,
		]);
		assert.equal(await system.nextBlock(), other + 1);
		await assertMined(lost, other + 1);
	});
});

describe("a transaction that is in the new blocks too", () => {
	for (const [where, depth, behind] of [
		["of the same number", 1, 0],
		["behind it", 2, 1],
	] as const) {
		it(`in one ${where} is reported as reorged and included again, and never pending`, async () => {
			const tx = (await fixture.actor()).sign();
			const first = await mine(tx);
			const before = await blockHash(first);
			for (let i = 1; i < depth; i += 1) await fixture.passBlock();
			await reorganise(depth, [[tx, behind]]);
			await fixture.event(tx, "reorged");
			await assertMined(tx, first + behind);
			const [, , , , ...life] = await fixture.life(tx);
			assert.deepEqual(life, [
				`included ${first}`,
				`reorged ${first}`,
				`exposed ${first}`,
				`included ${first + behind}`,
			]);
			assert.notEqual(await blockHash(first), before);
			assert.equal(fixture.deliveries(system.builder, tx).length, 1);
		});
	}
});

describe("a transaction that had ended before", () => {
	/** Gives `tx` to the builder as somebody else would, who has it too. */
	async function push(tx: Signed): Promise<void> {
		const wallet = new Wallet(`0x${"57".repeat(32)}`);
		await new BuilderClient({ url: system.builder.url, wallet }).call(
			"eth_sendPrivateRawTransaction",
			tx.raw,
		);
	}

	it("because its nonce was used is pending again when the block that used it is gone", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign({ nonce: 0 });
		const behind = actor.sign({ nonce: 1 });
		await fixture.submit("/fast", tx, behind);
		await fixture.waitUntilSent(behind);
		await fixture.publish(actor.sign({ nonce: 0, value: 9n }));
		const used = await fixture.passBlock();
		await fixture.reaches(tx, "DROPPED");
		await reorganise(1);
		await assertPendingAgain(tx, actor, 2);
		const block = await system.nextBlock();
		for (const one of [tx, behind]) await assertMined(one, block);
		assert.deepEqual((await fixture.life(tx)).slice(-4), [
			`dropped ${used}`,
			`reorged ${used}`,
			`broadcast ${block}`,
			`included ${block}`,
		]);
	});

	it("because its nonce was used is EXPIRED, and sent no more, when that block goes after the end of its lifetime", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign();
		await fixture.submit("/fast", tx);
		await fixture.waitUntilSent(tx);
		await fixture.publish(actor.sign({ value: 9n }));
		const used = await fixture.passBlock();
		await fixture.reaches(tx, "DROPPED");
		for (let i = 1; i < LIFE_BLOCKS; i += 1) await fixture.passBlock();
		await reorganise(LIFE_BLOCKS);
		await fixture.reaches(tx, "EXPIRED");
		assert.deepEqual((await fixture.life(tx)).slice(-3), [
			`dropped ${used}`,
			`reorged ${used}`,
			`expired ${await fixture.head()}`,
		]);
	});

	it("as REPLACED and was mined is REPLACED again, and its replacement is pending again", async () => {
		const actor = await fixture.actor();
		const [old, fresh] = [actor.sign(), actor.sign({ ...BUMPED, to: await fixture.placeCode(REVERTS) })];
		await fixture.submit("/fast", old);
		await fixture.waitUntilSent(old);
		await fixture.submit("/fast", fresh);
		await fixture.reaches(fresh, "SIMULATION_FAILED");
		await push(old);
		const block = await system.nextBlock();
		await fixture.reaches(old, "INCLUDED");
		await fixture.reaches(fresh, "DROPPED");
		await reorganise(1);
		assert.equal((await fixture.reaches(old, "REPLACED")).status, "FAILED");
		await fixture.reaches(fresh, "SIMULATION_FAILED");
		assert.equal(await fixture.byHash(old), null);
		assert.equal((await fixture.byHash(fresh))?.hash, fresh.hash);
		assert.equal(fixture.deliveries(system.builder, old).length, 2, "ours and the stranger's");
		const again = await system.nextBlock();
		await assertMined(old, again);
		await fixture.reaches(fresh, "DROPPED");
		assert.deepEqual((await fixture.life(old)).slice(-5), [
			`replaced ${block - 1}`,
			`included ${block}`,
			`reorged ${block}`,
			`exposed ${block}`,
			`included ${again}`,
		]);
	});

	it("as EXPIRED and was mined is EXPIRED again", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign();
		await fixture.submit("/fast", tx);
		await fixture.waitUntilSent(tx);
		while ((await fixture.status(tx)).stage !== "EXPIRED") await fixture.passBlock();
		await fixture.publish(tx);
		const block = await fixture.passBlock();
		await fixture.reaches(tx, "INCLUDED");
		await reorganise(1);
		assert.equal((await fixture.reaches(tx, "EXPIRED")).status, "FAILED");
		assert.equal(await fixture.byHash(tx), null);
		assert.deepEqual((await fixture.life(tx)).slice(-3), [
			`included ${block}`,
			`reorged ${block}`,
			`exposed ${block}`,
		]);
	});

	it("as REPLACED stays so when the block with its replacement is gone; its bytes still have no effect", async () => {
		const actor = await fixture.actor();
		const [old, fresh] = [actor.sign(), actor.sign({ ...BUMPED, value: 1n })];
		await fixture.submit("/fast", old);
		await fixture.waitUntilSent(old);
		const first = await mine(fresh);
		await reorganise(1);
		await assertPendingAgain(fresh, actor, 1);
		await fixture.submit("/fast", old);
		assert.equal((await fixture.status(old)).stage, "REPLACED");
		assert.deepEqual(fixture.blocks(system.builder, old), [first]);
		await assertMined(fresh, await system.nextBlock());
	});
});

describe("blocks that the relay has missed", () => {
	before(async () => {
		await system.stop();
		// Longer lives than all that is missed.
		await begin({ TX_TTL_BLOCKS: "1000" });
	});

	/**
	 * Many blocks while the relay does not look; whatever is in the node's mempool is in the first.
	 */
	async function missBlocks(): Promise<void> {
		await system.relay.stop();
		await system.chain.rpc("anvil_mine", [`0x${MANY_BLOCKS.toString(16)}`, "0xc"]);
		await system.restart();
	}

	it("make mined transactions INCLUDED and those with used nonces DROPPED; the others are sent", async () => {
		const [mined, left, overtaken] = [await fixture.actor(), await fixture.actor(), await fixture.actor()];
		const transactions = [mined, left, overtaken].map((actor) => actor.sign());
		const [seen, waiting, beaten] = transactions;
		assert.ok(seen && waiting && beaten);
		await fixture.submit("/fast", ...transactions);
		for (const tx of transactions) await fixture.waitUntilSent(tx);
		const first = (await fixture.head()) + 1;
		await fixture.publish(seen);
		await fixture.publish(overtaken.sign({ value: 9n }));
		await missBlocks();
		await fixture.reaches(seen, "INCLUDED");
		assert.equal((await fixture.life(seen)).at(-1), `included ${first}`);
		await fixture.reaches(beaten, "DROPPED");
		await fixture.waitUntilSent(waiting);
		assert.equal(await fixture.receipt(waiting), null);
		await system.nextBlock();
		await fixture.reaches(waiting, "INCLUDED");
	});

	it("make what was INCLUDED in a removed block pending again, and it is sent", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign();
		await fixture.submit("/noreverts", tx);
		await fixture.waitUntilSent(tx);
		const block = await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		await system.relay.stop();
		await system.chain.rpc("anvil_reorg", [1, []]);
		await missBlocks();
		await fixture.waitUntilSent(tx);
		assert.equal((await fixture.byHash(tx))?.blockHash, null);
		assert.equal(await fixture.pendingNonce(actor), 1);
		const again = await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		const life = await fixture.life(tx);
		assert.deepEqual(life.slice(-5), [
			`reorged ${block}`,
			`exposed ${block}`,
			`simulated ${again}`,
			`broadcast ${again}`,
			`included ${again}`,
		]);
	});

	it("make pending again what was DROPPED for a nonce that is now free", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign();
		await fixture.submit("/fast", tx);
		await fixture.waitUntilSent(tx);
		await fixture.publish(actor.sign({ value: 9n }));
		await fixture.passBlock();
		await fixture.reaches(tx, "DROPPED");
		await system.relay.stop();
		await system.chain.rpc("anvil_reorg", [1, []]);
		await fixture.mineUnseen();
		await system.restart();
		await fixture.waitUntilSent(tx);
		assert.equal(await fixture.pendingNonce(actor), 1);
		await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
	});
});
