// Tests the checks of /readyz: which one fails in which state, and with what text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { UNANSWERED } from "../../../relay/edge/coreLink.ts";
import type { CoreModules, EdgeModules } from "../../../relay/modules.ts";
import { coreChecks, readinessChecks } from "../../../relay/readiness.ts";
import type { CheckResult } from "../../../shared/http/opsRoutes.ts";

const MAX_HEAD_AGE_MS = 60_000;
const HEALTHY = {
	head: {},
	misfit: null as string | null,
	isUnavailable: false,
	ageMs: MAX_HEAD_AGE_MS,
	isHeld: true,
	trouble: null as string | null,
	isWritten: true,
	isAnswered: true,
};

/** The checks that fail if all but this is healthy and the head is as old as allowed. */
const ROWS: readonly (readonly [Partial<typeof HEALTHY> | { head: null }, readonly string[]])[] = [
	[{}, []],
	[{ head: null }, ["node: the node does not answer"]],
	[{ isUnavailable: true }, ["node: the node does not answer"]],
	[{ ageMs: MAX_HEAD_AGE_MS + 1 }, ["head: the head is too old"]],
	[{ misfit: "the node has another chain's" }, ["head: the node has another chain's"]],
	[{ isWritten: false }, ["store: the last write failed"]],
	[{ isHeld: false }, ["store: the store does not answer, or is another relay's"]],
	[{ isHeld: false, trouble: "it has crashed" }, ["store: it has crashed"]],
	[{ isWritten: false, trouble: "the disk is full" }, ["store: the disk is full"]],
	[{ isAnswered: false }, ["delivery: no builder answers"]],
];

test("/readyz names what fails", async () => {
	for (const [row, expected] of ROWS) {
		const { head, misfit, isUnavailable, ageMs, isHeld, trouble, isWritten, isAnswered } = {
			...HEALTHY,
			...row,
		};
		const check = coreChecks({
			kv: { isHeld, trouble },
			transactions: { keeper: { isWritable: async () => isWritten } },
			deliveries: { healthy: isAnswered },
		} as unknown as CoreModules);
		const edge = {
			tip: { head: () => head },
			heads: { isUnavailable, trouble: misfit, times: { ageMs: () => ageMs, differenceMs: () => 0 } },
			core: { local: { needs: { check } } },
		} as unknown as EdgeModules;
		const checks = readinessChecks(() => MAX_HEAD_AGE_MS, edge, null);
		const failed: string[] = [];
		for (const { name, check } of checks) {
			const result = await check();
			if (!result.ok) failed.push(`${name}: ${result.reason}`);
		}
		assert.deepEqual([checks.length, failed], [4, expected]);
	}
});

test("a clock that is off is noted at the head, which is as ready as it was", async () => {
	for (const [differenceMs, ageMs, expected] of [
		[3_600_000, 0, { ok: true, note: "this machine's clock is 3600 s ahead of the chain's" }],
		[-7_400, 0, { ok: true, note: "this machine's clock is 7 s behind the chain's" }],
		[
			-7_400,
			MAX_HEAD_AGE_MS + 1,
			{ ok: false, reason: "the head is too old", note: "this machine's clock is 7 s behind the chain's" },
		],
	] as const) {
		const heads = { trouble: null, times: { ageMs: () => ageMs, differenceMs: () => differenceMs } };
		const checks = readinessChecks(() => MAX_HEAD_AGE_MS, { heads } as unknown as EdgeModules, null);
		assert.deepEqual(await checks.find(({ name }) => name === "head")?.check(), expected);
	}
});

/**
 * An edge's report of the core's checks: the core's answer, the state of the search for a core, and
 * the results that follow.
 */
const EDGE_ROWS: readonly (readonly [
	answer: CheckResult | Error | null,
	search: { readonly isAway: boolean; readonly trouble: string },
	expected: readonly CheckResult[],
])[] = [
	[{ ok: true }, { isAway: false, trouble: "" }, [{ ok: true }, { ok: true }]],
	[
		{ ok: false, reason: "as the core says" },
		{ isAway: false, trouble: "" },
		[
			{ ok: false, reason: "as the core says" },
			{ ok: false, reason: "as the core says" },
		],
	],
	// Another one takes over.
	[UNANSWERED, { isAway: false, trouble: "" }, [{ ok: true }, { ok: true }]],
	[null, { isAway: false, trouble: "" }, [{ ok: true }, { ok: true }]],
	[
		null,
		{ isAway: true, trouble: "no relay has the store" },
		[{ ok: false, reason: "no core reachable: no relay has the store" }, { ok: true }],
	],
];

test("an edge is ready when it has read the disclosed transactions", async () => {
	const run = async () => ({ ok: true });
	for (const isFed of [false, true]) {
		const edge = { core: { local: null, remote: {}, run, isFed } } as unknown as EdgeModules;
		const checks = readinessChecks(() => MAX_HEAD_AGE_MS, edge, null).slice(2);
		const results = await Promise.all(checks.map(({ check }) => check()));
		assert.deepEqual(
			results.map(({ ok }) => ok),
			[isFed, true],
		);
	}
});

test("an edge reports the core's store and delivery checks, and is healthy while the next core takes over", async () => {
	for (const [answer, search, expected] of EDGE_ROWS) {
		const run = async () => {
			if (answer instanceof Error) throw answer;
			return answer;
		};
		const remote = answer === null ? null : {};
		const edge = { core: { local: null, remote, run, isFed: true } } as unknown as EdgeModules;
		const checks = readinessChecks(() => MAX_HEAD_AGE_MS, edge, search).slice(2);
		assert.deepEqual(await Promise.all(checks.map(({ check }) => check())), expected);
	}
});
