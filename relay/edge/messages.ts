// The messages between an edge and the core, on one websocket: JSON-RPC calls with their client,
// their answers, and news. Calls or answers of the same turn go as one list.

import type { Client } from "../../shared/client.ts";
import type { Recovered } from "../../shared/ethereum/transaction.ts";
import { type CallContext, ClientLife } from "../../shared/http/callContext.ts";
import { jsonText, readError } from "../../shared/jsonrpc/answers.ts";
import { ForeignRpcError, RPC_ERRORS, RpcError, type RpcErrorKind } from "../../shared/jsonrpc/errors.ts";

/**
 * After this much silence of an edge, as a part of CORE_TIMEOUT_MS, the core accepts nothing more
 * on its connection. The edge may already have reported a late call as not accepted.
 */
export const ACCEPT_PART = 0.7;

/** How long a core waits on shutdown for the answers to accepted calls, in ms. */
export const LEAVE_MS = 500;
/** A longer message ends the connection. */
export const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** The error while there is no core. No core has received any part of the request. */
export const NO_CORE = new RpcError("unavailable", "internal error: no core reachable, try again", {
	reason: "no core",
});

/**
 * Methods of the connection itself: follow a topic, stop following it, get the feed (see
 * {@link FeedStart}), get the next page of the transactions that were shared before, and get the
 * next piece of a long result. The last one reports that the client of a call with a later result
 * has gone.
 */
export const [FOLLOW, UNFOLLOW, FEED, FEED_PAGE, ANSWER_PIECE, GONE] = [
	"core_follow",
	"core_unfollow",
	"core_feed",
	"core_feedPage",
	"core_answerPiece",
	"core_gone",
];

/**
 * Longer calls of clients are sent one at a time, clients in turn: the next one when the core has
 * received this one. Otherwise small calls would wait behind all of them on a slow line.
 */
export const LARGE_CALL_CHARS = 16 * 1024;
/** A longer result is read in pieces of so many characters, so that others need not wait for it. */
export const PIECE_CHARS = 256 * 1024;

/** The answer to {@link ANSWER_PIECE}: the next part of the result's text. */
export interface AnswerPiece {
	readonly text: string;
	readonly isLast: boolean;
}

/** The answer to {@link FEED}: the feed's news arrive from now on. */
export interface FeedStart {
	/** The number of the last news. */
	readonly news: number;
	/**
	 * Whether the edge has received everything that it missed. If not, it must read all pages:
	 * {@link FEED_PAGE} sends some of the transactions that the edge names, and answers with hashes,
	 * of which the edge names those that its clients have not received. After the last page there
	 * are none.
	 */
	readonly isComplete: boolean;
}

/** A transaction that searchers may see. */
export interface SharedTransaction {
	readonly hash: string;
	/** The feed's result as JSON. It may be long, and is made when it is read. */
	readonly text: string;
}

/**
 * Follows a topic. `begin` gets the current results, as JSON values. `tell` gets each later one, as
 * JSON text, and none before `begin`. Resolves to the function that ends it.
 */
export type FollowTopic = (
	topic: string,
	begin: (current: readonly unknown[]) => void,
	tell: (text: string) => void,
) => Promise<() => void>;

/**
 * The caller as the edge has seen it: a {@link CallContext} without the parts that end with the
 * client's connection.
 */
export interface From {
	readonly ws: boolean;
	readonly path: string;
	readonly search: string;
	readonly client: Client;
	readonly origin: string | null;
	/** Size of the request, which its edge keeps until it is answered. */
	readonly bytes: number;
	/** Id of the request. */
	readonly id: string | null;
}

export interface CallMessage {
	readonly id: number;
	readonly method: string;
	readonly params: readonly unknown[];
	/** Absent in a call of the edge's own. */
	readonly from?: From;
	/** Sender and hash of the raw transaction that the call submits, recovered by the edge. */
	readonly tx?: Recovered;
	/** The trace that it is part of. */
	readonly trace?: string;
}

/**
 * Has exactly one of `result`, `error`, `later`, `long` and `got`. `later`: the call is done, and
 * the result follows in another message. `long`: the edge has to read the result in pieces, as a
 * value, or as a text that it passes on without reading it. `got`: the core has received a large
 * call, and answers it in another message.
 */
export interface AnswerMessage {
	readonly id: number;
	readonly result?: unknown;
	readonly error?: WireError;
	readonly later?: true;
	readonly long?: "text" | "value";
	readonly got?: true;
	/** The extra cost of the call in the client's rate limit. */
	readonly charge?: number;
}

interface WireError {
	/** Null for an error of the node that is passed on. */
	readonly kind: RpcErrorKind | null;
	readonly code: number;
	readonly message: string;
	readonly data?: unknown;
}

/**
 * Maximum number of characters of a list, unless one message has more. Reading a list must not
 * delay the other side's pings.
 */
const LIST_CHARS = 1024 * 1024;

/** The texts of lists of calls or answers, in their order. */
export function* listTexts(messages: readonly string[]): Generator<string> {
	let from = 0;
	let chars = 0;
	for (const [i, { length }] of messages.entries()) {
		if (i > from && chars + length > LIST_CHARS) {
			yield `[${messages.slice(from, i).join(",")}]`;
			from = i;
			chars = 0;
		}
		chars += length;
	}
	if (from < messages.length) yield `[${messages.slice(from).join(",")}]`;
}

export function resultMessage(id: number, result: unknown, charge: number): string {
	return `{"jsonrpc":"2.0","id":${id}${chargeText(charge)},"result":${jsonText(result)}}`;
}

export function laterMessage(id: number, charge: number): string {
	return `{"jsonrpc":"2.0","id":${id}${chargeText(charge)},"later":true}`;
}

export function gotMessage(id: number): string {
	return `{"jsonrpc":"2.0","id":${id},"got":true}`;
}

/** `isText`: the result is a JsonText. */
export function longMessage(id: number, isText: boolean, charge: number): string {
	return `{"jsonrpc":"2.0","id":${id}${chargeText(charge)},"long":"${isText ? "text" : "value"}"}`;
}

/** The error message for `thrown`. A fault that clients may not see becomes an internal error. */
export function errorMessage(id: number, thrown: unknown, charge: number): string {
	const read = readError(thrown);
	const error: WireError =
		read === null
			? { kind: "internal", code: RPC_ERRORS.internal.code, message: "internal error" }
			: {
					kind: read.outcome === "foreign" || read.outcome === "ok" ? null : read.outcome,
					code: read.code,
					message: read.message,
					data: read.data,
				};
	return `{"jsonrpc":"2.0","id":${id}${chargeText(charge)},"error":${JSON.stringify(error)}}`;
}

/** The error that the core's process threw. */
export function errorOf({ kind, code, message, data }: WireError): Error {
	return kind === null ? new ForeignRpcError(code, message, data) : new RpcError(kind, message, data);
}

function chargeText(charge: number): string {
	return charge === 0 ? "" : `,"charge":${charge}`;
}

/** The parts of a call's context that the core needs. */
export function fromOf(context: CallContext): From {
	const { transport, path, query, client, origin, life, requestId: id } = context;
	return { ws: transport === "ws", path, search: query.toString(), client, origin, bytes: life.bytes, id };
}

/** The context at the core. The edge reports the end of the client's connection. */
export class RemoteContext implements CallContext {
	readonly transport: "http" | "ws";
	readonly path: string;
	readonly client: Client;
	readonly origin: string | null;
	readonly life: ClientLife;
	readonly connection = null;
	readonly message = null;
	readonly requestId: string | null;
	readonly trace: string | null;
	readonly recovered: Recovered | undefined;
	readonly #search: string;

	constructor(
		{ ws, path, search, client, origin, bytes, id = null }: From,
		recovered?: Recovered,
		trace?: string,
	) {
		this.transport = ws ? "ws" : "http";
		this.path = path;
		this.client = client;
		this.origin = origin;
		this.life = new ClientLife(bytes);
		this.requestId = id;
		this.trace = trace ?? null;
		this.recovered = recovered;
		this.#search = search;
	}

	get query(): URLSearchParams {
		return new URLSearchParams(this.#search);
	}
}

/** A message with news of a topic; `text` is the result as JSON. */
export function topicMessage(topic: string, text: string): string {
	return `{"topic":${JSON.stringify(topic)},"result":${text}}`;
}

export interface TopicMessage {
	readonly topic: string;
	readonly result: unknown;
}

/** The number of a transaction that was shared before the edge connected, and so is no news. */
export const NO_NEWS = 0;

/**
 * A transaction that is shared with searchers, encoded once for all edges. `number` is its number
 * in the core's term.
 */
export function feedMessage(number: number, hash: string, text: string): Buffer {
	return Buffer.from(
		`${FEED_HEAD}${String(number).padStart(DIGITS, "0")}${FEED_HASH}${hash}${FEED_RESULT}${text}}`,
	);
}

const FEED_HEAD = '{"feed":"';
const FEED_HASH = '","hash":"';
const FEED_RESULT = '","result":';
const DIGITS = 12;
const HASH_LENGTH = 66;
const HASH_AT = FEED_HEAD.length + DIGITS + FEED_HASH.length;
const RESULT_AT = HASH_AT + HASH_LENGTH + FEED_RESULT.length;

/** Reads a {@link feedMessage}, without parsing it; null for any other message. */
export function readFeed(
	message: Buffer,
): { readonly number: number; readonly hash: string; readonly text: string } | null {
	if (message.length < RESULT_AT || message.toString("latin1", 0, FEED_HEAD.length) !== FEED_HEAD)
		return null;
	return {
		number: Number(message.toString("latin1", FEED_HEAD.length, FEED_HEAD.length + DIGITS)),
		hash: message.toString("latin1", HASH_AT, HASH_AT + HASH_LENGTH),
		text: message.toString("utf8", RESULT_AT, message.length - 1),
	};
}
