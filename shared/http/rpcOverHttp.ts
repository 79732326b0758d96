// JSON-RPC over POST: what comes in is a body that was read whole, with its headers, what goes out is the HTTP
// answer. It verifies who sent it, and leaves everything else to the dispatcher.

import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "../jsonrpc/dispatch.ts";
import { RpcError } from "../jsonrpc/errors.ts";
import { type CallContext, callContext } from "./callContext.ts";
import type { ReadAddress, VerifySignature } from "./clientIdentity.ts";
import { type HttpAnswer, retryAfter } from "./httpAnswer.ts";
import type { RequestLife } from "./requestLife.ts";
import type { RequestTarget } from "./requestTarget.ts";

/** A POST on one of the JSON-RPC paths. */
export interface PostRequest {
	readonly target: RequestTarget;
	readonly headers: IncomingHttpHeaders;
	/** The address of the connection, undefined where it is gone already. */
	readonly socketAddress: string | undefined;
	/** As it came, at most as long as the server reads. */
	readonly body: Buffer;
	readonly life: RequestLife;
	/** Set while the server shuts down: the request shall be refused with it. */
	readonly refusal: RpcError | null;
}

/** Answers a POST; never rejects. */
export type PostHandler = (request: PostRequest) => Promise<HttpAnswer>;

export interface RpcOverHttpDependencies {
	readonly dispatcher: Dispatcher<CallContext>;
	readonly readAddress: ReadAddress;
	/** Where absent, the header `X-Flashbots-Signature` is refused. */
	readonly verifySignature?: VerifySignature;
	/** Why no request can be served well now, or null: answered with 503. */
	readonly unavailable?: () => RpcError | null;
}

const UNVERIFIED = "invalid request: X-Flashbots-Signature does not verify";

/** The handler of POSTs on the JSON-RPC paths. */
export function rpcOverHttp(dependencies: RpcOverHttpDependencies): PostHandler {
	const { dispatcher, readAddress, verifySignature, unavailable } = dependencies;
	return async ({ target, headers, socketAddress, body, life, refusal }) => {
		const { address, vouched } = readAddress(headers, socketAddress);
		const signature = headers["x-flashbots-signature"];
		let signer: string | null = null;
		let refused = refusal ?? unavailable?.() ?? null;
		if (signature !== undefined && refused === null) {
			const check = verifySignature?.(String(signature), body) ?? { ok: false, reason: "not taken here" };
			if (check.ok) signer = check.address;
			else refused = new RpcError("invalidRequest", `${UNVERIFIED}: ${check.reason}`);
		}
		const client = { address, signer, vouched };
		const context = callContext(target, client, headers.origin ?? null, null, null, life);
		const { status, text, retryMs } = await dispatcher.dispatch(body, context, refused);
		if (status === 429 || status === 503) {
			return { status, body: text, headers: { "retry-after": retryAfter(retryMs) } };
		}
		return { status: text === null && status === 200 ? 204 : status, body: text };
	};
}
