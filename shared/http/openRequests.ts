// Requests under way, as a whole and by connection: one comes in when its head was read, and goes when its answer was
// sent or its connection is gone. Node tells the end of an answer only once its turn came on the connection, so those
// that wait behind another one end here with the connection.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** A request and its answer. */
export interface OpenRequest {
	readonly request: IncomingMessage;
	readonly response: ServerResponse;
}

const NONE: ReadonlySet<never> = new Set();

/** Those of one server. */
export class OpenRequests<R extends OpenRequest> {
	readonly #onEnd: (request: R) => void;
	readonly #open = new Set<R>();
	readonly #byConnection = new WeakMap<Duplex, Set<R>>();

	/** `onEnd` is called once for each. */
	constructor(dependencies: { readonly onEnd: (request: R) => void }) {
		this.#onEnd = dependencies.onEnd;
	}

	get size(): number {
		return this.#open.size;
	}

	/** Those of one connection, in the order in which they came. */
	of(connection: Duplex): ReadonlySet<R> {
		return this.#byConnection.get(connection) ?? NONE;
	}

	add(one: R): void {
		const { socket } = one.request;
		this.#open.add(one);
		one.response.on("close", () => this.end(one));
		const others = this.#byConnection.get(socket);
		if (others !== undefined) {
			others.add(one);
			return;
		}
		const own = new Set([one]);
		this.#byConnection.set(socket, own);
		socket.once("close", () => {
			for (const left of [...own]) this.end(left);
		});
	}

	/** It is under way no more. May be called again. */
	end(one: R): void {
		this.#byConnection.get(one.request.socket)?.delete(one);
		if (this.#open.delete(one)) this.#onEnd(one);
	}
}
