// The archive: rows that ended, on disk. Memory only has the set of their hashes, a few bytes each.
// A row is looked up by its hash. To be dropped, it is found by its kind and the time of its end.

import { randomInt } from "node:crypto";
import { archivedKey, hashIn, keysByTime } from "../../shared/kv/archive.ts";
import { type KeyValueStore, prefixRange, type SharedStore } from "../../shared/kv/port.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { Row } from "../domain/row.ts";
import { readArchived } from "./readRows.ts";
import { BY_TIME, ENDED, type EndedKind } from "./records.ts";

/**
 * Number of hex digits that identify a hash: 52 bits, which a number holds. Two of 200,000 agree
 * once in 200,000 processes.
 */
const DIGITS = 13;

export interface ArchiveDependencies {
	readonly kv: KeyValueStore & Pick<SharedStore, "accounts">;
	readonly log: Logger;
	/** Called for each failed read. */
	readonly onFault?: () => void;
}

/** Only reads. The journal writes ends and deletions with the rest of the row. */
export class Archive {
	readonly #dependencies: ArchiveDependencies;
	/** All rows that ended, including those that are not settled yet. */
	readonly #hashes = new Set<number>();
	/**
	 * Which digits of a hash count. Nobody knows them, so nobody can make a transaction that collides
	 * with another one.
	 */
	readonly #from = 2 + randomInt(64 - DIGITS);
	#isFailing = false;

	constructor(dependencies: ArchiveDependencies) {
		this.#dependencies = dependencies;
	}

	/**
	 * Reads which rows there are, without reading the rows. Rejects if the store fails. May be called
	 * again, if another process has ended rows.
	 */
	async open(): Promise<void> {
		for await (const [key] of this.#dependencies.kv.range(...prefixRange(BY_TIME))) this.add(hashIn(key));
	}

	/** Number of ended rows. */
	get size(): number {
		return this.#hashes.size;
	}

	/** How many ended rows there are beyond `max`. Other processes may have dropped some. */
	async excess(max: number): Promise<number> {
		const { accounts } = this.#dependencies.kv;
		const own = this.size - max;
		return own <= 0 || accounts === undefined ? own : (await accounts.count(BY_TIME)) - max;
	}

	/** Whether a row of this hash has ended. */
	has(hash: string): boolean {
		return this.#hashes.has(this.#known(hash));
	}

	/** A row has ended. */
	add(hash: string): void {
		this.#hashes.add(this.#known(hash));
	}

	/** A row is open again, or dropped. */
	delete(hash: string): void {
		this.#hashes.delete(this.#known(hash));
	}

	#known(hash: string): number {
		return Number.parseInt(hash.slice(this.#from, this.#from + DIGITS), 16);
	}

	/**
	 * The settled row of a hash; null if there is none that is readable. Rejects if the store fails.
	 */
	async read(hash: string): Promise<Row | null> {
		const value = await this.#reading(this.#dependencies.kv.get(archivedKey(hash)));
		return value === null ? null : readArchived(hash, value, this.#dependencies.log);
	}

	/**
	 * Keys of the index by time, oldest first, of rows that ended before `until` (ms since the
	 * epoch); null: of all rows.
	 */
	oldest(kind: EndedKind, until: number | null, limit: number): Promise<readonly string[]> {
		return this.#reading(keysByTime(this.#dependencies.kv, ENDED[kind], { until }, limit));
	}

	/** The same for rows that ended at `from` or later, or before the chain's time was known. */
	latest(kind: EndedKind, from: number, limit: number): Promise<readonly string[]> {
		return this.#reading(keysByTime(this.#dependencies.kv, ENDED[kind], { from }, limit));
	}

	/** Removes keys of the index that belong to no row's end. */
	discard(keys: readonly string[]): Promise<void> {
		return this.#dependencies.kv.write(keys.map((key) => ({ key, value: null })));
	}

	async #reading<T>(reading: Promise<T>): Promise<T> {
		const { log, onFault } = this.#dependencies;
		try {
			const read = await reading;
			this.#isFailing = false;
			return read;
		} catch (thrown) {
			if (!this.#isFailing) log.error("could not read the journal", { fault: safeError(thrown) });
			this.#isFailing = true;
			onFault?.();
			throw thrown;
		}
	}
}
