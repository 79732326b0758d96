// What the handover does where an upstream refuses, fails or gives no verdict.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delivery } from "../../../../boost-proxy/domain/request.ts";
import { ACKNOWLEDGED, fault, hashOf, reconcileFixture, refused, senderOf } from "./reconcileFixture.ts";

test("a refusal is not asked for again until something trips, and keeps back what stands behind only for who takes no gaps", async () => {
	for (const dialect of ["mevblocker", "flashbots"] as const) {
		const fixture = await reconcileFixture({ dialect });
		const { relay, fallback, clock } = fixture;
		fixture.chain.nonces.set(senderOf(1), 1n);
		const [low, high] = [await fixture.opened(1), await fixture.opened(2)];
		fallback.answer = ({ hash }) => (hash === low ? refused() : ACKNOWLEDGED);
		relay.breaker.set(true);
		await clock.advance(20_000);
		const behind = dialect === "mevblocker" ? [high] : [];
		assert.deepEqual(fallback.hashes, [low, ...behind]);
		assert.deepEqual(fixture.holders(low), ["relay"], "its holder may come back");
		relay.breaker.set(false);
		await clock.advance(1_000);
		fallback.answer = () => ACKNOWLEDGED;
		relay.breaker.set(true);
		await clock.advance(1_000);
		assert.deepEqual(fixture.holders(low), ["relay", "fallback"], "a new trip is a new try");
		await fixture.stop();
	}
});

test("a fault is tried again, later each time; at once when an upstream comes back", async () => {
	const fixture = await reconcileFixture();
	const { relay, fallback, clock } = fixture;
	const hash = await fixture.opened(1);
	fallback.answer = () => fault(false);
	relay.breaker.set(true);
	await clock.advance(7_500);
	assert.equal(fallback.delivered.length, 4, "at once, and after 1, 2 and 4 seconds");
	assert.deepEqual(fixture.holders(hash), ["relay"], "no byte left");
	await clock.advance(120_000);
	assert.ok(fallback.delivered.length <= 10, `${fallback.delivered.length} tries`);
	const before = fallback.delivered.length;
	fallback.answer = () => ACKNOWLEDGED;
	fallback.breaker.set(true);
	await clock.advance(50);
	fallback.breaker.set(false);
	await clock.advance(50);
	assert.equal(fallback.delivered.length, before + 1);
	assert.deepEqual(fixture.holders(hash), ["relay", "fallback"]);
	await fixture.stop();
});

test("who may have it is a holder, but is given it again until it says so", async () => {
	const fixture = await reconcileFixture();
	const { relay, fallback, clock } = fixture;
	const hash = await fixture.opened(1);
	const answers: Delivery[] = [
		fault(true),
		{ kind: "cut", sent: true },
		{ kind: "acknowledged", known: true },
	];
	fallback.answer = () => answers.shift() ?? refused();
	relay.breaker.set(true);
	await clock.advance(500);
	assert.deepEqual(fixture.holders(hash), ["relay", "fallback"], "a cancel must reach it");
	await clock.advance(20_000);
	assert.equal(fallback.delivered.length, 3);
	assert.deepEqual(fixture.outcomes, ["fallback failed", "fallback failed", "fallback acknowledged"]);
	await fixture.stop();
});

test("who may have it and then refuses does not have it", async () => {
	const fixture = await reconcileFixture();
	const hash = await fixture.opened(1);
	const answers: Delivery[] = [fault(true), refused()];
	fixture.fallback.answer = () => answers.shift() ?? ACKNOWLEDGED;
	fixture.relay.breaker.set(true);
	await fixture.clock.advance(10_000);
	assert.deepEqual(fixture.holders(hash), ["relay"]);
	assert.equal(fixture.fallback.delivered.length, 2);
	await fixture.stop();
});

test("a limit of the fallback's holds up everything for it, a limit of the relay's is about one client", async () => {
	const fixture = await reconcileFixture();
	const { relay, fallback, clock } = fixture;
	for (const n of [1, 2, 3]) await fixture.opened(n, ["relay"], { from: senderOf(n) });
	fallback.answer = () => ({ kind: "failed", fault: "limited", sent: true, retryAfterS: 5 });
	relay.breaker.set(true);
	await clock.advance(4_500);
	assert.equal(fallback.delivered.length, 3, "those that were sent at the same time");
	assert.deepEqual(fixture.holders(hashOf(1)), ["relay"], "who says so keeps nothing");
	fallback.answer = () => ACKNOWLEDGED;
	await clock.advance(3_000);
	assert.equal(fallback.delivered.length, 6);
	relay.breaker.set(false);
	const hash = await fixture.opened(4, ["fallback"], { from: senderOf(4) });
	relay.answer = () => refused("limit exceeded", -32005);
	fallback.breaker.set(true);
	await clock.advance(1_500);
	relay.answer = () => ACKNOWLEDGED;
	await clock.advance(5_000);
	assert.deepEqual(fixture.holders(hash), ["relay", "fallback"], "no refusal");
	await fixture.stop();
});
