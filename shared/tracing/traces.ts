// The trace of a transaction: its spans, from boost's request to each builder's answer. Nothing is
// recorded unless a collector is set. otlp.ts, which is only loaded then, sends the spans to it.

/** All spans, with their kinds. */
export const SPANS = {
	/** A submission at boost, until its client is answered. */
	"boost.submission": "server",
	/** One attempt of boost to reach our relay, or the fallback. */
	"boost.relay": "client",
	"boost.fallback": "client",
	/** A submission at an edge, until the core has answered. */
	"relay.edge": "server",
	/** A submission at the relay that decides, until it is on disk or refused. */
	"relay.submission": "server",
	"relay.admission": "internal",
	/** The write to disk. */
	"relay.store": "internal",
	"relay.simulation": "internal",
	/** One request to a builder: the transaction alone, or with a bid, or its cancel. */
	"relay.delivery": "client",
} as const;
export type SpanName = keyof typeof SPANS;

/**
 * The only attributes of a span. As in log lines, they have no bytes of transactions, signatures,
 * addresses or texts of other servers. They are sent as `leeward.hash` and so on.
 */
export interface SpanFields {
	/** The id of the request. */
	readonly request?: string | undefined;
	readonly hash?: string;
	readonly path?: string;
	readonly outcome?: string;
	/** Code of an error. */
	readonly code?: string | number | undefined;
	readonly builder?: string;
	/** Kind of a request to a builder. */
	readonly kind?: string;
	/** The block that the request was for. */
	readonly block?: number;
}

/** A span that has begun. */
export interface Span {
	/**
	 * The header by which another process makes its spans part of this one:
	 * https://www.w3.org/TR/trace-context/#traceparent-header
	 */
	readonly traceparent: string;
	/** Ends it; only the first call counts. The outcomes `failed` and `unavailable` are errors. */
	end(fields: SpanFields): void;
}

/** The destination of spans. */
export interface Traces {
	/** False if nothing is recorded. Callers then need not make the data of a span. */
	readonly isOn: boolean;
	/**
	 * Begins the submission of a transaction. `parent`: the header from the sender that forwarded
	 * it, if that sender is trusted. Later spans of the transaction are its children. Null if
	 * nothing is recorded.
	 */
	submission(name: SpanName, hash: string, parent: string | null): Span | null;
	/** Begins a child of a transaction's last submission here. Null if none is known. */
	part(name: SpanName, hash: string): Span | null;
	/** Records a child that has just ended and took `ms`. */
	past(name: SpanName, hash: string, ms: number, fields: SpanFields): void;
	/** Sends what is left, within two seconds. */
	close(): Promise<void>;
}

/** Records nothing. */
export const NO_TRACES: Traces = {
	isOn: false,
	submission: () => null,
	part: () => null,
	past() {},
	async close() {},
};
