// What a client's request asks the reconciler to do at once, with all that travels with it: its client, the body as that signed
// it, and its time. It is in memory only: a row changes by what came of it.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { Sendable } from "../domain/ports.ts";
import type { Delivery, RequestState, UpstreamName, WireVerdict } from "../domain/request.ts";
import type { Row } from "../domain/row.ts";

/** To get a transaction to an upstream, whose row is there. */
export interface SubmitAsk {
	/** As its client sent it, for our relay. */
	readonly tx: Sendable;
	/** As its owners want it together, for a fallback. */
	readonly agreed: Sendable;
	readonly nonce: bigint;
	/** The row's delivery states before this request. */
	readonly before: Row["at"];
	readonly state: RequestState;
}

/** What came of a submission at an upstream that was tried; null: nothing was sent. */
export interface Tried {
	readonly by: UpstreamName;
	readonly delivery: Delivery | null;
}

/** To cancel transactions wherever they are. */
export interface CancelAsk {
	/** At least one, all of one sender and nonce. */
	readonly rows: readonly Row[];
	/** The self-transfer by which their sender cancels them; null: by hash. */
	readonly tx: DecodedTransaction | null;
	/** Whether the client owns them; otherwise our relay alone is asked, which decides. */
	readonly byRight: boolean;
	/** Whether our relay is asked even if boost has not given them to it: it may have them from others. */
	readonly asksRelay: boolean;
	readonly state: RequestState;
}

/**
 * What came of a cancel at an upstream. `unreached`: it did not arrive; `unsure`: it may have; `rejected`: by a verdict; `cannot`:
 * there is no way to cancel there.
 */
export type CancelOutcome =
	/** `isStillWanted`: it was taken back for the client, but the relay has it for another address, too. */
	| { readonly kind: "done"; readonly isStillWanted: boolean }
	| { readonly kind: "unreached" | "unsure" | "cannot" }
	| { readonly kind: "rejected"; readonly error: WireVerdict };

export type CancelOutcomes = ReadonlyMap<UpstreamName, CancelOutcome>;
