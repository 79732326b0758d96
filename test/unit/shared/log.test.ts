// Structured logs: what a line is made of, and that no error's message, however it is dressed, gets into one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Transaction } from "ethers";
import { createLogger, LOG_LEVELS, safeError, silentLogger } from "../../../shared/log.ts";

/** Looks like a path with a line in our own sources, and like a key. */
const CANARY = "c0ffee5ecretc0ffee5ecretc0ffee5ecretc0ffee5ecretc0ffee5ecretc0ff";

function capture(level: (typeof LOG_LEVELS)[number] = "trace") {
	const lines: Record<string, unknown>[] = [];
	const log = createLogger(level, "relay", { write: (line: string) => lines.push(JSON.parse(line)) });
	return { log, lines };
}

test("a line has a level, a time, the process's name, the message and its fields", () => {
	const { log, lines } = capture();
	log.info("block", { block: 7, hash: "0x1", ms: 12 });
	const { level, time, ...rest } = lines[0] ?? {};
	assert.deepEqual(rest, { name: "relay", block: 7, hash: "0x1", ms: 12, msg: "block" });
	assert.equal(level, 30);
	assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

test("a child names its part, a child's child too", () => {
	const { log, lines } = capture();
	log.child("broadcast").warn("slow", { upstream: "b" });
	log.child("a").child("b").error("x");
	assert.equal(lines[0]?.part, "broadcast");
	assert.equal(lines[0]?.upstream, "b");
	assert.equal(lines[1]?.part, "b");
});

test("lines below the level are not written", () => {
	const levels = LOG_LEVELS.filter((level) => level !== "silent");
	for (const [i, level] of LOG_LEVELS.entries()) {
		const { log, lines } = capture(level);
		for (const each of levels) log[each](each);
		assert.deepEqual(
			lines.map((line) => line.msg),
			levels.slice(i),
		);
	}
});

test("the silent one says nothing, nor do its children", () => {
	for (const level of LOG_LEVELS)
		if (level !== "silent") silentLogger.child("x")[level]("x", { hash: "0x1" });
	assert.equal(silentLogger.child("x"), silentLogger);
});

class Coded extends Error {
	readonly code: unknown;
	constructor(message: string, code: unknown) {
		super(message);
		this.name = "Coded";
		this.code = code;
	}
}

test("an error is its name, its code and where it was thrown", () => {
	const { name, code, at } = safeError(new Coded("x", "ECONNREFUSED"));
	assert.deepEqual([name, code], ["Coded", "ECONNREFUSED"]);
	assert.match(at ?? "", /^test\/unit\/shared\/log\.test\.ts:\d+$/);
});

test("what is no error is its type alone", () => {
	for (const [thrown, name] of [
		[CANARY, "string"],
		[undefined, "undefined"],
		[null, "object"],
		[{ message: CANARY, name: CANARY, code: CANARY }, "object"],
		[7n, "bigint"],
	] as const) {
		assert.deepEqual(safeError(thrown), { name });
	}
});

/** An error with a name that somebody else chose. */
function named(name: string): Error {
	const error = new Error("x");
	error.name = name;
	return error;
}

function withStack(stack: string): Error {
	const error = new Error("x");
	error.stack = stack;
	return error;
}

function thrownBy(fn: () => unknown): unknown {
	try {
		fn();
	} catch (thrown) {
		return thrown;
	}
	throw new Error("nothing was thrown");
}

const LEAKY: Readonly<Record<string, unknown>> = {
	"a message": new Error(CANARY),
	"a message of lines": new Error(`a\nb ${CANARY}\nc`),
	"a message with a path of ours": new Error(`https://node.example/relay/${CANARY}:8545`),
	"a message with our test's path": new Error(`POST shared/${CANARY}:1 failed`),
	"a message that plays a stack": new Error(`x\n    at f (/app/relay/${CANARY}.ts:1:2)`),
	"a message that plays a stack, alone": withStack(`Error: x\n    at relay/${CANARY}`),
	"a code that is long": new Coded("x", `${CANARY}${CANARY}`),
	"a code with other signs": new Coded("x", `https://${CANARY}`),
	"a code that is an object": new Coded("x", { [CANARY]: CANARY }),
	"a name with other signs": named(`Error: ${CANARY}`),
	"a cause": new Error("x", { cause: new Error(CANARY) }),
	"an aggregate": new AggregateError([new Error(CANARY)], CANARY),
	"ethers, over a raw transaction": thrownBy(() =>
		Transaction.from(`0x02${CANARY.replace(/[^0-9a-f]/g, "")}`),
	),
	"JSON.parse, over a body": thrownBy(() => JSON.parse(`{"raw":${CANARY}}`)),
	"URL, over an address": thrownBy(() => new URL(`//${CANARY}`)),
};

for (const [name, thrown] of Object.entries(LEAKY)) {
	test(`no canary comes out of ${name}`, () => {
		const { log, lines } = capture();
		log.error("fault", { fault: safeError(thrown) });
		const text = JSON.stringify(lines);
		assert.ok(!text.includes("c0ffee"), text);
		assert.match(text, /"fault":\{"name":"/);
	});
}
