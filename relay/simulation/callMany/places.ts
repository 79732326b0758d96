// How many requests may be under way: clients come and go, one too many is refused. It queues nobody.

import { RpcError } from "../../../shared/jsonrpc/errors.ts";

/** The places of all clients together, and of each. */
export class Places {
	readonly #most: number;
	readonly #mostPerClient: number;
	readonly #taken = new Map<string, number>();
	#all = 0;

	constructor(most: number, mostPerClient: number) {
		this.#most = most;
		this.#mostPerClient = mostPerClient;
	}

	/** Throws an RpcError of the kind `limit` where there is none. */
	take(client: string): void {
		const own = this.#taken.get(client) ?? 0;
		if (own >= this.#mostPerClient) {
			throw new RpcError("limit", `limit exceeded: ${this.#mostPerClient} simulations of one client at once`);
		}
		if (this.#all >= this.#most) throw new RpcError("limit", "limit exceeded: too many simulations at once");
		this.#taken.set(client, own + 1);
		this.#all += 1;
	}

	leave(client: string): void {
		const own = (this.#taken.get(client) ?? 1) - 1;
		if (own === 0) this.#taken.delete(client);
		else this.#taken.set(client, own);
		this.#all -= 1;
	}
}
