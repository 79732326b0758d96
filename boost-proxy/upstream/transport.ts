// The HTTP transport to one upstream: answers with the response's bytes, or with why there is none and how far the
// request got. It keeps connections warm and sets deadlines; it judges no answer and repeats nothing.

import { Socket } from "node:net";
import { buildConnector, Pool } from "undici";
import type { Clock } from "../../shared/clock.ts";
import type { ExchangeResult } from "../domain/delivery.ts";
import type { Post, Transport } from "../domain/ports.ts";
import { TransportExchange } from "./transportExchange.ts";
import { readUpstreamUrl, type UpstreamUrl } from "./upstreamUrl.ts";

export interface TransportOptions {
	/** http(s) address; path, query and credentials in it are kept and never printed. */
	readonly url: string;
	/** At most; requests beyond it wait for one, under their own deadline. */
	readonly connections?: number;
	/** Of an answer, at most. */
	readonly maxAnswerBytes?: number;
	/** Ms for a connection to be made, TLS included; then it is `refused`. */
	readonly connectMs?: number;
}

const CONNECTIONS = 256;
/** A block with all its transactions is some MiB, an answer to a wide eth_getLogs some more. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** A SYN that was lost is sent again after one second: that alone must not look like an upstream that is down. */
const CONNECT_MS = 2_500;
/** Ms that an idle connection is kept. */
const IDLE_MS = 30_000;
/** Headers that HTTP can't carry are left out: undici would refuse the request, and that would look like a fault. */
const UNWRITABLE_HEADER = /[^\t\x20-\x7e\x80-\xff]/;

/** A transport whose connections can be left. */
export interface RenewableTransport extends Transport {
	/**
	 * From now on new connections are made; those that it has end with what is under way on them. To be called when an
	 * upstream is back: undici makes a connection anew for each request that was aborted, and what an upstream that hung
	 * has accepted may never be read.
	 */
	renew(): void;
}

/** A transport over HTTP/1.1; `close` ends its connections, and what is under way ends as `cut`. */
export function createTransport(
	options: TransportOptions,
	dependencies: { readonly clock: Clock },
): RenewableTransport {
	return new HttpTransport(options, dependencies);
}

class HttpTransport implements RenewableTransport {
	#pool: Pool;
	/** Those that were left end by themselves. */
	readonly #pools = new Set<Pool>();
	readonly #newPool: () => Pool;
	readonly #url: UpstreamUrl;
	readonly #clock: Clock;
	readonly #maxAnswerBytes: number;
	readonly #isClosed = () => this.#closed;
	readonly #getHeaders: string[];
	readonly #postHeaders: string[];
	#closed = false;

	constructor(options: TransportOptions, dependencies: { readonly clock: Clock }) {
		const connectMs = options.connectMs ?? CONNECT_MS;
		this.#url = readUpstreamUrl(options.url);
		this.#clock = dependencies.clock;
		this.#maxAnswerBytes = options.maxAnswerBytes ?? MAX_ANSWER_BYTES;
		const { authorization } = this.#url;
		this.#getHeaders = authorization === null ? [] : ["authorization", authorization];
		this.#postHeaders = ["content-type", "application/json", ...this.#getHeaders];
		this.#newPool = () => {
			const pool = new Pool(this.#url.origin, {
				connections: options.connections ?? CONNECTIONS,
				// One request a connection: what ends one must not end another.
				pipelining: 1,
				allowH2: false,
				connect: timedConnector(connectMs, dependencies.clock),
				keepAliveTimeout: IDLE_MS,
				keepAliveMaxTimeout: IDLE_MS,
				// The deadlines are ours, for each request.
				headersTimeout: 0,
				bodyTimeout: 0,
			});
			this.#pools.add(pool);
			return pool;
		};
		this.#pool = this.#newPool();
	}

	post({ target, body, headers, deadlineMs, abort }: Post): Promise<ExchangeResult> {
		return this.#exchange("POST", target, withMore(this.#postHeaders, headers), body, deadlineMs, abort);
	}

	get(target: string, deadlineMs: number): Promise<ExchangeResult> {
		return this.#exchange("GET", target, this.#getHeaders, null, deadlineMs, undefined);
	}

	renew(): void {
		if (this.#closed) return;
		const old = this.#pool;
		this.#pool = this.#newPool();
		old.close(() => this.#pools.delete(old));
	}

	async close(): Promise<void> {
		this.#closed = true;
		await Promise.all([...this.#pools].map((pool) => pool.destroy()));
	}

	#exchange(
		method: "GET" | "POST",
		target: string,
		headers: string[],
		body: Buffer | string | null,
		deadlineMs: number,
		abort: Post["abort"],
	): Promise<ExchangeResult> {
		if (this.#closed || abort?.isAborted === true) return Promise.resolve({ kind: "cut", sent: false });
		if (deadlineMs <= 0) return Promise.resolve({ kind: "failed", fault: "timeout", sent: false });
		return new Promise((resolve) => {
			const exchange = new TransportExchange(
				{ deadlineMs, maxBytes: this.#maxAnswerBytes, abort },
				{ clock: this.#clock, isClosed: this.#isClosed, resolve },
			);
			this.#pool.dispatch({ method, path: this.#url.pathOf(target), headers, body }, exchange);
		});
	}
}

/** undici's own connector, with our clock: its timers are half a second off. */
function timedConnector(connectMs: number, clock: Clock): buildConnector.connector {
	const connect: (...args: Parameters<buildConnector.connector>) => unknown = buildConnector({
		timeout: 0,
		allowH2: false,
		// Node gives up an address after 250 ms to try the next one, which far ones never answer within.
		autoSelectFamily: true,
		autoSelectFamilyAttemptTimeout: Math.max(10, Math.min(1_000, Math.floor(connectMs / 2))),
	});
	return (options, callback) => {
		const socket = connect(options, (...result) => {
			timer.cancel();
			callback(...result);
		});
		const timer = clock.after(connectMs, () => {
			if (socket instanceof Socket) socket.destroy(new Error("not connected in time"));
		});
	};
}

function withMore(base: string[], more: Readonly<Record<string, string>>): string[] {
	let headers = base;
	for (const name in more) {
		const value = more[name];
		if (value === undefined || UNWRITABLE_HEADER.test(value)) continue;
		if (headers === base) headers = base.slice();
		headers.push(name, value);
	}
	return headers;
}
