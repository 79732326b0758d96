// Problems that the core knows of besides its own checks, for the top of the operator's page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type CoreState, coreProblems } from "../../../../relay/ingress/operators.ts";
import { PROBLEMS } from "../../../../shared/problems.ts";

const { headStale, nodeSilent, pendingLong } = PROBLEMS;
const REPORTS: Readonly<Record<string, readonly string[]>> = {
	"here:1": [nodeSilent.text],
	"sound:1": [],
	"there:1": [headStale.text, nodeSilent.text],
};

function core(oldestSeconds: number | null, reports: typeof REPORTS): CoreState {
	const relays = Object.entries(reports).map(([name, problems]) => ({ name, problems }));
	return { pool: { oldestSeconds }, relays } as never;
}

for (const [what, oldest, reports, texts] of [
	["nothing is pending, and no relay has reported", null, {}, []],
	["the oldest is pending for a quarter of an hour", 900, {}, []],
	["the oldest is pending for longer", 901, {}, [pendingLong.text]],
	[
		"another relay has problems",
		null,
		REPORTS,
		[`${headStale.text} (there:1)`, `${nodeSilent.text} (there:1)`],
	],
] as const)
	test(what, () => {
		const found = coreProblems(core(oldest, reports), "here:1");
		assert.deepEqual(
			found.map(({ text }) => text),
			texts,
		);
		for (const { todo, isSerious } of found) assert.deepEqual([todo === "", isSerious], [false, false]);
	});
