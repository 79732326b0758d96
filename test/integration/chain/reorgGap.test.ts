// Tests blocks that the relay has missed, too many to catch up one by one or a reorganisation while it was down:
// every record is then as the chain is now.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { RelayFixture } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/startSystem.ts";

/** More than the relay catches up one by one. */
const MANY_BLOCKS = 70;

let system: TestSystem;
let fixture: RelayFixture;

before(async () => {
	system = await startSystem({ env: { TX_TTL_BLOCKS: "1000" } });
	fixture = new RelayFixture(system);
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
		const [mined, left, overtaken] = [await fixture.actor(), await fixture.actor(), await fixture.actor()];
		const transactions = [mined, left, overtaken].map((actor) => actor.sign());
		const [seen, waiting, beaten] = transactions;
		assert.ok(seen && waiting && beaten);
		await fixture.submit("/fast", ...transactions);
		for (const tx of transactions) await fixture.sent(tx);
		const first = (await fixture.head()) + 1;
		await fixture.publish(seen);
		await fixture.publish(overtaken.sign({ value: 9n }));
		await missBlocks();
		await fixture.reaches(seen, "INCLUDED");
		assert.equal((await fixture.life(seen)).at(-1), `included ${first}`);
		await fixture.reaches(beaten, "DROPPED");
		await fixture.sent(waiting);
		assert.equal(await fixture.receipt(waiting), null);
		await system.nextBlock();
		await fixture.reaches(waiting, "INCLUDED");
	});

	it("what was INCLUDED in a block that is gone is pending again and goes out", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign();
		await fixture.submit("/noreverts", tx);
		await fixture.sent(tx);
		const block = await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		await system.relay.stop();
		await system.chain.rpc("anvil_reorg", [1, []]);
		await missBlocks();
		await fixture.sent(tx);
		assert.equal((await fixture.byHash(tx))?.blockHash, null);
		assert.equal(await fixture.pendingNonce(actor), 1);
		const again = await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		const life = await fixture.life(tx);
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
		const actor = await fixture.actor();
		const tx = actor.sign();
		await fixture.submit("/fast", tx);
		await fixture.sent(tx);
		await fixture.publish(actor.sign({ value: 9n }));
		await fixture.passBlock();
		await fixture.reaches(tx, "DROPPED");
		await system.relay.stop();
		await system.chain.rpc("anvil_reorg", [1, []]);
		await fixture.mineUnseen();
		await system.restart();
		await fixture.sent(tx);
		assert.equal(await fixture.pendingNonce(actor), 1);
		await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
	});
});
