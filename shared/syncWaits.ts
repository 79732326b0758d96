// Calls that wait for a receipt (eth_sendRawTransactionSync): the timeout parameter, the limits,
// the errors, and the waits themselves. Relay and boost find receipts differently, so each of them
// supplies that part.
// https://eips.ethereum.org/EIPS/eip-7966

import { z } from "zod";
import type { Clock } from "./clock.ts";
import { parseQuantity } from "./ethereum/hex.ts";
import type { ENDED_STAGES } from "./ethereum/statusRecord.ts";
import type { RequestLife } from "./http/callContext.ts";
import { RpcError } from "./jsonrpc/errors.ts";
import { Shares } from "./shares/shares.ts";

/** One wait. Times are monotonic, in ms. */
export interface SyncCall {
	/** Hash of an acknowledged transaction, in lower case. */
	readonly hash: string;
	/** See clientOf. */
	readonly client: string;
	/** The request, whose bytes stay in memory during the wait. */
	readonly life: RequestLife;
	readonly begun: number;
	/** Time by which it must be answered. */
	readonly until: number;
}

interface WaitingRoomLimits {
	/**
	 * Maximum waits, of all clients and of one. Fewer than the maximum number of requests, so that
	 * waits can't block the server.
	 */
	readonly maxWaits: number;
	readonly maxPerClient: number;
	/** Maximum bytes of waiting requests, of all clients and of one. */
	readonly maxBytes: number;
	readonly maxBytesPerClient: number;
}

interface SyncWaitsOptions {
	/** Missing limits default to {@link DEFAULT_LIMITS}. */
	readonly limits: Pick<WaitingRoomLimits, "maxWaits"> & Partial<WaitingRoomLimits>;
	/** The reason in the errors of waits that a stop ends. */
	readonly stopping: string;
}

interface SyncWaitsDependencies<Call extends SyncCall> {
	/** Resolves with the receipt, or rejects if there will be none soon. `signal` ends the search. */
	readonly find: (call: Call, signal: AbortSignal) => Promise<unknown>;
	readonly clock: Clock;
}

/**
 * A wait keeps its request of up to 2 MiB in memory for long, so waits get a small part of the
 * request buffers.
 */
const DEFAULT_LIMITS = {
	maxPerClient: 256,
	maxBytes: 64 * 1024 * 1024,
	maxBytesPerClient: 8 * 1024 * 1024,
};

const TOO_MANY = "too many calls are waiting, poll for its receipt";

/** All waits of the process. */
export class SyncWaits<Call extends SyncCall = SyncCall> {
	readonly #stopping: string;
	readonly #dependencies: SyncWaitsDependencies<Call>;
	readonly #waits: Shares;
	readonly #bytes: Shares;
	/** Waits of each request. A batch is counted once, however many of its calls wait. */
	readonly #byRequest = new Map<RequestLife, number>();
	/** Each function ends one wait, with the reason. */
	readonly #open = new Set<(why: string) => void>();
	#closed = false;

	constructor({ limits, stopping }: SyncWaitsOptions, dependencies: SyncWaitsDependencies<Call>) {
		const { maxWaits, maxPerClient, maxBytes, maxBytesPerClient } = { ...DEFAULT_LIMITS, ...limits };
		this.#waits = new Shares({ total: maxWaits, perClient: maxPerClient });
		this.#bytes = new Shares({ total: maxBytes, perClient: maxBytesPerClient });
		this.#stopping = stopping;
		this.#dependencies = dependencies;
	}

	/** Current waits. */
	get size(): number {
		return this.#open.size;
	}

	/**
	 * Resolves with the receipt once the transaction is mined. Rejects with RpcError `timedOut`,
	 * with the hash as data, if the time is up, too many wait, the process stops or the client has
	 * disconnected. Also rejects with the error of `find`.
	 */
	wait(call: Call): Promise<unknown> {
		const { hash, begun, until, life } = call;
		const { find, clock } = this.#dependencies;
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
			life.onGone(() => stop("its client disconnected"));
		});
	}

	/**
	 * Ends all waits and refuses later ones, since the process stops. Their transactions are not
	 * affected.
	 */
	close(): void {
		this.#closed = true;
		for (const stop of [...this.#open]) stop(this.#stopping);
	}

	/** Counts one more wait; false if the limits don't allow it. */
	#enter({ client, life }: Call): boolean {
		const ofRequest = this.#byRequest.get(life) ?? 0;
		const bytes = ofRequest === 0 ? life.bytes : 0;
		if (this.#waits.exceeded(client, 1) !== null || this.#bytes.exceeded(client, bytes) !== null)
			return false;
		this.#waits.takeAnyway(client, 1);
		this.#bytes.takeAnyway(client, bytes);
		this.#byRequest.set(life, ofRequest + 1);
		return true;
	}

	#leave({ client, life }: Call): void {
		const ofRequest = (this.#byRequest.get(life) ?? 1) - 1;
		if (ofRequest === 0) this.#byRequest.delete(life);
		else this.#byRequest.set(life, ofRequest);
		this.#waits.release(client, 1);
		this.#bytes.release(client, ofRequest === 0 ? life.bytes : 0);
	}
}

/** One block time of Ethereum, and time for a node to have the receipt. */
const DEFAULT_MS = 20_000;
/**
 * Below the 30 s of routers and the dispatcher's 28 s, so that the caller gets the answer of this
 * file.
 */
const MAX_MS = 25_000;

/**
 * The timeout in ms. The EIP's table says QUANTITY while its examples and clients use a number, so
 * both are accepted. It requires the default for an invalid one. Clients ask for up to three slots
 * (36 s on mainnet); more than the maximum counts as the maximum.
 */
export const syncTimeoutMs = z
	.union([z.number(), z.string()])
	.transform((value): number => {
		const ms = typeof value === "number" ? value : Number(parseQuantity(value) ?? 0);
		return Number.isInteger(ms) && ms >= 1 ? Math.min(ms, MAX_MS) : DEFAULT_MS;
	})
	.catch(DEFAULT_MS)
	.describe(
		`how long to wait for the receipt, in ms, as a number or 0x hex: at most ${MAX_MS}; an invalid one is replaced by the default`,
	);

/** EIP-7966's text; clients compare the beginning. */
const NOT_PROCESSED = "The transaction was added to the mempool but wasn't processed";

/** The error for a wait that ended after `ms` by timeout, or because of `why`. */
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
	nonceGap: "a missing nonce: it is sent when the gap closes",
	behindHeld: "an earlier transaction that is not sent",
	/** By the stage in which it ended. */
	ended: {
		REPLACED: "its replacement",
		CANCELLED: "its cancellation",
		EXPIRED: "its expiry",
		DROPPED: "another transaction with its nonce",
	} satisfies Record<(typeof ENDED_STAGES)[number], string> as Readonly<Record<string, string | undefined>>,
} as const;

/** As {@link WHY_NOT_SOON}, for a simulation that fails with `message`. */
export function failingSimulation(message: string): string {
	return `a failing simulation: ${message}`;
}

/** The error for a soft cancellation: it cancels another transaction, and is never mined itself. */
export function neverMined(hash: string): RpcError {
	return notSoon(hash, "being a soft cancel, which is never mined itself");
}
