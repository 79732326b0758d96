// The ledger of everything that is not settled yet: what comes in are events, what goes out are records, and the
// news to those who listen. The lifecycle table alone decides what an event does; the ledger starts nothing.

import type { Logger } from "../../shared/log.ts";
import type { TxEvent } from "../domain/events.ts";
import type { Stage } from "../domain/lifecycle.ts";
import type { EventSink } from "../domain/ports.ts";
import { fold, type TransactionRecord } from "../domain/record.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";

/** A transaction and its record. */
export interface LedgerEntry {
	readonly transaction: PrivateTransaction;
	readonly record: TransactionRecord;
}

/** Events that leave the stage as it is, and that a restart could not find out again. */
const KEPT: ReadonlySet<TxEvent["type"]> = new Set(["ready", "shared", "bundled", "refunded"]);

/** Told of every event after it was folded. */
export type EventListener = (record: TransactionRecord, before: Stage, event: TxEvent) => void;

/** Records by hash; `emit` is the only way to change one. */
export class Ledger implements EventSink {
	readonly #entries = new Map<string, LedgerEntry>();
	readonly #listeners: EventListener[] = [];
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

	get(hash: string): LedgerEntry | undefined {
		return this.#entries.get(hash);
	}

	entries(): IterableIterator<LedgerEntry> {
		return this.#entries.values();
	}

	/** Takes over a record, which nobody else may change from now on; nobody is told. Answers the one it takes the place of. */
	open(entry: LedgerEntry): TransactionRecord | undefined {
		// One that is admitted anew has a record already, which must not be written over the new one later.
		const past = this.#entries.get(entry.record.hash)?.record;
		if (past !== undefined) this.close(past);
		this.#entries.set(entry.record.hash, entry);
		return past;
	}

	/** As {@link open}, and tells the last event of what has just come. */
	receive(entry: LedgerEntry): void {
		const past = this.open(entry);
		const { record } = entry;
		const last = record.events.at(-1);
		if (last !== undefined) this.#tell(record, past?.stage ?? "PENDING", last);
	}

	/** Forgets a record that is settled; another one of the same hash, admitted anew meanwhile, stays. */
	close(record: TransactionRecord): void {
		if (this.#entries.get(record.hash)?.record === record) this.#entries.delete(record.hash);
		this.#changed.delete(record);
		this.#annotated.delete(record);
	}

	subscribe(listener: EventListener): void {
		this.#listeners.push(listener);
	}

	emit(hash: string, event: TxEvent): void {
		const record = this.#entries.get(hash)?.record;
		// Settled: only answers of builders can come that late.
		if (record === undefined) return;
		const before = record.stage;
		if (!fold(record, event)) {
			this.#log.error("illegal transition", { hash, stage: before, code: event.type });
			return;
		}
		const isCancel = event.type === "delivered" && event.kind === "cancel";
		const real = record.stage !== before || isCancel || KEPT.has(event.type);
		(real ? this.#changed : this.#annotated).add(record);
		this.#tell(record, before, event);
	}

	#tell(record: TransactionRecord, before: Stage, event: TxEvent): void {
		for (const listener of this.#listeners) listener(record, before, event);
	}

	/** The record as `event` would leave it, without changing it: for a write that must come first. */
	preview(hash: string, event: TxEvent): TransactionRecord | null {
		const record = this.#entries.get(hash)?.record;
		if (record === undefined) return null;
		const copy = structuredClone(record);
		return fold(copy, event) ? copy : null;
	}

	/** Records changed since the last call; `all`: those that only have new deliveries too. */
	takeChanged(all: boolean): TransactionRecord[] {
		const taken = [...this.#changed, ...(all ? this.#annotated : [])];
		this.#changed.clear();
		if (all) this.#annotated.clear();
		return [...new Set(taken)];
	}

	/** Puts back what could not be written. */
	putBack(records: readonly TransactionRecord[]): void {
		for (const record of records) {
			if (this.#entries.get(record.hash)?.record === record) this.#changed.add(record);
		}
	}
}
