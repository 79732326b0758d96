// Observing the chain for rows that the relay has no answer for.

import assert from "node:assert/strict";
import {
	advanceInSteps,
	endingOf,
	type ReconcileFixture,
	SLOT_MS,
	scenario as scenarioOf,
	senderOf,
} from "./reconcileFixture.ts";

/** The observer has begun. */
const scenario = (...[name, body, options]: Parameters<typeof scenarioOf>) =>
	scenarioOf(name, body, { followed: true, ...options });
/** The same with the relay unavailable. */
const outage = (...[name, body, options]: Parameters<typeof scenarioOf>) =>
	scenarioOf(name, body, { out: true, ...options });

function calls({ chain }: ReconcileFixture, method: string): readonly unknown[] {
	return chain.batches.flat().flatMap((call) => (call.method === method ? [call.params[0]] : []));
}

outage("a receipt is asked for where the nonce is used; with it the entry is mined", async (fixture) => {
	const { chain, clock } = fixture;
	const [mined, waiting] = [await fixture.opened(1), await fixture.opened(2)];
	const busy = await fixture.opened(3, ["relay"], { from: senderOf(2) });
	fixture.journal.setInProgress(busy, true);
	await clock.advance(100);
	assert.deepEqual(calls(fixture, "eth_getTransactionReceipt"), []);
	chain.nonces.set(senderOf(1), 2n);
	chain.receipts.add(mined);
	await clock.advance(SLOT_MS);
	assert.equal(endingOf(fixture, mined), "mined");
	assert.notEqual(fixture.holders(waiting), null);
	assert.deepEqual(new Set(calls(fixture, "eth_getTransactionReceipt")), new Set([mined]));
	assert.deepEqual(new Set(calls(fixture, "eth_getTransactionCount")), new Set([senderOf(1)]));
});

outage(
	"a used nonce without a receipt must be seen twice; what used it says what it was",
	async (fixture) => {
		const { chain, clock, journal } = fixture;
		const dropped = await fixture.opened(1, ["fallback"]);
		const replaced = await fixture.opened(2, ["fallback"], { from: senderOf(2), nonce: 0n });
		const winner = await fixture.opened(3, ["fallback"], {
			from: senderOf(2),
			nonce: 0n,
			receivedAt: clock.now() + 1,
		});
		chain.nonces.set(senderOf(1), 2n);
		chain.nonces.set(senderOf(2), 1n);
		chain.receipts.add(winner);
		await clock.advance(SLOT_MS / 2);
		assert.equal(endingOf(fixture, winner), "mined");
		assert.equal(endingOf(fixture, dropped), null, "a node may be behind another");
		await clock.advance(SLOT_MS);
		assert.deepEqual([endingOf(fixture, dropped), endingOf(fixture, replaced)], ["dropped", "replaced"]);
		assert.deepEqual([...journal.pendingCancels()], [], "who holds it has nothing to do");
	},
);

outage(
	"each account is asked for once in half a slot, a hundred at a time, who waits the longest first",
	async (fixture) => {
		const { chain } = fixture;
		for (let n = 1; n <= 250; n += 1) await fixture.opened(n, ["fallback"], { from: senderOf(n) });
		for (let n = 251; n <= 260; n += 1) await fixture.opened(n, ["fallback"], { from: senderOf(1) });
		await advanceInSteps(fixture, SLOT_MS / 2);
		assert.deepEqual(
			chain.batches.map(({ length }) => length),
			[100, 100, 50],
		);
		assert.equal(new Set(calls(fixture, "eth_getTransactionCount")).size, 250);
		await advanceInSteps(fixture, SLOT_MS / 2);
		assert.equal(chain.batches.flat().length, 500);
		for (let n = 261; n <= 400; n += 1) await fixture.opened(n, ["fallback"], { from: senderOf(n) });
		await advanceInSteps(fixture, SLOT_MS);
		assert.equal(new Set(calls(fixture, "eth_getTransactionCount")).size, 390, "nobody starves");
	},
);

outage(
	"what is past its time expires when the chain has said that it is not mined, or has said nothing for long",
	async (fixture) => {
		const { chain, clock, journal } = fixture;
		chain.isDown = true;
		const hash = await fixture.opened(1, ["fallback"]);
		await clock.advance(320_000);
		assert.equal(endingOf(fixture, hash), null, "it may be mined");
		chain.isDown = false;
		await clock.advance(SLOT_MS);
		assert.equal(endingOf(fixture, hash), "expired");
		assert.deepEqual([...journal.pendingCancels()], []);
		chain.isDown = true;
		const next = await fixture.opened(2, ["fallback"]);
		await clock.advance(890_000);
		assert.equal(endingOf(fixture, next), null);
		await clock.advance(20_000);
		assert.equal(endingOf(fixture, next), "expired");
	},
);

scenario(
	"the chain is asked after two slots without an answer of the relay, or if it has no record",
	async (fixture) => {
		const { relay, chain, clock } = fixture;
		await fixture.opened(1);
		await clock.advance(5 * SLOT_MS);
		assert.deepEqual(chain.batches, []);
		relay.onCall = () => "breaks off";
		await clock.advance(SLOT_MS);
		assert.deepEqual(chain.batches, []);
		await clock.advance(2 * SLOT_MS);
		assert.ok(chain.batches.length > 0, "it says nothing");
		relay.onCall = () => "keeps";
		await clock.advance(2_000);
		const before = chain.batches.length;
		const hash = await fixture.opened(2);
		relay.stages.delete(hash);
		chain.nonces.set(senderOf(1), 3n);
		chain.receipts.add(hash);
		await clock.advance(SLOT_MS / 2);
		assert.ok(chain.batches.length > before, "it has no record");
		assert.equal(endingOf(fixture, hash), "mined");
	},
);

outage("observer and reconciler each go through all rows in a tenth of the time at most", async (fixture) => {
	const { clock, journal } = fixture;
	for (let n = 1; n <= 100; n += 1) await fixture.opened(n, ["fallback"]);
	const monotonic = clock.monotonic.bind(clock);
	const begun = monotonic();
	let scannedMs = 0;
	clock.monotonic = () => monotonic() + scannedMs;
	const allLive = journal.rows.allLive.bind(journal.rows);
	journal.rows.allLive = function* slow() {
		for (const row of allLive()) {
			scannedMs += 10;
			yield row;
		}
	};
	await advanceInSteps(fixture, 10 * SLOT_MS);
	const tookMs = clock.monotonic() - begun;
	assert.ok(scannedMs >= 10_000, `${scannedMs} ms: it goes on`);
	assert.ok(scannedMs < tookMs / 5, `${scannedMs} of ${tookMs} ms`);
});
