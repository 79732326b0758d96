// Observing the chain and the status pages of a fallback for rows that the relay has no answer for.

import assert from "node:assert/strict";
import {
	advanceInSteps,
	endingOf,
	hashOf,
	type ReconcileFixture,
	SLOT_MS,
	scenario as scenarioOf,
	senderOf,
} from "./reconcileFixture.ts";

const BY_HASH = "eth_getTransactionByHash";
const BLANK = { status: "UNKNOWN" };
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
		for (let n = 261; n <= 700; n += 1) await fixture.opened(n, ["fallback"], { from: senderOf(n) });
		await advanceInSteps(fixture, SLOT_MS);
		assert.equal(new Set(calls(fixture, "eth_getTransactionCount")).size, 690, "nobody starves");
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
		relay.answerCall = () => null;
		await clock.advance(SLOT_MS);
		assert.deepEqual(chain.batches, []);
		await clock.advance(2 * SLOT_MS);
		assert.ok(chain.batches.length > 0, "it says nothing");
		relay.answerCall = () => undefined;
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

outage(
	"the fallback's pages are read a few at a time, one after another, each once a slot, and end nothing",
	async (fixture) => {
		const { fallback, clock } = fixture;
		for (let n = 1; n <= 14; n += 1) await fixture.opened(n, ["fallback"], { from: senderOf(n) });
		await fixture.opened(15, ["fallback", "relay"], { from: senderOf(15) });
		fallback.pages.set(hashOf(1), { status: "FAILED", stage: "CANCELLED" });
		fallback.pages.set(hashOf(2), { status: "INCLUDED", stage: "INCLUDED" });
		fallback.pages.set(hashOf(3), { status: "FAILED", stage: "SIMULATION_FAILED" });
		fallback.pages.set(hashOf(4), { status: "UNKNOWN", stage: "CANCELLED" });
		fallback.pages.set(hashOf(5), "FAILED");
		await clock.advance(1_000);
		assert.equal(fallback.pagesAsked.length, 10);
		await clock.advance(SLOT_MS - 2_000);
		assert.equal(fallback.pagesAsked.length, 14, "the others once, and none of what the relay holds too");
		await clock.advance(3 * SLOT_MS);
		for (let n = 1; n <= 14; n += 1) assert.equal(endingOf(fixture, hashOf(n)), null);
		assert.deepEqual(fallback.hashes, [hashOf(1)], "what it calls cancelled is handed over again");
	},
);

for (const page of [
	...["CANCELLED", "REPLACED", "EXPIRED", "DROPPED"].map((stage) => ({ status: "FAILED", stage })),
	{ status: "FAILED" },
]) {
	scenario(`a fallback's ${JSON.stringify(page)} is a loss there: it goes to the relay`, async (fixture) => {
		const { relay, fallback, clock } = fixture;
		const hash = await fixture.opened(1, ["fallback"]);
		fallback.pages.set(hash, page);
		await clock.advance(SLOT_MS + 2_000);
		assert.deepEqual([relay.hashes, fallback.hashes], [[hash], []]);
		assert.deepEqual(fixture.holders(hash), ["relay", "fallback"], "a cancel reaches both");
		await clock.advance(5 * SLOT_MS);
		assert.equal(endingOf(fixture, hash), null);
	});
}

scenario(
	"a row unknown to the fallback twice in a row and by its hash goes to the relay",
	async (fixture) => {
		const { relay, fallback, clock } = fixture;
		const hash = await fixture.opened(1, ["fallback"]);
		fallback.stages.delete(hash);
		fallback.pages.set(hash, BLANK);
		await clock.advance(2_000);
		assert.deepEqual([relay.hashes, fallback.asked(BY_HASH)], [[], []], "once");
		fallback.pages.set(hash, { ...BLANK, stage: "BROADCAST" });
		await clock.advance(SLOT_MS);
		fallback.pages.set(hash, BLANK);
		await clock.advance(SLOT_MS);
		assert.deepEqual(relay.hashes, [], "not in a row");
		await clock.advance(SLOT_MS);
		assert.deepEqual([relay.hashes, fallback.asked(BY_HASH)], [[hash], [hash]]);
		assert.deepEqual(fallback.hashes, [], "nobody else needs it where the relay has it");
		assert.deepEqual(
			fixture.holders(hash),
			["relay", "fallback"],
			"a cancel reaches both, in case it was wrong",
		);
		await clock.advance(5 * SLOT_MS);
		assert.deepEqual([relay.hashes, fallback.hashes], [[hash], []]);
		assert.equal(endingOf(fixture, hash), null);
		relay.breaker.set(true);
		await clock.advance(2_000);
		assert.deepEqual(fallback.hashes, [hash], "it is not there");
	},
);

scenario(
	"at most ten requests a pass, pages and hashes together; every row is asked for in time",
	async (fixture) => {
		const { relay, fallback, clock } = fixture;
		const hashes: string[] = [];
		for (let n = 1; n <= 30; n += 1) {
			hashes.push(await fixture.opened(n, ["fallback"], { from: senderOf(n) }));
			fallback.stages.delete(hashOf(n));
			fallback.pages.set(hashOf(n), BLANK);
		}
		const questions = () => fallback.pagesAsked.length + fallback.asked(BY_HASH).length;
		for (let look = 0, before = questions(); look < 40; look += 1) {
			await clock.advance(1_000);
			assert.ok(questions() - before <= 10, `${questions() - before} questions`);
			before = questions();
		}
		assert.deepEqual([...relay.hashes].sort(), hashes.sort());
	},
);

for (const [page, answer] of [
	[null, { ok: true, result: null }],
	[{ status: "PENDING" }, { ok: true, result: null }],
	[BLANK, { ok: true, result: { hash: hashOf(1) } }],
	[BLANK, { ok: false, error: { code: -32601, message: "no such method" } }],
	[BLANK, null],
] as const) {
	const said = JSON.stringify([page, answer]);
	scenario(`no loss: the fallback's page and its answer by hash are ${said}`, async (fixture) => {
		const { relay, fallback, clock } = fixture;
		const hash = await fixture.opened(1, ["fallback"]);
		if (page !== null) fallback.pages.set(hash, page);
		fallback.answerCall = ({ method }) => (method === BY_HASH ? answer : undefined);
		await clock.advance(6 * SLOT_MS);
		assert.deepEqual([relay.hashes, fixture.holders(hash)], [[], ["fallback"]]);
	});
}
