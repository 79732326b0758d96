// Passes clients' standard reads on to the node. Other methods are refused: signing, mining,
// accounts, and methods that depend on one node's memory and fail behind a load balancer. Clients
// are served in fair order, so that slow reads of one do not block others. Equal reads in flight
// are sent once, and results that cannot change are cached.

import { LRUCache } from "lru-cache";
import { type Clock, DeadlineError, systemClock, within } from "../../shared/clock.ts";
import { parseNodeQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import { JsonText, jsonText } from "../../shared/jsonrpc/answers.ts";
import {
	ACCOUNT_STATUS,
	type JsonRpcClient,
	type RpcAnswer,
	type RpcCall,
	UpstreamError,
} from "../../shared/jsonrpc/client.ts";
import {
	ForeignRpcError,
	isOwnFault,
	NODE_UNAVAILABLE,
	nodesWords,
	RpcError,
} from "../../shared/jsonrpc/errors.ts";
import { readParamsSize } from "../../shared/jsonrpc/method.ts";
import { methodNotFound } from "../../shared/jsonrpc/methodNotFound.ts";
import { HEAVY_READ, LIGHT_READ, READS, type Read } from "../../shared/jsonrpc/reads.ts";
import type { Logger } from "../../shared/log.ts";
import { type Cutter, cutterFor } from "../../shared/secrets.ts";
import { FairScheduler, OverloadedError } from "../../shared/shares/scheduler.ts";
import { AbandonedError, SharedJobs } from "../../shared/shares/shares.ts";
import type { Caller } from "../domain/ports.ts";
import type { ReportedChain } from "./reportedChain.ts";

export interface PassthroughOptions {
	/** Maximum number of waiting light reads, and of waiting heavy ones. Default 1,000. */
	readonly maxWaiting?: number;
}

export interface PassthroughDependencies {
	readonly node: Pick<JsonRpcClient, "call" | "batch">;
	/** The tracked head, or null before the first one. */
	readonly head: () => { readonly number: number; readonly hash: string } | null;
	readonly log: Logger;
	/** Keeps the height that clients receive from falling. Default: the height may fall. */
	readonly reported?: Pick<ReportedChain, "tell">;
	/** Cuts the operator's secrets out of the node's errors. Default: those of any node. */
	readonly cutter?: Cutter;
	/** Default: the system clock. */
	readonly clock?: Clock;
}

/** Size of the cache. */
const MAX_CACHE_BYTES = 64 * 1024 * 1024;
/** Beyond this many waiting reads, the newest read of the client with the most is shed. */
const MAX_WAITING = 1_000;
/**
 * Reads in flight at once. A client that is alone may use half of them. Light reads do not wait for
 * heavy ones, each of which may keep a core of the node busy.
 */
const LIGHT_AT_ONCE = 24;
const HEAVY_AT_ONCE = 12;
/** Larger answers are not cached: a few would evict everything else. */
const MAX_ENTRY_BYTES = 2 * 1024 * 1024;
/** Larger answers are not passed on, so that all reads in flight fit into the process's memory. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
/** In practice, no reorganisation of Ethereum is this deep. */
const DEEP_BLOCKS = 64;
const NOT_FOUND = -32601;
/** How often the log says that the node denies its operator access, in ms. */
const DENIED_EVERY_MS = 60_000;
const TOO_LARGE = `limit exceeded: the answer has more than ${MAX_ANSWER_BYTES} bytes, ask for less at once`;
type NodeError = Extract<RpcAnswer, { ok: false }>["error"];

const HEX = /^0x[0-9a-f]+$/i;

export class Passthrough {
	readonly #node: Pick<JsonRpcClient, "call" | "batch">;
	readonly #head: PassthroughDependencies["head"];
	readonly #log: Logger;
	readonly #clock: Clock;
	readonly #cutter: Cutter;
	readonly #reported: Pick<ReportedChain, "tell"> | null;
	/** When the log last said that the node denies its operator access, in monotonic ms. */
	#deniedAt = Number.NEGATIVE_INFINITY;
	readonly #light: SharedJobs<unknown>;
	readonly #heavy: SharedJobs<unknown>;
	/** Reads in flight. */
	readonly #inFlight = new Map<string, Promise<unknown>>();
	/** Results in objects, because `false` is a result too. */
	readonly #cache: LRUCache<string, { readonly result: unknown }>;

	constructor(options: PassthroughOptions, dependencies: PassthroughDependencies) {
		this.#node = dependencies.node;
		this.#head = dependencies.head;
		this.#log = dependencies.log;
		this.#clock = dependencies.clock ?? systemClock;
		this.#cutter = dependencies.cutter ?? cutterFor();
		this.#reported = dependencies.reported ?? null;
		const maxWaiting = options.maxWaiting ?? MAX_WAITING;
		this.#light = new SharedJobs(new FairScheduler({ concurrency: LIGHT_AT_ONCE, maxWaiting }));
		this.#heavy = new SharedJobs(new FairScheduler({ concurrency: HEAVY_AT_ONCE, maxWaiting }));
		this.#cache = new LRUCache({
			maxSize: MAX_CACHE_BYTES,
			maxEntrySize: MAX_ENTRY_BYTES,
			sizeCalculation: ({ result }, key) => key.length + jsonText(result).length + 1,
		});
	}

	/** The cost of `method` in the rate limit; undefined if it is not passed on. */
	weigh(method: string): number | undefined {
		return READS.get(method)?.weight;
	}

	/** Maximum number of characters of its parameters as JSON. */
	maxParamsSize(method: string): number {
		return readParamsSize(this.weigh(method) ?? 1);
	}

	/**
	 * The node's answer to a listed read, a long one as JsonText; it must not be changed. Throws
	 * ForeignRpcError with any error of the node, without secrets. Throws RpcError `methodNotFound`
	 * for a method that is not listed or not known to the node. Throws RpcError `limit` if the
	 * answer is too large or too many reads wait. Throws RpcError `internal` with
	 * `reason: "node unavailable"` if the node gave no answer, or denied its operator access.
	 */
	call(method: string, params: readonly unknown[], caller: Caller): Promise<unknown> {
		const passed = READS.get(method);
		if (passed === undefined) return Promise.reject(methodNotFound(method));
		return this.#read({ method, params }, passed, caller);
	}

	/**
	 * Like `call`, for the relay's own reads, listed or not; never cached, and always parsed.
	 * `timeoutMs` makes it a heavy read with this deadline, in ms.
	 */
	async read(
		method: string,
		params: readonly unknown[],
		caller: Caller,
		timeoutMs?: number,
	): Promise<unknown> {
		const listed = READS.get(method) ?? LIGHT_READ;
		const passed = timeoutMs === undefined ? listed : { ...HEAVY_READ, timeoutMs };
		const result = await this.#read({ method, params }, { ...passed, keep: "once" }, caller);
		if (!(result instanceof JsonText)) return result;
		try {
			return JSON.parse(result.text);
		} catch {
			throw unavailable();
		}
	}

	#read(call: RpcCall, passed: Read, caller: Caller): Promise<unknown> {
		const name = `${call.method} ${JSON.stringify(call.params)}`;
		const cached = passed.keep === "once" ? undefined : this.#cache.get(name);
		if (cached !== undefined) return Promise.resolve(cached.result);
		// A client that knows the new head must not get an answer from before it.
		const sharedAs = `${this.#head()?.hash} ${name}`;
		return this.#inFlight.get(sharedAs) ?? this.#wait(call, name, sharedAs, passed, caller);
	}

	/** Queues the read. It leaves the queue if its client disconnects or its deadline passes. */
	async #wait(
		call: RpcCall,
		name: string,
		sharedAs: string,
		passed: Read,
		{ client, life }: Caller,
	): Promise<unknown> {
		const { weight, timeoutMs } = passed;
		const turns = weight === 1 ? this.#light : this.#heavy;
		try {
			const { answer, leave } = turns.join(
				sharedAs,
				{ client, cost: weight },
				() => this.#inFlight.get(sharedAs) ?? this.#begin(call, name, sharedAs, passed),
			);
			life.onGone(leave);
			return await within(this.#clock, "read", timeoutMs, answer, leave);
		} catch (thrown) {
			if (thrown instanceof OverloadedError) {
				throw new RpcError("limit", "limit exceeded: too many reads under way");
			}
			if (thrown instanceof DeadlineError || thrown instanceof AbandonedError) throw unavailable();
			throw thrown;
		}
	}

	#begin(call: RpcCall, name: string, sharedAs: string, passed: Read): Promise<unknown> {
		const reading = this.#ask(call, passed)
			.then((result) => {
				if (isLasting(passed, call.params, result, this.#head()?.number)) this.#cache.set(name, { result });
				return result;
			})
			.finally(() => this.#inFlight.delete(sharedAs));
		this.#inFlight.set(sharedAs, reading);
		return reading;
	}

	async #ask(call: RpcCall, passed: Read): Promise<unknown> {
		const result = await this.#askNode(call, passed);
		return call.method === "eth_blockNumber" ? this.#height(result) : result;
	}

	async #askNode(call: RpcCall, passed: Read): Promise<unknown> {
		const { method } = call;
		let answer: RpcAnswer;
		try {
			answer = await this.#node.call(call, passed.timeoutMs, MAX_ANSWER_BYTES);
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
			if (thrown.code === "tooLarge") throw new RpcError("limit", TOO_LARGE);
			this.#noteFailure(method, thrown);
			throw unavailable();
		}
		if (answer.ok) return answer.result;
		throw this.#verdict(method, answer.error);
	}

	/** The node's height, or a higher one that clients know already. */
	#height(result: unknown): unknown {
		const reported = this.#reported;
		const number = parseNodeQuantity(result);
		if (reported === null || number === null) return result;
		const tracked = this.#head()?.number ?? 0;
		const height = reported.tell(Math.max(Number(number), tracked));
		return height === Number(number) ? result : toQuantity(height);
	}

	/** The node's error in the form for clients. */
	#verdict(method: string, { code, message, data }: NodeError): Error {
		this.#log.debug("node answered a read with an error", { method, code });
		if (code === NOT_FOUND) return methodNotFound(method);
		// Another relay of ours, behind the node's URL, gives this error.
		if (isOwnFault({ code, message }) && reasonOf(data) === NODE_UNAVAILABLE.reason) return unavailable();
		return new ForeignRpcError(code, nodesWords(code, this.#cutter.text(message)), this.#cutter.value(data));
	}

	/** Logs a failed read. Denied access, for the key, the bill or a quota, needs the operator. */
	#noteFailure(method: string, { code, status }: UpstreamError): void {
		const now = this.#clock.monotonic();
		if (status === undefined || !ACCOUNT_STATUS.has(status) || now - this.#deniedAt < DENIED_EVERY_MS) {
			this.#log.debug("read failed", { method, code: status ?? code });
			return;
		}
		this.#deniedAt = now;
		this.#log.warn("node denies reads: check key, bill and quota", {
			method,
			code: status,
		});
	}
}

/** Whether the result can never change. */
function isLasting(
	{ keep }: Read,
	params: readonly unknown[],
	result: unknown,
	head: number | undefined,
): boolean {
	if (keep === "once" || result === null) return false;
	if (keep !== "deep") return true;
	// A tag ("finalized", "latest") means another block later.
	if (typeof params[0] !== "string" || !HEX.test(params[0]) || head === undefined) return false;
	const { blockNumber, number } = result as Record<string, unknown>;
	const block = blockNumber ?? number;
	return typeof block === "string" && HEX.test(block) && Number(block) + DEEP_BLOCKS <= head;
}

function unavailable(): RpcError {
	return new RpcError("internal", "internal error", NODE_UNAVAILABLE);
}

function reasonOf(data: unknown): unknown {
	return (data as { reason?: unknown } | null | undefined)?.reason;
}
