// A TCP forwarder whose connections can be cut or frozen. It knows no protocol.

import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A running forwarder. */
export type TcpProxy = Awaited<ReturnType<typeof startTcpProxy>>;

/** Starts a forwarder to the port `to` on loopback. */
export async function startTcpProxy(to: number) {
	const sockets = new Set<Socket>();
	let state: "open" | "cut" | "frozen" = "open";
	let accepted = 0;
	let target = to;
	/** By outgoing socket. */
	const held = new Map<Socket, Buffer[]>();
	const pairs = new Map<Socket, Socket>();
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
		incoming.on("data", (chunk) => {
			const kept = held.get(outgoing);
			if (kept !== undefined) kept.push(chunk);
			else if (state === "open") outgoing.write(chunk);
		});
		incoming.on("close", () => {
			if (!held.has(outgoing)) outgoing.destroy();
		});
		pairs.set(incoming, outgoing);
		incoming.on("close", () => pairs.delete(incoming));
		outgoing.on("data", (chunk) => {
			if (state === "open") incoming.write(chunk);
		});
		outgoing.on("close", () => incoming.destroy());
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const endAll = (): void => {
		for (const socket of sockets) socket.destroy();
	};
	return {
		port: (server.address() as AddressInfo).port,
		/** Connections that were made so far, while it was cut too. */
		get accepted() {
			return accepted;
		},
		/** Ends all connections; new ones are ended at once until {@link mend}. */
		cut(): void {
			state = "cut";
			endAll();
		},
		/** Connections stay, and nothing goes through them any more. New ones are frozen too. */
		freeze(): void {
			state = "frozen";
		},
		mend(): void {
			state = "open";
		},
		/** What is sent on the connections that are there is kept from now on, even where its sender goes. */
		hold(): void {
			for (const outgoing of pairs.values()) held.set(outgoing, []);
		},
		/** Delivers what was kept, and resolves when each of those it went to has said something or closed. */
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
		/** New connections go to `port` from now on; those that are there stay. */
		redirect(port: number): void {
			target = port;
		},
		async stop(): Promise<void> {
			endAll();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}

/** Resets the connection, or destroys it where it is ending anyway. */
export function resetSocket(socket: Socket): void {
	if (socket.writableEnded) socket.destroy();
	else socket.resetAndDestroy();
}
