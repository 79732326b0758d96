// cast, the command line client of its npm package, for the tests: arguments come in, what it printed goes out.

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

/** Runs `cast` as `npx cast` does; it fails after 20 s. Settings of the machine's own (ETH_RPC_URL) are kept away. */
export function cast(...args: string[]): Promise<CastRun> {
	const launcher = join(
		dirname(createRequire(import.meta.url).resolve("@foundry-rs/cast/package.json")),
		"bin.mjs",
	);
	const { PATH = "", HOME = "" } = process.env;
	return new Promise((resolve) => {
		execFile(
			process.execPath,
			[launcher, ...args],
			{ timeout: RUN_MS, env: { PATH, HOME, NO_COLOR: "1" } },
			(error, stdout, stderr) => resolve({ code: error === null ? 0 : 1, stdout, stderr }),
		);
	});
}
