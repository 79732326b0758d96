// A request as its calls share it: who asks, for what, how long it may take, and what it leaves behind.

import type { RequestLife } from "../../shared/http/callContext.ts";
import type { RpcId } from "../../shared/jsonrpc/envelope.ts";
import type { BoostPath, UpstreamName } from "./delivery.ts";

/** What a request leaves behind for the headers of its answer. */
export interface Trail {
	/** Who answered, in the order of the entries of a batch. */
	readonly answeredBy: Set<UpstreamName | "journal" | "boost">;
	/** Requests that were sent to upstreams. */
	attempts: number;
	/** Query parameters that the fallback was not told. */
	readonly dropped: Set<string>;
}

/** Who asks, as far as the relay may be told. */
export interface Asker {
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
export function onBehalfOf({ address }: { readonly address: string }): Asker {
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
	readonly asker: Asker;
	readonly path: BoostPath;
	/** As it came, without "?". */
	readonly search: string;
	/** The body as it came where it is one call with an id, else null: then calls are written anew. */
	readonly whole: WholeBody | null;
	/** When the budget is over, in ms of the clock's monotonic reading. */
	readonly until: number;
	readonly trail: Trail;
}
