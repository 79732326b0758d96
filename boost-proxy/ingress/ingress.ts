// Serves JSON-RPC over POST and websockets. Bodies of reads are forwarded unchanged. The dispatcher
// handles calls that boost serves itself, one by one. The answer's headers show which upstream gave
// it.

import { identify, type VerifySignature } from "../../shared/client.ts";
import type { Clock } from "../../shared/clock.ts";
import { type CallContext, callContext } from "../../shared/http/callContext.ts";
import { type HttpAnswer, httpAnswerOf, retryAfter } from "../../shared/http/messages.ts";
import type { RateLimiter } from "../../shared/http/rateLimit.ts";
import type { PostRequest } from "../../shared/http/routes.ts";
import { type CallOutcome, rateLimited, type WrittenAnswer } from "../../shared/jsonrpc/answers.ts";
import type { RpcCall } from "../../shared/jsonrpc/client.ts";
import { createDispatcher, type Dispatcher } from "../../shared/jsonrpc/dispatch.ts";
import { type ReceivedCall, type RpcBody, readBody } from "../../shared/jsonrpc/envelope.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { ExactNumber } from "../../shared/jsonrpc/ids.ts";
import { isOtherRelays, unknownMethod } from "../../shared/jsonrpc/methodNotFound.ts";
import { asksPending } from "../../shared/jsonrpc/reads.ts";
import type { Logger } from "../../shared/log.ts";
import { boundedQuery } from "../../shared/submissionQuery.ts";
import type { Upstreams } from "../domain/ports.ts";
import type { RequestState, RoutingInfo } from "../domain/request.ts";
import { type Failover, unavailable, verdictError } from "../requests/failover.ts";
import type { Subscriptions } from "../subscriptions/subscriptions.ts";
import { readCalls, rounded } from "../upstream/verdict.ts";
import {
	type BoostContext,
	type BoostMethodDependencies,
	boostMethods,
	isKnown,
	KNOWN_METHODS,
	kindOf,
	labelOf,
	maxParamsSizeOf,
	RELAY_ONLY,
	weightOf,
} from "./methods.ts";
import { clientsAnswer, ownBody } from "./ownBody.ts";
import type { ReportedChain } from "./reportedChain.ts";
import { isFaulty, routeOf } from "./route.ts";
import { routingHeaders } from "./routingHeaders.ts";

export interface IngressOptions {
	readonly maxBatch: number;
	readonly budgetMs: number;
}

export interface IngressDependencies extends Omit<BoostMethodDependencies, "read"> {
	readonly failover: Failover;
	readonly reported: Pick<ReportedChain, "checked">;
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

/**
 * The share of the budget that each entry of a batch adds, and the maximum for a batch, in ms:
 * routers allow 30 s.
 */
const BATCH_PART = 0.02;
const BATCH_MS = 25_000;

/** Submissions on these paths go only to our relay, with a longer deadline. */
const RELAY_PATHS: ReadonlySet<string> = new Set(["/fullprivacy", "/maxbackruns", "/nochecks"]);
/** Paths that accept websockets, as on the relay. */
export const WEBSOCKET_PATHS: readonly string[] = ["/", "/ws", "/fast", "/noreverts", ...RELAY_PATHS];
const RELAY_PATH_MS = 27_000;

/** Serves POSTs on boost's own paths, and websockets' messages. */
export class BoostIngress {
	readonly messages: Dispatcher<CallContext> = {
		read: (body) => readBody(body, this.#options.maxBatch),
		answersWithoutId: (method) => RELAY_ONLY.get(method)?.answeredWithoutId === true,
		dispatch: (read, call) => this.#message(read, call),
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
						const isGranted = entry !== null && context.granted?.has(entry) === true;
						return isGranted ? 0 : limiter.take(context.call, entry, weight);
					},
				},
				log,
				requestOf: ({ call }) => call.requestId,
				clock,
				onCall: (method, outcome, seconds) => onCall(labelOf(method), outcome, seconds),
			},
		);
	}

	async post(request: PostRequest): Promise<HttpAnswer> {
		const { target, headers, requestId, from, body, life } = request;
		const { limiter, verifySignature, upstreams } = this.#dependencies;
		const limited = limiter.takeBody(from, body, life);
		if (limited !== null) return httpAnswerOf(limited);
		const { client, signatureError } = identify(headers, from, body, verifySignature);
		const call = callContext(target, client, headers.origin ?? null, null, null, life, requestId);
		const signature = headers["x-flashbots-signature"];
		const reading = readBody(body, this.#options.maxBatch);
		const read = reading instanceof Promise ? await reading : reading;
		const { answer, routing } = await this.#serve(read, call, {
			search: target.search,
			signature: typeof signature === "string" ? signature : null,
			error: request.shutdownError ?? signatureError,
		});
		const ours = routingHeaders(routing, upstreams.relay.breaker.state);
		return { status: answer.status, body: answer.body, headers: Object.assign(ours, answer.headers) };
	}

	async #message(read: RpcBody | RpcError, call: CallContext): Promise<WrittenAnswer> {
		const sent = { search: call.query.toString(), signature: null, error: null };
		const { answer } = await this.#serve(read, call, sent);
		return { status: answer.status, text: answer.body === null ? null : String(answer.body), retryMs: 0 };
	}

	async #serve(
		read: RpcBody | RpcError,
		call: CallContext,
		sent: {
			readonly search: string;
			readonly signature: string | null;
			readonly error: RpcError | null;
		},
	): Promise<{ readonly answer: HttpAnswer; readonly routing: RoutingInfo }> {
		const { client, origin, life, path, connection, requestId } = call;
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
				digest: client.digest,
				readSignature: client.readSignature,
				requestId,
				life,
			},
			path: path === "/noreverts" ? "noreverts" : "fast",
			target: isRelays ? (search === "" ? path : `${path}?${search}`) : null,
			search,
			until: this.#dependencies.clock.monotonic() + (isRelays ? RELAY_PATH_MS : this.#budgetMs(read)),
			routing,
		};
		const context: BoostContext = { call, state, granted: null };
		const passed = sent.error === null ? await this.#passOn(read, context) : null;
		if (isRelays) this.#dependencies.onPassed();
		const answer =
			passed === null || passed instanceof RpcError
				? await this.#dispatch(read, context, passed ?? sent.error)
				: passed;
		return { answer, routing };
	}

	/** Makes a call that only the relay serves, over a websocket; null for any other. */
	#overWebsocket(method: string, params: readonly unknown[], call: CallContext): Promise<unknown> | null {
		const { connection } = call;
		if (connection === null || !RELAY_ONLY.has(method)) return null;
		const { subscriptions, upstreams } = this.#dependencies;
		if (isUnserved(method) && upstreams.relay.breaker.isUnavailable) return null;
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
		errorForAll: RpcError | null,
	): Promise<HttpAnswer> {
		const answer = await this.#dispatcher.dispatch(read, context, errorForAll);
		const { breaker } = this.#dependencies.upstreams.relay;
		// Over the rate limit it is 429. Otherwise nothing can serve it before the relay is tried
		// again.
		const isUnserved = answer.status === 200 && answer.retryMs > 0;
		return httpAnswerOf(isUnserved ? { ...answer, retryMs: breaker.retryMs || answer.retryMs } : answer);
	}

	/**
	 * Forwards a body if {@link routeOf} allows it. The body stays unchanged if every upstream
	 * understands it as it is and its answers have distinct ids. Null if the dispatcher has to serve
	 * it. Returns the error if no upstream answered, so that the calls are not sent twice.
	 */
	async #passOn(read: RpcBody | RpcError, context: BoostContext): Promise<HttpAnswer | RpcError | null> {
		if (read instanceof RpcError) return null;
		const { limiter, upstreams } = this.#dependencies;
		const { state, call } = context;
		const { calls, batch } = read;
		const { connection } = call;
		const isRelays = state.target !== null;
		const route = routeOf(read, {
			isWebsocket: connection !== null,
			isRelays,
			isRelayUnavailable: upstreams.relay.breaker.isUnavailable,
			fallbackBatches: upstreams.fallback?.dialect?.batches !== false,
			isComplete: (one) => this.#isComplete(one),
		});
		if (route.kind === "dispatch") return null;
		if (route.kind === "refuse") return unavailable("the relay is down");
		const { wanted, relayOnly, mayDispatch } = route;
		const granted = new Set<ReceivedCall>();
		let waitMs = 0;
		for (const one of wanted) {
			const wait = limiter.take(call, one, weightOf(one.method));
			if (wait === 0) granted.add(one);
			else waitMs = Math.max(waitMs, wait);
		}
		context.granted = granted;
		if (granted.size === 0) return isRelays ? rateLimited(waitMs) : null;
		const isWhole =
			granted.size === calls.length &&
			haveOwnIds(calls) &&
			(calls.every(isPlain) || (relayOnly && connection === null));
		try {
			return isWhole
				? await this.#forward(read, relayOnly, state)
				: await this.#forwardSome(read, { granted, waitMs, relayOnly }, context);
		} catch (thrown) {
			if (!(thrown instanceof RpcError)) throw thrown;
			const [only] = wanted;
			if (!batch && only !== undefined && thrown.kind === "unavailable" && isUnserved(only.method))
				return unknownMethod(only.method, KNOWN_METHODS);
			return mayDispatch ? null : thrown;
		}
	}

	/** Forwards a body unchanged, and its answer. */
	#forward({ calls, batch, bytes }: RpcBody, relayOnly: boolean, state: RequestState): Promise<HttpAnswer> {
		const { clock, failover, reported } = this.#dependencies;
		const begun = clock.monotonic();
		const ids = calls.map(({ id }) => id);
		const forFallback = this.#forFallback(calls, relayOnly, state);
		return failover.read({ body: bytes, ids, batch, relayOnly, forFallback }, state).then((answer) => {
			this.#countCalls(calls, begun);
			return passedAnswer(answer.status, reported.checked(calls, batch, answer));
		});
	}

	/** Forwards the granted calls in a body of boost's own and answers the others here. */
	async #forwardSome(
		{ calls, batch, bytes }: RpcBody,
		{
			granted,
			waitMs,
			relayOnly,
		}: { readonly granted: ReadonlySet<ReceivedCall>; readonly waitMs: number; readonly relayOnly: boolean },
		context: BoostContext,
	): Promise<HttpAnswer> {
		const begun = this.#dependencies.clock.monotonic();
		const sent = [...granted];
		const { body, ids } = ownBody(sent, batch);
		const answer = await this.#dependencies.failover.read(
			{ body, ids, batch, relayOnly, forFallback: this.#forFallback(sent, relayOnly, context.state) },
			unsigned(context.state),
		);
		this.#countCalls(sent, begun);
		const asSent = sent.map(({ method }, i) => ({ id: ids[i], method }));
		const checked = this.#dependencies.reported.checked(asSent, batch, answer);
		const others = new Map<ReceivedCall, Buffer | string | null>();
		for (const one of calls) {
			if (granted.has(one)) continue;
			const error = isFaulty(one) ? null : rateLimited(waitMs);
			const single = { batch: false, calls: [one], bytes };
			others.set(one, (await this.#dispatcher.dispatch(single, context, error)).text);
		}
		const own = await clientsAnswer(calls, others, Buffer.from(checked), batch);
		return passedAnswer(others.size === 0 ? answer.status : 200, own);
	}

	#countCalls(calls: Iterable<ReceivedCall>, begun: number): void {
		const { clock, onCall } = this.#dependencies;
		const seconds = (clock.monotonic() - begun) / 1000;
		for (const { method } of calls) onCall(labelOf(method), "ok", seconds);
	}

	/** The calls that the fallback gets instead of `calls`; null: the same. */
	#forFallback(
		calls: readonly Pick<ReceivedCall, "method" | "params">[],
		relayOnly: boolean,
		{ caller }: RequestState,
	): readonly RpcCall[] | null {
		if (relayOnly || !calls.some(({ method, params }) => params !== null && asksPending(method, params)))
			return null;
		const { views } = this.#dependencies;
		return calls.map(({ method, params }) => views.forFallback({ method, params: params ?? [] }, caller));
	}

	/** Whether one upstream's answer is complete. */
	#isComplete(call: ReceivedCall): boolean {
		const { views } = this.#dependencies;
		const [first, second] = call.params ?? [];
		switch (kindOf(call.method)) {
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

	/**
	 * Serializes one call again and returns its result. Throws an upstream's error as
	 * ForeignRpcError.
	 */
	async #call(method: string, params: readonly unknown[], state: RequestState): Promise<unknown> {
		const { failover, reported, upstreams } = this.#dependencies;
		const relayOnly = kindOf(method) === "relay";
		if (relayOnly && upstreams.relay.breaker.isUnavailable && isUnserved(method))
			throw unknownMethod(method, KNOWN_METHODS);
		const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
		const forFallback = this.#forFallback([{ method, params }], relayOnly, state);
		const answer = await failover.read(
			{ body, ids: [1], batch: false, relayOnly, forFallback },
			unsigned(state),
		);
		const checked = reported.checked([{ id: 1, method }], false, answer);
		const [read] = readCalls({ kind: "answered", ...answer, body: Buffer.from(checked) }, [1]) ?? [];
		if (read === undefined) throw unavailable("no upstream answers");
		if (read.ok) return read.result;
		throw verdictError(read.error);
	}
}

/** The state of a request for a body that the client's signature does not cover. */
function unsigned(state: RequestState): RequestState {
	return { ...state, caller: { ...state.caller, signature: null } };
}

/**
 * Whether boost knows no relay that serves the method. Our relay is still tried while it is
 * available: it may be newer.
 */
function isUnserved(method: string): boolean {
	return !isKnown(method) || isOtherRelays(method);
}

/** Whether any upstream understands the call as it is written, and echoes its id. */
function isPlain({ id, isStrict }: ReceivedCall): boolean {
	return isStrict && !(id instanceof ExactNumber);
}

/** Whether answers to `calls` have distinct ids once they are parsed. */
function haveOwnIds(calls: readonly ReceivedCall[]): boolean {
	if (calls.length < 2) return true;
	const ids = calls.flatMap(({ id }) => (id === undefined ? [] : [rounded(id)]));
	return new Set(ids).size === ids.length;
}

function passedAnswer(status: number, body: Buffer | string | null): HttpAnswer {
	const headers = status === 429 ? { headers: { "retry-after": retryAfter(1_000) } } : {};
	return { status, body: body?.length === 0 ? null : body, ...headers };
}
