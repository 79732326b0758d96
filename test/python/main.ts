// `npm run test:python [-- FILE ...]`: the tests of searchers' Python libraries against a relay. Makes the virtual environments of
// test/python/.venv with what flashbots.txt and newest.txt list, if they are not there yet, then runs `npm test -- test/python`.
// Where there is no Python that can do this it says so and ends well, since nothing else of this repository needs one.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type Environment, FLASHBOTS, NEWEST } from "./python.ts";

/** The libraries need 3.11. Packages of Debian may lack venv, or what puts pip into it. */
const CAN_INSTALL = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";

for (const environment of [FLASHBOTS, NEWEST]) install(environment);
const asked = process.argv.slice(2);
runOrExit("npm", ["test", "--", ...(asked.length === 0 ? ["test/python"] : asked)]);

function install({ requirements, folder, installed, python }: Environment): void {
	const wanted = readFileSync(requirements, "utf8");
	if (existsSync(installed) && readFileSync(installed, "utf8") === wanted) return;
	if (spawnSync("python3", ["-c", CAN_INSTALL]).status !== 0) {
		process.stdout.write(
			"npm run test:python: skipped: it needs python3, 3.11 or later, with venv and pip (Debian: apt install python3-venv)\n",
		);
		process.exit(0);
	}
	rmSync(folder, { recursive: true, force: true });
	runOrExit("python3", ["-m", "venv", folder]);
	const quiet = ["--quiet", "--disable-pip-version-check"];
	runOrExit(python, ["-m", "pip", "install", ...quiet, "-r", requirements]);
	// Last, so that an install that was interrupted is made again.
	writeFileSync(installed, wanted);
}
/** Runs a command whose output is shown; ends this process as it ended if that was not well. */
function runOrExit(command: string, args: readonly string[]): void {
	const { status } = spawnSync(command, args, { stdio: "inherit" });
	if (status !== 0) process.exit(status ?? 1);
}
