// The HTTP server of a builder: passes JSON-RPC calls to a given function, or applies the faults
// that are switched on. It knows neither blocks nor orders.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { request as ask } from "undici";
import { pause, systemClock } from "../../shared/clock.ts";
import type { CallOutcome, ReceivedCall } from "./builderMethods.ts";
import type { BuilderRecord, RecordedAnswer } from "./builderRecord.ts";
import { checkSignature } from "./builderTransactions.ts";

/** The server's options. */
interface BuilderServerDependencies {
	readonly record: BuilderRecord;
	/** Answers one call. Never throws. */
	readonly answer: (call: ReceivedCall) => Promise<CallOutcome>;
	/** Answers paths that begin with /dev with JSON text; null: there is no such page. */
	readonly dev: (method: string, url: URL, body: string) => Promise<string | null>;
}

/** A running server. */
export interface BuilderServer {
	readonly port: number;
	/** Waits until what has been sent to it so far is handled. */
	catchUp(): Promise<void>;
	/** Replaces the active faults; `{}` ends all. Throws for an unknown key. */
	setFaults(faults: Faults): void;
	stop(): Promise<void>;
}

/**
 * Faults that can be switched on. If several are on, the first counts, in the order down, hang,
 * httpError, nonsense, reject; `slow` can be combined with any.
 */
export interface Faults {
	/** Answers this many ms late; the request takes effect at once. */
	readonly slow?: number;
	/** Destroys the socket of every request; nothing is recorded. */
	readonly down?: boolean;
	/** Records the request, and never answers; it has no effect. */
	readonly hang?: boolean;
	/** 500 with a text body; no effect. */
	readonly httpError?: boolean;
	/** 200 with an HTML page; no effect. */
	readonly nonsense?: "html";
	/** A JSON-RPC error to each call (true: -32000); no effect. */
	readonly reject?: boolean | { readonly code: number; readonly message: string };
	/** The faults apply only to requests with one of these methods. */
	readonly only?: readonly string[];
}

/** The order in which the faults count. */
const KINDS = ["down", "hang", "httpError", "nonsense", "reject", "slow"] as const;
const HTML = "<!doctype html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
const REJECTED = { code: -32000, message: "rejected" };
const PARSE_ERROR = { jsonrpc: "2.0", id: null, error: { code: -32700, message: "parse error" } };

/** Starts a server on loopback; `port` 0 is a free one. Throws if the port is taken. */
export async function startBuilderServer(
	port: number,
	dependencies: BuilderServerDependencies,
): Promise<BuilderServer> {
	let faults: Faults = {};
	const handling = new Set<Promise<void>>();
	const server = createServer((request, response) => {
		const handled = handle(request, response, faults, dependencies)
			// The client went away.
			.catch(() => void request.socket.destroy())
			.finally(() => handling.delete(handled));
		handling.add(handled);
	});
	await new Promise<void>((resolve, reject) => {
		server.once("error", reject);
		server.listen(port, "127.0.0.1", resolve);
	});
	const { port: taken } = server.address() as AddressInfo;
	return {
		port: taken,
		async catchUp() {
			// By the time it has answered, all that came before is read.
			await (await ask(`http://127.0.0.1:${taken}/dev/none`)).body.dump();
			await Promise.all(handling);
		},
		setFaults(next) {
			const unknown = Object.keys(next).find((key) => ![...KINDS, "only"].includes(key));
			if (unknown !== undefined) throw new Error(`no such fault: ${unknown}`);
			faults = next;
		},
		stop: () =>
			new Promise((resolve) => {
				server.close(() => resolve());
				server.closeAllConnections();
			}),
	};
}

async function handle(
	request: IncomingMessage,
	response: ServerResponse,
	faults: Faults,
	{ record, answer, dev }: BuilderServerDependencies,
): Promise<void> {
	const { url: path = "/", method: verb = "GET" } = request;
	const url = new URL(path, "http://builder");
	const body = await buffer(request);
	if (url.pathname.startsWith("/dev/")) {
		const page = await dev(verb, url, body.toString("utf8")).catch((thrown: Error) => thrown);
		if (page instanceof Error) send(response, 400, JSON.stringify({ error: page.message }));
		else send(response, page === null ? 404 : 200, page ?? JSON.stringify({ error: "no such page" }));
		return;
	}
	const at = systemClock.now();
	const { calls, isBatch } = parse(body);
	const isMeant = faults.only === undefined || calls.some(({ method }) => faults.only?.includes(method));
	const fault = isMeant ? KINDS.find((kind) => Boolean(faults[kind])) : undefined;
	if (fault === "down") return void request.socket.destroy();
	const header = request.headers["x-flashbots-signature"];
	const { signer, problem } = checkSignature(typeof header === "string" ? header : undefined, body);
	const headers = Object.fromEntries(
		Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
	);
	const answers: (RecordedAnswer & { readonly id: unknown })[] = [];
	for (const [i, { method, params, id }] of calls.entries()) {
		const outcome = await outcomeOf({ method, params, signer, at });
		if (outcome.answer !== null) answers.push({ id, ...outcome.answer });
		const sent = { at, method, params: Array.isArray(params) ? params : [], id, signer, headers, path };
		record.add({ ...sent, batchIndex: isBatch ? i : null, ...outcome, fault: fault ?? null });
	}
	if (fault !== undefined) await pause(systemClock, faults.slow ?? 0);
	if (fault === "hang") return;
	const all = answers.map((one) => ({ jsonrpc: "2.0", ...one }));
	if (calls.length === 0) send(response, 400, JSON.stringify(PARSE_ERROR));
	else if (fault === "httpError") send(response, 500, "Internal Server Error", "text/plain");
	else if (fault === "nonsense") send(response, 200, HTML, "text/html");
	else send(response, problem === null ? 200 : 400, JSON.stringify(isBatch ? all : all[0]));

	async function outcomeOf(
		call: ReceivedCall,
	): Promise<{ readonly answer: RecordedAnswer | null; readonly effects: readonly string[] }> {
		const { reject } = faults;
		if (fault === "reject")
			return { answer: { error: typeof reject === "object" ? reject : REJECTED }, effects: [] };
		if (fault !== undefined && fault !== "slow") return { answer: null, effects: [] };
		if (problem !== null) return { answer: { error: { code: -32600, message: problem } }, effects: [] };
		return answer(call);
	}
}

function send(response: ServerResponse, status: number, text: string, type = "application/json"): void {
	response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(text) });
	response.end(text);
}

interface Call {
	readonly id: unknown;
	readonly method: string;
	readonly params: unknown;
}

/** Empty if the body is not JSON-RPC. */
function parse(body: Buffer): { readonly calls: readonly Call[]; readonly isBatch: boolean } {
	try {
		const parsed: unknown = JSON.parse(body.toString("utf8"));
		const items = (Array.isArray(parsed) ? parsed : [parsed]) as readonly unknown[];
		const calls = items.map((item) => {
			const { id = null, method, params = [] } = Object(item) as Partial<Call>;
			return { id, method: typeof method === "string" ? method : "", params };
		});
		return { calls, isBatch: Array.isArray(parsed) };
	} catch {
		return { calls: [], isBatch: false };
	}
}
