// Server-sent events: feeds come in, each goes out to one client as `text/event-stream`, bounded in number, in time and
// in what may wait for a reader, and kept alive where nothing happens. It knows nothing of what is told.
// https://html.spec.whatwg.org/multipage/server-sent-events.html

import type { Clock, Timer } from "../clock.ts";
import type { AnswerStream } from "./answerStream.ts";
import { clientOf } from "./clientIdentity.ts";
import { type HttpAnswer, jsonAnswer, retryAfter } from "./httpAnswer.ts";

/** The media type. */
export const EVENT_STREAM = "text/event-stream";

/** One message, for `onmessage`: it has no event name. */
export interface EventMessage {
	/** What a client that comes back sends as `Last-Event-ID`: without line ends. */
	readonly id: string;
	/** JSON values. */
	readonly data: unknown;
}

/** What one client is told, from its first message to its last. */
export interface EventFeed {
	/** Starts it: `send` may be called at once and from then on. Answers what stops it, which is called once. */
	readonly begin: (send: (messages: readonly EventMessage[]) => void) => () => void;
	/** Whether nothing can happen any more; asked now and then, and the stream ends where it is so. */
	readonly isOver: () => boolean;
}

export interface EventStreamsOptions {
	/** Streams of one client (IPv6: of one /56) at most; one more gets 429. 16 unless said. */
	readonly maxPerClient?: number;
	/** Streams in all; one more gets 503. 2,000 unless said. */
	readonly maxStreams?: number;
}

export interface EventStreamsDependencies {
	readonly clock: Clock;
}

const MAX_PER_CLIENT = 16;
const MAX_STREAMS = 2_000;
/** Heroku cuts an answer on which nothing is said for 55 s. */
const COMMENT_MS = 15_000;
/** Routers and clients lose connections without a word: none is believed in for longer. Clients come back by themselves. */
const LIFE_MS = 30 * 60 * 1000;
/** How long a client shall wait before it comes back. */
const RETRY_MS = 3_000;

const COMMENT = ":\n\n";
const OPENING = `retry: ${RETRY_MS}\n\n`;
const CONTENT_TYPE = `${EVENT_STREAM}; charset=utf-8`;
const HEADERS = {
	"cache-control": "no-store, no-transform",
	// nginx, and what is made of it, keeps back what it proxies.
	"x-accel-buffering": "no",
	vary: "accept",
};

/** A stream that is open. */
interface OpenStream {
	readonly stream: AnswerStream;
	/** In ms of the clock's monotonic reading. */
	readonly until: number;
	readonly isOver: () => boolean;
}

/** All event streams of a server. */
export class EventStreams {
	readonly #maxPerClient: number;
	readonly #maxStreams: number;
	readonly #clock: Clock;
	readonly #open = new Set<OpenStream>();
	/** Streams by client, only where there are any. */
	readonly #counts = new Map<string, number>();
	#timer: Timer | undefined;

	constructor(options: EventStreamsOptions, dependencies: EventStreamsDependencies) {
		this.#maxPerClient = options.maxPerClient ?? MAX_PER_CLIENT;
		this.#maxStreams = options.maxStreams ?? MAX_STREAMS;
		this.#clock = dependencies.clock;
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
			// Others may have been opened since it was asked: the client finds room, or is told, when it comes back.
			if (this.#refusal(network) === null) this.#begin(stream, network, feed);
			else stream.end();
		};
		return { status: 200, body: null, contentType: CONTENT_TYPE, headers: HEADERS, open };
	}

	#refusal(network: string): HttpAnswer | null {
		const [status, error] =
			this.#open.size >= this.#maxStreams
				? [503, "limit exceeded: too many event streams"]
				: (this.#counts.get(network) ?? 0) >= this.#maxPerClient
					? [429, `limit exceeded: ${this.#maxPerClient} event streams for each client`]
					: [0, ""];
		return status === 0 ? null : jsonAnswer(status, { error }, { "retry-after": retryAfter(RETRY_MS) });
	}

	#begin(stream: AnswerStream, network: string, { begin, isOver }: EventFeed): void {
		const one: OpenStream = { stream, isOver, until: this.#clock.monotonic() + LIFE_MS };
		this.#open.add(one);
		this.#counts.set(network, (this.#counts.get(network) ?? 0) + 1);
		this.#timer ??= this.#clock.after(COMMENT_MS, () => this.#tick());
		stream.onClose(() => this.#forget(one, network));
		// It may have been cut meanwhile: then it is stopped at once.
		stream.onClose(begin((messages) => stream.write(messages.map(messageText).join(""))));
	}

	#forget(one: OpenStream, network: string): void {
		this.#open.delete(one);
		const left = (this.#counts.get(network) ?? 1) - 1;
		if (left === 0) this.#counts.delete(network);
		else this.#counts.set(network, left);
		if (this.#open.size > 0) return;
		this.#timer?.cancel();
		this.#timer = undefined;
	}

	/** A word to each, so that it is kept; those whose time is up, or of whom nothing more can be told, end. */
	#tick(): void {
		const next = this.#clock.monotonic() + COMMENT_MS;
		this.#timer = this.#clock.after(COMMENT_MS, () => this.#tick());
		for (const { stream, until, isOver } of [...this.#open]) {
			if (next > until || isOver()) stream.end();
			else stream.write(COMMENT);
		}
	}
}

/** The answer where all there is to tell is known: it ends behind the last message. */
export function wholeEventStream(messages: readonly EventMessage[]): HttpAnswer {
	const body = OPENING + messages.map(messageText).join("");
	return { status: 200, body, contentType: CONTENT_TYPE, headers: HEADERS };
}

/** The answer to a client that came back and has been told everything: its EventSource stops. */
export const EVENTS_OVER: HttpAnswer = { status: 204, body: null, headers: HEADERS };

function messageText({ id, data }: EventMessage): string {
	return `id: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
}
