// Boost's JSON-RPC over POST. Reads are sent on whole, as they came; what boost understands itself goes to the
// dispatcher, entry by entry. The answer's headers say who gave it.

import type { Clock } from "../../shared/clock.ts";
import { callContext, identify, type VerifySignature } from "../../shared/http/callContext.ts";
import { type HttpAnswer, httpAnswerOf, retryAfter } from "../../shared/http/httpAnswer.ts";
import type { RateLimiter } from "../../shared/http/rateLimit.ts";
import type { PostHandler, PostRequest } from "../../shared/http/routes.ts";
import { boundedQuery } from "../../shared/http/submissionQuery.ts";
import {
	createDispatcher,
	type Dispatcher,
	methodNotFound,
	oversized,
} from "../../shared/jsonrpc/dispatch.ts";
import { type CallOutcome, type RpcBody, type RpcCall, readBody } from "../../shared/jsonrpc/envelope.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { Logger } from "../../shared/log.ts";
import type { Upstreams } from "../domain/ports.ts";
import type { RequestState, RoutingInfo } from "../domain/request.ts";
import { type Failover, unavailable, verdictError } from "../requests/failover.ts";
import { readCalls } from "../upstream/verdict.ts";
import {
	type BoostContext,
	type BoostMethodDependencies,
	boostMethods,
	kindOf,
	labelOf,
	maxParamsSizeOf,
	RELAY_ONLY,
	weightOf,
} from "./methods.ts";
import { routingHeaders } from "./routingHeaders.ts";

export interface IngressOptions {
	readonly maxBatch: number;
	readonly budgetMs: number;
}

export interface IngressDependencies extends Omit<BoostMethodDependencies, "read"> {
	readonly failover: Failover;
	readonly upstreams: Upstreams;
	readonly limiter: RateLimiter;
	readonly verifySignature: VerifySignature;
	readonly clock: Clock;
	readonly log: Logger;
	readonly onCall: (method: string, outcome: CallOutcome, seconds: number) => void;
}

/** What each entry of a batch adds, as a part of the budget; and what a batch has at most, in ms: routers give 30 s. */
const BATCH_PART = 0.02;
const BATCH_MS = 25_000;

/** A call that can be sent on as it is. */
type Passable = RpcCall & { readonly params: readonly unknown[] };

/** The handler of POSTs on boost's own paths. */
export function createBoostPost(options: IngressOptions, dependencies: IngressDependencies): PostHandler {
	const ingress = new BoostIngress(options, dependencies);
	return (request) => ingress.post(request);
}

class BoostIngress {
	readonly #options: IngressOptions;
	readonly #dependencies: IngressDependencies;
	readonly #dispatcher: Dispatcher<BoostContext>;

	constructor(options: IngressOptions, dependencies: IngressDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
		const read = (method: string, params: readonly unknown[], state: RequestState) =>
			this.#call(method, params, state);
		const { limiter, log, clock, onCall } = dependencies;
		this.#dispatcher = createDispatcher<BoostContext>(
			{ maxBatch: options.maxBatch },
			{
				methods: boostMethods({ ...dependencies, read }),
				fallback: {
					weigh: weightOf,
					maxParamsSize: maxParamsSizeOf,
					call: (method, params, { state }) => read(method, params, state),
				},
				limiter: {
					take(context, entry, weight) {
						if (context.granted === 0) return limiter.take(context.call, entry, weight);
						context.granted -= 1;
						return 0;
					},
				},
				...{ log, clock },
				onCall: (method, outcome, seconds) => onCall(labelOf(method), outcome, seconds),
			},
		);
	}

	async post(request: PostRequest): Promise<HttpAnswer> {
		const { target, headers, from, body, life } = request;
		const { limiter, verifySignature, upstreams } = this.#dependencies;
		const limited = limiter.takeBody(from, body.length);
		if (limited !== null) return httpAnswerOf(limited);
		const { client, refused } = identify(headers, from, body, verifySignature);
		const refusal = request.refusal ?? refused;
		const read = readBody(body, this.#options.maxBatch);
		const call = callContext(target, client, headers.origin ?? null, null, null, life);
		const routing: RoutingInfo = { answeredBy: new Set(), attempts: 0, dropped: new Set() };
		const signature = headers["x-flashbots-signature"];
		const state: RequestState = {
			caller: {
				address: client.address,
				signer: client.signer,
				origin: headers.origin ?? null,
				signature: typeof signature === "string" ? signature : null,
				life,
			},
			path: target.path === "/noreverts" ? "noreverts" : "fast",
			search: boundedQuery(target.search),
			whole: wholeOf(read, body),
			until: this.#dependencies.clock.monotonic() + this.#budgetMs(read),
			routing,
		};
		const context: BoostContext = { call, state, granted: 0 };
		const passed = refusal === null ? await this.#passOn(read, body, context) : null;
		const answer =
			passed === null || passed instanceof RpcError
				? await this.#dispatch(read, context, passed ?? refusal)
				: passed;
		const told = routingHeaders(routing, upstreams.relay.breaker.state);
		return { status: answer.status, body: answer.body, headers: Object.assign(told, answer.headers) };
	}

	/** A batch's submissions go one after another: the more there are, the longer it may take. */
	#budgetMs(read: RpcBody | RpcError): number {
		const { budgetMs } = this.#options;
		const entries = read instanceof RpcError || !read.batch ? 0 : read.calls.length;
		return Math.max(budgetMs, Math.min(BATCH_MS, budgetMs * (1 + entries * BATCH_PART)));
	}

	async #dispatch(
		read: RpcBody | RpcError,
		context: BoostContext,
		refusal: RpcError | null,
	): Promise<HttpAnswer> {
		const { state } = context;
		const own =
			state.whole === null
				? { ...context, state: { ...state, caller: { ...state.caller, signature: null } } }
				: context;
		const answer = await this.#dispatcher.dispatch(read, own, refusal);
		const { breaker } = this.#dependencies.upstreams.relay;
		return httpAnswerOf(answer.status === 503 ? { ...answer, retryMs: breaker.retryMs } : answer);
	}

	/**
	 * Sends a body of reads on as it came. Null where it is not one, or where it needs more than that; where nobody
	 * answered, the error: what may have been done must not be done again.
	 */
	async #passOn(
		read: RpcBody | RpcError,
		body: Buffer,
		context: BoostContext,
	): Promise<HttpAnswer | RpcError | null> {
		if (read instanceof RpcError) return null;
		const { clock, limiter, failover, upstreams, onCall } = this.#dependencies;
		const { state } = context;
		const { calls, batch } = read;
		if (!calls.every((one): one is Passable => this.#isPassable(one))) return null;
		const ids = calls.map(({ id }) => id);
		if (ids.every((id) => id === undefined)) return null;
		const kinds = calls.map(({ method }) => kindOf(method));
		const relayOnly = kinds.includes("relay") || kinds.includes("byHash");
		if (relayOnly && upstreams.relay.breaker.isUnavailable) return null;
		for (const one of calls) {
			if (limiter.take(context.call, one, weightOf(one.method)) > 0) return null;
			context.granted += 1;
		}
		const begun = clock.monotonic();
		try {
			const answer = await failover.read({ body, ids, batch, relayOnly }, state);
			const seconds = (clock.monotonic() - begun) / 1000;
			for (const { method } of calls) onCall(labelOf(method), "ok", seconds);
			const { status } = answer;
			if (status === 429) return { status, body: answer.body, headers: { "retry-after": retryAfter(1_000) } };
			return { status, body: answer.body };
		} catch (thrown) {
			if (!(thrown instanceof RpcError)) throw thrown;
			return kinds.includes("byHash") && !kinds.includes("relay") ? null : thrown;
		}
	}

	/** Whether one upstream's answer is the whole answer. */
	#isPassable(call: RpcCall): boolean {
		const { fault, id, params, method } = call;
		if (oversized(call, maxParamsSizeOf(method)) !== null) return false;
		if (fault !== null || params === null || (id !== undefined && typeof id === "object" && id !== null))
			return false;
		const { views } = this.#dependencies;
		const [first, second] = params;
		switch (kindOf(method)) {
			case "read":
			case "relay":
				return true;
			case "nonce":
				return (
					second !== "pending" || (typeof first === "string" && !views.needsMerging(first.toLowerCase()))
				);
			case "byHash":
				return typeof first === "string" && !views.needsMergingHash(first.toLowerCase());
			default:
				return false;
		}
	}

	/** One call written anew: its result. Throws what the upstream said as ForeignRpcError. */
	async #call(method: string, params: readonly unknown[], state: RequestState): Promise<unknown> {
		const { failover, upstreams } = this.#dependencies;
		const relayOnly = kindOf(method) === "relay";
		if (relayOnly && upstreams.relay.breaker.isUnavailable && !RELAY_ONLY.has(method))
			throw methodNotFound(method);
		const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
		const unsigned = { ...state, caller: { ...state.caller, signature: null } };
		const answer = await failover.read({ body, ids: [1], batch: false, relayOnly }, unsigned);
		const [read] = readCalls({ kind: "answered", ...answer }, [1]) ?? [];
		if (read === undefined) throw unavailable("no upstream answers");
		if (read.ok) return read.result;
		throw verdictError(read.error);
	}
}

/** Where the body is one call with an id, it can be sent on as it came. */
function wholeOf(read: RpcBody | RpcError, body: Buffer): RequestState["whole"] {
	if (read instanceof RpcError || read.batch) return null;
	const id = read.calls[0]?.id;
	return id === undefined ? null : { body, id };
}
