// Sends tables of bad input as raw HTTP bytes and returns the answers as they came. It judges and
// repeats nothing.

import { Readable } from "node:stream";
import { Client, type Dispatcher } from "undici";
import { type RawAnswer, RawConnection } from "../../../support/clients.ts";

/** A request to send. */
export interface WireRequest {
	/** POST by default. */
	readonly verb?: string;
	/** "/" by default. */
	readonly path?: string;
	/** `content-type: application/json` is added where a body is sent and it is not named. */
	readonly headers?: Readonly<Record<string, string>>;
	readonly body?: string | Uint8Array;
	/** In pieces without a length. */
	readonly chunked?: boolean;
}

/** The answer; header names in lower case. */
export type WireResponse = RawAnswer;

/** No answer within this many ms is a hang: every deadline of relay and boost is shorter. */
const HANG_MS = 40_000;

/** Requests to one port, one after another on one connection as long as the server keeps it. */
export class Wire {
	/** How many connections the requests so far have taken. */
	connections = 0;
	readonly #client: Client;

	constructor(port: number) {
		const limits = { headersTimeout: HANG_MS, bodyTimeout: HANG_MS };
		this.#client = new Client(`http://127.0.0.1:${port}`, limits);
		this.#client.on("connect", () => {
			this.connections += 1;
		});
	}

	/** One request. Rejects when the connection breaks before the answer, or nothing comes. */
	async send({ verb = "POST", path = "/", body, ...wanted }: WireRequest): Promise<WireResponse> {
		const type = body === undefined ? {} : { "content-type": "application/json" };
		const answer = await this.#client.request({
			path,
			method: verb as Dispatcher.HttpMethod,
			headers: { ...type, ...wanted.headers },
			body: wanted.chunked === true ? Readable.from([Buffer.from(body ?? "")]) : (body ?? null),
		});
		const headers = answer.headers as Record<string, string>;
		return { status: answer.statusCode, headers, body: await answer.body.text() };
	}

	/** Ends the connection. */
	close(): void {
		void this.#client.destroy();
	}
}

/**
 * Sends `bytes` on a connection of their own. Answers the response (not the interim 100), or null
 * where the server closes the connection without one. With `half` our side is closed behind the
 * bytes.
 */
export async function sendBytes(
	port: number,
	bytes: string | Uint8Array,
	half = false,
): Promise<WireResponse | null> {
	const connection = await RawConnection.open(port);
	if (half) connection.end(bytes);
	else connection.write(bytes);
	try {
		let response = await connection.answer();
		while (response.status === 100) response = await connection.answer();
		return response;
	} catch (thrown) {
		if (connection.isClosed) return null;
		throw thrown;
	} finally {
		connection.destroy();
	}
}
