// Whom a server hands its requests to: JSON-RPC over POST goes to a dispatcher, and what is on no path of its own to whoever
// passes it on, unread, so that it can be streamed.

import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Dispatcher } from "../jsonrpc/dispatch.ts";
import type { RpcError } from "../jsonrpc/errors.ts";
import {
	type CallContext,
	type ClientAddress,
	callContext,
	identify,
	type RequestLife,
	type RequestTarget,
	type VerifySignature,
} from "./callContext.ts";
import { type HttpAnswer, httpAnswerOf } from "./httpAnswer.ts";
import type { RateLimiter } from "./rateLimit.ts";

/** A POST on one of the JSON-RPC paths. */
export interface PostRequest {
	readonly target: RequestTarget;
	readonly headers: IncomingHttpHeaders;
	/** Who sent it, by its connection and headers. */
	readonly from: ClientAddress;
	/** As it came, at most as long as the server reads. */
	readonly body: Buffer;
	readonly life: RequestLife;
	/** Set while the server shuts down: the request shall be refused with it. */
	readonly refusal: RpcError | null;
}

/** Answers a POST; never rejects. */
export type PostHandler = (request: PostRequest) => Promise<HttpAnswer>;

interface RpcOverHttpDependencies {
	readonly dispatcher: Dispatcher<CallContext>;
	/** Takes what a body weighs. */
	readonly limiter: Pick<RateLimiter, "takeBody">;
	/** Where absent, the header `X-Flashbots-Signature` is refused. */
	readonly verifySignature?: VerifySignature;
	/** Why no request can be served well now, or null: answered with 503. */
	readonly unavailable?: () => RpcError | null;
}

/** The handler of POSTs on the JSON-RPC paths. */
export function rpcOverHttp(dependencies: RpcOverHttpDependencies): PostHandler {
	const { dispatcher, limiter, unavailable, verifySignature } = dependencies;
	return async ({ target, headers, from, body, life, refusal }) => {
		const limited = limiter.takeBody(from, body.length);
		if (limited !== null) return httpAnswerOf(limited);
		const { client, refused } = identify(headers, from, body, verifySignature);
		const origin = headers.origin ?? null;
		const context = callContext(target, client, origin, null, null, life);
		return httpAnswerOf(await dispatcher.dispatch(body, context, refusal ?? unavailable?.() ?? refused));
	};
}

/** Takes requests that the server has no route for. Websockets are an UpgradeHandler's. */
export interface PassThrough {
	/** Answers `request`, of whose body nothing was read, by `passing` and then on `response`. Never throws. */
	web(request: IncomingMessage, response: ServerResponse, passing: Passing): void;
}

/** A request that was handed over, as its server sees it. */
export interface Passing {
	/** Sends 100 Continue to a client that waits for it before it sends the body; it is sent here alone. */
	goAhead(): void;
	/** Calls `listener` once, when the client is gone or the request was answered, also before `begin`. */
	onGone(listener: () => void): void;
	/** Answers with `answer` instead; the rest of the body is read and forgotten. For before `begin`. */
	refuse(answer: HttpAnswer): void;
	/**
	 * Writes the answer's head; its body is then the caller's to write. `headers` are those of whoever answered, without
	 * those of that connection. `end` is given where the answer may never end: it then holds up no stop, which calls
	 * `end` instead. Returns false where the client is gone, or the answer may not go on: then the caller drops it.
	 */
	begin(status: number, headers: OutgoingHttpHeaders, end: (() => void) | null): boolean;
}

/** Writes the head of an answer from elsewhere; `exposure` has the names of our own that web pages may read. */
export function writePassedHead(
	response: ServerResponse,
	status: number,
	headers: OutgoingHttpHeaders,
	close: boolean,
	exposure: Readonly<Record<string, string>>,
): void {
	const head = { ...headers };
	const exposed = exposure["access-control-expose-headers"];
	if (exposed !== undefined) {
		const theirs = head["access-control-expose-headers"];
		head["access-control-expose-headers"] =
			theirs === undefined || theirs === "" ? exposed : `${theirs}, ${exposed}`;
	}
	if (close) head.connection = "close";
	response.writeHead(status, head);
}
