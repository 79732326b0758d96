// An HTTP answer as data, and how it is written: what comes in is status, body and headers, what goes out is bytes
// on a response, with CORS on every one. It decides nothing about what is answered.

import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { errorText } from "../jsonrpc/envelope.ts";
import { RPC_ERRORS, type RpcErrorKind } from "../jsonrpc/errors.ts";
import type { AnswerStream } from "./answerStream.ts";

/** An answer. */
export interface HttpAnswer {
	readonly status: number;
	/** Null for an answer without a body. */
	readonly body: string | Uint8Array | null;
	/** `application/json` unless said. */
	readonly contentType?: string;
	/** More headers, names in lower case. */
	readonly headers?: Readonly<Record<string, string>>;
	/** Where set the answer goes on, and `body` is null: called once, when the head was written; never for HEAD. */
	readonly open?: (stream: AnswerStream) => void;
}

/** An answer of JSON. */
export function jsonAnswer(status: number, value: unknown, headers?: Record<string, string>): HttpAnswer {
	return { status, body: JSON.stringify(value), ...(headers === undefined ? {} : { headers }) };
}

/** A JSON-RPC error with id null, for what is refused before it could be read. */
export function rpcErrorAnswer(
	kind: RpcErrorKind,
	status: number,
	message: string,
	headers?: Record<string, string>,
): HttpAnswer {
	const body = errorText(null, RPC_ERRORS[kind].code, message);
	return { status, body, ...(headers === undefined ? {} : { headers }) };
}

/** `Retry-After` for a wait of `ms`, in whole seconds, one at least. */
export function retryAfter(ms: number): string {
	return String(Math.max(1, Math.ceil(ms / 1000)));
}

/** Writes `answer`'s head; `standing` are headers that every answer of the server has, unless it has them itself. */
export function writeHead(
	response: ServerResponse,
	answer: HttpAnswer,
	close: boolean,
	standing: Readonly<Record<string, string>>,
): void {
	const { status, body, headers, open } = answer;
	const head: OutgoingHttpHeaders = {};
	if (body !== null || open !== undefined) {
		head["content-type"] = answer.contentType ?? "application/json";
	}
	if (body !== null) {
		head["content-length"] = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
	}
	head["access-control-allow-origin"] = "*";
	Object.assign(head, standing);
	if (close) head.connection = "close";
	if (headers !== undefined) Object.assign(head, headers);
	response.writeHead(status, head);
}
