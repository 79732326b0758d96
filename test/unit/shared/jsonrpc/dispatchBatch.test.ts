// Tests the dispatcher's batches and limits: the order of calls, and which are not run.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallContext } from "../../../../shared/http/callContext.ts";
import type { CallLimiter } from "../../../../shared/jsonrpc/dispatch.ts";
import { entry, startDispatcher as start } from "../../../support/dispatching.ts";

test("a batch is answered in its order, each entry for itself", async () => {
	const { send, script, clock } = start();
	const answer = send([
		entry(1, "test_wait", "slow"),
		entry(2, "test_echo", "quick"),
		5,
		entry(4, "test_reject"),
		entry(5, "test_wait", "quicker"),
	]);
	await clock.advance(1);
	assert.deepEqual(script.waiting, ["slow", "quicker"], "they run side by side");
	script.release("quicker");
	script.release("slow");
	const { status, body } = await answer;
	assert.equal(status, 200);
	assert.deepEqual(
		body.map((one: { id: unknown; result?: unknown; error?: { code: number } }) => [
			one.id,
			one.result ?? one.error?.code,
		]),
		[
			[1, "slow"],
			[2, "quick"],
			[null, -32600],
			[4, -32000],
			[5, "quicker"],
		],
	);
});

test("a batch whose answers are too large tells so in the place of those that do not fit, and short ones always do", async () => {
	const { send } = start();
	const large = 10_000_000;
	const { body } = await send([
		entry(1, "test_big", large),
		entry(2, "test_big", large),
		entry(3, "test_big", large),
		entry(4, "test_echo", "short"),
	]);
	assert.deepEqual(
		body.map((one: { result?: string; error?: { code: number } }) => one.result?.length ?? one.error?.code),
		[large, large, -32005, 5],
	);
});

test("ordered calls of a batch run one after another, and what stands behind one sees what it did", async () => {
	const { send, script, clock } = start();
	const answer = send([
		entry(1, "test_wait", "read before"),
		entry(2, "test_ordered", "first"),
		entry(3, "test_ordered", "second"),
		entry(4, "test_wait", "read after"),
	]);
	await clock.advance(1);
	assert.deepEqual(script.waiting, ["read before", "first"], "a slow read holds up no submission");
	script.release("first");
	await clock.advance(1);
	assert.deepEqual(script.waiting, ["read before", "second"]);
	script.release("second");
	await clock.advance(1);
	assert.deepEqual(script.waiting, ["read before", "read after"]);
	script.release("read before");
	script.release("read after");
	assert.deepEqual(
		(await answer).body.map((one: { result: string }) => one.result),
		["read before", "first", "second", "read after"],
	);
});

test("of a batch at most sixteen calls run at a time", async () => {
	const { send, script, clock } = start();
	const answer = send(Array.from({ length: 40 }, (_, i) => entry(i, "test_wait", `w${i}`)));
	await clock.advance(1);
	assert.equal(script.waiting.length, 16);
	script.release("w9");
	await clock.advance(1);
	assert.equal(script.waiting.length, 16);
	assert.ok(script.waiting.includes("w16"));
	while (script.waiting.length > 0) {
		for (const name of script.waiting) script.release(name);
		await clock.advance(1);
	}
	assert.deepEqual(
		(await answer).body.map((one: { result: string }) => one.result),
		Array.from({ length: 40 }, (_, i) => `w${i}`),
	);
});

/** Lets `tokens` worth of calls pass; remembers what it was asked. */
function meter(tokens: number) {
	const asked: [string | null, number][] = [];
	let left = tokens;
	const limiter: CallLimiter<CallContext> = {
		take(_context, call, weight) {
			asked.push([call === null ? null : call.method, weight]);
			if (weight > left) return 1_500 + asked.length;
			left -= weight;
			return 0;
		},
	};
	return { asked, limiter };
}

test("calls of a batch whose turn does not come in time are not made, and say so", async () => {
	const { send, script, clock } = start();
	const answer = send(["a", "b", "c"].map((name, i) => entry(i, "test_ordered", name)));
	await clock.advance(600);
	script.release("a");
	await clock.advance(600);
	script.release("b");
	const { body } = await answer;
	assert.deepEqual(
		body.map((one: { result?: string; error?: { message: string } }) => one.result ?? one.error?.message),
		["a", "b", "internal error: the batch took too long, this call was not made"],
	);
	assert.deepEqual(script.log, ["start a", "end a", "start b", "end b"]);
});

test("every entry is weighed, known or not, readable or not", async () => {
	const { asked, limiter } = meter(1_000);
	const { send } = start(limiter);
	await send([
		entry(1, "test_echo", 1),
		entry(2, "test_heavy"),
		entry(3, "node_dear"),
		entry(4, "test_nope"),
		5,
	]);
	await send("{");
	assert.deepEqual(asked, [
		["test_echo", 1],
		["test_heavy", 10],
		["node_dear", 10],
		["test_nope", 1],
		["", 1],
		[null, 1],
	]);
});

test("over the limit: 429 with -32005 and the wait, of a batch only what does not fit", async () => {
	const { limiter } = meter(12);
	const { send, script } = start(limiter);
	const batch = await send([
		entry(1, "test_heavy"),
		entry(2, "test_note", "fits"),
		entry(3, "test_heavy"),
		entry(4, "test_note", "fits too"),
		entry(5, "test_note", "does not"),
		{ method: "test_note", params: ["neither"] },
	]);
	assert.equal(batch.status, 200);
	assert.deepEqual(
		batch.body.map((one: { id: number; error?: object }) => [one.id, one.error]),
		[
			[1, undefined],
			[2, undefined],
			[3, { code: -32005, message: "limit exceeded: try again in 2 s" }],
			[4, undefined],
			[5, { code: -32005, message: "limit exceeded: try again in 2 s" }],
		],
	);
	assert.deepEqual(script.log, ["note fits", "note fits too"]);
	const single = await send(entry(6, "test_echo", 1));
	assert.equal(single.status, 429);
	assert.equal(single.body.id, 6);
	assert.equal(single.retryMs, 1_507);
	const all = await send([entry(7, "test_echo", 1), entry(8, "test_echo", 1)]);
	assert.equal(all.status, 429);
	assert.equal(all.retryMs, 1_509);
	assert.equal(all.body.length, 2);
	const unreadable = await send("{");
	assert.equal(unreadable.status, 429);
	assert.equal(unreadable.body.id, null);
	assert.equal((await send({ method: "test_note", params: ["silent"] })).text, null);
});
