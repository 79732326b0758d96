// Tests eth_sendRawTransactionSync on a real chain with a real builder: what the sender is answered, and when, as the
// transaction's fate is decided.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ETHER, GWEI } from "../../support/relayFixture.ts";
import { errorString, REVERTS, revertingWith } from "../../support/simulationContracts.ts";
import type { TestSystem } from "../../support/startSystem.ts";
import { type SyncFixture, startSync } from "../../support/syncFixture.ts";

const GAP = "due to a missing nonce: it goes out when the gap before it closes";
const BUMPED = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };

let system: TestSystem;
let fixture: SyncFixture;
before(async () => {
	fixture = await startSync();
	({ system } = fixture);
});
after(() => system.stop());

describe("mined", () => {
	for (const path of ["/", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"]) {
		test(`while its sender waits, on ${path}`, async () => {
			const tx = (await fixture.actor()).sign();
			const sending = await fixture.waiting(tx, path);
			await system.nextBlock();
			await fixture.assertMined(sending, tx);
		});
	}

	test("mined and reverted: the receipt says so", async () => {
		const to = await fixture.place(REVERTS);
		const tx = (await fixture.actor()).sign({ to });
		const sending = await fixture.waiting(tx, "/nochecks");
		await system.nextBlock();
		await fixture.assertMined(sending, tx, "0x0");
	});

	test("before it was sent again: at once", async () => {
		const tx = (await fixture.actor()).sign();
		await fixture.submit("/fast", tx);
		await fixture.sent(tx);
		await system.nextBlock();
		await fixture.assertMined(fixture.sync(tx), tx);
	});

	test("the sender's next one, sent as soon as the receipt of the one before is there", async () => {
		const actor = await fixture.actor();
		for (const nonce of [0, 1, 2]) {
			const tx = actor.sign({ nonce });
			const sending = await fixture.waiting(tx);
			// Nobody waits for the relay but who has sent it.
			await system.builder.buildBlock();
			await fixture.assertMined(sending, tx);
		}
	});
});

describe("the time is up", () => {
	test("code 4 with the hash; it is still pending, is mined later, and is its receipt then", async () => {
		const tx = (await fixture.actor()).sign();
		const begun = performance.now();
		await fixture.assertFails(fixture.sync(tx, "/fast", 250), tx, 4, "in 0.25s.");
		assert.ok(performance.now() - begun >= 250, "not before");
		await fixture.sent(tx);
		const again = fixture.sync(tx, "/fast", "0x4e20");
		await system.nextBlock();
		await fixture.assertMined(again, tx);
	});
});

describe("it can't be mined soon: code 5 with the hash, at once", () => {
	test("behind a nonce gap, now and when it is sent again; once the gap closes it is mined", async () => {
		const actor = await fixture.actor();
		const [first, second] = [actor.sign(), actor.sign({ nonce: 1 })];
		await fixture.assertFails(fixture.sync(second), second, 5, GAP);
		await fixture.assertFails(fixture.sync(second), second, 5, GAP);
		const sending = await fixture.waiting(first);
		await fixture.sent(second);
		const again = fixture.sync(second);
		await system.nextBlock();
		await fixture.assertMined(sending, first);
		await fixture.assertMined(again, second);
	});

	test("its simulation fails, now and when it is sent again; what stands behind it waits for it", async () => {
		const to = await fixture.place(revertingWith(errorString("not today")));
		const actor = await fixture.actor();
		const [tx, behind] = [actor.sign({ to }), actor.sign({ nonce: 1 })];
		const why = "due to a failing simulation: execution reverted: not today";
		await fixture.assertFails(fixture.sync(tx), tx, 5, why);
		await fixture.assertFails(fixture.sync(tx), tx, 5, why);
		await fixture.assertFails(fixture.sync(behind), behind, 5, "due to one before it that is held");
		// What its sender puts in its place frees the chain.
		const better = actor.sign(BUMPED);
		const sending = await fixture.waiting(better);
		const again = await fixture.waiting(behind);
		await system.nextBlock();
		await fixture.assertMined(sending, better);
		await fixture.assertMined(again, behind);
	});

	test("it is cancelled while its sender waits, and sent again then", async () => {
		const tx = (await fixture.actor()).sign();
		const sending = await fixture.waiting(tx);
		assert.equal(await fixture.cancel(tx), true);
		await fixture.assertFails(sending, tx, 5, "due to its cancellation");
		await fixture.assertFails(fixture.sync(tx), tx, 5, "due to its cancellation");
	});

	test("a soft cancel ends the wait, and is waited for by nobody itself", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign();
		const sending = await fixture.waiting(tx, "/noreverts?softCancellations=true");
		const cancel = actor.sign({ to: actor.address, gasLimit: 21_000 });
		const { answer } = fixture.sync(cancel);
		await fixture.assertFails(sending, tx, 5, "due to its cancellation");
		const { error } = await answer;
		assert.deepEqual([error?.code, error?.data], [5, cancel.hash]);
		assert.match(String(error?.message), /soft cancel/);
		const again = (await fixture.sync(cancel).answer).error;
		assert.deepEqual([again?.code, again?.data], [5, cancel.hash]);
	});

	test("it is replaced while its sender waits; the other one is mined", async () => {
		const actor = await fixture.actor();
		const [tx, other] = [actor.sign(), actor.sign(BUMPED)];
		const sending = await fixture.waiting(tx);
		const second = await fixture.waiting(other);
		await fixture.assertFails(sending, tx, 5, "due to its replacement");
		await system.nextBlock();
		await fixture.assertMined(second, other);
	});

	test("another one of its sender's uses its nonce", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign();
		const sending = await fixture.waiting(tx, "/fullprivacy");
		await fixture.publish(actor.sign({ value: 1n }));
		await fixture.passBlock();
		await fixture.assertFails(sending, tx, 5, "due to another one that used its nonce");
	});
});

test("what is refused is refused as by eth_sendRawTransaction", async () => {
	const actor = await fixture.actor(ETHER / 1_000_000n);
	const tx = actor.sign();
	const { error } = await fixture.sync(tx).answer;
	const plain = await system.client.ask("eth_sendRawTransaction", [tx.raw]);
	assert.equal(error?.code, -32000);
	assert.deepEqual(error, plain.error);
});
