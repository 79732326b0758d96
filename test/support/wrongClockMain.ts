// Runs the process whose entry, a path from the project's root, is the first argument, with a clock that a test can set wrong: on
// SIGUSR2 the machine's time is eight days ahead, or right again.

const [entry = ""] = process.argv.splice(2, 1);
const AHEAD_MS = 8 * 24 * 3600 * 1000;
const right = Date.now.bind(Date);
let aheadMs = 0;
Date.now = () => right() + aheadMs;
process.on("SIGUSR2", () => {
	aheadMs = aheadMs === 0 ? AHEAD_MS : 0;
	process.stdout.write(`${JSON.stringify({ msg: "clock", level: 30, aheadMs })}\n`);
});
await import(new URL(`../../${entry}`, import.meta.url).href);
