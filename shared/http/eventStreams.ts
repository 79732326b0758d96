// Server-sent events for clients that follow a feed, bounded in number, in time and in what may wait for a
// reader. https://html.spec.whatwg.org/multipage/server-sent-events.html

import type { Clock, Timer } from "../clock.ts";
import { Shares } from "../shares/shares.ts";
import { clientOf } from "./callContext.ts";
import { type HttpAnswer, jsonAnswer, retryAfter } from "./messages.ts";
import type { AnswerStream } from "./unreadBytes.ts";

const EVENT_STREAM = "text/event-stream";

/** One message, for `onmessage`: it has no event name. */
export interface EventMessage {
	/** What a client that comes back sends as `Last-Event-ID`: without line ends. */
	readonly id: string;
	/** JSON values. */
	readonly data: unknown;
}

/** What one client is told, from its first message to its last. */
interface EventFeed {
	/** Starts it: `send` may be called at once and from then on. Answers what stops it, which is called once. */
	readonly begin: (send: (messages: readonly EventMessage[]) => void) => () => void;
	/** Whether nothing can happen any more; asked now and then, and the stream ends where it is so. */
	readonly isOver: () => boolean;
}

/** Streams of one client (IPv6: of one /56) at most; one more gets 429. */
const MAX_PER_CLIENT = 16;
/** Streams in all; one more gets 503. */
const MAX_STREAMS = 2_000;
/** Heroku cuts an answer on which nothing is said for 55 s. */
const COMMENT_MS = 15_000;
/** Routers and clients lose connections silently, so each stream ends after this. Clients reconnect by themselves. */
const LIFE_MS = 30 * 60 * 1000;
/** How long a client shall wait before it comes back. */
const RETRY_MS = 3_000;

const COMMENT = ":\n\n";
const OPENING = `retry: ${RETRY_MS}\n\n`;
const HEADERS = {
	"cache-control": "no-store, no-transform",
	// nginx, and what is made of it, keeps back what it proxies.
	"x-accel-buffering": "no",
	vary: "accept",
};

const ANSWER = { status: 200, contentType: `${EVENT_STREAM}; charset=utf-8`, headers: HEADERS };

/** A stream that is open. */
interface OpenStream {
	readonly stream: AnswerStream;
	/** In ms of the clock's monotonic reading. */
	readonly until: number;
	readonly isOver: () => boolean;
}

/** All event streams of a server. */
export class EventStreams {
	readonly #clock: Clock;
	readonly #open = new Set<OpenStream>();
	readonly #shares = new Shares({ total: MAX_STREAMS, perClient: MAX_PER_CLIENT });
	#timer: Timer | undefined;

	constructor({ clock }: { readonly clock: Clock }) {
		this.#clock = clock;
	}

	/** How many are open. */
	get size(): number {
		return this.#open.size;
	}

	/** The answer that tells `address` what `feed` says; 429 or 503 as JSON where there are too many. */
	answer(address: string, feed: EventFeed): HttpAnswer {
		const network = clientOf(address);
		const refusal = this.#refusal(network);
		if (refusal !== null) return refusal;
		const open = (stream: AnswerStream): void => {
			stream.write(OPENING);
			// Others may have been opened since the check: the client comes back and finds room, or an answer that says so.
			if (this.#refusal(network) === null) this.#begin(stream, network, feed);
			else stream.end();
		};
		return { ...ANSWER, body: null, open };
	}

	#refusal(network: string): HttpAnswer | null {
		const over = this.#shares.refusal(network, 1);
		if (over === null) return null;
		const headers = { "retry-after": retryAfter(RETRY_MS) };
		return over === "total"
			? jsonAnswer(503, { error: "limit exceeded: too many event streams" }, headers)
			: jsonAnswer(
					429,
					{ error: `limit exceeded: ${MAX_PER_CLIENT} event streams for each client` },
					headers,
				);
	}

	#begin(stream: AnswerStream, network: string, { begin, isOver }: EventFeed): void {
		const one: OpenStream = { stream, isOver, until: this.#clock.monotonic() + LIFE_MS };
		this.#open.add(one);
		this.#shares.force(network, 1);
		this.#timer ??= this.#clock.after(COMMENT_MS, () => this.#tick());
		stream.onClose(() => this.#forget(one, network));
		// It may have been cut meanwhile: then it is stopped at once.
		stream.onClose(begin((messages) => stream.write(messages.map(messageText).join(""))));
	}

	#forget(one: OpenStream, network: string): void {
		this.#open.delete(one);
		this.#shares.give(network, 1);
		if (this.#open.size > 0) return;
		this.#timer?.cancel();
		this.#timer = undefined;
	}

	/** Writes a comment to each stream to keep it open, and ends those whose time is up or whose feed is over. */
	#tick(): void {
		const next = this.#clock.monotonic() + COMMENT_MS;
		this.#timer = this.#clock.after(COMMENT_MS, () => this.#tick());
		for (const { stream, until, isOver } of [...this.#open]) {
			if (next > until || isOver()) stream.end();
			else stream.write(COMMENT);
		}
	}
}

/** The answer where all messages are known: it ends after the last one. */
export function wholeEventStream(messages: readonly EventMessage[]): HttpAnswer {
	const body = OPENING + messages.map(messageText).join("");
	return { ...ANSWER, body };
}

/** The answer to a client that came back and has had every message: its EventSource stops. */
export const EVENTS_OVER: HttpAnswer = { status: 204, body: null, headers: HEADERS };

function messageText({ id, data }: EventMessage): string {
	return `id: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Whether an `Accept` header names event streams, and before JSON where it names that too: programs ask so, browsers don't. */
export function asksForEvents(accept = ""): boolean {
	const named = accept
		.toLowerCase()
		.split(",")
		.map((range) => range.split(";", 1)[0]?.trim());
	return named.find((type) => type === EVENT_STREAM || type === "application/json") === EVENT_STREAM;
}
