// Reads the calls of a JSON-RPC 2.0 body and writes the text of their answers (https://www.jsonrpc.org/specification). The
// number of values in a body is checked before it is parsed: JSON.parse and the schemas need hundreds of milliseconds for two
// megabytes of "{}", and a hundredth of that for one string of the same length.

import { isAscii, isUtf8, transcode } from "node:buffer";
import { asBuffer } from "../ethereum/hex.ts";
import { ForeignRpcError, RPC_ERRORS, RpcError, type RpcErrorKind } from "./errors.ts";

/** An id, echoed with its type. */
export type RpcId = string | number | null;

/** One entry of a request. */
export interface RpcCall {
	/** Undefined for a notification, which gets no answer. */
	readonly id: RpcId | undefined;
	/** "" where `fault` is set. */
	readonly method: string;
	/** The parsed parameters; `[]` if there were none, null if they are not an array. */
	readonly params: readonly unknown[] | null;
	/** Approximate characters of the parameters as JSON. */
	readonly paramsSize: number;
	/** Why the entry is not a valid request, or null. */
	readonly fault: RpcError | null;
}

/** A request: one entry, or a batch of one or more. */
export interface RpcBody {
	readonly batch: boolean;
	readonly calls: readonly RpcCall[];
}

/** Maximum characters of an id, which is echoed in the answer. */
const MAX_ID_CHARS = 64 * 1024;
/** Longer names are cut when an error quotes them. */
const QUOTED_CHARS = 64;
/** No call of the interface nests deeper; nodes stop at 128. */
const MAX_DEPTH = 64;
/** Maximum values of a body, or more if batches may be larger: an entry has about ten values. */
const MAX_VALUES = 5_000;
const VALUES_PER_ENTRY = 16;
const NO_PARAMS: readonly unknown[] = [];

/**
 * Reads a body. Never throws: for invalid UTF-8 or JSON (kind `parse`), an empty batch, more than `maxBatch` entries or too
 * many values (kind `invalidRequest`) it returns the error to answer with id null.
 */
export function readBody(body: Uint8Array | string, maxBatch: number): RpcBody | RpcError {
	let parsed: unknown;
	const bytes = typeof body === "string" ? Buffer.from(body) : asBuffer(body);
	const text = textOf(bytes);
	if (text === null) return new RpcError("parse", "parse error: not UTF-8");
	const maxValues = Math.max(MAX_VALUES, VALUES_PER_ENTRY * maxBatch);
	if (bytes.length > maxValues && hasMoreValues(bytes, maxValues))
		return invalid(`a body has at most ${maxValues} values`);
	try {
		parsed = JSON.parse(text);
	} catch {
		// The parser's own message quotes the body, which may hold a raw transaction.
		return new RpcError("parse", "parse error: not JSON");
	}
	if (!Array.isArray(parsed)) return { batch: false, calls: [readCall(parsed)] };
	if (parsed.length === 0) return invalid("empty batch");
	if (parsed.length > maxBatch) return invalid(`a batch has at most ${maxBatch} entries`);
	return { batch: true, calls: parsed.map(readCall) };
}

/** A result that is JSON text already, and is written unchanged. */
export class JsonText {
	readonly text: string;
	constructor(text: string) {
		this.text = text;
	}
}

/** The text of a successful answer. An undefined result is written as null, since the member is required. */
function resultText(id: RpcId, result: unknown): string {
	return `{"jsonrpc":"2.0","id":${idText(id)},"result":${jsonText(result)}}`;
}

export function jsonText(result: unknown): string {
	return result instanceof JsonText ? result.text : (JSON.stringify(result) ?? "null");
}

/** The text of an error answer; `data` is left out if undefined. */
export function errorText(id: RpcId, code: number, message: string, data?: unknown): string {
	const dataText = data === undefined ? undefined : JSON.stringify(data);
	const tail = dataText === undefined ? "" : `,"data":${dataText}`;
	return `{"jsonrpc":"2.0","id":${idText(id)},"error":{"code":${code},"message":${JSON.stringify(message)}${tail}}}`;
}

/** `text` as an error may quote it: printable ASCII, at most 64 characters. */
export function quotable(text: string): string {
	const cut = text.length > QUOTED_CHARS ? `${text.slice(0, QUOTED_CHARS)}...` : text;
	return cut.replace(/[^\x20-\x7e]/g, "?");
}

/** Decodes UTF-8, five times as fast as Node's usual method if it is not all ASCII; null if it is none. */
function textOf(bytes: Buffer): string | null {
	if (isAscii(bytes)) return bytes.toString("latin1");
	return isUtf8(bytes) ? transcode(bytes, "utf8", "utf16le").toString("utf16le") : null;
}

function idText(id: RpcId): string {
	return typeof id === "string" ? JSON.stringify(id) : String(id);
}

function invalid(message: string): RpcError {
	return new RpcError("invalidRequest", `invalid request: ${message}`);
}

function refused(id: RpcId, message: string): RpcCall {
	return { id, method: "", params: null, paramsSize: 0, fault: invalid(message) };
}

function readCall(entry: unknown): RpcCall {
	if (typeof entry !== "object" || entry === null || Array.isArray(entry)) {
		return refused(null, "expected an object with jsonrpc, id, method and params");
	}
	// Only these four members are read, so a "__proto__" member does no harm.
	const { id, jsonrpc, method, params } = entry as Record<string, unknown>;
	if (!isId(id)) return refused(null, "id: expected a string, a number without loss of digits, or null");
	if (typeof id === "string" && id.length > MAX_ID_CHARS) {
		return refused(null, `id: expected at most ${MAX_ID_CHARS} characters`);
	}
	if (jsonrpc !== undefined && jsonrpc !== "2.0") return refused(id ?? null, 'jsonrpc: expected "2.0"');
	if (typeof method !== "string" || method === "") return refused(id ?? null, "method: expected a name");
	if (params === undefined) return { id, method, params: NO_PARAMS, paramsSize: 0, fault: null };
	const { size: paramsSize, wellFormed } = measure(params, MAX_DEPTH);
	const fault = !wellFormed
		? badParams("well-formed Unicode")
		: paramsSize === Number.POSITIVE_INFINITY
			? badParams(`at most ${MAX_DEPTH} levels of nesting`)
			: null;
	return { id, method, params: fault === null && Array.isArray(params) ? params : null, paramsSize, fault };
}

/** The error for parameters that upstream servers could not read. */
function badParams(expected: string): RpcError {
	return new RpcError("invalidParams", `invalid params: params: expected ${expected}`);
}

/** Refuses numbers beyond the safe integers: JSON.parse rounds them, so they would be echoed wrongly. */
function isId(id: unknown): id is RpcId | undefined {
	if (typeof id === "number") return Math.abs(id) <= Number.MAX_SAFE_INTEGER;
	return id === undefined || id === null || typeof id === "string";
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;
/** Added to an opening bracket or brace it gives the closing one. */
const CLOSING = 2;
/** Bytes of a string that are read one by one before `indexOf` is used, which costs more to start. */
const SHORT_TEXT = 64;

/**
 * Whether `json` has more than `max` values (lists, objects and their elements), counted without parsing.
 */
function hasMoreValues(json: Buffer, max: number): boolean {
	const { length } = json;
	// Each value but the outermost follows a comma, or is the first element of a list or object that is not empty.
	let values = 1;
	for (let i = 0; i < length; i++) {
		const byte = json[i];
		if (byte === QUOTE) i = textEnd(json, i + 1);
		else if (byte === COMMA || ((byte === BRACE || byte === BRACKET) && json[i + 1] !== byte + CLOSING)) {
			values++;
			if (values > max) return true;
		}
	}
	return false;
}

/** The index of the quote that ends the string beginning at `start`, or the length of `json`. */
function textEnd(json: Buffer, start: number): number {
	const { length } = json;
	let i = start;
	for (;;) {
		const soon = Math.min(length, i + SHORT_TEXT);
		for (; i < soon; i++) {
			const byte = json[i];
			if (byte === QUOTE) return i;
			if (byte === BACKSLASH) i++;
		}
		if (i >= length) return length;
		const quote = json.indexOf(QUOTE, i);
		if (quote === -1) return length;
		let escapes = 0;
		while (quote - escapes > i && json[quote - escapes - 1] === BACKSLASH) escapes++;
		if (escapes % 2 === 0) return quote;
		i = quote + 1;
	}
}

interface Measured {
	/** Approximate characters as JSON; infinite if nested too deep. */
	readonly size: number;
	/** False if a string or key has half a surrogate pair, which other JSON parsers refuse. */
	readonly wellFormed: boolean;
}

/** Measures a parsed value down to `maxDepth`, level by level instead of by recursion. */
function measure(value: unknown, maxDepth: number): Measured {
	let size = 0;
	let level = [value];
	for (let depth = 0; depth <= maxDepth; depth++) {
		const below: unknown[] = [];
		for (const one of level) {
			if (typeof one === "string") {
				if (!one.isWellFormed()) return { size, wellFormed: false };
				size += one.length + 2;
				continue;
			}
			if (typeof one !== "object" || one === null) {
				size += String(one).length;
				continue;
			}
			const keys = Array.isArray(one) ? null : Object.keys(one);
			for (const key of keys ?? []) {
				if (!key.isWellFormed()) return { size, wellFormed: false };
				size += key.length + 3;
			}
			// Object.entries would cost three times as much.
			const inner: unknown[] = keys === null ? (one as unknown[]) : Object.values(one);
			size += 1 + Math.max(1, inner.length);
			for (const next of inner) {
				if (typeof next === "string" || (typeof next === "object" && next !== null)) below.push(next);
				else size += String(next).length;
			}
		}
		if (below.length === 0) return { size, wellFormed: true };
		level = below;
	}
	return { size: Number.POSITIVE_INFINITY, wellFormed: true };
}

/** How a call ended: "foreign" is an upstream's error, a kind is our own. */
export type CallOutcome = "ok" | "foreign" | RpcErrorKind;

/** The answer to a body. */
export interface RpcAnswer {
	/** HTTP status. */
	readonly status: number;
	/** JSON, or null for notifications: HTTP 204, and nothing on a websocket. */
	readonly text: string | null;
	/** Ms after which to retry, if all of it is over the rate limit or can't be served now; else 0. */
	readonly retryMs: number;
}

/** The answer to a call with id `id` (undefined: a notification). Throws if `result` is not JSON, such as a bigint. */
export function okAnswer(id: RpcId | undefined, result: unknown): RpcAnswer {
	return { status: 200, text: id === undefined ? null : resultText(id, result), retryMs: 0 };
}

/** When to retry unless it is known better, in ms. */
const RETRY_MS = 1_000;

export function errorAnswer(id: RpcId | undefined, error: WireError, waitMs = 0): RpcAnswer {
	const { outcome, code, message, data, status } = error;
	const retryMs = waitMs === 0 && (outcome === "unavailable" || outcome === "rateLimit") ? RETRY_MS : waitMs;
	return { status, text: id === undefined ? null : errorText(id, code, message, data), retryMs };
}

/** The error for a client over its rate limit, which may retry in `waitMs`. */
export function rateLimited(waitMs: number): RpcError {
	return new RpcError("rateLimit", `limit exceeded: try again in ${Math.ceil(waitMs / 1000)} s`);
}

/** The same as an answer with id null, for a body that was not read. */
export function limitedAnswer(waitMs: number): RpcAnswer {
	const { code, message } = rateLimited(waitMs);
	return { status: RPC_ERRORS.rateLimit.status, text: errorText(null, code, message), retryMs: waitMs };
}

/** An error as clients see it. */
interface WireError {
	readonly outcome: CallOutcome;
	readonly code: number;
	readonly message: string;
	readonly data: unknown;
	readonly status: number;
}

/** What clients see of our own faults. */
export const INTERNAL: WireError = {
	outcome: "internal",
	...RPC_ERRORS.internal,
	message: "internal error",
	data: undefined,
};

/** What clients may see of a thrown error; null for our own faults. */
export function readError(thrown: unknown): WireError | null {
	if (thrown instanceof RpcError) {
		const { kind, code, message, data } = thrown;
		return { outcome: kind, code, message, data, status: RPC_ERRORS[kind].status };
	}
	if (thrown instanceof ForeignRpcError) {
		const { code, message, data } = thrown;
		return { outcome: "foreign", code, message, data, status: 200 };
	}
	return null;
}

/** The answer to a batch: the common status of all entries, else 200. Notifications add no text. */
export function batchAnswer(answers: readonly RpcAnswer[]): RpcAnswer {
	const texts = answers.flatMap((answer) => (answer.text === null ? [] : [answer.text]));
	const first = answers[0]?.status ?? 200;
	return {
		status: answers.every((answer) => answer.status === first) ? first : 200,
		text: texts.length === 0 ? null : `[${texts.join(",")}]`,
		retryMs: answers.every(({ retryMs }) => retryMs > 0) ? Math.max(...answers.map((one) => one.retryMs)) : 0,
	};
}
