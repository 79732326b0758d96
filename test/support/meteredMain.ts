// Runs the process whose entry, a path from the project's root, is the first argument, and measures its event loop: on SIGUSR2
// it logs the longest time between two turns since the last time it was asked.

import { monitorEventLoopDelay } from "node:perf_hooks";

const NS_PER_MS = 1e6;
/** The time in ms between the monitor's looks at an idle loop. */
const LOOK_MS = 1;

const [entry = ""] = process.argv.splice(2, 1);
const loop = monitorEventLoopDelay({ resolution: LOOK_MS });
loop.enable();
process.on("SIGUSR2", () => {
	const heldMs = Math.max(0, loop.max / NS_PER_MS - LOOK_MS);
	loop.reset();
	process.stdout.write(`${JSON.stringify({ msg: "event loop", level: 30, heldMs })}\n`);
});
await import(new URL(`../../${entry}`, import.meta.url).href);
