// Runs the process whose entry, a path from the project's root, is the first argument, and measures
// its event loop: on SIGUSR2 it logs the longest time between two turns since the last time it was
// asked, without the time for which the process waited for a processor: a busy machine is no fault
// of the process.

import { openSync, readdirSync, readSync } from "node:fs";

/** The time in ms between two looks at an idle loop. */
const LOOK_MS = 1;
const NS_PER_MS = 1e6;
const TASKS = "/proc/self/task";
const text = Buffer.alloc(128);

/** A thread, by its file https://docs.kernel.org/scheduler/sched-stats.html#proc-pid-schedstat */
class Thread {
	readonly #file: number;
	#times = [0, 0];

	constructor(id: string) {
		this.#file = openSync(`${TASKS}/${id}/schedstat`, "r");
	}

	/**
	 * How long it has run, and how long it has waited for a processor, since this was asked last, in
	 * ms.
	 */
	since(): readonly [number, number] {
		const length = readSync(this.#file, text, 0, text.length, 0);
		const [ran = 0, waited = 0] = text.toString("latin1", 0, length).split(" ").map(Number);
		const [before = 0, waitedBefore = 0] = this.#times;
		this.#times = [ran, waited];
		return [(ran - before) / NS_PER_MS, (waited - waitedBefore) / NS_PER_MS];
	}
}

const [entry = ""] = process.argv.splice(2, 1);
const isLinux = process.platform === "linux";
const main = isLinux ? new Thread(String(process.pid)) : null;
const others = (isLinux ? readdirSync(TASKS) : [])
	.filter((id) => id !== String(process.pid))
	.map((id) => new Thread(id));
let longest = 0;
let at = performance.now();
for (const thread of [main, ...others]) thread?.since();
setInterval(() => {
	const now = performance.now();
	const [ran, denied] = main?.since() ?? [0, 0];
	// The garbage collection waits for its other threads, which may wait for a processor too.
	const deniedOthers = Math.max(0, ...others.map((thread) => thread.since()[1]));
	longest = Math.max(longest, ran, now - at - LOOK_MS - denied - deniedOthers);
	at = now;
}, LOOK_MS).unref();
process.on("SIGUSR2", () => {
	process.stdout.write(`${JSON.stringify({ msg: "event loop", level: 30, heldMs: longest })}\n`);
	longest = 0;
});
await import(new URL(`../../${entry}`, import.meta.url).href);
