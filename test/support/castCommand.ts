// Runs cast, the command line client, from its npm package, and returns what it printed.

import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** What a run printed. */
export interface CastRun {
	readonly code: number;
	readonly stdout: string;
	readonly stderr: string;
}

const RUN_MS = 20_000;

/** Runs `cast`; it fails after 20 s. Settings of the machine's own (ETH_RPC_URL) are kept away from it. */
export function cast(...args: string[]): Promise<CastRun> {
	const { PATH = "", HOME = "" } = process.env;
	const options = { timeout: RUN_MS, env: { PATH, HOME, NO_COLOR: "1" } };
	return new Promise((resolve) => {
		execFile(binary(), args, options, (error, stdout, stderr) => {
			resolve({ code: error === null ? 0 : 1, stdout, stderr });
		});
	});
}

/** The program itself: the package's launcher, which `npx cast` runs, ends with 0 whatever cast ended with. */
function binary(): string {
	const cpu = process.arch === "x64" ? "amd64" : process.arch;
	const name = `@foundry-rs/cast-${process.platform}-${cpu}`;
	const require = createRequire(import.meta.url);
	const fromCast = createRequire(require.resolve("@foundry-rs/cast/package.json"));
	const folder = dirname(fromCast.resolve(`${name}/package.json`));
	return join(folder, "bin", process.platform === "win32" ? "cast.exe" : "cast");
}
