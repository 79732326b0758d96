// Runs the process whose entry, a path from the project's root, is the first argument, with a clock
// that is off by as many ms as the file says whose path is the second one. The file is read at the
// start and on SIGUSR2; see wrongClock.ts.

import { readFileSync } from "node:fs";

const [entry = "", file = ""] = process.argv.splice(2, 2);
const right = Date.now.bind(Date);
let offMs = 0;
const read = (): void => {
	offMs = Number(readFileSync(file, "utf8"));
};
read();
Date.now = () => right() + offMs;
process.on("SIGUSR2", () => {
	read();
	process.stdout.write(`${JSON.stringify({ msg: "clock", level: 30, offMs })}\n`);
});
await import(new URL(`../../${entry}`, import.meta.url).href);
