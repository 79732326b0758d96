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

interface Write {
	/** When it was given, in monotonic ms. */
	readonly since: number;
	readonly changes: readonly Change[];
	readonly resolve: () => void;
	readonly reject: (thrown: unknown) => void;
}

export class GroupCommit {
	readonly #commit: (changes: readonly Change[], since: number) => Promise<void>;
	readonly #clock: Clock;
	#waiting: Write[] = [];
	#running: Promise<void> | null = null;
	/** Ends when the promises of all commits so far are settled, in order. */
	#telling = Promise.resolve();

	/**
	 * `commit` applies all changes or none, and resolves when they are on disk. `since`: when the
	 * first of them was given, in monotonic ms.
	 */
	constructor(
		commit: (changes: readonly Change[], since: number) => Promise<void>,
		clock: Clock = systemClock,
	) {
		this.#commit = commit;
		this.#clock = clock;
	}

	/**
	 * Resolves when the changes are committed; rejects if their commit failed or a key is invalid.
	 */
	write(changes: readonly Change[]): Promise<void> {
		if (changes.length === 0) return Promise.resolve();
		// Checked here, since an engine that rejects a key might keep the changes before it.
		const bad = changes.find(({ key }) => key === "" || Buffer.byteLength(key) > MAX_KEY_BYTES);
		if (bad !== undefined) return Promise.reject(new RangeError(`a key has 1 to ${MAX_KEY_BYTES} bytes`));
		return new Promise((resolve, reject) => {
			this.#waiting.push({ since: this.#clock.monotonic(), changes, resolve, reject });
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
			const changes = group.flatMap((write) => write.changes);
			const fault = await this.#commit(changes, since).then(
				() => null,
				(thrown: unknown) => ({ thrown }),
			);
			// The next commit does not wait for that.
			this.#telling = this.#telling.then(() => tell(group, fault, this.#clock));
		}
		this.#running = null;
	}

	#take(): readonly Write[] {
		let changes = 0;
		let bytes = 0;
		let count = 0;
		for (const write of this.#waiting) {
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
async function tell(
	group: readonly Write[],
	fault: { readonly thrown: unknown } | null,
	clock: Clock,
): Promise<void> {
	let begun = clock.monotonic();
	for (const [i, { resolve, reject }] of group.entries()) {
		if (fault === null) resolve();
		else reject(fault.thrown);
		if (i % SETTLED_AT_ONCE !== SETTLED_AT_ONCE - 1) continue;
		await settled();
		if (clock.monotonic() - begun < SLICE_MS) continue;
		await nextTurn();
		begun = clock.monotonic();
	}
}
