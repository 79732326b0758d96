// What a transaction's way is told as: the spans of one trace, from boost's request to each builder's answer. Nothing is told unless
// a collector is set; otlp.ts, which is loaded only then, sends the spans to it.

/** All spans, with their kinds. */
export const SPANS = {
	/** A submission at boost, until its client is answered. */
	"boost.submission": "server",
	/** One attempt of boost's at our relay, and at the fallback. */
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
	/** One request to a builder, of the transaction alone or with a bid, or its cancel. */
	"relay.delivery": "client",
} as const;
export type SpanName = keyof typeof SPANS;

/**
 * The only attributes of a span, as those of a log line: no bytes of transactions, signatures, addresses or texts of others. They are
 * sent as `leeward.hash` and so on.
 */
export interface SpanFields {
	/** The id of the request. */
	readonly request?: string | undefined;
	readonly hash?: string;
	readonly path?: string;
	readonly outcome?: string;
	/** Of an error. */
	readonly code?: string | number | undefined;
	readonly builder?: string;
	/** What a builder was sent. */
	readonly kind?: string;
	/** The block it was for. */
	readonly block?: number;
}

/** A span that has begun. */
export interface Span {
	/** The header by which another process makes its spans part of this one: https://www.w3.org/TR/trace-context/#traceparent-header */
	readonly traceparent: string;
	/** Ends it; only the first call counts. The outcomes `failed` and `unavailable` are errors. */
	end(fields: SpanFields): void;
}

/** Where spans go. */
export interface Traces {
	/** False: nothing is told, and what a span would hold need not be made. */
	readonly isOn: boolean;
	/**
	 * Begins the submission of a transaction; `parent`: the header of who passed it on, if that is believed. Later spans of the
	 * transaction are its parts. Null: nothing is told.
	 */
	submission(name: SpanName, hash: string, parent: string | null): Span | null;
	/** Begins a part of a transaction's last submission here; null if none is known. */
	part(name: SpanName, hash: string): Span | null;
	/** Tells a part that has just ended and took `ms`. */
	past(name: SpanName, hash: string, ms: number, fields: SpanFields): void;
	/** Sends what is left, within two seconds. */
	close(): Promise<void>;
}

/** Tells nothing. */
export const NO_TRACES: Traces = {
	isOn: false,
	submission: () => null,
	part: () => null,
	past() {},
	async close() {},
};
