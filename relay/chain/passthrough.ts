// Passes the standard reads of clients on to the node, and refuses all other methods: signing, mining, accounts, and what lives
// in one node's memory and does not work behind a load balancer. Clients take turns, so that nobody's slow reads shut others
// out; equal reads under way are asked once, and what cannot change is remembered.

import { LRUCache } from "lru-cache";
import { type Clock, DeadlineError, systemClock, withDeadline } from "../../shared/clock.ts";
import {
	type JsonRpcClient,
	type RpcAnswer,
	type RpcCall,
	UpstreamError,
} from "../../shared/jsonrpc/client.ts";
import { methodNotFound } from "../../shared/jsonrpc/dispatch.ts";
import { JsonText, jsonText } from "../../shared/jsonrpc/envelope.ts";
import { ForeignRpcError, RpcError } from "../../shared/jsonrpc/errors.ts";
import { readParamsSize } from "../../shared/jsonrpc/method.ts";
import type { Logger } from "../../shared/log.ts";
import { FairScheduler, OverloadedError } from "../../shared/shares/scheduler.ts";
import { AbandonedError, SharedJobs } from "../../shared/shares/shares.ts";
import type { Caller } from "../domain/ports.ts";

export interface PassthroughOptions {
	/** Of light reads and of heavy ones, how many wait at most. Default 1,000. */
	readonly maxWaiting?: number;
}

export interface PassthroughDependencies {
	readonly node: Pick<JsonRpcClient, "call">;
	/** The tracked head, or null before the first one. */
	readonly head: () => { readonly number: number; readonly hash: string } | null;
	readonly log: Logger;
	/** The real one unless given. */
	readonly clock?: Clock;
}

/** Of answers that are remembered. */
const MAX_CACHE_BYTES = 64 * 1024 * 1024;
/** When this many wait, the newest read of the client with the most waiting reads is refused. */
const MAX_WAITING = 1_000;
/**
 * How many the node is asked for at the same time, half of it for a client that is alone: light reads do not wait for
 * heavy ones, and each of these may keep a core of the node busy.
 */
const LIGHT_AT_ONCE = 24;
const HEAVY_AT_ONCE = 12;
/** Larger answers are not remembered: a few of them would push out everything else. */
const MAX_ENTRY_BYTES = 2 * 1024 * 1024;
/** Larger answers are refused: as many of them as run at once must fit into the memory of the process. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
/** No reorganisation of Ethereum reaches this far without the chain having far worse trouble. */
const DEEP_BLOCKS = 64;
/**
 * Codes of errors that are about the read itself: reverted, invalid input and its kin (EIP-1474), not found, invalid
 * params, OpenEthereum's execution errors, pruned history (EIP-4444). Any other may be about the operator's account
 * at a provider, and its words are nobody's business.
 */
const VERDICTS: ReadonlySet<number> = new Set([3, 4444, -32000, -32001, -32003, -32602, -32015]);
/** Codes of `eth_simulateV1`: -38999 to -38000. */
const SIMULATION_CODES = { from: -38_999, to: -38_000 };
const NOT_FOUND = -32601;
const LIMIT = -32005;
/** Some nodes call a failed execution an internal error (anvil: an invalid opcode). */
const INTERNAL = -32603;
const TOO_LARGE = `limit exceeded: the answer has more than ${MAX_ANSWER_BYTES} bytes, ask for less at once`;
const HEX = /^0x[0-9a-f]+$/i;

/** Passes reads on. */
export class Passthrough {
	readonly #node: Pick<JsonRpcClient, "call">;
	readonly #head: PassthroughDependencies["head"];
	readonly #log: Logger;
	readonly #clock: Clock;
	readonly #light: SharedJobs<unknown>;
	readonly #heavy: SharedJobs<unknown>;
	/** What the node is being asked. */
	readonly #underWay = new Map<string, Promise<unknown>>();
	/** Each in an object, because `false` is a result too. */
	readonly #kept: LRUCache<string, { readonly result: unknown }>;

	constructor(options: PassthroughOptions, dependencies: PassthroughDependencies) {
		this.#node = dependencies.node;
		this.#head = dependencies.head;
		this.#log = dependencies.log;
		this.#clock = dependencies.clock ?? systemClock;
		const maxWaiting = options.maxWaiting ?? MAX_WAITING;
		this.#light = new SharedJobs(new FairScheduler({ concurrency: LIGHT_AT_ONCE, maxWaiting }));
		this.#heavy = new SharedJobs(new FairScheduler({ concurrency: HEAVY_AT_ONCE, maxWaiting }));
		this.#kept = new LRUCache({
			maxSize: MAX_CACHE_BYTES,
			maxEntrySize: MAX_ENTRY_BYTES,
			sizeCalculation: ({ result }, key) => key.length + jsonText(result).length + 1,
		});
	}

	/** What a call of `method` weighs in the rate limit; undefined for one that is not passed on. */
	weigh(method: string): number | undefined {
		return PASSED_METHODS.get(method)?.weight;
	}

	/** Maximum number of characters of its parameters as JSON. */
	maxParamsSize(method: string): number {
		return readParamsSize(this.weigh(method) ?? 1);
	}

	/**
	 * The node's answer to a read of the list, a long one as JsonText; it must not be changed. Throws ForeignRpcError with the node's own error
	 * where that is about the read, RpcError `methodNotFound` for what is not in the list or not known to the node,
	 * `limit` where it asks too much or too much waits, `internal` with `reason: "node unavailable"` where the node failed.
	 */
	call(method: string, params: readonly unknown[], caller: Caller): Promise<unknown> {
		const passed = PASSED_METHODS.get(method);
		if (passed === undefined) return Promise.reject(methodNotFound(method));
		return this.#read({ method, params }, passed, caller);
	}

	/** The same for a read of the relay's own, whether listed or not; never remembered, and always parsed. */
	async read(method: string, params: readonly unknown[], caller: Caller): Promise<unknown> {
		const passed = PASSED_METHODS.get(method) ?? READ;
		const result = await this.#read({ method, params }, { ...passed, keep: "once" }, caller);
		if (!(result instanceof JsonText)) return result;
		try {
			return JSON.parse(result.text);
		} catch {
			throw unavailable();
		}
	}

	#read(call: RpcCall, passed: PassedMethod, caller: Caller): Promise<unknown> {
		const name = `${call.method} ${JSON.stringify(call.params)}`;
		const kept = passed.keep === "once" ? undefined : this.#kept.get(name);
		if (kept !== undefined) return Promise.resolve(kept.result);
		// A client that has heard of a head must not get an answer that was asked for before it.
		const sharedAs = `${this.#head()?.hash} ${name}`;
		return this.#underWay.get(sharedAs) ?? this.#wait(call, name, sharedAs, passed, caller);
	}

	/** Asks the node when it is the client's turn; who has gone, or waits for too long, leaves the queue. */
	async #wait(
		call: RpcCall,
		name: string,
		sharedAs: string,
		passed: PassedMethod,
		{ client, life }: Caller,
	): Promise<unknown> {
		const { weight, timeoutMs } = passed;
		const turns = weight === 1 ? this.#light : this.#heavy;
		try {
			return await withDeadline(this.#clock, "read", timeoutMs, (signal) => {
				const begin = () => this.#underWay.get(sharedAs) ?? this.#begin(call, name, sharedAs, passed);
				const { answer, leave } = turns.join(sharedAs, { client, cost: weight }, begin);
				signal.addEventListener("abort", leave);
				life.onGone(leave);
				return answer;
			});
		} catch (thrown) {
			if (thrown instanceof OverloadedError) {
				throw new RpcError("limit", "limit exceeded: too many reads under way");
			}
			if (thrown instanceof DeadlineError || thrown instanceof AbandonedError) throw unavailable();
			throw thrown;
		}
	}

	#begin(call: RpcCall, name: string, sharedAs: string, passed: PassedMethod): Promise<unknown> {
		const reading = this.#ask(call, passed)
			.then((result) => {
				if (isLasting(passed, call.params, result, this.#head()?.number)) this.#kept.set(name, { result });
				return result;
			})
			.finally(() => this.#underWay.delete(sharedAs));
		this.#underWay.set(sharedAs, reading);
		return reading;
	}

	async #ask(call: RpcCall, passed: PassedMethod): Promise<unknown> {
		const { method } = call;
		let answer: RpcAnswer;
		try {
			answer = await this.#node.call(call, passed.timeoutMs, MAX_ANSWER_BYTES);
		} catch (thrown) {
			if (!(thrown instanceof UpstreamError)) throw thrown;
			if (thrown.code === "tooLarge") throw new RpcError("limit", TOO_LARGE);
			this.#log.debug("a read failed", { method, code: thrown.code });
			throw unavailable();
		}
		if (answer.ok) return answer.result;
		const { code, message, data } = answer.error;
		if (code === NOT_FOUND) throw methodNotFound(method);
		if (code === LIMIT) throw new RpcError("limit", "limit exceeded: the node does not answer this much");
		if (isVerdict(code) || (passed.executes && code === INTERNAL)) {
			throw new ForeignRpcError(code, message, data);
		}
		this.#log.debug("a read failed", { method, code });
		throw unavailable();
	}
}

function isVerdict(code: number): boolean {
	return VERDICTS.has(code) || (code >= SIMULATION_CODES.from && code <= SIMULATION_CODES.to);
}

/** Whether the same question will be answered like this forever. */
function isLasting(
	{ keep }: PassedMethod,
	params: readonly unknown[],
	result: unknown,
	head: number | undefined,
): boolean {
	if (keep === "once" || result === null) return false;
	if (keep !== "deep") return true;
	// By a tag ("finalized", "latest") it is another block tomorrow.
	if (typeof params[0] !== "string" || !HEX.test(params[0]) || head === undefined) return false;
	const { blockNumber, number } = result as Record<string, unknown>;
	const block = blockNumber ?? number;
	return typeof block === "string" && HEX.test(block) && Number(block) + DEEP_BLOCKS <= head;
}

function unavailable(): RpcError {
	return new RpcError("internal", "internal error", { reason: "node unavailable" });
}

/**
 * How long an answer is good. `once`: it is asked for each time. `always`: as long as the process. `found`: it is of
 * a block named by its hash and never changes once it is there. `deep`: it never changes once its block is so deep
 * that no reorganisation reaches it.
 */
export type Keep = "once" | "always" | "found" | "deep";

/** How one method is passed on. */
export interface PassedMethod {
	readonly keep: Keep;
	/** What a call weighs in the rate limit. */
	readonly weight: number;
	/** Deadline in ms; the client's whole call has 28 s. */
	readonly timeoutMs: number;
	/** It runs code: an internal error may be that code's own. */
	readonly executes: boolean;
}

const READ: PassedMethod = { keep: "once", weight: 1, timeoutMs: 10_000, executes: false };
const ALWAYS: PassedMethod = { ...READ, keep: "always" };
const FOUND: PassedMethod = { ...READ, keep: "found" };
const DEEP: PassedMethod = { ...READ, keep: "deep" };
/** The node may work long on these. */
const HEAVY: PassedMethod = { ...READ, weight: 10, timeoutMs: 20_000 };
const EXECUTION: PassedMethod = { ...HEAVY, executes: true };

/**
 * The list. Not in it, because the relay answers them itself: eth_sendRawTransaction, eth_getTransactionCount,
 * eth_getTransactionByHash, eth_callMany, eth_callBundle. https://ethereum.github.io/execution-apis/
 */
export const PASSED_METHODS: ReadonlyMap<string, PassedMethod> = new Map(
	Object.entries({
		eth_chainId: ALWAYS,
		eth_protocolVersion: READ,
		eth_syncing: READ,
		eth_config: READ,
		eth_capabilities: READ,
		eth_blockNumber: READ,
		eth_gasPrice: READ,
		eth_baseFee: READ,
		eth_maxPriorityFeePerGas: READ,
		eth_feeHistory: READ,
		eth_blobBaseFee: READ,

		eth_call: EXECUTION,
		eth_estimateGas: EXECUTION,
		eth_createAccessList: EXECUTION,
		eth_simulateV1: EXECUTION,

		eth_getBalance: READ,
		eth_getCode: READ,
		eth_getStorageAt: READ,
		eth_getStorageValues: READ,
		eth_getProof: READ,

		eth_getBlockByHash: FOUND,
		eth_getBlockByNumber: DEEP,
		eth_getBlockTransactionCountByHash: FOUND,
		eth_getBlockTransactionCountByNumber: READ,
		eth_getBlockReceipts: READ,
		eth_getUncleByBlockHashAndIndex: FOUND,
		eth_getUncleByBlockNumberAndIndex: READ,
		eth_getUncleCountByBlockHash: FOUND,
		eth_getUncleCountByBlockNumber: READ,

		eth_getTransactionByBlockHashAndIndex: FOUND,
		eth_getTransactionByBlockNumberAndIndex: READ,
		eth_getTransactionReceipt: DEEP,
		// The node knows only what is public: what is sent here never reaches its mempool.
		eth_getRawTransactionByHash: READ,
		eth_getRawTransactionByBlockHashAndIndex: FOUND,
		eth_getRawTransactionByBlockNumberAndIndex: READ,
		eth_getLogs: HEAVY,

		net_version: ALWAYS,
		net_listening: READ,
		net_peerCount: READ,
		web3_clientVersion: READ,
		web3_sha3: READ,
	}),
);
