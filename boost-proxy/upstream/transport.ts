// Requests to one upstream over the shared HTTP client. Also reads the parts of an answer that only
// boost needs: how long to wait, and whether the request came back to boost.

import type { Clock } from "../../shared/clock.ts";
import type { Symptom } from "../../shared/outgoing/advice.ts";
import { firstOf } from "../../shared/outgoing/headers.ts";
import {
	HttpClient,
	type HttpClientDependencies,
	type HttpFault,
	type HttpResult,
	symptomOf,
} from "../../shared/outgoing/httpClient.ts";
import { LOOP_HEADER, LOOP_STATUS } from "../domain/loops.ts";
import type { Post, Transport } from "../domain/ports.ts";
import type { Fault, TransportResult } from "../domain/request.ts";

export interface TransportOptions {
	/** An http(s) URL; its path, query and credentials are used and never printed. */
	readonly url: string;
	/** The maximum number of connections; further requests wait for one, within their deadlines. */
	readonly connections?: number;
	readonly maxAnswerBytes?: number;
	/** Ms for connecting, TLS included; then the request is `refused`. */
	readonly connectMs?: number;
	/**
	 * This boost instance's entry in `Via`, by which it recognizes its own requests if they come
	 * back.
	 */
	readonly via?: string;
}

export interface TransportDependencies extends HttpClientDependencies {
	/** Called for each request that failed, and for each answer that is not 200 with JSON. */
	readonly onSymptom?: ((symptom: Symptom) => void) | undefined;
}

const CONNECTIONS = 256;
/** A lost SYN is sent again after one second, which must not count as an outage. */
const CONNECT_MS = 2_500;

/**
 * A transport over HTTP/1.1. `close` ends its connections; requests in progress end as `aborted`.
 */
export class HttpTransport implements Transport {
	readonly #http: HttpClient;
	readonly #clock: Clock;
	readonly #onSymptom: (symptom: Symptom) => void;

	constructor(options: TransportOptions, dependencies: TransportDependencies) {
		const { url, connections = CONNECTIONS, connectMs = CONNECT_MS, maxAnswerBytes, via } = options;
		const headers = via === undefined ? undefined : { via };
		this.#http = new HttpClient({ url, connections, connectMs, maxAnswerBytes, headers }, dependencies);
		this.#clock = dependencies.clock;
		this.#onSymptom = dependencies.onSymptom ?? (() => {});
	}

	post({ target, body, headers, deadlineMs, abort }: Post): Promise<TransportResult> {
		return this.#http
			.request({ method: "POST", target, headers, body, deadlineMs, abort })
			.then((result) => this.#read(result));
	}

	get(target: string, deadlineMs: number, headers: Post["headers"] = {}): Promise<TransportResult> {
		return this.#http
			.request({ method: "GET", target, headers, body: null, deadlineMs })
			.then((result) => this.#read(result));
	}

	/** See {@link HttpClient.renew}. */
	renew(): void {
		this.#http.renew();
	}

	close(): Promise<void> {
		return this.#http.close();
	}

	#read(result: HttpResult): TransportResult {
		if (result.kind === "aborted") return result;
		if (result.kind === "failed") {
			this.#onSymptom(symptomOf(result));
			return { kind: "failed", fault: FAULT_OF[result.fault], sent: result.sent };
		}
		const { status, headers, body } = result;
		const isLoop = status === LOOP_STATUS && headers[LOOP_HEADER] !== undefined;
		if (isLoop || status !== 200 || !isJson(firstOf(headers["content-type"]))) {
			this.#onSymptom(symptomOf(result));
		}
		if (isLoop) return { kind: "failed", fault: "loop", sent: true };
		const retryAfterS = secondsOf(firstOf(headers["retry-after"]), this.#clock);
		return { kind: "answered", status, retryAfterS, body };
	}
}

/** Translates to the names that operators know. Boost's requests are never `unsent`. */
const FAULT_OF: Readonly<Record<HttpFault, Fault>> = {
	noConnection: "refused",
	reset: "reset",
	timeout: "timeout",
	unreadable: "notJsonRpc",
	tooLarge: "tooLarge",
	unsent: "refused",
};

/** Some servers name no type. */
function isJson(type: string | undefined): boolean {
	return type === undefined || type.startsWith("application/json");
}

/**
 * Seconds of a `Retry-After`: a number, or a date
 * (https://www.rfc-editor.org/rfc/rfc9110#field.retry-after).
 */
function secondsOf(value: string | undefined, clock: Clock): number | undefined {
	if (value === undefined) return undefined;
	const text = value.trim();
	if (/^\d{1,9}$/.test(text)) return Number(text);
	const at = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
	return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - clock.now()) / 1_000));
}
