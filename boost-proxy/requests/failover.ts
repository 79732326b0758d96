// One budget of time for all attempts of a request: reads are sent to one upstream after another, the first answer counts;
// submissions share the time in the same way.

import type { Clock } from "../../shared/clock.ts";
import type { RpcId } from "../../shared/jsonrpc/envelope.ts";
import { ForeignRpcError, RPC_ERRORS, RpcError } from "../../shared/jsonrpc/errors.ts";
import type { Upstream, Upstreams } from "../domain/ports.ts";
import type { RequestState, UpstreamName, WireVerdict } from "../domain/request.ts";

export interface FailoverDependencies {
	readonly upstreams: Upstreams;
	readonly clock: Clock;
}

/** Shares a request's time among the upstreams, and sends reads on, to one after another. */
export class Failover {
	readonly #budgetMs: number;
	readonly #upstreams: Upstreams;
	readonly #clock: Clock;

	constructor(options: { readonly budgetMs: number }, dependencies: FailoverDependencies) {
		this.#budgetMs = options.budgetMs;
		this.#upstreams = dependencies.upstreams;
		this.#clock = dependencies.clock;
	}

	/** Ms that are left of a request's budget, 0 at least. */
	leftMs(state: RequestState): number {
		return Math.max(0, state.until - this.#clock.monotonic());
	}

	/** What the attempt at the `i`th of `order` may take in ms, 0 where there is no time. */
	shareMs(kind: "read" | "submission", order: readonly Upstream[], i: number, state: RequestState): number {
		const others = order.slice(i + 1).some(({ breaker }) => !breaker.isUnavailable);
		return attemptMs(kind, this.#budgetMs, this.leftMs(state), others);
	}

	/**
	 * Sends a body of reads as it is to the relay, then to the fallback unless it is for the relay alone. Answers the
	 * bytes to pass on. Throws RpcError `unavailable`.
	 */
	async read(
		request: {
			readonly body: Buffer | string;
			readonly ids: readonly (RpcId | undefined)[];
			readonly batch: boolean;
			readonly relayOnly: boolean;
		},
		state: RequestState,
	): Promise<{ readonly body: Buffer; readonly status: number }> {
		const { path, target, search, caller, routing } = state;
		let failing: { body: Buffer; by: UpstreamName } | null = null;
		const order = this.#readers(request);
		for (const [i, upstream] of order.entries()) {
			const deadlineMs = this.shareMs("read", order, i, state);
			if (deadlineMs === 0) break;
			const { ids, batch } = request;
			const options = { deadlineMs, caller, routing, path, target, search, ids, batch };
			const reading = await upstream.read(request.body, options);
			if (reading?.kind === "answered") {
				routing.answeredBy.add(upstream.name);
				return reading;
			}
			if (reading?.kind === "failed" && reading.body !== undefined) {
				failing ??= { body: reading.body, by: upstream.name };
			}
		}
		if (failing === null) throw unavailable("no upstream answers");
		routing.answeredBy.add(failing.by);
		return { body: failing.body, status: 200 };
	}

	#readers(request: { readonly batch: boolean; readonly relayOnly: boolean }): readonly Upstream[] {
		const { relay, fallback } = this.#upstreams;
		return fallback === null || request.relayOnly || (request.batch && fallback.dialect?.batches === false)
			? [relay]
			: [relay, fallback];
	}
}

/**
 * An upstream's verdict as our client gets it. A limit of the relay's is this client's own, and told by HTTP too where it
 * is of requests: a share of the pool that is used up has a reason, and does not pass by waiting a second.
 */
export function verdictError({ code, message, data }: WireVerdict): Error {
	const { reason } = (data ?? {}) as { reason?: unknown };
	return code === RPC_ERRORS.rateLimit.code && reason === undefined
		? new RpcError("rateLimit", message, data)
		: new ForeignRpcError(code, message, data);
}

/** The answer where nobody can serve it now: −32603 under HTTP 503. */
export function unavailable(why: string): RpcError {
	return new RpcError("unavailable", `no relay available: ${why}`);
}

/** Of the whole, what the first of two upstreams gets of a submission at most. */
const SHARE = 0.4;
/** What each upstream gets at least, in ms, where the budget is long enough for two of it. */
const FLOOR_MS = 1_000;
/** What is left for the other one when the first has had its share of a read, in ms. */
const READ_RESERVE = 0.2;

/** What a submission to the first of two upstreams may take, in ms, with a total of `budgetMs`. */
export function submissionShareMs(budgetMs: number): number {
	return Math.max(budgetMs * SHARE, Math.min(FLOOR_MS, budgetMs / 2));
}

/**
 * The deadline of one attempt in ms, 0 where there is no time: `leftMs` of `budgetMs` are left. With `others` to come a
 * submission gets its share; the last one gets all.
 */
export function attemptMs(
	kind: "read" | "submission",
	budgetMs: number,
	leftMs: number,
	others: boolean,
): number {
	if (leftMs <= 0) return 0;
	if (!others) return leftMs;
	if (kind === "read") return leftMs * (1 - READ_RESERVE);
	return Math.min(submissionShareMs(budgetMs), Math.max(leftMs - FLOOR_MS, leftMs / 2));
}
