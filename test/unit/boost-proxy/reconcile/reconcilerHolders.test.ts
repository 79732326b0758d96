// Replacements and cancels reach all holders, and a relay that has lost what it acknowledged gets it again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ACKNOWLEDGED, failure, fault, hashOf, reconcileFixture, refused } from "./reconcileFixture.ts";

/** Number 1 at both, then replaced at the fallback alone by number 2, while the relay is out. */
async function replacedInOutage(options: Parameters<typeof reconcileFixture>[0] = {}) {
	const fixture = await reconcileFixture(options);
	const earlier = await fixture.opened(1, ["relay", "fallback"]);
	fixture.relay.breaker.set(true);
	const later = await fixture.opened(2, ["fallback"], { nonce: 1n, replacesAt: ["relay", "fallback"] });
	await fixture.journal.paid(later, "fallback");
	await fixture.journal.end(earlier, "replaced");
	await fixture.clock.advance(2_000);
	assert.deepEqual(fixture.relay.hashes, [], "it is out");
	return { ...fixture, fixture, earlier, later };
}

test("a replacement reaches who holds the earlier one when that is back", async () => {
	const { fixture, relay, fallback, later, clock, journal } = await replacedInOutage();
	relay.breaker.set(false);
	await clock.advance(100);
	assert.deepEqual(relay.hashes, [later]);
	assert.deepEqual(fixture.holders(later), ["relay", "fallback"]);
	assert.deepEqual(journal.get(later)?.replacesAt, []);
	await clock.advance(5_000);
	assert.deepEqual([relay.hashes, fallback.hashes], [[later], []]);
	await fixture.stop();
});

test("a replacement that is refused there, or may not go there, is not owed any more", async () => {
	const refusedThere = await replacedInOutage();
	refusedThere.relay.answer = () => refused("replacement transaction underpriced");
	refusedThere.relay.breaker.set(false);
	await refusedThere.clock.advance(5_000);
	assert.deepEqual(refusedThere.relay.hashes, [refusedThere.later]);
	assert.deepEqual(refusedThere.journal.get(refusedThere.later)?.replacesAt, []);
	assert.deepEqual(refusedThere.fixture.holders(refusedThere.later), ["fallback"]);
	await refusedThere.fixture.stop();

	const fixture = await reconcileFixture();
	fixture.fallback.refuses = (path) => (path === "noreverts" ? "not protected" : null);
	const hash = await fixture.opened(1, ["relay"], { path: "noreverts", replacesAt: ["fallback"] });
	fixture.handover.wake();
	await fixture.clock.advance(100);
	assert.deepEqual(fixture.fallback.hashes, []);
	assert.deepEqual(fixture.journal.get(hash)?.replacesAt, []);
	await fixture.stop();
});

test("a replacement reaches who holds the earlier one even where what stands before it may not go there", async () => {
	for (const dialect of ["flashbots", "mevblocker"] as const) {
		const fixture = await reconcileFixture({ dialect });
		const { relay, fallback, clock } = fixture;
		fixture.fallback.refuses = (path) => (path === "noreverts" ? "not protected" : null);
		fallback.answer = ({ hash }) => (hash === failing ? fault(false) : ACKNOWLEDGED);
		await fixture.opened(1, ["relay"], { nonce: 0n, path: "noreverts" });
		const failing = await fixture.opened(2, ["relay"], { nonce: 1n });
		const owed = await fixture.opened(3, ["relay"], { nonce: 2n, replacesAt: ["fallback"] });
		const behind = await fixture.opened(4, ["relay"], { nonce: 3n });
		relay.breaker.set(true);
		await clock.advance(500);
		assert.equal(fallback.hashes.includes(owed), true, `the nonce is there, ${dialect}`);
		assert.equal(fallback.hashes.includes(behind), false, "what is handed over waits for its turn");
		assert.deepEqual(fixture.holders(owed), ["relay", "fallback"]);
		await fixture.stop();
	}
});

test("a replacement is owed to whoever got the earlier one while it came", async () => {
	const fixture = await reconcileFixture({ dialect: "flashbots" });
	const { journal, relay, fallback, clock } = fixture;
	const earlier = await fixture.opened(1, ["relay"], { nonce: 0n });
	const later = hashOf(2);
	fallback.answer = async ({ hash }) => {
		if (hash === earlier) {
			relay.breaker.set(false);
			await fixture.opened(2, ["relay"], { nonce: 0n, replacesAt: ["relay"] });
			await journal.paid(later, "relay");
			await journal.end(earlier, "replaced");
		}
		return ACKNOWLEDGED;
	};
	relay.breaker.set(true);
	await clock.advance(3_000);
	assert.deepEqual(fallback.hashes, [earlier, later], "it knows no cancel, so it gets the replacement");
	assert.deepEqual(fixture.holders(later), ["relay", "fallback"]);
	assert.deepEqual(journal.ended(earlier)?.untold, []);
	await fixture.stop();
});

test("while a replacement is under way the earlier one goes nowhere, and then only the later one", async () => {
	const fixture = await reconcileFixture();
	const { journal, relay, fallback, clock } = fixture;
	await fixture.opened(1, ["relay"], { nonce: 1n });
	const later = await fixture.opened(2, ["relay"], { nonce: 1n, receivedAt: clock.now() + 1 });
	const next = await fixture.opened(3, ["relay"], { nonce: 2n });
	journal.setUnderWay(later, true);
	relay.breaker.set(true);
	await clock.advance(3_000);
	assert.deepEqual(fallback.hashes, []);
	journal.setUnderWay(later, false);
	await clock.advance(3_000);
	assert.deepEqual(fallback.hashes, [later, next]);
	await fixture.stop();
});

test("what ended is taken back at each who was not told, on its client's behalf; any answer will do", async () => {
	const fixture = await reconcileFixture();
	const { journal, relay, fallback, clock } = fixture;
	const hash = await fixture.opened(1, ["relay", "fallback"]);
	const unknown = await fixture.opened(2, ["relay"]);
	relay.stages.delete(unknown);
	relay.breaker.set(true);
	fallback.breaker.set(true);
	await journal.end(hash, "cancelled", ["relay", "fallback"]);
	await journal.end(unknown, "cancelled", ["relay"]);
	fixture.handover.wake();
	await clock.advance(5_000);
	assert.equal(relay.called.length + fallback.called.length, 0, "both are out");
	relay.breaker.set(false);
	await clock.advance(100);
	assert.deepEqual(relay.asked("eth_cancelTransaction"), [hash, unknown]);
	assert.equal(relay.called[0]?.options.caller?.address, "192.0.2.1");
	assert.equal(relay.stages.get(hash), "CANCELLED");
	assert.deepEqual(journal.ended(hash)?.untold, ["fallback"]);
	assert.deepEqual(journal.ended(unknown)?.untold, [], "not found is an answer");
	fallback.breaker.set(false);
	await clock.advance(100);
	assert.equal(fallback.called[0]?.options.caller, null, "no client is named to a third party");
	assert.equal(fallback.stages.get(hash), "CANCELLED");
	await clock.advance(60_000);
	assert.deepEqual([relay.called.length, fallback.called.length], [2, 1]);
	await fixture.stop();
});

test("no answer, a limit and an internal error are no word: it is asked again", async () => {
	const fixture = await reconcileFixture();
	const { journal, relay, clock } = fixture;
	const hash = await fixture.opened(1);
	const answers = [null, failure("limit exceeded", -32005), failure("internal error", -32603)];
	relay.answerCall = () => answers.shift();
	await journal.end(hash, "cancelled", ["relay"]);
	fixture.handover.wake();
	await clock.advance(500);
	assert.equal(relay.called.length, 1);
	await clock.advance(10_000);
	assert.equal(relay.called.length, 4);
	assert.deepEqual(journal.ended(hash)?.untold, []);
	await fixture.stop();
});

test("a fallback that knows no cancel, or none at all, is told by nothing", async () => {
	for (const options of [{ dialect: "flashbots" }, { alone: true }] as const) {
		const fixture = await reconcileFixture(options);
		const hash = await fixture.opened(1, ["relay", "fallback"]);
		await fixture.journal.end(hash, "cancelled", ["fallback"]);
		fixture.handover.wake();
		await fixture.clock.advance(100);
		assert.deepEqual(fixture.journal.ended(hash)?.untold, []);
		assert.deepEqual(fixture.fallback.called, []);
		await fixture.stop();
	}
});

test("what the relay has lost it gets again", async () => {
	const fixture = await reconcileFixture();
	const { relay, fallback, clock, handover } = fixture;
	const hash = await fixture.opened(1);
	const answers = [fault(false), ACKNOWLEDGED];
	relay.answer = () => answers.shift() ?? refused();
	handover.lost(hash, "relay");
	handover.lost(hashOf(99), "relay");
	await clock.advance(100);
	assert.deepEqual(
		[relay.hashes, fallback.hashes],
		[[hash], [hash]],
		"nobody has it: the fallback gets it too",
	);
	await clock.advance(5_000);
	assert.deepEqual(relay.hashes, [hash, hash]);
	await clock.advance(60_000);
	assert.equal(relay.delivered.length, 2, "then it has it");
	await fixture.stop();
});

test("what the relay has lost and refuses is the other holder's alone", async () => {
	const fixture = await reconcileFixture();
	const { relay, fallback, clock, handover } = fixture;
	handover.wake();
	await clock.advance(100);
	relay.answer = () => refused();
	const hash = await fixture.opened(1, ["relay", "fallback"]);
	handover.lost(hash, "relay");
	await clock.advance(60_000);
	assert.deepEqual([relay.hashes, fallback.hashes], [[hash], []]);
	assert.deepEqual(fixture.holders(hash), ["fallback"]);
	await fixture.stop();
});

test("what an upstream has given up does not go there again", async () => {
	const fixture = await reconcileFixture();
	const { relay, fallback, journal, clock, handover } = fixture;
	const hash = await fixture.opened(1, ["relay", "fallback"]);
	await journal.notHeld(hash, "relay");
	handover.spent(hash, "relay");
	for (const isUnavailable of [true, false, true]) {
		fallback.breaker.set(isUnavailable);
		await clock.advance(3_000);
	}
	assert.deepEqual(relay.hashes, []);
	await fixture.stop();
});

test("one that came again while its cancel waited for its turn is not cancelled", async () => {
	const fixture = await reconcileFixture();
	const { journal, relay, fallback, clock } = fixture;
	const answers: (() => void)[] = [];
	relay.answerCall = () => new Promise((resolve) => answers.push(() => resolve({ ok: true, result: true })));
	const hashes: string[] = [];
	for (let n = 1; n <= 17; n += 1) hashes.push(await fixture.opened(n));
	for (const hash of hashes) await journal.end(hash, "expired", ["relay"]);
	await clock.advance(50);
	const last = hashes.at(-1) ?? "";
	assert.equal(answers.length, 16, "as many as go at a time");
	fallback.breaker.set(true);
	await fixture.opened(17, ["fallback"]);
	while (answers.length > 0) {
		for (const answer of answers.splice(0)) answer();
		await clock.advance(2_000);
	}
	assert.equal(relay.asked("eth_cancelTransaction").includes(last), false);
	assert.deepEqual(relay.hashes, [last], "it is handed over");
	await fixture.stop();
});
