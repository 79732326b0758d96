// Runs the process whose entry, a path from the project's root, is the first argument, with clocks
// that do not notice that it was stopped, as those of a virtual machine that was paused and moved.

const [entry = ""] = process.argv.splice(2, 1);
/** A process that runs looks at its clock more often, in ms. */
const PAUSE_MS = 2_000;
const TICK_MS = 100;
const [monotonic, now] = [performance.now.bind(performance), Date.now.bind(Date)];
let last = monotonic();
let pausedMs = 0;
function paused(): number {
	const at = monotonic();
	if (at - last > PAUSE_MS) pausedMs += at - last;
	last = at;
	return pausedMs;
}
performance.now = () => monotonic() - paused();
Date.now = () => now() - paused();
setInterval(paused, TICK_MS).unref();
await import(new URL(`../../${entry}`, import.meta.url).href);
