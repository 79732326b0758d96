// An edge's HTTP requests to the core, like those of boost to a relay: pages and event streams of
// transactions and bundles. With the secret of its term, the core trusts the client address in the
// request.

import type { LookupFunction } from "node:net";
import { StringDecoder } from "node:string_decoder";
import { clientHeaders, READ_SIGNATURE } from "../../shared/client.ts";
import { type Clock, nextTurn } from "../../shared/clock.ts";
import { type HttpAnswer, jsonAnswer } from "../../shared/http/messages.ts";
import type { RouteRequest } from "../../shared/http/routes.ts";
import type { AnswerStream } from "../../shared/http/unreadBytes.ts";
import type { Holder } from "../../shared/kv/postgres/holder.ts";
import { AbortSwitch } from "../../shared/outgoing/abort.ts";
import { firstOf } from "../../shared/outgoing/headers.ts";
import { HttpClient, type HttpHead } from "../../shared/outgoing/httpClient.ts";
import { PAGE_HEADERS } from "../../shared/pages/pages.ts";
import { REQUEST_ID } from "../../shared/requestId.ts";

interface CoreRequestsDependencies {
	readonly clock: Clock;
	/** Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
}

/** More than the event streams of a core; each stream uses one connection. */
const CONNECTIONS = 2_256;
const CONNECT_MS = 1_000;
/** Longer than the core takes for any answer, in ms. */
const ANSWER_MS = 10_000;
/** Maximum silence of an event stream, in ms. A comment comes every 15 s. */
const SILENCE_MS = 35_000;
const EVENTS = /^text\/event-stream/i;
/** Headers of a request that the routes read. */
const PASSED = [
	"accept",
	"last-event-id",
	"x-flashbots-signature",
	READ_SIGNATURE,
	"origin",
	REQUEST_ID,
] as const;
/** Headers of an answer that describe its content; the server adds the others itself. */
const KEPT = [
	...["cache-control", "retry-after", "x-accel-buffering"],
	...["content-disposition", "link"],
	...Object.keys(PAGE_HEADERS),
];
const JSON_TYPE = "application/json";
const UNANSWERED = jsonAnswer(503, { error: "no core answered, try again" }, { "retry-after": "1" });

/** The HTTP client for the core; it has connections to one core at a time. */
export class CoreRequests {
	readonly #dependencies: CoreRequestsDependencies;
	#client: HttpClient | null = null;
	#holder: Holder | null = null;
	/** Event streams of clients here. */
	#streams = 0;

	constructor(dependencies: CoreRequestsDependencies) {
		this.#dependencies = dependencies;
	}

	/** Event streams that are passed on to clients here. */
	get streams(): number {
		return this.#streams;
	}

	/** The core's answer to a GET. Never rejects: without an answer it is a 503. */
	get(holder: Holder, request: RouteRequest): Promise<HttpAnswer> {
		const { path, query, headers, address } = request;
		const passed: Record<string, string> = { ...clientHeaders(address), "x-boost-auth": holder.secret };
		for (const name of PASSED) {
			const value = firstOf(headers[name]);
			if (value !== undefined) passed[name] = value;
		}
		const search = query.toString();
		const stop = new AbortSwitch();
		return new Promise((resolve) => {
			let stream: AnswerStream | null = null;
			let isStream = false;
			let isOver = false;
			const decoder = new StringDecoder("utf8");
			let text = "";
			const accepts = (head: HttpHead): boolean => {
				if (head.status !== 200 || !EVENTS.test(firstOf(head.headers["content-type"]) ?? "")) return true;
				isStream = true;
				this.#streams += 1;
				resolve({
					...answerOf(head, null),
					open: (opened) => {
						stream = opened;
						opened.write(text);
						text = "";
						if (isOver) opened.end();
						opened.onClose(() => stop.abort());
					},
				});
				// The stream is opened in this turn, unless the client has gone or has asked only
				// for the headers.
				void nextTurn().then(() => {
					if (stream === null) stop.abort();
				});
				return true;
			};
			const onBytes = (bytes: Buffer): void => {
				const more = decoder.write(bytes);
				if (stream === null) text += more;
				else stream.write(more);
			};
			void this.#clientOf(holder)
				.request({
					method: "GET",
					target: search === "" ? path : `${path}?${search}`,
					headers: passed,
					body: null,
					deadlineMs: ANSWER_MS,
					abort: stop,
					stream: { accepts, onBytes, silenceMs: SILENCE_MS },
				})
				.then((result) => {
					// An event stream has its answer already, and ends with the core's stream.
					isOver = true;
					if (isStream) this.#streams -= 1;
					stream?.end();
					resolve(result.kind === "answered" ? answerOf(result, text) : UNANSWERED);
				});
		});
	}

	async close(): Promise<void> {
		await this.#client?.close();
	}

	#clientOf(holder: Holder): HttpClient {
		if (this.#client !== null && this.#holder?.address === holder.address) return this.#client;
		void this.#client?.close();
		this.#holder = holder;
		this.#client = new HttpClient(
			{ url: holder.address, connections: CONNECTIONS, connectMs: CONNECT_MS },
			this.#dependencies,
		);
		return this.#client;
	}
}

function answerOf({ status, headers }: HttpHead, body: string | null): HttpAnswer {
	const kept: Record<string, string> = {};
	for (const name of KEPT) {
		const value = firstOf(headers[name]);
		if (value !== undefined) kept[name] = value;
	}
	const contentType = firstOf(headers["content-type"]) ?? JSON_TYPE;
	const answer = { status, body: status === 204 ? null : body, headers: kept };
	return contentType === JSON_TYPE ? answer : { ...answer, contentType };
}
