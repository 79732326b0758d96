// Tests the submission paths as a table, copied by hand from the interface.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_PATH, ENDPOINTS, isSubmissionPath, policyOf } from "../../../../relay/domain/endpoints.ts";

const yes = true;
const no = false;

/**
 * Path; simulated first; again each block; shared; may revert; builders; form; fastMode; soft
 * cancellations.
 */
const PATHS = [
	["fast", yes, no, "likely", yes, "all", "bundle", yes, no],
	["noreverts", yes, yes, "likely", no, "all", "bundle", no, yes],
	["fullprivacy", yes, yes, "never", no, "fullPrivacy", "bundle", no, yes],
	["maxbackruns", yes, no, "always", yes, "all", "bundle", no, no],
	["nochecks", no, no, "never", yes, "all", "private", no, no],
] as const;

test("there are five paths, / is /fast, and each has the policy of its row", () => {
	assert.deepEqual([Object.keys(ENDPOINTS), DEFAULT_PATH], [PATHS.map(([path]) => path), "fast"]);
	for (const row of PATHS) {
		const [path, simulated, resimulated, sharing, mayRevert, builders, form, fastMode, soft] = row;
		assert.deepEqual(
			policyOf(path),
			{ simulated, resimulated, sharing, mayRevert, builders, form, fastMode, softCancellations: soft },
			path,
		);
		assert.ok(isSubmissionPath(path), path);
	}
});
