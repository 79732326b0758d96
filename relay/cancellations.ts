// PER CANCEL: by hash, or by a self-transfer for what was sent with soft cancellations. The transaction leaves the
// pool at once; the answer and the builders wait until that is on disk.

import type { Clock } from "../shared/clock.ts";
import { type DecodedTransaction, isSelfTransfer } from "../shared/ethereum/transaction.ts";
import { clientOf } from "../shared/http/callContext.ts";
import { WATCH_BLOCKS } from "./chainChanges.ts";
import { type CancelPolicy, mayCancelTransaction } from "./domain/cancelPolicy.ts";
import type { Accounts, Canceller, NonceHolders, Tip, TransactionStore } from "./domain/ports.ts";
import type { TransactionRecord } from "./domain/record.ts";
import {
	type CancelRequest,
	known,
	privateTransaction,
	type Submission,
	type SubmitOutcome,
} from "./domain/transaction.ts";
import { type ChainRules, firstRefusal, STATIC_RULES } from "./domain/transactionRules.ts";
import type { Ledger } from "./transactions/ledger.ts";
import type { Pool, PoolEntry } from "./transactions/pool.ts";
import type { Transactions } from "./transactions/transactions.ts";

export interface CancellationsOptions {
	readonly policy: CancelPolicy;
	readonly rules: ChainRules;
}

export interface CancellationsDependencies {
	readonly transactions: Transactions;
	readonly pool: Pick<Pool, "get" | "at">;
	readonly ledger: Pick<Ledger, "get">;
	readonly store: Pick<TransactionStore & NonceHolders, "settled" | "softHolder">;
	readonly accounts: Accounts;
	readonly tip: Tip;
	readonly clock: Clock;
}

/** Takes transactions back. */
export class Cancellations implements Canceller {
	readonly #options: CancellationsOptions;
	readonly #deps: CancellationsDependencies;

	constructor(options: CancellationsOptions, dependencies: CancellationsDependencies) {
		this.#options = options;
		this.#deps = dependencies;
	}

	async cancel(request: CancelRequest): Promise<boolean> {
		const { transactions, pool, ledger, store } = this.#deps;
		const { hash } = request;
		// Asked for in any case, so that the time tells nothing. A store that is out keeps nobody from cancelling.
		const settled = await store.settled(hash).catch(() => null);
		const transaction = ledger.get(hash)?.transaction ?? pool.get(hash)?.transaction;
		const owner = transaction?.tx ?? settled;
		if (owner === null) return false;
		// Who submitted it counts for as long as what has ended is watched.
		const isWatched = this.#head() < (settled?.block ?? 0) + WATCH_BLOCKS;
		const origin = transaction?.origin ?? (isWatched ? (settled?.origin ?? null) : null);
		if (!mayCancelTransaction(this.#options.policy, request, { from: owner.from, origin })) return false;
		if (transaction === undefined) return settled?.stage === "CANCELLED";
		await transactions.inTurn(transaction.tx, async () => {
			const entry = pool.get(hash);
			if (entry !== undefined) await transactions.cancel(entry);
		});
		return ledger.get(hash)?.record.stage === "CANCELLED";
	}

	/**
	 * What becomes of `tx` where it is a soft cancel; else null, and ordinary admission says what it is. To be called in
	 * turn. Throws where the store fails: then nothing is taken back.
	 */
	async soft(tx: DecodedTransaction, submission: Submission): Promise<SubmitOutcome | null> {
		const { transactions, pool, ledger } = this.#deps;
		if (!isSelfTransfer(tx) || !this.#isSound(tx)) return null;
		const freed = await this.#freed(tx, submission);
		const holder = pool.at(tx.from, tx.nonce);
		if (holder !== undefined) {
			if (holder.transaction.tx.hash === tx.hash) return known(tx.hash);
			return holder.transaction.softCancellations ? this.#endSoftly(tx, submission, holder) : null;
		}
		if (freed === null) return null;
		if (ledger.get(tx.hash)?.record.stage === "CANCELLED") return known(tx.hash);
		return transactions.refusalOfMore(tx.from) ?? this.#endSoftly(tx, submission, freed.expired);
	}

	/** Whether it could be in a block as far as it alone goes. */
	#isSound(tx: DecodedTransaction): boolean {
		const next = this.#deps.tip.next();
		return next !== null && firstRefusal(STATIC_RULES, tx, this.#options.rules, next) === null;
	}

	/**
	 * Whether the last transaction with the nonce of `tx` that was submitted with soft cancellations has ended so that the
	 * nonce is free: cancelled, or expired, when its bytes could bring it back. With the one that expired; null: it has not.
	 */
	async #freed(
		tx: DecodedTransaction,
		{ origin }: Submission,
	): Promise<{ readonly expired: TransactionRecord | null } | null> {
		const { transactions, store, ledger, accounts } = this.#deps;
		const hash = await store.softHolder(tx.from, tx.nonce);
		if (hash === null || hash === tx.hash) return null;
		const record = ledger.get(hash)?.record ?? (await store.settled(hash));
		if (record?.stage !== "CANCELLED" && record?.stage !== "EXPIRED") return null;
		const account = await accounts.get(tx.from, clientOf(origin), true).catch(() => null);
		if (account === null || account.nonce > tx.nonce) return null;
		return { expired: await transactions.expiredBefore(tx) };
	}

	/** Ends who has the nonce, or had it and expired, if there is such a one, and takes down that `tx` did it. */
	async #endSoftly(
		tx: DecodedTransaction,
		submission: Submission,
		earlier: PoolEntry | TransactionRecord | null,
	): Promise<SubmitOutcome> {
		const { transactions, clock } = this.#deps;
		await transactions.cancelBy(privateTransaction(tx, submission, clock.now()), earlier);
		return { outcome: "cancels", hash: tx.hash };
	}

	#head(): number {
		return this.#deps.tip.head()?.number ?? 0;
	}
}
