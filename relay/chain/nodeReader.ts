// Sends reads to the node in batches that it accepts. A read that did not arrive is sent a second
// time, so this module is for reads only.

import type { Clock } from "../../shared/clock.ts";
import {
	type JsonRpcClient,
	type RpcAnswer,
	type RpcCall,
	UpstreamError,
} from "../../shared/jsonrpc/client.ts";
import type { Logger } from "../../shared/log.ts";

export interface NodeReaderOptions {
	/** Default deadline, in ms. */
	readonly timeoutMs: number;
}

export interface NodeReaderDependencies {
	readonly client: Pick<JsonRpcClient, "call" | "batch">;
	readonly clock: Clock;
	readonly log: Logger;
}

/** Calls in one request; go-ethereum accepts 1,000, providers between 10 and 1,000. */
const MAX_BATCH_CALLS = 300;
/** Requests of one batch in flight at once. */
const PIECES_AT_ONCE = 8;
/** How long a smaller limit is assumed, in ms, so that one bad answer has no lasting cost. */
const SMALL_FOR_MS = 3600 * 1000;

/** A client for reads, with the methods of {@link JsonRpcClient} and its errors. */
export class NodeReader {
	readonly #options: NodeReaderOptions;
	readonly #client: Pick<JsonRpcClient, "call" | "batch">;
	readonly #clock: Clock;
	readonly #log: Logger;
	/**
	 * The largest batch that the node answered after a larger one failed, and until when that limit
	 * applies.
	 */
	#small: { readonly calls: number; readonly until: number } | null = null;

	constructor(options: NodeReaderOptions, dependencies: NodeReaderDependencies) {
		this.#options = options;
		this.#client = dependencies.client;
		this.#clock = dependencies.clock;
		this.#log = dependencies.log;
	}

	/** As {@link JsonRpcClient.call}. */
	call(
		call: RpcCall,
		timeoutMs = this.#options.timeoutMs,
		maxBytes?: number,
		onBegin?: () => void,
	): Promise<RpcAnswer> {
		const until = this.#clock.monotonic() + timeoutMs;
		return this.#twice(until, (leftMs) => this.#client.call(call, leftMs, maxBytes, onBegin));
	}

	/**
	 * Any number of calls, answered in their order, in as many requests as it takes. Throws {@link
	 * UpstreamError} when one of them failed, or not all were answered within `timeoutMs`.
	 */
	batch(calls: readonly RpcCall[], timeoutMs = this.#options.timeoutMs): Promise<RpcAnswer[]> {
		return this.#all(calls, this.#clock.monotonic() + timeoutMs);
	}

	async #all(calls: readonly RpcCall[], until: number): Promise<RpcAnswer[]> {
		const size = this.#pieceCalls();
		const pieces: RpcAnswer[][] = [];
		let next = 0;
		const work = async (): Promise<void> => {
			while (next * size < calls.length) {
				const piece = next++;
				pieces[piece] = await this.#piece(calls.slice(piece * size, (piece + 1) * size), until);
			}
		};
		await Promise.all(Array.from({ length: PIECES_AT_ONCE }, work));
		return pieces.flat();
	}

	/**
	 * Sends one request. If it fails as a request that is too large does, its first half is tried,
	 * down to a single call. Only a half that works proves that the size was the problem. So an
	 * outage is neither mistaken for a limit nor made worse.
	 */
	async #piece(calls: readonly RpcCall[], until: number): Promise<RpcAnswer[]> {
		const [only, ...others] = calls;
		if (only === undefined) return [];
		if (others.length === 0) return [await this.#twice(until, (leftMs) => this.#client.call(only, leftMs))];
		try {
			return await this.#twice(until, (leftMs) => this.#client.batch(calls, leftMs));
		} catch (thrown) {
			if (!mayBeSize(thrown)) throw thrown;
		}
		const half = Math.ceil(calls.length / 2);
		const first = await this.#piece(calls.slice(0, half), until);
		this.#shrink(half);
		return [...first, ...(await this.#all(calls.slice(half), until))];
	}

	/** Tries an unreachable node twice, because a connection that it closed while idle fails once. */
	async #twice<T>(until: number, send: (leftMs: number) => Promise<T>): Promise<T> {
		try {
			return await send(this.#left(until));
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError) || thrown.code !== "unreachable") throw thrown;
			return send(this.#left(until));
		}
	}

	#left(until: number): number {
		const leftMs = until - this.#clock.monotonic();
		if (leftMs <= 0) throw new UpstreamError("timeout");
		return leftMs;
	}

	#pieceCalls(): number {
		if (this.#small !== null && this.#small.until < this.#clock.monotonic()) this.#small = null;
		return this.#small?.calls ?? MAX_BATCH_CALLS;
	}

	#shrink(calls: number): void {
		if (calls >= this.#pieceCalls()) return;
		this.#small = { calls, until: this.#clock.monotonic() + SMALL_FOR_MS };
		this.#log.warn("node accepts only small batches", { limit: calls });
	}
}

/**
 * Whether a failed batch may have been too large. Servers report this with a status, with one error
 * for all calls, or with an error for the first call alone (go-ethereum). The answer itself may
 * also have been too large.
 */
function mayBeSize(thrown: unknown): boolean {
	if (!(thrown instanceof UpstreamError)) return false;
	if (thrown.code === "httpStatus") return thrown.status === 400 || thrown.status === 413;
	return thrown.code === "notJsonRpc" || thrown.code === "tooLarge";
}
