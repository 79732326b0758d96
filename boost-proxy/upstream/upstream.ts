// One upstream behind its breaker. It spells requests as that upstream wants them, and tells our relay, and nobody else, on
// whose behalf they are made. Whether the relay believes that is asked for a client that nobody can be: where it does not, it
// sees all our clients as one, and must not be the one to judge which of them may cancel what.

import type { Background } from "../../shared/background.ts";
import { type Clock, pause } from "../../shared/clock.ts";
import type { RpcId } from "../../shared/jsonrpc/envelope.ts";
import type { Component } from "../../shared/lifecycle.ts";
import type { Logger } from "../../shared/log.ts";
import { isNonceTooLow } from "../dialects/dialects.ts";
import type {
	Abort,
	Attempted,
	Breaker,
	Dialect,
	Post,
	Sendable,
	SendOptions,
	Transport,
	Upstream,
} from "../domain/ports.ts";
import {
	type BoostPath,
	type Call,
	type Caller,
	type CallResult,
	type Delivery,
	onBehalfOf,
	type Reading,
	type UpstreamName,
} from "../domain/request.ts";
import { judgeDelivery, judgeReading, parsed, readCalls } from "./verdict.ts";

export interface UpstreamOptions {
	readonly name: UpstreamName;
	/** Shared with our relay, which then believes who asks; never sent to anybody else. */
	readonly boostSecret?: string | undefined;
	/** Why what came on a path may not go there; null where it may. */
	readonly refusals: Readonly<Record<BoostPath, string | null>>;
}

export interface UpstreamDependencies {
	readonly breaker: Breaker;
	readonly clock: Clock;
	/** Null for our relay. */
	readonly dialect: Dialect | null;
	/** Where transactions and questions of our own go by path: transports that no client's reads can fill. */
	readonly transports: PathTransports;
	/** Where clients' reads go. */
	readonly readTransports: PathTransports;
	/** Where a status page is; null where there is none. */
	readonly statusTransport: Transport | null;
	readonly onAttempt?: (attempt: {
		readonly upstream: UpstreamName;
		readonly kind: "read" | "submission";
		readonly outcome: Attempted["outcome"];
	}) => void;
}

type ReadOptions = Parameters<Upstream["read"]>[1];

/** By path where its requests go; `asIs`: its path is there already, and the dialect's query alone is added. */
export type PathTransports = Readonly<
	Record<BoostPath, { readonly transport: Transport; readonly asIs: boolean }>
>;

/** The id of calls of our own. */
const ID: RpcId = 1;

/** An upstream over HTTP. */
export class HttpUpstream implements Upstream {
	readonly name: UpstreamName;
	readonly breaker: Breaker;
	readonly dialect: Dialect | null;
	readonly #options: UpstreamOptions;
	readonly #dependencies: UpstreamDependencies;
	readonly #judge: { readonly name: UpstreamName; isVerdict(message: string): boolean };

	constructor(options: UpstreamOptions, dependencies: UpstreamDependencies) {
		const { breaker, dialect } = dependencies;
		this.name = options.name;
		this.breaker = breaker;
		this.dialect = dialect;
		this.#options = options;
		this.#dependencies = dependencies;
		this.#judge = { name: options.name, isVerdict: (message) => dialect?.isVerdict(message) ?? false };
	}

	refusal(path: BoostPath): string | null {
		return this.#options.refusals[path];
	}

	async deliver(tx: Sendable, options: Parameters<Upstream["deliver"]>[1]): Promise<Delivery | null> {
		const { caller, routing } = options;
		const left = this.#leftOf(options.deadlineMs);
		const delivery = await this.#deliverOnce(tx, options);
		if (delivery?.kind !== "rejected" || !isNonceTooLow(delivery.error.message)) return delivery;
		// Where it has the very transaction, that is why; a relay of ours says so itself.
		const question = { method: "eth_getTransactionByHash", params: [tx.hash] };
		const more = routing === undefined ? {} : { routing };
		const answer = await this.call(question, { deadlineMs: left(), caller, path: tx.path, ...more });
		const known = answer?.ok === true && isTransaction(answer.result, tx.hash);
		return known ? { kind: "acknowledged", known: true } : delivery;
	}

	#deliverOnce(tx: Sendable, options: Parameters<Upstream["deliver"]>[1]): Promise<Delivery | null> {
		const { deadlineMs, caller, routing } = options;
		const whole = this.dialect === null ? options.whole : null;
		const id = whole?.id ?? ID;
		const body =
			whole?.body ??
			`{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x${tx.raw.toString("hex")}"]}`;
		const { transport, target, dropped } = this.#place(this.#dependencies.transports, tx.path, tx.search);
		const headers = this.#headers(caller, whole !== null);
		const left = this.#leftOf(deadlineMs);
		const running = this.breaker.run("submission", (abort) => {
			if (routing !== undefined) {
				routing.attempts += 1;
				for (const name of dropped) routing.dropped.add(name);
			}
			return transport.post({ target, body, headers, deadlineMs: left(), abort }).then((exchange) => {
				const delivery = judgeDelivery(exchange, { id, hash: tx.hash }, this.#judge);
				const outcome = deliveryOutcome(delivery);
				this.#dependencies.onAttempt?.({ upstream: this.name, kind: "submission", outcome });
				return { outcome, sender: tx.from, delivery };
			});
		});
		return running.then((ran) => ran?.delivery ?? null);
	}

	read(body: Buffer | string, options: ReadOptions): Promise<Reading | null> {
		return this.#read(body, options, this.#dependencies.readTransports, { asCame: true });
	}

	/** `asCame`: the body is the client's own, so that a signature of it fits. `anyway`: see {@link Upstream.call}. */
	async #read(
		body: Buffer | string,
		options: ReadOptions,
		transports: PathTransports,
		{ asCame = false, anyway = false }: { readonly asCame?: boolean; readonly anyway?: boolean } = {},
	): Promise<Reading | null> {
		const place = this.#place(transports, options.path, options.search);
		const { transport } = place;
		const target = options.target ?? place.target;
		const headers = this.#headers(options.caller, asCame);
		const left = this.#leftOf(options.deadlineMs);
		const attempt = (abort?: Abort) =>
			this.#attempt(
				transport,
				{ target, body, headers, deadlineMs: left(), ...(abort === undefined ? {} : { abort }) },
				options,
			);
		const ran = anyway ? await attempt() : await this.breaker.run("read", attempt);
		return ran?.reading ?? null;
	}

	#attempt(transport: Transport, post: Post, { routing, ids, batch }: ReadOptions) {
		if (routing !== undefined) routing.attempts += 1;
		return transport.post(post).then((exchange) => {
			const reading = judgeReading(exchange, { ids, batch }, this.#judge);
			const outcome = readingOutcome(reading);
			this.#dependencies.onAttempt?.({ upstream: this.name, kind: "read", outcome });
			return { outcome, reading };
		});
	}

	async call(call: Call, options: Parameters<Upstream["call"]>[1]): Promise<CallResult | null> {
		const whole = this.dialect === null ? (options.whole ?? null) : null;
		const body = whole?.body ?? JSON.stringify({ jsonrpc: "2.0", id: ID, ...call });
		const ids = [whole?.id ?? ID];
		const { path = "fast" } = options;
		const reading = await this.#read(
			body,
			{ ...options, path, search: "", ids, batch: false },
			this.#dependencies.transports,
			{ asCame: whole !== null, anyway: options.anyway ?? false },
		);
		return reading === null ? null : (readCalls(reading, ids)?.[0] ?? null);
	}

	async batch(calls: readonly Call[], options: SendOptions): Promise<readonly CallResult[] | null> {
		if (calls.length === 0) return [];
		if (this.dialect?.batches === false) return this.#oneByOne(calls, options);
		const body = JSON.stringify(calls.map((call, i) => ({ jsonrpc: "2.0", id: i, ...call })));
		const ids = calls.map((_, i) => i);
		const reading = await this.#read(
			body,
			{ ...options, path: "fast", search: "", ids, batch: true },
			this.#dependencies.transports,
		);
		return reading === null ? null : readCalls(reading, ids);
	}

	async statusPage(hash: string, options: SendOptions): Promise<unknown> {
		const { statusTransport, transports } = this.#dependencies;
		const path = this.dialect === null ? `/tx/${hash}` : this.dialect.statusPath(hash);
		// A page may be on a host of its own: what becomes of it says nothing of the upstream.
		if (
			statusTransport === null ||
			path === null ||
			(statusTransport === transports.fast.transport && this.breaker.isUnavailable)
		)
			return null;
		if (options.routing !== undefined) options.routing.attempts += 1;
		const exchange = await statusTransport.get(path, options.deadlineMs);
		return exchange.kind === "answered" && exchange.status === 200 ? (parsed(exchange.body) ?? null) : null;
	}

	async #oneByOne(calls: readonly Call[], options: SendOptions): Promise<readonly CallResult[] | null> {
		const results: CallResult[] = [];
		for (const call of calls) {
			const result = await this.call(call, options);
			if (result === null) return null;
			results.push(result);
		}
		return results;
	}

	/** What is left of `ms` when it is asked: who is held back by the breaker has less. */
	#leftOf(ms: number): () => number {
		const { clock } = this.#dependencies;
		const until = clock.monotonic() + ms;
		return () => until - clock.monotonic();
	}

	#place(transports: PathTransports, path: BoostPath, search: string) {
		const { transport, asIs } = transports[path];
		const { target, dropped } =
			this.dialect === null
				? { target: search === "" ? `/${path}` : `/${path}?${search}`, dropped: [] }
				: this.dialect.target(path, search);
		return { transport, target: asIs ? queryOf(target) : target, dropped };
	}

	/** To a third party go body and content type alone. */
	#headers(caller: Caller | null, asCame: boolean): Readonly<Record<string, string>> {
		if (this.dialect !== null) return NONE;
		const headers: Record<string, string> = {};
		const { boostSecret } = this.#options;
		if (boostSecret !== undefined) headers["x-boost-auth"] = boostSecret;
		if (caller === null) return headers;
		if (caller.address !== "unknown") headers["x-forwarded-for"] = caller.address;
		if (caller.origin !== null) headers.origin = caller.origin;
		if (asCame && caller.signature !== null) headers["x-flashbots-signature"] = caller.signature;
		else if (boostSecret !== undefined && caller.signer !== null) headers["x-boost-signer"] = caller.signer;
		return headers;
	}
}

const NONE: Readonly<Record<string, string>> = Object.freeze({});

/** An address that is taken as it is has its path already. */
function queryOf(target: string): string {
	const mark = target.indexOf("?");
	return mark === -1 ? "" : target.slice(mark);
}

function deliveryOutcome(delivery: Delivery): Attempted["outcome"] {
	// Without a connection of ours that was free: nobody's fault. One that can't be had is `refused` long before.
	if (delivery.kind === "failed")
		return delivery.fault === "timeout" && !delivery.sent ? "cut" : delivery.fault;
	return delivery.kind === "cut" ? "cut" : "answered";
}

function readingOutcome(reading: Reading): Attempted["outcome"] {
	return reading.kind === "failed" ? reading.fault : reading.kind;
}

function isTransaction(result: unknown, hash: string): boolean {
	const found = (result as { hash?: unknown } | null)?.hash;
	return typeof found === "string" && found.toLowerCase() === hash;
}

export interface ClientTrustDependencies {
	readonly relay: Upstream;
	readonly background: Background;
	readonly clock: Clock;
	readonly log: Logger;
}

/** The relay's belief; false until it was seen. */
export interface ClientTrust extends Component {
	readonly isBelieved: boolean;
}

/** For documents alone, so no client has it. https://www.rfc-editor.org/rfc/rfc5737 */
const NOBODYS_ADDRESS = "192.0.2.113";
const ASK_MS = 2_000;
/** It may be configured anew at each of its starts. */
const AGAIN_MS = 5_000;

/** Asks from the start on, every few seconds. */
export function createClientTrust(dependencies: ClientTrustDependencies): ClientTrust {
	const { relay, background, clock, log } = dependencies;
	const stopping = new AbortController();
	let isBelieved: boolean | null = null;
	const ask = async (): Promise<void> => {
		const call = { method: "service_client", params: [] };
		const answer = await relay.call(call, {
			deadlineMs: ASK_MS,
			caller: onBehalfOf({ address: NOBODYS_ADDRESS }),
		});
		if (answer === null) return;
		const taken = answer.ok ? (answer.result as { address?: unknown } | null)?.address : undefined;
		const believes = taken === NOBODYS_ADDRESS;
		if (!believes && isBelieved !== false) {
			log.warn(
				"the relay does not take boost's word for who its clients are: is BOOST_SECRET the same on both?",
			);
		}
		isBelieved = believes;
	};
	return {
		name: "client trust",
		get isBelieved() {
			return isBelieved === true;
		},
		async start() {
			background.run("client trust", async () => {
				while (!stopping.signal.aborted) {
					await ask();
					await pause(clock, AGAIN_MS, stopping.signal);
				}
			});
		},
		async stop() {
			stopping.abort();
		},
	};
}
