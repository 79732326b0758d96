// Serves JSON-RPC over POST and websockets. Bodies of reads are forwarded unchanged; calls that boost handles itself go to the
// dispatcher one by one. The answer's headers show which upstream gave it.

import type { Clock } from "../../shared/clock.ts";
import {
	type CallContext,
	callContext,
	identify,
	type VerifySignature,
} from "../../shared/http/callContext.ts";
import { type HttpAnswer, httpAnswerOf, retryAfter } from "../../shared/http/messages.ts";
import type { RateLimiter } from "../../shared/http/rateLimit.ts";
import type { PostRequest } from "../../shared/http/routes.ts";
import { boundedQuery } from "../../shared/http/submissionQuery.ts";
import {
	createDispatcher,
	type Dispatcher,
	methodNotFound,
	oversized,
} from "../../shared/jsonrpc/dispatch.ts";
import {
	type CallOutcome,
	type RpcAnswer,
	type RpcBody,
	type RpcCall,
	readBody,
} from "../../shared/jsonrpc/envelope.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { Logger } from "../../shared/log.ts";
import type { Upstreams } from "../domain/ports.ts";
import type { RequestState, RoutingInfo } from "../domain/request.ts";
import { type Failover, unavailable, verdictError } from "../requests/failover.ts";
import type { Subscriptions } from "../subscriptions/subscriptions.ts";
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
	/** For websockets. */
	readonly subscriptions: Pick<Subscriptions, "subscribe" | "unsubscribe" | "call">;
	/** Called for each body with transactions that was forwarded on one of the relay's own paths. */
	readonly onPassed: () => void;
	readonly clock: Clock;
	readonly log: Logger;
	readonly onCall: (method: string, outcome: CallOutcome, seconds: number) => void;
}

/** How much of the budget each entry of a batch adds, and the most a batch gets, in ms: routers allow 30 s. */
const BATCH_PART = 0.02;
const BATCH_MS = 25_000;

/** A call that can be forwarded unchanged. */
type Passable = RpcCall & { readonly params: readonly unknown[] };

/** Submissions on these paths go to our relay only, with a longer deadline. */
const RELAY_PATHS: ReadonlySet<string> = new Set(["/fullprivacy", "/maxbackruns", "/nochecks"]);
/** Paths that accept websockets, as on the relay. */
export const WEBSOCKET_PATHS: readonly string[] = ["/", "/ws", "/fast", "/noreverts", ...RELAY_PATHS];
const RELAY_PATH_MS = 27_000;

/** Serves POSTs on boost's own paths, and websockets' messages. */
export class BoostIngress {
	readonly messages: Dispatcher<CallContext> = {
		dispatch: (body, call) => this.#message(body as Buffer, call),
	};
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
					call: (method, params, { call, state }) =>
						this.#overWebsocket(method, params, call) ?? read(method, params, state),
				},
				limiter: {
					take(context, entry, weight) {
						if (context.granted === 0) return limiter.take(context.call, entry, weight);
						context.granted -= 1;
						return 0;
					},
				},
				log,
				clock,
				onCall: (method, outcome, seconds) => onCall(labelOf(method), outcome, seconds),
			},
		);
	}

	async post(request: PostRequest): Promise<HttpAnswer> {
		const { target, headers, from, body, life } = request;
		const { limiter, verifySignature, upstreams } = this.#dependencies;
		const limited = limiter.takeBody(from, body.length);
		if (limited !== null) return httpAnswerOf(limited);
		const { client, signatureError } = identify(headers, from, body, verifySignature);
		const call = callContext(target, client, headers.origin ?? null, null, null, life);
		const signature = headers["x-flashbots-signature"];
		const { answer, routing } = await this.#serve(body, call, {
			search: target.search,
			signature: typeof signature === "string" ? signature : null,
			refusal: request.shutdownError ?? signatureError,
		});
		const ours = routingHeaders(routing, upstreams.relay.breaker.state);
		return { status: answer.status, body: answer.body, headers: Object.assign(ours, answer.headers) };
	}

	async #message(body: Buffer, call: CallContext): Promise<RpcAnswer> {
		const sent = { search: call.query.toString(), signature: null, refusal: null };
		const { answer } = await this.#serve(body, call, sent);
		return { status: answer.status, text: answer.body === null ? null : String(answer.body), retryMs: 0 };
	}

	async #serve(
		body: Buffer,
		call: CallContext,
		sent: {
			readonly search: string;
			readonly signature: string | null;
			readonly refusal: RpcError | null;
		},
	): Promise<{ readonly answer: HttpAnswer; readonly routing: RoutingInfo }> {
		const { client, origin, life, path, connection } = call;
		const read = readBody(body, this.#options.maxBatch);
		const search = boundedQuery(sent.search);
		const routing: RoutingInfo = { answeredBy: new Set(), attempts: 0, dropped: new Set() };
		const isRelays =
			connection !== null &&
			RELAY_PATHS.has(path) &&
			!(read instanceof RpcError) &&
			read.calls.some(({ method }) => kindOf(method) === "submission" || kindOf(method) === "sync");
		const state: RequestState = {
			caller: {
				address: client.address,
				signer: client.signer,
				origin,
				via: client.via ?? null,
				signature: sent.signature,
				life,
			},
			path: path === "/noreverts" ? "noreverts" : "fast",
			target: isRelays ? (search === "" ? path : `${path}?${search}`) : null,
			search,
			whole: wholeOf(read, body),
			until: this.#dependencies.clock.monotonic() + (isRelays ? RELAY_PATH_MS : this.#budgetMs(read)),
			routing,
		};
		const context: BoostContext = { call, state, granted: 0 };
		const passed = sent.refusal === null ? await this.#passOn(read, body, context) : null;
		if (isRelays) this.#dependencies.onPassed();
		const answer =
			passed === null || passed instanceof RpcError
				? await this.#dispatch(read, context, passed ?? sent.refusal)
				: passed;
		return { answer, routing };
	}

	/** A call that only the relay serves, made over a websocket; null for any other. */
	#overWebsocket(method: string, params: readonly unknown[], call: CallContext): Promise<unknown> | null {
		const { connection } = call;
		if (connection === null || !RELAY_ONLY.has(method)) return null;
		const { subscriptions } = this.#dependencies;
		if (method === "eth_subscribe") return subscriptions.subscribe(params, call, connection);
		if (method !== "eth_unsubscribe") return subscriptions.call(method, params, call, connection);
		const [id] = params;
		if (typeof id === "string") return subscriptions.unsubscribe(id, connection);
		throw new RpcError("invalidParams", "invalid params: id: expected the id of a subscription");
	}

	/** A batch's submissions are sent one after another, so a longer batch gets more time. */
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
	 * Forwards a body of reads unchanged. Null if it has other calls too; the error if no upstream answered, so that the calls
	 * are not sent twice.
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
		const { connection } = context.call;
		// On websockets these calls use the client's own connection to the relay, which keeps their order.
		if (connection !== null && state.target === null && calls.some(({ method }) => RELAY_ONLY.has(method)))
			return null;
		if (!calls.every((one): one is Passable => this.#isPassable(one, state))) return null;
		const ids = calls.map(({ id }) => id);
		if (ids.every((id) => id === undefined)) return null;
		const kinds = calls.map(({ method }) => kindOf(method));
		const relayOnly = state.target !== null || kinds.includes("relay") || kinds.includes("byHash");
		if (relayOnly && upstreams.relay.breaker.isUnavailable)
			return state.target === null ? null : unavailable("the relay is out");
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
			const isMerged = state.target === null && kinds.includes("byHash") && !kinds.includes("relay");
			return isMerged ? null : thrown;
		}
	}

	/** Whether one upstream's answer is complete. */
	#isPassable(call: RpcCall, state: RequestState): boolean {
		const { fault, id, params, method } = call;
		if (oversized(call, maxParamsSizeOf(method)) !== null) return false;
		if (fault !== null || params === null || (id !== undefined && typeof id === "object" && id !== null))
			return false;
		if (state.target !== null) return true;
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

	/** Serializes one call again and returns its result. Throws an upstream's error as ForeignRpcError. */
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

/** A body that is one call with an id can be forwarded unchanged. */
function wholeOf(read: RpcBody | RpcError, body: Buffer): RequestState["whole"] {
	if (read instanceof RpcError || read.batch) return null;
	const id = read.calls[0]?.id;
	return id === undefined ? null : { body, id };
}
