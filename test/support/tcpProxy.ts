// A TCP forwarder whose wire can be cut or frozen: what comes in on its port goes to another one, and back. It knows
// no protocol.

import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A running forwarder. */
export interface TcpProxy {
	readonly port: number;
	/** Connections that were made so far, while it was cut too. */
	readonly accepted: number;
	/** Ends all connections; new ones are ended at once until {@link mend}. */
	cut(): void;
	/** Connections stay, and nothing goes through them any more. New ones are frozen too. */
	freeze(): void;
	mend(): void;
	/** New connections go to `port` from now on; those that are there stay. */
	redirect(port: number): void;
	stop(): Promise<void>;
}

/** Starts a forwarder to the port `to` on loopback. */
export async function startTcpProxy(to: number): Promise<TcpProxy> {
	const sockets = new Set<Socket>();
	let state: "open" | "cut" | "frozen" = "open";
	let accepted = 0;
	let target = to;
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
		const forward = (from: Socket, to: Socket): void => {
			from.on("data", (chunk) => {
				if (state === "open") to.write(chunk);
			});
			from.on("close", () => to.destroy());
		};
		forward(incoming, outgoing);
		forward(outgoing, incoming);
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const endAll = (): void => {
		for (const socket of sockets) socket.destroy();
	};
	return {
		port: (server.address() as AddressInfo).port,
		get accepted() {
			return accepted;
		},
		cut() {
			state = "cut";
			endAll();
		},
		freeze() {
			state = "frozen";
		},
		mend() {
			state = "open";
		},
		redirect(port) {
			target = port;
		},
		async stop() {
			endAll();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}
