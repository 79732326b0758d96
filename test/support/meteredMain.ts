// Runs the process whose entry, a path from the project's root, is the first argument, and measures its event loop: on SIGUSR2
// it logs the longest time between two turns since the last time it was asked, without the time for which the process waited
// for a processor: a busy machine is no fault of the process.

import { deniedMs } from "./attacks/processFigures.ts";

/** The time in ms between two looks at an idle loop. */
const LOOK_MS = 1;

const [entry = ""] = process.argv.splice(2, 1);
const deniedSoFar = process.platform === "linux" ? () => deniedMs(process.pid) : () => 0;
let longest = 0;
let at = performance.now();
let denied = deniedSoFar();
setInterval(() => {
	const [now, deniedNow] = [performance.now(), deniedSoFar()];
	longest = Math.max(longest, now - at - LOOK_MS - (deniedNow - denied));
	[at, denied] = [now, deniedNow];
}, LOOK_MS).unref();
process.on("SIGUSR2", () => {
	process.stdout.write(`${JSON.stringify({ msg: "event loop", level: 30, heldMs: longest })}\n`);
	longest = 0;
});
await import(new URL(`../../${entry}`, import.meta.url).href);
