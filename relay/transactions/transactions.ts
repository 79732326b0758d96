// The only writer of transactions: changes record, pool and disk together, and restores the previous state if the disk fails.
// Callers run submissions and cancels through `exclusively`, so that a sender's nonce has one at a time, and decide whether a
// change is allowed, except for replacement fees and the limit on cancels.

import type { Background } from "../../shared/background.ts";
import type { Clock } from "../../shared/clock.ts";
import type { BlobProofs } from "../../shared/ethereum/blobProofs.ts";
import type { SidecarVersion } from "../../shared/ethereum/sidecar.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { clientOf } from "../../shared/http/callContext.ts";
import { mayCancelSoftly, type Owner } from "../../shared/ownership.ts";
import { type AccountState, type Inclusion, laterTime, type Tip } from "../domain/chain.ts";
import { mustPass, policyOf } from "../domain/endpoints.ts";
import type { TxEvent } from "../domain/events.ts";
import type { Broadcaster, KnownTransactions, RecordReader } from "../domain/ports.ts";
import { fold, holdersOf, isLive, isMined, newRecord, type TransactionRecord } from "../domain/record.ts";
import { rejection } from "../domain/rejection.ts";
import {
	type ChainLink,
	isOwner,
	knownOutcome,
	MAX_CANCELLED,
	type PrivateTransaction,
	type Requester,
	type SubmitOutcome,
} from "../domain/transaction.ts";
import type { TransactionDisk } from "./disk.ts";
import type { Pool, PoolEntry } from "./pool.ts";
import { type RecordEntry, type SenderNonce, senderNonceKey, type TransactionRecords } from "./records.ts";

export interface TransactionsDependencies {
	readonly pool: Pool;
	readonly records: TransactionRecords;
	readonly store: TransactionDisk;
	readonly broadcaster: Pick<Broadcaster, "cancel" | "eligible">;
	readonly tip: Tip;
	readonly clock: Clock;
	/** Called when a sender's pending transactions have changed; `refresh`: its nonce may have changed too, so read it again. */
	readonly onChange: (sender: string, refresh: boolean) => void;
	readonly onWritten: (seconds: number) => void;
	readonly blobProofs: Pick<BlobProofs, "ready">;
	readonly background: Pick<Background, "run">;
}

/** Records per write. */
const BATCH_SIZE = 200;

/** All transactions of the relay. Other code only reads `pool`, `records` and `store`; changes are made through this class. */
export class Transactions implements RecordReader, KnownTransactions {
	readonly pool: Pool;
	readonly records: TransactionRecords;
	readonly store: TransactionDisk;
	readonly #deps: TransactionsDependencies;
	/** The last queued operation by sender and nonce; the promises never reject. */
	readonly #queues = new Map<string, Promise<void>>();
	/** Hashes of blob transactions whose cell proofs are being computed. */
	readonly #converting = new Set<string>();

	constructor(dependencies: TransactionsDependencies) {
		this.#deps = dependencies;
		this.pool = dependencies.pool;
		this.records = dependencies.records;
		this.store = dependencies.store;
	}

	async record(hash: string): Promise<TransactionRecord | null> {
		return this.records.get(hash)?.record ?? (await this.store.archived(hash));
	}

	chainOf(sender: string, requester: Requester): readonly ChainLink[] {
		const chain: ChainLink[] = [];
		if (!this.pool.isNonceKnown(sender)) return chain;
		for (const { transaction } of this.pool.transactionsOf(sender).ready) {
			const { tx, path, owners } = transaction;
			const record = this.records.get(tx.hash)?.record;
			if (record === undefined || record.stage === "SIMULATION_FAILED") break;
			if (!isOwner(requester, { from: sender, owners })) break;
			chain.push({ tx, mayFail: !mustPass({ policy: policyOf(path), passed: record.passed }) });
		}
		return chain;
	}

	/** Runs `work` exclusively for a sender and nonce, in the order of the calls. */
	exclusively<T>(at: SenderNonce, work: () => Promise<T>): Promise<T> {
		const key = senderNonceKey(at);
		const running = this.#queues.get(key)?.then(work) ?? work();
		const forget = () => {
			if (this.#queues.get(key) === end) this.#queues.delete(key);
		};
		const end: Promise<void> = running.then(forget, forget);
		this.#queues.set(key, end);
		return running;
	}

	/** Whether an operation on this sender and nonce is running: an older state must not be written meanwhile. */
	#isBusy(at: SenderNonce): boolean {
		return this.#queues.has(senderNonceKey(at));
	}

	/** The refusal of a submission from a sender that has cancelled too many transactions lately; else null. */
	cancelLimitRefusal(sender: string): SubmitOutcome | null {
		if (this.records.cancelledCount(sender) < MAX_CANCELLED) return null;
		// It begins as go-ethereum's error does, which clients recognise.
		const message = `txpool is full: ${MAX_CANCELLED} transactions of this sender were taken back lately`;
		return { outcome: "refused", rejection: rejection("SENDER_FULL", message, { scope: "sender" }) };
	}

	/**
	 * Adds an admitted transaction, or replaces the one with its nonce if the fees allow that. It may be sent once it is on disk.
	 * `isResubmitted`: it expired or was dropped before. Call it within {@link exclusively}. Throws if the store fails.
	 */
	async add(
		transaction: PrivateTransaction,
		account: AccountState,
		isResubmitted: boolean,
	): Promise<SubmitOutcome> {
		const { pool } = this;
		const { hash, from, nonce } = transaction.tx;
		// Each replacement must raise the fees, but submitting and cancelling costs nothing, so it is limited.
		const refusal = pool.at(from, nonce) === undefined ? this.cancelLimitRefusal(from) : null;
		if (refusal !== null) return refusal;
		const added = pool.add(transaction, account);
		if (added.outcome === "refused") return { outcome: "refused", rejection: added.rejection };
		const old = added.outcome === "replaced" ? added.old : null;
		let isWritten = false;
		try {
			isWritten = await this.#write(added.entry, old, isResubmitted);
		} finally {
			if (!isWritten) {
				pool.remove(added.entry);
				this.#undoRemoval(old);
				this.#deps.onChange(from, true);
			}
		}
		return isWritten ? { outcome: "accepted", hash } : knownOutcome(hash);
	}

	/**
	 * Cancels a pending transaction. Removes it from the pool at once, so that it is not sent any more; builders and listeners
	 * are notified once `write` has it on disk. Call it within {@link exclusively}. Throws if the store fails.
	 */
	async cancel(
		entry: PoolEntry,
		write = (ended: readonly TransactionRecord[]) => this.store.update(ended, this.#timeToStore()),
	): Promise<void> {
		const { transaction } = entry;
		const { hash, from } = transaction.tx;
		const record = this.records.get(hash)?.record ?? null;
		this.pool.remove(entry);
		this.#deps.onChange(from, false);
		try {
			await write(this.#preview(this.#cancelled([...entry.everSentTo]), record));
		} catch (thrown) {
			this.#undoRemoval(entry);
			this.#deps.onChange(from, true);
			throw thrown;
		}
		// It may have been mined or have ended meanwhile.
		if (record === null || !isLive(record.stage)) return;
		// With the time and head after the write. The next flush stores it in place of the one just written.
		const event = this.#cancelled([...entry.everSentTo]);
		this.records.emit(hash, event);
		this.#deps.broadcaster.cancel(transaction, event.builders, event.block + 1);
	}

	/**
	 * Gives a live transaction other owners, of whom one has `joined` or `left`. What holds for it may be stricter then: it is
	 * taken from builders as it was sent, and sent again as it may be. Resolves once that is on disk. Call it within
	 * {@link exclusively}. Throws if the store fails.
	 */
	async changeOwners(hash: string, owners: readonly Owner[], type: "joined" | "left"): Promise<void> {
		const { pool, records, store } = this;
		const { broadcaster, clock, onChange } = this.#deps;
		const before = records.get(hash)?.transaction;
		const block = this.#head();
		const event = { type, at: clock.now(), block } as const;
		const preview = records.preview(hash, event);
		if (before === undefined || preview === null) return;
		await store.changeOwners({ ...preview, owners }, mayCancelSoftly(owners));
		// It may have been mined or have ended meanwhile.
		const transaction = records.setOwners(hash, owners, event);
		const entry = pool.get(hash);
		if (transaction === null || entry === undefined) return;
		pool.exchange(entry, transaction);
		if (transaction.path !== before.path) broadcaster.cancel(before, [...entry.everSentTo], block + 1);
		onChange(transaction.tx.from, false);
	}

	/**
	 * Gives pending blob transactions cell proofs if blocks of `version` need them: they came before the fork, or to an earlier
	 * release of the relay. On disk they stay as they came. To be called at each head, since a client's share may be used up.
	 */
	convertBlobs(version: SidecarVersion): void {
		const { background, blobProofs } = this.#deps;
		for (const { transaction } of this.records.entries()) {
			const { tx, submitterAddress } = transaction;
			if (tx.sidecar === null || tx.sidecar.version >= version) continue;
			if (this.#converting.has(tx.hash) || this.pool.get(tx.hash) === undefined) continue;
			this.#converting.add(tx.hash);
			background.run("blobs", async () => {
				try {
					const verdict = await blobProofs.ready(tx, version, clientOf(submitterAddress));
					if (verdict.ok) this.#changeBytes(verdict.tx);
				} finally {
					this.#converting.delete(tx.hash);
				}
			});
		}
	}

	/** It is sent anew, if it is still pending. */
	#changeBytes(tx: DecodedTransaction): void {
		const entry = this.pool.get(tx.hash);
		if (entry === undefined) return;
		const transaction = { ...entry.transaction, tx };
		this.records.setTransaction(transaction);
		this.pool.exchange(entry, transaction);
		this.#deps.onChange(tx.from, false);
	}

	/**
	 * Records that the self-transfer `transaction` has cancelled `earlier`, a pending or an expired one; null if that was
	 * already cancelled. Call it within {@link exclusively}. Throws if the store fails.
	 */
	async cancelBy(
		transaction: PrivateTransaction,
		earlier: PoolEntry | TransactionRecord | null,
	): Promise<void> {
		const { records, store } = this;
		const record = newRecord(transaction);
		const event = this.#cancelled([]);
		fold(record, { type: "received", at: transaction.receivedAt, block: event.block });
		fold(record, event);
		const insert = async (ended: readonly TransactionRecord[]): Promise<void> => {
			await store.insert(transaction, record, ended, this.#timeToStore());
			records.addAndNotify({ transaction, record });
		};
		if (earlier !== null && "transaction" in earlier) await this.cancel(earlier, insert);
		else {
			await insert(this.#preview(event, earlier));
			if (earlier?.stage === "EXPIRED") records.emit(earlier.hash, event);
		}
	}

	/** Another transaction with the sender and nonce of `tx` that has expired and could be submitted again, or null. */
	async expiredWithSameNonce({ hash, from, nonce }: DecodedTransaction): Promise<TransactionRecord | null> {
		const old = this.records.expiredAt(from, nonce) ?? (await this.store.expiredHolder(from, nonce));
		if (old === null || old.hash === hash) return null;
		const now = this.records.get(old.hash)?.record ?? old;
		return now.stage === "EXPIRED" ? now : null;
	}

	/** Loads the transactions from disk; call once, before the first head is processed. */
	async load(): Promise<void> {
		const entries: RecordEntry[] = [];
		for await (const entry of this.store.load()) entries.push(entry);
		// If two have the same nonce, the later one wins.
		for (const entry of entries.sort((a, b) => b.record.receivedAt - a.record.receivedAt)) {
			this.records.add(entry);
			this.revive(entry, true);
		}
	}

	/** Marks it as sent to `builders` for `block`; returns those of them that did not have it for that block. */
	markSent(entry: PoolEntry, block: number, builders: readonly string[]): readonly string[] {
		const had = entry.sentForBlock === block ? [...entry.sentForBlockTo] : [];
		const added = builders.filter((name) => !had.includes(name));
		entry.sentForBlock = block;
		entry.sentForBlockTo = new Set([...had, ...added]);
		entry.everSentTo = new Set([...entry.everSentTo, ...added]);
		return added;
	}

	/** Marks it as not sent for the coming block, since it has to wait or its simulation fails. */
	markUnsent(entry: PoolEntry): void {
		entry.sentForBlock = null;
	}

	/** Records that it was mined. */
	included({ record, transaction }: RecordEntry, { hash, ...place }: Inclusion): void {
		const { from, nonce } = transaction.tx;
		const pooled = this.pool.get(hash);
		// It is being resubmitted: the account check after its write will find that it was mined.
		if (pooled?.durable === false) return;
		if (pooled !== undefined) this.pool.remove(pooled);
		this.pool.markNonceUsed(from, nonce, place.block);
		if (isMined(record.stage)) {
			if (record.blockHash === place.blockHash) return;
			// It moved to another block, by a reorganisation that was not seen.
			this.#leftBlock(record);
		}
		this.#emit(hash, { type: "included", ...place });
	}

	/** Removes a mined transaction from the pool while its receipt is missing, so that it is neither sent nor ended. */
	withhold(hash: string): void {
		const pooled = this.pool.get(hash);
		if (pooled?.durable === true) this.pool.remove(pooled);
	}

	/** Undoes an inclusion, or a drop, after the block has left the chain. Call it before the tip is set to the new head. */
	reorged(entry: RecordEntry): void {
		this.#leftBlock(entry.record);
		this.revive(entry);
	}

	/** Its block, or the one that used its nonce, has left the chain. */
	#leftBlock({ hash, stage, block }: TransactionRecord): void {
		const left = block ?? 0;
		this.#emit(hash, { type: "reorged", block: left });
		if (isMined(stage)) this.exposed(hash, left);
	}

	/** Records that `block` contained it and has left the chain. Call it before the tip is set to the new head. */
	exposed(hash: string, block: number): void {
		this.#emit(hash, { type: "exposed", block, depth: Math.max(1, this.#head() - block + 1) });
	}

	/** Records that another transaction used its nonce. */
	dropped(entry: PoolEntry, block: number): void {
		this.pool.remove(entry);
		this.#emit(entry.transaction.tx.hash, { type: "dropped", block });
	}

	/** Records that its lifetime is over. */
	expired(entry: PoolEntry, head: number): void {
		const { transaction, everSentTo } = entry;
		this.pool.remove(entry);
		this.#emit(transaction.tx.hash, { type: "expired", block: head });
		// A bundle is for one block only; a private transaction stays at the builder until it is cancelled.
		if (policyOf(transaction.path).form === "private")
			this.#deps.broadcaster.cancel(transaction, [...everSentTo], head + 1);
	}

	/**
	 * Puts a live transaction back into the pool, or marks it as replaced if its nonce is taken. `atStartup`: the process has
	 * just started.
	 */
	revive(entry: RecordEntry, atStartup = false): void {
		const { record } = entry;
		if (!this.#isBusy(record)) {
			this.#reviveNow(entry, atStartup);
			return;
		}
		// A submission or cancel of its nonce is running; whether the transaction is still live is checked after it.
		void this.exclusively(record, async () => {
			this.#reviveNow(entry, atStartup);
			this.#deps.onChange(record.from, true);
		});
	}

	#reviveNow(entry: RecordEntry, atStartup: boolean): void {
		const { pool, broadcaster } = this.#deps;
		const { record } = entry;
		// Its owners may have changed since.
		const { transaction } = this.records.get(record.hash) ?? entry;
		if (!isLive(record.stage) || pool.get(record.hash) !== undefined) return;
		const { from, nonce } = transaction.tx;
		const everSentTo = holdersOf(record, () => broadcaster.eligible(transaction), atStartup);
		const sent = { sentForBlock: null, sentForBlockTo: new Set<string>(), everSentTo };
		if (pool.insert({ transaction, gas: Number(transaction.tx.gasLimit), durable: true, ...sent })) return;
		const other = pool.at(from, nonce)?.transaction;
		if (other === undefined) return;
		const block = record.block ?? 0;
		this.#emit(record.hash, replacedBy(other, block, [...everSentTo]));
		broadcaster.cancel(transaction, [...everSentTo], block + 1);
	}

	/** Writes changed records; with `all` also those with minor changes only. Throws if the store fails. */
	async flush(all: boolean): Promise<void> {
		const { records, store } = this;
		for (;;) {
			// Records with a running operation are skipped, since an older state must not overwrite a newer one.
			const changed = records.takeChanged(all, BATCH_SIZE, (record) => this.#isBusy(record));
			if (changed.length === 0) return;
			try {
				await store.update(changed, this.#timeToStore());
			} catch (thrown) {
				records.markChanged(changed);
				throw thrown;
			}
		}
	}

	/** Archives those that are still over by `isOver`: drops their bytes, keeps their records on disk. Throws if the store fails. */
	async archive(
		entries: readonly RecordEntry[],
		isOver: (record: TransactionRecord) => boolean,
	): Promise<void> {
		const { records, store } = this;
		for (let i = 0; i < entries.length; i += BATCH_SIZE) {
			// Some may have been revived by now.
			const batch = entries
				.slice(i, i + BATCH_SIZE)
				.map(({ record }) => record)
				.filter((record) => isOver(record) && this.#isAtRest(record));
			const stages = batch.map(({ stage }) => stage);
			await store.archive(batch, this.#timeToStore());
			// A record that changed during the write is archived later.
			batch.forEach((record, at) => {
				if (record.stage === stages[at] && this.#isAtRest(record)) records.remove(record);
			});
		}
	}

	/** Whether it is neither pending nor being changed. */
	#isAtRest(record: TransactionRecord): boolean {
		return this.pool.get(record.hash) === undefined && !this.#isBusy(record);
	}

	/** Writes an entry that is already in the pool. Returns false if it was mined meanwhile, so that `received` is illegal. */
	async #write(entry: PoolEntry, old: PoolEntry | null, isResubmitted: boolean): Promise<boolean> {
		const { records, store } = this;
		const { broadcaster, clock } = this.#deps;
		const { transaction } = entry;
		const at = transaction.receivedAt;
		const block = this.#head();
		const [record, expired] = await Promise.all([
			this.#recordOf(transaction, isResubmitted),
			this.expiredWithSameNonce(transaction.tx),
		]);
		if (!fold(record, { type: "received", at, block })) return false;
		const builders = [...(old?.everSentTo ?? [])];
		const replaced = replacedBy(transaction, block, builders);
		const oldRecord = records.get(old?.transaction.tx.hash ?? "")?.record ?? null;
		const replacedNow = { ...replaced, at };
		const ended = [...this.#preview(replacedNow, oldRecord), ...this.#preview(replacedNow, expired)];
		const begun = clock.monotonic();
		await store.insert(transaction, record, ended, this.#timeToStore());
		this.#deps.onWritten((clock.monotonic() - begun) / 1000);
		records.addAndNotify({ transaction, record });
		entry.durable = true;
		if (expired?.stage === "EXPIRED") this.#emit(expired.hash, { ...replaced, builders: [] });
		// If the old one was mined meanwhile, the new one is dropped when its account is refreshed.
		if (old !== null && oldRecord !== null && isLive(oldRecord.stage)) {
			this.#emit(oldRecord.hash, replaced);
			broadcaster.cancel(old.transaction, builders, block + 1);
		}
		return true;
	}

	/** A new record, with the history of the previous one if the transaction is resubmitted. */
	async #recordOf(transaction: PrivateTransaction, isResubmitted: boolean): Promise<TransactionRecord> {
		const { hash } = transaction.tx;
		const past = isResubmitted ? await this.record(hash) : this.records.get(hash)?.record;
		if (!past) return newRecord(transaction);
		const { events, deliveries, omitted, stage, behindHidden, exposed } = structuredClone(past);
		return { ...newRecord(transaction), events, deliveries, omitted, stage, behindHidden, exposed };
	}

	/** Puts an entry back into the pool after a failed write, unless it has ended meanwhile. */
	#undoRemoval(entry: PoolEntry | null): void {
		if (entry === null) return;
		const stage = this.records.get(entry.transaction.tx.hash)?.record.stage;
		if (stage !== undefined && isLive(stage)) this.pool.insert(entry);
	}

	/** A copy of the record, if there is one, with `event` applied, to be written before listeners are notified. */
	#preview(event: TxEvent, record: TransactionRecord | null): readonly TransactionRecord[] {
		if (record === null) return [];
		const preview = this.records.preview(record.hash, event);
		if (preview !== null) return [preview];
		// It is in the archive only, and the store writes what has a `settledAt` there.
		const copy = structuredClone(record);
		return fold(copy, event) ? [{ ...copy, settledAt: copy.settledAt ?? 0 }] : [];
	}

	#cancelled(builders: readonly string[]) {
		return { type: "cancelled", at: this.#deps.clock.now(), block: this.#head(), builders } as const;
	}

	/** Emits an event with the current time. Pages show an event's fields in their order: the type first, then the time. */
	#emit(hash: string, event: Undated<TxEvent>): void {
		this.records.emit(hash, Object.assign({ type: event.type, at: this.#deps.clock.now() }, event));
	}

	/** The time of the machine or of the chain, whichever is later, so that a record is not purged too early. */
	#timeToStore(): number {
		return laterTime(this.#deps.clock.now(), this.#deps.tip.head());
	}

	#head(): number {
		return this.#deps.tip.head()?.number ?? 0;
	}
}

type Undated<E> = E extends TxEvent ? Omit<E, "at"> : never;

/** The event that `other` has replaced a transaction that `builders` must forget. `discreet`: searchers must not see `other`. */
function replacedBy(other: PrivateTransaction, block: number, builders: readonly string[]) {
	const discreet = other.shared === "never";
	return { type: "replaced", by: other.tx.hash, discreet, block, builders } as const;
}
