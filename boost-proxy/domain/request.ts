// A request as its calls share it, and how our relay is asked on a client's behalf, or for the stages of many transactions.

import type { RequestLife } from "../../shared/http/callContext.ts";
import type { RpcId } from "../../shared/jsonrpc/envelope.ts";
import type { BoostPath, Call, CallResult, UpstreamName } from "./delivery.ts";

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
