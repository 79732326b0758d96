// The rules by themselves: what is charged, what a row is, what a silence is, and when errors of different senders are a
// storm.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	type Judged,
	STORM_MS,
	TripRules,
	type TripRulesOptions,
} from "../../../../boost-proxy/breaker/tripRules.ts";
import type { Attempted } from "../../../../boost-proxy/domain/breakerPorts.ts";

const OPTIONS: TripRulesOptions = { upstream: "relay", faults: 3, storm: 5, shareMs: 4_000 };

/** Rules, and what each outcome comes to. */
function scene(options: Partial<TripRulesOptions> = {}) {
	const rules = new TripRules({ ...OPTIONS, ...options });
	const judged = (kind: Judged["kind"], sentAt: number, answersBefore = -1): Judged => ({
		kind,
		sentAt,
		answersBefore,
	});
	const say = (
		outcome: Attempted["outcome"],
		now: number,
		{ sender, kind = "submission" }: { sender?: string; kind?: Judged["kind"] } = {},
	) => rules.judge(sender === undefined ? { outcome } : { outcome, sender }, judged(kind, now), now, false);
	return { rules, judged, say };
}

test("what is charged depends on whose it is and on what was asked", () => {
	const relay = scene().rules;
	const fallback = scene({ upstream: "fallback" }).rules;
	const submission: Judged = { kind: "submission", sentAt: 0, answersBefore: 0 };
	const read: Judged = { ...submission, kind: "read" };
	for (const outcome of ["answered", "cut", "internal"] as const) {
		assert.equal(relay.isCharged(outcome, submission, 0), false, outcome);
	}
	for (const outcome of ["refused", "reset", "httpStatus", "notJsonRpc", "wrongHash"] as const) {
		assert.equal(relay.isCharged(outcome, read, 0), true, outcome);
	}
	assert.equal(relay.isCharged("limited", submission, 0), false);
	assert.equal(fallback.isCharged("limited", submission, 0), true);
	assert.equal(relay.isCharged("timeout", read, 100_000), false);
	assert.equal(relay.isCharged("timeout", submission, 1_999), false);
	assert.equal(relay.isCharged("timeout", submission, 2_000), true);
});

test("a submission's time-out is silence where no answer came since it was sent, to anybody", () => {
	for (const answer of ["answered", "internal", "limited", null] as const) {
		const { rules, judged, say } = scene();
		say("answered", 0);
		const sent = judged("submission", 10, rules.answers);
		if (answer !== null) say(answer, 20, { kind: "read" });
		const reason = rules.judge({ outcome: "timeout" }, sent, 4_010, false);
		assert.equal(reason, answer === null ? "silence" : null, `${answer}`);
	}
});

test("five senders make a storm, one sender five times does not", () => {
	const { say } = scene();
	for (let i = 0; i < 50; i++) assert.equal(say("internal", i, { sender: "0xa" }), null);
	for (const sender of ["0xb", "0xc", "0xd"]) assert.equal(say("internal", 60, { sender }), null);
	assert.equal(say("internal", 61, { sender: "0xe" }), "storm");
});

test("errors without a sender, as of reads, are no storm by themselves", () => {
	const { say } = scene();
	for (let i = 0; i < 50; i++) assert.equal(say("internal", i, { kind: "read" }), null);
});

test("it is a storm only where they are half of all answers", () => {
	for (const [answers, reason] of [
		[5, "storm"],
		[6, null],
	] as const) {
		const { say } = scene();
		const now = 54_321;
		for (let i = 0; i < answers; i++) say("answered", now, { kind: i % 2 === 0 ? "read" : "submission" });
		const reasons = ["0xa", "0xb", "0xc", "0xd", "0xe"].map((sender) => say("internal", now, { sender }));
		assert.equal(reasons.at(-1), reason, `${answers} answers beside them`);
	}
});

test("boost's own questions neither make a storm nor hide one", () => {
	const { rules, judged, say } = scene();
	const ask = (outcome: "answered" | "internal", sender: string) =>
		rules.judge({ outcome, sender, own: true }, judged("read", 0), 0, false);
	const senders = ["0xa", "0xb", "0xc", "0xd", "0xe"];
	for (const sender of [...senders, "0xf"]) assert.equal(ask("internal", sender), null);
	for (let i = 0; i < 100; i++) ask("answered", "0xa");
	assert.deepEqual(
		senders.map((sender) => say("internal", 0, { sender })),
		[null, null, null, null, "storm"],
	);
});

test("only the last ten seconds count, for senders and for answers", () => {
	const spread = scene();
	for (const [i, sender] of ["0xa", "0xb", "0xc", "0xd", "0xe", "0xf", "0x10"].entries()) {
		assert.equal(spread.say("internal", i * 2_501, { sender }), null, sender);
	}
	const late = scene();
	for (let i = 0; i < 1_000; i++) late.say("answered", 0);
	const at = STORM_MS + 500;
	const reasons = ["0xa", "0xb", "0xc", "0xd", "0xe"].map((sender) => late.say("internal", at, { sender }));
	assert.equal(reasons.at(-1), "storm");
});

test("a new generation begins without a row and without a storm", () => {
	const { rules, say } = scene();
	for (const sender of ["0xa", "0xb", "0xc", "0xd"]) say("internal", 0, { sender });
	for (const _ of [1, 2]) say("reset", 0);
	rules.reset();
	assert.equal(say("internal", 1, { sender: "0xe" }), null);
	for (const _ of [1, 2]) assert.equal(say("reset", 1), null);
	assert.equal(say("reset", 1), "faults");
});

test("senders are forgotten at a bound, the longest ago first", () => {
	const { say } = scene({ storm: 1_001 });
	for (let i = 0; i < 5_000; i++) assert.equal(say("internal", 0, { sender: `0x${i}` }), null);
});
