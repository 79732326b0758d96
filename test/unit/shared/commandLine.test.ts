// The text that a script prints for --help and for unknown arguments, with the exit code. And the
// values that it reads from valid ones.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { readCommand } from "../../../shared/commandLine.ts";

const PLAIN = { name: "npm start", about: ["runs it."] };
const WITH_OPTION = {
	...PLAIN,
	options: { seed: { type: "string", default: "7" } },
	optionsHelp: { seed: "the seed" },
	settings: [["FORK", "the fork"]],
} as const;
const WITH_OPERAND = { ...PLAIN, operand: ["<hash>", "32 bytes as 0x hex"], wrongCode: 2 } as const;

/** The value that `read` returns, the text that it prints, and the exit code that it sets. */
function printed(t: TestContext, read: () => unknown) {
	const text = { stdout: "", stderr: "" };
	for (const name of ["stdout", "stderr"] as const)
		t.mock.method(process[name], "write", (chunk: string) => {
			text[name] += chunk;
			return true;
		});
	const before = process.exitCode;
	process.exitCode = undefined;
	const value = read();
	const code = process.exitCode;
	process.exitCode = before;
	t.mock.restoreAll();
	return { ...text, value, code };
}

const REFUSED = [
	[PLAIN, ["--halp"], "npm start: Unknown option '--halp': expected --help\n", 1],
	[WITH_OPTION, ["--halp"], "npm start: Unknown option '--halp': expected --help, --seed\n", 1],
	[WITH_OPERAND, [], "npm start: <hash> is missing: expected <hash>, 32 bytes as 0x hex, or --help\n", 2],
	[
		...[WITH_OPERAND, ["0x1", "0x2"]],
		"npm start: one <hash> at a time: expected <hash>, 32 bytes as 0x hex, or --help\n",
		2,
	],
] as const;

for (const [command, args, stderr, code] of REFUSED) {
	test(`[${args}] is refused with exit code ${code}: ${stderr.trim()}`, (t) => {
		const read = () => readCommand(command, args);
		assert.deepEqual(printed(t, read), { value: null, stdout: "", stderr, code });
	});
}

test("an argument without a dash is refused where there is no operand", (t) => {
	const { value, stdout, stderr, code } = printed(t, () => readCommand(PLAIN, ["help"]));
	assert.deepEqual([value, stdout, code], [null, "", 1]);
	assert.match(stderr, /^npm start: [^\n]*'help'[^\n]*: expected --help\n$/);
});

test("--help prints purpose, settings and options, whatever stands beside it", (t) => {
	const { value, stdout, stderr, code } = printed(t, () => readCommand(WITH_OPTION, ["--halp", "--help"]));
	assert.deepEqual([value, stderr, code], [null, "", undefined]);
	assert.match(stdout, /^npm start: runs it\.\n/);
	assert.match(stdout, /^ {2}FORK +the fork$/m);
	assert.match(stdout, /^ {2}--seed SEED +the seed; default 7$/m);
	assert.match(stdout, /^ {2}--help +this text; starts nothing$/m);
});

test("good arguments are read", () => {
	assert.deepEqual({ ...readCommand(WITH_OPTION, ["--seed", "9"])?.values }, { seed: "9" });
	assert.deepEqual({ ...readCommand(WITH_OPTION, [])?.values }, { seed: "7" });
	assert.equal(readCommand(WITH_OPERAND, ["0x1"])?.operand, "0x1");
});
