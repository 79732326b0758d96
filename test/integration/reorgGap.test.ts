// Tests blocks that the relay has missed, too many to catch up one by one or a reorganisation while it was down:
// every record is then as the chain is now.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { RelayScene } from "../support/relayScene.ts";
import { startSystem, type TestSystem } from "../support/startSystem.ts";

/** More than the relay catches up one by one. */
const MANY_BLOCKS = 70;

let system: TestSystem;
let scene: RelayScene;

before(async () => {
	system = await startSystem({ env: { TX_TTL_BLOCKS: "1000" } });
	scene = new RelayScene(system);
});
after(() => system.stop());

/** Many blocks while the relay does not look; whatever is in the node's mempool is in the first. */
async function missBlocks(): Promise<void> {
	await system.relay.stop();
	await system.chain.rpc("anvil_mine", [`0x${MANY_BLOCKS.toString(16)}`, "0xc"]);
	await system.restart();
}

describe("after many blocks that were missed", () => {
	it("what was mined in them is INCLUDED, what was not goes out, what was overtaken is DROPPED", async () => {
		const [mined, left, overtaken] = [await scene.actor(), await scene.actor(), await scene.actor()];
		const transactions = [mined, left, overtaken].map((actor) => actor.sign());
		const [seen, waiting, beaten] = transactions;
		assert.ok(seen && waiting && beaten);
		await scene.submit("/fast", ...transactions);
		for (const tx of transactions) await scene.sent(tx);
		const first = (await scene.head()) + 1;
		await scene.publish(seen);
		await scene.publish(overtaken.sign({ value: 9n }));
		await missBlocks();
		await scene.reaches(seen, "INCLUDED");
		assert.equal((await scene.life(seen)).at(-1), `included ${first}`);
		await scene.reaches(beaten, "DROPPED");
		await scene.sent(waiting);
		assert.equal(await scene.receipt(waiting), null);
		await system.nextBlock();
		await scene.reaches(waiting, "INCLUDED");
	});

	it("what was INCLUDED in a block that is gone is pending again and goes out", async () => {
		const actor = await scene.actor();
		const tx = actor.sign();
		await scene.submit("/noreverts", tx);
		await scene.sent(tx);
		const block = await system.nextBlock();
		await scene.reaches(tx, "INCLUDED");
		await system.relay.stop();
		await system.chain.rpc("anvil_reorg", [1, []]);
		await missBlocks();
		await scene.sent(tx);
		assert.equal((await scene.byHash(tx))?.blockHash, null);
		assert.equal(await scene.pendingNonce(actor), 1);
		const again = await system.nextBlock();
		await scene.reaches(tx, "INCLUDED");
		const life = await scene.life(tx);
		assert.deepEqual(life.slice(-4), [
			`reorged ${block}`,
			`simulated ${again}`,
			`broadcast ${again}`,
			`included ${again}`,
		]);
	});
});

describe("a reorganisation while the relay was away", () => {
	it("brings back what was DROPPED for a nonce that is free again", async () => {
		const actor = await scene.actor();
		const tx = actor.sign();
		await scene.submit("/fast", tx);
		await scene.sent(tx);
		await scene.publish(actor.sign({ value: 9n }));
		await scene.passBlock();
		await scene.reaches(tx, "DROPPED");
		await system.relay.stop();
		await system.chain.rpc("anvil_reorg", [1, []]);
		await scene.mineUnseen();
		await system.restart();
		await scene.sent(tx);
		assert.equal(await scene.pendingNonce(actor), 1);
		await system.nextBlock();
		await scene.reaches(tx, "INCLUDED");
	});
});
