// A JSON-RPC client over HTTP. It returns an upstream's answer, even a JSON-RPC error. It throws if
// the transport fails, since only then may the caller try another upstream. It does not retry.

import type { Symptom } from "../outgoing/advice.ts";
import {
	HttpClient,
	type HttpClientDependencies,
	type HttpFailed,
	type RequestBody,
	symptomOf,
} from "../outgoing/httpClient.ts";
import { JsonText } from "./answers.ts";
import { isObject } from "./fields.ts";
import { longJson } from "./longJson.ts";
import { textOf } from "./utf8.ts";

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
	/** `shouldSend` returned false: nothing was written. */
	| "unsent";

/** Thrown when no usable answer was received. `status` is the HTTP status, if there was one. */
export class UpstreamError extends Error {
	readonly code: UpstreamFault;
	/** Host of the upstream, for the operator. */
	readonly host: string | undefined;
	/** Symptoms of the failure, for {@link advice}. */
	readonly symptom: Symptom;
	/** False if no part of the request was sent, so that the upstream can't have it. */
	readonly sent: boolean;
	constructor(code: UpstreamFault, symptom: Symptom = {}, host?: string, sent = true) {
		super(`upstream: ${code}`);
		this.name = "UpstreamError";
		this.code = code;
		this.host = host;
		this.symptom = symptom;
		this.sent = sent;
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
	/** Maximum connections. Default 32. */
	readonly connections?: number;
	/** The default deadline of a call, in ms. */
	readonly timeoutMs: number;
	/** Maximum bytes of an answer. Default 32 MiB. */
	readonly maxAnswerBytes?: number;
}

export type JsonRpcClientDependencies = HttpClientDependencies;

interface ExchangeOptions {
	/**
	 * Called right before the request is written. If it returns false, the request fails as
	 * `unsent`.
	 */
	shouldSend?(): boolean;
	/** Maximum bytes of the answer, instead of the client's own limit. */
	readonly maxBytes?: number | undefined;
	/** Called when the answer begins. */
	readonly onBegin?: (() => void) | undefined;
}

/**
 * A block has at most 8 MiB (EIP-7934), and the logs of a transaction's receipt 20 MiB of JSON
 * (EIP-7825). More would take long to parse, and several answers at once too much memory.
 */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
/** Default maximum of connections. */
const CONNECTIONS = 32;
const CLOSING: Readonly<Record<string, string>> = { "{": "}", "[": "]", '"': '"' };
const LONGEST_ERROR = 4_096;
/** Longer results are not parsed: parsing takes a millisecond for each 200,000 characters. */
const LONG_TEXT = 256 * 1024;
/**
 * Statuses about the operator's key, bill or quota: unauthorized, payment required, forbidden, too
 * many requests.
 */
export const ACCOUNT_STATUS: ReadonlySet<number> = new Set([401, 402, 403, 429]);

/** A client of one upstream; `close` ends its connections. */
export class JsonRpcClient {
	readonly #http: HttpClient;
	readonly #timeoutMs: number;
	#nextId = 1;

	constructor(options: JsonRpcClientOptions, dependencies: JsonRpcClientDependencies) {
		const { url, connections = CONNECTIONS, maxAnswerBytes = MAX_ANSWER_BYTES } = options;
		this.#http = new HttpClient({ url, connections, maxAnswerBytes }, dependencies);
		this.#timeoutMs = options.timeoutMs;
	}

	/**
	 * One call. Throws {@link UpstreamError} if no answer was received within `timeoutMs`. Set
	 * `maxBytes` for a result that is only forwarded. A larger result fails as "tooLarge", and a
	 * long one is returned unparsed as {@link JsonText}, which saves time. `onBegin` is called when
	 * the answer begins.
	 */
	async call(
		call: RpcCall,
		timeoutMs = this.#timeoutMs,
		maxBytes?: number,
		onBegin?: () => void,
	): Promise<RpcAnswer> {
		const id = this.#nextId++;
		const body = longJson({ jsonrpc: "2.0", id, ...call });
		const answer = await this.exchange(body, {}, timeoutMs, { maxBytes, onBegin });
		const { status, text } = answer;
		const long = maxBytes !== undefined && status === 200 ? longResult(text, id) : null;
		return long === null ? readAnswer(readJson(answer, this.#http.host), id) : { ok: true, result: long };
	}

	/** Many calls in one request; answers in the order of the calls. Throws {@link UpstreamError}. */
	async batch(calls: readonly RpcCall[], timeoutMs = this.#timeoutMs): Promise<RpcAnswer[]> {
		if (calls.length === 0) return [];
		const first = this.#nextId;
		this.#nextId += calls.length;
		const body = longJson(calls.map((call, i) => ({ jsonrpc: "2.0", id: first + i, ...call })));
		const answers = await this.post(body, {}, timeoutMs);
		if (!Array.isArray(answers)) throw new UpstreamError("notJsonRpc");
		const byId = new Map(answers.map((answer) => [isObject(answer) ? answer.id : undefined, answer]));
		return calls.map((_, i) => readAnswer(byId.get(first + i), first + i));
	}

	/** Posts `body` and returns the parsed JSON of a 200. Throws {@link UpstreamError}. */
	async post(body: RequestBody, headers: Record<string, string>, timeoutMs: number): Promise<unknown> {
		return readJson(await this.exchange(body, headers, timeoutMs), this.#http.host);
	}

	/** Posts `body` and returns any status and its text. Throws {@link UpstreamError}. */
	async exchange(
		body: RequestBody,
		headers: Record<string, string>,
		timeoutMs: number,
		options: ExchangeOptions = {},
	): Promise<HttpText> {
		const result = await this.#http.request({
			method: "POST",
			target: "",
			headers,
			body,
			deadlineMs: timeoutMs,
			maxBytes: options.maxBytes,
			check: options,
			onBegin: options.onBegin,
		});
		const { host } = this.#http;
		if (result.kind === "aborted") throw new UpstreamError("unreachable", {}, host, result.sent);
		if (result.kind === "failed") throw errorOf(result, host);
		const text = textOf(result.body) ?? result.body.toString("utf8");
		return { status: result.status, text, symptom: symptomOf(result) };
	}

	/** Closes all connections; calls in flight fail as unreachable. */
	async close(): Promise<void> {
		await this.#http.close();
	}
}

/** An HTTP answer as received, unpacked. */
interface HttpText {
	readonly status: number;
	readonly text: string;
	readonly symptom: Symptom;
}

function errorOf(failed: HttpFailed, host: string): UpstreamError {
	const code = faultOf(failed);
	// If a request was broken off, its head does not show the reason.
	const isBrokenOff = code === "unreachable" || code === "timeout";
	const symptom = isBrokenOff ? { reason: failed.reason } : symptomOf(failed);
	return new UpstreamError(code, symptom, host, failed.sent);
}

function faultOf({ fault, head }: HttpFailed): UpstreamFault {
	if (fault === "noConnection" || fault === "reset") return "unreachable";
	if (fault !== "unreadable") return fault;
	return head === null ? "unreachable" : faultOfStatus(head.status);
}

/**
 * The parsed JSON of a 200, or of a JSON-RPC error under another status. Throws {@link
 * UpstreamError}.
 */
function readJson({ status, text, symptom }: HttpText, host: string): unknown {
	let parsed: unknown;
	try {
		parsed = JSON.parse(text);
	} catch {
		throw new UpstreamError(faultOfStatus(status), symptom, host);
	}
	// Some nodes send JSON-RPC errors under 4xx. They count, unless the status is about the
	// operator's account.
	if (ACCOUNT_STATUS.has(status)) throw new UpstreamError("httpStatus", symptom, host);
	if (status !== 200 && !Array.isArray(parsed) && !(isObject(parsed) && "error" in parsed)) {
		throw new UpstreamError("httpStatus", symptom, host);
	}
	return parsed;
}

function faultOfStatus(status: number): UpstreamFault {
	return status === 200 ? "notJsonRpc" : "httpStatus";
}

/**
 * The unparsed result of a long answer in the usual form of nodes, with the result last; else null.
 */
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

function readAnswer(answer: unknown, id: number): RpcAnswer {
	if (!isObject(answer)) throw new UpstreamError("notJsonRpc");
	const { error } = answer;
	if (isObject(error)) {
		// Some servers send errors with a null id. The request held one call, so the error belongs to
		// it.
		const { code } = error;
		if (typeof code !== "number") throw new UpstreamError("notJsonRpc");
		const message = typeof error.message === "string" ? error.message : "error";
		return { ok: false, error: { code, message, ...("data" in error ? { data: error.data } : {}) } };
	}
	if (answer.id !== id || !("result" in answer)) throw new UpstreamError("notJsonRpc");
	return { ok: true, result: answer.result };
}
