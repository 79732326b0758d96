// PER REQUEST: a raw transaction is decoded, admitted, put into the pool and written; then it is answered, and behind the
// answer the chain runner simulates, shares and broadcasts it.

import type { Clock } from "../shared/clock.ts";
import {
	type DecodedTransaction,
	type DecodeReason,
	decodeTransaction,
} from "../shared/ethereum/transaction.ts";
import { clientOf } from "../shared/http/callContext.ts";
import { type AdmissionOptions, admit, judgeAccount } from "./admission/admission.ts";
import type { ChainRunner } from "./chainRunner.ts";
import type { AccountState } from "./domain/chain.ts";
import { policyOf, type SubmissionPath } from "./domain/endpoints.ts";
import type { Accounts, Submitter, Tip, TransactionStore } from "./domain/ports.ts";
import { isEndedByUser, isLive, isMined } from "./domain/record.ts";
import { type Rejection, type RejectionCode, rejection } from "./domain/rejection.ts";
import {
	known,
	type PrivateTransaction,
	privateTransaction,
	type Submission,
	type SubmitOutcome,
} from "./domain/transaction.ts";
import type { Ledger } from "./transactions/ledger.ts";
import type { Pool } from "./transactions/pool.ts";
import type { Transactions } from "./transactions/transactions.ts";

/** Knows which transactions take back another one, and does what they want. */
export interface SoftCancels {
	/** What became of `tx` where it is one, else null. Throws where the store fails. */
	soft(tx: DecodedTransaction, submission: Submission): Promise<SubmitOutcome | null>;
}

export type PipelineStep = "decode" | "admission";

export interface PipelineDependencies {
	readonly transactions: Transactions;
	readonly pool: Pick<Pool, "get" | "pendingNonce">;
	readonly ledger: Pick<Ledger, "get">;
	readonly store: Pick<TransactionStore, "settled">;
	readonly accounts: Accounts;
	readonly tip: Tip;
	/** The node has a later head than the tracked one. */
	readonly onLaterHead: () => void;
	readonly runner: Pick<ChainRunner, "run">;
	readonly cancellations: SoftCancels;
	/** Shows a transaction to searchers. */
	readonly share: (transaction: PrivateTransaction) => void;
	readonly clock: Clock;
	readonly onStep: (step: PipelineStep, seconds: number) => void;
	/** How a submission ended: a refusal by its code. */
	readonly onOutcome: (path: SubmissionPath, outcome: SubmissionOutcome) => void;
}

/** How a submission may end. */
export type SubmissionOutcome = "accepted" | "known" | "cancels" | "failed" | RejectionCode;

/** Takes submissions. */
export class Pipeline implements Submitter {
	readonly #options: AdmissionOptions;
	readonly #deps: PipelineDependencies;
	/** Submissions that are being written, by hash: who sends the same bytes meanwhile waits for the same write. */
	readonly #writing = new Map<string, Promise<SubmitOutcome>>();

	constructor(options: AdmissionOptions, dependencies: PipelineDependencies) {
		this.#options = options;
		this.#deps = dependencies;
	}

	/**
	 * Takes a raw transaction; resolves once it is on disk. Throws where the node or the store fails: nothing is
	 * kept then.
	 */
	async submit(submission: Submission): Promise<SubmitOutcome> {
		const { onOutcome } = this.#deps;
		try {
			const outcome = await this.#submit(submission);
			onOutcome(submission.path, outcome.outcome === "refused" ? outcome.rejection.code : outcome.outcome);
			return outcome;
		} catch (thrown) {
			onOutcome(submission.path, "failed");
			throw thrown;
		}
	}

	async #submit(submission: Submission): Promise<SubmitOutcome> {
		const { clock, onStep } = this.#deps;
		const begun = clock.monotonic();
		const decoded = decodeTransaction(submission.raw);
		onStep("decode", (clock.monotonic() - begun) / 1000);
		if (!decoded.ok) return { outcome: "refused", rejection: undecodable(decoded.reason, decoded.message) };
		const { tx } = decoded;
		return (
			this.#writing.get(tx.hash) ?? this.#deps.transactions.inTurn(tx, () => this.#admit(tx, submission))
		);
	}

	/** Runs in turn: only the chain changes what is known of it meanwhile. */
	async #admit(tx: DecodedTransaction, submission: Submission): Promise<SubmitOutcome> {
		const { clock, onStep, cancellations, pool } = this.#deps;
		const begun = clock.monotonic();
		const past = await this.#past(tx, submission);
		if (past !== null && past !== "resubmitted") return past;
		const cancel = await cancellations.soft(tx, submission);
		if (cancel !== null) return cancel;
		const verdict = await admit(tx, clientOf(submission.origin), this.#options, this.#deps);
		onStep("admission", (clock.monotonic() - begun) / 1000);
		if (!verdict.ok) return { outcome: "refused", rejection: verdict.rejection };
		// A reorganisation may have brought it back while the node was asked.
		if (pool.get(tx.hash) !== undefined) return known(tx.hash);
		return this.#take(tx, submission, verdict.account, past === "resubmitted");
	}

	/** What the relay knows of the hash: an answer, `resubmitted` where it had ended and may come back, or null. */
	async #past(tx: DecodedTransaction, { origin }: Submission): Promise<SubmitOutcome | "resubmitted" | null> {
		const { ledger, store, accounts } = this.#deps;
		const record = ledger.get(tx.hash)?.record ?? (await store.settled(tx.hash));
		if (record === null) return null;
		if (isLive(record.stage) || isMined(record.stage)) return known(tx.hash);
		if (!isEndedByUser(record.stage)) return "resubmitted";
		// Its user ended it: until its nonce is used, nothing happens. It is never admitted again.
		const client = clientOf(origin);
		const account = await accounts.get(tx.from, client, true).catch(() => null);
		if (account === null || account.nonce <= tx.nonce) return known(tx.hash);
		const verdict = await judgeAccount(tx, client, this.#deps).catch(() => null);
		if (verdict?.ok !== false || verdict.rejection.code !== "NONCE_TOO_LOW") return known(tx.hash);
		return { outcome: "refused", rejection: verdict.rejection };
	}

	async #take(
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
}

function undecodable(reason: DecodeReason, message: string): Rejection {
	if (reason === "oversized") return rejection("OVERSIZED", message);
	return rejection("UNDECODABLE", message, { detail: reason });
}
