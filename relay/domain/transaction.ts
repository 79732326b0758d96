// Types of submissions, cancels and admitted transactions, and the rule for who may cancel. Pure.

import type { CarriedTransaction, EndsTransactions } from "../../shared/client.ts";
import type { DecodedTransaction, Recovered } from "../../shared/ethereum/transaction.ts";
import { NO_ACCESS } from "../../shared/ethereum/transactionFields.ts";
import {
	areSameBuilders,
	isOwnedBy,
	type Owner,
	type OwnerOptions,
	termsOf,
} from "../../shared/ownership.ts";
import { type EndpointPolicy, type SubmissionPath, sharingOn } from "./endpoints.ts";
import type { Rejection } from "./rejection.ts";

/** The options of a submission; `softCancellations` is false on paths that do not support it. */
export interface SubmissionOptions extends OwnerOptions {
	readonly path: SubmissionPath;
}

/**
 * An admitted transaction. Its options apply to all of its owners: see {@link ownedTransaction}.
 */
export interface PrivateTransaction extends SubmissionOptions {
	readonly tx: DecodedTransaction;
	/** Its submitters, the first one first. */
	readonly owners: readonly Owner[];
	/** When searchers may see it: by the strictest of the requested paths, or never. */
	readonly sharing: EndpointPolicy["sharing"];
	/** The network address that is charged for it. */
	readonly submitterAddress: string;
	/** When it arrived, in ms since the epoch. */
	readonly receivedAt: number;
	/** Id of the request that brought it, see shared/requestId.ts; null if that is not known. */
	readonly requestId: string | null;
}

/** The fields that do not depend on the owners. */
type Arrived = Pick<PrivateTransaction, "tx" | "submitterAddress" | "receivedAt" | "requestId">;

/** The transaction of these owners. All fields that depend on them are computed again. */
export function ownedTransaction(
	{ tx, submitterAddress, receivedAt, requestId }: Arrived,
	owners: readonly Owner[],
): PrivateTransaction {
	const { path, paths, softCancellations, refundRecipient, referrer, isHidden, builders } = termsOf(owners);
	const sharing = isHidden ? "never" : sharingOn(paths);
	return {
		tx,
		owners,
		path,
		sharing,
		softCancellations,
		refundRecipient,
		referrer,
		isHidden,
		builders,
		submitterAddress,
		receivedAt,
		requestId,
	};
}

/** Whether both go to the same builders in the same form. */
export function isSentAlike(one: PrivateTransaction, other: PrivateTransaction): boolean {
	return one.path === other.path && areSameBuilders(one.builders, other.builders);
}

/** The transaction with the same one in another form, or with other bytes. */
export function withTx(transaction: PrivateTransaction, tx: DecodedTransaction): PrivateTransaction {
	return {
		tx,
		owners: transaction.owners,
		path: transaction.path,
		sharing: transaction.sharing,
		softCancellations: transaction.softCancellations,
		refundRecipient: transaction.refundRecipient,
		referrer: transaction.referrer,
		isHidden: transaction.isHidden,
		builders: transaction.builders,
		submitterAddress: transaction.submitterAddress,
		receivedAt: transaction.receivedAt,
		requestId: transaction.requestId,
	};
}

/**
 * The owner that a submission creates for its client. The request's signature is ignored: it covers
 * neither path nor query.
 */
export function ownerOf(submission: SubmissionOptions & OwnerProof): Owner {
	const { address, path, softCancellations, refundRecipient, referrer, isHidden, builders } = submission;
	return {
		address,
		paths: ONE_PATH[path],
		softCancellations,
		refundRecipient,
		referrer,
		isHidden,
		builders,
		cancelled: false,
	};
}

interface OwnerProof {
	/** See {@link Requester.address}: an owner without an address can't withdraw its request. */
	readonly address: string | null;
}

/** Interned lists for the owners of all transactions. */
const ONE_PATH: Readonly<Record<SubmissionPath, readonly SubmissionPath[]>> = {
	fast: ["fast"],
	noreverts: ["noreverts"],
	fullprivacy: ["fullprivacy"],
	maxbackruns: ["maxbackruns"],
	nochecks: ["nochecks"],
};

/**
 * The transaction without raw bytes, data, lists and signature, to save memory for one that is
 * never sent again.
 */
export function withoutBytes(transaction: PrivateTransaction): PrivateTransaction {
	const { tx } = transaction;
	const bare: DecodedTransaction = {
		type: tx.type,
		chainId: tx.chainId,
		nonce: tx.nonce,
		gasLimit: tx.gasLimit,
		to: tx.to,
		value: tx.value,
		data: NO_BYTES,
		accessList: NO_ACCESS,
		gasPrice: tx.gasPrice,
		maxFeePerGas: tx.maxFeePerGas,
		maxPriorityFeePerGas: tx.maxPriorityFeePerGas,
		maxFeePerBlobGas: tx.maxFeePerBlobGas,
		blobVersionedHashes: tx.blobVersionedHashes,
		authorizationList: [],
		v: 0n,
		yParity: 0,
		r: 0n,
		s: 0n,
		hash: tx.hash,
		from: tx.from,
		raw: NO_BYTES,
		size: tx.size,
		zeroBytes: tx.zeroBytes,
		sidecar: tx.sidecar,
	};
	return withTx(transaction, bare);
}

const NO_BYTES = Buffer.alloc(0);

/** A submission as received. */
export interface Submission extends SubmissionOptions, OwnerProof {
	/** The signed transaction as bytes; must not be changed afterwards. */
	readonly raw: Uint8Array;
	/** The client's network address, which is charged for it. */
	readonly submitterAddress: string;
	/**
	 * The hash in its `again` parameter: the client requests it again although other addresses have
	 * ended it. Null: there is none.
	 */
	readonly again: string | null;
	/** As {@link PrivateTransaction.requestId}. */
	readonly requestId: string | null;
	/** The trace that it belongs to, or null; see shared/tracing/traces.ts. */
	readonly trace: string | null;
	/** Its hash and sender, if another relay that is trusted has recovered them. */
	readonly recovered?: Recovered | undefined;
	/** Transactions of its nonce that it cancels as a self-transfer, or replaces, by boost's word. */
	readonly ends?: EndsTransactions | undefined;
}

/**
 * The outcome of a submission. `known`: it was submitted before, and nothing happened. `cancels`:
 * it is a self-transfer that cancelled the transaction with its nonce, and is not sent itself.
 */
export type SubmitOutcome =
	| { readonly outcome: "accepted" | "known" | "cancels"; readonly hash: string }
	| { readonly outcome: "rejected"; readonly rejection: Rejection };

/** The outcome of a repeated submission. */
export function knownOutcome(hash: string): SubmitOutcome {
	return { outcome: "known", hash };
}

/**
 * Blocks for which a mined or ended transaction is watched, since it may still be mined or
 * reorganised.
 */
export const WATCH_BLOCKS = 64;

/** Most pending transactions of one sender. */
export const MAX_PER_SENDER = 64;

/**
 * Most cancelled transactions of one sender that are not archived yet: cancels are free, and each
 * is stored for a week.
 */
export const MAX_CANCELLED = 512;

/** The identities that a request proves. */
export interface Requester {
	/**
	 * The client's network address; null if it proves nothing: a request from a web page, or an
	 * unknown address.
	 */
	readonly address: string | null;
	/** Address whose key signed the request, lower case, or null. */
	readonly signer: string | null;
}

/** A request to cancel a transaction. */
export interface CancelRequest extends Requester {
	/** Lower case. */
	readonly hash: string;
	/**
	 * The transaction, if boost names it since it has it from this client or its sender. It may
	 * still be on its way here, so the cancel also ends it before it comes.
	 */
	readonly carried?: CarriedTransaction | undefined;
}

/**
 * The outcome of a cancel. `cancelled`: by this request or an earlier one. `stillWanted`: withdrawn
 * for the request's address, but not for others. `notPending`: it is not pending here, or the
 * client may not cancel it; the answer does not say which.
 */
export type CancelOutcome = "cancelled" | "stillWanted" | "notPending";

/** `origin`: only owners and the sender's signature may cancel; `open`: anyone may. */
export const CANCEL_POLICIES = ["origin", "open"] as const;
export type CancelPolicy = (typeof CANCEL_POLICIES)[number];

/**
 * The owners of a transaction: its sender, and its submitters (without their addresses once it is
 * archived).
 */
export interface Owned {
	readonly from: string;
	readonly owners: readonly Owner[];
}

/**
 * The part that a request may cancel: all of the transaction, its own request, or (null) nothing.
 */
export function cancelRight(
	policy: CancelPolicy,
	{ address, signer }: Requester,
	{ from, owners }: Owned,
): "all" | "own" | null {
	if (policy === "open" || signer === from) return "all";
	return isOwnedBy(owners, address) ? "own" : null;
}

/** A sender's pending transaction, as one of a chain of nonces. */
export interface ChainLink {
	readonly tx: DecodedTransaction;
	/** Whether it is sent even if its simulation fails. */
	readonly mayFail: boolean;
}
