// Tests the setting for the misconduct of the dev builder. builderConduct.test.ts of
// test/integration/auction has each kind on a chain.

import assert from "node:assert/strict";
import { test } from "node:test";
import { MISCONDUCTS, misconductOf } from "../../devnet/misconduct.ts";

test("each misconduct is a value of the setting, and without one the builder is honest", () => {
	for (const name of MISCONDUCTS) assert.equal(misconductOf({ BUILDER_MISCONDUCT: name }), name);
	for (const none of [undefined, "", " "])
		assert.equal(misconductOf({ BUILDER_MISCONDUCT: none }), undefined);
});

test("another value is refused with those that there are", () => {
	assert.throws(() => misconductOf({ BUILDER_MISCONDUCT: "lies" }), {
		message:
			"BUILDER_MISCONDUCT is not valid: expected one of leaks, strips, halfRefunds, ignoresCancels, for example BUILDER_MISCONDUCT=leaks",
	});
});
