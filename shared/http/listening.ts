// Makes node's HTTP server with our limits and has it listen. A port or address that can't be had is told in
// terms of the setting that names it.

import { createServer, type Server } from "node:http";
import type { Component } from "../lifecycle.ts";
import { Connections, type ConnectionsOptions } from "./connections.ts";

/** By the name of a server: the setting of its port, and its value. */
type PortSettings = Readonly<Record<string, readonly [setting: string, port: number | undefined]>>;

/** A port or address of the settings can't be had. The message is meant for the operator. */
class ListenError extends Error {
	readonly code = "LISTEN";
	constructor(message: string) {
		super(message);
		this.name = "ListenError";
	}
}

/** Starts them one after another. Throws {@link ListenError} for what another setting would help. */
export async function startListening(
	servers: readonly Pick<Component, "name" | "start">[],
	ports: PortSettings,
): Promise<void> {
	for (const server of servers) {
		await server.start().catch((thrown: unknown) => {
			throw listenError(server.name, ports, thrown);
		});
	}
}

/** Says which setting it was and what was expected; anything that is not about an address stays as it was. */
function listenError(server: string, ports: PortSettings, thrown: unknown): unknown {
	const code = (thrown as { code?: unknown } | null)?.code;
	const [setting, port] = ports[server] ?? ["PORT", undefined];
	if (code === "EADDRINUSE" || code === "EACCES") {
		const problem = code === "EACCES" ? "may not be used" : "is taken";
		return new ListenError(
			`${setting} ${port} ${problem}: expected a free port, for example ${setting}=8090`,
		);
	}
	if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EINVAL" || code === "EAI_AGAIN") {
		return new ListenError(
			"HOST is not valid: expected an address of this machine, for example HOST=127.0.0.1",
		);
	}
	return thrown;
}

/** A server and its connections. */
export interface NodeServer {
	readonly server: Server;
	readonly connections: Connections;
}

/** What differs from the limits below. */
export interface NodeServerOptions extends ConnectionsOptions {
	/** How long a request may take to arrive, in ms: what is slower is answered with 408. 30 s unless said. */
	readonly requestMs?: number;
}

/** Heroku's router keeps idle connections for 90 s: ours must last longer, or it would send into closed ones. */
const KEEP_ALIVE_MS = 95_000;
const REQUEST_MS = 30_000;
/** A connection on which nothing moved for this long, also not an answer that its client does not read, is cut. */
const SILENCE_MS = 120_000;

/** Makes one. */
export function nodeServer(options: NodeServerOptions): NodeServer {
	const { requestMs = REQUEST_MS } = options;
	const server = createServer({
		keepAliveTimeout: KEEP_ALIVE_MS,
		headersTimeout: requestMs / 2,
		requestTimeout: requestMs,
		// Node looks for slow ones only this often.
		connectionsCheckingInterval: requestMs / 15,
	});
	server.timeout = SILENCE_MS;
	const connections = new Connections(options);
	server.on("connection", (socket) => connections.add(socket));
	return { server, connections };
}

/** Listens; rejects with node's error (EADDRINUSE, EACCES, …) when the port cannot be had. */
export function listen(server: Server, { host, port }: { host: string; port: number }): Promise<void> {
	return new Promise((resolve, reject) => {
		server.once("error", reject);
		server.listen(port, host, () => {
			server.off("error", reject);
			resolve();
		});
	});
}
