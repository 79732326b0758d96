// Tests the checks of /readyz: which one fails in which state, and with what text.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { CoreParts, EdgeParts } from "../../../relay/parts.ts";
import { readinessChecks } from "../../../relay/servers.ts";

const MAX_HEAD_AGE_MS = 60_000;
const WELL = {
	head: {},
	isUnavailable: false,
	ageMs: MAX_HEAD_AGE_MS,
	isHeld: true,
	isWritten: true,
	isAnswered: true,
};

/** The checks that fail if all is well except this; the head is as old as it may be. */
const ROWS: readonly (readonly [Partial<typeof WELL> | { head: null }, readonly string[]])[] = [
	[{}, []],
	[{ head: null }, ["node: the node does not answer"]],
	[{ isUnavailable: true }, ["node: the node does not answer"]],
	[{ ageMs: MAX_HEAD_AGE_MS + 1 }, ["head: the head is too old"]],
	[{ isWritten: false }, ["store: the last write failed"]],
	[{ isHeld: false }, ["store: the store does not answer, or is another relay's"]],
	[{ isAnswered: false }, ["delivery: no builder answers"]],
];

test("/readyz names what fails", async () => {
	for (const [row, expected] of ROWS) {
		const { head, isUnavailable, ageMs, isHeld, isWritten, isAnswered } = { ...WELL, ...row };
		const edge = {
			tip: { head: () => head },
			heads: { isUnavailable, times: { ageMs: () => ageMs, differenceMs: () => 0 } },
		} as unknown as EdgeParts;
		const core = {
			kv: { isHeld },
			transactions: { keeper: { isWritable: async () => isWritten } },
			deliveries: { healthy: isAnswered },
		} as unknown as CoreParts;
		const checks = readinessChecks(() => MAX_HEAD_AGE_MS, edge, { coreOf: () => core, finder: null });
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
		const heads = { times: { ageMs: () => ageMs, differenceMs: () => differenceMs } };
		const checks = readinessChecks(() => MAX_HEAD_AGE_MS, { heads } as unknown as EdgeParts, {
			...{ coreOf: () => null, finder: null },
		});
		assert.deepEqual(await checks.find(({ name }) => name === "head")?.check(), expected);
	}
});
