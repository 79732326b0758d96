// PER CANCEL: by hash, or by a self-transfer for what was sent with soft cancellations. The transaction leaves the
// pool at once; the answer and the builders wait until that is on disk.

import type { Clock } from "../shared/clock.ts";
import { type DecodedTransaction, isSelfTransfer } from "../shared/ethereum/transaction.ts";
import { clientOf } from "../shared/http/callContext.ts";
import { WATCH_BLOCKS } from "./chainChanges.ts";
import type { ChainRunner } from "./chainRunner.ts";
import { type CancelPolicy, mayCancelTransaction } from "./domain/cancelPolicy.ts";
import { laterTime } from "./domain/chain.ts";
import { isLive } from "./domain/lifecycle.ts";
import type {
	Accounts,
	Broadcaster,
	Canceller,
	NonceHolders,
	Tip,
	TransactionStore,
} from "./domain/ports.ts";
import { fold, newRecord, type TransactionRecord } from "./domain/record.ts";
import { type CancelRequest, known, type Submission, type SubmitOutcome } from "./domain/submission.ts";
import { privateTransaction } from "./domain/transaction.ts";
import { type ChainRules, firstRefusal, STATIC_RULES } from "./domain/transactionRules.ts";
import { endedBy, expiredBefore, refusalOfMore } from "./endings.ts";
import type { NonceLocks } from "./nonceLocks.ts";
import type { Pool, PoolEntry } from "./pool/pool.ts";
import type { Ledger } from "./status/ledger.ts";

export interface CancellationsOptions {
	readonly policy: CancelPolicy;
	readonly rules: ChainRules;
}

export interface CancellationsDependencies {
	readonly pool: Pool;
	readonly ledger: Ledger;
	readonly store: TransactionStore & NonceHolders;
	readonly locks: NonceLocks;
	readonly accounts: Accounts;
	readonly broadcaster: Broadcaster;
	readonly runner: Pick<ChainRunner, "run">;
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
		const { pool, ledger, store, locks } = this.#deps;
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
		await locks.run(transaction.tx, async () => {
			const entry = pool.get(hash);
			if (entry !== undefined) await this.#end(entry, (ended) => store.update(ended, this.#time()));
		});
		return ledger.get(hash)?.record.stage === "CANCELLED";
	}

	/**
	 * What becomes of `tx` where it is a soft cancel; else null, and ordinary admission says what it is. To be called under
	 * the lock of its nonce. Throws where the store fails: then nothing is taken back.
	 */
	async soft(tx: DecodedTransaction, submission: Submission): Promise<SubmitOutcome | null> {
		const { pool, ledger } = this.#deps;
		if (!isSelfTransfer(tx) || !this.#isSound(tx)) return null;
		const freed = await this.#freed(tx, submission);
		const holder = pool.at(tx.from, tx.nonce);
		if (holder !== undefined) {
			if (holder.transaction.tx.hash === tx.hash) return known(tx.hash);
			return holder.transaction.softCancellations ? this.#endSoftly(tx, submission, holder) : null;
		}
		if (freed === null) return null;
		if (ledger.get(tx.hash)?.record.stage === "CANCELLED") return known(tx.hash);
		return refusalOfMore(tx.from, ledger) ?? this.#endSoftly(tx, submission, freed.expired);
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
		const { store, ledger, accounts } = this.#deps;
		const hash = await store.softHolder(tx.from, tx.nonce);
		if (hash === null || hash === tx.hash) return null;
		const record = ledger.get(hash)?.record ?? (await store.settled(hash));
		if (record?.stage !== "CANCELLED" && record?.stage !== "EXPIRED") return null;
		const account = await accounts.get(tx.from, clientOf(origin), true).catch(() => null);
		if (account === null || account.nonce > tx.nonce) return null;
		return { expired: await expiredBefore(tx, this.#deps) };
	}

	/** Ends who has the nonce, or had it and expired, if there is such a one, and takes down that `tx` did it. */
	async #endSoftly(
		tx: DecodedTransaction,
		submission: Submission,
		earlier: PoolEntry | TransactionRecord | null,
	): Promise<SubmitOutcome> {
		const { ledger, store, clock } = this.#deps;
		const transaction = privateTransaction(tx, submission, clock.now());
		const record = newRecord(transaction);
		const event = this.#cancelled([]);
		fold(record, { type: "received", at: transaction.receivedAt, block: event.block });
		fold(record, event);
		const insert = async (ended: readonly TransactionRecord[]): Promise<void> => {
			await store.insert(transaction, record, ended, this.#time());
			ledger.receive({ transaction, record });
		};
		if (earlier !== null && "transaction" in earlier) await this.#end(earlier, insert);
		else {
			await insert(endedBy(event, earlier, ledger));
			if (earlier?.stage === "EXPIRED") ledger.emit(earlier.hash, event);
		}
		return { outcome: "cancels", hash: tx.hash };
	}

	/**
	 * Out of the pool at once; builders and listeners are told when `write` has it on disk. Where that fails it is pending
	 * as before.
	 */
	async #end(entry: PoolEntry, write: (ended: readonly TransactionRecord[]) => Promise<void>): Promise<void> {
		const { pool, ledger, broadcaster, runner } = this.#deps;
		const { transaction } = entry;
		const { hash, from, nonce } = transaction.tx;
		const record = ledger.get(hash)?.record ?? null;
		const isPending = () => record !== null && isLive(record.stage);
		pool.remove(entry);
		runner.run(from, "new", false);
		try {
			await write(endedBy(this.#cancelled([...entry.sentTo]), record, ledger));
		} catch (thrown) {
			if (isPending() && pool.insert(entry, nonce, 0)) runner.run(from, "new", true);
			throw thrown;
		}
		// A block may have come meanwhile.
		if (!isPending()) return;
		const event = this.#cancelled([...entry.sentTo]);
		ledger.emit(hash, event);
		broadcaster.cancel(transaction, event.builders, event.block + 1);
		const again = pool.get(hash);
		if (again !== undefined) pool.remove(again);
	}

	#cancelled(builders: readonly string[]) {
		return { type: "cancelled", at: this.#deps.clock.now(), block: this.#head(), builders } as const;
	}

	#time(): number {
		return laterTime(this.#deps.clock.now(), this.#deps.tip.head());
	}

	#head(): number {
		return this.#deps.tip.head()?.number ?? 0;
	}
}
