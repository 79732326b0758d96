// Sends an HTTP request over a new connection, from a chosen network address: on Linux all of
// 127.0.0.0/8 is this machine, so
// 127.0.0.1 and 127.0.0.2 are two clients.

import { request } from "node:http";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";

/** The honest user's address. */
export const HONEST = "127.0.0.1";
/**
 * An attacker's address; each has its own, so that one's use of a limit does not affect another.
 */
export const attackerAddress = (n = 0): string => `127.0.0.${2 + n}`;

export interface WireCall {
	readonly url: string;
	/** The sender's network address. */
	readonly from: string;
	/** If absent, a GET is sent. */
	readonly body?: string;
	readonly headers?: Readonly<Record<string, string>>;
	/** Signs the body. */
	readonly key?: string;
	/** Rejects after this many ms. */
	readonly deadlineMs: number;
}

interface WireReply {
	readonly status: number;
	readonly body: string;
}

/** Sends a request. Rejects with Node's error if the connection fails, and at the deadline. */
export function send({ url, from, body, headers, key, deadlineMs }: WireCall): Promise<WireReply> {
	const signature =
		key === undefined ? {} : { "x-flashbots-signature": createBodySigner(key).sign(body ?? "") };
	return new Promise((resolve, reject) => {
		const method = body === undefined ? "GET" : "POST";
		const type = body === undefined ? {} : { "content-type": "application/json" };
		const options = {
			...{ method, localAddress: from, agent: false, headers: { ...type, ...signature, ...headers } },
			signal: AbortSignal.timeout(deadlineMs),
		};
		const sent = request(url, options, (answer) => {
			const chunks: Buffer[] = [];
			answer.on("data", (chunk: Buffer) => chunks.push(chunk));
			answer.on("error", reject);
			answer.on("end", () => {
				resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(chunks).toString() });
			});
		});
		sent.on("error", reject);
		sent.end(body);
	});
}

/** The outcome of a JSON-RPC call. */
export type Outcome =
	| { readonly result: unknown; readonly error?: undefined }
	| { readonly error: { readonly code: number; readonly message: string }; readonly result?: undefined };

/** Makes a JSON-RPC call; `call` has no body yet. */
export async function ask(
	method: string,
	params: readonly unknown[],
	call: Omit<WireCall, "body">,
): Promise<Outcome> {
	const { status, body } = await send({
		...call,
		body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
	});
	try {
		return JSON.parse(body) as Outcome;
	} catch {
		throw new Error(`HTTP ${status}: ${body.slice(0, 100)}`);
	}
}

/** Like {@link ask}; throws with the code and message of an error. */
export async function resultOf(
	method: string,
	params: readonly unknown[],
	call: Omit<WireCall, "body">,
): Promise<unknown> {
	const { error, result } = await ask(method, params, call);
	if (error !== undefined) throw new Error(`${error.code} ${error.message}`);
	return result;
}
