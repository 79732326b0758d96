// Node's HTTP server with our limits on connections: nothing listens yet, and nobody takes its requests.

import { createServer, type Server } from "node:http";

/** What differs from the limits below. */
export interface NodeServerOptions {
	/** How long a request may take to arrive, in ms: what is slower is answered with 408. 30 s unless said. */
	readonly requestMs?: number;
	/** Connections at most; further ones are closed at once. 10,000 unless said. */
	readonly maxConnections?: number;
}

/** Heroku's router keeps idle connections for 90 s: ours must last longer, or it would send into closed ones. */
const KEEP_ALIVE_MS = 95_000;
const REQUEST_MS = 30_000;
/** A connection on which nothing moved for this long, also not an answer that its client does not read, is cut. */
const SILENCE_MS = 120_000;
const MAX_CONNECTIONS = 10_000;

/** Makes one. */
export function nodeServer({
	requestMs = REQUEST_MS,
	maxConnections = MAX_CONNECTIONS,
}: NodeServerOptions): Server {
	const server = createServer({
		keepAliveTimeout: KEEP_ALIVE_MS,
		headersTimeout: requestMs / 2,
		requestTimeout: requestMs,
		// Node looks for slow ones only this often.
		connectionsCheckingInterval: requestMs / 15,
	});
	server.timeout = SILENCE_MS;
	server.maxConnections = maxConnections;
	return server;
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
