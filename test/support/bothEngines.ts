// A store on both engines at once, for relays and boosts in a test's own process: writes to LMDB and to PostgreSQL,
// reads from both, and fails the test run where they differ.

import { isDeepStrictEqual } from "node:util";
import { type Clock, systemClock } from "../../shared/clock.ts";
import { openStore } from "../../shared/kv/openStore.ts";
import type { Change, SharedStore } from "../../shared/kv/port.ts";
import { databaseOf } from "./engine.ts";

type Entry = readonly [string, Buffer];

/**
 * The database's time: a real one, whatever becomes of a test's clock, that lasts ten times as long. A disk may stall for
 * seconds on a busy machine, and what a relay does then is tested elsewhere.
 */
const PATIENT_CLOCK: Clock = {
	now: () => systemClock.now(),
	monotonic: () => systemClock.monotonic() / 10,
	after: (ms, fn) => systemClock.after(ms * 10, fn),
};

/** As {@link openStore}, on both; the database's part is found by DATA_DIR. On PostgreSQL alone where there is a URL. */
export const openBoth: typeof openStore = async (process, settings, dependencies) => {
	if (settings.DATABASE_URL !== undefined) return openStore(process, settings, dependencies);
	const lmdb = await openStore(process, settings, dependencies);
	const patient = { ...dependencies, clock: PATIENT_CLOCK };
	try {
		const DATABASE_URL = await databaseOf(settings.DATA_DIR);
		return new BothEngines(lmdb, await openStore(process, { ...settings, DATABASE_URL }, patient), endRun);
	} catch (thrown) {
		await lmdb.close();
		throw thrown;
	}
};

/** Whoever asked may catch what is thrown: it is thrown where nobody can. */
function endRun(fault: Error): void {
	setImmediate(() => {
		throw fault;
	});
}

/** One store that is two; `onDifference` is told where they do not hold the same. */
export class BothEngines implements SharedStore {
	readonly #lmdb: SharedStore;
	readonly #postgres: SharedStore;
	readonly #onDifference: (fault: Error) => void;
	readonly #writing = new Set<Promise<unknown>>();
	#writes = 0;

	constructor(lmdb: SharedStore, postgres: SharedStore, onDifference: (fault: Error) => void) {
		this.#lmdb = lmdb;
		this.#postgres = postgres;
		this.#onDifference = onDifference;
	}

	get isHeld(): boolean {
		return this.#postgres.isHeld;
	}

	get(key: string): Promise<Buffer | null> {
		return this.#same(key, async (kv) => {
			const value = await kv.get(key);
			// The engine's buffer may be its own memory.
			return value === null ? null : Buffer.from(value);
		});
	}

	async *range(start: string, end: string, limit?: number): AsyncGenerator<Entry> {
		yield* await this.#same(`${start} to ${end}`, async (kv) => {
			const entries: Entry[] = [];
			for await (const [key, value] of kv.range(start, end, limit)) entries.push([key, Buffer.from(value)]);
			return entries;
		});
	}

	async write(changes: readonly Change[]): Promise<void> {
		this.#writes += 1;
		const both = Promise.all([this.#lmdb.write(changes), this.#postgres.write(changes)]);
		const settled = both.catch(() => {}).finally(() => this.#writing.delete(settled));
		this.#writing.add(settled);
		await both;
	}

	async close(): Promise<void> {
		await Promise.all([this.#lmdb.close(), this.#postgres.close()]);
	}

	/** Reads both until nothing is written meanwhile, or they say the same. */
	async #same<T>(what: string, read: (kv: SharedStore) => Promise<T>): Promise<T> {
		for (;;) {
			const writes = this.#writes;
			const isQuiet = this.#writing.size === 0;
			const [lmdb, postgres] = await Promise.all([read(this.#lmdb), read(this.#postgres)]);
			if (isDeepStrictEqual(lmdb, postgres)) return postgres;
			if (isQuiet && writes === this.#writes) {
				const fault = new Error(`LMDB and PostgreSQL do not hold the same: ${what}`);
				this.#onDifference(fault);
				throw fault;
			}
			await Promise.all(this.#writing);
		}
	}
}
