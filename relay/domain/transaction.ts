// Types of submissions, cancels and admitted transactions, and the rule who may cancel. Pure.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { SubmissionPath } from "./endpoints.ts";
import type { Rejection } from "./rejection.ts";

/** The options of a submission. */
export interface SubmissionOptions {
	readonly path: SubmissionPath;
	/** Whether a self-transfer with the same nonce cancels it without a fee. False on paths that do not support it. */
	readonly softCancellations: boolean;
	/** Lower-case address that gets the refund; null: the sender. */
	readonly refundRecipient: string | null;
	readonly referrer: string | null;
}

/** An admitted transaction. */
export interface PrivateTransaction extends SubmissionOptions {
	readonly tx: DecodedTransaction;
	/** The network address that submitted it, and that may cancel it. */
	readonly submitterAddress: string;
	/** When it arrived, in ms since the epoch. */
	readonly receivedAt: number;
}

/** Makes an admitted transaction from its submission. */
export function privateTransaction(
	tx: DecodedTransaction,
	options: SubmissionOptions & { readonly submitterAddress: string },
	receivedAt: number,
): PrivateTransaction {
	const { path, softCancellations, refundRecipient, referrer, submitterAddress } = options;
	return { tx, path, softCancellations, refundRecipient, referrer, submitterAddress, receivedAt };
}

/** The transaction without raw bytes, data and lists, to save memory for one that is never sent again. */
export function withoutBytes(transaction: PrivateTransaction): PrivateTransaction {
	const tx = { ...transaction.tx, raw: NO_BYTES, data: NO_BYTES, accessList: [], authorizationList: [] };
	return { ...transaction, tx };
}

const NO_BYTES = Buffer.alloc(0);

/** A submission as received. */
export interface Submission extends SubmissionOptions {
	/** The signed transaction as bytes; must not be changed afterwards. */
	readonly raw: Uint8Array;
	/** The client's network address. */
	readonly submitterAddress: string;
}

/**
 * The outcome of a submission. `known`: it was submitted before, and nothing happened. `cancels`: it is a self-transfer that
 * cancelled the transaction with its nonce, and is not sent itself.
 */
export type SubmitOutcome =
	| { readonly outcome: "accepted" | "known" | "cancels"; readonly hash: string }
	| { readonly outcome: "refused"; readonly rejection: Rejection };

/** The outcome of a repeated submission. */
export function knownOutcome(hash: string): SubmitOutcome {
	return { outcome: "known", hash };
}

/** Blocks for which a mined or ended transaction is watched, since it may still be mined or reorganised. */
export const WATCH_BLOCKS = 64;

/** Most cancelled transactions of one sender that are not archived yet: cancels are free, and each is stored for a week. */
export const MAX_CANCELLED = 512;

/** What a request proves about its client. */
export interface Requester {
	/** The client's network address; null if it proves nothing: a request from a web page, or an unknown address. */
	readonly address: string | null;
	/** Address whose key signed the request, lower case, or null. */
	readonly signer: string | null;
}

/** A request to cancel a transaction. */
export interface CancelRequest extends Requester {
	/** Lower case. */
	readonly hash: string;
}

/** `origin`: only the submitter's network address or the sender's signature may cancel; `open`: anyone may. */
export const CANCEL_POLICIES = ["origin", "open"] as const;
export type CancelPolicy = (typeof CANCEL_POLICIES)[number];

/** The owner of a transaction: its sender, and the network address that submitted it (null if forgotten). */
export interface TransactionOwner {
	readonly from: string;
	readonly submitterAddress: string | null;
}

/** Whether the request comes from `owner`. */
export function isOwner(
	{ address, signer }: Requester,
	{ from, submitterAddress }: TransactionOwner,
): boolean {
	return signer === from || (address !== null && address === submitterAddress);
}

/** Whether the request may cancel a transaction of `owner`. */
export function mayCancelTransaction(
	policy: CancelPolicy,
	request: Requester,
	owner: TransactionOwner,
): boolean {
	return policy === "open" || isOwner(request, owner);
}

/** A sender's pending transaction, as one of a chain of nonces. */
export interface ChainLink {
	readonly tx: DecodedTransaction;
	/** Whether it is sent although its simulation fails. */
	readonly mayFail: boolean;
}
