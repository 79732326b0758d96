// Observing the status pages of a fallback for rows that the relay has no answer for.

import assert from "node:assert/strict";
import { endingOf, hashOf, SLOT_MS, scenario as scenarioOf, senderOf } from "./reconcileFixture.ts";

const BY_HASH = "eth_getTransactionByHash";
const BLANK = { status: "UNKNOWN" };
/** The observer has begun. */
const scenario = (...[name, body, options]: Parameters<typeof scenarioOf>) =>
	scenarioOf(name, body, { followed: true, ...options });
/** The same with the relay unavailable. */
const outage = (...[name, body, options]: Parameters<typeof scenarioOf>) =>
	scenarioOf(name, body, { out: true, ...options });

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
		assert.deepEqual(fallback.hashes, [hashOf(1)], "one that it calls cancelled is sent to it again");
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
		relay.isOut = true;
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
	[null, { result: null }],
	[{ status: "PENDING" }, { result: null }],
	[BLANK, { result: { hash: hashOf(1) } }],
	[BLANK, { error: { code: -32601, message: "no such method" } }],
	[BLANK, "breaks off"],
] as const) {
	const said = JSON.stringify([page, answer]);
	scenario(`no loss: the fallback's page and its answer by hash are ${said}`, async (fixture) => {
		const { relay, fallback, clock } = fixture;
		const hash = await fixture.opened(1, ["fallback"]);
		if (page !== null) fallback.pages.set(hash, page);
		fallback.onCall = ({ method }) => (method === BY_HASH ? answer : "keeps");
		await clock.advance(6 * SLOT_MS);
		assert.deepEqual([relay.hashes, fixture.holders(hash)], [[], ["fallback"]]);
	});
}
