// Drops data of ended rows that is no longer needed, every ten seconds while there are any. It
// drops the bytes of rows that can't be reopened any more. It drops rows that ended long ago by
// chain and machine, and the oldest ones beyond the limit.

import type { Clock, Timer } from "../../shared/clock.ts";
import { hashIn } from "../../shared/kv/archive.ts";
import { isLive, type Row, stripRow } from "../domain/row.ts";
import type { Archive } from "../journal/archive.ts";
import { ENDED_KINDS, type EndedKind, indexKey } from "../journal/records.ts";

export interface SweeperOptions {
	/** How long ended rows are kept, in ms. */
	readonly endedKeepMs: number;
	/** The maximum number of ended rows. */
	readonly maxEnded: number;
	/** How long a row that the chain ended can be reopened, in ms. */
	readonly reorgMs: () => number;
	/** Whether other boost instances have ended rows, too, which are not in memory here. */
	readonly isShared: boolean;
}

export interface SweeperDependencies {
	readonly archive: Archive;
	readonly clock: Clock;
	/** In ms since the epoch; null until it is known. */
	readonly chainTime: { now(): number | null };
	/** The row of a hash, if it is in memory. */
	readonly get: (hash: string) => Row | null;
	/** Mined rows that can be reopened, in the order of their ends. */
	readonly reopenable: () => Iterable<Row>;
	/** Removes settled rows from memory, if there are too many. */
	readonly leaveMemory: () => void;
	/** Replaces a row; null drops it. */
	readonly replace: (before: Row, row: Row | null) => void;
	/** Whether the latest change of a hash has reached the disk. */
	readonly written: (hash: string) => Promise<boolean> | true;
}

/** How often, in ms. */
const SWEEP_MS = 10_000;
/** The maximum number of rows of a kind that are dropped for their age at a time. */
const SWEEP_BATCH = 1_000;
/** Delay before the next sweep, in ms, if more rows may be due than one batch. */
const SWEEP_PAUSE_MS = 1_000;
/** Number of rows read and changed at a time, so that no commit is large. */
const AT_ONCE = 200;

export class Sweeper {
	readonly #options: SweeperOptions;
	readonly #dependencies: SweeperDependencies;
	#timer: Timer | null = null;
	#running: Promise<void> | null = null;
	#closed = false;

	constructor(options: SweeperOptions, dependencies: SweeperDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
	}

	/** Must be called when a row has ended, so that a sweep follows. */
	wake(ms = SWEEP_MS): void {
		const { archive, clock } = this.#dependencies;
		if (this.#closed || this.#timer !== null || this.#running !== null || archive.size === 0) return;
		this.#timer = clock.after(ms, () => {
			this.#timer = null;
			this.#running = this.#sweep()
				// The disk fails, as the archive has logged. Due rows are dropped once it works again.
				.catch(() => false)
				.then((isMoreDue) => {
					this.#running = null;
					this.wake(isMoreDue ? SWEEP_PAUSE_MS : SWEEP_MS);
				});
		});
	}

	/** Waits for a sweep in progress. */
	async close(): Promise<void> {
		this.#closed = true;
		this.#timer?.cancel();
		await this.#running;
	}

	/** Returns whether more rows are due. */
	async #sweep(): Promise<boolean> {
		const chainNow = this.#dependencies.chainTime.now();
		let dropped = 0;
		this.#dependencies.leaveMemory();
		if (chainNow !== null) {
			const machineNow = this.#dependencies.clock.now();
			const [now, latest] = [Math.min(chainNow, machineNow), Math.max(chainNow, machineNow)];
			this.#stripFinal(now, latest);
			await this.#dateAnew(latest);
			for (const kind of ENDED_KINDS)
				dropped += await this.#drop(kind, now - this.#options.endedKeepMs + 1, SWEEP_BATCH);
		}
		// Rows that their users ended come after all others.
		for (const kind of ENDED_KINDS) {
			const excess = await this.#dependencies.archive.excess(this.#options.maxEnded);
			await this.#drop(kind, null, excess);
		}
		return dropped >= SWEEP_BATCH;
	}

	/** Drops the bytes of rows that can't be reopened any more. */
	#stripFinal(now: number, latest: number): void {
		const { reopenable, replace } = this.#dependencies;
		const due: Row[] = [];
		for (const row of reopenable()) {
			if (this.#isWronglyDated(row, latest)) continue;
			if (row.endedAt > now - this.#options.reorgMs() || due.length >= SWEEP_BATCH) break;
			due.push(row);
		}
		for (const row of due) replace(row, stripRow(row));
	}

	/** Whether it ended before the chain's time was known, or while a clock was ahead. */
	#isWronglyDated({ endedAt }: Row, latest: number): boolean {
		return endedAt === 0 || endedAt > latest + this.#options.reorgMs();
	}

	/**
	 * Corrects the time of wrongly dated rows, so that they are kept as long as any other from now
	 * on.
	 */
	async #dateAnew(latest: number): Promise<void> {
		const { archive, replace } = this.#dependencies;
		for (const kind of ENDED_KINDS) {
			const from = latest + this.#options.reorgMs();
			for (const row of await this.#rowsOf(await archive.latest(kind, from, AT_ONCE)))
				if (this.#isWronglyDated(row, latest)) replace(row, { ...row, endedAt: latest });
		}
	}

	/**
	 * Drops up to `most` rows that ended before `until`, the oldest first; null: regardless of their
	 * end. Returns how many.
	 */
	async #drop(kind: EndedKind, until: number | null, most: number): Promise<number> {
		const { archive, replace, written } = this.#dependencies;
		let dropped = 0;
		while (dropped < most && !this.#closed) {
			const keys = await archive.oldest(kind, until, Math.min(AT_ONCE, most - dropped));
			if (keys.length === 0) return dropped;
			const rows = await this.#rowsOf(keys);
			for (const row of rows) replace(row, null);
			dropped += rows.length;
			if (rows.length === 0 && this.#options.isShared) return dropped;
			// While they are on disk, they would be found again.
			const isWritten = await Promise.all(rows.map(({ hash }) => written(hash)));
			if (isWritten.includes(false)) return dropped;
		}
		return dropped;
	}

	/**
	 * The rows that these keys of the index belong to. Removes keys that belong to no row any more. A
	 * row without an archived record may not be settled at another boost instance.
	 */
	async #rowsOf(keys: readonly string[]): Promise<readonly Row[]> {
		const { archive, get } = this.#dependencies;
		const found = await Promise.all(keys.map((key) => get(hashIn(key)) ?? archive.read(hashIn(key))));
		const rows: Row[] = [];
		const outdated: string[] = [];
		for (const [i, key] of keys.entries()) {
			const hash = hashIn(key);
			// It may have changed while the others were read.
			const row = get(hash) ?? found[i] ?? null;
			if (row === null) archive.delete(hash);
			if (row !== null && !isLive(row) && indexKey(row) === key) rows.push(row);
			else if (row !== null || !this.#options.isShared) outdated.push(key);
		}
		if (outdated.length > 0) await archive.discard(outdated);
		return rows;
	}
}
