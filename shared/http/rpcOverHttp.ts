// JSON-RPC over POST: takes what a body weighs from its client's allowance, finds out who signed it, and has
// the dispatcher answer it.

import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "../jsonrpc/dispatch.ts";
import type { RpcAnswer } from "../jsonrpc/envelope.ts";
import { RpcError } from "../jsonrpc/errors.ts";
import { type CallContext, type Client, callContext, type RequestLife } from "./callContext.ts";
import { type ClientAddress, type VerifySignature, vouchedSigner } from "./clientIdentity.ts";
import { type HttpAnswer, retryAfter } from "./httpAnswer.ts";
import type { RateLimiter } from "./rateLimit.ts";
import type { RequestTarget } from "./routes.ts";

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

const UNVERIFIED = "invalid request: X-Flashbots-Signature does not verify";

/** Who sent a body, and why it is refused where its signature does not verify. */
interface Identified {
	readonly client: Client;
	readonly refused: RpcError | null;
}

/** Reads who sent `body`: `from` an address, and by a signature where one came with it. */
export function identify(
	headers: IncomingHttpHeaders,
	{ address, vouched }: ClientAddress,
	body: Uint8Array,
	verifySignature: VerifySignature | undefined,
): Identified {
	const signature = headers["x-flashbots-signature"];
	// What the body itself carries counts before what is said of it.
	if (signature === undefined) {
		return { client: { address, signer: vouchedSigner(headers, vouched), vouched }, refused: null };
	}
	const check = verifySignature?.(String(signature), body) ?? { ok: false, reason: "not taken here" };
	return {
		client: { address, signer: check.ok ? check.address : null, vouched },
		refused: check.ok ? null : new RpcError("invalidRequest", `${UNVERIFIED}: ${check.reason}`),
	};
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

/** A call's answer as HTTP: without a text it has no body, and who shall come again is told when. */
export function httpAnswerOf({ status, text, retryMs }: RpcAnswer): HttpAnswer {
	if (status === 429 || status === 503) {
		return { status, body: text, headers: { "retry-after": retryAfter(retryMs) } };
	}
	return { status: text === null && status === 200 ? 204 : status, body: text };
}
