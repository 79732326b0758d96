// Writes rows to a key-value store. At the start, reads those that still have work left. Failed
// writes stay in memory and are retried.

import type { Clock, Timer } from "../../shared/clock.ts";
import { type Change, type KeyValueStore, prefixRange } from "../../shared/kv/port.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { keepsBytes, type Row } from "../domain/row.ts";
import { RowReader } from "./readRows.ts";
import { BIRTH, keyOf, keysOf, type RowKey, rawOfBirth, recordsOf, STATE } from "./records.ts";

/** Delay before failed writes are retried, in ms. */
const RETRY_MS = 1_000;
/** Records per retry. If it succeeds, the others follow at once. */
const RETRY_BATCH = 100;
const NONE: readonly string[] = Object.freeze([]);

/** The latest state of a hash that is not known to be on disk. */
interface Dirty {
	readonly row: Row | null;
	/** Bytes that are not on disk yet; null if they are, or are no longer needed. */
	readonly raw: Buffer | null;
	/** Keys under which earlier states may be on disk. */
	readonly earlier: readonly string[];
}

/** A state that was passed to the store. */
interface Writing {
	readonly one: Dirty;
	/** Whether it is on disk. */
	readonly written: Promise<boolean>;
}

export interface JournalDependencies {
	readonly kv: KeyValueStore;
	readonly clock: Clock;
	readonly log: Logger;
	/** Called for each failed write. */
	readonly onFault?: () => void;
}

/**
 * All changes of a row before the next flush become one record, and each record has the whole row.
 * So the last record written is the newest state, even if an earlier write failed. The store groups
 * records into commits.
 */
export class Journal {
	readonly #dependencies: JournalDependencies;
	/** States that the next flush passes to the store, by hash. */
	readonly #dirty = new Map<string, Dirty>();
	/** Resolves after that flush; null: nothing is dirty. */
	#flushing: Promise<void> | null = null;
	/** The latest state of each hash that was passed to the store but is not written yet. */
	readonly #writing = new Map<string, Writing>();
	/** States whose write failed and that have not changed since. */
	readonly #failed = new Map<string, Dirty>();
	#isFailing = false;
	#retry: Timer | null = null;
	#retrying: Promise<void> | null = null;
	#closed = false;

	constructor(dependencies: JournalDependencies) {
		this.#dependencies = dependencies;
	}

	/** False from a failed write until everything is on disk again. */
	get isDurable(): boolean {
		return !this.#isFailing;
	}

	/**
	 * Number of rows whose latest state is in memory only. A row that changes while it is written
	 * counts twice.
	 */
	get unwritten(): number {
		return this.#dirty.size + this.#writing.size + this.#failed.size;
	}

	/** Every row on disk that is not archived, and the highest id of any record. */
	async read(): Promise<{ readonly rows: readonly Row[]; readonly lastId: number }> {
		const { kv, log } = this.#dependencies;
		const reader = new RowReader(log);
		for (const prefix of [BIRTH, STATE])
			for await (const [key, value] of kv.range(...prefixRange(prefix))) reader.take(key, value);
		return { rows: reader.rows(), lastId: reader.lastId };
	}

	/**
	 * Writes the records of a row that was `before`; null deletes them. `raw`: the transaction's
	 * bytes, if they are not on disk yet.
	 */
	write(before: Row | null, row: Row | null, raw?: Buffer): void {
		const hash = row?.hash ?? before?.hash ?? "";
		const last = this.#inMemory(hash);
		// The state that this one replaces was not passed to the store.
		const isMerged = this.#dirty.has(hash);
		let earlier = last?.earlier ?? NONE;
		const replaced = last === null ? before : isMerged ? null : last.row;
		if (replaced !== null) earlier = [...new Set([...earlier, ...keysOf(replaced)])];
		// Bytes that were or may have been written are written again, since that write may have failed.
		const kept = raw === undefined ? (last?.raw ?? null) : ownBytes(raw);
		this.#failed.delete(hash);
		this.#dirty.set(hash, { row, raw: keepsBytes(row) ? kept : null, earlier });
		void this.#flush();
	}

	/** Whether its latest state may be in memory only. */
	holds(hash: string): boolean {
		return this.#inMemory(hash) !== null;
	}

	/** True if the last write of a hash has succeeded, or as soon as it has; false if it fails. */
	written(hash: string): Promise<boolean> | true {
		if (this.#dirty.has(hash)) return this.#flush().then(() => this.written(hash));
		if (this.#failed.has(hash)) return Promise.resolve(false);
		return this.#writing.get(hash)?.written ?? true;
	}

	/** The bytes of a row that keeps them, else null. Rejects if they are unreadable. */
	async raw(key: RowKey): Promise<Buffer | null> {
		const kept = this.#inMemory(key.hash)?.raw ?? null;
		if (kept !== null) return kept;
		const birth = await this.#dependencies.kv.get(keyOf(BIRTH, key));
		return birth === null ? (this.#inMemory(key.hash)?.raw ?? null) : rawOfBirth(birth);
	}

	/** Retries failed writes once more. The store waits for writes in progress. */
	async close(): Promise<void> {
		this.#closed = true;
		this.#retry?.cancel();
		await this.#retrying;
		await this.#tryAgain(this.#failed.size);
	}

	/** The latest state of a hash, unless it is known to be on disk. */
	#inMemory(hash: string): Dirty | null {
		return this.#dirty.get(hash) ?? this.#failed.get(hash) ?? this.#writing.get(hash)?.one ?? null;
	}

	#flush(): Promise<void> {
		this.#flushing ??= Promise.resolve().then(() => this.#giveToStore());
		return this.#flushing;
	}

	#giveToStore(): void {
		this.#flushing = null;
		for (const [hash, one] of this.#dirty) {
			const writing: Writing = {
				one,
				written: this.#dependencies.kv.write(changesOf(one)).then(
					() => this.#cameThrough(hash, writing),
					(thrown: unknown) => this.#failedFor(hash, writing, thrown),
				),
			};
			this.#writing.set(hash, writing);
		}
		this.#dirty.clear();
	}

	#cameThrough(hash: string, writing: Writing): true {
		if (this.#writing.get(hash) === writing) this.#writing.delete(hash);
		this.#seeIfDurable();
		return true;
	}

	#seeIfDurable(): void {
		if (!this.#isFailing || this.#failed.size > 0 || this.#retrying !== null) return;
		this.#isFailing = false;
		this.#retry?.cancel();
		this.#retry = null;
		this.#dependencies.log.info("journal on disk again");
	}

	#failedFor(hash: string, writing: Writing, thrown: unknown): false {
		// Otherwise a later write of the hash counts.
		if (this.#writing.get(hash) === writing) {
			this.#writing.delete(hash);
			if (!this.#dirty.has(hash)) this.#failed.set(hash, writing.one);
		}
		if (!this.#isFailing) {
			this.#isFailing = true;
			this.#dependencies.log.error("could not write the journal: keeping it in memory only", {
				fault: safeError(thrown),
			});
		}
		this.#dependencies.onFault?.();
		this.#retryLater();
		return false;
	}

	#retryLater(): void {
		if (this.#closed || this.#retry !== null) return;
		this.#retry = this.#dependencies.clock.after(RETRY_MS, () => {
			this.#retrying = this.#retryAll().finally(() => {
				this.#retrying = null;
				this.#retry = null;
				this.#seeIfDurable();
				if (this.#isFailing) this.#retryLater();
			});
		});
	}

	/** Retries one record first, so that a disk that still fails does not get all of them. */
	async #retryAll(): Promise<void> {
		for (let count = 1; this.#failed.size > 0; count = RETRY_BATCH)
			if (!(await this.#tryAgain(count))) return;
	}

	/**
	 * Writes up to `count` of the failed states, those that waited longest first. Returns whether all
	 * writes succeeded.
	 */
	async #tryAgain(count: number): Promise<boolean> {
		const some = [...this.#failed].slice(0, count);
		for (const [hash, one] of some) {
			this.#failed.delete(hash);
			this.#dirty.set(hash, one);
		}
		await this.#flush();
		const written = await Promise.all(some.map(([hash]) => this.written(hash)));
		return !written.includes(false);
	}
}

function changesOf({ row, raw, earlier }: Dirty): Change[] {
	const changes: Change[] = row === null ? [] : [...recordsOf(row, raw)];
	// Bytes on disk stay there, with the state at the time of their writing.
	const kept = row === null || raw !== null ? changes.map(({ key }) => key) : keysOf(row);
	for (const key of earlier) if (!kept.includes(key)) changes.push({ key, value: null });
	return changes;
}

/** A copy of bytes that would otherwise keep a much larger body in memory. */
function ownBytes(raw: Buffer): Buffer {
	const { byteLength } = raw.buffer;
	return byteLength > Buffer.poolSize && byteLength > 2 * raw.length ? Buffer.from(raw) : raw;
}
