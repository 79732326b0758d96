// The dev network's JSON-RPC client for anvil. It shares nothing with the relay's, retries nothing and knows no
// method.

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
export class ChainRpcError extends Error {
	readonly code: number;
	readonly data: unknown;
	constructor(method: string, code: number, message: string, data?: unknown) {
		super(`${method}: ${message} (${code})`);
		this.name = "ChainRpcError";
		this.code = code;
		this.data = data;
	}
}

/** Longer than any block of the dev chain takes on a busy machine. */
const CALL_MS = 60_000;

/** JSON-RPC over HTTP to one node; `close` ends its connections. */
export class ChainRpc {
	readonly #pool: Pool;
	#nextId = 1;

	constructor(url: string) {
		this.#pool = new Pool(url, { connections: 16, headersTimeout: 0, bodyTimeout: 0 });
	}

	/** Result of one call. Throws {@link ChainRpcError} when the node refuses it. */
	async call(method: string, params: readonly unknown[] = []): Promise<unknown> {
		const id = this.#nextId++;
		const outcome = read(await this.#post({ jsonrpc: "2.0", id, method, params }));
		if (!outcome.ok) throw new ChainRpcError(method, outcome.code, outcome.message, outcome.data);
		return outcome.result;
	}

	/** Many calls in one request, outcomes in their order; anvil runs them one after another up to 30. */
	async batch(calls: readonly ChainCall[]): Promise<RpcOutcome[]> {
		if (calls.length === 0) return [];
		const first = this.#nextId;
		this.#nextId += calls.length;
		const answers = await this.#post(calls.map((call, i) => ({ jsonrpc: "2.0", id: first + i, ...call })));
		if (!Array.isArray(answers)) throw new Error("the node did not answer a batch with a batch");
		const byId = new Map(answers.map((answer: { id?: unknown }) => [answer.id, answer]));
		return calls.map((_, i) => read(byId.get(first + i)));
	}

	/** The results of a batch of which none may fail. Throws {@link ChainRpcError}. */
	async all(calls: readonly ChainCall[]): Promise<unknown[]> {
		const outcomes = await this.batch(calls);
		return outcomes.map((outcome, i) => {
			if (outcome.ok) return outcome.result;
			throw new ChainRpcError(calls[i]?.method ?? "?", outcome.code, outcome.message, outcome.data);
		});
	}

	/** Ends all connections. */
	async close(): Promise<void> {
		await this.#pool.destroy();
	}

	#post(body: unknown): Promise<unknown> {
		return withDeadline(systemClock, "dev chain", CALL_MS, async (signal) => {
			const answer = await this.#pool.request({
				method: "POST",
				path: "/",
				headers: { "content-type": "application/json" },
				body: JSON.stringify(body),
				signal,
			});
			return answer.body.json();
		});
	}
}

function read(answer: unknown): RpcOutcome {
	if (typeof answer !== "object" || answer === null) return { ok: false, code: 0, message: "no answer" };
	if ("error" in answer && typeof answer.error === "object" && answer.error !== null) {
		const error: { code?: unknown; message?: unknown; data?: unknown } = answer.error;
		const data = error.data === undefined ? {} : { data: error.data };
		return { ok: false, code: Number(error.code), message: String(error.message), ...data };
	}
	return { ok: true, result: "result" in answer ? answer.result : null };
}
