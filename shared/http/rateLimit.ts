// Rate limits by client: what comes in is who calls and what the call weighs, what goes out is whether it may go on
// or how long it would have to wait. One token bucket a client; it knows no HTTP and answers nobody.
//
// Not rate-limiter-flexible: its memory store keeps a timer for each client and reads the time itself, so that no
// test could move it; a bucket needs neither.

import { LRUCache } from "lru-cache";
import type { Clock } from "../clock.ts";
import type { CallLimiter } from "../jsonrpc/dispatch.ts";
import type { RpcCall } from "../jsonrpc/envelope.ts";
import type { CallContext, Client } from "./callContext.ts";
import { networkOf } from "./clientIdentity.ts";

export interface RateLimitOptions {
	/** Weight a second for each client; 0 for no limit. */
	readonly rps: number;
	/** Clients that are remembered at most; the one not seen for longest is forgotten, and starts afresh. */
	readonly maxClients?: number;
}

export interface RateLimitDependencies {
	readonly clock: Clock;
	/**
	 * Names what a call polls where that poll is free once a second, else undefined: a receipt of a transaction of
	 * one's own. `params` are unchecked.
	 */
	readonly freePoll?: (method: string, params: readonly unknown[]) => string | undefined;
}

/** How many seconds' worth a client may save up. */
const BURST_SECONDS = 10;
/** How many times one client's allowance all signers behind one network address have together: keys cost nothing. */
const SIGNERS_SHARE = 10;
const FREE_POLL_MS = 1_000;
const MAX_CLIENTS = 50_000;

interface Bucket {
	tokens: number;
	/** When `tokens` was right, in ms of the monotonic reading. */
	at: number;
}

/** Who is limited: see Client. */
export type Limited = Pick<Client, "address" | "signer">;

/** The token buckets of all clients. A signer has one of its own beside that of its address. */
export class RateLimiter implements CallLimiter<CallContext> {
	readonly #rps: number;
	readonly #clock: Clock;
	readonly #freePoll: (method: string, params: readonly unknown[]) => string | undefined;
	readonly #buckets: LRUCache<string, Bucket>;
	/** When something was last polled for free, by client and what it was. */
	readonly #polls: LRUCache<string, number>;

	constructor(options: RateLimitOptions, dependencies: RateLimitDependencies) {
		this.#rps = options.rps;
		this.#clock = dependencies.clock;
		this.#freePoll = dependencies.freePoll ?? (() => undefined);
		const max = options.maxClients ?? MAX_CLIENTS;
		this.#buckets = new LRUCache({ max });
		this.#polls = new LRUCache({ max });
	}

	/** For the dispatcher: a call of a client, polls that are free left out. */
	take(context: CallContext, call: RpcCall | null, weight: number): number {
		if (this.#rps === 0) return 0;
		if (call !== null && this.#isFree(context.client, call)) return 0;
		return this.takeFrom(context.client, weight);
	}

	/** Takes `weight` from `client`'s bucket: 0 when that was possible, else nothing is taken; ms until it would be. */
	takeFrom(client: Limited, weight: number): number {
		if (this.#rps === 0) return 0;
		const network = networkOf(client.address);
		if (client.signer === null) {
			const bucket = this.#bucket(network, 1);
			const wait = this.#wait(bucket, 1, weight);
			if (wait === 0) bucket.tokens -= weight;
			return wait;
		}
		const own = this.#bucket(client.signer, 1);
		const all = this.#bucket(`signers ${network}`, SIGNERS_SHARE);
		const wait = Math.max(this.#wait(own, 1, weight), this.#wait(all, SIGNERS_SHARE, weight));
		if (wait === 0) {
			own.tokens -= weight;
			all.tokens -= weight;
		}
		return wait;
	}

	/** Takes `weight` more after the fact, for a call that turned out dear; the bucket may go below zero. */
	charge(client: Limited, weight: number): void {
		if (this.#rps === 0) return;
		const bucket = this.#bucket(client.signer ?? networkOf(client.address), 1);
		bucket.tokens = Math.max(bucket.tokens - weight, -this.#rps * BURST_SECONDS);
	}

	#isFree(client: Client, call: RpcCall): boolean {
		const polled = call.params === null ? undefined : this.#freePoll(call.method, call.params);
		if (polled === undefined) return false;
		const key = `${client.signer ?? networkOf(client.address)} ${polled}`;
		const now = this.#clock.monotonic();
		const last = this.#polls.get(key);
		if (last !== undefined && now - last < FREE_POLL_MS) return false;
		this.#polls.set(key, now);
		return true;
	}

	/** The bucket of `key`, filled up to now; `share` times the usual size. */
	#bucket(key: string, share: number): Bucket {
		const now = this.#clock.monotonic();
		const rate = this.#rps * share;
		const bucket = this.#buckets.get(key);
		if (bucket === undefined) {
			const fresh: Bucket = { tokens: rate * BURST_SECONDS, at: now };
			this.#buckets.set(key, fresh);
			return fresh;
		}
		bucket.tokens = Math.min(rate * BURST_SECONDS, bucket.tokens + ((now - bucket.at) / 1000) * rate);
		bucket.at = now;
		return bucket;
	}

	/** Ms until `weight` is there; what weighs more than a full bucket may go when it is full. */
	#wait(bucket: Bucket, share: number, weight: number): number {
		const rate = this.#rps * share;
		const missing = Math.min(weight, rate * BURST_SECONDS) - bucket.tokens;
		return missing > 0 ? Math.ceil((missing / rate) * 1000) : 0;
	}
}
