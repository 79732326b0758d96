// Finds a free port, for a server that must listen on it again after a restart.

import { createSocket } from "node:dgram";
import { createServer } from "node:net";

/**
 * Below the ports that systems assign for port 0 and outgoing connections, so that nobody else gets
 * it before its use.
 */
const FIRST = 12_000;
const COUNT = 18_000;
let latest = Math.floor(Math.random() * COUNT);

/**
 * Never the same port twice, neither in a process nor in two that run at the same time: one that is
 * free now may be that of a server which is down for a moment, or is not up yet.
 */
export async function freePort(): Promise<number> {
	for (;;) {
		latest = (latest + 1) % COUNT;
		const port = FIRST + latest;
		if ((await isFree(port)) && (await claims(port))) return port;
	}
}

/**
 * Keeps the port from other processes that look for one, for as long as this one lives: by UDP's
 * port of that number.
 */
function claims(port: number): Promise<boolean> {
	const socket = createSocket("udp4");
	return new Promise((resolve) => {
		socket.once("error", () => socket.close(() => resolve(false)));
		socket.bind({ port, address: "127.0.0.1", exclusive: true }, () => {
			socket.unref();
			resolve(true);
		});
	});
}

/** Whether nothing listens on the port. */
export function isFree(port: number): Promise<boolean> {
	return new Promise((resolve) => {
		const probe = createServer();
		probe.once("error", () => resolve(false));
		probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
	});
}
