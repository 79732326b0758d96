// Runs lines of the Procfile under foreman's `nf` (https://github.com/strongloop/node-foreman), with a handle on the
// runner and all that it started.

import { readFileSync } from "node:fs";
import { type LaunchedRelay, launchRelay } from "./relayProcess.ts";
import { until } from "./until.ts";

/** The Procfile's lines by their names. */
export const PROCFILE: ReadonlyMap<string, string> = new Map(
	readFileSync(new URL("../../Procfile", import.meta.url), "utf8")
		.trimEnd()
		.split("\n")
		.map((line) => /^(\w+): (.+)$/.exec(line)?.slice(1) as [string, string]),
);

/** One line's command. Throws where there is no such line. */
export function lineOf(name: string): string {
	const line = PROCFILE.get(name);
	if (line === undefined) throw new Error(`the Procfile has no line ${name}`);
	return line;
}

/** Runs `nf start` with `names`: the first one on `port`, each further one on the port 100 above. */
export function runProcfile(
	names: readonly string[],
	port: number,
	env: Readonly<Record<string, string>>,
): LaunchedRelay {
	return launchRelay({
		line: `exec node node_modules/foreman/nf.js -p ${port} start -r ${names.join(",")}`,
		env,
	});
}

/** Waits until no process of the group is left. */
export async function groupGone(group: number): Promise<void> {
	await until("nothing of its process group is left", () => {
		try {
			process.kill(-group, 0);
			return false;
		} catch (thrown) {
			return (thrown as { code?: string }).code === "ESRCH";
		}
	});
}
