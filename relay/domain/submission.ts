// A submission or a cancel as ingress hands it over, and what can become of it. Pure.

import type { Rejection } from "./rejection.ts";
import type { SubmissionOptions } from "./transaction.ts";

/** What a client sent. */
export interface Submission extends SubmissionOptions {
	/** The signed transaction as bytes; must not be changed afterwards. */
	readonly raw: Uint8Array;
	/** The client's network address. */
	readonly origin: string;
}

/**
 * What became of a submission. `known`: it was here already, and nothing happened; `cancels`: it took back the one with
 * its nonce, and goes nowhere itself.
 */
export type SubmitOutcome =
	| { readonly outcome: "accepted" | "known" | "cancels"; readonly hash: string }
	| { readonly outcome: "refused"; readonly rejection: Rejection };

/** The outcome for what was here already. */
export function known(hash: string): SubmitOutcome {
	return { outcome: "known", hash };
}

/**
 * Transactions that one sender may take back within the blocks that they are watched for: each is remembered
 * for long, and costs its sender nothing.
 */
export const MAX_TAKEN_BACK = 512;

/** Who wants a transaction taken back. */
export interface CancelRequest {
	/** Lower case. */
	readonly hash: string;
	/** The client's network address, or null where it does not speak for the client: from a web page, or unknown. */
	readonly address: string | null;
	/** Address whose key signed the request, lower case, or null. */
	readonly signer: string | null;
}
