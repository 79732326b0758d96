// Which fork FORK names, and what is said of a name that no fork has.

import assert from "node:assert/strict";
import { test } from "node:test";
import { forkOf } from "../../devnet/forkChain.ts";

test("FORK names a fork in any case, and none where it is empty", () => {
	assert.equal(forkOf({ FORK: " Amsterdam " })?.name, "Amsterdam");
	assert.equal(forkOf({ FORK: "osaka" })?.name, "Osaka");
	for (const env of [{}, { FORK: "" }, { FORK: " " }]) assert.equal(forkOf(env), undefined);
});

test("another name is refused with the forks that there are", () => {
	assert.throws(() => forkOf({ FORK: "london" }), {
		message: "FORK is not valid: expected one of prague, osaka, amsterdam, for example FORK=amsterdam",
	});
});
