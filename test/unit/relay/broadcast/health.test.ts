// Whether deliveries are answered at all, by a clock moved by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DeliveryHealth } from "../../../../relay/broadcast/health.ts";
import { ManualClock } from "../../../support/manualClock.ts";

function fixture() {
	const clock = new ManualClock();
	return { clock, health: new DeliveryHealth({ windowMs: 24_000 }, { clock }) };
}

test("nothing tried is nothing wrong", async () => {
	const { clock, health } = fixture();
	assert.ok(health.healthy);
	await clock.advance(1_000_000);
	assert.ok(health.healthy);
});

test("an answer is an answer, a rejection too", async () => {
	for (const answer of ["accepted", "rejected"] as const) {
		const { clock, health } = fixture();
		health.note(answer);
		assert.ok(health.healthy, answer);
		await clock.advance(24_001);
		assert.ok(health.healthy, "quiet afterwards");
	}
});

for (const answer of ["failed", "timeout"] as const) {
	test(`two slots of nothing but ${answer}: not healthy, until one answers`, async () => {
		const { clock, health } = fixture();
		health.note("accepted");
		for (let second = 0; second < 24; second += 1) {
			await clock.advance(1_000);
			health.note(answer);
			assert.ok(health.healthy, `after ${second + 1} s`);
		}
		await clock.advance(1);
		assert.ok(!health.healthy);
		health.note(answer);
		assert.ok(!health.healthy);
		health.note("accepted");
		assert.ok(health.healthy);
	});

	test(`one answer among many of ${answer} is enough`, async () => {
		const { clock, health } = fixture();
		for (let i = 0; i < 10; i += 1) {
			health.note(answer);
			health.note(i % 5 === 0 ? "rejected" : answer);
			assert.ok(health.healthy);
			await clock.advance(4_000);
		}
	});

	test(`${answer} is forgotten when nothing was tried for two slots`, async () => {
		const { clock, health } = fixture();
		health.note("accepted");
		await clock.advance(30_000);
		health.note(answer);
		assert.ok(!health.healthy);
		await clock.advance(24_001);
		assert.ok(health.healthy);
	});
}

test("what never left says nothing of the builders", async () => {
	const { clock, health } = fixture();
	for (let i = 0; i < 10; i += 1) {
		health.note("unsent");
		await clock.advance(10_000);
		assert.ok(health.healthy);
	}
});
