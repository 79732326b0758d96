// The report of a test run for the events of node:test, and the end of a test process that
// something keeps alive.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { Report, type TestEvent } from "../../support/report.ts";

const FILE = join(process.cwd(), "test", "a.test.ts");
const NAME = "test/a.test.ts";

/** The text that a report prints for these events, and its summary. */
function printed(events: readonly TestEvent[], isVerbose = false) {
	const report = new Report({ isVerbose });
	const text = events.map(report.ofProcess()).join("");
	return { text, summary: report.summary(1.25), progress: report.progress(3), isGreen: report.isGreen };
}

function event(
	type: string,
	name: string,
	nesting: number,
	more: Partial<TestEvent["data"]> = {},
): TestEvent {
	return { type: `test:${type}`, data: { name, nesting, file: FILE, ...more } };
}

/** A test of the suite {@link NAME} that completes with these details. */
function completed(name: string, more: Partial<TestEvent["data"]> = {}): TestEvent {
	return event("complete", name, 1, { details: { passed: true }, ...more });
}

function failed(name: string, cause: unknown, failureType = "testCodeFailure", nesting = 1): TestEvent {
	const error = Object.assign(new Error(`${cause}`, { cause }), { failureType });
	return event("fail", name, nesting, { line: 7, details: { error } });
}

const SUITE = [
	event("dequeue", NAME, 0),
	completed("good"),
	completed("slow machine", { skip: "the machine is too slow" }),
	completed("also", { skip: "the machine is too slow" }),
	event("complete", "inner", 1, { details: { type: "suite", passed: true } }),
	event("complete", NAME, 0, { details: { type: "suite", passed: true, duration_ms: 1_500 } }),
];

test("a green run prints nothing but its summary: skips with their reasons, slowest files, minutes, counts", () => {
	const { text, summary, isGreen } = printed(SUITE);
	assert.deepEqual([text, isGreen], ["", true]);
	assert.equal(
		summary,
		[
			"skipped:",
			"  2 × the machine is too slow",
			"the slowest of 1 files:",
			"   1.5 s test/a.test.ts",
			"1.3 minutes",
			"1 passed, 0 failed, 2 skipped",
			"",
		].join("\n"),
	);
});

test("a failure is printed once, with its file and enclosing tests, and named in the summary", () => {
	const { text, summary, isGreen } = printed([
		event("start", "outer", 0),
		event("start", "bad", 1),
		completed("bad", { details: { passed: false } }),
		failed("bad", new Error("one is not two")),
		failed("outer", "1 subtest failed", "subtestsFailed", 0),
	]);
	assert.equal(isGreen, false);
	assert.match(text, /^FAILED test\/a\.test\.ts:7 outer > bad\n {4}Error: one is not two/);
	assert.doesNotMatch(text, /subtest/);
	assert.match(summary, /failed:\n {2}test\/a\.test\.ts:7 outer > bad\n/);
	assert.doesNotMatch(summary, /one is not two/);
	assert.match(summary, /\n0 passed, 1 failed, 0 skipped\n$/);
});

test("the line of each minute has the counts and the files that are running", () => {
	assert.equal(
		printed(SUITE.slice(0, 2)).progress,
		`3 min: 1 passed, 0 failed, 0 skipped; running: ${NAME}\n`,
	);
});

test("figures and output are printed with VERBOSE; output of a file also with its failures", () => {
	const figure = event("diagnostic", "", 1, { line: 3, message: "sixteen in 468 ms" });
	const begin = event("dequeue", NAME, 0);
	const [first, second] = ["first", "second"].map((message) =>
		event("stderr", "", 0, { message: `${message}\n` }),
	);
	assert.ok(first !== undefined && second !== undefined);
	assert.equal(printed([begin, figure, first]).text, "");
	assert.equal(printed([begin, figure, first], true).text, "test/a.test.ts:3 sixteen in 468 ms\nfirst\n");
	assert.match(printed([begin, first, failed("bad", "cause"), second]).text, /^first\nFAILED .*\nsecond\n$/s);
	assert.doesNotMatch(printed([begin, first, begin, failed("bad", "cause")]).text, /first/);
});

const MODULE = new URL("../../support/endInTime.ts", import.meta.url).href;

test("a test process that something keeps alive exits as failed, and names it and the file that left it", () => {
	const server = `(await import("node:net")).createServer().listen(0)`;
	for (const [left, ms, status, words] of [
		[server, 50, 1, /does not end: it has open .*TCPServerWrap.*\n {2}left by second\n$/],
		[`const it = ${server}; setTimeout(() => it.close(), 20)`, 20_000, 0, /^$/],
		["", 20_000, 0, /^$/],
	] as const) {
		const code = `import { endInTime, fileEnd } from ${JSON.stringify(MODULE)};
			const ends = [fileEnd("before"), fileEnd("first")];
			${left};
			endInTime(${ms}, [...ends, fileEnd("second"), fileEnd("third")]);`;
		const args = [...process.execArgv, "--input-type=module", "--eval", code];
		const ended = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 30_000 });
		assert.equal(ended.status, status);
		assert.match(ended.stderr, words);
	}
});
