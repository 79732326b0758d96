// Node's HTTP server with our limits on connections: nothing listens yet, and nobody takes its requests.

import { createServer, type Server } from "node:http";
import { Connections, type ConnectionsOptions } from "./connections.ts";

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
