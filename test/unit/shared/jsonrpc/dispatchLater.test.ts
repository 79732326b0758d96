// Calls whose result comes later than what they do: what goes on behind them, and how long they may take.

import assert from "node:assert/strict";
import { test } from "node:test";
import { entry, startDispatcher as start } from "../../../support/dispatching.ts";

const results = (body: readonly { result?: unknown; error?: { message: string } }[]) =>
	body.map(({ result, error }) => result ?? error?.message);

test("one alone is answered with what it is told later", async () => {
	const { call, script, clock, calls } = start();
	const answer = call("test_later", ["a"]);
	await clock.advance(300);
	script.release("a");
	await clock.advance(200);
	assert.deepEqual(script.waiting, ["a's result"]);
	script.release("a's result");
	assert.equal((await answer).body.result, "a's result");
	assert.ok(script.log.includes("left 700"), "what is left of the request");
	assert.deepEqual(calls, [["test_later", "ok", 0.5]]);
});

test("one that has only its result to wait for need not be async", async () => {
	const { call, script, clock } = start();
	const answer = call("test_laterAtOnce", ["a"]);
	await clock.advance(1);
	script.release("a");
	assert.equal((await answer).body.result, "a");
});

test("in a batch they do what they do in turn, and wait for their results side by side", async () => {
	const { send, script, clock } = start();
	const answer = send([
		entry(1, "test_later", "a"),
		entry(2, "test_later", "b"),
		entry(3, "test_wait", "read"),
		entry(4, "test_ordered", "plain"),
	]);
	await clock.advance(1);
	assert.deepEqual(script.waiting, ["a"], "b comes behind a");
	script.release("a");
	await clock.advance(1);
	assert.deepEqual(script.waiting, ["a's result", "b"], "but not behind its result");
	script.release("b");
	await clock.advance(1);
	assert.deepEqual(script.waiting, ["a's result", "b's result", "read", "plain"]);
	for (const name of ["b's result", "plain", "read"]) script.release(name);
	await clock.advance(1);
	script.release("a's result");
	assert.deepEqual(results((await answer).body), ["a's result", "b's result", "read", "plain"]);
});

test("who waits for a result takes no place of those that run", async () => {
	const { send, script, clock } = start();
	const answer = send([
		...Array.from({ length: 20 }, (_, i) => entry(i, "test_later", `l${i}`)),
		...Array.from({ length: 20 }, (_, i) => entry(20 + i, "test_wait", `w${i}`)),
	]);
	for (let i = 0; i < 20; i++) {
		await clock.advance(1);
		script.release(`l${i}`);
	}
	await clock.advance(1);
	const waiting = script.waiting;
	assert.equal(waiting.filter((name) => name.endsWith("result")).length, 20);
	assert.equal(waiting.filter((name) => name.startsWith("w")).length, 16);
	while (script.waiting.length > 0) {
		for (const name of script.waiting) script.release(name);
		await clock.advance(1);
	}
	assert.equal((await answer).body.length, 40);
});

test("what is left is counted from the beginning of the batch", async () => {
	const { send, script, clock } = start();
	const answer = send([entry(1, "test_ordered", "first"), entry(2, "test_later", "a")]);
	await clock.advance(600);
	script.release("first");
	await clock.advance(300);
	script.release("a");
	await clock.advance(1);
	assert.ok(script.log.includes("left 100"), script.log.join());
	script.release("a's result");
	assert.deepEqual(results((await answer).body), ["first", "a's result"]);
});

test("what it throws later is its answer", async () => {
	const { call, script, clock } = start();
	const answer = call("test_later", ["throws"]);
	await clock.advance(1);
	script.release("throws");
	assert.deepEqual((await answer).body.error, { code: -32000, message: "thrown" });
});

test("one that takes too long is answered without its result, and a batch goes on behind it", async () => {
	const { call, send, script, clock } = start();
	const late = call("test_later", ["a"]);
	const batch = send([entry(1, "test_later", "b"), entry(2, "test_echo", "too late")]);
	await clock.advance(1_000);
	assert.deepEqual((await late).body.error, { code: -32603, message: "internal error" });
	assert.deepEqual(results((await batch).body), [
		"internal error",
		"internal error: the batch took too long, this call was not made",
	]);
	script.release("a");
	await clock.advance(1);
	assert.deepEqual(script.waiting, ["b"], "nobody waits for the result any more");
	assert.equal(clock.timers, 0);
});

test("the time of one that waits for its result is up like any other's", async () => {
	const { call, script, clock } = start();
	const late = call("test_later", ["a"]);
	await clock.advance(900);
	script.release("a");
	await clock.advance(100);
	assert.deepEqual((await late).body.error, { code: -32603, message: "internal error" });
	script.release("a's result");
	await clock.advance(1);
	assert.equal(clock.timers, 0);
});

test("a notification does what it does, and nobody waits for its result", async () => {
	const { send, script, clock } = start();
	const alone = send({ jsonrpc: "2.0", method: "test_later", params: ["a"] });
	const batch = send([{ jsonrpc: "2.0", method: "test_later", params: ["b"] }, entry(1, "test_echo", "x")]);
	await clock.advance(1);
	assert.deepEqual(script.waiting, ["a", "b"]);
	script.release("a");
	script.release("b");
	assert.equal((await alone).text, null);
	assert.deepEqual(results((await batch).body), ["x"]);
	assert.deepEqual(script.waiting, []);
});
