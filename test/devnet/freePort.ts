// Finds a free port, for a server that must listen on it again after a restart.

import { createServer } from "node:net";

/** Below the ports that systems assign for port 0 and outgoing connections, so that nobody else gets it before its use. */
export async function freePort(): Promise<number> {
	for (;;) {
		const port = 12_000 + Math.floor(Math.random() * 18_000);
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
