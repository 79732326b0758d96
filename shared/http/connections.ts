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

export interface ConnectionsOptions {
	/** Connections of one client at most; a further one is closed. 256 unless said. */
	readonly maxConnectionsPerClient?: number;
	/** Connections in all. 10,000 unless said. */
	readonly maxConnections?: number;
	/** Whether connections are those of proxies in front, which name the clients. */
	readonly behindProxy?: boolean;
}

/** What the settings of a process say of them. */
export function connectionsOf(settings: {
	readonly MAX_CONNECTIONS_PER_CLIENT: number;
	readonly TRUST_PROXY: number;
}): ConnectionsOptions {
	return {
		maxConnectionsPerClient: settings.MAX_CONNECTIONS_PER_CLIENT,
		behindProxy: settings.TRUST_PROXY > 0,
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
interface Open {
	readonly socket: Duplex;
	/** Whose it is; null where it is a proxy's. */
	client: string | null;
	/** Requests on it that are under way; a websocket is one. */
	underWay: number;
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
	/** Those that are the clients' own. */
	readonly #own: Shares;
	/** Requests under way, and websockets on connections of proxies. */
	readonly #underWay: Shares;
	readonly #open = new Map<Duplex, Open>();
	/** The same by client, in the order of their last sign of life. */
	readonly #byClient = new Map<string | null, Set<Open>>();

	constructor(options: ConnectionsOptions) {
		this.maxPerClient = options.maxConnectionsPerClient ?? MAX_PER_CLIENT;
		this.#max = options.maxConnections ?? MAX_CONNECTIONS;
		this.#behindProxy = options.behindProxy ?? false;
		const shares = { total: Number.POSITIVE_INFINITY, perClient: this.maxPerClient };
		this.#own = new Shares(shares);
		this.#underWay = new Shares(shares);
	}

	/** How many there are. */
	get size(): number {
		return this.#open.size;
	}

	/** Takes a new one, or closes it where its client has its share. One that is known stays as it is. */
	add(socket: Socket): void {
		if (this.#open.has(socket)) return;
		const address = normalAddress(socket.remoteAddress ?? "");
		const client = this.#behindProxy || address === undefined ? null : clientOf(address);
		const isOver = client !== null && this.#own.refusal(client, 1) !== null;
		if (isOver || (this.#open.size >= this.#max && !this.#makeRoom())) {
			socket.destroy();
			return;
		}
		const open: Open = { socket, client, underWay: 0 };
		this.#open.set(socket, open);
		this.#enter(open, client);
		socket.once("close", () => this.#forget(open));
	}

	/**
	 * A request on `socket` is under way, or a websocket from now on. A connection with too many in a row is closed, and so
	 * is one of the client's own with more than one where the client has its share.
	 */
	begin(socket: Duplex, from: ClientAddress, isWebsocket = false): UnderWay {
		const open = this.#open.get(socket);
		if (open === undefined) return { isOver: false, end: () => {} };
		if (from.vouched && open.client !== null) {
			this.#leave(open);
			this.#enter(open, null);
		}
		const client = clientOf(from.address);
		// One on a connection of the client's own is counted by that.
		const amount = isWebsocket && open.client !== null ? 0 : 1;
		const isOver = this.#underWay.refusal(client, amount) !== null;
		if (open.underWay >= MAX_PIPELINED || (isOver && open.client !== null && open.underWay > 0)) {
			stopReading(socket);
		}
		const taken = isOver ? 0 : amount;
		this.#underWay.force(client, taken);
		open.underWay += 1;
		this.#touch(open);
		return { isOver, end: this.#endOf(open, client, taken) };
	}

	#endOf(open: Open, client: string, taken: number): () => void {
		let ended = false;
		return () => {
			if (ended) return;
			ended = true;
			open.underWay -= 1;
			this.#underWay.give(client, taken);
			this.#touch(open);
		};
	}

	/** Closes one for a newcomer; false where all are in use by proxies. */
	#makeRoom(): boolean {
		const largest = this.#own.largest();
		const candidates = [...(this.#byClient.get(largest) ?? [])];
		const isIdle = ({ underWay }: Open) => underWay === 0;
		// Requests of proxies are of many clients, each within its share: no proxy loses a connection that is in use.
		const victim = candidates.find(isIdle) ?? (largest === null ? undefined : candidates[0]);
		if (victim === undefined) return false;
		this.#forget(victim);
		victim.socket.destroy();
		return true;
	}

	#touch(open: Open): void {
		const own = this.#byClient.get(open.client);
		if (own !== undefined && own.size > 1 && own.delete(open)) own.add(open);
	}

	#enter(open: Open, client: string | null): void {
		open.client = client;
		if (client !== null) this.#own.force(client, 1);
		const own = this.#byClient.get(client);
		if (own === undefined) this.#byClient.set(client, new Set([open]));
		else own.add(open);
	}

	#leave(open: Open): void {
		const { client } = open;
		const own = this.#byClient.get(client);
		if (!own?.delete(open)) return;
		if (client !== null) this.#own.give(client, 1);
		if (own.size === 0) this.#byClient.delete(client);
	}

	#forget(open: Open): void {
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

/** A request and its response, with what it holds. */
export interface Exchange {
	readonly request: IncomingMessage;
	readonly response: ServerResponse;
	readonly target: RequestTarget;
	/** Who sent it. */
	readonly from: ClientAddress;
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
}

const NONE: readonly never[] = [];

/** Those of one server. */
export class OpenRequests {
	readonly #onEnd: (exchange: Exchange) => void;
	/**
	 * Lists, and not sets: the tables that a set leaves behind point to their successors, so that one which grew old keeps all
	 * that came later alive until the whole heap is collected.
	 */
	readonly #byConnection = new WeakMap<Duplex, Exchange[]>();
	#size = 0;

	/** `onEnd` is called once for each. */
	constructor(onEnd: (exchange: Exchange) => void) {
		this.#onEnd = onEnd;
	}

	get size(): number {
		return this.#size;
	}

	/** Those of one connection, in the order in which they came. */
	of(connection: Duplex): readonly Exchange[] {
		return this.#byConnection.get(connection) ?? NONE;
	}

	add(one: Exchange): void {
		const { socket } = one.request;
		this.#size += 1;
		one.response.on("close", () => this.end(one));
		const others = this.#byConnection.get(socket);
		if (others !== undefined) {
			others.push(one);
			return;
		}
		const own = [one];
		this.#byConnection.set(socket, own);
		socket.once("close", () => {
			for (const left of [...own]) this.end(left);
		});
	}

	/** It is under way no more. May be called again. */
	end(one: Exchange): void {
		const own = this.#byConnection.get(one.request.socket);
		const at = own?.indexOf(one) ?? -1;
		if (at === -1) return;
		own?.splice(at, 1);
		this.#size -= 1;
		this.#onEnd(one);
	}
}
