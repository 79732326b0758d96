// The end of a transaction's life: for how many blocks it is sent, its state afterwards, and that
// the relay notices when a builder mines it all the same.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { REVERTS } from "../../support/contracts.ts";
import type { Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";
import { CancelFixture } from "../../support/userFixtures.ts";

const LIFE_BLOCKS = 3;
/** Blocks that what has ended is watched for. */
const WATCHED_BLOCKS = 64;

let system: TestSystem;
let fixture: CancelFixture;

before(async () => {
	system = await startSystem({
		builders: [{ name: "dev", privateMethod: "eth_sendPrivateTransaction" }],
		env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
	});
	fixture = new CancelFixture(system);
});
after(() => system.stop());

async function passBlocks(count: number): Promise<void> {
	for (let i = 0; i < count; i += 1) await fixture.passBlock();
}

/** Lives through its whole life, in which nobody mines it. */
async function expire(tx: Signed, path = "/fast"): Promise<number> {
	const begins = (await fixture.head()) + 1;
	const before = fixture.deliveries(system.builder, tx).length;
	await fixture.submit(path, tx);
	for (let i = 1; i <= LIFE_BLOCKS; i += 1) {
		await until(`sent ${i} times`, () => fixture.deliveries(system.builder, tx).length === before + i);
		await fixture.passBlock();
	}
	await fixture.reaches(tx, "EXPIRED");
	return begins;
}

describe("a transaction that is not mined", () => {
	it("is sent for each block of its lifetime, then is EXPIRED and sent no more", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign();
		const begins = await expire(tx);
		const last = begins + LIFE_BLOCKS - 1;
		const { status, transaction, simulationError } = await fixture.status(tx);
		assert.deepEqual([status, transaction.from, simulationError], ["FAILED", actor.address, null]);
		assert.deepEqual([await fixture.byHash(tx), await fixture.pendingNonce(actor)], [null, 0]);
		await fixture.passBlock();
		await fixture.fence();
		assert.deepEqual(fixture.blocks(system.builder, tx), [begins, begins + 1, last]);
		assert.equal((await fixture.life(tx)).at(-1), `expired ${last}`);
		await system.nextBlock();
		assert.equal(await fixture.receipt(tx), null);
	});

	it("is accepted again with the same bytes, for a new lifetime, and mined", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign();
		const begins = await expire(tx);
		await fixture.passBlock();
		await fixture.submit("/noreverts", tx);
		const again = (await fixture.head()) + 1;
		assert.equal(await fixture.pendingNonce(actor), 1);
		assert.equal((await fixture.byHash(tx))?.hash, tx.hash);
		for (let i = 0; i < LIFE_BLOCKS - 1; i += 1) {
			await fixture.waitUntilSent(tx, { block: again + i });
			await fixture.passBlock();
		}
		await fixture.waitUntilSent(tx, { block: again + LIFE_BLOCKS - 1 });
		const block = await system.nextBlock();
		const { status, fastMode } = await fixture.reaches(tx, "INCLUDED");
		assert.deepEqual([status, fastMode, block], ["INCLUDED", false, again + LIFE_BLOCKS - 1]);
		const life = await fixture.life(tx);
		const start = life.lastIndexOf(`received ${again - 1}`);
		assert.equal(life[start - 1], `expired ${begins + LIFE_BLOCKS - 1}`);
		assert.equal(life.at(-1), `included ${block}`);
	});

	it("on /nochecks is cancelled when it expires, and its range of blocks was never longer than its lifetime", async () => {
		const tx = (await fixture.actor()).sign();
		const begins = await expire(tx, "/nochecks");
		const lastBlock = `0x${(begins + LIFE_BLOCKS - 1).toString(16)}`;
		const deliveries = fixture.deliveries(system.builder, tx);
		assert.deepEqual(
			deliveries.map(({ param }) => param),
			deliveries.map(() => ({ tx: tx.raw, maxBlockNumber: lastBlock })),
		);
		assert.equal(deliveries.length, LIFE_BLOCKS);
		await until("the cancel", () => fixture.cancels(system.builder, tx).length === 1);
		await system.nextBlock();
		assert.equal(await fixture.receipt(tx), null);
	});

	it("that is held expires as well, and its status has the simulation error", async () => {
		const tx = (await fixture.actor()).sign({ to: await fixture.placeCode(REVERTS) });
		await fixture.submit("/fast", tx);
		await fixture.reaches(tx, "SIMULATION_FAILED");
		await passBlocks(LIFE_BLOCKS);
		const { status, simulationError, reason, nextStep } = await fixture.reaches(tx, "EXPIRED");
		assert.deepEqual([reason, nextStep?.slice(0, 16)], ["execution reverted", "its call failed "]);
		assert.deepEqual(
			[status, simulationError],
			["FAILED", { code: "EXECUTION_REVERTED", message: "execution reverted" }],
		);
		assert.deepEqual(fixture.deliveries(system.builder, tx), []);
	});

	it("is still EXPIRED after a restart, and its bytes are accepted again", async () => {
		const tx = (await fixture.actor()).sign();
		const begins = await expire(tx);
		await system.restart();
		assert.equal((await fixture.status(tx)).stage, "EXPIRED");
		assert.equal((await fixture.life(tx)).at(-1), `expired ${begins + LIFE_BLOCKS - 1}`);
		await fixture.submit("/fast", tx);
		await fixture.waitUntilSent(tx);
		await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
	});
});

describe("an ended transaction that is mined nevertheless", () => {
	it("is noticed up to the last block for which it is watched, and not after that", async () => {
		const [last, late] = [(await fixture.actor()).sign(), (await fixture.actor()).sign()];
		const begins = (await fixture.head()) + 1;
		await fixture.submit("/fast", last, late);
		for (let i = 0; i < LIFE_BLOCKS; i += 1) {
			for (const tx of [last, late]) await fixture.waitUntilSent(tx, { block: begins + i });
			await fixture.passBlock();
		}
		for (const tx of [last, late]) await fixture.reaches(tx, "EXPIRED");
		const ended = begins + LIFE_BLOCKS - 1;
		const blocks = WATCHED_BLOCKS - 1 - ((await fixture.head()) - ended);
		await system.chain.rpc("anvil_mine", [`0x${blocks.toString(16)}`, "0xc"]);
		await fixture.seesHead(ended + WATCHED_BLOCKS - 1);
		await fixture.publish(last);
		assert.equal(await fixture.passBlock(), ended + WATCHED_BLOCKS);
		await fixture.reaches(last, "INCLUDED");
		await fixture.publish(late);
		await fixture.passBlock();
		await fixture.fence();
		assert.equal((await fixture.receipt(late))?.ok, true);
		const { status, stage } = await fixture.status(late);
		assert.deepEqual([status, stage], ["FAILED", "EXPIRED"]);
	});
});
