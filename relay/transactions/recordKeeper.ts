// Writes the changes of transactions since they were answered: with each block, and sooner if they
// must not wait. Finished transactions are archived, and deleted a week later.

import type { Background } from "../../shared/background.ts";
import type { Clock, Timer } from "../../shared/clock.ts";
import type { Change } from "../../shared/kv/port.ts";
import type { TransactionRecord } from "../domain/record.ts";
import type { TransactionDisk } from "./disk.ts";
import type { NonceTurns } from "./nonceTurns.ts";
import type { PoolReader } from "./pool.ts";
import type { RecordEntry, TransactionRecords } from "./records.ts";

export interface RecordKeeperDependencies {
	readonly pool: PoolReader;
	readonly records: TransactionRecords;
	readonly disk: TransactionDisk;
	/** Their final parts are written in the commit that archives the records. */
	readonly tables: readonly FinalTable[];
	readonly turns: NonceTurns;
	/** Time to store, in ms; see laterTime. */
	readonly timeToStore: () => number;
	readonly clock: Clock;
	readonly background: Pick<Background, "run">;
}

/** A table with a part that is final once the records are archived. */
export interface FinalTable {
	/**
	 * The changes to write when these records are archived, for the first time. Call `done` once
	 * they are on disk.
	 */
	settling(records: readonly TransactionRecord[]): {
		readonly changes: readonly Change[];
		readonly done: () => void;
	};
}

/** Records per write. */
const BATCH_SIZE = 200;
/** How long changes that must not wait for the next block are collected before one write, in ms. */
const SOON_MS = 50;

/** Keeps the records on disk up to date. */
export class RecordKeeper {
	readonly #dependencies: RecordKeeperDependencies;
	#soon: Timer | null = null;
	#stopped = false;

	constructor(dependencies: RecordKeeperDependencies) {
		this.#dependencies = dependencies;
	}

	/** Whether the last write succeeded, or a small one does now. */
	isWritable(): Promise<boolean> {
		return this.#dependencies.disk.check();
	}

	/**
	 * Writes changed records; with `all` also those with minor changes only. Throws if the store
	 * fails.
	 */
	async flush(all: boolean): Promise<void> {
		const { records, disk, turns, timeToStore } = this.#dependencies;
		for (;;) {
			// Records with a running operation are skipped, since an older state must not overwrite a
			// newer one.
			const changed = records.takeChanged(all, BATCH_SIZE, (record) => turns.isBusy(record));
			if (changed.length === 0) return;
			try {
				await disk.update(changed, timeToStore());
			} catch (thrown) {
				records.markChanged(changed);
				throw thrown;
			}
		}
	}

	/** Schedules a write of the changes before the next block's write. */
	flushSoon(): void {
		const { clock, background } = this.#dependencies;
		if (this.#soon !== null || this.#stopped) return;
		this.#soon = clock.after(SOON_MS, () => {
			this.#soon = null;
			background.run("records", () => this.flush(false));
		});
	}

	/** Schedules no more early writes. The last flush writes later changes. */
	stop(): void {
		this.#stopped = true;
		this.#soon?.cancel();
	}

	/**
	 * Archives the entries that are still finished by `isOver`: deletes their bytes, keeps their
	 * records on disk. Throws if the store fails.
	 */
	async archive(
		entries: readonly RecordEntry[],
		isOver: (record: TransactionRecord) => boolean,
	): Promise<void> {
		const { records, disk, tables, timeToStore } = this.#dependencies;
		for (let i = 0; i < entries.length; i += BATCH_SIZE) {
			// Some may have been revived by now.
			const batch = entries
				.slice(i, i + BATCH_SIZE)
				.map(({ record }) => record)
				.filter((record) => isOver(record) && this.#isAtRest(record));
			const stages = batch.map(({ stage }) => stage);
			const fresh = batch.filter((record) => !records.isSettled(record));
			const settling = tables.map((table) => table.settling(fresh));
			const changes = settling.flatMap((one) => one.changes);
			await disk.archive(batch, timeToStore(), changes);
			for (const { done } of settling) done();
			records.settle(fresh);
			// A record that changed during the write is archived later.
			batch.forEach((record, at) => {
				if (record.stage === stages[at] && this.#isAtRest(record)) records.remove(record);
			});
		}
	}

	/** Whether it is neither pending nor being changed. */
	#isAtRest(record: TransactionRecord): boolean {
		const { pool, turns } = this.#dependencies;
		return pool.get(record.hash) === undefined && !turns.isBusy(record);
	}

	/**
	 * Deletes records that were archived more than a week before `now`, in ms; see {@link
	 * TransactionDisk.purge}.
	 */
	async purge(now: number): Promise<void> {
		const { pool, records, disk } = this.#dependencies;
		await disk.purge(now, (hash) => pool.get(hash) !== undefined || records.get(hash) !== undefined);
	}
}
