// The faults that a wire can have, and what each does to one request. It does not listen:
// faultyWire.ts does.

import type { IncomingMessage, ServerResponse } from "node:http";
import { pause, systemClock } from "../../shared/clock.ts";
import { resetSocket } from "../support/tcpProxy.ts";

/**
 * Faults instead of an answer. Those of the first group happen to connections, the others to
 * requests.
 */
export type WireFault =
	/** Nothing listens, and connections are reset. */
	| { readonly kind: "refuse" }
	/** New connections are never made, old ones are never heard of again. */
	| { readonly kind: "blackHole" }
	/** Connections are made and nothing is read from them. */
	| { readonly kind: "acceptHang" }
	/** Connections are made and reset at once. */
	| { readonly kind: "resetOnAccept" }
	/** The request is read and the connection is ended in one direction, unanswered. */
	| { readonly kind: "halfClose" }
	/** The real server gets it; half of its answer is sent, then a reset. */
	| { readonly kind: "resetMidway" }
	/** One byte of a head every `everyMs`; the real server gets nothing. */
	| { readonly kind: "headerDrip"; readonly everyMs: number }
	/** The real server gets it; its answer is sent byte by byte. */
	| { readonly kind: "bodyDrip"; readonly everyMs: number }
	/** The real server gets it; a whole HTTP answer with half of the JSON is sent. */
	| { readonly kind: "truncated" }
	/** A page of somebody else's, with 200. */
	| { readonly kind: "html" }
	/** Such a status with a text; `body` where it shall be another one. */
	| { readonly kind: "status"; readonly status: number; readonly body?: string }
	/** As our relay while it drains: 503 to /readyz, and -32603 with `Retry-After` to every body. */
	| { readonly kind: "notReady" }
	/** -32603 to every call; requests without calls go through. */
	| { readonly kind: "internal" }
	/** The real server gets it and acts on it; the answer is held for so long. */
	| { readonly kind: "late"; readonly ms: number }
	/**
	 * The head stands still: questions for it are answered as the first time, which is kept in
	 * `heads`.
	 */
	| { readonly kind: "frozenHead"; readonly heads: Map<string, unknown> }
	/** Reset and well in turns, `everyMs` each. */
	| { readonly kind: "flapping"; readonly everyMs: number };

/** An answer of the real server's. */
export interface RealAnswer {
	readonly status: number;
	readonly headers: Readonly<Record<string, string | string[] | undefined>>;
	readonly body: Buffer;
}

const NOT_READY =
	'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error: shutting down"}}';
const PAGE = "<!doctype html><html><body><h1>Application error</h1></body></html>";

/** Whether it happens to connections as they are made. */
export function happensToConnections({ kind }: WireFault): boolean {
	return ["refuse", "blackHole", "acceptHang", "resetOnAccept"].includes(kind);
}

/** Whether the request is lost to a fault that is none of the answer's. */
export function swallows({ kind }: WireFault): boolean {
	return kind === "blackHole" || kind === "acceptHang";
}

/** Does to one request what `fault` says; `forward` asks the real server. */
export async function suffer(
	fault: WireFault,
	request: { readonly incoming: IncomingMessage; readonly response: ServerResponse; readonly body: string },
	forward: () => Promise<RealAnswer>,
): Promise<void> {
	const { incoming, response, body } = request;
	const { socket } = incoming;
	switch (fault.kind) {
		case "refuse":
		case "resetOnAccept":
			resetSocket(socket);
			return;
		case "blackHole":
		case "acceptHang":
			return;
		case "halfClose":
			socket.end();
			return;
		case "resetMidway": {
			const answer = await forward();
			const half = answer.body.subarray(0, answer.body.length / 2);
			socket.write(Buffer.concat([head(answer), half]), () => resetSocket(socket));
			return;
		}
		case "headerDrip":
			await drip(Buffer.from(`HTTP/1.1 200 OK\r\nx-slow: ${"a".repeat(60_000)}`), fault.everyMs, incoming);
			return;
		case "bodyDrip": {
			const answer = await forward();
			socket.write(head(answer));
			await drip(answer.body, fault.everyMs, incoming);
			return;
		}
		case "truncated": {
			const { status, body: whole } = await forward();
			const half = whole.subarray(0, whole.length / 2);
			response.writeHead(status, { "content-type": "application/json" }).end(half);
			return;
		}
		case "html":
			response.writeHead(200, { "content-type": "text/html" }).end(PAGE);
			return;
		case "status":
			response.writeHead(fault.status, { "content-type": "text/plain" }).end(fault.body ?? "go away");
			return;
		case "notReady":
			response
				.writeHead(body === "" ? 503 : 200, { "content-type": "application/json", "retry-after": "1" })
				.end(NOT_READY);
			return;
		case "internal":
			await answerInternal(body, response, forward);
			return;
		case "late": {
			const answer = await forward();
			await pause(systemClock, fault.ms);
			pass(answer, response);
			return;
		}
		case "frozenHead":
			pass(withOldHeads(await forward(), callsIn(body), fault.heads), response);
			return;
		case "flapping":
			throw new Error("a flapping wire is one of the others at any time");
	}
}

/** Hands on a real answer as it is. */
export function pass({ status, headers, body }: RealAnswer, response: ServerResponse): void {
	const { connection: _hop, "keep-alive": _hops, "transfer-encoding": _coding, ...kept } = headers;
	response.writeHead(status, { ...kept, "content-length": String(body.length) }).end(body);
}

async function answerInternal(
	body: string,
	response: ServerResponse,
	forward: () => Promise<RealAnswer>,
): Promise<void> {
	const calls = callsIn(body);
	if (calls.length === 0) {
		pass(await forward(), response);
		return;
	}
	const error = { code: -32603, message: "internal error" };
	const answers = calls.map(({ id }) => ({ jsonrpc: "2.0", id, error }));
	const json = JSON.stringify(body.trimStart().startsWith("[") ? answers : answers[0]);
	response.writeHead(200, { "content-type": "application/json" }).end(json);
}

/** One call of a body. */
export interface WireCall {
	readonly id: unknown;
	readonly method: string;
	readonly params: readonly unknown[];
}

/** The JSON-RPC calls of a body; none where it holds none. */
export function callsIn(body: string): readonly WireCall[] {
	if (body === "") return [];
	try {
		const parsed = JSON.parse(body) as unknown;
		const list = Array.isArray(parsed) ? parsed : [parsed];
		return list.map((one: Record<string, unknown>) => ({
			id: one.id ?? null,
			method: String(one.method),
			params: Array.isArray(one.params) ? one.params : [],
		}));
	} catch {
		return [];
	}
}

/** `answer` with the first answer to each question for the head. */
function withOldHeads(
	answer: RealAnswer,
	calls: readonly WireCall[],
	heads: Map<string, unknown>,
): RealAnswer {
	const asked = new Map(
		calls.filter(asksForHead).map(({ id, params, method }) => [id, `${method} ${params[1]}`]),
	);
	if (asked.size === 0) return answer;
	const frozen = (one: { id: unknown; result?: unknown }): unknown => {
		const question = asked.get(one.id);
		if (question === undefined || one.result === undefined) return one;
		if (!heads.has(question)) heads.set(question, one.result);
		return { ...one, result: heads.get(question) };
	};
	const json = JSON.parse(String(answer.body)) as Parameters<typeof frozen>[0];
	return {
		...answer,
		body: Buffer.from(JSON.stringify(Array.isArray(json) ? json.map(frozen) : frozen(json))),
	};
}

function asksForHead({ method, params }: WireCall): boolean {
	return method === "eth_blockNumber" || (method === "eth_getBlockByNumber" && params[0] === "latest");
}

function head({ status, body }: RealAnswer): Buffer {
	const lines = [`HTTP/1.1 ${status} OK`, "content-type: application/json", `content-length: ${body.length}`];
	return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`);
}

/** Until all is written, or nobody reads any more. */
async function drip(bytes: Buffer, everyMs: number, { socket }: IncomingMessage): Promise<void> {
	for (const byte of bytes) {
		if (socket.destroyed || socket.readyState !== "open") return;
		socket.write(Buffer.of(byte));
		await pause(systemClock, everyMs);
	}
}
