// One switch that aborts many attempts at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AbortSwitch } from "../../../../boost-proxy/health/breaker.ts";

test("an abort calls each listener once, whoever throws, and at once where it was aborted already", () => {
	const abort = new AbortSwitch();
	const called: string[] = [];
	abort.onAbort(() => called.push("a"));
	const away = abort.onAbort(() => called.push("never"));
	abort.onAbort(() => {
		throw new Error("b's");
	});
	abort.onAbort(() => called.push("c"));
	away();
	const faults: unknown[] = [];
	const tell = (listener: () => void) => {
		try {
			listener();
		} catch (thrown) {
			faults.push(thrown);
		}
	};
	abort.abort(tell);
	abort.abort(tell);
	assert.equal(faults.length, 1);
	assert.deepEqual(called, ["a", "c"]);
	abort.onAbort(() => called.push("late"));
	assert.deepEqual(called, ["a", "c", "late"]);
	assert.equal(abort.isAborted, true);
});
