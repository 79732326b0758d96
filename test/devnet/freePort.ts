// Finds a free port, for a server that must come back to it after a restart.

import { createServer } from "node:net";

/** Below those that systems give out for port 0 and for connections, so that nobody gets it between this and its use. */
export async function freePort(): Promise<number> {
	for (;;) {
		const port = 12_000 + Math.floor(Math.random() * 18_000);
		if (await isFree(port)) return port;
	}
}

/** Whether nobody listens on it. */
export function isFree(port: number): Promise<boolean> {
	return new Promise((resolve) => {
		const probe = createServer();
		probe.once("error", () => resolve(false));
		probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
	});
}
