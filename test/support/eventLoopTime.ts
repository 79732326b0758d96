// How long a process, which is run by meteredMain.ts, has kept its event loop.

import type { LaunchedRelay } from "./processes.ts";

/** A turn may keep the event loop for so long, in ms. */
const LIMIT_MS = 20;
/** The same as a multiple of what parsing a text of two megabytes takes here: 1 to 3 ms. */
const TIMES = 8;
const TEXT = `["${"a".repeat(2 * 1024 * 1024)}"]`;

/** Options of a process that runs `entry`, a path from the project's root, and is measured. */
export function metered(entry: string): { readonly entry: string; readonly args: readonly string[] } {
	return { entry: "test/support/meteredMain.ts", args: [entry] };
}

/** How long `one` has kept its event loop at the longest since it was asked last, in ms. */
export async function heldSoFar(one: LaunchedRelay): Promise<number> {
	const { heldMs } = await one.figures("event loop");
	return heldMs as number;
}

/** The longest that a turn may take, in ms: more on a machine that takes longer for everything. */
export function turnLimit(): number {
	const rounds = Array.from({ length: 4 }, () => {
		const bytes = Buffer.from(TEXT);
		const begun = performance.now();
		JSON.parse(bytes.toString());
		return performance.now() - begun;
	});
	return Math.max(LIMIT_MS, TIMES * Math.min(...rounds));
}
