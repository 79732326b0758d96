// Reads the calls of a JSON-RPC 2.0 body (https://www.jsonrpc.org/specification). The number of
// values in each call is checked before it is parsed. JSON.parse and the schemas need hundreds of
// milliseconds for two megabytes of "{}", but a hundredth of that for a string of the same length.
// A large batch is parsed in turns of the event loop.

import { isAscii, isUtf8 } from "node:buffer";
import { nextTurn } from "../clock.ts";
import { asBuffer } from "../ethereum/hex.ts";
import { RpcError } from "./errors.ts";
import {
	arePlainlyIn,
	isId,
	isPlainlyIn,
	LONG_ID,
	MAX_ID_CHARS,
	numberIn,
	type RpcId,
	unparsedId,
} from "./ids.ts";
import { firstEntry, isList, isListEnd, listStart, nextEntry, type Span, scanValue } from "./scan.ts";
import { textOf } from "./utf8.ts";

/** One entry of a request. */
export interface ReceivedCall {
	/** Undefined for a notification, which gets no answer. */
	readonly id: RpcId | undefined;
	/**
	 * Whether a strict server reads it the same way: it is written with `jsonrpc`, and its params
	 * are not null.
	 */
	readonly isStrict: boolean;
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
	readonly calls: readonly ReceivedCall[];
	/** The bytes as received. */
	readonly bytes: Buffer;
}

/** No call of the interface nests deeper; nodes stop at 128. */
const MAX_DEPTH = 64;
/** Maximum values of one call. */
const MAX_CALL_VALUES = 5_000;
/**
 * A batch of at most this many bytes is parsed at once. Finding its entries would take as long
 * again.
 */
const SHORT_BATCH = 64 * 1024;
/**
 * Maximum values of the calls of a batch that are parsed in one turn of the event loop. A single
 * call may have more.
 */
const TURN_VALUES = 1_000;
/**
 * Maximum bytes of a batch whose entries are found in one turn. A single entry may have more. A
 * byte takes up to ten ns.
 */
const TURN_BYTES = 256 * 1024;
/**
 * Maximum values of all calls of a batch, or more if batches may be larger: a call has about ten
 * values. Two megabytes of addresses or of words have fewer.
 */
const MAX_VALUES = 50_000;
const VALUES_PER_ENTRY = 16;
const NO_PARAMS: readonly unknown[] = [];
const TOO_LARGE = `a call has at most ${MAX_CALL_VALUES} values`;
const NOT_UTF8 = new RpcError("parse", "parse error: not UTF-8");
/** The parser's own message quotes the body, which may hold a raw transaction. */
const NOT_JSON = new RpcError("parse", "parse error: not JSON");

/**
 * Reads a body. A large batch is read in turns of the event loop: only then the result is a
 * promise, which never rejects. Never throws. For invalid UTF-8 or JSON (kind `parse`), and for an
 * empty batch or one of more than `maxBatch` entries (kind `invalidRequest`), returns the error to
 * answer with id null. A call with too many values has a `fault` and is not parsed.
 */
export function readBody(
	body: Uint8Array | string,
	maxBatch: number,
): RpcBody | RpcError | Promise<RpcBody | RpcError> {
	const bytes = typeof body === "string" ? Buffer.from(body) : asBuffer(body);
	return isList(bytes) ? readBatch(bytes, maxBatch) : readSingle(bytes);
}

function readSingle(bytes: Buffer): RpcBody | RpcError {
	const text = textOf(bytes);
	if (text === null) return NOT_UTF8;
	const span = bytes.length > MAX_CALL_VALUES ? scanValue(bytes, 0) : null;
	if (span !== null && span.values > MAX_CALL_VALUES) {
		return { batch: false, calls: [faulty(unparsedId(bytes, span) ?? null, TOO_LARGE)], bytes };
	}
	let parsed: unknown;
	try {
		parsed = JSON.parse(text);
	} catch {
		return NOT_JSON;
	}
	return { batch: false, calls: [readCall(parsed, bytes, text, span)], bytes };
}

function readBatch(bytes: Buffer, maxBatch: number): RpcBody | RpcError | Promise<RpcBody | RpcError> {
	const isAllAscii = isAscii(bytes);
	if (!isAllAscii && !isUtf8(bytes)) return NOT_UTF8;
	const short = isAllAscii && bytes.length <= SHORT_BATCH ? readShortBatch(bytes, maxBatch) : null;
	if (short !== null) return short;
	const reading = new BatchReading(bytes, isAllAscii, maxBatch);
	return reading.readTurn() ?? reading.readRest();
}

/**
 * Null if an entry must be read separately: its id is written in an unusual way, or it may have too
 * many values.
 */
function readShortBatch(bytes: Buffer, maxBatch: number): RpcBody | RpcError | null {
	const text = bytes.toString("latin1");
	let entries: unknown;
	try {
		entries = JSON.parse(text);
	} catch {
		return NOT_JSON;
	}
	if (!Array.isArray(entries) || entries.length > maxBatch || entries.length === 0) return null;
	if (!arePlainlyIn(text, entries)) return null;
	const calls: ReceivedCall[] = [];
	for (const entry of entries) {
		const call = readCall(entry, bytes, null, null);
		// A value has two characters with its comma.
		if (call.paramsSize > MAX_CALL_VALUES) return null;
		calls.push(call);
	}
	return { batch: true, calls, bytes };
}

/** Finds and parses the entries of a batch, in turns of the event loop. */
class BatchReading {
	readonly #bytes: Buffer;
	/** The text of the body if it is ASCII, so that each byte is one character; else null. */
	readonly #ascii: string | null;
	readonly #maxBatch: number;
	readonly #calls: ReceivedCall[] = [];
	/** The next entry to read, and the end of the previous one. */
	#entry: Span | null;
	#end: number;
	#values = 0;

	constructor(bytes: Buffer, isAllAscii: boolean, maxBatch: number) {
		this.#bytes = bytes;
		this.#ascii = isAllAscii ? bytes.toString("latin1") : null;
		this.#maxBatch = maxBatch;
		this.#entry = firstEntry(bytes);
		this.#end = listStart(bytes);
	}

	/** The body or its error when all entries are read, else null. */
	readTurn(): RpcBody | RpcError | null {
		const bytes = this.#bytes;
		const valuesBefore = this.#values;
		const begin = this.#entry?.from ?? 0;
		for (let entry = this.#entry; entry !== null; entry = this.#entry) {
			if (this.#calls.length === this.#maxBatch)
				return invalid(`a batch has at most ${this.#maxBatch} entries`);
			const isNextTurns =
				entry.to > begin + TURN_BYTES || this.#values + entry.values > valuesBefore + TURN_VALUES;
			if (isNextTurns && entry.from > begin) return null;
			const call = this.#read(entry);
			if (call === null) return NOT_JSON;
			this.#calls.push(call);
			this.#end = entry.to;
			this.#entry = nextEntry(bytes, entry);
		}
		if (!isListEnd(bytes, this.#end)) return NOT_JSON;
		return this.#calls.length === 0 ? invalid("empty batch") : { batch: true, calls: this.#calls, bytes };
	}

	/** The call; null if it is not JSON. */
	#read(entry: Span): ReceivedCall | null {
		const { from, to, values } = entry;
		const isTooLarge = values > MAX_CALL_VALUES;
		const most = Math.max(MAX_VALUES, VALUES_PER_ENTRY * this.#maxBatch);
		if (isTooLarge || this.#values + values > most) {
			const message = isTooLarge ? TOO_LARGE : `a batch has at most ${most} values`;
			return faulty(unparsedId(this.#bytes, entry) ?? null, message);
		}
		this.#values += values;
		try {
			const text = this.#ascii?.slice(from, to) ?? textOf(this.#bytes.subarray(from, to)) ?? "";
			return readCall(JSON.parse(text), this.#bytes, text, entry);
		} catch {
			return null;
		}
	}

	async readRest(): Promise<RpcBody | RpcError> {
		for (;;) {
			await nextTurn();
			const read = this.readTurn();
			if (read !== null) return read;
		}
	}
}

function invalid(message: string): RpcError {
	return new RpcError("invalidRequest", `invalid request: ${message}`);
}

function faulty(id: RpcId, message: string): ReceivedCall {
	return { id, isStrict: true, method: "", params: null, paramsSize: 0, fault: invalid(message) };
}

/**
 * Reads an entry. `text`: the text that it was parsed from, or null if its id is known to be
 * written as JavaScript writes it. `span`: the place of the entry in `bytes`, if it is known
 * already.
 */
function readCall(entry: unknown, bytes: Buffer, text: string | null, span: Span | null): ReceivedCall {
	if (typeof entry !== "object" || entry === null || Array.isArray(entry)) {
		return faulty(null, "expected an object with jsonrpc, id, method and params");
	}
	// Only these four members are read, so a "__proto__" member does no harm.
	const { id: parsedId, jsonrpc, method, params } = entry as Record<string, unknown>;
	if (!isId(parsedId)) return faulty(null, "id: expected a string, a number or null");
	let id: RpcId | undefined = parsedId;
	if (typeof id === "number") {
		if (text !== null && (span !== null || !isPlainlyIn(text, id))) {
			const exact = numberIn(bytes, span ?? scanValue(bytes, 0), id);
			if (exact === null) return faulty(null, LONG_ID);
			id = exact;
		}
	} else if (typeof id === "string" && id.length > MAX_ID_CHARS) return faulty(null, LONG_ID);
	if (jsonrpc !== undefined && jsonrpc !== "2.0") return faulty(id ?? null, 'jsonrpc: expected "2.0"');
	if (typeof method !== "string" || method === "") return faulty(id ?? null, "method: expected a name");
	const isStrict = jsonrpc !== undefined && params !== null;
	if (params === undefined || params === null)
		return { id, isStrict, method, params: NO_PARAMS, paramsSize: 0, fault: null };
	const { size: paramsSize, wellFormed } = measure(params, MAX_DEPTH);
	const fault = !wellFormed
		? badParams("well-formed Unicode")
		: paramsSize === Number.POSITIVE_INFINITY
			? badParams(`at most ${MAX_DEPTH} levels of nesting`)
			: null;
	const usable = fault === null && Array.isArray(params) ? params : null;
	return { id, isStrict, method, params: usable, paramsSize, fault };
}

/** The error for parameters that upstream servers could not read. */
function badParams(expected: string): RpcError {
	return new RpcError("invalidParams", `invalid params: params: expected ${expected}`);
}

interface Measured {
	/** Approximate characters as JSON; infinite if nested too deep. */
	readonly size: number;
	/** False if a string or key has half a surrogate pair, which other JSON parsers do not accept. */
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
