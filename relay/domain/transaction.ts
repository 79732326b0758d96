// A private transaction as the relay holds it (the decoded bytes and what its sender asked for with them), the submission or
// cancel that clients send, who may cancel, and what can become of them. Pure.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { SubmissionPath } from "./endpoints.ts";
import type { Rejection } from "./rejection.ts";

/** What came with a submission beside the transaction itself. */
export interface SubmissionOptions {
	readonly path: SubmissionPath;
	/** A self-transfer of the same nonce ends it without a fee. False on paths where the flag has no effect. */
	readonly softCancellations: boolean;
	/** Lower-case address that gets the rebate, or null: then the sender does. */
	readonly refundRecipient: string | null;
	readonly referrer: string | null;
}

/** A transaction that was admitted. */
export interface PrivateTransaction extends SubmissionOptions {
	readonly tx: DecodedTransaction;
	/** The network address that submitted it: who may cancel it. */
	readonly origin: string;
	/** When it came, in ms since the epoch. */
	readonly receivedAt: number;
}

/** An admitted transaction of what its client asked for. */
export function privateTransaction(
	tx: DecodedTransaction,
	options: SubmissionOptions & { readonly origin: string },
	receivedAt: number,
): PrivateTransaction {
	const { path, softCancellations, refundRecipient, referrer, origin } = options;
	return { tx, path, softCancellations, refundRecipient, referrer, origin, receivedAt };
}

/**
 * The transaction without what can be large, for one that never goes out again: no raw bytes, data or lists. Its hash,
 * sender and nonce stay.
 */
export function withoutBytes(transaction: PrivateTransaction): PrivateTransaction {
	const tx = { ...transaction.tx, raw: NO_BYTES, data: NO_BYTES, accessList: [], authorizationList: [] };
	return { ...transaction, tx };
}

const NO_BYTES = Buffer.alloc(0);

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

/** How many blocks a mined or ended transaction is watched for: a builder may have mined it, a block may go. */
export const WATCH_BLOCKS = 64;

/**
 * Transactions that one sender may take back within the blocks that they are watched for: each is remembered
 * for long, and costs its sender nothing.
 */
export const MAX_CANCELLED = 512;

/** Who wants a transaction taken back. */
export interface CancelRequest {
	/** Lower case. */
	readonly hash: string;
	/** The client's network address, or null where it does not speak for the client: from a web page, or unknown. */
	readonly address: string | null;
	/** Address whose key signed the request, lower case, or null. */
	readonly signer: string | null;
}

/** `origin`: who submitted it, by the network address, or its sender, by signature; `open`: anyone. */
export const CANCEL_POLICIES = ["origin", "open"] as const;
export type CancelPolicy = (typeof CANCEL_POLICIES)[number];

/** Whose a transaction is; `origin` is the network address that submitted it, null where that is forgotten. */
export interface TransactionOwner {
	readonly from: string;
	readonly origin: string | null;
}

/** Whether the client may take back the transaction of `owner`. */
export function mayCancelTransaction(
	policy: CancelPolicy,
	{ address, signer }: Pick<CancelRequest, "address" | "signer">,
	{ from, origin }: TransactionOwner,
): boolean {
	return policy === "open" || signer === from || (address !== null && address === origin);
}
