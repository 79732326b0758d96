// Who may have a connection, and what is under way on each. Every client has a share, and where the server is full the longest
// idle connection of the client with the most makes room for a newcomer: node's own limit drops newcomers.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Piece } from "../shares/scheduler.ts";
import { Shares } from "../shares/shares.ts";
import {
	type ClientAddress,
	type ClientLife,
	clientOf,
	normalAddress,
	type RequestTarget,
} from "./callContext.ts";
import type { OpenAnswer } from "./unreadBytes.ts";

export interface ConnectionsOptions {
	/** Connections of one client at most; a further one is closed. 256 unless said. */
	readonly maxConnectionsPerClient?: number;
	/** Connections in all. 10,000 unless said. */
	readonly maxConnections?: number;
	/** How many proxies stand in front, see AddressOptions: connections are then theirs, and they name the clients. */
	readonly trustProxy?: number;
}

/** What the settings of a process say of them. */
export function connectionsOf(settings: {
	readonly MAX_CONNECTIONS_PER_CLIENT: number;
	readonly TRUST_PROXY: number;
}) {
	return {
		maxConnectionsPerClient: settings.MAX_CONNECTIONS_PER_CLIENT,
		trustProxy: settings.TRUST_PROXY,
	};
}

/** A request or websocket that has begun. */
interface UnderWay {
	/** Its client has its share: it is to be refused. */
	readonly isOver: boolean;
	/** Must be called at its end; may be called again. */
	readonly end: () => void;
}

/** One connection. */
export interface OpenConnection {
	readonly socket: Duplex;
	/** Whose it is; null where it is a proxy's. */
	client: string | null;
	/** Requests, answers that go on and websockets on it. */
	underWay: number;
	/**
	 * Requests that are not answered, in the order in which they came. A list, and not a set: the tables that a set leaves
	 * behind point to their successors, so that one which grew old keeps all that came later alive until the whole heap is
	 * collected.
	 */
	readonly requests: Exchange[];
	/** The answer that goes on. */
	stream: OpenAnswer | null;
}

/** A request and its response, with what it holds. */
export interface Exchange {
	readonly request: IncomingMessage;
	readonly response: ServerResponse;
	readonly target: RequestTarget;
	/** Who sent it. */
	readonly from: ClientAddress;
	readonly connection: OpenConnection;
	/** Ends its part of its client's share of the connections. */
	leave: () => void;
	/** True where the client sends its body only after a 100 Continue. */
	readonly awaitsContinue: boolean;
	/** Bytes of the body that are held for it. */
	bytes: number;
	/** Of a POST whose body was read, and of what is passed on. */
	life: ClientLife | null;
	/** What waits for a turn of the event loop: its handling, then its answer. */
	piece: Piece | null;
	/** It is under way no more. May be called again. */
	readonly end: () => void;
}

const MAX_PER_CLIENT = 256;
const MAX_CONNECTIONS = 10_000;
/** Requests of one connection that may be under way: those in a row behind the first one. */
const MAX_PIPELINED = 128;

/**
 * The connections of one server. One from a client's own address counts as that client's. On a proxy's (which it becomes
 * once somebody vouches for a client on it) each request and websocket under way counts, for the client that it names.
 */
export class Connections {
	/** Of each client at most. */
	readonly maxPerClient: number;
	readonly #max: number;
	readonly #behindProxy: boolean;
	/** Requests under way, and websockets on connections of proxies. */
	readonly #underWay: Shares;
	readonly #open = new Map<Duplex, OpenConnection>();
	/** The same by client, in the order of their last sign of life. */
	readonly #byClient = new Map<string | null, Set<OpenConnection>>();

	constructor(options: ConnectionsOptions) {
		this.maxPerClient = options.maxConnectionsPerClient ?? MAX_PER_CLIENT;
		this.#max = options.maxConnections ?? MAX_CONNECTIONS;
		this.#behindProxy = (options.trustProxy ?? 0) > 0;
		this.#underWay = new Shares({ total: Number.POSITIVE_INFINITY, perClient: this.maxPerClient });
	}

	/** The one of `socket`; undefined where it is closed. */
	of(socket: Duplex): OpenConnection | undefined {
		return this.#open.get(socket);
	}

	all(): Iterable<OpenConnection> {
		return this.#open.values();
	}

	/** Takes a new one, or closes it where its client has its share. One that is known stays as it is. */
	add(socket: Socket): void {
		if (this.#open.has(socket)) return;
		const address = normalAddress(socket.remoteAddress ?? "");
		const client = this.#behindProxy || address === undefined ? null : clientOf(address);
		const isOver = client !== null && this.#count(client) >= this.maxPerClient;
		if (isOver || (this.#open.size >= this.#max && !this.#makeRoom())) {
			socket.destroy();
			return;
		}
		const open: OpenConnection = { socket, client, underWay: 0, requests: [], stream: null };
		this.#open.set(socket, open);
		this.#enter(open, client);
		socket.once("close", () => {
			this.#forget(open);
			for (const { end } of [...open.requests]) end();
		});
	}

	/** Whether a request that came whole on `socket` is not answered yet, or an answer is being written to it. */
	isBusy(socket: Duplex): boolean {
		const open = this.of(socket);
		const isWhole = ({ request, response }: Exchange) => request.complete || response.headersSent;
		return open !== undefined && (open.stream !== null || open.requests.some(isWhole));
	}

	/**
	 * A request on `open` is under way, or a websocket from now on. A connection with too many in a row is closed, and so
	 * is one of the client's own with more than one where the client has its share.
	 */
	begin(open: OpenConnection, from: ClientAddress, isWebsocket = false): UnderWay {
		if (from.vouched && open.client !== null) {
			this.#leave(open);
			this.#enter(open, null);
		}
		const client = clientOf(from.address);
		// One on a connection of the client's own is counted by that.
		const amount = isWebsocket && open.client !== null ? 0 : 1;
		const isOver = this.#underWay.refusal(client, amount) !== null;
		if (open.underWay >= MAX_PIPELINED || (isOver && open.client !== null && open.underWay > 0)) {
			stopReading(open.socket);
		}
		const taken = isOver ? 0 : amount;
		this.#underWay.force(client, taken);
		open.underWay += 1;
		this.#touch(open);
		let ended = false;
		const end = () => {
			if (ended) return;
			ended = true;
			open.underWay -= 1;
			this.#underWay.give(client, taken);
			this.#touch(open);
		};
		return { isOver, end };
	}

	/** Closes one for a newcomer; false where all are in use by proxies. */
	#makeRoom(): boolean {
		let largest: string | null = null;
		for (const client of this.#byClient.keys()) {
			if (client !== null && (largest === null || this.#count(client) > this.#count(largest)))
				largest = client;
		}
		const candidates = [...(this.#byClient.get(largest) ?? [])];
		// Requests of proxies are of many clients, each within its share: no proxy loses a connection that is in use.
		const victim =
			candidates.find(({ underWay }) => underWay === 0) ?? (largest === null ? undefined : candidates[0]);
		if (victim === undefined) return false;
		this.#forget(victim);
		victim.socket.destroy();
		return true;
	}

	#count(client: string): number {
		return this.#byClient.get(client)?.size ?? 0;
	}

	#touch(open: OpenConnection): void {
		const own = this.#byClient.get(open.client);
		if (own !== undefined && own.size > 1 && own.delete(open)) own.add(open);
	}

	#enter(open: OpenConnection, client: string | null): void {
		open.client = client;
		const own = this.#byClient.get(client);
		if (own === undefined) this.#byClient.set(client, new Set([open]));
		else own.add(open);
	}

	#leave(open: OpenConnection): void {
		const own = this.#byClient.get(open.client);
		if (own?.delete(open) && own.size === 0) this.#byClient.delete(open.client);
	}

	#forget(open: OpenConnection): void {
		this.#open.delete(open.socket);
		this.#leave(open);
	}
}

/**
 * Closes it, and has node's parser stop at the next request: one read may bring thousands in a row, each of which would
 * be made and handed on otherwise, even on a closed connection. The parser is internal to node: by a 2 it takes what
 * follows for an upgrade's, not for HTTP. Should that change, the socket is still closed.
 */
function stopReading(socket: Duplex): void {
	const { parser } = socket as Duplex & { parser?: { onIncoming?: () => number } | null };
	if (parser?.onIncoming !== undefined) parser.onIncoming = () => 2;
	socket.destroy();
}
