// The records of all transactions that are not archived yet. Events change them according to the
// lifecycle table (domain/record.ts), and listeners are notified of each change. Only this folder
// emits events; all others use a RecordsReader.

import type { Stage } from "../../shared/ethereum/statusRecord.ts";
import type { Logger } from "../../shared/log.ts";
import { MultiMap } from "../../shared/multiMap.ts";
import type { Owner } from "../../shared/ownership.ts";
import type { TxEvent } from "../domain/events.ts";
import type { EventListener } from "../domain/ports.ts";
import {
	endForAll,
	fold,
	inOrder,
	isEndedByUser,
	isLive,
	isMined,
	isRevivable,
	setOwners,
	type TransactionRecord,
} from "../domain/record.ts";
import { ownedTransaction, type PrivateTransaction, withoutBytes } from "../domain/transaction.ts";
import { senderNonceKey } from "./nonceTurns.ts";

/** A transaction and its record. */
export interface RecordEntry {
	/** Without its bytes once its user ended it or it has expired. */
	readonly transaction: PrivateTransaction;
	readonly record: TransactionRecord;
}

/**
 * Events that must be stored although the stage stays, since a restart could not recover them. A
 * cancel's delivery is stored too.
 */
const KEPT: ReadonlySet<TxEvent["type"]> = new Set([
	"ready",
	"shared",
	"bundled",
	"refunded",
	"backrunLeftOut",
	"seenInPublic",
	"joined",
	"left",
]);

/** The records for code that only reads them and subscribes to changes. */
export type RecordsReader = Pick<
	TransactionRecords,
	"droppedSenders" | "entries" | "get" | "size" | "subscribe"
>;

/** Records by hash; only `emit` changes one. */
export class TransactionRecords {
	readonly #entries = new Map<string, RecordEntry>();
	readonly #listeners: EventListener[] = [];
	/** Cancelled records by sender, including those that were mined anyway. */
	readonly #cancelled = new MultiMap<TransactionRecord>();
	/** Dropped records by sender. */
	readonly #dropped = new MultiMap<TransactionRecord>();
	/**
	 * Revivable records by sender and nonce. There is at most one each, since the next transaction
	 * with the nonce makes it REPLACED.
	 */
	readonly #revivable = new Map<string, TransactionRecord>();
	/** Records of transactions in a block. */
	readonly #mined = new Set<TransactionRecord>();
	/** Records with changes since the last flush that a restart could not recover. */
	readonly #changed = new Set<TransactionRecord>();
	/**
	 * Records with minor changes only (such as deliveries): written with the next important change,
	 * or at stop.
	 */
	readonly #annotated = new Set<TransactionRecord>();
	/**
	 * Records whose final parts are on disk. They may still be here, since an operation on them was
	 * running when they were archived.
	 */
	readonly #settled = new WeakSet<TransactionRecord>();
	readonly #log: Logger;

	constructor(dependencies: { log: Logger }) {
		this.#log = dependencies.log;
	}

	get size(): number {
		return this.#entries.size;
	}

	get(hash: string): RecordEntry | undefined {
		return this.#entries.get(hash);
	}

	entries(): IterableIterator<RecordEntry> {
		return this.#entries.values();
	}

	/** The records of transactions in a block. */
	mined(): Iterable<TransactionRecord> {
		return this.#mined;
	}

	/** Whether its final parts are on disk, so that no table counts it again. */
	isSettled(record: TransactionRecord): boolean {
		return this.#settled.has(record);
	}

	/** The final parts of these are on disk now. */
	settle(records: readonly TransactionRecord[]): void {
		for (const record of records) this.#settled.add(record);
	}

	/**
	 * Adds a record without notifying listeners. Returns the one with the same hash that it replaces.
	 */
	add(entry: RecordEntry): TransactionRecord | undefined {
		// The old record of a resubmitted transaction must not be written over the new one later.
		const past = this.#entries.get(entry.record.hash)?.record;
		if (past !== undefined) this.remove(past);
		this.#entries.set(entry.record.hash, entry);
		this.#reindex(entry);
		return past;
	}

	/**
	 * As {@link add}, and notifies listeners of the record's last event. A new transaction counts as
	 * `PENDING` before it.
	 */
	addAndNotify(entry: RecordEntry): void {
		const past = this.add(entry);
		const { record } = entry;
		const last = record.events.at(-1);
		if (last !== undefined) this.#notify(record, past?.stage ?? "PENDING", last);
	}

	/** Removes a record that was archived or replaced; a newer record with the same hash stays. */
	remove(record: TransactionRecord): void {
		this.#cancelled.delete(record.from, record);
		this.#dropped.delete(record.from, record);
		if (this.#revivable.get(senderNonceKey(record)) === record)
			this.#revivable.delete(senderNonceKey(record));
		if (this.#entries.get(record.hash)?.record === record) this.#entries.delete(record.hash);
		this.#mined.delete(record);
		this.#changed.delete(record);
		this.#annotated.delete(record);
	}

	/** How many of the sender's transactions were cancelled and are not archived yet. */
	cancelledCount(sender: string): number {
		return this.#cancelled.get(sender).size;
	}

	/** Senders of dropped transactions. */
	droppedSenders(): Iterable<string> {
		return this.#dropped.keys();
	}

	/** The sender's dropped transactions: another transaction used their nonce. */
	droppedOf(sender: string): readonly RecordEntry[] {
		return [...this.#dropped.get(sender)].flatMap(({ hash }) => this.#entries.get(hash) ?? []);
	}

	/**
	 * The ended transaction with this sender and nonce that the same bytes could revive, see {@link
	 * isRevivable}.
	 */
	revivableAt(from: string, nonce: bigint): TransactionRecord | undefined {
		return this.#revivable.get(senderNonceKey({ from, nonce }));
	}

	subscribe(listener: EventListener): void {
		this.#listeners.push(listener);
	}

	emit(hash: string, given: TxEvent): void {
		const entry = this.#entries.get(hash);
		// Already archived: only builders' responses can come that late.
		if (entry === undefined) return;
		const { record } = entry;
		const before = record.stage;
		// A follower that reconnects reads on from the time of the last event.
		const event = inOrder(record, given);
		if (!fold(record, event)) {
			this.#log.error("illegal transition", { hash, stage: before, code: event.type });
			return;
		}
		const isCancel = event.type === "delivered" && event.kind === "cancel";
		const real = record.stage !== before || isCancel || KEPT.has(event.type);
		(real ? this.#changed : this.#annotated).add(record);
		if (record.stage !== before) this.#reindex(entry);
		this.#notify(record, before, event);
	}

	/**
	 * Gives a transaction other owners, as of `event`, and returns it. Null if it is unknown or no
	 * longer live.
	 */
	setOwners(hash: string, owners: readonly Owner[], event: TxEvent): PrivateTransaction | null {
		const entry = this.#entries.get(hash);
		if (entry === undefined || !isLive(entry.record.stage)) return null;
		const { record } = entry;
		const transaction = ownedTransaction(entry.transaction, owners);
		setOwners(record, owners);
		this.#entries.set(hash, { transaction, record });
		this.emit(hash, event);
		return transaction;
	}

	/** Its sender has ended it for everybody; before, only addresses had cancelled it. */
	endForAll(hash: string): void {
		const entry = this.#entries.get(hash);
		if (entry === undefined) return;
		endForAll(entry.record);
		this.#reindex(entry);
	}

	/** Replaces a transaction with the same one with other bytes. */
	setTransaction(transaction: PrivateTransaction): void {
		const entry = this.#entries.get(transaction.tx.hash);
		if (entry !== undefined) this.#entries.set(transaction.tx.hash, { transaction, record: entry.record });
	}

	/**
	 * Updates the indexes by stage, and drops the bytes of a transaction that is never sent again.
	 */
	#reindex({ transaction, record }: RecordEntry): void {
		if (isMined(record.stage)) this.#mined.add(record);
		else this.#mined.delete(record);
		if (record.stage === "DROPPED") this.#dropped.add(record.from, record);
		else this.#dropped.delete(record.from, record);
		const key = senderNonceKey(record);
		if (isRevivable(record)) this.#revivable.set(key, record);
		else if (this.#revivable.get(key) === record) this.#revivable.delete(key);
		if (!isEndedByUser(record.stage) && record.stage !== "EXPIRED") return;
		this.#entries.set(record.hash, { transaction: withoutBytes(transaction), record });
		if (record.stage === "CANCELLED") this.#cancelled.add(record.from, record);
	}

	#notify(record: TransactionRecord, before: Stage, event: TxEvent): void {
		for (const listener of this.#listeners) listener(record, before, event);
	}

	/** A copy of the record with `event` applied, for a write that must come before the change. */
	preview(hash: string, event: TxEvent): TransactionRecord | null {
		const record = this.#entries.get(hash)?.record;
		if (record === undefined) return null;
		const copy = { ...record };
		return fold(copy, event) ? copy : null;
	}

	/**
	 * Returns up to `most` changed records for writing, and clears their marks. Skips those for
	 * which `isBusy` is true. `all`: also those with minor changes only.
	 */
	takeChanged(
		all: boolean,
		most: number,
		isBusy: (record: TransactionRecord) => boolean = () => false,
	): TransactionRecord[] {
		const taken = new Set<TransactionRecord>();
		for (const changed of all ? [this.#changed, this.#annotated] : [this.#changed]) {
			for (const record of changed) {
				if (taken.size === most) break;
				if (!isBusy(record)) taken.add(record);
			}
		}
		for (const record of taken) {
			this.#changed.delete(record);
			this.#annotated.delete(record);
		}
		return [...taken];
	}

	/** Marks records as changed again after a failed write. */
	markChanged(records: readonly TransactionRecord[]): void {
		for (const record of records) {
			if (this.#entries.get(record.hash)?.record === record) this.#changed.add(record);
		}
	}
}
