// Answers and requests as raw bytes, for connections on which node has no response to write to: what comes in is
// what went wrong or the request that was read, what goes out is HTTP/1.1 text.

import { type IncomingMessage, STATUS_CODES } from "node:http";
import { errorText } from "../jsonrpc/envelope.ts";
import { RPC_ERRORS } from "../jsonrpc/errors.ts";

/** A whole answer with a JSON body, after which the connection is closed. */
export function rawAnswer(status: number, body: string, headers: readonly string[] = []): string {
	const head = [
		`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
		"content-type: application/json",
		`content-length: ${Buffer.byteLength(body)}`,
		"access-control-allow-origin: *",
		"connection: close",
		...headers,
	];
	return `${head.join("\r\n")}\r\n\r\n${body}`;
}

/** The answer to what is no HTTP request; `code` is node's, `headers` are lines of more headers. */
export function badRequestText(code: string | undefined, headers: readonly string[] = []): string {
	const [status, message] =
		code === "HPE_HEADER_OVERFLOW"
			? [431, "invalid request: the headers are too long"]
			: code === "ERR_HTTP_REQUEST_TIMEOUT"
				? [408, "invalid request: it took too long to arrive"]
				: [400, "invalid request: not HTTP/1.1"];
	return rawAnswer(status, errorText(null, RPC_ERRORS.invalidRequest.code, message), headers);
}

/** The bytes of `request` as if it had not asked for an upgrade, followed by `head`, what came behind it. */
export function withoutUpgrade(request: IncomingMessage, head: Buffer): Buffer {
	const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`];
	const { rawHeaders } = request;
	for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
		const name = rawHeaders[i] ?? "";
		if (!/^(upgrade|connection|http2-settings)$/i.test(name)) lines.push(`${name}: ${rawHeaders[i + 1]}`);
	}
	return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]);
}
