// Calls that wait for a receipt (eth_sendRawTransactionSync): the parameter, the errors, who may wait, for how long, and what
// ends a wait. How the receipt is found is plugged in, since relay and boost find it differently and must wait alike.
// https://eips.ethereum.org/EIPS/eip-7966

import { z } from "zod";
import type { Clock } from "../clock.ts";
import { parseQuantity } from "../ethereum/hex.ts";
import { RpcError } from "../jsonrpc/errors.ts";
import { Shares } from "../shares/shares.ts";
import type { RequestLife } from "./callContext.ts";

/** What somebody waits for; times are in ms of the clock's monotonic reading. */
export interface SyncCall {
	/** Of a transaction that was acknowledged, lower case. */
	readonly hash: string;
	/** Whose wait it is, as limits count. */
	readonly client: string;
	/** What it came with, which is held while it waits. */
	readonly life: RequestLife;
	/** When its call began. */
	readonly begun: number;
	/** When it must be answered. */
	readonly until: number;
}

export interface WaitingRoomLimits {
	/** Waits at a time at most, of all and of one client: fewer than there may be requests, and no client has all. */
	readonly maxWaits: number;
	readonly maxPerClient: number;
	/** Bytes of the requests that are held at most, of all and of one client. */
	readonly maxBytes: number;
	readonly maxBytesPerClient: number;
}

interface SyncWaitsOptions {
	/** How many may wait; a limit that is left out is that of {@link ROOM}. */
	readonly limits: Pick<WaitingRoomLimits, "maxWaits"> & Partial<WaitingRoomLimits>;
	/** The reason that waiting calls are given when the process stops. */
	readonly stopping: string;
}

interface SyncWaitsDependencies<Call extends SyncCall> {
	/** Resolves with the receipt, or rejects with why there will be none soon. `signal` ends the search. */
	readonly find: (call: Call, signal: AbortSignal) => Promise<unknown>;
	readonly clock: Clock;
}

/** A wait holds its request, of up to 2 MiB, for long: what servers take in at a time must not be full of such. */
const ROOM = {
	maxPerClient: 256,
	maxBytes: 64 * 1024 * 1024,
	maxBytesPerClient: 8 * 1024 * 1024,
};

const TOO_MANY = "too many calls wait already, ask for its receipt";

/** All waits of the process. */
export class SyncWaits<Call extends SyncCall = SyncCall> {
	readonly #stopping: string;
	readonly #with: SyncWaitsDependencies<Call>;
	readonly #waits: Shares;
	readonly #bytes: Shares;
	/** Waits of each request: a batch is held once, however many of its calls wait. */
	readonly #byRequest = new Map<RequestLife, number>();
	/** Each ends one wait, with the reason. */
	readonly #open = new Set<(why: string) => void>();
	#closed = false;

	constructor({ limits, stopping }: SyncWaitsOptions, dependencies: SyncWaitsDependencies<Call>) {
		const { maxWaits, maxPerClient, maxBytes, maxBytesPerClient } = { ...ROOM, ...limits };
		this.#waits = new Shares({ total: maxWaits, perClient: maxPerClient });
		this.#bytes = new Shares({ total: maxBytes, perClient: maxBytesPerClient });
		this.#stopping = stopping;
		this.#with = dependencies;
	}

	/** How many wait. */
	get size(): number {
		return this.#open.size;
	}

	/**
	 * The receipt once the transaction is mined. Throws RpcError `timedOut`, with the hash as data, when the time is up,
	 * there is no room, the process stops or the client has gone; and what the search rejects with. No call waits longer
	 * than it asked for.
	 */
	wait(call: Call): Promise<unknown> {
		const { hash, begun, until, life } = call;
		const { find, clock } = this.#with;
		const ended = (why: string) => timedOut(hash, clock.monotonic() - begun, why);
		const why = this.#closed ? this.#stopping : this.#enter(call) ? null : TOO_MANY;
		if (why !== null) return Promise.reject(ended(why));
		const search = new AbortController();
		return new Promise((resolve, reject) => {
			const end = (settle: () => void): void => {
				if (!this.#open.delete(stop)) return;
				this.#leave(call);
				deadline.cancel();
				search.abort();
				settle();
			};
			const stop = (why: string) => end(() => reject(ended(why)));
			this.#open.add(stop);
			const deadline = clock.after(Math.max(0, until - clock.monotonic()), () =>
				end(() => reject(timedOut(hash, until - begun))),
			);
			find(call, search.signal).then(
				(receipt) => end(() => resolve(receipt)),
				(thrown: unknown) => end(() => reject(thrown)),
			);
			life.onGone(() => stop("its client has gone"));
		});
	}

	/** Answers all that wait, and all that come later: the process stops. What they wait for is kept, and lives on. */
	close(): void {
		this.#closed = true;
		for (const stop of [...this.#open]) stop(this.#stopping);
	}

	/** Takes room for one more; false where there is none. */
	#enter({ client, life }: Call): boolean {
		const ofRequest = this.#byRequest.get(life) ?? 0;
		const bytes = ofRequest === 0 ? life.bytes : 0;
		if (this.#waits.refusal(client, 1) !== null || this.#bytes.refusal(client, bytes) !== null) return false;
		this.#waits.force(client, 1);
		this.#bytes.force(client, bytes);
		this.#byRequest.set(life, ofRequest + 1);
		return true;
	}

	#leave({ client, life }: Call): void {
		const ofRequest = (this.#byRequest.get(life) ?? 1) - 1;
		if (ofRequest === 0) this.#byRequest.delete(life);
		else this.#byRequest.set(life, ofRequest);
		this.#waits.give(client, 1);
		this.#bytes.give(client, ofRequest === 0 ? life.bytes : 0);
	}
}

/** One block of Ethereum's and the time until a node has its receipt. */
export const SYNC_DEFAULT_MS = 20_000;
/** Routers give a request 30 s, and the dispatcher 28: an answer of ours must come before theirs. */
const MAX_MS = 25_000;

const EXPECTED = "expected milliseconds, 1 or more, as a number or as 0x hex";
/**
 * How long to wait, to ms; undefined where it was left out. The EIP's table says QUANTITY, its examples and clients give
 * a number: both are taken. Clients reckon with three slots, 36 s on mainnet: who would wait longer than is possible
 * waits as long as is possible.
 */
export const syncTimeoutMs = z
	.union([z.number(), z.string()], { error: EXPECTED })
	.transform((value, context): number => {
		const ms = typeof value === "number" ? value : Number(parseQuantity(value) ?? 0);
		if (Number.isSafeInteger(ms) && ms >= 1) return Math.min(ms, MAX_MS);
		context.issues.push({ code: "custom", message: EXPECTED, input: value });
		return z.NEVER;
	})
	.optional()
	.describe(`how long to wait for the receipt, in ms: ${SYNC_DEFAULT_MS} unless said, ${MAX_MS} at most`);

/** As EIP-7966 words it: clients look for the beginning. */
const NOT_PROCESSED = "The transaction was added to the mempool but wasn't processed";

/** The error where the time, `ms` so far, is up, or waiting has ended because of `why`. */
export function timedOut(hash: string, ms: number, why?: string): RpcError {
	const tail = why === undefined ? "." : `: ${why}.`;
	return new RpcError("timedOut", `${NOT_PROCESSED} in ${Math.round(ms) / 1000}s${tail}`, hash);
}

/** The error for a transaction that can't be mined soon. */
export function notSoon(hash: string, why: string): RpcError {
	return new RpcError("notSoon", `${NOT_PROCESSED} due to ${why}`, hash);
}

/** Why a transaction can't be mined soon, for {@link notSoon}. */
export const WHY_NOT_SOON = {
	nonceGap: "a missing nonce: it goes out when the gap before it closes",
	behindHeld: "one before it that is held",
	/** By the stage in which it ended. */
	ended: {
		REPLACED: "its replacement",
		CANCELLED: "its cancellation",
		EXPIRED: "its expiry",
		DROPPED: "another one that used its nonce",
	} as Readonly<Record<string, string | undefined>>,
} as const;

/** As {@link WHY_NOT_SOON}, of one whose simulation fails with `message`. */
export function failingSimulation(message: string): string {
	return `a failing simulation: ${message}`;
}

/** The error for a soft cancel: it has taken back the one before it, and is never mined itself. */
export function neverMined(hash: string): RpcError {
	return notSoon(hash, "being a soft cancel, which is never mined itself");
}
