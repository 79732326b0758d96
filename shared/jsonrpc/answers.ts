// The texts of answers to JSON-RPC calls (https://www.jsonrpc.org/specification): results, errors
// and batches of them.

import { joinInTurns } from "../longText.ts";
import { ForeignRpcError, RPC_ERRORS, RpcError, type RpcErrorKind } from "./errors.ts";
import { idText, type RpcId, unparsedId } from "./ids.ts";
import { isList, scanList, scanValue } from "./scan.ts";

/** How a call ended: "foreign" is an upstream's error, a kind is our own. */
export type CallOutcome = "ok" | "foreign" | RpcErrorKind;

/** The answer to a body. */
export interface WrittenAnswer {
	/** HTTP status. */
	readonly status: number;
	/** JSON, or null for notifications: HTTP 204, and nothing on a websocket. */
	readonly text: Buffer | string | null;
	/**
	 * Ms after which to retry, if every call is over the rate limit or can't be served now; else 0.
	 */
	readonly retryMs: number;
}

/** Longer names are cut when an error quotes them. */
const QUOTED_CHARS = 64;
/** No ids are read of a longer batch that is refused before parsing. It gets a single error. */
const MAX_REFUSED = 1_000;

/** A result that is JSON text already, and is written unchanged. */
export class JsonText {
	readonly text: string;
	constructor(text: string) {
		this.text = text;
	}
}

/**
 * The same in pieces, which many answers may use. A long result is copied once, into the answer.
 */
export class JsonPieces {
	readonly pieces: readonly Buffer[];
	constructor(pieces: readonly Buffer[]) {
		this.pieces = pieces;
	}
}

/**
 * The answer to a call with id `id` (undefined: a notification). Throws if `result` is not JSON,
 * such as a bigint.
 */
export function okAnswer(id: RpcId | undefined, result: unknown): WrittenAnswer {
	return { status: 200, text: id === undefined ? null : resultText(id, result), retryMs: 0 };
}

/**
 * The text of a successful answer. An undefined result is written as null, since the member is
 * required.
 */
function resultText(id: RpcId, result: unknown): string {
	return `${resultHead(id)}${jsonText(result)}}`;
}

function resultHead(id: RpcId): string {
	return `{"jsonrpc":"2.0","id":${idText(id)},"result":`;
}

/** As {@link okAnswer} for a result in pieces; made in turns of the event loop. */
export async function piecedAnswer(id: RpcId | undefined, { pieces }: JsonPieces): Promise<WrittenAnswer> {
	const text = id === undefined ? null : await joinInTurns([resultHead(id), ...pieces, "}"]);
	return { status: 200, text, retryMs: 0 };
}

export function jsonText(result: unknown): string {
	return result instanceof JsonText ? result.text : (JSON.stringify(result) ?? "null");
}

/** Default time after which to retry, in ms. */
const RETRY_MS = 1_000;

export function errorAnswer(id: RpcId | undefined, error: WireError, waitMs = 0): WrittenAnswer {
	const { outcome, code, message, data, status } = error;
	const retryMs = waitMs === 0 && (outcome === "unavailable" || outcome === "rateLimit") ? RETRY_MS : waitMs;
	return { status, text: id === undefined ? null : errorText(id, code, message, data), retryMs };
}

/** The text of an error answer; `data` is left out if undefined. */
export function errorText(id: RpcId, code: number, message: string, data?: unknown): string {
	const dataText = data === undefined ? undefined : JSON.stringify(data);
	const tail = dataText === undefined ? "" : `,"data":${dataText}`;
	return `{"jsonrpc":"2.0","id":${idText(id)},"error":{"code":${code},"message":${JSON.stringify(message)}${tail}}}`;
}

/** `text` in a form that an error may quote: printable ASCII, at most 64 characters. */
export function quotable(text: string): string {
	const cut = text.length > QUOTED_CHARS ? `${text.slice(0, QUOTED_CHARS)}...` : text;
	return cut.replace(/[^\x20-\x7e]/g, "?");
}

/** An error as clients see it. */
interface WireError {
	readonly outcome: CallOutcome;
	readonly code: number;
	readonly message: string;
	readonly data: unknown;
	readonly status: number;
}

/** The error that clients receive for our own faults. */
export const INTERNAL: WireError = {
	outcome: "internal",
	...RPC_ERRORS.internal,
	message: "internal error",
	data: undefined,
};

/** The same for one that did not answer in time. */
export const LATE: WireError = { ...INTERNAL, message: "internal error: it took too long, try again" };

/** The part of a thrown error that clients may see. Null for our own faults. */
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

/** The error for a client over its rate limit, which may retry in `waitMs`. */
export function rateLimited(waitMs: number): RpcError {
	return new RpcError("rateLimit", `limit exceeded: try again in ${Math.ceil(waitMs / 1000)} s`);
}

/** The refusals of a body that was not parsed, each with the id of its call if it can be read. */
export function refusedAnswer(body: Buffer, error: RpcError, retryMs: number): WrittenAnswer {
	const wire = readError(error) ?? INTERNAL;
	if (!isList(body)) return errorAnswer(unparsedId(body, scanValue(body, 0)) ?? null, wire, retryMs);
	const entries = scanList(body, MAX_REFUSED) ?? [];
	const answers =
		entries.length > MAX_REFUSED
			? []
			: entries.flatMap((entry) => {
					const id = unparsedId(body, entry);
					return id === undefined ? [] : [errorAnswer(id, wire, retryMs)];
				});
	return answers.length === 0 ? errorAnswer(null, wire, retryMs) : batchAnswer(answers);
}

/** The answer to a batch: the common status of all entries, else 200. Notifications add no text. */
export function batchAnswer(answers: readonly WrittenAnswer[]): WrittenAnswer {
	const texts = answers.flatMap(({ text }) => (text === null ? [] : [text]));
	return { ...together(answers), text: texts.length === 0 ? null : `[${texts.join(",")}]` };
}

/** The same for answers that are long together; made in turns of the event loop. */
export async function longBatchAnswer(answers: readonly WrittenAnswer[]): Promise<WrittenAnswer> {
	const texts = answers.flatMap(({ text }) => (text === null ? [] : [",", text]));
	return { ...together(answers), text: await joinInTurns(["[", ...texts.slice(1), "]"]) };
}

function together(answers: readonly WrittenAnswer[]): Pick<WrittenAnswer, "status" | "retryMs"> {
	const first = answers[0]?.status ?? 200;
	return {
		status: answers.every((answer) => answer.status === first) ? first : 200,
		retryMs: answers.every(({ retryMs }) => retryMs > 0) ? Math.max(...answers.map((one) => one.retryMs)) : 0,
	};
}
