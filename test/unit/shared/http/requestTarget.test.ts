// Request targets: the forms in which a path and a query arrive.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readTarget } from "../../../../shared/http/callContext.ts";

test("a target is a path in one form and a query as text", () => {
	const rows: [string, string, string][] = [
		["/", "/", ""],
		["/fast", "/fast", ""],
		["/fast/", "/fast", ""],
		["/fast///", "/fast", ""],
		["//", "/", ""],
		["/fast?a=b", "/fast", "a=b"],
		["/fast/?a=b", "/fast", "a=b"],
		["/?a=/&b=?", "/", "a=/&b=?"],
		["/fast?", "/fast", ""],
		["/FAST", "/FAST", ""],
		["/f%61st", "/f%61st", ""],
		["http://relay.example/fast?a=b", "/fast", "a=b"],
		["HTTPS://relay.example:8080", "/", ""],
		["http://relay.example?a=b", "/", "a=b"],
		["*", "*", ""],
		["relay.example:443", "relay.example:443", ""],
		["", "", ""],
	];
	for (const [target, path, search] of rows) assert.deepEqual(readTarget(target), { path, search }, target);
});

test("a path of slashes alone is read in no time", () => {
	assert.equal(readTarget(`/a${"/".repeat(10_000)}`).path, "/a");
});
