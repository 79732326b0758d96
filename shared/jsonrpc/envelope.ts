// The JSON-RPC 2.0 envelope: what comes in is the body of a request, what goes out is its calls, and the text of
// their answers. It knows no method, and decides nothing but whether something is a request at all.
// https://www.jsonrpc.org/specification

import { isUtf8 } from "node:buffer";
import { RpcError } from "./errors.ts";

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
	/** What makes it no request object, or null. */
	readonly fault: RpcError | null;
}

/** A request: one entry, or a batch of one or more. */
export interface RpcBody {
	readonly batch: boolean;
	readonly calls: readonly RpcCall[];
}

/** Names longer than this are cut where they are quoted in an error. */
const QUOTED_CHARS = 64;
/** No call of the interface nests further; nodes stop reading at 128. */
const MAX_DEPTH = 64;
const NOT_UNICODE = "well-formed Unicode";
const NO_PARAMS: readonly unknown[] = [];

/**
 * Reads a body. Never throws: what is no JSON (kind `parse`; UTF-8 that is broken counts as that), an empty batch
 * or one of more than `maxBatch` entries (kind `invalidRequest`) is returned as the error to answer with id null.
 */
export function readBody(body: Uint8Array | string, maxBatch: number): RpcBody | RpcError {
	let parsed: unknown;
	if (typeof body !== "string" && !isUtf8(body)) return new RpcError("parse", "parse error: not UTF-8");
	try {
		parsed = JSON.parse(typeof body === "string" ? body : textOf(body));
	} catch {
		// The parser's own message quotes the body, which may hold a raw transaction.
		return new RpcError("parse", "parse error: not JSON");
	}
	if (!Array.isArray(parsed)) return { batch: false, calls: [readCall(parsed)] };
	if (parsed.length === 0) return invalid("empty batch");
	if (parsed.length > maxBatch) return invalid(`a batch has at most ${maxBatch} entries`);
	return { batch: true, calls: parsed.map(readCall) };
}

/** The text of a successful answer. A result that is absent is null: a member that is missing would be no answer. */
export function resultText(id: RpcId, result: unknown): string {
	return `{"jsonrpc":"2.0","id":${idText(id)},"result":${JSON.stringify(result) ?? "null"}}`;
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

function textOf(body: Uint8Array): string {
	const buffer = Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
	return buffer.toString("utf8");
}

function idText(id: RpcId): string {
	return typeof id === "string" ? JSON.stringify(id) : String(id);
}

function invalid(message: string): RpcError {
	return new RpcError("invalidRequest", `invalid request: ${message}`);
}

function refused(id: RpcId, message: string): RpcCall {
	return { id, method: "", params: null, fault: invalid(message) };
}

function readCall(entry: unknown): RpcCall {
	if (typeof entry !== "object" || entry === null || Array.isArray(entry)) {
		return refused(null, "expected an object with jsonrpc, id, method and params");
	}
	// JSON.parse makes even "__proto__" an own member, and nothing is looked up in the object but these four.
	const { id, jsonrpc, method, params } = entry as Record<string, unknown>;
	if (!isId(id)) return refused(null, "id: expected a string, a number without loss of digits, or null");
	if (jsonrpc !== undefined && jsonrpc !== "2.0") return refused(id ?? null, 'jsonrpc: expected "2.0"');
	if (typeof method !== "string" || method === "") return refused(id ?? null, "method: expected a name");
	if (params === undefined) return { id, method, params: NO_PARAMS, fault: null };
	const problem = problemOf(params);
	if (problem !== null) {
		const fault = new RpcError("invalidParams", `invalid params: params: expected ${problem}`);
		return { id, method, params: null, fault };
	}
	return { id, method, params: Array.isArray(params) ? params : null, fault: null };
}

/**
 * What params must be that servers behind us can read, where they are not; else null. JSON.parse reads any depth and
 * halves of surrogate pairs, which a node's parser refuses as no JSON at all. Level by level, not by recursion.
 */
function problemOf(params: unknown): string | null {
	let level = [params];
	for (let depth = 0; depth <= MAX_DEPTH; depth++) {
		const below: unknown[] = [];
		for (const one of level) {
			if (typeof one === "string") {
				if (!one.isWellFormed()) return NOT_UNICODE;
				continue;
			}
			if (typeof one !== "object" || one === null) continue;
			// By value, and not by entries: half a million of them would cost half a second.
			if (!Array.isArray(one) && !Object.keys(one).every((key) => key.isWellFormed())) return NOT_UNICODE;
			for (const inner of Array.isArray(one) ? one : Object.values(one)) {
				if (typeof inner === "string" || (typeof inner === "object" && inner !== null)) below.push(inner);
			}
		}
		if (below.length === 0) return null;
		level = below;
	}
	return `at most ${MAX_DEPTH} levels of nesting`;
}

/** A whole number that JSON.parse has rounded would be echoed as another one, which no client would recognise. */
function isId(id: unknown): id is RpcId | undefined {
	if (typeof id === "number") return Math.abs(id) <= Number.MAX_SAFE_INTEGER;
	return id === undefined || id === null || typeof id === "string";
}
