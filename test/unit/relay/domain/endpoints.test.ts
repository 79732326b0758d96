// The five submission paths against the tables of the interface and of the decisions, copied here by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_PATH, ENDPOINTS, isSubmissionPath, policyOf } from "../../../../relay/domain/endpoints.ts";

const yes = true;
const no = false;

/** Path; simulated first; again each block; shared; may revert; builders; form; fastMode; soft cancellations. */
const TABLE = [
	["fast", yes, no, "likely", yes, "all", "bundle", yes, no],
	["noreverts", yes, yes, "likely", no, "all", "bundle", no, yes],
	["fullprivacy", yes, yes, "never", no, "fullPrivacy", "bundle", no, yes],
	["maxbackruns", yes, no, "always", yes, "all", "bundle", no, no],
	["nochecks", no, no, "never", yes, "all", "private", no, no],
] as const;

test("each path is treated as its row says", () => {
	for (const row of TABLE) {
		const [path, simulated, resimulated, shared, mayRevert, builders, form, fastMode, soft] = row;
		assert.deepEqual(
			policyOf(path),
			{ simulated, resimulated, shared, mayRevert, builders, form, fastMode, softCancellations: soft },
			path,
		);
	}
});

test("there are these five paths, and / is /fast", () => {
	assert.deepEqual(
		Object.keys(ENDPOINTS),
		TABLE.map(([path]) => path),
	);
	assert.equal(DEFAULT_PATH, "fast");
});

test("other names are no paths, those of every object's prototype included", () => {
	for (const [path] of TABLE) assert.ok(isSubmissionPath(path), path);
	const others = [
		"",
		"/fast",
		"Fast",
		"fast ",
		"ws",
		"toString",
		"constructor",
		"__proto__",
		"hasOwnProperty",
	];
	for (const name of others) assert.ok(!isSubmissionPath(name), name);
});
