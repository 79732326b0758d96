// The core's side of the connections with the edges. It accepts their calls, and sends them shared
// transactions and the topics that they follow.

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { bearerCheck, type Client } from "../../shared/client.ts";
import { type Clock, nextTurn, pause, type Timer } from "../../shared/clock.ts";
import type { CallContext, ClientLife } from "../../shared/http/callContext.ts";
import { endWith, rawAnswer } from "../../shared/http/messages.ts";
import { JsonText, jsonText, readError } from "../../shared/jsonrpc/answers.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { AnswerLater } from "../../shared/jsonrpc/method.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import {
	ACCEPT_PART,
	ANSWER_PIECE,
	type AnswerPiece,
	type CallMessage,
	errorMessage,
	FEED,
	FEED_PAGE,
	type FeedStart,
	FOLLOW,
	type FollowTopic,
	feedMessage,
	GONE,
	gotMessage,
	LARGE_CALL_CHARS,
	LEAVE_MS,
	laterMessage,
	listTexts,
	longMessage,
	MAX_MESSAGE_BYTES,
	NO_CORE,
	NO_NEWS,
	PIECE_CHARS,
	RemoteContext,
	resultMessage,
	type SharedTransaction,
	topicMessage,
	UNFOLLOW,
} from "./messages.ts";

/** The core's functions for edges. */
export interface CoreService {
	/**
	 * Runs a method of the core. `charge` is called with its extra cost. Returns and throws like a
	 * method's `handle`.
	 */
	call(
		method: string,
		params: readonly unknown[],
		context: CallContext,
		charge: (client: Client, weight: number) => void,
	): unknown;
	/** Follows a topic, see {@link FollowTopic}. */
	readonly follow: FollowTopic;
	/** The transactions that are shared now. */
	shared(): Iterable<SharedTransaction>;
}

interface EdgeServerDependencies {
	readonly clock: Clock;
	/** CORE_TIMEOUT_MS. */
	readonly timeoutMs: number;
	readonly log: Logger;
}

/** An edge that leaves this many bytes unread is disconnected, and reconnects. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;
/** Characters of long results that an edge has not read yet. */
const MAX_LONG_CHARS = 64 * 1024 * 1024;
const TOO_LONG = new RpcError("limit", "limit exceeded: too many large answers at once");
/** How long a call with a later result may take, in ms: as long as the edge's request. */
const LATER_MS = 28_000;
/** Bytes of the feed's news that are kept for edges that reconnect. */
const KEPT_BYTES = 8 * 1024 * 1024;
/** Bytes of a page of shared transactions, unless one has more. */
const PAGE_BYTES = 256 * 1024;
/** Hashes in the answer to a request for a page. */
const LISTED = 256;
const TEXT = { binary: false };

/** All edges of the core. */
export class EdgeServer {
	readonly #dependencies: EdgeServerDependencies;
	readonly #isAllowed: ((header: string | undefined) => boolean) | null;
	readonly #server = new WebSocketServer({
		noServer: true,
		clientTracking: false,
		maxPayload: MAX_MESSAGE_BYTES,
		perMessageDeflate: false,
		skipUTF8Validation: true,
	});
	readonly #edges = new Set<Edge>();
	/** Null until it is open. */
	#service: CoreService | null = null;
	/** The last news of the feed, oldest first; the last one has the number `#news`. */
	readonly #kept: Buffer[] = [];
	#keptBytes = 0;
	#news = 0;

	/** Edges must present `secret`. */
	constructor({ secret }: { readonly secret: string }, dependencies: EdgeServerDependencies) {
		this.#dependencies = dependencies;
		this.#isAllowed = bearerCheck(secret);
	}

	/** Accepts edges from now on. */
	open(service: CoreService): void {
		this.#service = service;
	}

	/** The number of edges. */
	get size(): number {
		return this.#edges.size;
	}

	/** Takes over the socket. */
	upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
		if (this.#isAllowed?.(request.headers.authorization) !== true) {
			endWith(socket, rawAnswer(401, JSON.stringify({ error: "expected the core's secret" })));
			return;
		}
		const service = this.#service;
		if (service === null) {
			endWith(socket, rawAnswer(503, JSON.stringify({ error: "not the core" })));
			return;
		}
		this.#server.handleUpgrade(request, socket, head, (websocket) => {
			const edge: Edge = new Edge(
				websocket,
				{ ...this.#dependencies, service },
				{
					missed: (since) => this.#missed(since),
					news: () => this.#news,
					onClose: () => void this.#edges.delete(edge),
				},
			);
			this.#edges.add(edge);
		});
	}

	/** Sends all edges a shared transaction; `text` is the feed's result as JSON. */
	shared(hash: string, text: string): void {
		this.#news += 1;
		const message = feedMessage(this.#news, hash, text);
		this.#kept.push(message);
		this.#keptBytes += message.length;
		while (this.#keptBytes > KEPT_BYTES) this.#keptBytes -= this.#kept.shift()?.length ?? 0;
		for (const edge of this.#edges) edge.tell(message);
	}

	/**
	 * Accepts no more edges. Closes all connections once the accepted calls are answered, within
	 * half a second.
	 */
	async stop(): Promise<void> {
		this.#service = null;
		await Promise.all([...this.#edges].map((edge) => edge.leave()));
	}

	/**
	 * The news that an edge has missed since `since`, the number of its last news. Null if `since`
	 * is null or too old.
	 */
	#missed(since: number | null): readonly Buffer[] | null {
		const first = this.#news - this.#kept.length + 1;
		if (since === null || since > this.#news || since + 1 < first) return null;
		return this.#kept.slice(since + 1 - first);
	}
}

interface EdgeDependencies extends EdgeServerDependencies {
	readonly service: CoreService;
}

/** The functions of the feed that an edge uses. */
interface Feed {
	/** See `#missed` of {@link EdgeServer}. */
	readonly missed: (since: number | null) => readonly Buffer[] | null;
	/** The number of the last news. */
	readonly news: () => number;
	readonly onClose: () => void;
}

/** One edge. */
class Edge {
	readonly #socket: WebSocket;
	readonly #dependencies: EdgeDependencies;
	readonly #feed: Feed;
	readonly #ends = new Map<string, () => void>();
	/** The client lives of calls with a later result, by the ids of the calls. */
	readonly #lives = new Map<number, ClientLife>();
	/** Long results that the edge has not read whole, by the ids of their calls. */
	readonly #long = new Map<number, { readonly text: string; at: number }>();
	#longChars = 0;
	/** Answers to send with the next turn of the event loop. */
	#outgoing: string[] = [];
	#lastSignAt: number;
	/** See ACCEPT_PART; in ms. */
	readonly #acceptMs: number;
	/** Whether the edge receives the feed's news. */
	#isFed = false;
	/** The shared transactions whose hashes the edge has still to read; null if there are none. */
	#unlisted: Iterator<SharedTransaction> | null = null;
	/** Those whose hashes it has read. */
	#listed: SharedTransaction[] = [];
	/** Calls that are accepted and not answered. */
	#inFlight = 0;
	/** Ends the wait for the last answers on shutdown; null before. */
	#leaving: AbortController | null = null;
	#watch: Timer;

	constructor(socket: WebSocket, dependencies: EdgeDependencies, feed: Feed) {
		this.#socket = socket;
		this.#dependencies = dependencies;
		this.#feed = feed;
		this.#acceptMs = ACCEPT_PART * dependencies.timeoutMs;
		this.#lastSignAt = dependencies.clock.monotonic();
		socket.on("error", () => {});
		socket.on("ping", () => void this.#recordSign());
		socket.on("message", (data: Buffer) => {
			if (!this.#recordSign()) return;
			const calls = callsIn(data);
			if (calls === null) socket.terminate();
			else {
				const [only, ...others] = calls;
				if (data.length > LARGE_CALL_CHARS && only !== undefined && others.length === 0)
					this.#write(Buffer.from(`[${gotMessage(only.id)}]`));
				for (const call of calls) this.#take(call);
			}
		});
		this.#watch = this.#watching();
		socket.on("close", () => {
			this.#watch.cancel();
			for (const end of this.#ends.values()) end();
			this.#ends.clear();
			for (const life of this.#lives.values()) life.end();
			this.#lives.clear();
			feed.onClose();
		});
	}

	/** Sends a message of the feed, if the edge receives the feed already. */
	tell(message: Buffer): void {
		if (this.#isFed) this.#write(message);
	}

	/**
	 * Accepts nothing more. Closes the connection once the accepted calls are answered, within half
	 * a second.
	 */
	async leave(): Promise<void> {
		this.#leaving = new AbortController();
		if (this.#inFlight > 0) await pause(this.#dependencies.clock, LEAVE_MS, this.#leaving.signal);
		this.#flush();
		this.#socket.close(1001, "no core any more");
	}

	/** Disconnects a silent edge, since nobody would read the messages that are written to it. */
	#watching(): Timer {
		const { clock } = this.#dependencies;
		return clock.after(this.#acceptMs, () => {
			if (clock.monotonic() - this.#lastSignAt > this.#acceptMs) this.#socket.terminate();
			else this.#watch = this.#watching();
		});
	}

	/** Records a sign of the edge. Returns false if it came too late: see ACCEPT_PART. */
	#recordSign(): boolean {
		const now = this.#dependencies.clock.monotonic();
		const isLate = now - this.#lastSignAt > this.#acceptMs;
		this.#lastSignAt = now;
		if (isLate) this.#socket.terminate();
		return !isLate && this.#socket.readyState === this.#socket.OPEN;
	}

	#take({ id, method, params, from, tx, trace }: CallMessage): void {
		let weight = 0;
		const charge = (_client: Client, more: number): void => {
			weight += more;
		};
		const fail = (thrown: unknown): void => {
			if (readError(thrown) === null)
				this.#dependencies.log.error("call failed", {
					method,
					request: from?.id ?? undefined,
					fault: safeError(thrown),
				});
			this.#answer(errorMessage(id, thrown, weight));
		};
		const succeed = (result: unknown, life: ClientLife): unknown => {
			if (!(result instanceof AnswerLater)) return this.#answerCall(id, result, weight);
			this.#answer(laterMessage(id, weight));
			weight = 0;
			this.#lives.set(id, life);
			return result
				.finish(LATER_MS)
				.then((last) => this.#answerCall(id, last, 0))
				.finally(() => this.#lives.delete(id));
		};
		try {
			if (this.#leaving !== null) throw NO_CORE;
			if (method === FEED) this.#startFeed(id, (params[0] ?? null) as number | null);
			else if (method === FEED_PAGE) this.#sendPage(id, params[0] as readonly string[]);
			else if (method === ANSWER_PIECE)
				this.#answer(resultMessage(id, this.#nextPiece(Number(params[0])), 0));
			else if (method === FOLLOW) this.#follow(id, String(params[0])).catch(fail);
			else if (method === UNFOLLOW) this.#answer(resultMessage(id, this.#unfollow(String(params[0])), 0));
			else if (method === GONE) {
				this.#lives.get(Number(params[0]))?.end();
				this.#answer(resultMessage(id, true, 0));
			} else if (from !== undefined) {
				const context = new RemoteContext(from, tx, trace);
				const running = this.#dependencies.service.call(method, params, context, charge);
				if (running instanceof Promise || running instanceof AnswerLater) {
					this.#inFlight += 1;
					Promise.resolve(running)
						.then((one) => succeed(one, context.life))
						.catch(fail)
						.finally(() => this.#ended());
				} else succeed(running, context.life);
			}
		} catch (thrown) {
			fail(thrown);
		}
	}

	#ended(): void {
		this.#inFlight -= 1;
		if (this.#inFlight === 0) this.#leaving?.abort();
	}

	/** Sends the news that the edge has missed, if they are kept, and from then on all new ones. */
	#startFeed(id: number, since: number | null): void {
		const missed = this.#feed.missed(since);
		for (const message of missed ?? []) this.#write(message);
		this.#unlisted = missed === null ? this.#dependencies.service.shared()[Symbol.iterator]() : null;
		this.#isFed = true;
		const start: FeedStart = { news: this.#feed.news(), isComplete: missed !== null };
		this.#answer(resultMessage(id, start, 0));
		// Flushes now, since later news must follow this answer.
		this.#flush();
	}

	/**
	 * Sends a page of the listed transactions that the edge wants. Answers the hashes of the others
	 * and of the next ones; none at the end. The edge asks for the next page when it has read this
	 * one, so that a large feed neither blocks the event loop nor fills the connection.
	 */
	#sendPage(id: number, wanted: readonly string[]): void {
		const hashes = new Set(wanted);
		const listed = this.#listed.filter(({ hash }) => hashes.has(hash));
		for (let bytes = 0; bytes < PAGE_BYTES; ) {
			const next = listed.shift();
			if (next === undefined) break;
			const message = feedMessage(NO_NEWS, next.hash, next.text);
			this.#write(message);
			bytes += message.length;
		}
		while (listed.length < LISTED) {
			const next = this.#unlisted?.next();
			if (next?.done !== false) break;
			listed.push(next.value);
		}
		this.#listed = listed;
		const left = listed.map(({ hash }) => hash);
		this.#answer(resultMessage(id, left, 0));
		this.#flush();
	}

	/** Sends the answer to a client's call. If the result is long, the edge reads it in pieces. */
	#answerCall(id: number, result: unknown, weight: number): void {
		const isText = result instanceof JsonText;
		const json = isText ? result : new JsonText(jsonText(result));
		const { length } = json.text;
		if (length <= PIECE_CHARS) this.#answer(resultMessage(id, json, weight));
		else if (this.#longChars + length > MAX_LONG_CHARS) this.#answer(errorMessage(id, TOO_LONG, weight));
		else {
			this.#long.set(id, { text: json.text, at: 0 });
			this.#longChars += length;
			this.#answer(longMessage(id, isText, weight));
		}
	}

	/** The next piece of the long result of the call `id`. */
	#nextPiece(id: number): AnswerPiece {
		const long = this.#long.get(id);
		if (long === undefined) throw new RangeError("no long result with this id");
		const text = long.text.slice(long.at, long.at + PIECE_CHARS);
		long.at += text.length;
		const isLast = long.at === long.text.length;
		if (isLast) {
			this.#long.delete(id);
			this.#longChars -= long.text.length;
		}
		return { text, isLast };
	}

	async #follow(id: number, topic: string): Promise<void> {
		const end = await this.#dependencies.service.follow(
			topic,
			(current) => {
				this.#answer(resultMessage(id, current, 0));
				this.#flush();
			},
			(text) => this.#write(Buffer.from(topicMessage(topic, text))),
		);
		this.#unfollow(topic);
		if (this.#socket.readyState === this.#socket.OPEN) this.#ends.set(topic, end);
		else end();
	}

	/** Returns whether it followed the topic. */
	#unfollow(topic: string): boolean {
		this.#ends.get(topic)?.();
		return this.#ends.delete(topic);
	}

	#answer(message: string): void {
		this.#outgoing.push(message);
		if (this.#outgoing.length === 1) void nextTurn().then(() => this.#flush());
	}

	#flush(): void {
		const messages = this.#outgoing;
		this.#outgoing = [];
		for (const text of listTexts(messages)) this.#write(Buffer.from(text));
	}

	#write(message: Buffer): void {
		const socket = this.#socket;
		if (socket.readyState !== socket.OPEN) return;
		if (socket.bufferedAmount > MAX_UNREAD_BYTES) socket.terminate();
		else socket.send(message, TEXT);
	}
}

/** The calls of a message; null if the message is not from an edge. */
function callsIn(data: Buffer): readonly CallMessage[] | null {
	try {
		const calls: unknown = JSON.parse(data.toString("utf8"));
		return Array.isArray(calls) ? calls : null;
	} catch {
		return null;
	}
}
