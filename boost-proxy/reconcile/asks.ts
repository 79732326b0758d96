// The tasks that a client's request gives the reconciler to do at once. They include its client,
// the body as signed by that client, and its time. They are in memory only: the outcome changes a
// row.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { Attempt } from "../domain/deliveries.ts";
import type { Sendable } from "../domain/ports.ts";
import type { Delivery, RequestState, UpstreamName, WireVerdict } from "../domain/request.ts";
import type { Row } from "../domain/row.ts";

/** The task to get a transaction with a row to an upstream. */
export interface SubmitAsk {
	/** As its client sent it, for our relay. */
	readonly tx: Sendable;
	/** With the combined terms of its owners, for a fallback. */
	readonly agreed: Sendable;
	readonly nonce: bigint;
	readonly state: RequestState;
}

/** The outcome of a submission at an upstream that was tried; null: nothing was sent. */
export interface Tried {
	readonly by: UpstreamName;
	readonly delivery: Delivery | null;
	/** An acknowledged attempt, which ends with the request's own change of the row. */
	readonly attempt?: Attempt;
}

/** The task to cancel transactions wherever they are. */
export interface CancelAsk {
	/** At least one row, all of one sender and nonce. */
	readonly rows: readonly Row[];
	/** The self-transfer with which their sender cancels them; null: by hash. */
	readonly tx: DecodedTransaction | null;
	/** Whether the client owns them. Otherwise only our relay receives the cancel, and decides. */
	readonly byRight: boolean;
	/**
	 * Whether our relay receives the cancel even if boost did not send them there: it may have them
	 * from others.
	 */
	readonly asksRelay: boolean;
	readonly state: RequestState;
}

/**
 * The outcome of a cancel at an upstream. `unreached`: it did not arrive. `unsure`: it may have
 * arrived. `rejected`: by a verdict. `cannot`: there is no way to cancel there.
 */
export type CancelOutcome =
	/**
	 * `isStillWanted`: it was cancelled for this client, but the relay still has it for another
	 * address.
	 */
	| { readonly kind: "done"; readonly isStillWanted: boolean }
	| { readonly kind: "unreached" | "unsure" | "cannot" }
	| { readonly kind: "rejected"; readonly error: WireVerdict };

export type CancelOutcomes = ReadonlyMap<UpstreamName, CancelOutcome>;

/** The outcomes of a cancel, and the rows as they were when each upstream was asked. */
export interface CancelResult {
	readonly outcomes: CancelOutcomes;
	readonly asked: ReadonlyMap<UpstreamName, readonly Row[]>;
}
