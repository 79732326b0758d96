// What became of a request that was sent on, as values: which upstreams there are, how far a request got, and what its
// answer means. Everything that boost decides is decided by these; no text of an upstream's is in them.

/** Ours, or the one that carries on while ours is out. */
export const UPSTREAMS = ["relay", "fallback"] as const;
export type UpstreamName = (typeof UPSTREAMS)[number];

/** The treatments that boost serves itself; `/` is `fast`. */
export const BOOST_PATHS = ["fast", "noreverts"] as const;
export type BoostPath = (typeof BOOST_PATHS)[number];

/**
 * Why an attempt is no verdict. `refused`: no connection could be had, so no byte left. `reset`: the connection ended
 * midway. `timeout`: its share of the time was over. `httpStatus`: 5xx, or a 4xx without a JSON-RPC body. `notJsonRpc`:
 * no JSON-RPC answer to this request. `wrongHash`: another hash than the transaction's own. `internal`: −32603.
 * `limited`: 429 or −32005 of a fallback's, or a full pool. `tooLarge`: more bytes than are read.
 */
export const FAULTS = [
	"refused",
	"reset",
	"timeout",
	"httpStatus",
	"notJsonRpc",
	"wrongHash",
	"internal",
	"limited",
	"tooLarge",
] as const;
export type Fault = (typeof FAULTS)[number];

/** A JSON-RPC error as an upstream gave it. */
export interface WireVerdict {
	readonly code: number;
	readonly message: string;
	readonly data?: unknown;
}

/** One call to be made. */
export interface Call {
	readonly method: string;
	readonly params: readonly unknown[];
}

/** The answer to one call. */
export type CallResult =
	| { readonly ok: true; readonly result: unknown }
	| { readonly ok: false; readonly error: WireVerdict };

/** An answer as bytes; nothing of it was judged yet. */
export interface Exchange {
	readonly kind: "answered";
	readonly status: number;
	/** Seconds of a `Retry-After`, where there was a number. */
	readonly retryAfterS: number | undefined;
	readonly body: Buffer;
}

/** No answer. `sent`: bytes may have left, so that the upstream may have it all the same. */
export interface NoAnswer {
	readonly kind: "failed";
	readonly fault: Fault;
	readonly sent: boolean;
}

/** Cut off by us (the breaker opened, the stop) or by the client: nobody's fault. */
export interface CutOff {
	readonly kind: "cut";
	readonly sent: boolean;
}

export type ExchangeResult = Exchange | NoAnswer | CutOff;

/**
 * What one attempt to deliver a transaction came to: `acknowledged` by its hash (`known`: it had it already),
 * `rejected` with words for the client, or no verdict, see {@link NoAnswer} and {@link CutOff}.
 */
export type Delivery =
	| { readonly kind: "acknowledged"; readonly known: boolean }
	| { readonly kind: "rejected"; readonly error: WireVerdict }
	/** `error`: a −32603, in case no other upstream does better. */
	| (NoAnswer & { readonly error?: WireVerdict; readonly retryAfterS?: number })
	| CutOff;

/** Whether an upstream that gave no verdict may have it. Who answered with an internal error or a limit keeps nothing. */
export function mayHave(delivery: Delivery): boolean {
	if (delivery.kind === "cut") return delivery.sent;
	if (delivery.kind !== "failed" || !delivery.sent) return false;
	return delivery.fault !== "internal" && delivery.fault !== "limited";
}

/** What one attempt to read came to: the answer's bytes where it was one to the request, else as for a delivery. */
export type Reading =
	| {
			readonly kind: "answered";
			readonly body: Buffer;
			/** HTTP status to pass on. */
			readonly status: number;
	  }
	| (NoAnswer & { readonly body?: Buffer; readonly retryAfterS?: number })
	| CutOff;
