// Classifies upstreams' answers as verdicts or faults. This and dialects/ are the only places that
// read an upstream's error messages.
//
// A verdict is any JSON-RPC error about the transaction or the request, with any status below 500.
// Everything else is a fault. So is −32603, unless the dialect knows the message, or the relay
// forwards its node's verdict on a read. With `Retry-After`, −32603 means the same as 503, which
// our relay does not use since wallets handle it badly. So are a fallback's 429 and −32005, which
// limit boost, not the client, unless they ask for less. So are its 401 to 403, which concern
// boost's account, and a pool that is full for everybody.

import type { RpcAnswer } from "../../shared/jsonrpc/client.ts";
import { isOwnFault, RPC_ERRORS } from "../../shared/jsonrpc/errors.ts";
import { ExactNumber, idText, type RpcId } from "../../shared/jsonrpc/ids.ts";
import type { Cutter } from "../../shared/secrets.ts";
import { asksForLess, isAlreadyKnown, isPoolFull } from "../dialects/dialects.ts";
import type {
	Delivery,
	Fault,
	Reading,
	TransportResult,
	UpstreamAnswer,
	UpstreamName,
	WireVerdict,
} from "../domain/request.ts";

/** The upstream that answered. */
export interface Judged {
	readonly name: UpstreamName;
	/** Whether a −32603 with this message is nevertheless a verdict on the transaction. */
	isVerdict(message: string): boolean;
	/**
	 * Removes a third party's secrets from its errors: its URL may have boost's key. Our relay does
	 * that itself.
	 */
	readonly cutter?: Cutter | null;
}

/**
 * Bodies up to this size are parsed before they are forwarded. For longer ones, only both ends are
 * checked.
 */
const PARSED_BYTES = 64 * 1024;
const INTERNAL = RPC_ERRORS.internal.code;
const LIMIT = RPC_ERRORS.limit.code;
/**
 * Unauthorized, payment required, forbidden: a provider's answers for a bad key or an unpaid bill.
 */
const ACCOUNT_STATUS: ReadonlySet<number> = new Set([401, 402, 403]);
/** The body, target or a header is too long. */
const TOO_LONG_STATUS: ReadonlySet<number> = new Set([413, 414, 431]);

/**
 * Classifies the answer to a transaction that was sent as the single call `expected.id`. Its hash
 * (in any case) is success, and so is a message that it is already known. Never throws.
 */
export function judgeDelivery(
	response: TransportResult,
	expected: { readonly id: RpcId; readonly hash: string },
	upstream: Judged,
): Delivery {
	if (response.kind !== "answered") return response;
	if (isOutside(response.status)) return fault("httpStatus", response);
	const value = parsed(response.body);
	if (isNotReady(value, response)) return fault("httpStatus", response);
	const answer = answerOf(value, expected.id);
	if (answer === null) return fault(withoutAnswer(response, upstream), response);
	if (answer.kind === "result") return judgeResult(answer.result, expected.hash, response);
	const error = cut(answer.error, upstream.cutter);
	if (isAlreadyKnown(error.message)) return { kind: "acknowledged", known: true };
	if (isFull(error)) return { ...fault("limited", response), error };
	const found = faultOfError(error, response, upstream);
	return found === null ? { kind: "rejected", error } : { ...fault(found, response), error };
}

/**
 * Classifies the answer to reads. `ids`: the ids of the calls in order, undefined for a
 * notification. `batch`: whether they were sent as an array. The bytes of an answer are forwarded
 * unchanged.
 *
 * Up to 64 KiB the body is parsed: it must be an answer to the one call, or an array with one for
 * each id. For a longer body see {@link looksLikeAnswer}. Single errors are classified as for a
 * delivery. In an array, an entry with −32603 is forwarded like any other. If no id is expected,
 * any body is accepted. Never throws.
 */
export function judgeReading(
	response: TransportResult,
	expected: { readonly ids: readonly (RpcId | undefined)[]; readonly batch: boolean },
	upstream: Judged,
): Reading {
	if (response.kind !== "answered") return response;
	const { status, body, retryAfterS } = response;
	if (isOutside(status)) return fault("httpStatus", response);
	const ids = expected.ids.filter((id) => id !== undefined);
	if (retryAfterS !== undefined && isNotReady(parsed(body), response)) return fault("httpStatus", response);
	if (status < 300) {
		if (ids.length === 0) return { kind: "answered", status, body };
		if (body.length > PARSED_BYTES && looksLikeAnswer(body, expected.batch ? undefined : ids[0])) {
			return { kind: "answered", status, body };
		}
	}
	const value = parsed(body);
	const shown = cutBody(body, value, upstream.cutter);
	// A batch may be rejected as a whole by one error.
	const one = expected.batch && Array.isArray(value) ? null : answerOf(value, expected.batch ? null : ids[0]);
	if (one?.kind === "error") {
		const found = faultOfRead(one.error, response, upstream);
		return found === null
			? { kind: "answered", status, body: shown }
			: { ...fault(found, response), body: shown };
	}
	const isAnswer = expected.batch ? answersAll(value, ids) : one !== null;
	if (!isAnswer || (status === 429 && upstream.name === "fallback")) {
		return fault(withoutAnswer(response, upstream), response);
	}
	return { kind: "answered", status, body: shown };
}

/**
 * The answers to boost's own calls in the order of `ids`; null if any of them is missing. Parses
 * the whole body, which {@link judgeReading} may not have done. Never throws.
 */
export function readCalls(reading: Reading, ids: readonly RpcId[]): readonly RpcAnswer[] | null {
	if (reading.kind !== "answered") return null;
	const value = parsed(reading.body);
	const entries = Array.isArray(value) ? value : [value];
	const answers = new Map<unknown, Answer>();
	for (const entry of entries) {
		const answer = answerOf(entry, undefined);
		if (answer !== null && answer.id !== undefined) answers.set(answer.id, answer);
	}
	const results: RpcAnswer[] = [];
	for (const id of ids) {
		const answer = answers.get(rounded(id)) ?? (ids.length === 1 ? answers.get(null) : undefined);
		if (answer === undefined) return null;
		results.push(
			answer.kind === "result" ? { ok: true, result: answer.result } : { ok: false, error: answer.error },
		);
	}
	return results;
}

/** Whether a status rules out an answer to a JSON-RPC request, regardless of the body. */
function isOutside(status: number): boolean {
	return status < 200 || (status >= 300 && status < 400) || status >= 500;
}

/**
 * Whether an answer shows that its server can serve nothing now: `Retry-After` with only −32603, or
 * with an empty body.
 */
function isNotReady(value: unknown, { retryAfterS, status, body }: UpstreamAnswer): boolean {
	if (retryAfterS === undefined || status >= 300) return false;
	const entries = Array.isArray(value) ? value : [value];
	return body.length === 0 || entries.every((entry) => isInternal(answerOf(entry, undefined)));
}

function isInternal(answer: Answer | null): boolean {
	return answer?.kind === "error" && answer.error.code === INTERNAL;
}

function judgeResult(result: unknown, hash: string, response: UpstreamAnswer): Delivery {
	const isHash = typeof result === "string" && result.toLowerCase() === hash.toLowerCase();
	return isHash ? { kind: "acknowledged", known: false } : fault("wrongHash", response);
}

/** The fault that an error of a read means; null if it is a verdict. */
function faultOfRead(error: WireVerdict, response: UpstreamAnswer, upstream: Judged): Fault | null {
	if (upstream.name === "relay" && error.code === INTERNAL && !isOwnFault(error)) return null;
	if (response.status !== 429 && error.code === LIMIT && asksForLess(error.message)) return null;
	return faultOfError(error, response, upstream);
}

/** The fault that an error means; null if it is a verdict. */
function faultOfError(error: WireVerdict, { status }: UpstreamAnswer, upstream: Judged): Fault | null {
	if (upstream.name === "fallback") {
		if (status === 429 || error.code === LIMIT || error.code === 429) return "limited";
		if (ACCOUNT_STATUS.has(status)) return "httpStatus";
	}
	return error.code === INTERNAL && !upstream.isVerdict(error.message) ? "internal" : null;
}

function cut(error: WireVerdict, cutter: Cutter | null | undefined): WireVerdict {
	if (cutter === null || cutter === undefined) return error;
	const { code, message, data } = error;
	const words = { code, message: cutter.text(message) };
	return data === undefined ? words : { ...words, data: cutter.value(data) };
}

/** The body without secrets in its errors: the same bytes if it has none. */
function cutBody(body: Buffer, value: unknown, cutter: Cutter | null | undefined): Buffer {
	if (cutter === null || cutter === undefined) return body;
	let isChanged = false;
	const entries = Array.isArray(value) ? (value as readonly unknown[]) : [value];
	const shown = entries.map((entry) => {
		const answer = answerOf(entry, undefined);
		if (answer?.kind !== "error") return entry;
		const error = cut(answer.error, cutter);
		if (JSON.stringify(error) === JSON.stringify(answer.error)) return entry;
		isChanged = true;
		return { ...(entry as object), error };
	});
	return isChanged ? Buffer.from(JSON.stringify(Array.isArray(value) ? shown : shown[0])) : body;
}

function withoutAnswer({ status }: UpstreamAnswer, upstream: Judged): Fault {
	if (status === 429 && upstream.name === "fallback") return "limited";
	// A proxy in front of the upstream rejected this request for its size.
	if (TOO_LONG_STATUS.has(status)) return "tooLarge";
	return status >= 400 ? "httpStatus" : "notJsonRpc";
}

/** Whether the pool is full for everybody; full for one sender is a verdict. */
function isFull({ message, data }: WireVerdict): boolean {
	const { scope } = (data ?? {}) as { scope?: unknown };
	return scope === "pool" && isPoolFull(message);
}

function fault(kind: Fault, { retryAfterS }: UpstreamAnswer) {
	const failed = { kind: "failed", fault: kind, sent: true } as const;
	return retryAfterS === undefined ? failed : { ...failed, retryAfterS };
}

/** An answer's id. It loses digits if it has more than JavaScript keeps. */
type ParsedId = string | number | null;

/** An answer to one call. `id` is undefined if it has none. */
export type Answer =
	| { readonly kind: "result"; readonly id: ParsedId | undefined; readonly result: unknown }
	| { readonly kind: "error"; readonly id: ParsedId | undefined; readonly error: WireVerdict };

/** The JSON of a body; undefined if it is not JSON. Never throws. */
export function parsed(body: Buffer): unknown {
	try {
		return JSON.parse(body.toString("utf8"));
	} catch {
		return undefined;
	}
}

/**
 * The answer in a parsed body; null if it does not answer `id` (undefined: any id). An error with
 * id null or without an id answers a request that was sent alone. A result needs its id. Servers in
 * JavaScript answer a long id rounded.
 */
export function answerOf(value: unknown, id: RpcId | undefined): Answer | null {
	if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
	const entry = value as { readonly id?: unknown; readonly error?: unknown; readonly result?: unknown };
	const own = isId(entry.id) ? entry.id : undefined;
	const isOther = id !== undefined && own !== rounded(id);
	// Some servers send an error together with a null result, others a result together with a null
	// error.
	if (entry.error !== undefined && entry.error !== null) {
		const error = errorOf(entry.error);
		if (error === null || (isOther && (own ?? null) !== null)) return null;
		return { kind: "error", id: own ?? null, error };
	}
	if (entry.result === undefined || isOther) return null;
	return { kind: "result", id: own, result: entry.result };
}

/** The id as JSON.parse reads it. */
export function rounded(id: RpcId): ParsedId {
	return id instanceof ExactNumber ? Number(id.text) : id;
}

/** Whether it is an array with an answer to each of `ids`. */
function answersAll(value: unknown, ids: readonly RpcId[]): boolean {
	if (!Array.isArray(value)) return false;
	const answered = new Set<ParsedId | undefined>();
	for (const entry of value) answered.add(answerOf(entry, undefined)?.id);
	return ids.every((id) => answered.has(rounded(id)));
}

/** Bytes of each end that are checked. */
const END_BYTES = 512;

/**
 * Whether a long body, by its two ends, is an answer with a result to `id` in one of the two orders
 * of fields that servers use; for a batch (undefined) whether it is an array of objects. If false,
 * the body must be parsed to know.
 */
function looksLikeAnswer(body: Buffer, id: RpcId | undefined): boolean {
	const head = body.toString("utf8", 0, END_BYTES);
	const tail = body.toString("utf8", Math.max(0, body.length - END_BYTES)).trimEnd();
	if (id === undefined) return head.startsWith("[{") && tail.endsWith("}]");
	const own = idText(id);
	if (head.startsWith(`{"jsonrpc":"2.0","id":${own},"result":`)) return tail.endsWith("}");
	return head.startsWith('{"jsonrpc":"2.0","result":') && tail.endsWith(`,"id":${own}}`);
}

function isId(value: unknown): value is ParsedId {
	return value === null || typeof value === "string" || typeof value === "number";
}

/** Null if it has no code, so that there is nothing to forward. */
function errorOf(value: unknown): WireVerdict | null {
	if (typeof value !== "object") return null;
	const { code, message, data } = value as { code?: unknown; message?: unknown; data?: unknown };
	if (typeof code !== "number") return null;
	const text = typeof message === "string" ? message : "rejected";
	return data === undefined ? { code, message: text } : { code, message: text, data };
}
