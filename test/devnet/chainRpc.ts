// The dev network's JSON-RPC client for anvil, with its head and its latest block read as numbers and bigints. It shares
// nothing with the relay's, and retries nothing.

import { Pool } from "undici";
import { systemClock, withDeadline } from "../../shared/clock.ts";

/** One call of a batch. */
export interface ChainCall {
	readonly method: string;
	readonly params: readonly unknown[];
}

/** What the node said to one call of a batch. */
export type RpcOutcome =
	| { readonly ok: true; readonly result: unknown }
	| { readonly ok: false; readonly code: number; readonly message: string; readonly data?: unknown };

/** The node refused a call. */
class ChainRpcError extends Error {
	readonly code: number;
	readonly data: unknown;
	constructor(method: string, { code, message, data }: Extract<RpcOutcome, { ok: false }>) {
		super(`${method}: ${message} (${code})`);
		this.code = code;
		this.data = data;
	}
}

/** Longer than any block of the dev chain takes on a busy machine. */
const CALL_MS = 60_000;

/** JSON-RPC over HTTP to one node; `close` ends its connections. */
export class ChainRpc {
	readonly #pool: Pool;

	constructor(url: string) {
		this.#pool = new Pool(url, { connections: 16, headersTimeout: 0, bodyTimeout: 0 });
	}

	/** Result of one call. Throws {@link ChainRpcError} when the node refuses it. */
	async call(method: string, params: readonly unknown[] = []): Promise<unknown> {
		const outcome = read(await this.#post({ jsonrpc: "2.0", id: 1, method, params }));
		if (!outcome.ok) throw new ChainRpcError(method, outcome);
		return outcome.result;
	}

	/** Many calls in one request, outcomes in their order; anvil runs them one after another up to 30. */
	async batch(calls: readonly ChainCall[]): Promise<RpcOutcome[]> {
		if (calls.length === 0) return [];
		const answers = await this.#post(calls.map((call, id) => ({ jsonrpc: "2.0", id, ...call })));
		if (!Array.isArray(answers)) throw new Error("the node did not answer a batch with a batch");
		const byId = new Map(answers.map((answer: { id?: unknown }) => [answer.id, answer]));
		return calls.map((_, id) => read(byId.get(id)));
	}

	/** The results of a batch of which none may fail. Throws {@link ChainRpcError}. */
	async all(calls: readonly ChainCall[]): Promise<unknown[]> {
		const outcomes = await this.batch(calls);
		return outcomes.map((outcome, i) => {
			if (outcome.ok) return outcome.result;
			throw new ChainRpcError(calls[i]?.method ?? "?", outcome);
		});
	}

	/** The results of one method for each of `params`, of which none may fail. */
	each(method: string, params: readonly (readonly unknown[])[]): Promise<unknown[]> {
		return this.all(params.map((one) => ({ method, params: one })));
	}

	/** Ends all connections. */
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
	/** Of the next block: wei a gas, and gas. */
	readonly nextBaseFee: bigint;
	readonly nextGasLimit: bigint;
}

/** Reads the head. The node is asked for the next base fee, since cheat codes can set it. */
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
	/** Wei. */
	readonly baseFeePerGas: bigint;
	readonly gasUsed: bigint;
	/** Hashes, in order. */
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
