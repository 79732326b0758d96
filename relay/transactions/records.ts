// The records of all transactions that are not settled yet. The lifecycle table alone decides what an event does to
// one; listeners hear of each change.

import type { Logger } from "../../shared/log.ts";
import type { TxEvent } from "../domain/events.ts";
import type { EventListener, EventSink } from "../domain/ports.ts";
import { fold, isEndedByUser, type Stage, type TransactionRecord } from "../domain/record.ts";
import { type PrivateTransaction, withoutBytes } from "../domain/transaction.ts";

/** A transaction and its record. */
export interface RecordEntry {
	/** Without its bytes once it has ended by its user or expired. */
	readonly transaction: PrivateTransaction;
	readonly record: TransactionRecord;
}

/** Events that leave the stage as it is, and that a restart could not find out again. */
const KEPT: ReadonlySet<TxEvent["type"]> = new Set(["ready", "shared", "bundled", "refunded"]);

/** Records by hash; `emit` is the only way to change one. */
export class TransactionRecords implements EventSink {
	readonly #entries = new Map<string, RecordEntry>();
	readonly #listeners: EventListener[] = [];
	/** Taken back by their users, by sender. */
	readonly #cancelled = new Map<string, Set<TransactionRecord>>();
	/** Expired ones by sender and nonce: at most one of each, since the next one with the nonce ends it. */
	readonly #expired = new Map<string, TransactionRecord>();
	/** Changed since the last flush in a way that a restart could not find out again. */
	readonly #changed = new Set<TransactionRecord>();
	/** Changed by deliveries other than cancels alone: written with the next real change, or at stop. */
	readonly #annotated = new Set<TransactionRecord>();
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

	/** Takes over a record, which nobody else may change from now on; nobody is told. Answers the one it takes the place of. */
	open(entry: RecordEntry): TransactionRecord | undefined {
		// One that is admitted anew has a record already, which must not be written over the new one later.
		const past = this.#entries.get(entry.record.hash)?.record;
		if (past !== undefined) this.close(past);
		this.#entries.set(entry.record.hash, entry);
		this.#ended(entry);
		return past;
	}

	/** As {@link open}, and tells the last event of what has just come. */
	receive(entry: RecordEntry): void {
		const past = this.open(entry);
		const { record } = entry;
		const last = record.events.at(-1);
		if (last !== undefined) this.#notify(record, past?.stage ?? "PENDING", last);
	}

	/** Forgets a record that is settled; another one of the same hash, admitted anew meanwhile, stays. */
	close(record: TransactionRecord): void {
		const others = this.#cancelled.get(record.from);
		others?.delete(record);
		if (others?.size === 0) this.#cancelled.delete(record.from);
		if (this.#expired.get(senderNonceKey(record)) === record) this.#expired.delete(senderNonceKey(record));
		if (this.#entries.get(record.hash)?.record === record) this.#entries.delete(record.hash);
		this.#changed.delete(record);
		this.#annotated.delete(record);
	}

	/** How many of the sender's its user has taken back, of those that are not settled. */
	cancelledCount(sender: string): number {
		return this.#cancelled.get(sender)?.size ?? 0;
	}

	/** The one with this sender and nonce that has expired, and whose bytes could bring it back. */
	expiredAt(from: string, nonce: bigint): TransactionRecord | undefined {
		return this.#expired.get(senderNonceKey({ from, nonce }));
	}

	subscribe(listener: EventListener): void {
		this.#listeners.push(listener);
	}

	emit(hash: string, event: TxEvent): void {
		const entry = this.#entries.get(hash);
		// Settled: only answers of builders can come that late.
		if (entry === undefined) return;
		const { record } = entry;
		const before = record.stage;
		if (!fold(record, event)) {
			this.#log.error("illegal transition", { hash, stage: before, code: event.type });
			return;
		}
		const isCancel = event.type === "delivered" && event.kind === "cancel";
		const real = record.stage !== before || isCancel || KEPT.has(event.type);
		(real ? this.#changed : this.#annotated).add(record);
		if (record.stage !== before) this.#ended(entry);
		this.#notify(record, before, event);
	}

	/** Of what never goes out again its bytes are forgotten; what its user took back is counted. */
	#ended({ transaction, record }: RecordEntry): void {
		const key = senderNonceKey(record);
		if (record.stage === "EXPIRED") this.#expired.set(key, record);
		else if (this.#expired.get(key) === record) this.#expired.delete(key);
		if (!isEndedByUser(record.stage) && record.stage !== "EXPIRED") return;
		this.#entries.set(record.hash, { transaction: withoutBytes(transaction), record });
		if (record.stage !== "CANCELLED") return;
		const others = this.#cancelled.get(record.from);
		if (others === undefined) this.#cancelled.set(record.from, new Set([record]));
		else others.add(record);
	}

	#notify(record: TransactionRecord, before: Stage, event: TxEvent): void {
		for (const listener of this.#listeners) listener(record, before, event);
	}

	/** The record as `event` would leave it, without changing it: for a write that must come first. */
	preview(hash: string, event: TxEvent): TransactionRecord | null {
		const record = this.#entries.get(hash)?.record;
		if (record === undefined) return null;
		const copy = structuredClone(record);
		return fold(copy, event) ? copy : null;
	}

	/**
	 * Up to `most` records that have changed and were not taken since, but for those that `isBusy` says of; `all`: those that
	 * only have new deliveries too.
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

	/** Puts back what could not be written. */
	putBack(records: readonly TransactionRecord[]): void {
		for (const record of records) {
			if (this.#entries.get(record.hash)?.record === record) this.#changed.add(record);
		}
	}
}

/** Who has a nonce, with its sender's address in lower case. */
export interface SenderNonce {
	readonly from: string;
	readonly nonce: bigint | string;
}

/** Names a sender's nonce. */
export function senderNonceKey({ from, nonce }: SenderNonce): string {
	return `${from} ${nonce}`;
}
