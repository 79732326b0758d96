// Runs the process whose entry, a path from the project's root, is the first argument, and measures
// what it keeps: on SIGUSR2 it collects its garbage, and logs the bytes that are left. The system's
// figure includes garbage, up to as much again.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const [entry = ""] = process.argv.splice(2, 1);
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
process.on("SIGUSR2", () => {
	collect();
	const { heapUsed, external } = process.memoryUsage();
	process.stdout.write(`${JSON.stringify({ msg: "live memory", level: 30, bytes: heapUsed + external })}\n`);
});
await import(new URL(`../../${entry}`, import.meta.url).href);
