// Remembers which client sent a signed bundle request first. The signature of a body covers neither
// time nor place, so anybody who has seen the request could repeat it. That could be an old bid, or
// a cancel with a uuid that is in use again. In memory only.

import { clientOf } from "../../shared/client.ts";
import type { CallContext } from "../../shared/http/callContext.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { Tip } from "../domain/chain.ts";

export interface SignedDigestsOptions {
	/** Maximum number of remembered requests, in total and per client. */
	readonly total: number;
	readonly perClient: number;
}

export const DIGEST_LIMITS: SignedDigestsOptions = { total: 200_000, perClient: 20_000 };

/** For this many blocks after a client's last use, others may not repeat its request. */
const KEPT_BLOCKS = 7_200;

/**
 * Remembers requests. If a client has too many, its oldest is forgotten. If there are too many in
 * total, the oldest of the client with the most is forgotten.
 */
export class SignedDigests {
	readonly #options: SignedDigestsOptions;
	readonly #tip: Pick<Tip, "head">;
	/** By signer and digest. */
	readonly #clients = new Map<string, string>();
	/** For each client, the block of the last use of each request, the oldest first. */
	readonly #uses = new Map<string, Map<string, number>>();

	constructor(options: SignedDigestsOptions, { tip }: { readonly tip: Pick<Tip, "head"> }) {
		this.#options = options;
		this.#tip = tip;
	}

	/**
	 * Records that the client uses the request. Throws RpcError `invalidRequest` if another client
	 * has sent the same signed body.
	 */
	check({ transport, client }: Pick<CallContext, "transport" | "client">): void {
		const { signer, digest } = client;
		if (transport !== "http" || signer === null || digest === undefined) return;
		const key = `${signer}${digest}`;
		const from = clientOf(client.address);
		const now = this.#tip.head()?.number ?? 0;
		const first = this.#clients.get(key);
		if (first !== undefined) {
			const usedAt = this.#uses.get(first)?.get(key) ?? 0;
			if (first !== from && now < usedAt + KEPT_BLOCKS) throw REPEATED;
			this.#forget(first, key);
		}
		const own = this.#uses.get(from) ?? new Map<string, number>();
		if (own.size >= this.#options.perClient) this.#forgetOldestOf(from);
		else if (this.#clients.size >= this.#options.total) this.#forgetOldestOf(this.#largest());
		this.#uses.set(from, own.set(key, now));
		this.#clients.set(key, from);
	}

	#largest(): string {
		let largest = "";
		let most = 0;
		for (const [client, { size }] of this.#uses) if (size > most) [largest, most] = [client, size];
		return largest;
	}

	#forgetOldestOf(client: string): void {
		const [oldest] = this.#uses.get(client)?.keys() ?? [];
		if (oldest !== undefined) this.#forget(client, oldest);
	}

	#forget(client: string, key: string): void {
		const own = this.#uses.get(client);
		own?.delete(key);
		if (own?.size === 0) this.#uses.delete(client);
		this.#clients.delete(key);
	}
}

const REPEATED = new RpcError(
	"invalidRequest",
	"this signed request was already sent from another address: change its id",
);
