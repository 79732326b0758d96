// `npm run test:python [-- FILE ...]`: the tests of searchers' Python libraries against a relay.
// Makes the virtual environments of test/python/.venv with what flashbots.txt and newest.txt list,
// if they are not there yet, then runs `npm test -- test/python`. Without a Python that can do this
// it says so and exits with success, since nothing else of this repository needs one.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type Environment, FLASHBOTS, NEWEST } from "./python.ts";

/** The libraries need 3.11. Packages of Debian may lack venv, or what puts pip into it. */
const CAN_INSTALL = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";

await Promise.all([FLASHBOTS, NEWEST].map(install));
const asked = process.argv.slice(2);
await runOrExit("npm", ["test", "--", ...(asked.length === 0 ? ["test/python"] : asked)]);

async function install({ requirements, folder, installed, python }: Environment): Promise<void> {
	const wanted = readFileSync(requirements, "utf8");
	if (existsSync(installed) && readFileSync(installed, "utf8") === wanted) return;
	if ((await run("python3", ["-c", CAN_INSTALL])) !== 0) {
		process.stdout.write(
			"npm run test:python: skipped: it needs python3, 3.11 or later, with venv and pip (Debian: apt install python3-venv)\n",
		);
		process.exit(0);
	}
	rmSync(folder, { recursive: true, force: true });
	await runOrExit("python3", ["-m", "venv", folder]);
	const quiet = ["--quiet", "--disable-pip-version-check"];
	await runOrExit(python, ["-m", "pip", "install", ...quiet, "-r", requirements]);
	// Last, so that an install that was interrupted is made again.
	writeFileSync(installed, wanted);
}

/** Runs a command whose output is shown; ends this process as it ended if that was not well. */
async function runOrExit(command: string, args: readonly string[]): Promise<void> {
	const code = await run(command, args);
	if (code !== 0) process.exit(code);
}

/** The exit code of a command whose output is shown; 1 if it does not run. */
async function run(command: string, args: readonly string[]): Promise<number> {
	try {
		const [code] = await once(spawn(command, args, { stdio: "inherit" }), "exit");
		return typeof code === "number" ? code : 1;
	} catch {
		return 1;
	}
}
