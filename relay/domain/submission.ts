// A submission as ingress hands it over, and what can become of it. Pure types.

import type { Rejection } from "./rejection.ts";
import type { SubmissionOptions } from "./transaction.ts";

/** What a client sent. */
export interface Submission extends SubmissionOptions {
	/** The signed transaction as bytes; must not be changed afterwards. */
	readonly raw: Uint8Array;
	/** The client's network address. */
	readonly origin: string;
}

/** What became of a submission. `known`: it was here already, and nothing happened. */
export type SubmitOutcome =
	| { readonly outcome: "accepted" | "known"; readonly hash: string }
	| { readonly outcome: "refused"; readonly rejection: Rejection };
