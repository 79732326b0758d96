// Sends requests to one upstream through its breaker, in its dialect. Only our relay gets
// information about the client.

import {
	clientHeaders,
	ENDS,
	type EndsTransactions,
	endsHeader,
	networkAddress,
	READ_SIGNATURE,
	TRANSACTION,
	transactionHeader,
} from "../../shared/client.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Recovered } from "../../shared/ethereum/transaction.ts";
import type { RpcAnswer, RpcCall } from "../../shared/jsonrpc/client.ts";
import type { RpcId } from "../../shared/jsonrpc/ids.ts";
import { REQUEST_ID } from "../../shared/requestId.ts";
import type { Cutter } from "../../shared/secrets.ts";
import type { Traces } from "../../shared/tracing/traces.ts";
import { isNonceTooLow } from "../dialects/dialects.ts";
import type {
	Attempted,
	Breaker,
	Dialect,
	Post,
	Sendable,
	SendOptions,
	Transport,
	Upstream,
} from "../domain/ports.ts";
import type { BoostPath, Caller, Delivery, Reading, Route, UpstreamName } from "../domain/request.ts";
import type { ReadyBlobs } from "./readyBlobs.ts";
import { type Judged, judgeDelivery, judgeReading, parsed, readCalls } from "./verdict.ts";

export interface UpstreamOptions {
	readonly name: UpstreamName;
	/** Authenticates boost to our relay; never sent to a third party. */
	readonly boostSecret?: string | undefined;
	/** Why transactions of a path may not go there; null if they may. */
	readonly unfitPaths: Readonly<Record<BoostPath, string | null>>;
}

export interface UpstreamDependencies {
	readonly breaker: Breaker;
	readonly clock: Clock;
	/** Null for our relay. */
	readonly dialect: Dialect | null;
	/** Null for our relay, which makes the proofs itself. */
	readonly readyBlobs: ReadyBlobs | null;
	/** Cuts a third party's secrets out of its errors; null for our relay. */
	readonly cutter?: Cutter | null;
	/**
	 * By path, for transactions and boost's own calls, so that clients' reads can't use up these
	 * connections.
	 */
	readonly transports: PathTransports;
	/** For clients' reads. */
	readonly readTransports: PathTransports;
	/** For status pages; null if there are none. */
	readonly statusTransport: Transport | null;
	readonly traces: Traces;
	readonly onAttempt?: (attempt: {
		readonly upstream: UpstreamName;
		readonly kind: "read" | "submission";
		readonly outcome: Attempted["outcome"];
		/** In seconds. */
		readonly took: number;
	}) => void;
}

type ReadOptions = Parameters<Upstream["read"]>[1];

/**
 * The transport of each path; `asIs`: its URL includes the path, and only the dialect's query is
 * added.
 */
export type PathTransports = Readonly<
	Record<BoostPath, { readonly transport: Transport; readonly asIs: boolean }>
>;

/** The first byte of a blob transaction. */
const BLOB_TYPE = 3;
/** The id of boost's own calls. */
const ID: RpcId = 1;

export class HttpUpstream implements Upstream {
	readonly name: UpstreamName;
	readonly breaker: Breaker;
	readonly dialect: Dialect | null;
	readonly #options: UpstreamOptions;
	readonly #dependencies: UpstreamDependencies;
	readonly #judge: Judged;

	constructor(options: UpstreamOptions, dependencies: UpstreamDependencies) {
		const { breaker, dialect, cutter = null } = dependencies;
		this.name = options.name;
		this.breaker = breaker;
		this.dialect = dialect;
		this.#options = options;
		this.#dependencies = dependencies;
		const isVerdict = (message: string) => dialect?.isVerdict(message) ?? false;
		this.#judge = { name: options.name, isVerdict, cutter };
	}

	whyUnfit(route: Route): string | null {
		return this.#options.unfitPaths[route.path] ?? this.dialect?.whyUnfit(route) ?? null;
	}

	async deliver(tx: Sendable, options: Parameters<Upstream["deliver"]>[1]): Promise<Delivery | null> {
		const { caller, routing } = options;
		const left = this.#leftOf(options.deadlineMs);
		const { readyBlobs } = this.#dependencies;
		const delivery = await (readyBlobs !== null && tx.raw[0] === BLOB_TYPE
			? this.#deliverBlobs(tx, options, readyBlobs)
			: this.#deliverOnce(tx, options));
		if (delivery?.kind !== "rejected" || !isNonceTooLow(delivery.error.message)) return delivery;
		// The nonce may be used by this very transaction, if the upstream has it.
		const byHash = { method: "eth_getTransactionByHash", params: [tx.hash] };
		const more = routing === undefined ? {} : { routing };
		const answer = await this.call(byHash, { deadlineMs: left(), caller, path: tx.path, ...more });
		const known = answer?.ok === true && isTransaction(answer.result, tx.hash);
		return known ? { kind: "acknowledged", known: true } : delivery;
	}

	async #deliverBlobs(
		tx: Sendable,
		options: Parameters<Upstream["deliver"]>[1],
		readyBlobs: ReadyBlobs,
	): Promise<Delivery | null> {
		if (this.breaker.isUnavailable) return null;
		const left = this.#leftOf(options.deadlineMs);
		const ready = await readyBlobs(tx, options.caller?.address ?? null, left());
		return "kind" in ready ? ready : this.#deliverOnce(ready, { ...options, deadlineMs: left() });
	}

	#deliverOnce(tx: Sendable, options: Parameters<Upstream["deliver"]>[1]): Promise<Delivery | null> {
		const { deadlineMs, caller, routing } = options;
		const body = `{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x${tx.raw.toString("hex")}"]}`;
		const { transport, target, dropped } = this.#destination(
			this.#dependencies.transports,
			tx.path,
			tx.search,
		);
		const headers = this.#headers(caller, false, tx, options.ends);
		const left = this.#leftOf(deadlineMs);
		// Our relay takes seconds to verify blobs first. So silence about them proves as little as
		// silence about a read.
		const kind = tx.raw[0] === BLOB_TYPE ? "read" : "submission";
		const running = this.breaker.run(kind, addressOf(caller), (abort) => {
			if (routing !== undefined) {
				routing.attempts += 1;
				for (const name of dropped) routing.dropped.add(name);
			}
			const span = this.#dependencies.traces.part(SPAN_OF[this.name], tx.hash);
			// A third party does not receive the trace.
			const sent =
				span === null || this.dialect !== null ? headers : { ...headers, traceparent: span.traceparent };
			const begun = this.#dependencies.clock.monotonic();
			return transport.post({ target, body, headers: sent, deadlineMs: left(), abort }).then((response) => {
				const delivery = judgeDelivery(response, { id: ID, hash: tx.hash }, this.#judge);
				span?.end({ hash: tx.hash, outcome: delivery.kind, code: codeOf(delivery) });
				const outcome = deliveryOutcome(delivery);
				this.#ended("submission", outcome, begun);
				return { outcome, sender: tx.from, delivery };
			});
		});
		return running.then((ran) => ran?.delivery ?? null);
	}

	read(body: Buffer | string, options: ReadOptions): Promise<Reading | null> {
		return this.#read(body, options, this.#dependencies.readTransports, { isUnchanged: true });
	}

	/**
	 * `isUnchanged`: the body is the client's, so that its signature is valid. `anyway`: see {@link
	 * Upstream.call}.
	 */
	async #read(
		body: Buffer | string,
		options: ReadOptions,
		transports: PathTransports,
		{
			isUnchanged = false,
			anyway = false,
		}: { readonly isUnchanged?: boolean; readonly anyway?: boolean } = {},
	): Promise<Reading | null> {
		const destination = this.#destination(transports, options.path, options.search);
		const { transport } = destination;
		const target = options.target ?? destination.target;
		const headers = this.#headers(options.caller, isUnchanged, null, options.ends);
		const left = this.#leftOf(options.deadlineMs);
		const ran = anyway
			? await this.#attempt(transport, { target, body, headers, deadlineMs: left() }, options)
			: await this.breaker.run("read", addressOf(options.caller), (abort) =>
					this.#attempt(transport, { target, body, headers, deadlineMs: left(), abort }, options),
				);
		return ran?.reading ?? null;
	}

	#attempt(transport: Transport, post: Post, { routing, ids, batch }: ReadOptions) {
		if (routing !== undefined) routing.attempts += 1;
		const begun = this.#dependencies.clock.monotonic();
		return transport.post(post).then((response) => {
			const reading = judgeReading(response, { ids, batch }, this.#judge);
			const outcome = readingOutcome(reading);
			this.#ended("read", outcome, begun);
			return { outcome, reading };
		});
	}

	#ended(kind: "read" | "submission", outcome: Attempted["outcome"], begun: number): void {
		const took = (this.#dependencies.clock.monotonic() - begun) / 1_000;
		this.#dependencies.onAttempt?.({ upstream: this.name, kind, outcome, took });
	}

	async call(call: RpcCall, options: Parameters<Upstream["call"]>[1]): Promise<RpcAnswer | null> {
		const body = JSON.stringify({ jsonrpc: "2.0", id: ID, ...call });
		const ids = [ID];
		const { path = "fast" } = options;
		const reading = await this.#read(
			body,
			{ ...options, path, search: "", ids, batch: false },
			this.#dependencies.transports,
			{ anyway: options.anyway ?? false },
		);
		return reading === null ? null : (readCalls(reading, ids)?.[0] ?? null);
	}

	async batch(calls: readonly RpcCall[], options: SendOptions): Promise<readonly RpcAnswer[] | null> {
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
		// Pages may be on a separate host, so the breaker does not count these requests.
		if (
			statusTransport === null ||
			path === null ||
			(statusTransport === transports.fast.transport && this.breaker.isUnavailable)
		)
			return null;
		if (options.routing !== undefined) options.routing.attempts += 1;
		// The relay charges it to the client.
		const headers = this.#headers(options.caller, false);
		const response = await statusTransport.get(path, options.deadlineMs, headers);
		return response.kind === "answered" && response.status === 200 ? (parsed(response.body) ?? null) : null;
	}

	async #oneByOne(calls: readonly RpcCall[], options: SendOptions): Promise<readonly RpcAnswer[] | null> {
		const results: RpcAnswer[] = [];
		for (const call of calls) {
			const result = await this.call(call, options);
			if (result === null) return null;
			results.push(result);
		}
		return results;
	}

	/**
	 * Returns a function for the rest of `ms`, which shrinks while an attempt waits at the breaker.
	 */
	#leftOf(ms: number): () => number {
		const { clock } = this.#dependencies;
		const until = clock.monotonic() + ms;
		return () => until - clock.monotonic();
	}

	#destination(transports: PathTransports, path: BoostPath, search: string) {
		const { transport, asIs } = transports[path];
		const { target, dropped } =
			this.dialect === null
				? { target: search === "" ? `/${path}` : `/${path}?${search}`, dropped: [] }
				: this.dialect.target(path, search);
		return { transport, target: asIs ? queryOf(target) : target, dropped };
	}

	/**
	 * A third party gets neither the client's headers nor its request's id, only the boost instances
	 * that the request passed.
	 */
	#headers(
		caller: Caller | null,
		isUnchanged: boolean,
		submitted: Recovered | null = null,
		ends?: EndsTransactions,
	): Readonly<Record<string, string>> {
		const via = caller?.via ?? null;
		if (this.dialect !== null) return via === null ? NONE : { via };
		const headers: Record<string, string> = {};
		if (via !== null) headers.via = via;
		const { boostSecret } = this.#options;
		if (boostSecret !== undefined) {
			headers["x-boost-auth"] = boostSecret;
			// The relay need not recover the sender again.
			if (submitted !== null) headers[TRANSACTION] = transactionHeader(submitted);
			// The transaction that has ended may still be on its way there.
			if (ends !== undefined) headers[ENDS] = endsHeader(ends);
		}
		if (caller === null) return headers;
		if (caller.requestId !== null) headers[REQUEST_ID] = caller.requestId;
		if (caller.address !== "unknown") Object.assign(headers, clientHeaders(caller.address));
		if (caller.origin !== null) headers.origin = caller.origin;
		if (caller.readSignature !== undefined) headers[READ_SIGNATURE] = caller.readSignature;
		if (isUnchanged && caller.signature !== null) headers["x-flashbots-signature"] = caller.signature;
		else if (boostSecret !== undefined && caller.signer !== null) {
			headers["x-boost-signer"] = caller.signer;
			if (caller.digest !== undefined) headers["x-boost-digest"] = caller.digest;
		}
		return headers;
	}
}

function addressOf(caller: Caller | null): string | null {
	return caller === null ? null : networkAddress(caller.address);
}

const NONE: Readonly<Record<string, string>> = Object.freeze({});

/** A target's query with its "?", or "". */
function queryOf(target: string): string {
	const mark = target.indexOf("?");
	return mark === -1 ? "" : target.slice(mark);
}

function deliveryOutcome(delivery: Delivery): Attempted["outcome"] {
	// No connection of our pool became free in time, which is not the upstream's fault.
	if (delivery.kind === "failed")
		return delivery.fault === "timeout" && !delivery.sent ? "aborted" : delivery.fault;
	return delivery.kind === "aborted" ? "aborted" : "answered";
}

const SPAN_OF = { relay: "boost.relay", fallback: "boost.fallback" } as const;

/** The code of a rejection, or the fault if there is no verdict. */
function codeOf(delivery: Delivery): string | number | undefined {
	if (delivery.kind === "rejected") return delivery.error.code;
	return delivery.kind === "failed" ? delivery.fault : undefined;
}

function readingOutcome(reading: Reading): Attempted["outcome"] {
	return reading.kind === "failed" ? reading.fault : reading.kind;
}

function isTransaction(result: unknown, hash: string): boolean {
	const found = (result as { hash?: unknown } | null)?.hash;
	return typeof found === "string" && found.toLowerCase() === hash;
}
