// Sends reads to one upstream after another until one answers. Also makes the errors of requests
// that no upstream served.

import type { Clock } from "../../shared/clock.ts";
import type { RpcCall } from "../../shared/jsonrpc/client.ts";
import { ForeignRpcError, RPC_ERRORS, RpcError } from "../../shared/jsonrpc/errors.ts";
import type { RpcId } from "../../shared/jsonrpc/ids.ts";
import { attemptMs, leftMs } from "../domain/budget.ts";
import type { Upstream, Upstreams } from "../domain/ports.ts";
import type { ReadAnswer, RequestState, UpstreamName, WireVerdict } from "../domain/request.ts";

export interface FailoverDependencies {
	readonly upstreams: Upstreams;
	readonly clock: Clock;
}

export class Failover {
	readonly #budgetMs: number;
	readonly #upstreams: Upstreams;
	readonly #clock: Clock;

	constructor(options: { readonly budgetMs: number }, dependencies: FailoverDependencies) {
		this.#budgetMs = options.budgetMs;
		this.#upstreams = dependencies.upstreams;
		this.#clock = dependencies.clock;
	}

	/** Ms left of a request's budget, at least 0. */
	leftMs(state: RequestState): number {
		return leftMs(state, this.#clock.monotonic());
	}

	/**
	 * Sends a body of reads unchanged to the relay, then to the fallback unless `relayOnly`.
	 * `forFallback`: calls that the fallback gets instead, with the ids of the body's calls. Returns
	 * the answer's bytes. Throws RpcError `unavailable`.
	 */
	async read(
		request: {
			readonly body: Buffer | string;
			readonly ids: readonly (RpcId | undefined)[];
			readonly batch: boolean;
			readonly relayOnly: boolean;
			readonly forFallback: readonly RpcCall[] | null;
		},
		state: RequestState,
	): Promise<ReadAnswer> {
		const { path, target, search, caller, routing } = state;
		let failing: { body: Buffer; by: UpstreamName } | null = null;
		const order = this.#readers(request);
		for (const [i, upstream] of order.entries()) {
			const others = order.slice(i + 1).some(({ breaker }) => !breaker.isUnavailable);
			const deadlineMs = attemptMs("read", this.#budgetMs, this.leftMs(state), others);
			if (deadlineMs === 0) break;
			const { ids, batch, forFallback } = request;
			// This leaves time for its calls one by one.
			if (batch && upstream.dialect?.batches === false) break;
			const isReplaced = upstream.dialect !== null && forFallback !== null;
			const body = isReplaced ? bodyOf(forFallback, ids, batch) : request.body;
			const options = { deadlineMs, caller, routing, path, target, search, ids, batch };
			const reading = await upstream.read(body, options);
			if (reading?.kind === "answered") {
				routing.answeredBy.add(upstream.name);
				return { body: reading.body, status: reading.status, by: upstream.name };
			}
			if (reading?.kind === "failed" && reading.body !== undefined) {
				failing ??= { body: reading.body, by: upstream.name };
			}
		}
		if (failing === null) throw unavailable("no upstream answers");
		routing.answeredBy.add(failing.by);
		return { body: failing.body, status: 200, by: failing.by };
	}

	#readers({ relayOnly }: { readonly relayOnly: boolean }): readonly Upstream[] {
		const { relay, fallback } = this.#upstreams;
		return fallback === null || relayOnly ? [relay] : [relay, fallback];
	}
}

function bodyOf(calls: readonly RpcCall[], ids: readonly (RpcId | undefined)[], batch: boolean): string {
	const entries = calls.map(({ method, params }, i) => ({ jsonrpc: "2.0", id: ids[i], method, params }));
	return JSON.stringify(batch ? entries : entries[0]);
}

/**
 * An upstream's verdict as the client gets it. A rate limit of the relay applies to this client and
 * becomes HTTP 429. With a `reason` it is a full quota of the pool, for which waiting a second does
 * not help. With other words it is the node's limit on the range of one read.
 */
export function verdictError({ code, message, data }: WireVerdict): Error {
	const { reason } = (data ?? {}) as { reason?: unknown };
	return code === RPC_ERRORS.rateLimit.code && reason === undefined && message.startsWith("limit exceeded")
		? new RpcError("rateLimit", message, data)
		: new ForeignRpcError(code, message, data);
}

/** The error if no upstream can serve a request now: −32603 with `Retry-After`. */
export function unavailable(why: string): RpcError {
	return new RpcError("unavailable", `no relay available: ${why}`);
}
