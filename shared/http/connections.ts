// Limits connections, and requests in flight on them, per client. When the server is full, the
// client with the most connections loses its longest idle one to a newcomer. Node's own limit would
// drop the newcomer. A client over its own quota loses a connection without a request so far. Until
// the first request it is unknown whether a web page opened the connection.

import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type ClientAddress, clientOf, normalAddress, UNKNOWN_ADDRESS } from "../client.ts";
import { MultiMap } from "../multiMap.ts";
import { Shares } from "../shares/shares.ts";
import { type Exchange, OpenConnection } from "./openConnection.ts";

export interface ConnectionsOptions {
	/**
	 * Maximum connections of a client. A further one is closed, or replaces one without a request.
	 * Default 256.
	 */
	readonly maxConnectionsPerClient?: number;
	/** Default 10,000. */
	readonly maxConnections?: number;
	/**
	 * Number of proxies in front, see AddressOptions. If above 0, connections belong to proxies,
	 * which name the clients.
	 */
	readonly trustProxy?: number;
}

/** The options by the settings of a process. */
export function connectionsOf(settings: {
	readonly MAX_CONNECTIONS_PER_CLIENT: number;
	readonly TRUST_PROXY: number;
}) {
	return {
		maxConnectionsPerClient: settings.MAX_CONNECTIONS_PER_CLIENT,
		trustProxy: settings.TRUST_PROXY,
	};
}

const MAX_PER_CLIENT = 256;
const MAX_CONNECTIONS = 10_000;

/**
 * The connections of one server. A direct connection counts for its client. On a proxy's connection
 * each request and websocket in flight counts instead, for the client that the proxy names. A
 * connection becomes a proxy's as soon as a request on it is vouched for. From a web page's request
 * on it counts for the web pages at its address.
 */
export class Connections {
	readonly maxPerClient: number;
	readonly #endRequest: (exchange: Exchange) => void;
	readonly #max: number;
	readonly #behindProxy: boolean;
	/** Requests in flight, and websockets on connections of proxies. */
	readonly #inFlight: Shares;
	readonly #open = new Map<Duplex, OpenConnection>();
	/** The same by client, in the order of their last activity. */
	readonly #byClient = new MultiMap<OpenConnection, string | null>();

	/** `endRequest` releases the resources of a request whose connection has closed. */
	constructor(options: ConnectionsOptions, endRequest: (exchange: Exchange) => void) {
		this.#endRequest = endRequest;
		this.maxPerClient = options.maxConnectionsPerClient ?? MAX_PER_CLIENT;
		this.#max = options.maxConnections ?? MAX_CONNECTIONS;
		this.#behindProxy = (options.trustProxy ?? 0) > 0;
		this.#inFlight = new Shares({ total: Number.POSITIVE_INFINITY, perClient: this.maxPerClient });
	}

	/** The connection of `socket`; undefined if closed. */
	of(socket: Duplex): OpenConnection | undefined {
		return this.#open.get(socket);
	}

	all(): Iterable<OpenConnection> {
		return this.#open.values();
	}

	/**
	 * Adds a new connection, or closes it if its client is over its quota. Resumes reading on a
	 * known one.
	 */
	add(socket: Socket): void {
		const known = this.#open.get(socket);
		if (known !== undefined) {
			known.attach();
			return;
		}
		const address = normalAddress(socket.remoteAddress ?? "");
		const client = this.#behindProxy || address === undefined ? null : clientOf(address);
		const isOverLimit =
			client !== null && this.#count(client) >= this.maxPerClient && !this.#dropSilent(client);
		if (isOverLimit || (this.#open.size >= this.#max && !this.#makeRoom())) {
			socket.destroy();
			return;
		}
		const open = new OpenConnection(socket, client);
		this.#open.set(socket, open);
		this.#enter(open, client);
		socket.once("close", () => {
			this.#forget(open);
			open.takeWaiting();
			if (open.exchange !== null) this.#endRequest(open.exchange);
		});
		open.attach();
	}

	/**
	 * Counts a request or websocket on `open`. Returns whether its client has too many in flight,
	 * so that it must be refused. The returned function must be called at the end of the request,
	 * and may be called repeatedly.
	 */
	begin(
		open: OpenConnection,
		from: ClientAddress,
		isWebsocket = false,
	): readonly [isOverLimit: boolean, end: () => void] {
		open.hasAsked = true;
		open.isWebsocket = isWebsocket;
		if (from.vouched && open.client !== null) {
			this.#leave(open);
			this.#enter(open, null);
		}
		const client = clientOf(from.address);
		if (open.client !== null && open.client !== client && from.address !== UNKNOWN_ADDRESS) {
			this.#leave(open);
			this.#enter(open, client);
		}
		// A websocket on a direct connection is counted by its connection.
		const amount = isWebsocket && open.client !== null ? 0 : 1;
		const isOverLimit =
			this.#inFlight.exceeded(client, amount) !== null ||
			(open.client !== null && this.#count(open.client) > this.maxPerClient);
		const taken = isOverLimit ? 0 : amount;
		this.#inFlight.takeAnyway(client, taken);
		this.#touch(open);
		let ended = false;
		return [
			isOverLimit,
			() => {
				if (ended) return;
				ended = true;
				this.#inFlight.release(client, taken);
				this.#touch(open);
			},
		];
	}

	/** Closes a connection for a newcomer; false if all are in use by proxies. */
	#makeRoom(): boolean {
		let largest: string | null = null;
		for (const client of this.#byClient.keys()) {
			if (client !== null && (largest === null || this.#count(client) > this.#count(largest)))
				largest = client;
		}
		const candidates = [...this.#byClient.get(largest)];
		// A proxy's connection serves many clients, each within its quota, so it is only closed
		// while idle.
		const victim = candidates.find(({ isIdle }) => isIdle) ?? (largest === null ? undefined : candidates[0]);
		if (victim === undefined) return false;
		this.#forget(victim);
		victim.socket.destroy();
		return true;
	}

	/** Closes the oldest connection of `client` without a request so far. False if there is none. */
	#dropSilent(client: string): boolean {
		for (const open of this.#byClient.get(client)) {
			if (open.hasAsked) continue;
			this.#forget(open);
			open.socket.destroy();
			return true;
		}
		return false;
	}

	#count(client: string): number {
		return this.#byClient.get(client).size;
	}

	#touch(open: OpenConnection): void {
		const own = this.#byClient.get(open.client);
		if (own.size < 2 || !own.has(open)) return;
		this.#byClient.delete(open.client, open);
		this.#byClient.add(open.client, open);
	}

	#enter(open: OpenConnection, client: string | null): void {
		open.client = client;
		this.#byClient.add(client, open);
	}

	#leave(open: OpenConnection): void {
		this.#byClient.delete(open.client, open);
	}

	#forget(open: OpenConnection): void {
		this.#open.delete(open.socket);
		this.#leave(open);
	}
}
