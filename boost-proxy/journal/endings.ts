// The ends of entries: an end comes in, it is remembered at once and written, and forgotten on disk too when its time
// is over. Which end it is, others say.

import type { Clock, Timer } from "../../shared/clock.ts";
import type { EndedEntry } from "../domain/journalEntry.ts";
import type { EndedEntries } from "./endedEntries.ts";
import type { RecordDisk } from "./recordDisk.ts";
import type { KeptEntry } from "./records.ts";

/** Ended ones forgotten at a time at most, so that no commit is large; and until the rest follows, in ms. */
const SWEEP_BATCH = 1_000;
const SWEEP_PAUSE_MS = 1_000;
/** Until the next sweep at most, in ms: timers have a largest delay. */
const SWEEP_MAX_MS = 24 * 3600 * 1000;
const DONE = Promise.resolve();

interface EndingsOptions {
	/** How long ended ones are remembered, in ms. */
	readonly keepMs: number;
	/** How long a mined one can be opened again, in ms. */
	readonly reorgMs: number;
}

interface EndingsDependencies {
	/** Filled with what was on disk. */
	readonly entries: EndedEntries;
	readonly disk: RecordDisk;
	readonly clock: Clock;
}

/** What ended, in memory and on disk. Its timer runs from the start to {@link close}. */
export class Endings {
	readonly #options: EndingsOptions;
	readonly #entries: EndedEntries;
	readonly #disk: RecordDisk;
	readonly #clock: Clock;
	#sweeping: { readonly at: number; readonly timer: Timer } | null = null;
	#closed = false;

	constructor(options: EndingsOptions, dependencies: EndingsDependencies) {
		this.#options = options;
		this.#entries = dependencies.entries;
		this.#disk = dependencies.disk;
		this.#clock = dependencies.clock;
		this.#sweepLater();
	}

	get(hash: string): EndedEntry | undefined {
		return this.#entries.get(hash);
	}

	untold(): Iterable<EndedEntry> {
		return this.#entries.untold();
	}

	/** Mined ones that can be opened again, as they were, the first to end first. */
	mined(): ReturnType<EndedEntries["mined"]> {
		return this.#entries.mined();
	}

	/** Ends one; `was`: what it was, where it is mined. */
	end(ended: Omit<EndedEntry, "endedAt">, was: KeptEntry | null): Promise<void> {
		const { hash, from, nonce, path, address, ending, untold } = ended;
		return this.#save(
			{ hash, from, nonce, path, address, ending, endedAt: this.#clock.now(), untold: [...new Set(untold)] },
			ending === "mined" ? was : null,
		);
	}

	/**
	 * One that has ended ends again. The first word stays, but for `expired` and `dropped`, which give way to any other;
	 * who is untold is added.
	 */
	endAgain(ended: EndedEntry, { ending, untold }: Pick<EndedEntry, "ending" | "untold">): Promise<void> {
		const givesWay = ended.ending === "expired" || ended.ending === "dropped";
		const all = [...new Set([...ended.untold, ...untold])];
		if (givesWay && ending !== ended.ending) return this.end({ ...ended, ending, untold: all }, null);
		return all.length === ended.untold.length ? DONE : this.#save({ ...ended, untold: all }, null);
	}

	/** One less who must hear of it. */
	told(ended: EndedEntry, by: EndedEntry["untold"][number]): Promise<void> {
		if (!ended.untold.includes(by)) return DONE;
		return this.#save({ ...ended, untold: ended.untold.filter((name) => name !== by) }, null);
	}

	/** Forgets it in memory: what is written of its hash next takes its place on disk. */
	takeOut(hash: string): void {
		this.#entries.delete(hash);
	}

	/** Takes a mined one out, and answers what it was; null where that is gone, or too long ago. */
	takeMined(hash: string): KeptEntry | null {
		const was = this.#entries.was(hash);
		const endedAt = this.#entries.get(hash)?.endedAt ?? 0;
		if (was === null || this.#clock.now() - endedAt > this.#options.reorgMs) return null;
		this.#entries.delete(hash);
		return was;
	}

	close(): void {
		this.#closed = true;
		this.#sweeping?.timer.cancel();
	}

	#save(ended: EndedEntry, was: KeptEntry | null): Promise<void> {
		const out = this.#entries.set(ended, was);
		this.#sweepLater();
		if (out !== null) {
			const removed = this.#disk.save(out, null);
			// It may have had to make room itself.
			if (out === ended.hash) return removed;
			forgetFault(removed);
		}
		return this.#disk.save(ended.hash, this.#entries.stateOf(ended));
	}

	#sweepLater(): void {
		if (this.#closed) return;
		const { keepMs, reorgMs } = this.#options;
		const { ended, mined } = this.#entries.earliest;
		const due = Math.min(
			ended === null ? Number.POSITIVE_INFINITY : ended + keepMs,
			mined === null ? Number.POSITIVE_INFINITY : mined + reorgMs,
		);
		if (due === Number.POSITIVE_INFINITY) return;
		const now = this.#clock.now();
		const at = Math.min(Math.max(due, now + SWEEP_PAUSE_MS), now + SWEEP_MAX_MS);
		if (this.#sweeping !== null && this.#sweeping.at <= at) return;
		this.#sweeping?.timer.cancel();
		this.#sweeping = { at, timer: this.#clock.after(at - now, () => this.#sweep()) };
	}

	/** Drops the bytes of what is mined for good, and forgets what ended long ago. */
	#sweep(): void {
		this.#sweeping = null;
		const { keepMs, reorgMs } = this.#options;
		const now = this.#clock.now();
		for (const ended of this.#entries.closeUntil(now - reorgMs, SWEEP_BATCH)) {
			forgetFault(this.#disk.save(ended.hash, this.#entries.stateOf(ended)));
		}
		for (const hash of this.#entries.forgetUntil(now - keepMs, SWEEP_BATCH)) {
			forgetFault(this.#disk.save(hash, null));
		}
		this.#sweepLater();
	}
}

/** Nobody waits for these: a write that fails is counted by the disk, and done again. */
function forgetFault(written: Promise<void>): void {
	written.catch(() => {});
}
