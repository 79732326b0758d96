// A request as its calls share it, how our relay is asked on a client's behalf or for the stages of many transactions, and what
// became of a request that was sent on, as values: which upstreams there are, how far a request got, and what its answer means.
// Everything that boost decides is decided by these; no text of an upstream's is in them.

import type { RequestLife } from "../../shared/http/callContext.ts";
import type { RpcId } from "../../shared/jsonrpc/envelope.ts";

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

/** What a request leaves behind for the headers of its answer. */
export interface RoutingInfo {
	/** Who answered, in the order of the entries of a batch. */
	readonly answeredBy: Set<UpstreamName | "journal" | "boost">;
	/** Requests that were sent to upstreams. */
	attempts: number;
	/** Query parameters that the fallback was not told. */
	readonly dropped: Set<string>;
}

/** Who asks, as far as the relay may be told. */
export interface Caller {
	/** Network address. */
	readonly address: string;
	/** Verified signer of the body, or null. */
	readonly signer: string | null;
	/** The `Origin` header. */
	readonly origin: string | null;
	/** The signature's header, sent on where the body is sent on as it came. */
	readonly signature: string | null;
	/** The `User-Agent` and what else the relay may want is not sent on. */
	readonly life: RequestLife;
}

/** Our relay is told whose it is: limits and the right to cancel are the client's. */
export function onBehalfOf({ address }: { readonly address: string }): Caller {
	const life = { bytes: 0, onGone() {} };
	return { address, signer: null, origin: null, signature: null, life };
}

/** A body that is one call, as it came. */
export interface WholeBody {
	readonly body: Buffer;
	readonly id: RpcId;
}

/** What every call of one request shares. */
export interface RequestState {
	readonly caller: Caller;
	readonly path: BoostPath;
	/** Path and query of a request for our relay alone, where boost has no path like it; else null. */
	readonly target: string | null;
	/** As it came, without "?". */
	readonly search: string;
	/** The body as it came where it is one call with an id, else null: then calls are written anew. */
	readonly whole: WholeBody | null;
	/** When the budget is over, in ms of the clock's monotonic reading. */
	readonly until: number;
	readonly routing: RoutingInfo;
}

/** What the relay says of one transaction. */
export interface RelayStage {
	/** Lower case. */
	readonly hash: string;
	/** Null: it has no record. */
	readonly stage: string | null;
}

/** The call whose answer {@link relayStages} reads. */
export function stagesCall(hashes: readonly string[]): Call {
	return { method: "service_transactionStatuses", params: [hashes] };
}

/** In the order of the question; null where there was no answer, or none that can be read. */
export function relayStages(answer: CallResult | null | undefined): readonly RelayStage[] | null {
	if (answer?.ok !== true || !Array.isArray(answer.result)) return null;
	const stages: RelayStage[] = [];
	for (const one of answer.result as readonly unknown[]) {
		if (typeof one !== "object" || one === null) return null;
		const { hash, stage } = one as { hash?: unknown; stage?: unknown };
		if (typeof hash !== "string" || (typeof stage !== "string" && stage !== null)) return null;
		stages.push({ hash: hash.toLowerCase(), stage });
	}
	return stages;
}
