// Writes rows to a key-value store. At the start, reads those that still have work left. Failed
// writes stay in memory and are retried.

import type { Clock, Timer } from "../../shared/clock.ts";
import { archivedKey } from "../../shared/kv/archive.ts";
import {
	AccountTakenError,
	type Change,
	type KeyValueStore,
	prefixRange,
	type SharedStore,
} from "../../shared/kv/port.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { isSettled, keepsBytes, type Row } from "../domain/row.ts";
import { RowReader } from "./readRows.ts";
import { BIRTH, keyOf, keysOf, type RowKey, rawOfBirth, recordsOf, STATE } from "./records.ts";

/** Delay before failed writes are retried, in ms. */
const RETRY_MS = 1_000;
/** Records per retry. If it succeeds, the others follow at once. */
const RETRY_BATCH = 100;
const NONE: readonly string[] = Object.freeze([]);

/** A change of a row; null: there is no row. */
export type RowChange = (row: Row | null) => Row | null;

/** The latest state of a hash that is not known to be on disk. */
export interface Dirty {
	readonly row: Row | null;
	/** Bytes that are not on disk yet; null if they are, or are no longer needed. */
	readonly raw: Buffer | null;
	/** Keys under which earlier states may be on disk. */
	readonly earlier: readonly string[];
	/** The account; null if the row was settled before and after, which any process may change. */
	readonly sender: string | null;
	/** Whether there must be no row on disk yet, ended or not. */
	readonly isNew: boolean;
	/** Whether the transaction has arrived with one of the changes. */
	readonly arrives: boolean;
	/** Whether its request is over, or does not wait for it: it was accepted without the database. */
	readonly isLeft: boolean;
	/** The changes since the last state on disk, in order. */
	readonly made: readonly RowChange[];
}

/** A state that was passed to the store. */
interface Writing {
	one: Dirty;
	/** Settles with the store's answer. */
	readonly stored: Promise<unknown>;
	/** Whether it is on disk, at last. */
	readonly written: Promise<boolean>;
}

export interface JournalDependencies {
	readonly kv: KeyValueStore & Pick<SharedStore, "accounts">;
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
	/** Accounts that another process has written, until {@link takeBack} or {@link failed}. */
	readonly #taken = new Map<string, Taken>();
	#onTaken = (_: string): void => {};

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
		let count = this.#dirty.size + this.#writing.size + this.#failed.size;
		for (const { states } of this.#taken.values()) count += states.size;
		return count;
	}

	/**
	 * Sets the only listener, called when another process has written an account in a shared store.
	 * Nothing more is written of the account until {@link takeBack} or {@link failed}.
	 */
	onTaken(listener: (sender: string) => void): void {
		this.#onTaken = listener;
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
	 * Writes the records of a row that was `before`; null deletes them. `made` is the change, unless
	 * the transaction has arrived. `raw`: its bytes, if they are not on disk yet.
	 */
	write(before: Row | null, row: Row | null, made: RowChange | "arrival", raw?: Buffer): void {
		const one = row ?? before;
		if (one === null) return;
		const { hash, from } = one;
		const last = this.#inMemory(hash);
		// The state that this one replaces was not passed to the store.
		const waits = this.#dirty.get(hash) ?? this.#failed.get(hash) ?? null;
		let earlier = last?.earlier ?? NONE;
		const replaced = last === null ? before : this.#dirty.has(hash) ? null : last.row;
		if (replaced !== null) earlier = [...new Set([...earlier, ...keysOf(replaced)])];
		// Bytes that were or may have been written are written again, since that write may have failed.
		const kept = raw === undefined ? (last?.raw ?? null) : ownBytes(raw);
		const isLoose = (before === null || isSettled(before)) && (row === null || isSettled(row));
		this.#failed.delete(hash);
		this.#dirty.set(hash, {
			row,
			raw: keepsBytes(row) ? kept : null,
			earlier,
			sender: isLoose && (waits?.sender ?? null) === null ? null : from,
			isNew: waits?.isNew ?? (made === "arrival" && before === null && last === null),
			arrives: made === "arrival" || waits?.arrives === true,
			isLeft: waits?.isLeft === true,
			made: made === "arrival" ? [] : [...(waits?.made ?? []), made],
		});
		void this.#flush();
	}

	/**
	 * The states of an account's rows that are not on disk, by hash. They must be written again, onto
	 * what the other process has written.
	 */
	takeBack(sender: string): ReadonlyMap<string, Dirty> {
		const states = new Map<string, Dirty>();
		for (const [hash, one] of this.#waitingOf(sender)) {
			states.set(hash, merged(states.get(hash), one));
			this.#failed.delete(hash);
			this.#dirty.delete(hash);
		}
		this.#taken.get(sender)?.end();
		this.#taken.delete(sender);
		return states;
	}

	/** The hashes of an account whose latest state is not on disk. */
	waiting(sender: string): readonly string[] {
		return this.#waitingOf(sender).map(([hash]) => hash);
	}

	/** The states of an account that are not on disk, in the order of their changes. */
	#waitingOf(sender: string): readonly (readonly [string, Dirty])[] {
		const all = [...this.#failed, ...(this.#taken.get(sender)?.states ?? []), ...this.#dirty];
		return all.filter(([, one]) => one.sender === sender);
	}

	/**
	 * Writes a state of {@link takeBack} again, which was accepted without the database. `earlier`:
	 * the keys of an earlier row of the hash that was found; null: none was.
	 */
	writeAgain(hash: string, state: Dirty, earlier: readonly string[] | null): void {
		const isNew = earlier === null && state.isNew;
		this.#dirty.set(hash, {
			...state,
			...{ isNew, isLeft: true, earlier: [...new Set([...state.earlier, ...(earlier ?? [])])] },
		});
		void this.#flush();
	}

	/** An account could not be read again. Its states are written later. */
	failed(sender: string, thrown: unknown): void {
		const states = this.takeBack(sender);
		for (const [hash, one] of states) this.#failed.set(hash, one);
		if (states.size > 0) this.#hasFailed(thrown);
	}

	/**
	 * From now on writes nothing more of an account, until {@link takeBack} or {@link failed}.
	 * Resolves when the store has answered all earlier writes.
	 */
	async hold(sender: string): Promise<void> {
		this.#hold(sender);
		for (;;) {
			const running = [...this.#writing.values()].filter(({ one }) => one.sender === sender);
			if (running.length === 0) return;
			await Promise.allSettled(running.map(({ stored }) => stored));
			// The answers' consequences.
			await null;
		}
	}

	#hold(sender: string): Taken {
		const taken = this.#taken.get(sender) ?? newTaken();
		this.#taken.set(sender, taken);
		return taken;
	}

	/** Whether its latest state may be in memory only. */
	holds(hash: string): boolean {
		return this.#inMemory(hash) !== null;
	}

	/** True if the last write of a hash has succeeded, or as soon as it has; false if it fails. */
	written(hash: string): Promise<boolean> | true {
		const taken = this.#takenOf(hash);
		if (taken !== undefined) return taken.ended.then(() => this.written(hash));
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
		return (
			this.#dirty.get(hash) ??
			this.#takenOf(hash)?.states.get(hash) ??
			this.#failed.get(hash) ??
			this.#writing.get(hash)?.one ??
			null
		);
	}

	#takenOf(hash: string): Taken | undefined {
		if (this.#taken.size === 0) return undefined;
		const sender = this.#dirty.get(hash)?.sender;
		if (sender != null) return this.#taken.get(sender);
		for (const taken of this.#taken.values()) if (taken.states.has(hash)) return taken;
		return undefined;
	}

	#flush(): Promise<void> {
		this.#flushing ??= Promise.resolve().then(() => this.#giveToStore());
		return this.#flushing;
	}

	#giveToStore(): void {
		this.#flushing = null;
		for (const [hash, one] of this.#dirty) {
			// It is written when the account has been read again.
			if (one.sender !== null && this.#taken.has(one.sender)) continue;
			this.#dirty.delete(hash);
			const stored = this.#store(hash, one);
			const writing: Writing = {
				one,
				stored,
				written: stored.then(
					() => this.#cameThrough(hash, writing),
					(thrown: unknown) => this.#failedFor(hash, writing, thrown),
				),
			};
			this.#writing.set(hash, writing);
		}
	}

	#store(hash: string, one: Dirty): Promise<void> {
		const { kv } = this.#dependencies;
		const changes = changesOf(one);
		const { sender } = one;
		if (kv.accounts === undefined) return kv.write(changes);
		return kv.accounts.write({ sender, changes, absent: one.isNew ? [archivedKey(hash)] : [] });
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

	#failedFor(hash: string, writing: Writing, thrown: unknown): Promise<boolean> | boolean {
		const { sender } = writing.one;
		if (thrown instanceof AccountTakenError && sender !== null) return this.#wasTaken(hash, sender, writing);
		// A later write of the hash counts, if there is one.
		const later = this.#dirty.get(hash);
		const newest = this.#writing.get(hash);
		if (newest === writing) this.#writing.delete(hash);
		if (newest !== writing && newest !== undefined) newest.one = merged(writing.one, newest.one);
		else if (later !== undefined) this.#dirty.set(hash, merged(writing.one, later));
		else this.#failed.set(hash, writing.one);
		this.#hasFailed(thrown);
		return false;
	}

	#wasTaken(hash: string, sender: string, writing: Writing): Promise<boolean> | boolean {
		const isKnown = this.#taken.has(sender);
		const taken = this.#hold(sender);
		taken.states.set(hash, merged(taken.states.get(hash), writing.one));
		if (this.#writing.get(hash) === writing) this.#writing.delete(hash);
		if (!isKnown) this.#onTaken(sender);
		return taken.ended.then(() => this.written(hash));
	}

	#hasFailed(thrown: unknown): void {
		if (!this.#isFailing) {
			this.#isFailing = true;
			this.#dependencies.log.error("could not write the journal: keeping it in memory only", {
				fault: safeError(thrown),
			});
		}
		this.#dependencies.onFault?.();
		this.#retryLater();
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

/** An account that another process has written. */
interface Taken {
	/** States whose writes were refused. */
	readonly states: Map<string, Dirty>;
	readonly ended: Promise<void>;
	readonly end: () => void;
}

function newTaken(): Taken {
	let end = (): void => {};
	const ended = new Promise<void>((resolve) => {
		end = resolve;
	});
	return { states: new Map(), ended, end };
}

/** The state after both; `earlier` is not on disk. */
function merged(earlier: Dirty | undefined, later: Dirty): Dirty {
	if (earlier === undefined) return later;
	return {
		...later,
		raw: later.raw ?? (keepsBytes(later.row) ? earlier.raw : null),
		earlier: [...new Set([...earlier.earlier, ...later.earlier])],
		isNew: earlier.isNew,
		arrives: earlier.arrives || later.arrives,
		isLeft: earlier.isLeft || later.isLeft,
		made: later.arrives ? later.made : [...earlier.made, ...later.made],
	};
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
