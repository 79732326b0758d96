// Finds a free port, for a server that must listen on it again after a restart.

import { createServer } from "node:net";

/** Below the ports that systems assign for port 0 and outgoing connections, so that nobody else gets it before its use. */
const FIRST = 12_000;
const COUNT = 18_000;
let latest = Math.floor(Math.random() * COUNT);

/** Never the same port twice in a process: one that is free now may be that of a server which is down for a moment. */
export async function freePort(): Promise<number> {
	for (;;) {
		latest = (latest + 1) % COUNT;
		const port = FIRST + latest;
		if (await isFree(port)) return port;
	}
}

/** Whether nothing listens on the port. */
export function isFree(port: number): Promise<boolean> {
	return new Promise((resolve) => {
		const probe = createServer();
		probe.once("error", () => resolve(false));
		probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
	});
}
