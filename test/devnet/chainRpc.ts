// The dev network's JSON-RPC client for anvil, with readers of the head and the latest block. It
// shares no code with the relay's client, and retries nothing.

import { Pool } from "undici";
import { systemClock, withDeadline } from "../../shared/clock.ts";

/** A call in a batch. */
export interface ChainCall {
	readonly method: string;
	readonly params: readonly unknown[];
}

/** The node's answer to a call of a batch. */
export type RpcOutcome =
	| { readonly ok: true; readonly result: unknown }
	| { readonly ok: false; readonly code: number; readonly message: string; readonly data?: unknown };

/** A JSON-RPC error from the node. */
class ChainRpcError extends Error {
	readonly code: number;
	readonly data: unknown;
	constructor(method: string, { code, message, data }: Extract<RpcOutcome, { ok: false }>) {
		super(`${method}: ${message} (${code})`);
		this.code = code;
		this.data = data;
	}
}

/** A deadline above the time of any block of the dev chain on a busy machine. */
const CALL_MS = 60_000;

/** A JSON-RPC client of one node over HTTP. */
export class ChainRpc {
	readonly #pool: Pool;

	constructor(url: string) {
		this.#pool = new Pool(url, { connections: 16, headersTimeout: 0, bodyTimeout: 0 });
	}

	/** The result of a call. Throws {@link ChainRpcError} for the node's errors. */
	async call(method: string, params: readonly unknown[] = []): Promise<unknown> {
		const outcome = read(await this.#post({ jsonrpc: "2.0", id: 1, method, params }));
		if (!outcome.ok) throw new ChainRpcError(method, outcome);
		return outcome.result;
	}

	/**
	 * Makes many calls in one request, and returns their outcomes in order. anvil keeps the order of
	 * up to 30 calls.
	 */
	async batch(calls: readonly ChainCall[]): Promise<RpcOutcome[]> {
		if (calls.length === 0) return [];
		const answers = await this.#post(calls.map((call, id) => ({ jsonrpc: "2.0", id, ...call })));
		if (!Array.isArray(answers)) throw new Error("the node did not answer a batch with a batch");
		const byId = new Map(answers.map((answer: { id?: unknown }) => [answer.id, answer]));
		return calls.map((_, id) => read(byId.get(id)));
	}

	/** The results of a batch. Throws {@link ChainRpcError} if one fails. */
	async all(calls: readonly ChainCall[]): Promise<unknown[]> {
		const outcomes = await this.batch(calls);
		return outcomes.map((outcome, i) => {
			if (outcome.ok) return outcome.result;
			throw new ChainRpcError(calls[i]?.method ?? "?", outcome);
		});
	}

	/** The results of one method for each of `params`. Throws if one fails. */
	each(method: string, params: readonly (readonly unknown[])[]): Promise<unknown[]> {
		return this.all(params.map((one) => ({ method, params: one })));
	}

	/** Closes all connections. */
	async close(): Promise<void> {
		await this.#pool.destroy();
	}

	#post(body: unknown): Promise<unknown> {
		return withDeadline(systemClock, "dev chain", CALL_MS, async (signal) => {
			const answer = await this.#pool.request({
				...{ method: "POST", path: "/", signal, body: JSON.stringify(body) },
				headers: { "content-type": "application/json" },
			});
			return answer.body.json();
		});
	}
}

function read(answer: unknown): RpcOutcome {
	if (typeof answer !== "object" || answer === null) return { ok: false, code: 0, message: "no answer" };
	const { result = null, error } = answer as { result?: unknown; error?: Extract<RpcOutcome, { ok: false }> };
	return error === undefined ? { ok: true, result } : { ...error, ok: false };
}

/** The head of a chain, with the terms of the block after it. */
export interface ChainHead {
	readonly number: number;
	readonly hash: string;
	/** Unix seconds. */
	readonly timestamp: number;
	/** The base fee (wei per gas) and gas limit of the next block. */
	readonly nextBaseFee: bigint;
	readonly nextGasLimit: bigint;
}

/** Reads the head. Asks the node for the next base fee, since cheat codes can set it. */
export async function readHead(rpc: ChainRpc): Promise<ChainHead> {
	const blocks = await rpc.each("eth_getBlockByNumber", [
		["latest", false],
		["pending", false],
	]);
	const [latest, pending] = blocks as [Record<string, string>, Record<string, string>];
	return {
		number: Number(latest.number),
		hash: String(latest.hash),
		timestamp: Number(latest.timestamp),
		nextBaseFee: BigInt(pending.baseFeePerGas ?? 0),
		nextGasLimit: BigInt(pending.gasLimit ?? 0),
	};
}

/** A mined block. */
export interface MinedBlock {
	readonly number: number;
	readonly hash: string;
	/** Unix seconds. */
	readonly timestamp: number;
	/** In wei. */
	readonly baseFeePerGas: bigint;
	readonly gasUsed: bigint;
	/** Hashes, in order of execution. */
	readonly transactions: readonly string[];
}

/** Reads the latest block. */
export async function readLatestBlock(rpc: ChainRpc): Promise<MinedBlock> {
	const block = (await rpc.call("eth_getBlockByNumber", ["latest", false])) as Record<string, unknown>;
	return {
		number: Number(block.number),
		hash: String(block.hash),
		timestamp: Number(block.timestamp),
		baseFeePerGas: BigInt(String(block.baseFeePerGas)),
		gasUsed: BigInt(String(block.gasUsed)),
		transactions: block.transactions as string[],
	};
}

/** `0x` hex without leading zeros. */
export function quantity(value: number | bigint): string {
	return `0x${value.toString(16)}`;
}
