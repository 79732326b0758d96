// The figures of an upstream: the time without answers, and the senders of a storm.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attempted } from "../../../../boost-proxy/domain/ports.ts";
import { Figures } from "../../../../boost-proxy/health/figures.ts";
import { STORM_MS } from "../../../../boost-proxy/health/rules.ts";
import { BREAKER_OPTIONS } from "../../../support/breakerFixture.ts";

/** Figures with a settable time. */
function counting() {
	const time = { now: 0 };
	const figures = new Figures(() => time.now);
	const take = (attempted: Attempted, kind: "read" | "submission", tookMs: number) =>
		figures.count(attempted, { kind, client: null, tookMs, noneAnswered: false }, BREAKER_OPTIONS);
	const say = (
		outcome: Attempted["outcome"],
		sender?: string,
		kind: "read" | "submission" = "submission",
	) => {
		take(sender === undefined ? { outcome } : { outcome, sender }, kind, 0);
		return figures.storm.count;
	};
	return { time, figures, say, take };
}

test("ten seconds of good answers before a storm do not hide it, and one sender is one", () => {
	const { say } = counting();
	for (let i = 0; i < 1_000; i++) say("answered");
	assert.deepEqual(
		["0xa", "0xa", "0xb", "0xb", "0xc"].map((sender) => say("internal", sender)),
		[1, 1, 2, 2, 3],
	);
});

test("a storm ends when it has brought more good answers than failing senders", () => {
	const { say } = counting();
	say("internal", "0xa");
	say("internal", "0xb");
	assert.deepEqual(
		[1, 2, 3].map(() => say("answered")),
		[2, 2, 0],
	);
	assert.equal(say("internal", "0xc"), 1, "the next one begins anew");
	assert.equal(say("answered"), 1);
});

test("senders are forgotten after ten seconds, and beyond a bound", () => {
	const { time, say } = counting();
	for (const [i, sender] of ["0xa", "0xb", "0xc"].entries()) {
		time.now = i * 4_000;
		say("internal", sender);
	}
	time.now = STORM_MS;
	assert.equal(say("internal", "0xd"), 3);
	for (let i = 0; i < 5_000; i++) assert.ok(say("internal", `0x${i}`) <= 1_000);
});

test("silence counts from the last answer or the oldest in flight, separately for submissions", () => {
	const { time, figures, say } = counting();
	const read = figures.begin("read", null);
	time.now = 100;
	const submission = figures.begin("submission", null);
	time.now = 150;
	assert.deepEqual(figures.all, { count: 2, silentMs: 150 });
	assert.deepEqual(figures.submissions, { count: 1, silentMs: 50 });
	say("answered", undefined, "read");
	time.now = 170;
	assert.deepEqual(figures.all, { count: 2, silentMs: 20 });
	assert.deepEqual(figures.submissions, { count: 1, silentMs: 70 });
	say("reset");
	assert.equal(figures.all.silentMs, 20, "a fault without words is no answer");
	read.leave();
	submission.leave();
	assert.deepEqual(
		[figures.all, figures.submissions, figures.oldestMs],
		[{ count: 0, silentMs: 0 }, { count: 0, silentMs: 0 }, 0],
	);
});

test("whether clients of two networks met it; boost's own requests are of none", () => {
	const rows = [
		[[], false],
		[["192.0.2.1", "192.0.2.1", "192.0.2.1"], false],
		[["192.0.2.1", null, "192.0.2.1"], false],
		[[null, null], false],
		[[null, "192.0.2.1"], false],
		[["192.0.2.1", "192.0.2.2"], true],
		[[null, "192.0.2.1", null, "192.0.2.2", "192.0.2.2"], true],
	] as const;
	for (const [clients, isShared] of rows) {
		const figures = new Figures(() => 0);
		for (const [i, client] of clients.entries()) {
			figures.begin("submission", client);
			const seen = { kind: "submission", client, tookMs: 5, noneAnswered: false } as const;
			figures.count({ outcome: "reset" }, seen, BREAKER_OPTIONS);
			figures.count({ outcome: "internal", sender: `0x${i}` }, seen, BREAKER_OPTIONS);
		}
		const { submission } = figures.faults;
		const found = [submission.isShared, figures.submissionsAreShared, figures.storm.isShared];
		assert.deepEqual(found, [isShared, isShared, isShared], clients.join());
		assert.deepEqual([submission.count, figures.storm.count], [clients.length, clients.length]);
		const answered = { kind: "submission", client: null, tookMs: 5, noneAnswered: false } as const;
		figures.count({ outcome: "answered" }, answered, BREAKER_OPTIONS);
		assert.deepEqual([submission.count, submission.isShared], [0, false], "an answer ends the row");
	}
});
