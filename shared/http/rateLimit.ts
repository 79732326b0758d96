// Rate limits: one token bucket for each client address. The key that signs the requests has no
// effect, since keys cost nothing. The package rate-limiter-flexible is not used, because its
// memory store reads the real time, which tests could not control.

import type { LRUCache } from "lru-cache";
import { type Client, clientOf } from "../client.ts";
import type { Clock } from "../clock.ts";
import { rateLimited, refusedAnswer, type WrittenAnswer } from "../jsonrpc/answers.ts";
import type { CallLimiter } from "../jsonrpc/dispatch.ts";
import type { ReceivedCall } from "../jsonrpc/envelope.ts";
import { recentlyUsed } from "../recentlyUsed.ts";
import type { CallContext, RequestLife } from "./callContext.ts";

interface RateLimitOptions {
	/** Cost per second for each client. 0: no limit. */
	readonly rps: number;
	/** Maximum clients remembered; the one unseen for longest is forgotten. */
	readonly maxClients?: number;
}

interface RateLimitDependencies {
	readonly clock: Clock;
	/**
	 * Names the subject of a poll that is free once a second, such as the receipt of a private
	 * transaction. Undefined for any other call. `params` are unchecked.
	 */
	readonly freePoll?: (method: string, params: readonly unknown[]) => string | undefined;
}

/** A full bucket holds the cost of this many seconds. */
const BURST_SECONDS = 10;
/** A body costs at least one for each of these. */
const BYTES_OF_WEIGHT = 16 * 1024;
const FREE_POLL_MS = 1_000;
const MAX_CLIENTS = 50_000;
const NO_LIMIT = 1e12;
/** Precedes the address whose bucket for waived requests is meant. */
const WAIVED = "waived ";

/** The cost of a request that is no call. `isWaived`: it is answered over the limit, too. */
export interface RequestCost {
	readonly weight: number;
	readonly isWaived: boolean;
}

interface Bucket {
	tokens: number;
	/** Monotonic time of `tokens`, in ms. */
	at: number;
}

type Limited = Pick<Client, "address">;

export class RateLimiter implements CallLimiter<CallContext> {
	readonly #rps: number;
	readonly #clock: Clock;
	readonly #freePoll: (method: string, params: readonly unknown[]) => string | undefined;
	readonly #buckets: LRUCache<string, Bucket>;
	/** Time of the last free poll, by client and subject. */
	readonly #polls: LRUCache<string, number>;
	/** The part of the cost of a request's body that its calls have not used yet. */
	readonly #paid = new WeakMap<RequestLife, number>();

	constructor(options: RateLimitOptions, dependencies: RateLimitDependencies) {
		this.#rps = options.rps === 0 ? NO_LIMIT : options.rps;
		this.#clock = dependencies.clock;
		this.#freePoll = dependencies.freePoll ?? (() => undefined);
		const max = options.maxClients ?? MAX_CLIENTS;
		this.#buckets = recentlyUsed(max);
		this.#polls = recentlyUsed(max);
	}

	/**
	 * For the dispatcher. Free polls cost nothing, and the cost of the body's size counts towards
	 * its calls.
	 */
	take({ client, life }: CallContext, call: ReceivedCall | null, weight: number): number {
		if (call !== null && this.#isFree(client, call)) return 0;
		const paid = life.bytes < BYTES_OF_WEIGHT ? 0 : (this.#paid.get(life) ?? 0);
		if (paid === 0) return this.takeFrom(client, weight);
		const wait = paid >= weight ? 0 : this.takeFrom(client, weight - paid);
		if (wait === 0) this.#paid.set(life, Math.max(0, paid - weight));
		return wait;
	}

	/**
	 * Charges `weight` and returns 0, or charges nothing and returns the ms until it may be
	 * charged.
	 */
	takeFrom(client: Limited, weight: number): number {
		const bucket = this.#bucket(client);
		const wait = this.#wait(bucket, weight);
		if (wait === 0) bucket.tokens -= weight;
		return wait;
	}

	/**
	 * Charges a request. Returns the ms until its client may make it; 0: it is served. Null is
	 * charged elsewhere. A waived one uses a bucket of its own first, so that probes leave a client
	 * its calls.
	 */
	takeRequest(client: Limited, cost: RequestCost | null): number {
		if (cost === null) return 0;
		const { weight, isWaived } = cost;
		if (!isWaived) return this.takeFrom(client, weight);
		if (this.takeFrom({ address: WAIVED + client.address }, weight) > 0) this.charge(client, weight);
		return 0;
	}

	/**
	 * Charges the cost of a body's size, which its calls then use first. Returns null, or the
	 * refusal with the ids of the calls.
	 */
	takeBody(client: Limited, body: Buffer, life: RequestLife): WrittenAnswer | null {
		const weight = weightOf(body.length);
		if (weight === 0) return null;
		const wait = this.takeFrom(client, weight);
		if (wait > 0) return refusedAnswer(body, rateLimited(wait), wait);
		this.#paid.set(life, weight);
		return null;
	}

	/**
	 * How long {@link takeBody} would make a body of this many bytes wait, in ms. For one that is
	 * not read yet.
	 */
	peekBody(client: Limited, bytes: number): number {
		return this.#wait(this.#bucket(client), weightOf(bytes));
	}

	/** Charges more for a call that turned out to be expensive. The bucket may go below zero. */
	charge(client: Limited, weight: number): void {
		const bucket = this.#bucket(client);
		bucket.tokens = Math.max(bucket.tokens - weight, -this.#rps * BURST_SECONDS);
	}

	#isFree(client: Client, call: ReceivedCall): boolean {
		const polled = call.params === null ? undefined : this.#freePoll(call.method, call.params);
		if (polled === undefined) return false;
		const key = `${clientOf(client.address)} ${polled}`;
		const now = this.#clock.monotonic();
		const last = this.#polls.get(key);
		if (last !== undefined && now - last < FREE_POLL_MS) return false;
		this.#polls.set(key, now);
		return true;
	}

	/** The client's bucket, refilled up to now. */
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

	/** Ms until `weight` may be charged. More than a full bucket may be charged when it is full. */
	#wait(bucket: Bucket, weight: number): number {
		const missing = Math.min(weight, this.#rps * BURST_SECONDS) - bucket.tokens;
		return missing > 0 ? Math.ceil((missing / this.#rps) * 1000) : 0;
	}
}

/** The cost of a body by its size. */
function weightOf(bytes: number): number {
	return Math.floor(bytes / BYTES_OF_WEIGHT);
}
