// Handles submissions and cancels. A submission is decoded, admitted and stored; after the response the sender runner simulates,
// shares and broadcasts it. A cancel comes by hash, or as a self-transfer where soft cancellations were requested.

import type { Clock } from "../shared/clock.ts";
import {
	type DecodedTransaction,
	type DecodeReason,
	decodeTransaction,
	isSelfTransfer,
} from "../shared/ethereum/transaction.ts";
import { clientOf } from "../shared/http/callContext.ts";
import { type AdmissionOptions, admit, judgeAccount } from "./admission/admission.ts";
import type { AccountState, Tip } from "./domain/chain.ts";
import { policyOf, type SubmissionPath } from "./domain/endpoints.ts";
import type { Accounts, Canceller, Submitter } from "./domain/ports.ts";
import { isEndedByUser, isLive, isMined, type TransactionRecord } from "./domain/record.ts";
import { type Rejection, type RejectionCode, rejection } from "./domain/rejection.ts";
import {
	type CancelPolicy,
	type CancelRequest,
	knownOutcome,
	mayCancelTransaction,
	type PrivateTransaction,
	privateTransaction,
	type Submission,
	type SubmitOutcome,
	WATCH_BLOCKS,
} from "./domain/transaction.ts";
import { firstRefusal, STATIC_RULES } from "./domain/transactionRules.ts";
import type { SenderRunner } from "./senderRunner.ts";
import type { PoolEntry } from "./transactions/pool.ts";
import type { Transactions } from "./transactions/transactions.ts";

export interface PipelineOptions extends AdmissionOptions {
	readonly cancelPolicy: CancelPolicy;
}

export interface PipelineDependencies {
	readonly transactions: Transactions;
	readonly accounts: Accounts;
	readonly tip: Tip;
	/** Called when the node has a later head than the tracked one. */
	readonly onLaterHead: () => void;
	readonly runner: Pick<SenderRunner, "run">;
	/** Shows a transaction to searchers. */
	readonly share: (transaction: PrivateTransaction) => void;
	readonly clock: Clock;
	readonly onStep: (step: "decode" | "admission", seconds: number) => void;
	/** Called with a submission's outcome, or the code of its refusal. `hash` is null when it could not be decoded. */
	readonly onOutcome: (path: SubmissionPath, outcome: SubmissionOutcome, hash: string | null) => void;
}

/** How a submission may end. */
export type SubmissionOutcome = "accepted" | "known" | "cancels" | "failed" | RejectionCode;

/** Submits and cancels transactions. */
export class Pipeline implements Submitter, Canceller {
	readonly #options: PipelineOptions;
	readonly #deps: PipelineDependencies;
	/** Submissions that are being written, by hash: a repeated submission of the same bytes waits for the same write. */
	readonly #writing = new Map<string, Promise<SubmitOutcome>>();

	constructor(options: PipelineOptions, dependencies: PipelineDependencies) {
		this.#options = options;
		this.#deps = dependencies;
	}

	/** Submits a raw transaction; resolves once it is on disk. If the node or the store fails, throws and keeps nothing. */
	async submit(submission: Submission): Promise<SubmitOutcome> {
		const { onOutcome, clock, onStep } = this.#deps;
		const begun = clock.monotonic();
		const decoded = decodeTransaction(submission.raw);
		onStep("decode", (clock.monotonic() - begun) / 1000);
		const hash = decoded.ok ? decoded.tx.hash : null;
		try {
			const outcome = decoded.ok
				? await this.#submitDecoded(decoded.tx, submission)
				: refused(undecodable(decoded.reason, decoded.message));
			const code = outcome.outcome === "refused" ? outcome.rejection.code : outcome.outcome;
			onOutcome(submission.path, code, hash);
			return outcome;
		} catch (thrown) {
			onOutcome(submission.path, "failed", hash);
			throw thrown;
		}
	}

	#submitDecoded(tx: DecodedTransaction, submission: Submission): Promise<SubmitOutcome> {
		const { transactions } = this.#deps;
		return (
			this.#writing.get(tx.hash) ?? transactions.exclusively(tx, () => this.#submitAlone(tx, submission))
		);
	}

	/** Runs exclusively for the sender and nonce: meanwhile only new blocks can change the state of that nonce. */
	async #submitAlone(tx: DecodedTransaction, submission: Submission): Promise<SubmitOutcome> {
		const { clock, onStep, transactions } = this.#deps;
		const begun = clock.monotonic();
		const past = await this.#pastOutcome(tx, submission);
		if (past !== null && past !== "resubmitted") return past;
		const asCancel = await this.#cancelSoftly(tx, submission);
		if (asCancel !== null) return asCancel;
		const verdict = await admit(tx, clientOf(submission.submitterAddress), this.#options, this.#deps);
		onStep("admission", (clock.monotonic() - begun) / 1000);
		if (!verdict.ok) return refused(verdict.rejection);
		// A reorganisation may have put it back into the pool during the calls to the node.
		if (transactions.pool.get(tx.hash) !== undefined) return knownOutcome(tx.hash);
		return this.#add(tx, submission, verdict.account, past === "resubmitted");
	}

	/** The outcome for a known hash; `resubmitted` when it has ended and may be admitted again; null for an unknown hash. */
	async #pastOutcome(
		tx: DecodedTransaction,
		{ submitterAddress }: Submission,
	): Promise<SubmitOutcome | "resubmitted" | null> {
		const { transactions, accounts } = this.#deps;
		const record = await transactions.record(tx.hash);
		if (record === null) return null;
		if (isLive(record.stage) || isMined(record.stage)) return knownOutcome(tx.hash);
		if (!isEndedByUser(record.stage)) return "resubmitted";
		// Ended by its user: never admitted again. It counts as known until its nonce is used, also while the node fails.
		const client = clientOf(submitterAddress);
		const account = await accounts.get(tx.from, client, true).catch(() => null);
		if (account === null || account.nonce <= tx.nonce) return knownOutcome(tx.hash);
		const verdict = await judgeAccount(tx, client, this.#deps).catch(() => null);
		if (verdict?.ok !== false || verdict.rejection.code !== "NONCE_TOO_LOW") return knownOutcome(tx.hash);
		return refused(verdict.rejection);
	}

	/** Adds it to the pool and the disk, and has it run. */
	async #add(
		tx: DecodedTransaction,
		submission: Submission,
		account: AccountState,
		isResubmitted: boolean,
	): Promise<SubmitOutcome> {
		const { transactions, runner, share, clock } = this.#deps;
		const transaction = privateTransaction(tx, submission, clock.now());
		const writing = transactions.add(transaction, account, isResubmitted);
		this.#writing.set(tx.hash, writing);
		try {
			const outcome = await writing;
			if (outcome.outcome !== "accepted") return outcome;
			if (policyOf(transaction.path).shared === "always") share(transaction);
			runner.run(tx.from, "new", true);
			return outcome;
		} finally {
			this.#writing.delete(tx.hash);
		}
	}

	async cancel(request: CancelRequest): Promise<boolean> {
		const { transactions } = this.#deps;
		const { pool, records, store } = transactions;
		const { hash } = request;
		// Read even if it is in memory, so that response times reveal nothing. A failing store must not prevent a cancel.
		const archived = await store.archived(hash).catch(() => null);
		const transaction = records.get(hash)?.transaction ?? pool.get(hash)?.transaction;
		const owner = transaction?.tx ?? archived;
		if (owner === null) return false;
		// The submitter's address authorizes a cancel only while an ended transaction is watched.
		const head = this.#deps.tip.head()?.number ?? 0;
		const isWatched = head < (archived?.block ?? 0) + WATCH_BLOCKS;
		const submitterAddress = transaction?.submitterAddress ?? (isWatched ? (archived?.origin ?? null) : null);
		if (!mayCancelTransaction(this.#options.cancelPolicy, request, { from: owner.from, submitterAddress }))
			return false;
		if (transaction === undefined) return archived?.stage === "CANCELLED";
		await transactions.exclusively(transaction.tx, async () => {
			const entry = pool.get(hash);
			if (entry !== undefined) await transactions.cancel(entry);
		});
		return records.get(hash)?.record.stage === "CANCELLED";
	}

	/**
	 * Handles `tx` as a soft cancel; returns null when it is none, and then it is admitted like any other. Must run
	 * exclusively for the sender and nonce. If the store fails, throws and cancels nothing.
	 */
	async #cancelSoftly(tx: DecodedTransaction, submission: Submission): Promise<SubmitOutcome | null> {
		const { transactions } = this.#deps;
		const { pool, records } = transactions;
		if (!isSelfTransfer(tx) || !this.#isValidAlone(tx)) return null;
		const freed = await this.#freedNonce(tx, submission);
		const holder = pool.at(tx.from, tx.nonce);
		if (holder !== undefined) {
			if (holder.transaction.tx.hash === tx.hash) return knownOutcome(tx.hash);
			return holder.transaction.softCancellations ? this.#endSoftly(tx, submission, holder) : null;
		}
		if (freed === null) return null;
		if (records.get(tx.hash)?.record.stage === "CANCELLED") return knownOutcome(tx.hash);
		return transactions.cancelLimitRefusal(tx.from) ?? this.#endSoftly(tx, submission, freed.expired);
	}

	/** Whether the transaction, taken alone, is valid in the next block. */
	#isValidAlone(tx: DecodedTransaction): boolean {
		const next = this.#deps.tip.next();
		return next !== null && firstRefusal(STATIC_RULES, tx, this.#options.rules, next) === null;
	}

	/**
	 * Checks that the nonce is free: the last transaction with it that requested soft cancellations was cancelled or has
	 * expired, and the nonce is unused. Returns the expired one, which the same bytes would revive, if any; null if not free.
	 */
	async #freedNonce(
		tx: DecodedTransaction,
		{ submitterAddress }: Submission,
	): Promise<{ readonly expired: TransactionRecord | null } | null> {
		const { transactions, accounts } = this.#deps;
		const hash = await transactions.store.lastSoftCancellable(tx.from, tx.nonce);
		if (hash === null || hash === tx.hash) return null;
		const record = await transactions.record(hash);
		if (record?.stage !== "CANCELLED" && record?.stage !== "EXPIRED") return null;
		const account = await accounts.get(tx.from, clientOf(submitterAddress), true).catch(() => null);
		if (account === null || account.nonce > tx.nonce) return null;
		return { expired: await transactions.expiredWithSameNonce(tx) };
	}

	/** Cancels the pending or expired transaction with the nonce, if there is one, and records `tx` as the cancel. */
	async #endSoftly(
		tx: DecodedTransaction,
		submission: Submission,
		earlier: PoolEntry | TransactionRecord | null,
	): Promise<SubmitOutcome> {
		const { transactions, clock } = this.#deps;
		await transactions.cancelBy(privateTransaction(tx, submission, clock.now()), earlier);
		return { outcome: "cancels", hash: tx.hash };
	}
}

function refused(rejection: Rejection): SubmitOutcome {
	return { outcome: "refused", rejection };
}

function undecodable(reason: DecodeReason, message: string): Rejection {
	if (reason === "oversized") return rejection("OVERSIZED", message);
	return rejection("UNDECODABLE", message, { detail: reason });
}
