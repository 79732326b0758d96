// A TCP line of a limited rate between a client and a port on loopback, as a searcher's or a user's
// connection to the internet. It drops nothing: what it has not carried yet waits at the sender.

import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { pause, systemClock } from "../../shared/clock.ts";

/** A running line. */
export interface SlowLine {
	readonly port: number;
	/** Ends all its connections. */
	stop(): Promise<void>;
}

/** A pause of the machine is made up for by at most this many ms at full speed. */
const CATCH_UP_MS = 100;

/** Starts a line to the port `to`, which carries `bytesPerSecond` in each direction. */
export async function startSlowLine(to: number, bytesPerSecond: number): Promise<SlowLine> {
	const sockets = new Set<Socket>();
	const keep = (socket: Socket): Socket => {
		sockets.add(socket);
		socket.on("error", () => {});
		socket.on("close", () => sockets.delete(socket));
		return socket;
	};
	const rates = [new Rate(bytesPerSecond), new Rate(bytesPerSecond)] as const;
	const server = createServer((client) => {
		const target = keep(connect(to, "127.0.0.1"));
		void carry(keep(client), target, rates[0]);
		void carry(target, client, rates[1]);
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		port: (server.address() as AddressInfo).port,
		async stop() {
			for (const socket of sockets) socket.destroy();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}

/** When one direction of the line has carried everything that it was given. */
class Rate {
	readonly #bytesPerSecond: number;
	#freeAt = 0;

	constructor(bytesPerSecond: number) {
		this.#bytesPerSecond = bytesPerSecond;
	}

	/** Resolves when `bytes` more have been carried. */
	async carried(bytes: number): Promise<void> {
		const now = performance.now();
		this.#freeAt = Math.max(this.#freeAt, now - CATCH_UP_MS) + (bytes / this.#bytesPerSecond) * 1000;
		if (this.#freeAt > now) await pause(systemClock, this.#freeAt - now);
	}
}

/** Carries what `from` sends to `to`. Reads nothing while the line is busy. */
async function carry(from: Socket, to: Socket, rate: Rate): Promise<void> {
	try {
		for await (const chunk of from as AsyncIterable<Buffer>) {
			await rate.carried(chunk.length);
			if (!to.write(chunk))
				await new Promise<void>((resolve) => to.once("drain", resolve).once("close", resolve));
		}
		to.end();
	} catch {
		to.destroy();
	}
}
