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
import { type AccountState, laterTime } from "./domain/chain.ts";
import { policyOf, type SubmissionPath } from "./domain/endpoints.ts";
import { isEndedByUser, isLive, isMined } from "./domain/lifecycle.ts";
import type {
	Accounts,
	Broadcaster,
	NonceHolders,
	Submitter,
	Tip,
	TransactionStore,
} from "./domain/ports.ts";
import { fold, newRecord, type TransactionRecord } from "./domain/record.ts";
import { type Rejection, type RejectionCode, rejection } from "./domain/rejection.ts";
import { known, type Submission, type SubmitOutcome } from "./domain/submission.ts";
import { type PrivateTransaction, privateTransaction } from "./domain/transaction.ts";
import { endedBy, expiredBefore, refusalOfMore, replacedBy } from "./endings.ts";
import type { NonceLocks } from "./nonceLocks.ts";
import type { Pool, PoolEntry } from "./pool/pool.ts";
import type { Ledger } from "./status/ledger.ts";

/** Knows which transactions take back another one, and does what they want. */
export interface SoftCancels {
	/** What became of `tx` where it is one, else null. Throws where the store fails. */
	soft(tx: DecodedTransaction, submission: Submission): Promise<SubmitOutcome | null>;
}

export type PipelineStep = "decode" | "admission" | "store";

export interface PipelineDependencies {
	readonly pool: Pool;
	readonly ledger: Ledger;
	readonly store: TransactionStore & NonceHolders;
	readonly accounts: Accounts;
	readonly tip: Tip;
	/** The node has a later head than the tracked one. */
	readonly onLaterHead: () => void;
	readonly broadcaster: Broadcaster;
	readonly runner: Pick<ChainRunner, "run">;
	readonly locks: NonceLocks;
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
		return this.#writing.get(tx.hash) ?? this.#deps.locks.run(tx, () => this.#admit(tx, submission));
	}

	/** Runs under the lock of the sender's nonce: only the chain changes what is known of it meanwhile. */
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

	/** Puts it into the pool and writes it. Nothing is waited for between the pool's rules and its entry. */
	async #take(
		tx: DecodedTransaction,
		submission: Submission,
		account: AccountState,
		isResubmitted: boolean,
	): Promise<SubmitOutcome> {
		const { pool, ledger, clock } = this.#deps;
		// A replacement costs its sender more each time; to submit and take back costs nothing.
		const isFresh = pool.at(tx.from, tx.nonce) === undefined;
		const refusal = isFresh ? refusalOfMore(tx.from, ledger) : null;
		if (refusal !== null) return refusal;
		const transaction = privateTransaction(tx, submission, clock.now());
		const added = pool.add(transaction, account);
		if (added.outcome === "refused") return { outcome: "refused", rejection: added.rejection };
		const write = this.#write(added.entry, added.outcome === "replaced" ? added.old : null, isResubmitted);
		this.#writing.set(tx.hash, write);
		try {
			return await write;
		} finally {
			this.#writing.delete(tx.hash);
		}
	}

	async #write(entry: PoolEntry, old: PoolEntry | null, isResubmitted: boolean): Promise<SubmitOutcome> {
		const { ledger, store, runner, broadcaster, share, clock, tip } = this.#deps;
		const { transaction } = entry;
		const { hash, from } = transaction.tx;
		const block = tip.head()?.number ?? 0;
		const at = transaction.receivedAt;
		const [record, expired] = await Promise.all([
			this.#record(transaction, isResubmitted),
			expiredBefore(transaction.tx, this.#deps),
		]).catch((thrown: unknown) => {
			this.#giveBack(entry, old);
			throw thrown;
		});
		if (!fold(record, { type: "received", at, block })) {
			// It was mined all the same while this went on.
			this.#giveBack(entry, old);
			return known(hash);
		}
		const replaced = replacedBy(transaction, { at, block, builders: [...(old?.sentTo ?? [])] });
		const oldRecord = old === null ? null : (ledger.get(old.transaction.tx.hash)?.record ?? null);
		const ended = [...endedBy(replaced, oldRecord, ledger), ...endedBy(replaced, expired, ledger)];
		const begun = clock.monotonic();
		try {
			await store.insert(transaction, record, ended, laterTime(clock.now(), tip.head()));
		} catch (thrown) {
			this.#giveBack(entry, old);
			throw thrown;
		}
		this.#deps.onStep("store", (clock.monotonic() - begun) / 1000);
		ledger.receive({ transaction, record });
		entry.durable = true;
		const told = { ...replaced, at: clock.now() };
		if (expired?.stage === "EXPIRED") ledger.emit(expired.hash, { ...told, builders: [] });
		// It may have been mined while the new one was written: then the new one is dropped in its turn.
		if (old !== null && oldRecord !== null && isLive(oldRecord.stage)) {
			ledger.emit(oldRecord.hash, { ...told, builders: [...old.sentTo] });
			broadcaster.cancel(old.transaction, [...old.sentTo], block + 1);
		}
		if (policyOf(transaction.path).shared === "always") share(transaction);
		runner.run(from, "new", true);
		return { outcome: "accepted", hash };
	}

	/** The write failed: the place is the old one's again. */
	#giveBack(entry: PoolEntry, old: PoolEntry | null): void {
		const { pool, ledger, runner } = this.#deps;
		const { from, nonce } = entry.transaction.tx;
		pool.remove(entry);
		// It may have been mined meanwhile.
		const stage = ledger.get(old?.transaction.tx.hash ?? "")?.record.stage;
		if (old !== null && stage !== undefined && isLive(stage)) pool.insert(old, nonce, 0);
		runner.run(from, "new", true);
	}

	/** A new record, or the old one of a transaction that expired or was dropped and comes back. */
	async #record(transaction: PrivateTransaction, isResubmitted: boolean): Promise<TransactionRecord> {
		const { ledger, store } = this.#deps;
		const { hash } = transaction.tx;
		const past = ledger.get(hash)?.record ?? (isResubmitted ? await store.settled(hash) : null);
		if (past === null) return newRecord(transaction);
		const { events, deliveries, omitted, stage, behindHidden } = structuredClone(past);
		return { ...newRecord(transaction), events, deliveries, omitted, stage, behindHidden };
	}
}

function undecodable(reason: DecodeReason, message: string): Rejection {
	if (reason === "oversized") return rejection("OVERSIZED", message);
	return rejection("UNDECODABLE", message, { detail: reason });
}
