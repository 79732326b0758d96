// One switch that aborts many attempts at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AbortSwitch } from "../../../../boost-proxy/domain/breakerPorts.ts";

test("an abort calls each listener once, whoever throws, and at once where it was aborted already", () => {
	const abort = new AbortSwitch();
	const called: string[] = [];
	abort.onAbort(() => called.push("a"));
	const away = abort.onAbort(() => called.push("never"));
	const fault = new Error("b's");
	abort.onAbort(() => {
		throw fault;
	});
	abort.onAbort(() => called.push("c"));
	away();
	assert.throws(() => abort.abort(), fault);
	abort.abort();
	assert.deepEqual(called, ["a", "c"]);
	abort.onAbort(() => called.push("late"));
	assert.deepEqual(called, ["a", "c", "late"]);
	assert.equal(abort.isAborted, true);
});
