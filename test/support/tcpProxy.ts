// A TCP proxy whose connections can be cut, frozen, held or redirected. It knows no protocol.

import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { pause, systemClock } from "../../shared/clock.ts";

/** A running forwarder. */
export type TcpProxy = Awaited<ReturnType<typeof startTcpProxy>>;

interface TcpProxyOptions {
	/**
	 * How long each piece that is sent is held back, in ms. The order of a connection stays, and what
	 * was sent arrives even if the sender disconnects.
	 */
	readonly delayMs?: () => number;
}

/** Starts a forwarder to the port `to` on loopback. */
export async function startTcpProxy(to: number, { delayMs }: TcpProxyOptions = {}) {
	const sockets = new Set<Socket>();
	let state: "open" | "cut" | "frozen" = "open";
	let accepted = 0;
	let target = to;
	/** The held bytes by outgoing socket. */
	const held = new Map<Socket, Buffer[]>();
	const pairs = new Map<Socket, Socket>();
	/** Those whose other side ended while it was frozen. */
	const ended = new Set<Socket>();
	const keep = (socket: Socket): Socket => {
		sockets.add(socket);
		socket.on("error", () => {});
		socket.on("close", () => sockets.delete(socket));
		return socket;
	};
	const server = createServer((incoming) => {
		accepted += 1;
		keep(incoming);
		if (state === "cut") {
			incoming.destroy();
			return;
		}
		const outgoing = keep(connect(target, "127.0.0.1"));
		let before = Promise.resolve();
		const send = (chunk: Buffer): void => {
			if (delayMs === undefined) outgoing.write(chunk);
			else {
				const ms = delayMs();
				before = before.then(() => pause(systemClock, ms)).then(() => void outgoing.write(chunk));
			}
		};
		incoming.on("data", (chunk) => {
			const kept = held.get(outgoing);
			if (kept !== undefined) kept.push(chunk);
			else if (state === "open") send(chunk);
		});
		incoming.on("close", () => {
			if (held.has(outgoing)) return;
			if (delayMs === undefined) outgoing.destroy();
			else void before.then(() => outgoing.end());
		});
		pairs.set(incoming, outgoing);
		incoming.on("close", () => pairs.delete(incoming));
		outgoing.on("data", (chunk) => {
			if (state === "open") incoming.write(chunk);
		});
		outgoing.on("close", () => {
			if (state === "frozen") ended.add(incoming);
			else incoming.destroy();
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const endAll = (): void => {
		for (const socket of sockets) socket.destroy();
	};
	return {
		port: (server.address() as AddressInfo).port,
		/** Number of connections so far, also those made while it was cut. */
		get accepted() {
			return accepted;
		},
		/** Closes all connections, and new ones at once, until {@link mend}. */
		cut(): void {
			state = "cut";
			endAll();
		},
		/**
		 * Keeps connections open, also new ones, but forwards nothing any more, nor that the receiver
		 * ends.
		 */
		freeze(): void {
			state = "frozen";
		},
		mend(): void {
			state = "open";
			for (const incoming of ended) incoming.destroy();
			ended.clear();
		},
		/**
		 * Holds back what is sent on the open connections from now on, even if the sender disconnects.
		 */
		hold(): void {
			for (const outgoing of pairs.values()) held.set(outgoing, []);
		},
		/** Delivers what was held, and resolves when each receiver has answered or closed. */
		async deliver(): Promise<void> {
			const answers = [...held].map(
				([outgoing, chunks]) =>
					new Promise<void>((resolve) => {
						if (chunks.length === 0 || outgoing.destroyed) resolve();
						outgoing.once("data", () => resolve());
						outgoing.once("close", () => resolve());
						outgoing.write(Buffer.concat(chunks));
					}),
			);
			held.clear();
			await Promise.all(answers);
		},
		/** Sends new connections to `port`; open ones stay. */
		redirect(port: number): void {
			target = port;
		},
		async stop(): Promise<void> {
			endAll();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}

/** Resets the connection, or destroys it if it is already closing. */
export function resetSocket(socket: Socket): void {
	if (socket.writableEnded) socket.destroy();
	else socket.resetAndDestroy();
}
