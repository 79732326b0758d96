// The wire form of how a call ended: what comes in is a result or what was thrown, what goes out is the answer's
// text and HTTP status. The only place where an error becomes text; it logs nothing.

import { errorText, type RpcId, resultText } from "./envelope.ts";
import { ForeignRpcError, RPC_ERRORS, RpcError, type RpcErrorKind } from "./errors.ts";

/** How a call ended: well, with an upstream's error, or with one of ours. */
export type CallOutcome = "ok" | "foreign" | RpcErrorKind;

/** What to send back. */
export interface RpcAnswer {
	/** The HTTP status that goes with it. */
	readonly status: number;
	/** JSON, or null where nothing is answered (notifications): HTTP 204, on a websocket silence. */
	readonly text: string | null;
	/** With status 429: when to come again, in ms; else 0. */
	readonly retryMs: number;
}

/** The answer to a call with id `id` (undefined: a notification). Throws where `result` is no JSON (a bigint). */
export function okAnswer(id: RpcId | undefined, result: unknown): RpcAnswer {
	return { status: 200, text: id === undefined ? null : resultText(id, result), retryMs: 0 };
}

/** The answer to a call that ended with `error`. `retryMs`: see {@link RpcAnswer}. */
export function errorAnswer(id: RpcId | undefined, error: WireError, retryMs = 0): RpcAnswer {
	const { code, message, data, status } = error;
	return { status, text: id === undefined ? null : errorText(id, code, message, data), retryMs };
}

/** The error for a client over its rate limit, which may come again in `waitMs`. */
export function rateLimited(waitMs: number): RpcError {
	return new RpcError("rateLimit", `limit exceeded: try again in ${Math.ceil(waitMs / 1000)} s`);
}

/** The answer with that error. */
export function limitedAnswer(id: RpcId | undefined, waitMs: number): RpcAnswer {
	const { code, message } = rateLimited(waitMs);
	const { status } = RPC_ERRORS.rateLimit;
	return { status, text: id === undefined ? null : errorText(id, code, message), retryMs: waitMs };
}

/** What the wire tells of an error. */
export interface WireError {
	readonly outcome: CallOutcome;
	readonly code: number;
	readonly message: string;
	readonly data: unknown;
	readonly status: number;
}

/** All that leaves the process of an own fault. */
export const INTERNAL: WireError = {
	outcome: "internal",
	...RPC_ERRORS.internal,
	message: "internal error",
	data: undefined,
};

/** What was meant for the client of what was thrown; null for an own fault. */
export function readError(thrown: unknown): WireError | null {
	if (thrown instanceof RpcError) {
		const { kind, code, message, data } = thrown;
		return { outcome: kind, code, message, data, status: RPC_ERRORS[kind].status };
	}
	if (thrown instanceof ForeignRpcError) {
		const { code, message, data } = thrown;
		return { outcome: "foreign", code, message, data, status: 200 };
	}
	return null;
}

/** The answer to a batch: the status that all entries have, else 200. Notifications leave no text. */
export function batchAnswer(answers: readonly RpcAnswer[]): RpcAnswer {
	const texts = answers.flatMap((answer) => (answer.text === null ? [] : [answer.text]));
	const first = answers[0]?.status ?? 200;
	return {
		status: answers.every((answer) => answer.status === first) ? first : 200,
		text: texts.length === 0 ? null : `[${texts.join(",")}]`,
		retryMs: Math.max(...answers.map((answer) => answer.retryMs)),
	};
}
