// Finds a free port, for a server that must come back to it after a restart.

import { createServer } from "node:net";

/** Below those that systems give out for port 0 and for connections, so that nobody gets it between this and its use. */
export async function freePort(): Promise<number> {
	for (;;) {
		const port = 12_000 + Math.floor(Math.random() * 18_000);
		const server = createServer();
		const free = await new Promise<boolean>((resolve) => {
			server.once("error", () => resolve(false));
			server.listen(port, "127.0.0.1", () => resolve(true));
		});
		await new Promise((resolve) => server.close(resolve));
		if (free) return port;
	}
}
