// The HTTP server of a builder: passes JSON-RPC calls to a function that is given, or plays the fault that is switched on
// for the next requests. It knows nothing of blocks and orders.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Clock, pause } from "../../shared/clock.ts";
import type { BuilderRecord, RecordedAnswer, RecordedRequest } from "./builderRecord.ts";
import { checkSignature } from "./builderTransactions.ts";

/** One JSON-RPC call with what the request around it says. */
export interface ReceivedCall {
	readonly method: string;
	readonly params: unknown;
	/** Checksummed; null where unsigned requests are taken. */
	readonly signer: string | null;
	/** Unix ms. */
	readonly at: number;
}

/** What the server needs. */
export interface BuilderServerOptions {
	/** 0 for a free one. */
	readonly port: number;
	readonly requireSignature: boolean;
}

export interface BuilderServerDependencies {
	readonly clock: Clock;
	readonly record: BuilderRecord;
	readonly faults: FaultSwitch;
	/** Answers one call. Never throws. */
	readonly answer: (call: ReceivedCall) => Promise<{ answer: RecordedAnswer; effects: readonly string[] }>;
	/** Answers what begins with /dev: JSON text; null: there is no such page. */
	readonly dev: (method: string, url: URL, body: string) => Promise<string | null>;
}

/** A running server. */
export interface BuilderServer {
	readonly port: number;
	stop(): Promise<void>;
}

/** Six blobs are 1.6 MB of hex; a batch may hold several such transactions. */
const MAX_BODY_BYTES = 32 * 1024 * 1024;

interface Call {
	readonly id: unknown;
	readonly method: string;
	readonly params: unknown;
}

/** Starts it on loopback. Throws when the port is taken. */
export async function startBuilderServer(
	options: BuilderServerOptions,
	dependencies: BuilderServerDependencies,
): Promise<BuilderServer> {
	const server = createServer((request, response) => {
		handle(request, response, options, dependencies).catch(() => {
			// The client went away, or sent more than we take.
			request.socket.destroy();
		});
	});
	await new Promise<void>((resolve, reject) => {
		server.once("error", reject);
		server.listen(options.port, "127.0.0.1", resolve);
	});
	return { port: (server.address() as AddressInfo).port, stop: () => stop(server) };
}

function stop(server: Server): Promise<void> {
	return new Promise((resolve) => {
		server.close(() => resolve());
		server.closeAllConnections();
	});
}

async function handle(
	request: IncomingMessage,
	response: ServerResponse,
	options: BuilderServerOptions,
	dependencies: BuilderServerDependencies,
): Promise<void> {
	const url = new URL(request.url ?? "/", "http://builder");
	const body = await readBody(request);
	if (url.pathname.startsWith("/dev/")) {
		await handleDev(request.method ?? "GET", url, body.toString("utf8"), response, dependencies);
		return;
	}
	const { clock, record, faults } = dependencies;
	const at = clock.now();
	const { calls, batch } = parse(body);
	const fault = faults.meet(calls.map(({ method }) => method));
	if (fault?.kind === "down") {
		request.socket.destroy();
		return;
	}
	const header = request.headers["x-flashbots-signature"];
	const { signer, problem } = checkSignature(typeof header === "string" ? header : undefined, body);
	const refused = problem !== null && (options.requireSignature || header !== undefined) ? problem : null;
	const answers: RecordedAnswer[] = [];
	for (const [i, call] of calls.entries()) {
		const received = { method: call.method, params: call.params, signer, at };
		const { answer, effects } = await answerOne(received, refused, fault, dependencies);
		if (answer !== null) answers.push(answer);
		const common = { at, method: call.method, id: call.id, signer, answer, effects };
		record.add({ ...common, ...describe(request, call.params, batch ? i : null, fault) });
	}
	if (fault !== null) await pause(clock, fault.slowMs);
	if (fault?.kind === "hang") return;
	if (calls.length === 0) {
		send(response, 400, JSON.stringify({ jsonrpc: "2.0", id: null, error: PARSE_ERROR }));
		return;
	}
	const bodies = answers.map((answer, i) => ({ jsonrpc: "2.0", id: calls[i]?.id ?? null, ...answer }));
	reply(response, batch ? bodies : bodies[0], refused === null ? 200 : 400, fault);
}

const PARSE_ERROR = { code: -32700, message: "parse error" };

async function handleDev(
	method: string,
	url: URL,
	body: string,
	response: ServerResponse,
	dependencies: BuilderServerDependencies,
): Promise<void> {
	try {
		const page = await dependencies.dev(method, url, body);
		send(response, page === null ? 404 : 200, page ?? JSON.stringify({ error: "no such page" }));
	} catch (thrown) {
		send(response, 400, JSON.stringify({ error: thrown instanceof Error ? thrown.message : "failed" }));
	}
}

async function answerOne(
	call: ReceivedCall,
	refused: string | null,
	fault: MetFault | null,
	dependencies: BuilderServerDependencies,
): Promise<{ answer: RecordedAnswer | null; effects: readonly string[] }> {
	if (fault?.kind === "reject") return { answer: { error: fault.error }, effects: [] };
	if (fault !== null && fault.kind !== "odd" && fault.kind !== "slow") return { answer: null, effects: [] };
	if (refused !== null) return { answer: { error: { code: -32600, message: refused } }, effects: [] };
	return dependencies.answer(call);
}

function reply(response: ServerResponse, body: unknown, status: number, fault: MetFault | null): void {
	if (fault?.kind === "httpError") send(response, 500, "Internal Server Error", "text/plain");
	else if (fault?.kind === "nonsense" && fault.body === "html") send(response, 200, HTML, "text/html");
	else if (fault?.kind === "nonsense") send(response, 200, '{"jsonrpc":"2.0","id":1,"res');
	else if (fault?.kind === "odd" && fault.answer === "text") send(response, 200, "OK", "text/plain");
	else if (fault?.kind === "odd" && fault.answer === "number")
		send(response, 200, '{"result":200,"error":null}');
	else if (fault?.kind === "odd") send(response, 200, JSON.stringify(withoutResult(body)));
	else send(response, status, JSON.stringify(body));
}

const HTML = "<!doctype html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";

function withoutResult(body: unknown): unknown {
	if (Array.isArray(body)) return body.map(withoutResult);
	const id = typeof body === "object" && body !== null && "id" in body ? body.id : null;
	return { jsonrpc: "2.0", id, result: null };
}

function send(response: ServerResponse, status: number, text: string, type = "application/json"): void {
	response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(text) });
	response.end(text);
}

function describe(
	request: IncomingMessage,
	params: unknown,
	batchIndex: number | null,
	fault: MetFault | null,
): Pick<RecordedRequest, "params" | "headers" | "path" | "batchIndex" | "fault"> {
	const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)]);
	return {
		params: Array.isArray(params) ? params : [],
		headers: Object.fromEntries(headers),
		path: request.url ?? "/",
		batchIndex,
		fault: fault?.kind ?? null,
	};
}

/** No calls at all: it was no JSON-RPC. */
function parse(body: Buffer): { calls: readonly Call[]; batch: boolean } {
	try {
		const parsed: unknown = JSON.parse(body.toString("utf8"));
		const items: readonly unknown[] = Array.isArray(parsed) ? parsed : [parsed];
		const calls = items.map((item) => {
			const call = typeof item === "object" && item !== null ? (item as Record<string, unknown>) : {};
			const method = typeof call.method === "string" ? call.method : "";
			return { id: call.id ?? null, method, params: call.params ?? [] };
		});
		return { calls, batch: Array.isArray(parsed) };
	} catch {
		return { calls: [], batch: false };
	}
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
	const chunks: Buffer[] = [];
	let size = 0;
	for await (const chunk of request as AsyncIterable<Buffer>) {
		size += chunk.length;
		if (size > MAX_BODY_BYTES) throw new Error("the body is too large");
		chunks.push(chunk);
	}
	return Buffer.concat(chunks);
}

/**
 * Faults that can be switched on. Several at once: of down, hang, httpError, nonsense, reject, odd the first counts,
 * and `slow` goes with any.
 */
export interface Faults {
	/** Answers this many ms late; the request takes effect at once. */
	readonly slow?: number;
	/** Destroys the socket of every request; nothing is recorded. */
	readonly down?: boolean;
	/** Records the request and never answers; it takes no effect. */
	readonly hang?: boolean;
	/** 500 with a text body; no effect. */
	readonly httpError?: boolean;
	/** 200 with an HTML page, or with half of a JSON answer; no effect. */
	readonly nonsense?: "html" | "truncated";
	/** A JSON-RPC error to each call (true: -32000); no effect. */
	readonly reject?: boolean | { readonly code: number; readonly message: string };
	/** Takes effect, with one of builders' odd real answers: `{"result":200,"error":null}`, a null result, text. */
	readonly odd?: "number" | "null" | "text";
	/** Only requests that hold one of these methods are treated so. */
	readonly only?: readonly string[];
	/** The faults lift after so many requests that met them. */
	readonly times?: number;
}

/** What one request meets. */
export type MetFault =
	| { readonly kind: "down" | "hang" | "httpError"; readonly slowMs: number }
	| { readonly kind: "nonsense"; readonly slowMs: number; readonly body: "html" | "truncated" }
	| { readonly kind: "reject"; readonly slowMs: number; readonly error: { code: number; message: string } }
	| { readonly kind: "odd"; readonly slowMs: number; readonly answer: "number" | "null" | "text" }
	/** Nothing but late. */
	| { readonly kind: "slow"; readonly slowMs: number };

const KEYS = ["slow", "down", "hang", "httpError", "nonsense", "reject", "odd", "only", "times"] as const;

/** The faults of one builder. */
export class FaultSwitch {
	#faults: Faults = {};
	#left = Number.POSITIVE_INFINITY;

	/** Those that are on. */
	get on(): Faults {
		return this.#faults;
	}

	/** Replaces what is on; `{}` lifts all. Throws for a key that is none. */
	set(faults: Faults): void {
		const unknown = Object.keys(faults).find((key) => !KEYS.some((known) => known === key));
		if (unknown !== undefined) throw new Error(`no such fault: ${unknown}`);
		this.#faults = faults;
		this.#left = faults.times ?? Number.POSITIVE_INFINITY;
	}

	/** What a request with `methods` meets, null for nothing; it counts as one of `times`. */
	meet(methods: readonly string[]): MetFault | null {
		const { only } = this.#faults;
		if (only !== undefined && !methods.some((method) => only.includes(method))) return null;
		const met = metBy(this.#faults);
		if (met === null) return null;
		this.#left -= 1;
		if (this.#left <= 0) this.set({});
		return met;
	}
}

function metBy(faults: Faults): MetFault | null {
	const slowMs = faults.slow ?? 0;
	if (faults.down === true) return { kind: "down", slowMs };
	if (faults.hang === true) return { kind: "hang", slowMs };
	if (faults.httpError === true) return { kind: "httpError", slowMs };
	if (faults.nonsense !== undefined) return { kind: "nonsense", slowMs, body: faults.nonsense };
	if (faults.reject === true) return { kind: "reject", slowMs, error: { code: -32000, message: "rejected" } };
	if (typeof faults.reject === "object") return { kind: "reject", slowMs, error: faults.reject };
	if (faults.odd !== undefined) return { kind: "odd", slowMs, answer: faults.odd };
	return slowMs > 0 ? { kind: "slow", slowMs } : null;
}
