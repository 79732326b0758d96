// Server-sent events, limited in number, duration and unread bytes.
// https://html.spec.whatwg.org/multipage/server-sent-events.html

import { clientOf } from "../client.ts";
import type { Clock, Timer } from "../clock.ts";
import { Shares } from "../shares/shares.ts";
import { type HttpAnswer, jsonAnswer, type RequestHead, retryAfter, VARY_ACCEPT } from "./messages.ts";
import type { AnswerStream } from "./unreadBytes.ts";

const EVENT_STREAM = "text/event-stream";

/** One message without an event name, which EventSource gives to `onmessage`. */
export interface EventMessage {
	/** A reconnecting client sends it as `Last-Event-ID`. No line breaks. */
	readonly id: string;
	/** JSON values. */
	readonly data: unknown;
}

/** The source of one client's messages. */
interface EventFeed {
	/**
	 * Starts the feed. `write` accepts whole messages, and may be called at once. Returns the
	 * function that stops the feed.
	 */
	readonly begin: (write: (text: string) => void) => () => void;
	/** Whether no more messages can come; checked regularly, and ends the stream. */
	readonly isOver: () => boolean;
}

/** Maximum streams of one client; further ones get 429. */
const MAX_PER_CLIENT = 16;
/**
 * Maximum streams of all clients. Above it the client with the most loses its oldest stream to a
 * client that has fewer. If no client has fewer, further streams get 503.
 */
const MAX_STREAMS = 2_000;
/** Comments keep the stream alive: Heroku ends an answer that is idle for 55 s. */
const COMMENT_MS = 15_000;
/**
 * Routers and clients lose connections without notice, so each stream ends after this. EventSource
 * reconnects by itself.
 */
const LIFE_MS = 30 * 60 * 1000;
const RETRY_MS = 3_000;

const COMMENT = ":\n\n";
const HEADERS = {
	"cache-control": "no-store, no-transform",
	// nginx, and servers based on it, buffer answers.
	"x-accel-buffering": "no",
	...VARY_ACCEPT,
};

const ANSWER = { status: 200, contentType: `${EVENT_STREAM}; charset=utf-8`, headers: HEADERS };

export interface EventStreamsOptions {
	/** Each stream ends after this time, in ms. Default 30 minutes. */
	readonly lifeMs?: number;
	/** How long clients wait before they reconnect, in ms. Default 3,000. */
	readonly retryMs?: number;
}

interface OpenStream {
	readonly stream: AnswerStream;
	/** See clientOf. */
	readonly network: string;
	/** Monotonic time in ms. */
	readonly until: number;
	readonly isOver: () => boolean;
}

/** All event streams of a server. */
export class EventStreams {
	readonly #lifeMs: number;
	readonly #retryMs: number;
	readonly #clock: Clock;
	/** The oldest first. */
	readonly #open = new Set<OpenStream>();
	readonly #shares = new Shares({ total: MAX_STREAMS, perClient: MAX_PER_CLIENT });
	#timer: Timer | undefined;

	constructor(
		{ clock }: { readonly clock: Clock },
		{ lifeMs = LIFE_MS, retryMs = RETRY_MS }: EventStreamsOptions = {},
	) {
		this.#lifeMs = lifeMs;
		this.#retryMs = retryMs;
		this.#clock = clock;
	}

	/** Open streams. */
	get size(): number {
		return this.#open.size;
	}

	/**
	 * The answer that streams `feed` to the client at `address`; 429 or 503 if there are too many
	 * streams.
	 */
	answer(address: string, feed: EventFeed): HttpAnswer {
		const network = clientOf(address);
		const refusal = this.#refusal(network);
		if (refusal !== null) return refusal;
		const open = (stream: AnswerStream): void => {
			stream.write(opening(this.#retryMs));
			// Others may have been opened since the check above. The client reconnects, and may then get
			// the error.
			if (this.#refusal(network) !== null) {
				stream.end();
				return;
			}
			if (this.#shares.exceeded(network, 1) !== null) this.#oldestOfLargest(network)?.stream.end();
			this.#begin(stream, network, feed);
		};
		return { ...ANSWER, body: null, open };
	}

	#refusal(network: string): HttpAnswer | null {
		const over = this.#shares.exceeded(network, 1);
		if (over === null || (over === "total" && this.#oldestOfLargest(network) !== null)) return null;
		const headers = { "retry-after": retryAfter(this.#retryMs) };
		return over === "total"
			? jsonAnswer(503, { error: "limit exceeded: too many event streams" }, headers)
			: jsonAnswer(
					429,
					{ error: `limit exceeded: ${MAX_PER_CLIENT} event streams for each client` },
					headers,
				);
	}

	/**
	 * The stream to close for one more of `network`: the oldest of the client with the most. Null
	 * if that client would not have more than `network` afterwards.
	 */
	#oldestOfLargest(network: string): OpenStream | null {
		const largest = this.#shares.largest();
		if (largest === null || this.#shares.of(largest) <= this.#shares.of(network) + 1) return null;
		for (const one of this.#open) if (one.network === largest) return one;
		return null;
	}

	#begin(stream: AnswerStream, network: string, { begin, isOver }: EventFeed): void {
		const one: OpenStream = { stream, network, isOver, until: this.#clock.monotonic() + this.#lifeMs };
		this.#open.add(one);
		this.#shares.takeAnyway(network, 1);
		this.#timer ??= this.#clock.after(COMMENT_MS, () => this.#tick());
		stream.onClose(() => this.#forget(one));
		// If the stream has closed meanwhile, the feed is stopped at once.
		stream.onClose(begin((text) => stream.write(text)));
	}

	#forget(one: OpenStream): void {
		this.#open.delete(one);
		this.#shares.release(one.network, 1);
		if (this.#open.size > 0) return;
		this.#timer?.cancel();
		this.#timer = undefined;
	}

	/** Writes a comment to each stream, and ends those whose time is up or whose feed is over. */
	#tick(): void {
		const next = this.#clock.monotonic() + COMMENT_MS;
		this.#timer = this.#clock.after(COMMENT_MS, () => this.#tick());
		for (const { stream, until, isOver } of [...this.#open]) {
			if (next > until || isOver()) stream.end();
			else stream.write(COMMENT);
		}
	}
}

/** The answer if all messages are known already. It ends after the last one. */
export function wholeEventStream(messages: readonly EventMessage[]): HttpAnswer {
	const body = opening(RETRY_MS) + eventsText(messages);
	return { ...ANSWER, body };
}

/** The paths of event streams, at the relay and through boost. */
const STREAM_PATHS = /^\/(?:mev-share|tx\/[^/]+\/events)$/;

/**
 * The answer to a client that requests an event stream, in place of a failure that will pass. Any
 * status but 200 closes a browser's EventSource for good. So it gets a stream that reports the
 * reason and ends, and it then reconnects by itself. Null for any other request or answer.
 */
export function reconnectingStream(
	{ method, headers: { accept } }: RequestHead,
	path: string,
	{ status, body, headers = {} }: HttpAnswer,
): HttpAnswer | null {
	if (status < 500 || method !== "GET" || !STREAM_PATHS.test(path) || !asksForEvents(accept)) return null;
	const { "retry-after": seconds, ...others } = headers;
	const retryMs = Number(seconds) * 1000 || RETRY_MS;
	const text = `${opening(retryMs)}: ${reasonOf(body)}\n\n`;
	return { ...ANSWER, body: text, headers: { ...others, ...HEADERS } };
}

/** The error in an answer's JSON, in one line. */
function reasonOf(body: HttpAnswer["body"]): string {
	try {
		const { error } = JSON.parse(String(body)) as { error?: unknown };
		if (typeof error === "string") return error.replace(/\s+/g, " ");
	} catch {
		// Another form of error.
	}
	return "not available now";
}

/** The answer to a reconnecting client that has every message. On a 204 its EventSource stops. */
export const EVENTS_OVER: HttpAnswer = { status: 204, body: null, headers: HEADERS };

function opening(retryMs: number): string {
	return `retry: ${retryMs}\n\n`;
}

/** Messages in their wire format. */
export function eventsText(messages: readonly EventMessage[]): string {
	return messages.map(({ id, data }) => `id: ${id}\n${dataText(JSON.stringify(data))}`).join("");
}

/** A message without an id, of JSON without line breaks. */
export function dataText(json: string): string {
	return `data: ${json}\n\n`;
}

/** Whether an `Accept` header names event streams, and names JSON only after them, if at all. */
export function asksForEvents(accept = ""): boolean {
	const named = accept
		.toLowerCase()
		.split(",")
		.map((range) => range.split(";", 1)[0]?.trim());
	return named.find((type) => type === EVENT_STREAM || type === "application/json") === EVENT_STREAM;
}
