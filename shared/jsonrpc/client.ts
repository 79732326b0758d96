// A JSON-RPC client over HTTP. An upstream's answer is returned, also if it is a JSON-RPC error; a failed transport is thrown,
// since only then may another upstream be tried. It does not retry.

import { isAscii } from "node:buffer";
import type { LookupFunction } from "node:net";
import { type Dispatcher, Pool } from "undici";
import type { Clock } from "../clock.ts";
import { type Symptom, systemCode } from "../outgoing/advice.ts";
import {
	authorizationOf,
	EncodingError,
	encodingsOf,
	firstOf,
	OUTGOING_HEADERS,
	TooLargeError,
	unpacked,
} from "../outgoing/headers.ts";
import { JsonText } from "./answers.ts";
import { joinChunks } from "./longText.ts";

/** One call. `params` must be JSON already: quantities as hex strings. */
export interface RpcCall {
	readonly method: string;
	readonly params: readonly unknown[];
}

/** The upstream's answer to one call. */
export type RpcAnswer =
	| { readonly ok: true; readonly result: unknown }
	| { readonly ok: false; readonly error: { code: number; message: string; data?: unknown } };

/** How a request to an upstream failed, without the upstream's texts and without a URL. */
export type UpstreamFault =
	| "unreachable"
	| "timeout"
	| "httpStatus"
	| "notJsonRpc"
	| "tooLarge"
	/** `shouldSend` answered false: nothing was written. */
	| "withheld";

/** Thrown when no usable answer was received. `status` is the HTTP status, if there was one. */
export class UpstreamError extends Error {
	readonly code: UpstreamFault;
	/** For the operator. */
	readonly host: string | undefined;
	/** What was seen, for {@link advice}. */
	readonly symptom: Symptom;
	constructor(code: UpstreamFault, symptom: Symptom = {}, host?: string) {
		super(`upstream: ${code}`);
		this.name = "UpstreamError";
		this.code = code;
		this.host = host;
		this.symptom = symptom;
	}
	/** HTTP status, if there was an answer. */
	get status(): number | undefined {
		return this.symptom.status;
	}
	/** The system's error code ("ECONNREFUSED"), if there is one. */
	get reason(): string | undefined {
		return this.symptom.reason;
	}
}

interface JsonRpcClientOptions {
	/** http(s) address; path, query and credentials in it are kept and never printed. */
	readonly url: string;
	/** Connections at most. */
	readonly connections?: number;
	/** The default deadline of a call, in ms. */
	readonly timeoutMs: number;
	/** Maximum bytes of an answer. */
	readonly maxAnswerBytes?: number;
}

export interface JsonRpcClientDependencies {
	readonly clock: Clock;
	/** Finds the upstream's addresses. Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
}

interface ExchangeOptions {
	/** Called right before the request is written; if it returns false, the request fails unsent. */
	shouldSend?(): boolean;
	/** Maximum bytes of the answer, instead of the client's own limit. */
	readonly maxBytes?: number | undefined;
}

const CLOSING: Readonly<Record<string, string>> = { "{": "}", "[": "]", '"': '"' };
const LONGEST_ERROR = 4_096;
/** Longer results are not parsed: parsing takes a millisecond for each 200,000 characters. */
const LONG_TEXT = 256 * 1024;
/** Statuses about the operator's key, bill or quota: unauthorized, payment required, forbidden, too many requests. */
export const ACCOUNT_STATUS: ReadonlySet<number> = new Set([401, 402, 403, 429]);

/** A client of one upstream; `close` ends its connections. */
export class JsonRpcClient {
	readonly #pool: Pool;
	readonly #host: string;
	readonly #path: string;
	readonly #headers: Record<string, string>;
	readonly #options: JsonRpcClientOptions;
	readonly #clock: Clock;
	#nextId = 1;

	constructor(options: JsonRpcClientOptions, dependencies: JsonRpcClientDependencies) {
		const url = new URL(options.url);
		const { lookup } = dependencies;
		this.#options = options;
		this.#clock = dependencies.clock;
		this.#host = url.host;
		this.#path = `${url.pathname}${url.search}`;
		this.#headers = { "content-type": "application/json", ...OUTGOING_HEADERS };
		const authorization = authorizationOf(url);
		if (authorization !== null) this.#headers.authorization = authorization;
		this.#pool = new Pool(url.origin, {
			connections: options.connections ?? 32,
			keepAliveTimeout: 20_000,
			// Each call has its own deadline.
			headersTimeout: 0,
			bodyTimeout: 0,
			...(lookup === undefined ? {} : { connect: { lookup } }),
		});
	}

	/**
	 * One call. Throws {@link UpstreamError} if no answer was received within `timeoutMs`. Set `maxBytes` for a result that is
	 * only passed on: a larger one is "tooLarge", and a long one is returned unparsed as {@link JsonText}, which saves time.
	 */
	async call(call: RpcCall, timeoutMs = this.#options.timeoutMs, maxBytes?: number): Promise<RpcAnswer> {
		const id = this.#nextId++;
		const body = JSON.stringify({ jsonrpc: "2.0", id, ...call });
		const answer = await this.exchange(body, {}, timeoutMs, { maxBytes });
		const { status, text } = answer;
		const long = maxBytes !== undefined && status === 200 ? longResult(text, id) : null;
		return long === null ? readAnswer(readJson(answer, this.#host), id) : { ok: true, result: long };
	}

	/** Many calls in one request; answers in the order of the calls. Throws {@link UpstreamError}. */
	async batch(calls: readonly RpcCall[], timeoutMs = this.#options.timeoutMs): Promise<RpcAnswer[]> {
		if (calls.length === 0) return [];
		const first = this.#nextId;
		this.#nextId += calls.length;
		const body = JSON.stringify(calls.map((call, i) => ({ jsonrpc: "2.0", id: first + i, ...call })));
		const answers = await this.post(body, {}, timeoutMs);
		if (!Array.isArray(answers)) throw new UpstreamError("notJsonRpc");
		const byId = new Map(answers.map((answer) => [isObject(answer) ? answer.id : undefined, answer]));
		return calls.map((_, i) => readAnswer(byId.get(first + i), first + i));
	}

	/** Posts `body` and returns the parsed JSON of a 200. Throws {@link UpstreamError}. */
	async post(body: string | Buffer, headers: Record<string, string>, timeoutMs: number): Promise<unknown> {
		return readJson(await this.exchange(body, headers, timeoutMs), this.#host);
	}

	/** Posts `body` and returns status and text, whatever they are. Throws {@link UpstreamError}. */
	async exchange(
		body: string | Buffer,
		headers: Record<string, string>,
		timeoutMs: number,
		options: ExchangeOptions = {},
	): Promise<HttpText> {
		const limit = options.maxBytes ?? this.#options.maxAnswerBytes ?? 64 * 1024 * 1024;
		const exchange = new Exchange(this.#host, limit, options);
		const timer = this.#clock.after(timeoutMs, () => exchange.giveUp("timeout"));
		try {
			await exchange.through(this.#pool, {
				method: "POST",
				path: this.#path,
				headers: { ...this.#headers, ...headers },
				body,
			});
			const { status, headers: head } = exchange;
			const encoding = firstOf(head["content-encoding"]);
			const symptom = { status, type: firstOf(head["content-type"]), location: firstOf(head.location) };
			const joined = exchange.bytes();
			const bytes = joined instanceof Promise ? await joined : joined;
			if (encoding === undefined) return { status, text: textOf(bytes), symptom };
			const plain = await unpacked(bytes, encodingsOf(encoding), limit).catch((thrown: unknown) => {
				if (thrown instanceof TooLargeError) throw new UpstreamError("tooLarge", { status }, this.#host);
				if (!(thrown instanceof EncodingError)) throw thrown;
				throw new UpstreamError(faultOf(status), { ...symptom, encoding }, this.#host);
			});
			return { status, text: textOf(plain), symptom };
		} finally {
			timer.cancel();
		}
	}

	/** Closes all connections; calls in flight fail as unreachable. */
	async close(): Promise<void> {
		await this.#pool.destroy();
	}
}

/** An HTTP answer as it came, unpacked. */
interface HttpText {
	readonly status: number;
	readonly text: string;
	readonly symptom: Symptom;
}

/** ASCII is decoded several times as fast. */
function textOf(bytes: Buffer): string {
	return bytes.toString(isAscii(bytes) ? "latin1" : "utf8");
}

/** The parsed JSON of a 200, or of a JSON-RPC error under another status. Throws {@link UpstreamError}. */
function readJson({ status, text, symptom }: HttpText, host: string): unknown {
	let parsed: unknown;
	try {
		parsed = JSON.parse(text);
	} catch {
		throw new UpstreamError(faultOf(status), symptom, host);
	}
	// Some nodes send JSON-RPC errors under 4xx: they count, unless the status is about the operator's account.
	if (ACCOUNT_STATUS.has(status)) throw new UpstreamError("httpStatus", symptom, host);
	if (status !== 200 && !Array.isArray(parsed) && !(isObject(parsed) && "error" in parsed)) {
		throw new UpstreamError("httpStatus", symptom, host);
	}
	return parsed;
}

function faultOf(status: number): UpstreamFault {
	return status === 200 ? "notJsonRpc" : "httpStatus";
}

/** The unparsed result of a long answer in the usual form of nodes, with the result last; else null. */
export function longResult(text: string, id: number): JsonText | null {
	if (text.length < LONG_TEXT) return null;
	const head = /^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d+)\s*,\s*"result"\s*:/.exec(
		text.slice(0, 200),
	);
	const end = text.trimEnd();
	if (head === null || Number(head[1]) !== id || !end.endsWith("}")) return null;
	const result = end.slice(head[0].length, -1).trim();
	const closing = CLOSING[result[0] ?? ""];
	if (closing === undefined || !result.endsWith(closing)) return null;
	if (closing === '"') return result.indexOf('"', 1) === result.length - 1 ? new JsonText(result) : null;
	// Some nodes append an error to a result that they could not finish.
	return result.slice(-LONGEST_ERROR).includes('"error":') ? null : new JsonText(result);
}

function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readAnswer(answer: unknown, id: number): RpcAnswer {
	if (!isObject(answer)) throw new UpstreamError("notJsonRpc");
	const { error } = answer;
	if (isObject(error)) {
		// Some servers send errors with a null id. The request held one call, so the error belongs to it.
		const { code } = error;
		if (typeof code !== "number") throw new UpstreamError("notJsonRpc");
		const message = typeof error.message === "string" ? error.message : "error";
		return { ok: false, error: { code, message, ...("data" in error ? { data: error.data } : {}) } };
	}
	if (answer.id !== id || !("result" in answer)) throw new UpstreamError("notJsonRpc");
	return { ok: true, result: answer.result };
}

/**
 * One request and its answer, as undici's dispatcher tells of them. Its own `request` makes a stream of each answer and a
 * signal for each deadline, which cost more than all else of a small request.
 */
class Exchange implements Dispatcher.DispatchHandler {
	status = 0;
	headers: Readonly<Record<string, string | string[] | undefined>> = {};
	readonly #host: string;
	readonly #limit: number;
	readonly #checks: Pick<ExchangeOptions, "shouldSend">;
	readonly #chunks: Buffer[] = [];
	#size = 0;
	/** Null before it has a connection. */
	#controller: Dispatcher.DispatchController | null = null;
	#fault: UpstreamError | null = null;
	#resolve: (() => void) | undefined;
	#reject: ((fault: UpstreamError) => void) | undefined;

	/** `limit`: maximum bytes of the answer. */
	constructor(host: string, limit: number, checks: Pick<ExchangeOptions, "shouldSend">) {
		this.#host = host;
		this.#limit = limit;
		this.#checks = checks;
	}

	/** Resolves with the end of the answer. Rejects with {@link UpstreamError}. */
	through(dispatcher: Dispatcher, request: Dispatcher.DispatchOptions): Promise<void> {
		return new Promise((resolve, reject) => {
			this.#resolve = resolve;
			this.#reject = reject;
			dispatcher.dispatch(request, this);
		});
	}

	/** Ends it with a fault. One that waits for a connection fails when it gets one. */
	giveUp(code: UpstreamFault, symptom?: Symptom): void {
		this.#fault ??= new UpstreamError(code, symptom, this.#host);
		this.#controller?.abort(this.#fault);
	}

	/** The body of the answer; a long one is joined in turns of the event loop. */
	bytes(): Buffer | Promise<Buffer> {
		return joinChunks(this.#chunks, this.#size);
	}

	// It may have waited for a connection, and the process may have been suspended meanwhile.
	onRequestStart(controller: Dispatcher.DispatchController): void {
		this.#controller = controller;
		if (this.#fault !== null) controller.abort(this.#fault);
		else if (this.#checks.shouldSend?.() === false) this.giveUp("withheld");
	}

	// Called for provisional answers too; the last one counts.
	onResponseStart(_: unknown, status: number, headers: Exchange["headers"]): void {
		this.status = status;
		this.headers = headers;
	}

	onResponseData(_: unknown, chunk: Buffer): void {
		this.#size += chunk.length;
		if (this.#size > this.#limit) this.giveUp("tooLarge", { status: this.status });
		else this.#chunks.push(chunk);
	}

	onResponseEnd(): void {
		this.#resolve?.();
	}

	onResponseError(_: unknown, error: Error): void {
		this.#reject?.(
			this.#fault ?? new UpstreamError("unreachable", { reason: systemCode(error) }, this.#host),
		);
	}
}
