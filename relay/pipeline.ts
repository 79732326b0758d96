// Handles submissions and cancels. A submission is decoded, admitted and stored; the sender runner
// does the rest after the response. A cancel comes by hash, or as a self-transfer if soft
// cancellations were requested.

import { type CarriedTransaction, clientOf, type EndsTransactions } from "../shared/client.ts";
import type { Clock } from "../shared/clock.ts";
import type { BlobProofs } from "../shared/ethereum/blobProofs.ts";
import type { SignatureWork } from "../shared/ethereum/signatureWork.ts";
import {
	type DecodedTransaction,
	type DecodeReason,
	decodeTransaction,
	decodeTransactionBy,
	isNoTransaction,
	isSelfTransfer,
} from "../shared/ethereum/transaction.ts";
import type { Logger } from "../shared/log.ts";
import type { Count } from "../shared/metrics.ts";
import {
	CANCELLED_BY_OTHER,
	cancelledByOther,
	cancelsSoftly,
	lateOwner,
	type Owner,
	pastOwners,
	standingCount,
	withOwner,
	withoutWish,
} from "../shared/ownership.ts";
import type { Traces } from "../shared/tracing/traces.ts";
import { type AdmissionOptions, type AdmissionVerdict, admit, judgeAccount } from "./admission/admission.ts";
import type { Broadcaster } from "./broadcast/fanout.ts";
import type { AccountState, Tip } from "./domain/chain.ts";
import { policyOf } from "./domain/endpoints.ts";
import type { Accounts } from "./domain/ports.ts";
import { isEndedByUser, isLive, isMined, isRevivable, type TransactionRecord } from "./domain/record.ts";
import { type Rejection, type RejectionCode, rejection } from "./domain/rejection.ts";
import {
	type CancelOutcome,
	type CancelPolicy,
	type CancelRequest,
	cancelRight,
	knownOutcome,
	ownedTransaction,
	ownerOf,
	type PrivateTransaction,
	type Submission,
	type SubmitOutcome,
	WATCH_BLOCKS,
} from "./domain/transaction.ts";
import { firstRejection, STATIC_RULES } from "./domain/transactionRules.ts";
import type { PoolEntry } from "./transactions/pool.ts";
import type { Transactions } from "./transactions/transactions.ts";

export interface PipelineOptions extends AdmissionOptions {
	readonly cancelPolicy: CancelPolicy;
}

export interface PipelineDependencies {
	readonly transactions: Transactions;
	readonly accounts: Accounts;
	readonly broadcaster: Pick<Broadcaster, "isOut">;
	readonly tip: Tip;
	/** For the admission: called when the node has a later head than the tracked one. */
	readonly onLaterHead: () => void;
	readonly blobProofs: Pick<BlobProofs, "ready">;
	readonly work: Pick<SignatureWork, "recover">;
	readonly clock: Clock;
	readonly traces: Traces;
	readonly onStep: (step: "decode" | "admission", seconds: number) => void;
	/** Counts submissions by how they ended. */
	readonly onOutcome: Count<"path" | "outcome">;
	readonly log: Logger;
}

/** The outcome of a submission; for a rejection, its code. */
export type OutcomeLabel = "accepted" | "known" | "cancels" | "failed" | RejectionCode;

type AdmissionRejection = Extract<AdmissionVerdict, { ok: false }>;

const URGENT = true;

/** Submits and cancels transactions. */
export class Pipeline {
	readonly #options: PipelineOptions;
	readonly #dependencies: PipelineDependencies;

	constructor(options: PipelineOptions, dependencies: PipelineDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
	}

	/**
	 * Submits a raw transaction. Resolves once it is on disk. If the node or the store fails,
	 * throws and keeps nothing.
	 */
	async submit(submission: Submission): Promise<SubmitOutcome> {
		const { transactions, work, onOutcome, clock, onStep, traces, log } = this.#dependencies;
		const begun = clock.monotonic();
		const { raw, recovered } = submission;
		const decoding = recovered ? decodeTransaction(raw, recovered) : decodeTransactionBy(work.recover, raw);
		const decoded = decoding instanceof Promise ? await decoding : decoding;
		onStep("decode", (clock.monotonic() - begun) / 1000);
		const hash = decoded.ok ? decoded.tx.hash : null;
		const { path, requestId, trace } = submission;
		const span = hash === null ? null : traces.submission("relay.submission", hash, trace);
		try {
			const outcome = decoded.ok
				? await transactions.exclusively(decoded.tx, () => this.#submitAlone(decoded.tx, submission))
				: rejectedWith(undecodable(decoded.reason, decoded.message));
			const label = outcome.outcome === "rejected" ? outcome.rejection.code : outcome.outcome;
			// A probe from boost is not a submission.
			if (decoded.ok || !isNoTransaction(raw)) {
				onOutcome({ path, outcome: label });
				if (outcome.outcome === "rejected")
					log.info("transaction refused", {
						...{ path, request: requestId ?? undefined, code: label, ...(hash && { hash }) },
					});
			}
			span?.end({ request: requestId ?? undefined, hash: hash ?? "", path, outcome: label });
			return outcome;
		} catch (thrown) {
			onOutcome({ path, outcome: "failed" });
			span?.end({ request: requestId ?? undefined, hash: hash ?? "", path, outcome: "failed" });
			throw thrown;
		}
	}

	/**
	 * Holds the lock of the sender and nonce: until it returns, only new blocks can change the state
	 * of that nonce.
	 */
	async #submitAlone(tx: DecodedTransaction, submission: Submission): Promise<SubmitOutcome> {
		const { clock, onStep, transactions, traces } = this.#dependencies;
		const begun = clock.monotonic();
		const known = await this.#outcomeIfKnown(tx, submission);
		if (typeof known === "object") return known;
		const asCancel = await this.#cancelSoftly(tx, submission);
		if (asCancel !== null) return asCancel;
		const verdict = await this.#admit(tx, clientOf(submission.submitterAddress));
		const ms = clock.monotonic() - begun;
		onStep("admission", ms / 1000);
		if (traces.isOn) {
			const outcome = verdict.ok ? "admitted" : verdict.rejection.code;
			traces.past("relay.admission", tx.hash, ms, { outcome });
		}
		if (!verdict.ok) return rejectedWith(verdict.rejection);
		// A reorganisation may have put it back into the pool during the calls to the node.
		if (transactions.pool.get(tx.hash) !== undefined) return this.#join(tx, submission);
		return this.#add(verdict.tx, submission, verdict.account, known === "readmit");
	}

	/** Like `admit`, and converts blobs to the form that the next block accepts. */
	async #admit(
		tx: DecodedTransaction,
		client: string,
	): Promise<{ ok: true; tx: DecodedTransaction; account: AccountState } | AdmissionRejection> {
		const verdict = await admit(tx, client, this.#options, this.#dependencies);
		if (!verdict.ok) return verdict;
		if (tx.sidecar === null) return { ok: true, tx, account: verdict.account };
		const version = this.#dependencies.tip.next()?.fork.sidecarVersion ?? 1;
		const blobs = await this.#dependencies.blobProofs.ready(tx, version, client);
		if (!blobs.ok) return { ok: false, rejection: blobs.rejection };
		// The conversion takes seconds, in which blocks may come, and cell proofs change the size.
		const now = await admit(blobs.tx, client, this.#options, this.#dependencies);
		return now.ok ? { ok: true, tx: blobs.tx, account: now.account } : now;
	}

	/**
	 * The outcome for a known hash. `readmit`: it has ended and may be admitted again. `new`: the
	 * hash is unknown.
	 */
	async #outcomeIfKnown(
		tx: DecodedTransaction,
		submission: Submission,
	): Promise<SubmitOutcome | "readmit" | "new"> {
		const { transactions, accounts } = this.#dependencies;
		const record = await transactions.record(tx.hash);
		if (record === null) return "new";
		if (isLive(record.stage)) return this.#join(tx, submission);
		if (isMined(record.stage)) return knownOutcome(tx.hash);
		if (!isEndedByUser(record.stage)) return "readmit";
		// A cancel by addresses binds only these addresses.
		const { address, again } = submission;
		const isBound = !isRevivable(record) || record.endedBy.includes(address ?? "");
		if (!isBound && address !== null && again === tx.hash) return "readmit";
		// The transaction counts as known until its nonce is used, even while the node fails.
		const outcome = isBound
			? knownOutcome(tx.hash)
			: rejectedWith(rejection(CANCELLED_BY_OTHER, cancelledByOther(tx.hash, address)));
		const client = clientOf(submission.submitterAddress);
		const account = await accounts.get(tx.from, client, URGENT).catch(() => null);
		if (account === null || account.nonce <= tx.nonce) return outcome;
		// Before a rejection, `judgeAccount` reads the account again, since the known state may be
		// old.
		const verdict = await judgeAccount(tx, client, this.#dependencies).catch(() => null);
		const isNonceUsed = verdict?.ok === false && verdict.rejection.code === "NONCE_TOO_LOW";
		return isNonceUsed ? rejectedWith(verdict.rejection) : outcome;
	}

	/** Adds the client to the transaction's owners. Resolves once the change is on disk. */
	async #join(tx: DecodedTransaction, submission: Submission): Promise<SubmitOutcome> {
		const { transactions, broadcaster } = this.#dependencies;
		const { owners = [] } = transactions.records.get(tx.hash)?.record ?? {};
		const owner = ownerOf(submission);
		const isOut = broadcaster.isOut(tx.hash);
		// An owner who arrives late can still hide the transaction from searchers.
		const isHidden = owner.isHidden || policyOf(submission.path).sharing === "never";
		const joined = withOwner(owners, isOut ? { ...lateOwner(owners, owner), isHidden } : owner);
		if (joined !== owners) await transactions.changes.changeOwners(tx.hash, joined, "joined");
		return knownOutcome(tx.hash);
	}

	/** Adds the transaction to the pool and to the disk; then its sender is run. */
	async #add(
		tx: DecodedTransaction,
		submission: Submission,
		account: AccountState,
		isResubmitted: boolean,
	): Promise<SubmitOutcome> {
		const { transactions } = this.#dependencies;
		// The requests of earlier owners still apply after a resubmission, no matter who resubmits.
		const past = isResubmitted ? await transactions.record(tx.hash) : null;
		const owners = past === null ? [] : pastOwners(past.owners, past.endedBy);
		const transaction = this.#owned(tx, submission, owners);
		const unseen = await this.#unseen("replaces", tx, submission);
		return transactions.changes.add(transaction, account, { isResubmitted, unseen });
	}

	/** Makes the transaction of a submission; `past` are its earlier owners. */
	#owned(tx: DecodedTransaction, submission: Submission, past: readonly Owner[] = []): PrivateTransaction {
		const { submitterAddress, requestId } = submission;
		const owners = withOwner(past, ownerOf(submission));
		const receivedAt = this.#dependencies.clock.now();
		return ownedTransaction({ tx, submitterAddress, receivedAt, requestId }, owners);
	}

	/**
	 * Cancels as much as the request may cancel. Resolves once the cancel is on disk. Throws if the
	 * store fails.
	 */
	async cancel(request: CancelRequest): Promise<CancelOutcome> {
		let archived: TransactionRecord | null = null;
		let fault: { readonly thrown: unknown } | null = null;
		try {
			// Read even if it is in memory: response times must not reveal whether the hash is
			// known. The cancel works without it.
			archived = await this.#dependencies.transactions.archived(request.hash);
		} catch (thrown) {
			fault = { thrown };
		}
		const outcome = await this.#cancelFound(request, archived);
		// The transaction may be archived, so the response says only that it can't be read.
		if (outcome === "notPending" && fault !== null) throw fault.thrown;
		return outcome;
	}

	/** Cancels a transaction in memory or in the archive, if the request may. */
	async #cancelFound(request: CancelRequest, archived: TransactionRecord | null): Promise<CancelOutcome> {
		const { transactions } = this.#dependencies;
		const { pool, records } = transactions;
		const { hash } = request;
		// During its first write, a transaction is only in the pool.
		const transaction = records.get(hash)?.transaction ?? pool.get(hash)?.transaction;
		const owner = transaction?.tx ?? archived;
		if (owner === null) return this.#cancelBeforeItComes(request);
		// An owner's address may cancel only until WATCH_BLOCKS blocks after the end, which is in
		// `archived.block`.
		const head = this.#dependencies.tip.head()?.number ?? 0;
		const isWatched = head < (archived?.block ?? 0) + WATCH_BLOCKS;
		const owners = transaction?.owners ?? (isWatched ? (archived?.owners ?? []) : []);
		const { cancelPolicy } = this.#options;
		const right = cancelRight(cancelPolicy, request, { from: owner.from, owners });
		if (right === null) return "notPending";
		if (transaction === undefined) return this.#cancelArchived(archived, right);
		return transactions.exclusively(transaction.tx, () => this.#cancelAlone(request, transaction.tx));
	}

	/**
	 * Cancels a transaction that only boost has: what boost has sent before may still arrive. The
	 * record of its end then counts as for any other cancelled transaction.
	 */
	async #cancelBeforeItComes(request: CancelRequest): Promise<CancelOutcome> {
		const { hash, carried, address, signer } = request;
		if (carried?.hash !== hash) return "notPending";
		const bySender = signer === carried.from;
		if (!bySender && address === null) return "notPending";
		const { transactions } = this.#dependencies;
		const at = { from: carried.from, nonce: BigInt(carried.nonce) };
		const hasCome = await transactions.exclusively(at, async () => {
			// While this waited for the lock.
			if ((await transactions.record(hash)) !== null) return true;
			await transactions.changes.cancelUnseen(carried, address, bySender);
			return false;
		});
		if (!hasCome) return "cancelled";
		// Boost names it no more, so this ends.
		return this.cancel({ hash, address, signer });
	}

	/**
	 * A repeated cancel succeeds. If the sender repeats it, a cancel by address then applies to
	 * everybody.
	 */
	async #cancelArchived(record: TransactionRecord | null, right: "all" | "own"): Promise<CancelOutcome> {
		if (record?.stage !== "CANCELLED") return "notPending";
		const { changes } = this.#dependencies.transactions;
		if (right === "all" && isRevivable(record)) await changes.cancelForAll(record);
		return "cancelled";
	}

	/**
	 * Withdraws as many requests as the caller may withdraw. Holds the lock of the sender and
	 * nonce.
	 */
	async #cancelAlone(request: CancelRequest, { hash, from }: DecodedTransaction): Promise<CancelOutcome> {
		const { transactions } = this.#dependencies;
		const { pool, records } = transactions;
		// The owners may have changed while this waited for the lock. A transaction in its first
		// write has a record only now.
		const { record } = records.get(hash) ?? {};
		if (record === undefined) return "notPending";
		const { owners } = record;
		const right = cancelRight(this.#options.cancelPolicy, request, { from, owners });
		const left = right === "own" ? withoutWish(owners, request.address ?? "") : [];
		if (right === "own" && standingCount(left) > 0 && isLive(record.stage)) {
			if (left !== owners) await transactions.changes.changeOwners(hash, left, "left");
			return isLive(record.stage) ? "stillWanted" : "notPending";
		}
		// The transaction may have left the pool by now.
		const entry = pool.get(hash);
		if (right !== null && entry !== undefined) await transactions.changes.cancel(entry, right === "own");
		return right === null ? "notPending" : this.#cancelArchived(record, right);
	}

	/**
	 * Handles `tx` as a soft cancel. Returns null if it is none; then it is admitted like any
	 * other. The caller holds the lock of the sender and nonce.
	 */
	async #cancelSoftly(tx: DecodedTransaction, submission: Submission): Promise<SubmitOutcome | null> {
		const { transactions } = this.#dependencies;
		const { pool, records } = transactions;
		if (!isSelfTransfer(tx) || !this.#isValidAlone(tx)) return null;
		const ended = await this.#endedSoftCancellable(tx, submission);
		const unseen = await this.#unseen("cancels", tx, submission);
		// Looked up after the reads, because a block may have changed the pool during them.
		const pending = pool.at(tx.from, tx.nonce);
		if (pending !== undefined) {
			if (pending.transaction.tx.hash === tx.hash) return knownOutcome(tx.hash);
			const isSoft = cancelsSoftly(pending.transaction.owners, submission.address);
			return isSoft ? this.#recordSoftCancel(tx, submission, pending, unseen) : null;
		}
		if (ended === null && unseen.length === 0) return null;
		if (records.get(tx.hash)?.record.stage === "CANCELLED") return knownOutcome(tx.hash);
		const rejected = transactions.changes.cancelLimitRejection(tx.from);
		return rejected ?? this.#recordSoftCancel(tx, submission, ended?.past ?? null, unseen);
	}

	/**
	 * The transactions of the nonce of `tx` that the submission ends in this way, by boost's word,
	 * and that have not come here.
	 */
	async #unseen(
		how: EndsTransactions["how"],
		{ hash, from, nonce }: DecodedTransaction,
		{ ends }: Submission,
	): Promise<readonly CarriedTransaction[]> {
		const unseen: CarriedTransaction[] = [];
		for (const one of ends?.how === how ? ends.carried : []) {
			const isOfNonce = one.from === from && BigInt(one.nonce) === nonce && one.hash !== hash;
			if (isOfNonce && (await this.#dependencies.transactions.record(one.hash)) === null) unseen.push(one);
		}
		return unseen;
	}

	/** Whether the transaction, taken alone, is valid in the next block. */
	#isValidAlone(tx: DecodedTransaction): boolean {
		const next = this.#dependencies.tip.next();
		return next !== null && firstRejection(STATIC_RULES, tx, this.#options.rules, next) === null;
	}

	/**
	 * Null unless `tx` may cancel after the end. For that, its nonce must be unused. The last
	 * transaction with the nonce that requested soft cancellations must be cancelled or expired.
	 * `past` is the transaction whose bytes could revive it, if any.
	 */
	async #endedSoftCancellable(
		tx: DecodedTransaction,
		{ submitterAddress, address }: Submission,
	): Promise<{ readonly past: TransactionRecord | null } | null> {
		const { transactions, accounts } = this.#dependencies;
		const hash = await transactions.changes.lastSoftCancellable(tx.from, tx.nonce);
		if (hash === null || hash === tx.hash) return null;
		const record = await transactions.record(hash);
		if (record?.stage !== "CANCELLED" && record?.stage !== "EXPIRED") return null;
		if (!cancelsSoftly(record.owners, address)) return null;
		const account = await accounts.get(tx.from, clientOf(submitterAddress), URGENT).catch(() => null);
		if (account === null || account.nonce > tx.nonce) return null;
		return { past: await transactions.changes.revivableWithSameNonce(tx) };
	}

	/**
	 * Cancels the pending or revivable transaction with the nonce, if there is one, and those that
	 * have not come here. Records `tx` as the cancel.
	 */
	async #recordSoftCancel(
		tx: DecodedTransaction,
		submission: Submission,
		earlier: PoolEntry | TransactionRecord | null,
		unseen: readonly CarriedTransaction[],
	): Promise<SubmitOutcome> {
		const { changes } = this.#dependencies.transactions;
		await changes.cancelBy(this.#owned(tx, submission), earlier, unseen);
		return { outcome: "cancels", hash: tx.hash };
	}
}

function rejectedWith(rejection: Rejection): SubmitOutcome {
	return { outcome: "rejected", rejection };
}

function undecodable(reason: DecodeReason, message: string): Rejection {
	if (reason === "oversized") return rejection("OVERSIZED", message);
	return rejection("UNDECODABLE", message, { detail: reason });
}
