// The values that boost bases its decisions on: the upstreams, a client's request, and the
// classified result of an attempt. Upstream-specific texts are translated into these first
// (dialects/, upstream/verdict.ts).

import { isWebPage, UNKNOWN_ADDRESS } from "../../shared/client.ts";
import type { RequestLife } from "../../shared/http/callContext.ts";
import type { RpcAnswer, RpcCall } from "../../shared/jsonrpc/client.ts";
import type { HttpAborted } from "../../shared/outgoing/httpClient.ts";

/** Our relay, and the upstream that is used while our relay is unavailable. */
export const UPSTREAMS = ["relay", "fallback"] as const;
export type UpstreamName = (typeof UPSTREAMS)[number];

/** The paths that boost serves itself; `/` is `fast`. */
export const BOOST_PATHS = ["fast", "noreverts"] as const;
export type BoostPath = (typeof BOOST_PATHS)[number];

/** How a transaction is submitted. */
export interface Route {
	readonly path: BoostPath;
	/** The query, without "?". */
	readonly search: string;
}

/**
 * Why an attempt brought no verdict. `refused`: no connection, so no byte was sent. `reset`: the
 * connection ended midway. `timeout`: no answer before the deadline. `httpStatus`: 5xx, a 4xx
 * without a JSON-RPC body, or not ready: −32603 with `Retry-After`. `notJsonRpc`: no JSON-RPC
 * answer to this request. `wrongHash`: a hash other than the transaction's. `internal`: −32603.
 * `limited`: 429 or −32005 from a fallback, or a full pool. `tooLarge`: the answer exceeds the size
 * limit. `loop`: the request has come back to this boost instance.
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
	"loop",
] as const;
export type Fault = (typeof FAULTS)[number];

/** An upstream's JSON-RPC error. */
export interface WireVerdict {
	readonly code: number;
	readonly message: string;
	readonly data?: unknown;
}

/** An HTTP answer that is not classified yet. */
export interface UpstreamAnswer {
	readonly kind: "answered";
	readonly status: number;
	/** Seconds of its `Retry-After`. */
	readonly retryAfterS: number | undefined;
	readonly body: Buffer;
}

/** No answer. `sent`: bytes may have been sent, so the upstream may have the request. */
export interface NoAnswer {
	readonly kind: "failed";
	readonly fault: Fault;
	readonly sent: boolean;
}

/** Aborted: by boost (the breaker opened, shutdown) or by the client. */
export type TransportResult = UpstreamAnswer | NoAnswer | HttpAborted;

/**
 * The result of one delivery of a transaction: `acknowledged` by its hash (`known`: the upstream
 * had it already), `rejected` with an error for the client, or no verdict, see {@link NoAnswer} and
 * {@link HttpAborted}.
 */
export type Delivery =
	| { readonly kind: "acknowledged"; readonly known: boolean }
	| { readonly kind: "rejected"; readonly error: WireVerdict }
	/** `error`: a −32603, returned to the client if no other upstream gives a verdict. */
	| (NoAnswer & { readonly error?: WireVerdict; readonly retryAfterS?: number })
	| HttpAborted;

/**
 * Whether an upstream that gave no verdict may have the transaction. After an internal error or a
 * limit it does not.
 */
export function mayHave(delivery: Delivery): boolean {
	if (delivery.kind === "aborted") return delivery.sent;
	if (delivery.kind !== "failed" || !delivery.sent) return false;
	return delivery.fault !== "internal" && delivery.fault !== "limited";
}

/** The result of one read: the body if it answers the request, else as for a delivery. */
export type Reading =
	| {
			readonly kind: "answered";
			readonly body: Buffer;
			/** HTTP status for the client. */
			readonly status: number;
	  }
	| (NoAnswer & { readonly body?: Buffer; readonly retryAfterS?: number })
	| HttpAborted;

/** An upstream's answer to a body of reads, and its HTTP status. */
export interface ReadAnswer {
	readonly body: Buffer;
	readonly status: number;
	readonly by: UpstreamName;
}

/** Collected while a request is served, for the `X-Boost-…` headers of its answer. */
export interface RoutingInfo {
	/** In the order of the entries of a batch. */
	readonly answeredBy: Set<UpstreamName | "journal" | "boost">;
	/** Requests that were sent to upstreams. */
	attempts: number;
	/** Query parameters that were not sent to the fallback. */
	readonly dropped: Set<string>;
}

/** The client, as far as the relay may know it. */
export interface Caller {
	/** Network address. */
	readonly address: string;
	/** Verified signer of the body, or null. */
	readonly signer: string | null;
	/** The `Origin` header. */
	readonly origin: string | null;
	/**
	 * The boost instances that the request passed, as their entries in `Via`; null if there were
	 * none.
	 */
	readonly via: string | null;
	/** The signature header, forwarded with a body of reads that is forwarded unchanged. */
	readonly signature: string | null;
	/** The digest of the body as received, which the signer signed. */
	readonly digest?: string | undefined;
	/** The header `X-Leeward-Signature`, which the relay verifies. */
	readonly readSignature?: string | undefined;
	/** The id of the request, see shared/requestId.ts; null: the relay makes one. */
	readonly requestId: string | null;
	readonly life: RequestLife;
}

/**
 * The address by which the client owns its submissions; null: a web page, or an unknown address,
 * owns nothing.
 */
export function ownAddress({ address, origin }: Pick<Caller, "address" | "origin">): string | null {
	return isWebPage(origin) || address === UNKNOWN_ADDRESS ? null : address;
}

/**
 * The caller of a transaction that boost resends or cancels. The client's limits and its right to
 * cancel apply at the relay. `signer`: the signer whose signature boost has seen. `owns`: whether
 * the client owns its submissions by its address.
 */
export function onBehalfOf(
	{ address, requestId = null }: { readonly address: string; readonly requestId?: string | null },
	{ signer = null, owns = true }: { readonly signer?: string | null; readonly owns?: boolean } = {},
): Caller {
	const life = { bytes: 0, onGone() {} };
	// A sandboxed page has this origin, which names no site.
	const origin = owns ? null : "null";
	return { address, signer, origin, via: null, signature: null, requestId, life };
}

/** Shared by all calls of one request. */
export interface RequestState {
	readonly caller: Caller;
	readonly path: BoostPath;
	/** Path and query of a request that only our relay can serve; else null. */
	readonly target: string | null;
	/** The query, unchanged, without "?". */
	readonly search: string;
	/** When the time budget ends, in monotonic ms. */
	readonly until: number;
	readonly routing: RoutingInfo;
}

/** A transaction's stage at the relay. */
export interface RelayStage {
	/** Lower case. */
	readonly hash: string;
	/** Null: the relay has no record. */
	readonly stage: string | null;
	/** Whether it is not being sent: its simulation fails, or it waits for a fee to fall. */
	readonly isHeld: boolean;
}

/** The call whose answer {@link relayStages} reads. */
export function stagesCall(hashes: readonly string[]): RpcCall {
	return { method: "service_transactionStatuses", params: [hashes] };
}

/** The stages in the order of the hashes; null if there was no answer or it is malformed. */
export function relayStages(answer: RpcAnswer | null | undefined): readonly RelayStage[] | null {
	if (answer?.ok !== true || !Array.isArray(answer.result)) return null;
	const stages: RelayStage[] = [];
	for (const one of answer.result as readonly unknown[]) {
		if (typeof one !== "object" || one === null) return null;
		const { hash, stage, held } = one as { hash?: unknown; stage?: unknown; held?: unknown };
		if (typeof hash !== "string" || (typeof stage !== "string" && stage !== null)) return null;
		stages.push({ hash: hash.toLowerCase(), stage, isHeld: held === true });
	}
	return stages;
}
