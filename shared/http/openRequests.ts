// Requests under way, as a whole and by connection. Node tells the end of an answer only once its turn came on the
// connection, so those that wait behind another one end here with the connection.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { ClientLife } from "./callContext.ts";
import type { ClientAddress } from "./clientIdentity.ts";
import type { Piece } from "./eventLoopTurns.ts";
import type { RequestTarget } from "./routes.ts";

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
