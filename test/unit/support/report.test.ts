// The report of a test run for the events of node:test, and the end of a test process that something keeps alive.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { report, type TestEvent } from "../../support/report.ts";

const FILE = join(process.cwd(), "test", "a.test.ts");

async function textOf(...events: readonly TestEvent[]): Promise<string> {
	async function* sent() {
		yield* events;
	}
	let text = "";
	for await (const part of report(sent())) text += part;
	return text;
}

function begin(name: string, nesting: number): TestEvent {
	return { type: "test:start", data: { name, nesting, file: FILE } };
}

function failure(name: string, nesting: number, cause: unknown, failureType = "testCodeFailure"): TestEvent {
	const error = Object.assign(new Error(`${cause}`, { cause }), { failureType });
	return { type: "test:fail", data: { name, nesting, file: FILE, line: 7, details: { error } } };
}

test("a failure is reported when it happens and at the end, with its file and enclosing tests; passed tests are not", async () => {
	const text = await textOf(
		begin("outer", 0),
		begin("well", 1),
		{ type: "test:pass", data: { name: "well", nesting: 1, file: FILE } },
		begin("bad", 1),
		failure("bad", 1, new Error("one is not two")),
		failure("outer", 0, "1 subtest failed", "subtestsFailed"),
		{ type: "test:diagnostic", data: { nesting: 0, message: "fail 1" } },
	);
	const [before = "", after = ""] = text.split("1 failed, once more:");
	for (const part of [before, after]) {
		assert.match(part, /FAILED test\/a\.test\.ts:7 outer > bad\n {4}Error: one is not two/);
		assert.doesNotMatch(part, /well|subtest/);
	}
	assert.match(before, /fail 1/);
});

test("what a test says of itself is printed with its place", async () => {
	const said = { nesting: 1, file: FILE, line: 3, message: "sixteen in 468 ms" };
	assert.match(
		await textOf({ type: "test:diagnostic", data: said }),
		/^test\/a\.test\.ts:3 sixteen in 468 ms\n/,
	);
});

const MODULE = new URL("../../support/endInTime.ts", import.meta.url).href;

test("a test process that something keeps alive exits as failed and names it", () => {
	for (const [left, status, words] of [
		[`(await import("node:net")).createServer().listen(0)`, 1, /does not end: it has open .*TCPServerWrap/],
		["", 0, /^/],
	] as const) {
		const code = `import { endInTime } from ${JSON.stringify(MODULE)}; ${left}; endInTime(50);`;
		const args = [...process.execArgv, "--input-type=module", "--eval", code];
		const ended = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 30_000 });
		assert.equal(ended.status, status);
		assert.match(ended.stderr, words);
	}
});
