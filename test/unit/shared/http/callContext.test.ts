// A request's target: its path in one form, and its query.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readTarget } from "../../../../shared/http/callContext.ts";

test("a target is split into a normalised path and the query text", () => {
	const rows: [string, string, string][] = [
		["/", "/", ""],
		["/fast", "/fast", ""],
		["/fast/", "/fast", ""],
		["/fast///", "/fast", ""],
		["//", "/", ""],
		["//fast", "/fast", ""],
		["///tx//a///events//?a=//b", "/tx/a/events", "a=//b"],
		["/fast?a=b", "/fast", "a=b"],
		["/fast/?a=b", "/fast", "a=b"],
		["/?a=/&b=?", "/", "a=/&b=?"],
		["/fast?", "/fast", ""],
		["/FAST", "/FAST", ""],
		["/f%61st", "/f%61st", ""],
		["http://relay.example/fast?a=b", "/fast", "a=b"],
		["HTTPS://relay.example:8080", "/", ""],
		["http://relay.example?a=b", "/", "a=b"],
		["http://relay.example//fast", "/fast", ""],
		["*", "*", ""],
		["relay.example:443", "relay.example:443", ""],
		["", "", ""],
	];
	for (const [target, path, search] of rows) assert.deepEqual(readTarget(target), { path, search }, target);
});
