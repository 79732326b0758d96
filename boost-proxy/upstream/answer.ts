// JSON-RPC answers as bytes: a body comes in, what it answers to which call goes out. It judges none of it.
// https://www.jsonrpc.org/specification#response_object

import type { RpcId } from "../../shared/jsonrpc/envelope.ts";
import type { WireVerdict } from "../domain/delivery.ts";

/** An answer to one call. `id` is undefined where it has none. */
export type Answer =
	| { readonly kind: "result"; readonly id: RpcId | undefined; readonly result: unknown }
	| { readonly kind: "error"; readonly id: RpcId | undefined; readonly error: WireVerdict };

/** Bytes of each end that are looked at. */
const END_BYTES = 512;
const VALUE = String.raw`("(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|null)`;
const FIRST = /^\s*\{/;
const MEMBER = new RegExp(String.raw`\s*"(jsonrpc|id)"\s*:\s*${VALUE}\s*,`, "y");
const RESULT = /\s*"result"\s*:/y;
const TAIL_ID = new RegExp(String.raw`,\s*"id"\s*:\s*${VALUE}\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`);

/** The JSON of a body; undefined where it is none. Never throws. */
export function parsed(body: Buffer): unknown {
	try {
		return JSON.parse(body.toString("utf8"));
	} catch {
		return undefined;
	}
}

/**
 * The answer in a parsed body, or null where it is none to `id` (undefined: to any). An error with id null, or without
 * one, is the answer to a request that was sent alone; a result needs its id.
 */
export function answerOf(value: unknown, id: RpcId | undefined): Answer | null {
	if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
	const entry = value as { readonly id?: unknown; readonly error?: unknown; readonly result?: unknown };
	const own = isId(entry.id) ? entry.id : undefined;
	// Some servers write the error beside a result of null, and others a null error beside the result.
	if (entry.error !== undefined && entry.error !== null) {
		const error = errorOf(entry.error);
		if (error === null || (id !== undefined && (own ?? null) !== null && own !== id)) return null;
		return { kind: "error", id: own ?? null, error };
	}
	if (entry.result === undefined || (id !== undefined && own !== id)) return null;
	return { kind: "result", id: own, result: entry.result };
}

/** Whether it is an array with an answer to each of `ids`. */
export function answersAll(value: unknown, ids: readonly RpcId[]): boolean {
	if (!Array.isArray(value)) return false;
	const answered = new Set<RpcId | undefined>();
	for (const entry of value) answered.add(answerOf(entry, undefined)?.id);
	return ids.every((id) => answered.has(id));
}

/**
 * Whether the ends of a long body are those of an answer with a result: `{`, then `jsonrpc` and `id` in any order, then
 * `result`, and `}` at the end; or `{`, `jsonrpc`, `result`, with the `id` as one of the last two members. The id must be
 * the one of `ids`. For a batch (`ids` null): `[{` and `}]`, no more. What stands between is not looked at. False means
 * only that it takes a parser to know.
 */
export function looksLikeAnswer(body: Buffer, ids: readonly RpcId[] | null): boolean {
	const head = body.toString("utf8", 0, END_BYTES);
	const tail = body.toString("utf8", Math.max(0, body.length - END_BYTES));
	if (ids === null) return /^\s*\[\s*\{/.test(head) && /\}\s*\]\s*$/.test(tail);
	if (!/\}\s*$/.test(tail)) return false;
	const found = idOf(head, tail);
	return found !== undefined && found === ids[0];
}

function idOf(head: string, tail: string): RpcId | undefined {
	const first = FIRST.exec(head);
	if (first === null) return undefined;
	let at = first[0].length;
	let id: RpcId | undefined;
	for (let member = memberAt(head, at); member !== null; member = memberAt(head, at)) {
		if (member[1] === "id") id = idFrom(member[2]);
		at += member[0].length;
	}
	RESULT.lastIndex = at;
	if (!RESULT.test(head)) return undefined;
	return id === undefined ? idFrom(TAIL_ID.exec(tail)?.[1]) : id;
}

function memberAt(text: string, at: number): RegExpExecArray | null {
	MEMBER.lastIndex = at;
	return MEMBER.exec(text);
}

function idFrom(text: string | undefined): RpcId | undefined {
	if (text === undefined) return undefined;
	try {
		const value: unknown = JSON.parse(text);
		return isId(value) ? value : undefined;
	} catch {
		return undefined;
	}
}

function isId(value: unknown): value is RpcId {
	return value === null || typeof value === "string" || typeof value === "number";
}

/** Null where it has no code: then it says nothing that could be passed on. */
function errorOf(value: unknown): WireVerdict | null {
	if (typeof value !== "object") return null;
	const { code, message, data } = value as { code?: unknown; message?: unknown; data?: unknown };
	if (typeof code !== "number") return null;
	const words = typeof message === "string" ? message : "rejected";
	return data === undefined ? { code, message: words } : { code, message: words, data };
}
