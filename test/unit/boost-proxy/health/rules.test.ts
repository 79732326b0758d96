// Every rule of an upstream's health as a table: which faults count, what opens a breaker, what
// waits, and the backoff.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProbeOutcome } from "../../../../boost-proxy/domain/ports.ts";
import {
	backoffMs,
	countsAsFault,
	type HealthFigures,
	type HealthSettings,
	isStalled,
	mustProbeSubmission,
	mustWaitFor,
	probationMs,
	type RuleInput,
	reasonOfProbe,
	suspicionOf,
	wantsProbe,
} from "../../../../boost-proxy/health/rules.ts";
import { BREAKER_OPTIONS as SETTINGS } from "../../../support/breakerFixture.ts";

const WELL = { isProbation: false, hasAlternative: true, isProven: true };
const PROBATION = { isProbation: true, hasAlternative: true, isProven: true };
const NONE = { count: 0, isShared: false };
const ALONE = { isProbation: false, hasAlternative: false, isProven: true };

function health(
	figures: Partial<HealthFigures>,
	circumstances: Pick<RuleInput, "isProbation" | "hasAlternative" | "isProven"> = WELL,
	settings: Partial<HealthSettings> = {},
): RuleInput {
	const none = { count: 0, silentMs: 0 };
	const counted = { faults: { read: NONE, submission: NONE }, storm: NONE, all: none, submissions: none };
	const more = { submissionsAreShared: true, submissionMs: 0 };
	return {
		...{ figures: { ...counted, ...more, ...figures }, settings: { ...SETTINGS, ...settings } },
		...circumstances,
	};
}

test("which outcomes count as faults, by upstream, kind and duration", () => {
	for (const [outcome, kind, tookMs, relay, fallback] of [
		["answered", "submission", 0, false, false],
		["aborted", "submission", 0, false, false],
		["internal", "submission", 0, false, false],
		["tooLarge", "read", 0, false, false],
		["limited", "submission", 0, false, true],
		["refused", "read", 0, true, true],
		["reset", "read", 0, true, true],
		["httpStatus", "submission", 0, true, true],
		["notJsonRpc", "read", 0, true, true],
		["wrongHash", "submission", 0, true, true],
		["timeout", "read", 100_000, false, false],
		["timeout", "submission", 1_999, false, false],
		["timeout", "submission", 2_000, true, true],
	] as const) {
		const charged = (["relay", "fallback"] as const).map((upstream) =>
			countsAsFault(outcome, { kind, tookMs }, { ...SETTINGS, upstream }),
		);
		assert.deepEqual(charged, [relay, fallback], `${kind} ${outcome} after ${tookMs}`);
	}
});

test("which outcomes open the breaker, and with which reason; after one client's faults it is checked first", () => {
	for (const [outcome, inRow, noneAnswered, circumstances, reason] of [
		["answered", 9, true, PROBATION, null],
		["aborted", 9, true, PROBATION, null],
		["tooLarge", 9, true, PROBATION, null],
		["refused", 1, false, WELL, "refused"],
		["loop", 1, false, WELL, "loop"],
		["reset", 1, false, WELL, null],
		["reset", 2, true, WELL, null],
		["reset", 3, false, WELL, "faults"],
		["reset", 1, false, PROBATION, "reset"],
		["timeout", 1, false, WELL, null],
		["timeout", 1, true, WELL, "silence"],
		["timeout", 3, false, WELL, "faults"],
		["timeout", 1, false, PROBATION, "timeout"],
	] as const) {
		// The row of reads is none of submissions.
		for (const isShared of [true, false]) {
			const row = { count: inRow, isShared };
			const figures = { faults: { read: { count: 9, isShared: !isShared }, submission: row } };
			const seen = { kind: "submission", client: null, tookMs: 4_000, noneAnswered } as const;
			const found = suspicionOf(outcome, seen, health(figures, circumstances));
			// A refused connection has read nothing of any client's.
			const expected = reason === null ? null : { reason, isShared: isShared || reason === "refused" };
			assert.deepEqual(found, expected, `${outcome}, ${inRow} in a row, unheard: ${noneAnswered}`);
		}
	}
});

const SEEN = { kind: "submission", client: null, tookMs: 5, noneAnswered: false } as const;

test("how many senders are a storm", () => {
	for (const [stormSenders, storm, circumstances, expected] of [
		[4, 5, WELL, null],
		[5, 5, WELL, "storm"],
		[1, 5, PROBATION, null],
		[2, 5, PROBATION, "storm"],
		[1, 1, PROBATION, "storm"],
	] as const) {
		for (const isShared of [true, false]) {
			const figures = { storm: { count: stormSenders, isShared } };
			const found = suspicionOf("internal", SEEN, health(figures, circumstances, { storm }));
			const suspicion = expected === null ? null : { reason: expected, isShared };
			assert.deepEqual(found, suspicion, `${stormSenders} of ${storm}`);
		}
	}
	const figures = { storm: { count: 1_000, isShared: true } };
	const theirs = health(figures, PROBATION, { upstream: "fallback" });
	assert.equal(suspicionOf("internal", SEEN, theirs), null, "a third party's is none");
});

test("what a new request waits for, when a probe is needed, and when it is a stall", () => {
	const IDLE = [0, 0] as const;
	for (const [what, all, submissions, submissionMs, circumstances, expected] of [
		["nothing is in flight", IDLE, IDLE, 0, WELL, [null, null, false, false]],
		["few are silent", [15, 3_999], [15, 3_999], 0, WELL, [null, null, false, false]],
		["one is silent for a share", [1, 4_000], IDLE, 0, WELL, ["probe", "probe", true, false]],
		["a burst", [200, 49], [200, 49], 0, WELL, [null, null, false, false]],
		["many are silent for a moment", [16, 50], [8, 50], 0, WELL, ["probe", "probe", false, false]],
		["for long", [16, 250], [8, 250], 0, WELL, ["probe", "probe", true, false]],
		["reads are silent for very long", [60, 3_000], [15, 3_000], 0, WELL, ["probe", "probe", true, false]],
		["submissions alone, for a moment", [16, 0], [16, 50], 0, WELL, [null, "answer", false, false]],
		["submissions alone, nearly", [16, 0], [16, 399], 0, WELL, [null, "answer", false, false]],
		["submissions alone", [16, 0], [16, 400], 0, WELL, [null, "answer", false, true]],
		["all", [16, 400], [16, 400], 0, WELL, ["probe", "probe", true, true]],
		["one that takes its time is only busy", [16, 0], [16, 1_199], 300, WELL, [null, "answer", false, false]],
		["but not for ever", [16, 0], [16, 1_200], 300, WELL, [null, "answer", false, true]],
		["nor longer than a share", [16, 0], [16, 4_000], 9_000, WELL, [null, "answer", false, true]],
		["nobody else takes them", [16, 0], [16, 3_999], 0, ALONE, [null, null, false, false]],
		["nobody else, all are silent", [16, 300], [16, 300], 0, ALONE, ["probe", "probe", true, false]],
		["back, one is silent", [1, 50], [1, 50], 0, PROBATION, ["probe", "probe", false, false]],
		["back, for long", [1, 250], [1, 250], 0, PROBATION, ["probe", "probe", true, false]],
		["back, three hang alone", [3, 0], [3, 3_999], 0, PROBATION, [null, null, false, false]],
		["back, four hang alone", [4, 0], [4, 400], 0, PROBATION, [null, "answer", false, true]],
	] as const) {
		const figures = {
			all: { count: all[0], silentMs: all[1] },
			submissions: { count: submissions[0], silentMs: submissions[1] },
			submissionMs,
		};
		const seen = health(figures, circumstances);
		const found = [
			mustWaitFor("read", seen),
			mustWaitFor("submission", seen),
			wantsProbe(seen),
			isStalled(seen),
		];
		assert.deepEqual(found, expected, what);
	}
	const silent = { count: 16, silentMs: 100 };
	const short = health({ all: silent, submissions: silent }, WELL, { attemptTimeoutMs: 100 });
	assert.deepEqual([wantsProbe(short), isStalled(short)], [true, true], "a short share");
});

test("when a probe asks as a submission would", () => {
	for (const [silentMs, isUnavailable, isSuspected, expected] of [
		[0, false, false, false],
		[399, false, false, false],
		[400, false, false, true],
		[0, true, false, true],
		[0, false, true, true],
	] as const) {
		const { figures } = health({ submissions: { count: silentMs === 0 ? 0 : 1, silentMs } });
		const found = mustProbeSubmission(figures, { isUnavailable, isSuspected });
		assert.equal(found, expected, `${silentMs} ${isUnavailable} ${isSuspected}`);
	}
});

test("what follows from a probe of a closed breaker", () => {
	const probe = {
		tookMs: 500,
		otherRequestWasAnswered: false,
		doubtedMs: null,
		requestsAreSilent: false,
		requestsFail: false,
		isAlone: false,
	};
	for (const [outcome, more, isFallback, expected] of [
		["ok", {}, false, null],
		["ok", { doubtedMs: 600 }, false, null],
		["notReady", {}, true, "notReady"],
		["notReady", {}, false, "doubt"],
		["notReady", { doubtedMs: 999 }, false, "doubt"],
		["notReady", { doubtedMs: 1_000 }, false, "notReady"],
		["notReady", { requestsFail: true }, false, "notReady"],
		["staleHead", { otherRequestWasAnswered: true }, false, "staleHead"],
		["refused", {}, false, "refused"],
		["probe", {}, false, "probe"],
		["timeout", {}, false, "timeout"],
		["timeout", { requestsAreSilent: true }, false, "silence"],
		["timeout", { otherRequestWasAnswered: true }, false, "doubt"],
		["timeout", { otherRequestWasAnswered: true, doubtedMs: 600 }, false, "timeout"],
		["timeout", { tookMs: 750 }, false, "timeout"],
		["timeout", { tookMs: 751 }, false, "doubt"],
		["node", { requestsAreSilent: true }, false, "node"],
		["node", { otherRequestWasAnswered: true }, false, "doubt"],
		["node", { otherRequestWasAnswered: true, doubtedMs: 600 }, false, "node"],
		["timeout", {}, true, "doubt"],
		["timeout", { doubtedMs: 600 }, true, "timeout"],
		["refused", { isAlone: true }, false, "doubt"],
		["notReady", { isAlone: true, requestsFail: true }, false, "doubt"],
		["timeout", { isAlone: true, doubtedMs: 4_999 }, false, "doubt"],
		["timeout", { isAlone: true, doubtedMs: 5_000 }, false, "timeout"],
		["loop", { isAlone: true }, false, "loop"],
	] as readonly (readonly [ProbeOutcome, Partial<typeof probe>, boolean, string | null])[]) {
		const found = reasonOfProbe(
			outcome,
			{ ...probe, ...more },
			{
				...SETTINGS,
				upstream: isFallback ? "fallback" : "relay",
			},
		);
		assert.equal(found, expected, `${outcome} ${JSON.stringify(more)} ${isFallback}`);
	}
});

const PROVEN = { isProven: true, isAlone: false } as const;

test("a backoff doubles with each relapse up to its maximum, with a fifth of jitter either way", () => {
	const settings = { ...SETTINGS, firstBackoffMs: 1_000, maxBackoffMs: 5_000, probeIntervalMs: 700 };
	for (const [relapses, random, expected] of [
		[0, 0.5, 1_000],
		[1, 0.5, 2_000],
		[2, 0.5, 4_000],
		[3, 0.5, 5_000],
		[10_000, 0.5, 5_000],
		[0, 0, 800],
		[0, 1, 1_200],
		[3, 1, 5_000],
	] as const) {
		const found = backoffMs({ ...PROVEN, relapses, reason: "reset" }, settings, random);
		assert.equal(Math.round(found), expected, `${relapses} relapses, ${random}`);
	}
	const starting = { ...PROVEN, isProven: false, relapses: 0, reason: "refused" } as const;
	assert.equal(backoffMs(starting, settings, 1), 700, "it is only starting");
	const alone = { ...PROVEN, isAlone: true, relapses: 3, reason: "refused" } as const;
	assert.equal(backoffMs(alone, settings, 1), 700, "nobody else takes its requests meanwhile");
	const notReady = { ...PROVEN, reason: "notReady" } as const;
	assert.equal(backoffMs({ ...notReady, relapses: 0 }, settings, 1), 700, "it says when it is ready");
	assert.equal(backoffMs({ ...notReady, relapses: 1 }, settings, 0.5), 2_000);
});

test("the probation lasts twice the last backoff, or twice a whole recovery where that is longer", () => {
	assert.equal(probationMs(2_000, SETTINGS), 6_000);
	assert.equal(probationMs(8_000, SETTINGS), 16_000);
});
