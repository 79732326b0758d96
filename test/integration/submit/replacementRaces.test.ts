// Tests many simultaneous submissions with one sender and nonce: one wins, the others are told so truthfully, and
// builders are left with the winner.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { WireAnswer } from "../../support/relayClient.ts";
import { GWEI, RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/startSystem.ts";
import { until } from "../../support/until.ts";

const STEPS = 8;

let system: TestSystem;
let fixture: RelayFixture;

before(async () => {
	system = await startSystem({ builders: [{ name: "dev" }, { name: "other" }] });
	fixture = new RelayFixture(system);
});
after(() => system.stop());

function submitAll(transactions: readonly Signed[], path = "/fast"): Promise<WireAnswer[]> {
	return Promise.all(transactions.map(({ raw }) => system.client.ask("eth_sendRawTransaction", [raw], path)));
}

describe("at the same time", () => {
	it("the same bytes thirty times are one transaction: the same answer, sent once", async () => {
		const tx = (await fixture.actor()).sign();
		const answers = await submitAll(Array.from({ length: 30 }, () => tx));
		assert.deepEqual(new Set(answers.map(({ result }) => result)), new Set([tx.hash]));
		await fixture.sent(tx);
		const block = await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		const received = (await fixture.life(tx)).filter((event) => event.startsWith("received"));
		assert.equal(received.length, 1);
		for (const builder of system.builders) assert.deepEqual(fixture.blocks(builder, tx), [block]);
	});

	it("a ladder of fees has one winner, whatever came first; the others are REPLACED or were refused", async () => {
		for (const ascending of [true, false]) {
			const actor = await fixture.actor();
			const ladder = Array.from({ length: STEPS }, (_, i) =>
				actor.sign({
					maxFeePerGas: 20n * GWEI * 2n ** BigInt(i),
					maxPriorityFeePerGas: GWEI * 2n ** BigInt(i),
				}),
			);
			const dearest = ladder[STEPS - 1];
			assert.ok(dearest);
			const order = ascending ? ladder : [...ladder].reverse();
			const answers = await submitAll(order);
			for (const [i, { result, error }] of answers.entries()) {
				const tx = order[i];
				assert.ok(tx);
				if (error === undefined) {
					assert.equal(result, tx.hash);
					if (tx !== dearest) await fixture.reaches(tx, "REPLACED");
				} else {
					assert.match(error.message, /^replacement transaction underpriced/);
					assert.equal((await fixture.status(tx)).stage, undefined);
				}
			}
			await fixture.sent(dearest);
			for (const tx of ladder.filter((one) => one !== dearest)) {
				for (const builder of system.builders) {
					await until(`${builder.name} has forgotten it`, () => fixture.live(builder, tx) === 0);
				}
			}
			const block = await system.nextBlock();
			await fixture.reaches(dearest, "INCLUDED");
			assert.equal((await fixture.receipt(dearest))?.block, block);
			assert.equal(await fixture.pendingNonce(actor), 1);
		}
	});

	it("a replacement of a whole chain's middle leaves a chain that is mined as a whole", async () => {
		const actor = await fixture.actor();
		const chain = [0, 1, 2, 3, 4].map((nonce) => actor.sign({ nonce }));
		const instead = actor.sign({ nonce: 2, maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 3n * GWEI });
		const old = chain[2];
		assert.ok(old);
		await submitAll(chain);
		await submitAll([instead, ...chain]);
		await fixture.reaches(old, "REPLACED");
		const winners = chain.map((tx) => (tx === old ? instead : tx));
		for (const tx of winners) await fixture.sent(tx);
		for (const builder of system.builders) {
			await until(`${builder.name} has forgotten it`, () => fixture.live(builder, old) === 0);
		}
		const block = await system.nextBlock();
		for (const tx of winners) {
			await fixture.reaches(tx, "INCLUDED");
			assert.equal((await fixture.receipt(tx))?.block, block);
		}
		assert.equal(await fixture.receipt(old), null);
	});
});
