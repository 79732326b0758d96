// Groups writes into common commits, since each commit costs a flush of the disk. A commit has the
// writes of one turn of the event loop, and those that arrive while a commit is running.

import { type Clock, nextTurn, SLICE_MS, settled, systemClock } from "../clock.ts";
import type { Change } from "./port.ts";

/** Limits of one commit, so that none takes long; further writes wait for the next one. */
const MAX_CHANGES = 2_000;
const MAX_BYTES = 1024 * 1024;
/** See KeyValueStore. */
const MAX_KEY_BYTES = 500;
/**
 * Writes whose callers continue before the time is read. Each caller then works for some tenths of
 * a millisecond.
 */
const SETTLED_AT_ONCE = 10;

/** Changes that are applied all or not at all. */
export interface Changes {
	readonly changes: readonly Change[];
}

/** Applies writes; see the constructor of {@link GroupCommit}. */
type Commit<W> = (writes: readonly W[], since: number) => Promise<ReadonlyMap<W, Error> | undefined>;

interface Waiting<W> {
	/** When it was given, in monotonic ms. */
	readonly since: number;
	readonly write: W;
	readonly resolve: () => void;
	readonly reject: (thrown: unknown) => void;
}

export class GroupCommit<W extends Changes = Changes> {
	readonly #commit: Commit<W>;
	readonly #clock: Clock;
	#waiting: Waiting<W>[] = [];
	#running: Promise<void> | null = null;
	/** Ends when the promises of all commits so far are settled, in order. */
	#telling = Promise.resolve();

	/**
	 * `commit` applies writes in one transaction, and resolves when they are on disk. It rejects if
	 * none is applied, and resolves to the errors of those that are not; undefined: none. `since`:
	 * when the first of them was given, in monotonic ms.
	 */
	constructor(commit: Commit<W>, clock: Clock = systemClock) {
		this.#commit = commit;
		this.#clock = clock;
	}

	/**
	 * Resolves when the changes are committed; rejects if their commit failed or a key is invalid.
	 */
	write(write: W): Promise<void> {
		const { changes } = write;
		if (changes.length === 0) return Promise.resolve();
		// Checked here, since an engine that rejects a key might keep the changes before it.
		const bad = changes.find(({ key }) => key === "" || Buffer.byteLength(key) > MAX_KEY_BYTES);
		if (bad !== undefined) return Promise.reject(new RangeError(`a key has 1 to ${MAX_KEY_BYTES} bytes`));
		return new Promise((resolve, reject) => {
			this.#waiting.push({ since: this.#clock.monotonic(), write, resolve, reject });
			this.#running ??= this.#run();
		});
	}

	/** Resolves when all writes have been committed or have failed. */
	async idle(): Promise<void> {
		while (this.#running !== null) await this.#running;
		await this.#telling;
	}

	async #run(): Promise<void> {
		while (this.#waiting.length > 0) {
			// Collects all writes of this turn of the event loop.
			await nextTurn();
			const group = this.#take();
			const since = group[0]?.since ?? this.#clock.monotonic();
			const writes = group.map(({ write }) => write);
			const faultOf = await this.#commit(writes, since).then(
				(faults) => (write: W) => faults?.get(write) ?? null,
				(thrown: unknown) => () => thrown,
			);
			// The next commit does not wait for that.
			this.#telling = this.#telling.then(() => tell(group, faultOf, this.#clock));
		}
		this.#running = null;
	}

	#take(): readonly Waiting<W>[] {
		let changes = 0;
		let bytes = 0;
		let count = 0;
		for (const { write } of this.#waiting) {
			changes += write.changes.length;
			bytes += write.changes.reduce((sum, { value }) => sum + (value?.byteLength ?? 0), 0);
			if (count > 0 && (changes > MAX_CHANGES || bytes > MAX_BYTES)) break;
			count += 1;
		}
		return this.#waiting.splice(0, count);
	}
}

/**
 * Settles the promises of one commit, and yields to other work in between. Hundreds at once would
 * block everything else.
 */
async function tell<W>(
	group: readonly Waiting<W>[],
	faultOf: (write: W) => unknown,
	clock: Clock,
): Promise<void> {
	let begun = clock.monotonic();
	for (const [i, { write, resolve, reject }] of group.entries()) {
		const fault = faultOf(write);
		if (fault === null) resolve();
		else reject(fault);
		if (i % SETTLED_AT_ONCE !== SETTLED_AT_ONCE - 1) continue;
		await settled();
		if (clock.monotonic() - begun < SLICE_MS) continue;
		await nextTurn();
		begun = clock.monotonic();
	}
}
