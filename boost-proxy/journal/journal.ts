// Writes rows to a key-value store and reads them at the start. Failed writes are kept in memory and retried; records that
// can't be read are logged and left in place, since one bad record must not keep boost from the others.

import { LRUCache } from "lru-cache";
import type { Clock, Timer } from "../../shared/clock.ts";
import { type Change, type KeyValueStore, prefixRange } from "../../shared/kv/port.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { isLive, keepsBytes, type Row } from "../domain/row.ts";
import {
	BIRTH,
	decodeBirth,
	decodeState,
	encodeBirth,
	encodeState,
	keyOf,
	type RowKey,
	rawLength,
	rawOfBirth,
	readKey,
	STATE,
} from "./records.ts";

/** Between retries of failed writes, in ms. */
const RETRY_MS = 1_000;
/** Records that are retried at a time, once a first one was written. */
const RETRY_BATCH = 100;
/** About the bytes that a cached transaction takes in addition to its own. */
const CACHE_OVERHEAD_BYTES = 300;

/** The latest row of a hash that is not known to be on disk. */
interface Unwritten {
	readonly key: RowKey;
	/** Of earlier rows of the hash, whose deletion is not known to be on disk. */
	readonly deleted: readonly RowKey[];
	readonly row: Row | null;
	/** Bytes that are not on disk yet; null if they are, or are of no use. */
	readonly raw: Buffer | null;
	/** Whether its write succeeded. */
	readonly written: Promise<boolean>;
}

export interface JournalDependencies {
	readonly kv: KeyValueStore;
	readonly clock: Clock;
	readonly log: Logger;
	/** Called for each write that failed. */
	readonly onFault?: () => void;
}

/**
 * Each write is of the whole record, in the order of the calls, so that the last successful write leaves the newest state,
 * whichever failed before it.
 */
export class Journal {
	readonly #dependencies: JournalDependencies;
	/** Bytes as Latin-1 strings: a small Buffer would keep the whole pool that it is a part of in memory. */
	readonly #cache: LRUCache<string, string>;
	readonly #unwritten = new Map<string, Unwritten>();
	/** Hashes whose latest write failed. */
	readonly #failed = new Set<string>();
	#isFailing = false;
	#retry: Timer | null = null;
	#retrying = Promise.resolve();
	#closed = false;

	/** `cacheBytes`: of transactions kept in memory. */
	constructor({ cacheBytes }: { readonly cacheBytes: number }, dependencies: JournalDependencies) {
		this.#dependencies = dependencies;
		this.#cache = new LRUCache({
			maxSize: cacheBytes,
			sizeCalculation: (raw) => raw.length + CACHE_OVERHEAD_BYTES,
		});
	}

	/** False from a failed write until everything is on disk again. */
	get isDurable(): boolean {
		return !this.#isFailing;
	}

	/** Number of rows whose latest state is in memory only. */
	get unwritten(): number {
		return this.#unwritten.size;
	}

	/**
	 * Every row on disk, and the highest id of any record. The state record of a transaction overrides its birth record, if it can
	 * be read.
	 */
	async read(): Promise<{ readonly rows: readonly Row[]; readonly lastId: number }> {
		const { kv, log } = this.#dependencies;
		const rows = new Map<string, Row>();
		const lengths = new Map<string, number>();
		let lastId = 0;
		let bad = 0;
		const leaveOut = (why: string, hash: string, fault?: object): void => {
			bad += 1;
			log.error(`a record of the journal ${why}`, { hash, ...fault });
		};
		const readAll = async (prefix: string, decode: (key: RowKey, value: Buffer) => Row): Promise<void> => {
			for await (const [text, value] of kv.range(...prefixRange(prefix))) {
				const key = readKey(prefix, text);
				lastId = Math.max(lastId, key.id);
				// A record that was left out at an earlier start, of a hash that came again since.
				if ((rows.get(key.hash)?.id ?? 0) > key.id) continue;
				try {
					rows.set(key.hash, decode(key, value));
				} catch (thrown) {
					leaveOut("can't be read", key.hash, { fault: safeError(thrown) });
				}
			}
		};
		await readAll(BIRTH, (key, value) => {
			lengths.set(key.hash, rawLength(value));
			return decodeBirth(key, value);
		});
		await readAll(STATE, (key, value) => decodeState(key, value, lengths.get(key.hash) ?? 0));
		for (const [hash, row] of rows) {
			if (!isLive(row) || keepsBytes(row)) continue;
			rows.delete(hash);
			leaveOut("has no bytes", hash);
		}
		if (bad > 0) log.error("records of the journal were left out", { count: bad });
		return { rows: [...rows.values()], lastId };
	}

	/**
	 * Writes the record of a row; null deletes it. `bytes`: the transaction's bytes if they are not on disk yet, and whether the
	 * row has no record yet. A failed write is logged and retried.
	 */
	write(key: RowKey, row: Row | null, bytes?: { readonly raw: Buffer; readonly isNew: boolean }): void {
		const { hash } = key;
		const unwritten = this.#unwritten.get(hash);
		if (!keepsBytes(row)) this.#cache.delete(hash);
		const raw = bytes === undefined ? (unwritten?.raw ?? null) : ownBytes(bytes.raw);
		this.#write(key, row, keepsBytes(row) ? raw : null, bytes?.isNew === true);
	}

	/** True if the last write of a hash has succeeded, or once it has; false if it fails. */
	written(hash: string): Promise<boolean> | true {
		return this.#unwritten.get(hash)?.written ?? true;
	}

	/** The bytes of a row that keeps them, else null. Rejects if they can't be read. */
	async raw(key: RowKey): Promise<Buffer | null> {
		const { hash } = key;
		const cached = this.#cache.get(hash);
		const kept =
			this.#unwritten.get(hash)?.raw ?? (cached === undefined ? null : Buffer.from(cached, "latin1"));
		if (kept !== null) return kept;
		const birth = await this.#dependencies.kv.get(keyOf(BIRTH, key));
		if (birth === null) return this.#unwritten.get(hash)?.raw ?? null;
		const raw = rawOfBirth(birth);
		this.#cache.set(hash, raw.toString("latin1"));
		return raw;
	}

	/** Retries failed writes once. The store waits for writes in progress. */
	async close(): Promise<void> {
		this.#closed = true;
		this.#retry?.cancel();
		await this.#retrying;
		await this.#writeAgain();
	}

	#write(key: RowKey, row: Row | null, raw: Buffer | null, isNew: boolean): void {
		const { hash } = key;
		const before = this.#unwritten.get(hash);
		const deleted =
			before === undefined ? [] : [...before.deleted, before.key].filter(({ id }) => id !== key.id);
		const deletions = deleted.flatMap((one) => changes(one, null, null, false));
		const written = this.#dependencies.kv.write([...deletions, ...changes(key, row, raw, isNew)]).then(
			() => this.#cameThrough(hash, one),
			(thrown: unknown) => this.#failedFor(hash, one, thrown),
		);
		const one: Unwritten = { key, deleted, row, raw, written };
		this.#forget(hash);
		this.#unwritten.set(hash, one);
	}

	#forget(hash: string): void {
		this.#unwritten.delete(hash);
		this.#failed.delete(hash);
	}

	#cameThrough(hash: string, one: Unwritten): true {
		if (this.#unwritten.get(hash) === one) {
			this.#forget(hash);
			if (one.raw !== null) this.#cache.set(hash, one.raw.toString("latin1"));
		}
		if (!this.#isFailing || this.#failed.size > 0) return true;
		this.#isFailing = false;
		this.#retry?.cancel();
		this.#retry = null;
		this.#dependencies.log.info("the journal is on disk again");
		return true;
	}

	#failedFor(hash: string, one: Unwritten, thrown: unknown): false {
		// Otherwise a later write of it is in progress, which counts instead.
		if (this.#unwritten.get(hash) === one) this.#failed.add(hash);
		if (!this.#isFailing) {
			this.#isFailing = true;
			this.#dependencies.log.error("the journal can't be written: it is kept in memory alone", {
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
			this.#retrying = this.#writeAgain().then(() => {
				this.#retry = null;
				if (this.#isFailing) this.#retryLater();
			});
		});
	}

	/** Retries failed writes: one first, then the others in batches until one fails. Never rejects. */
	async #writeAgain(): Promise<void> {
		for (let count = 1; this.#failed.size > 0; count = RETRY_BATCH) {
			const writes: (Promise<boolean> | true)[] = [];
			for (const hash of this.#failed) {
				const unwritten = this.#unwritten.get(hash);
				if (unwritten === undefined) continue;
				// If it fails again it is last in the order, so that no record blocks the others.
				this.#write(unwritten.key, unwritten.row, unwritten.raw, false);
				writes.push(this.written(hash));
				if (writes.length >= count) break;
			}
			if ((await Promise.all(writes)).includes(false)) return;
		}
	}
}

function changes(key: RowKey, row: Row | null, raw: Buffer | null, isNew: boolean): Change[] {
	const birth = keyOf(BIRTH, key);
	const state = keyOf(STATE, key);
	if (row !== null && raw !== null) {
		const born = { key: birth, value: encodeBirth(row, raw) };
		return isNew ? [born] : [born, { key: state, value: null }];
	}
	const now = { key: state, value: row === null ? null : encodeState(row) };
	return keepsBytes(row) ? [now] : [{ key: birth, value: null }, now];
}

/** A copy of bytes that would otherwise keep a much larger body in memory. */
function ownBytes(raw: Buffer): Buffer {
	const { byteLength } = raw.buffer;
	return byteLength > Buffer.poolSize && byteLength > 2 * raw.length ? Buffer.from(raw) : raw;
}
