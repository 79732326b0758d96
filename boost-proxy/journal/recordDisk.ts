// The journal's records on their way to the store and back: states come in, promises that they are on disk go out,
// and raw bytes. What could not be written is kept, and written again until it could. It knows no rule of the journal.

import { LRUCache } from "lru-cache";
import type { Clock, Timer } from "../../shared/clock.ts";
import type { Change, KeyValueStore } from "../../shared/kv/port.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { encodeBirth, encodeState, type KeptState, keepsBytes, RECORD_KEYS, rawOfBirth } from "./records.ts";

/** Between attempts to write again what could not be written, in ms. */
const RETRY_MS = 1_000;
/** Records that are written again at a time, once a first one came through. */
const RETRY_BATCH = 100;
/** What a cached transaction takes beside its bytes, about. */
const CACHE_OVERHEAD_BYTES = 300;

/** The latest state of a hash that is not known to be on disk. */
interface Unwritten {
	/** The number of the write that it is in, or was in. */
	write: number;
	readonly state: KeptState | null;
	/** Bytes that nobody else has; null where they are on disk, or of no use. */
	readonly raw: Buffer | null;
}

interface RecordDiskOptions {
	/** Bytes of transactions kept in memory beside the disk. */
	readonly cacheBytes: number;
	/** Removals that could not be written and are remembered nevertheless. */
	readonly maxUnwritten: number;
}

interface RecordDiskDependencies {
	readonly kv: KeyValueStore;
	readonly clock: Clock;
	readonly log: Logger;
	/** Called for each write that failed. */
	readonly onFault: () => void;
}

/**
 * The records of hashes. Whole ones are written each time, in the order of the calls, so that the last write that came
 * through leaves what was the newest then, whatever failed before it.
 */
export class RecordDisk {
	readonly #options: RecordDiskOptions;
	readonly #with: RecordDiskDependencies;
	readonly #cache: LRUCache<string, Buffer>;
	readonly #unwritten = new Map<string, Unwritten>();
	/** Hashes of which the latest write failed. */
	readonly #failed = new Set<string>();
	#isFailing = false;
	/** A removal was given up: there may be old records of any hash. */
	#isUntidy = false;
	#writes = 0;
	#inFlight = 0;
	#retry: Timer | null = null;
	#retrying: Promise<void> | null = null;
	#closed = false;
	#onIdle: (() => void) | null = null;

	constructor(options: RecordDiskOptions, dependencies: RecordDiskDependencies) {
		this.#options = options;
		this.#with = dependencies;
		this.#cache = new LRUCache({
			maxSize: options.cacheBytes,
			sizeCalculation: (raw) => raw.length + CACHE_OVERHEAD_BYTES,
		});
	}

	/** False from a failed write until everything is on disk again. */
	get isDurable(): boolean {
		return !this.#isFailing;
	}

	/** Hashes whose latest state is in memory alone. */
	get unwritten(): number {
		return this.#unwritten.size;
	}

	/** Writes a hash that nothing was known of, with its bytes. */
	create(hash: string, state: KeptState, raw: Buffer): Promise<void> {
		const isNew = !this.#isUntidy && !this.#unwritten.has(hash);
		return this.#write(hash, state, ownBytes(raw), isNew);
	}

	/** Writes what is known of a hash; null: nothing any more. `raw`: bytes that are not on disk yet. */
	save(hash: string, state: KeptState | null, raw: Buffer | null = null): Promise<void> {
		if (!keepsBytes(state)) {
			this.#cache.delete(hash);
			return this.#write(hash, state, null, false);
		}
		const bytes = raw === null ? (this.#unwritten.get(hash)?.raw ?? null) : ownBytes(raw);
		return this.#write(hash, state, bytes, false);
	}

	/** The bytes of a hash that keeps them; null where they are not there. Rejects with the store's fault. */
	async raw(hash: string): Promise<Buffer | null> {
		const kept = this.#unwritten.get(hash)?.raw ?? this.#cache.get(hash);
		if (kept !== undefined) return kept;
		const birth = await this.#with.kv.get(RECORD_KEYS.birth + hash);
		if (birth === null) return this.#unwritten.get(hash)?.raw ?? null;
		const raw = rawOfBirth(hash, birth);
		this.#cache.set(hash, raw);
		return raw;
	}

	/** Tries once more what could not be written, and waits for all writes under way. */
	async close(): Promise<void> {
		this.#closed = true;
		this.#retry?.cancel();
		await this.#retrying;
		await this.#writeAgain();
		if (this.#inFlight > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
	}

	#write(hash: string, state: KeptState | null, raw: Buffer | null, isNew: boolean): Promise<void> {
		const write = ++this.#writes;
		this.#forget(hash);
		this.#unwritten.set(hash, { write, state, raw });
		this.#inFlight += 1;
		return this.#with.kv.write(changes(hash, state, raw, isNew)).then(
			() => this.#cameThrough(hash, write),
			(thrown: unknown) => {
				this.#failedFor(hash, write, thrown);
				throw thrown;
			},
		);
	}

	/** What was to be written is out of date, or on disk. */
	#forget(hash: string): Unwritten | undefined {
		const unwritten = this.#unwritten.get(hash);
		if (unwritten === undefined) return undefined;
		this.#unwritten.delete(hash);
		this.#failed.delete(hash);
		return unwritten;
	}

	#cameThrough(hash: string, write: number): void {
		if (this.#unwritten.get(hash)?.write === write) {
			const raw = this.#forget(hash)?.raw ?? null;
			if (raw !== null) this.#cache.set(hash, raw);
		}
		if (this.#isFailing) {
			if (this.#failed.size > 0) this.#startRetry();
			else {
				this.#isFailing = false;
				this.#retry?.cancel();
				this.#retry = null;
				this.#with.log.info("the journal is on disk again");
			}
		}
		this.#landed();
	}

	#failedFor(hash: string, write: number, thrown: unknown): void {
		const unwritten = this.#unwritten.get(hash);
		// Else a later write of it is under way, and decides.
		if (unwritten?.write === write) {
			if (unwritten.state === null && this.#unwritten.size > this.#options.maxUnwritten) {
				this.#isUntidy = true;
				this.#forget(hash);
			} else this.#failed.add(hash);
		}
		if (!this.#isFailing) {
			this.#isFailing = true;
			this.#with.log.error("the journal can't be written: it is kept in memory alone", {
				fault: safeError(thrown),
			});
		}
		if (this.#retry === null && this.#retrying === null && !this.#closed) {
			this.#retry = this.#with.clock.after(RETRY_MS, () => this.#startRetry());
		}
		this.#with.onFault();
		this.#landed();
	}

	#landed(): void {
		this.#inFlight -= 1;
		if (this.#inFlight === 0) this.#onIdle?.();
	}

	#startRetry(): void {
		if (this.#retrying !== null || this.#closed) return;
		this.#retry?.cancel();
		this.#retry = null;
		this.#retrying = this.#writeAgain().then(() => {
			this.#retrying = null;
			// Later ones may have failed meanwhile, or nothing else is written that would tell.
			if (this.#isFailing && !this.#closed) {
				this.#retry = this.#with.clock.after(RETRY_MS, () => this.#startRetry());
			}
		});
	}

	/** Writes what failed again: one, and when that came through the others, until one fails. Never rejects. */
	async #writeAgain(): Promise<void> {
		for (let count = 1; this.#failed.size > 0; count = RETRY_BATCH) {
			const writes: Promise<void>[] = [];
			for (const hash of this.#failed) {
				const unwritten = this.#unwritten.get(hash);
				if (unwritten === undefined) continue;
				// It fails again at the end of the line: no record holds up the others.
				writes.push(this.#write(hash, unwritten.state, unwritten.raw, false));
				if (writes.length >= count) break;
			}
			const results = await Promise.allSettled(writes);
			if (results.some(({ status }) => status === "rejected")) return;
		}
	}
}

function changes(hash: string, state: KeptState | null, raw: Buffer | null, isNew: boolean): Change[] {
	const birth = RECORD_KEYS.birth + hash;
	const later = RECORD_KEYS.state + hash;
	if (state === null)
		return [
			{ key: birth, value: null },
			{ key: later, value: null },
		];
	if (raw !== null) {
		const born = { key: birth, value: encodeBirth(state, raw) };
		return isNew ? [born] : [born, { key: later, value: null }];
	}
	const now = { key: later, value: encodeState(state) };
	return keepsBytes(state) ? [now] : [{ key: birth, value: null }, now];
}

/** Bytes that are a small part of a large body hold all of it in memory: then a copy. */
function ownBytes(raw: Buffer): Buffer {
	const { byteLength } = raw.buffer;
	return byteLength > Buffer.poolSize && byteLength > 2 * raw.length ? Buffer.from(raw) : raw;
}
