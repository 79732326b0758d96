// A host's router: each new connection goes to one of those that are ready, in turn. Connections
// that are open stay where they are, as with a Service of Kubernetes.

import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export type ReadyRouter = Awaited<ReturnType<typeof startReadyRouter>>;

/**
 * Starts one; `ready` has the ports to which it may go now. Without any a connection is refused.
 */
export async function startReadyRouter(ready: () => readonly number[]) {
	const sockets = new Set<Socket>();
	let turn = 0;
	const kept = (socket: Socket): Socket => {
		sockets.add(socket);
		socket.on("error", () => {});
		socket.on("close", () => sockets.delete(socket));
		return socket;
	};
	const server = createServer((incoming) => {
		kept(incoming);
		const ports = ready();
		turn += 1;
		const port = ports[turn % Math.max(1, ports.length)];
		if (port === undefined) {
			incoming.resetAndDestroy();
			return;
		}
		const outgoing = kept(connect(port, "127.0.0.1"));
		incoming.pipe(outgoing);
		outgoing.pipe(incoming);
		incoming.on("close", () => outgoing.destroy());
		outgoing.on("close", () => incoming.destroy());
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		/** http://127.0.0.1:port */
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		async stop(): Promise<void> {
			for (const socket of sockets) socket.destroy();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}
