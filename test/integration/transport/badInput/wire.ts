// Sends tables of bad input as raw HTTP bytes and returns the answers as they came. It judges and repeats nothing.

import { Agent, request } from "node:http";
import { connect } from "node:net";

/** What is sent. */
export interface WireRequest {
	/** POST unless said. */
	readonly verb?: string;
	/** "/" unless said. */
	readonly path?: string;
	/** `content-type: application/json` and a length are added where a body is sent and they are not named. */
	readonly headers?: Readonly<Record<string, string>>;
	readonly body?: string | Uint8Array;
	/** In pieces without a length. */
	readonly chunked?: boolean;
}

/** What came back; header names in lower case. */
export interface WireResponse {
	readonly status: number;
	readonly headers: Readonly<Record<string, string>>;
	readonly body: string;
}

/** No answer within this many ms is a hang. */
const HANG_MS = 15_000;

/** Requests to one port, one after another on one connection as long as the server keeps it. */
export class Wire {
	readonly #port: number;
	readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
	readonly #sockets = new Set<unknown>();

	constructor(port: number) {
		this.#port = port;
	}

	/** How many connections the requests so far have taken. */
	get connections(): number {
		return this.#sockets.size;
	}

	/** One request. Rejects when the connection breaks before the answer, or nothing comes. */
	send(wanted: WireRequest): Promise<WireResponse> {
		const { verb = "POST", path = "/", body, chunked = false } = wanted;
		const headers: Record<string, string> = { ...wanted.headers };
		if (body !== undefined) {
			headers["content-type"] ??= "application/json";
			if (chunked) headers["transfer-encoding"] = "chunked";
			else headers["content-length"] = String(Buffer.byteLength(body));
		}
		return new Promise((resolve, reject) => {
			const options = {
				host: "127.0.0.1",
				port: this.#port,
				method: verb,
				path,
				headers,
				agent: this.#agent,
			};
			const outgoing = request({ ...options, timeout: HANG_MS }, (incoming) => {
				this.#sockets.add(incoming.socket);
				const pieces: Buffer[] = [];
				incoming.on("data", (piece: Buffer) => pieces.push(piece));
				incoming.on("error", reject);
				incoming.on("end", () => {
					const status = incoming.statusCode ?? 0;
					const told = incoming.headers as Record<string, string>;
					resolve({ status, headers: told, body: Buffer.concat(pieces).toString("utf8") });
				});
			});
			outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer within ${HANG_MS} ms`)));
			outgoing.on("error", reject);
			outgoing.end(body);
		});
	}

	/** Ends the connection. */
	close(): void {
		this.#agent.destroy();
	}
}

/**
 * Sends `bytes` on a connection of their own. Answers the response, or null where the server closes the connection
 * without one. With `half` our side is closed behind the bytes.
 */
export function sendBytes(
	port: number,
	bytes: string | Uint8Array,
	half = false,
): Promise<WireResponse | null> {
	return new Promise((resolve, reject) => {
		const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: half });
		let text = "";
		const settle = (response: WireResponse | null): void => {
			socket.destroy();
			resolve(response);
		};
		socket.setTimeout(HANG_MS, () => {
			socket.destroy();
			reject(new Error(`no answer within ${HANG_MS} ms, but: ${text}`));
		});
		socket.setEncoding("latin1");
		socket.on("data", (piece: string) => {
			text += piece;
			const response = readResponse(text);
			if (response !== null) settle(response);
		});
		// The server may cut the rest of what it refuses: what it answered before that counts.
		socket.on("error", () => settle(readResponse(text)));
		socket.on("end", () => settle(readResponse(text)));
		if (half) socket.end(bytes);
		else socket.write(bytes);
	});
}

/** The response in `text` as soon as it is whole, else null; an interim one (100) is skipped. */
function readResponse(text: string): WireResponse | null {
	const end = text.indexOf("\r\n\r\n");
	if (end === -1) return null;
	const [line = "", ...fields] = text.slice(0, end).split("\r\n");
	const rest = text.slice(end + 4);
	const status = Number(line.split(" ")[1]);
	if (status === 100) return readResponse(rest);
	const headers: Record<string, string> = {};
	for (const field of fields) {
		const colon = field.indexOf(":");
		headers[field.slice(0, colon).toLowerCase()] = field.slice(colon + 1).trim();
	}
	if (headers["transfer-encoding"] === "chunked") {
		return rest.endsWith("0\r\n\r\n") ? { status, headers, body: rest } : null;
	}
	const length = Number(headers["content-length"] ?? 0);
	return rest.length < length ? null : { status, headers, body: rest.slice(0, length) };
}
