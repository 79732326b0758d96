// Rate limits by client: one token bucket for each network address, whatever keys sign what it sends, for
// those cost nothing. Not rate-limiter-flexible, whose memory store reads the time itself, so that no test
// could move it.

import { LRUCache } from "lru-cache";
import type { Clock } from "../clock.ts";
import type { CallLimiter } from "../jsonrpc/dispatch.ts";
import { limitedAnswer, type RpcAnswer, type RpcCall } from "../jsonrpc/envelope.ts";
import { type CallContext, type Client, clientOf } from "./callContext.ts";

interface RateLimitOptions {
	/** Weight a second for each client; 0 for no limit. */
	readonly rps: number;
	/** Clients that are remembered at most; the one not seen for longest is forgotten, and starts afresh. */
	readonly maxClients?: number;
}

interface RateLimitDependencies {
	readonly clock: Clock;
	/**
	 * Names what a call polls where that poll is free once a second, else undefined: a receipt of a transaction of
	 * one's own. `params` are unchecked.
	 */
	readonly freePoll?: (method: string, params: readonly unknown[]) => string | undefined;
}

/** How many seconds' worth a client may save up. */
const BURST_SECONDS = 10;
/** Each of these of a body weighs one more. */
const BYTES_OF_WEIGHT = 16 * 1024;
const FREE_POLL_MS = 1_000;
const MAX_CLIENTS = 50_000;
/** More than anybody can send. */
const NO_LIMIT = 1e12;

interface Bucket {
	tokens: number;
	/** When `tokens` was right, in ms of the monotonic reading. */
	at: number;
}

/** Who is limited: see Client. */
type Limited = Pick<Client, "address">;

/** The token buckets of all clients. */
export class RateLimiter implements CallLimiter<CallContext> {
	readonly #rps: number;
	readonly #clock: Clock;
	readonly #freePoll: (method: string, params: readonly unknown[]) => string | undefined;
	readonly #buckets: LRUCache<string, Bucket>;
	/** When something was last polled for free, by client and what it was. */
	readonly #polls: LRUCache<string, number>;

	constructor(options: RateLimitOptions, dependencies: RateLimitDependencies) {
		this.#rps = options.rps === 0 ? NO_LIMIT : options.rps;
		this.#clock = dependencies.clock;
		this.#freePoll = dependencies.freePoll ?? (() => undefined);
		const max = options.maxClients ?? MAX_CLIENTS;
		this.#buckets = new LRUCache({ max });
		this.#polls = new LRUCache({ max });
	}

	/** For the dispatcher: a call of a client, polls that are free left out. */
	take(context: CallContext, call: RpcCall | null, weight: number): number {
		if (call !== null && this.#isFree(context.client, call)) return 0;
		return this.takeFrom(context.client, weight);
	}

	/** Takes `weight` from `client`'s bucket: 0 when that was possible, else nothing is taken; ms until it would be. */
	takeFrom(client: Limited, weight: number): number {
		const bucket = this.#bucket(client);
		const wait = this.#wait(bucket, weight);
		if (wait === 0) bucket.tokens -= weight;
		return wait;
	}

	/**
	 * Takes what a body of `bytes` weighs beyond its calls, before it is looked at. Null when that was possible, else the
	 * answer, with the id null.
	 */
	takeBody(client: Limited, bytes: number): RpcAnswer | null {
		const weight = Math.floor(bytes / BYTES_OF_WEIGHT);
		const wait = weight === 0 ? 0 : this.takeFrom(client, weight);
		return wait === 0 ? null : limitedAnswer(wait);
	}

	/** What {@link takeBody} would answer now; takes nothing. For one that is not read yet, and need not be. */
	judgeBody(client: Limited, bytes: number): RpcAnswer | null {
		const wait = this.#wait(this.#bucket(client), Math.floor(bytes / BYTES_OF_WEIGHT));
		return wait === 0 ? null : limitedAnswer(wait);
	}

	/** Takes `weight` more after the fact, for a call that turned out dear; the bucket may go below zero. */
	charge(client: Limited, weight: number): void {
		const bucket = this.#bucket(client);
		bucket.tokens = Math.max(bucket.tokens - weight, -this.#rps * BURST_SECONDS);
	}

	#isFree(client: Client, call: RpcCall): boolean {
		const polled = call.params === null ? undefined : this.#freePoll(call.method, call.params);
		if (polled === undefined) return false;
		const key = `${clientOf(client.address)} ${polled}`;
		const now = this.#clock.monotonic();
		const last = this.#polls.get(key);
		if (last !== undefined && now - last < FREE_POLL_MS) return false;
		this.#polls.set(key, now);
		return true;
	}

	/** The bucket of a client, filled up to now. */
	#bucket({ address }: Limited): Bucket {
		const client = clientOf(address);
		const now = this.#clock.monotonic();
		const full = this.#rps * BURST_SECONDS;
		let bucket = this.#buckets.get(client);
		if (bucket === undefined) {
			bucket = { tokens: full, at: now };
			this.#buckets.set(client, bucket);
		}
		bucket.tokens = Math.min(full, bucket.tokens + ((now - bucket.at) / 1000) * this.#rps);
		bucket.at = now;
		return bucket;
	}

	/** Ms until `weight` is there; what weighs more than a full bucket may go when it is full. */
	#wait(bucket: Bucket, weight: number): number {
		const missing = Math.min(weight, this.#rps * BURST_SECONDS) - bucket.tokens;
		return missing > 0 ? Math.ceil((missing / this.#rps) * 1000) : 0;
	}
}
