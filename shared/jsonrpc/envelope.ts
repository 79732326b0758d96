// The JSON-RPC 2.0 envelope: reads the calls of a body, and writes the text of their answers. It knows no method, and
// decides nothing but whether something is a request at all, which it tells of the largest body within some milliseconds.
// https://www.jsonrpc.org/specification

import { isAscii, isUtf8, transcode } from "node:buffer";
import { asBuffer } from "../ethereum/hex.ts";
import { RpcError } from "./errors.ts";
import { hasMoreValues, measure } from "./jsonSize.ts";

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
