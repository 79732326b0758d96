// The scripts that start something: --help prints what they do and starts nothing, and an unknown
// argument is an error. The words of both are tested in test/unit/shared/commandLine.test.ts.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { START_PORTS, START_SETTINGS } from "../../devnet/startLayout.ts";
import { ROOT } from "../../support/documents.ts";
import { sized } from "../../support/length.ts";
import { launchRelay } from "../../support/processes.ts";

const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
	readonly scripts: Readonly<Record<string, string>>;
};

/** Each script, what its help says at least, and what it takes besides --help. */
const SCRIPTS: readonly (readonly [script: string, said: readonly string[], options: readonly string[]])[] = [
	[
		"start",
		[...Object.values(START_PORTS).map(([name]) => name), ...START_SETTINGS.map(([name]) => name)],
		[],
	],
	["demo", ["refund", "exits with 0"], []],
	["bench", ["--write"], ["--write"]],
	[
		"test:long",
		["--seed", "--only", "control, boost"],
		["--seed", "--sequences", "--steps", "--minutes", "--only", "--write", "--path", "--replay"],
	],
	["why", ["RELAY_URL", "npm run why -- <hash>"], []],
	["verify", ["Exit codes: 0 kept, 1 broken, 2 can't tell"], ["--rpc", "--signer"]],
];
/** Those with another exit code than 1 for bad arguments. */
const CODE_2 = ["why", "verify"];

/** All but `verify` read their arguments by the same code: one for each exit code. */
const TRIED = sized(["start", "why", "verify"], Object.keys(scripts));

for (const [script, said, options] of SCRIPTS.filter(([name]) => TRIED.includes(name))) {
	const name = script === "start" ? "npm start" : `npm run ${script}`;
	const entry = scripts[script]?.split(" ").at(-1) ?? "";
	const run = (...args: readonly string[]) => launchRelay({ entry, args, env: {} }).ended();

	test(`${name} -- --help says what it does, and starts nothing`, async () => {
		const { code, stdout, stderr } = await run("--help");
		assert.deepEqual([code, stderr], [0, ""]);
		assert.ok(stdout.startsWith(`${name}: `), stdout);
		for (const part of said) assert.ok(stdout.includes(part), `${stdout} lacks ${part}`);
		assert.doesNotMatch(stdout, /Starting|listening|^Leeward is running/m);
	});

	test(`${name} refuses an unknown argument`, async () => {
		for (const arg of sized(["--halp"], ["--halp", "help"])) {
			const { code, stdout, stderr } = await run(arg);
			assert.deepEqual([code, stdout], [CODE_2.includes(script) ? 2 : 1, ""], arg);
			assert.match(stderr, new RegExp(`^${name}: [^\\n]+ expected [^\\n]+\\n$`), arg);
			for (const option of options) assert.ok(stderr.includes(option), `${stderr} lacks ${option}`);
		}
	});
}
