// The messages between an edge and the core, on one websocket: JSON-RPC calls with who made them, their answers, and news. Calls and
// answers that are there at the same time go as one list.

import type { Client } from "../../shared/client.ts";
import type { Recovered } from "../../shared/ethereum/transaction.ts";
import { type CallContext, ClientLife } from "../../shared/http/callContext.ts";
import { jsonText, readError } from "../../shared/jsonrpc/answers.ts";
import { ForeignRpcError, RPC_ERRORS, RpcError, type RpcErrorKind } from "../../shared/jsonrpc/errors.ts";

/** How often an edge sends a ping, as a part of CORE_TIMEOUT_MS, after which it gives up its calls. */
export const PING_PART = 0.2;
/**
 * After so long a silence of an edge, as a part of CORE_TIMEOUT_MS, the core accepts nothing more on its connection: the edge may already
 * have told a client that a late call was not accepted.
 */
export const ACCEPT_PART = 0.7;

/** How long a core that leaves waits for the calls that it has taken, in ms. */
export const LEAVE_MS = 500;
/** A longer message ends the connection. */
export const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** The error while there is no core. Nothing of the request was given to one. */
export const NO_CORE = new RpcError("unavailable", "internal error: no core can be reached, try again", {
	reason: "no core",
});

/**
 * Methods of the connection itself: to follow a topic, to end that, to get the feed, and to say that the client of a call has gone
 * whose result is still waited for.
 */
export const [FOLLOW, UNFOLLOW, FEED, GONE] = ["core_follow", "core_unfollow", "core_feed", "core_gone"];

/**
 * Follows a topic. `begin` gets the results that stand now, as JSON values; `tell` each later one, as JSON text, and none before
 * `begin`. Resolves to the function that ends it.
 */
export type FollowTopic = (
	topic: string,
	begin: (current: readonly unknown[]) => void,
	tell: (text: string) => void,
) => Promise<() => void>;

/** Who made a call, as the edge has seen it: a {@link CallContext} without what ends with the client's connection. */
export interface From {
	readonly ws: boolean;
	readonly path: string;
	readonly search: string;
	readonly client: Client;
	readonly origin: string | null;
	/** Of the request, which its edge holds until it is answered. */
	readonly bytes: number;
	/** Of the request. */
	readonly id: string | null;
}

export interface CallMessage {
	readonly id: number;
	readonly method: string;
	readonly params: readonly unknown[];
	/** Absent in a call of the edge's own. */
	readonly from?: From;
	/** Of the raw transaction that the call submits, as the edge has recovered it. */
	readonly tx?: Recovered;
	/** The trace that it is part of. */
	readonly trace?: string;
}

/** Exactly one of `result`, `error` and `later`; `later`: it is done, and the result follows in another message. */
export interface AnswerMessage {
	readonly id: number;
	readonly result?: unknown;
	readonly error?: WireError;
	readonly later?: true;
	/** What the call weighs more in the client's rate limit than it weighed at first. */
	readonly charge?: number;
}

interface WireError {
	/** Null for a node's error that is passed on. */
	readonly kind: RpcErrorKind | null;
	readonly code: number;
	readonly message: string;
	readonly data?: unknown;
}

/** Characters of a list, unless one message has more: reading it must not keep the other side from its pings. */
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

/** `thrown` as clients may see it; what they may not see is an internal error. */
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

/** The error that the core's process has thrown. */
export function errorOf({ kind, code, message, data }: WireError): Error {
	return kind === null ? new ForeignRpcError(code, message, data) : new RpcError(kind, message, data);
}

function chargeText(charge: number): string {
	return charge === 0 ? "" : `,"charge":${charge}`;
}

/** Of a call's context what the core needs. */
export function fromOf(context: CallContext): From {
	const { transport, path, query, client, origin, life, requestId: id } = context;
	return { ws: transport === "ws", path, search: query.toString(), client, origin, bytes: life.bytes, id };
}

/** The context at the core: when the client's connection ends, its edge says so. */
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

/** The topic's news: JSON text of its result. */
export function topicMessage(topic: string, text: string): string {
	return `{"topic":${JSON.stringify(topic)},"result":${text}}`;
}

export interface TopicMessage {
	readonly topic: string;
	readonly result: unknown;
}

/** The number of what is no news: it was shared before the edge came. */
export const NO_NEWS = 0;

/** A transaction that is shared with searchers, encoded once for all edges. `number`: its place in the core's term. */
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
