// Reads the calls of a JSON-RPC 2.0 body and writes the text of their answers
// (https://www.jsonrpc.org/specification). The work that a body would make is told before anything works on
// it: JSON.parse and the schemas need hundreds of milliseconds for two megabytes of "{}", and a hundred
// times less for one string as long.

import { isAscii, isUtf8, transcode } from "node:buffer";
import { asBuffer } from "../ethereum/hex.ts";
import { ForeignRpcError, RPC_ERRORS, RpcError, type RpcErrorKind } from "./errors.ts";

/** An id as it came, to be echoed with its type. */
export type RpcId = string | number | null;

/** One entry of a request. */
export interface RpcCall {
	/** What the answer's id will be; undefined for a notification, which gets no answer. */
	readonly id: RpcId | undefined;
	/** "" where `fault` is set. */
	readonly method: string;
	/** The parameters as parsed, `[]` where none came, or null where they were no array. */
	readonly params: readonly unknown[] | null;
	/** About as many characters as the parameters have as JSON. */
	readonly paramsSize: number;
	/** What makes it no request object, or null. */
	readonly fault: RpcError | null;
}

/** A request: one entry, or a batch of one or more. */
export interface RpcBody {
	readonly batch: boolean;
	readonly calls: readonly RpcCall[];
}

/** Characters of an id at most: it is written into the answer. */
const MAX_ID_CHARS = 64 * 1024;
/** Names longer than this are cut where they are quoted in an error. */
const QUOTED_CHARS = 64;
/** No call of the interface nests further; nodes stop reading at 128. */
const MAX_DEPTH = 64;
/** Values of a body at most, and more where there may be more entries of a batch: each has about ten. */
const MAX_VALUES = 5_000;
const VALUES_PER_ENTRY = 16;
const NO_PARAMS: readonly unknown[] = [];

/**
 * Reads a body. Never throws: what is no JSON (kind `parse`; UTF-8 that is broken counts as that), an empty batch, one of
 * more than `maxBatch` entries, or a body of too many values (kind `invalidRequest`) is returned as the error to answer
 * with id null.
 */
export function readBody(body: Uint8Array | string, maxBatch: number): RpcBody | RpcError {
	let parsed: unknown;
	const bytes = typeof body === "string" ? Buffer.from(body) : asBuffer(body);
	if (!isUtf8(bytes)) return new RpcError("parse", "parse error: not UTF-8");
	const maxValues = Math.max(MAX_VALUES, VALUES_PER_ENTRY * maxBatch);
	if (hasMoreValues(bytes, maxValues)) return invalid(`a body has at most ${maxValues} values`);
	try {
		parsed = JSON.parse(textOf(bytes));
	} catch {
		// The parser's own message quotes the body, which may hold a raw transaction.
		return new RpcError("parse", "parse error: not JSON");
	}
	if (!Array.isArray(parsed)) return { batch: false, calls: [readCall(parsed)] };
	if (parsed.length === 0) return invalid("empty batch");
	if (parsed.length > maxBatch) return invalid(`a batch has at most ${maxBatch} entries`);
	return { batch: true, calls: parsed.map(readCall) };
}

/** A result that is JSON already: it is written as it is. */
export class JsonText {
	readonly text: string;
	constructor(text: string) {
		this.text = text;
	}
}

/** The text of a successful answer. A result that is absent is null: a member that is missing would be no answer. */
export function resultText(id: RpcId, result: unknown): string {
	return `{"jsonrpc":"2.0","id":${idText(id)},"result":${jsonText(result)}}`;
}

/** A result as JSON. */
export function jsonText(result: unknown): string {
	return result instanceof JsonText ? result.text : (JSON.stringify(result) ?? "null");
}

/** The text of an error answer; `data` is left out where it is undefined. */
export function errorText(id: RpcId, code: number, message: string, data?: unknown): string {
	const dataText = data === undefined ? undefined : JSON.stringify(data);
	const tail = dataText === undefined ? "" : `,"data":${dataText}`;
	return `{"jsonrpc":"2.0","id":${idText(id)},"error":{"code":${code},"message":${JSON.stringify(message)}${tail}}}`;
}

/** `text` in a form that may be quoted in an error: printable ASCII, 64 characters at most. */
export function quotable(text: string): string {
	const cut = text.length > QUOTED_CHARS ? `${text.slice(0, QUOTED_CHARS)}...` : text;
	return cut.replace(/[^\x20-\x7e]/g, "?");
}

/** Of what is UTF-8: where it is more than ASCII, node's usual reading takes five times as long as this. */
function textOf(bytes: Buffer): string {
	return isAscii(bytes) ? bytes.toString("latin1") : transcode(bytes, "utf8", "utf16le").toString("utf16le");
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
	// JSON.parse makes even "__proto__" an own member, and nothing is looked up in the object but these four.
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

/** The error where params are not what servers behind us can read. */
function badParams(expected: string): RpcError {
	return new RpcError("invalidParams", `invalid params: params: expected ${expected}`);
}

/** A whole number that JSON.parse has rounded would be echoed as another one, which no client would recognise. */
function isId(id: unknown): id is RpcId | undefined {
	if (typeof id === "number") return Math.abs(id) <= Number.MAX_SAFE_INTEGER;
	return id === undefined || id === null || typeof id === "string";
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;
/** From what opens to what closes: "]" and "}" both. */
const CLOSING = 2;
/** Bytes of a text that are looked at one by one before its end is searched, which costs more to begin with. */
const SHORT_TEXT = 64;

/**
 * Whether `json` has more than `max` values: its lists, objects and what stands in them. Never parses: of a text that is
 * no JSON the answer says how many there would be.
 */
function hasMoreValues(json: Buffer, max: number): boolean {
	const { length } = json;
	// Each value but the first stands behind a comma, or is the first of its list or object; those may be empty.
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

/** Where the quote is that ends the text which begins at `start`, or the end of the bytes. */
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

/** How deep and how large a value is. */
interface Measured {
	/** About as many characters as it has as JSON; infinite where it nests too deep. */
	readonly size: number;
	/** False where a text or a key in it has half a surrogate pair, which other parsers refuse as no JSON at all. */
	readonly wellFormed: boolean;
}

/** Measures a value that JSON.parse made, down to `maxDepth`. Level by level, not by recursion. */
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
			// By value, and not by entries, which cost three times as much.
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

/** How a call ended: well, with an upstream's error, or with one of ours. */
export type CallOutcome = "ok" | "foreign" | RpcErrorKind;

/** What to send back. */
export interface RpcAnswer {
	/** The HTTP status that goes with it. */
	readonly status: number;
	/** JSON, or null where nothing is answered (notifications): HTTP 204, on a websocket silence. */
	readonly text: string | null;
	/** With status 429: when to come again, in ms; else 0. */
	readonly retryMs: number;
}

/** The answer to a call with id `id` (undefined: a notification). Throws where `result` is no JSON (a bigint). */
export function okAnswer(id: RpcId | undefined, result: unknown): RpcAnswer {
	return { status: 200, text: id === undefined ? null : resultText(id, result), retryMs: 0 };
}

/** The answer to a call that ended with `error`. `retryMs`: see {@link RpcAnswer}. */
export function errorAnswer(id: RpcId | undefined, error: WireError, retryMs = 0): RpcAnswer {
	const { code, message, data, status } = error;
	return { status, text: id === undefined ? null : errorText(id, code, message, data), retryMs };
}

/** The error for a client over its rate limit, which may come again in `waitMs`. */
export function rateLimited(waitMs: number): RpcError {
	return new RpcError("rateLimit", `limit exceeded: try again in ${Math.ceil(waitMs / 1000)} s`);
}

/** The answer with that error to what was not read: its id is null. */
export function limitedAnswer(waitMs: number): RpcAnswer {
	const { code, message } = rateLimited(waitMs);
	return { status: RPC_ERRORS.rateLimit.status, text: errorText(null, code, message), retryMs: waitMs };
}

/** What the wire tells of an error. */
interface WireError {
	readonly outcome: CallOutcome;
	readonly code: number;
	readonly message: string;
	readonly data: unknown;
	readonly status: number;
}

/** All that leaves the process of an own fault. */
export const INTERNAL: WireError = {
	outcome: "internal",
	...RPC_ERRORS.internal,
	message: "internal error",
	data: undefined,
};

/** What was meant for the client of what was thrown; null for an own fault. */
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

/** The answer to a batch: the status that all entries have, else 200. Notifications leave no text. */
export function batchAnswer(answers: readonly RpcAnswer[]): RpcAnswer {
	const texts = answers.flatMap((answer) => (answer.text === null ? [] : [answer.text]));
	const first = answers[0]?.status ?? 200;
	return {
		status: answers.every((answer) => answer.status === first) ? first : 200,
		text: texts.length === 0 ? null : `[${texts.join(",")}]`,
		retryMs: Math.max(...answers.map((answer) => answer.retryMs)),
	};
}
