// Whether a disk would take a write, asked before LMDB is: a folder comes in, a refusal goes out where it is full. LMDB
// must not see a write fail: its message of that overruns the heap (mdb.c, mdb_page_flush: two numbers that were never
// set are printed into 100 bytes), and sooner or later the process aborts.

import { open, stat, statfs, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../clock.ts";

/** The disk has no room; what was to be written is not. */
export class DiskFullError extends Error {
	readonly code = "DISK_FULL";
	constructor() {
		super("the disk of the data folder is full");
		this.name = "DiskFullError";
	}
}

/** Free bytes beside what is written: pages are copied before they are changed. */
const MIN_FREE_BYTES = 16 * 1024 * 1024;
/** So many times what is written must be free, too. */
const COPIES = 4;
/** For how long a look at the free space is good, in ms. */
const LOOK_MS = 100;
const TRIAL_BYTES = 64 * 1024;
const TRIAL_FILE = "trial";

/** The room on the disk of one store. */
export class DiskRoom {
	readonly #folder: string;
	readonly #file: string;
	readonly #clock: Clock;
	#lookedAt = Number.NEGATIVE_INFINITY;
	#hasFailed = false;

	/** `file`: of the store, in `folder`; a trial is as long, for limits of a file's size are full disks too. */
	constructor(folder: string, file: string, clock: Clock) {
		this.#folder = folder;
		this.#file = file;
		this.#clock = clock;
	}

	/** Resolves where a write of `bytes` may be tried. Throws {@link DiskFullError}, or what the system says. */
	async check(bytes = 0): Promise<void> {
		if (this.#hasFailed) await this.#try(bytes);
		const now = this.#clock.monotonic();
		if (now - this.#lookedAt < LOOK_MS && bytes * COPIES < MIN_FREE_BYTES / 2) return;
		const { bavail, bsize, blocks } = await statfs(this.#folder);
		// Some file systems tell nothing of their size.
		if (blocks > 0 && bavail * bsize < MIN_FREE_BYTES + bytes * COPIES) throw new DiskFullError();
		this.#lookedAt = now;
	}

	/** A write failed: the next one is tried with a plain file first. */
	failed(): void {
		this.#hasFailed = true;
		this.#lookedAt = Number.NEGATIVE_INFINITY;
	}

	async #try(bytes: number): Promise<void> {
		const path = join(this.#folder, TRIAL_FILE);
		const { size } = await stat(join(this.#folder, this.#file));
		const trial = await open(path, "w", 0o600);
		try {
			const length = TRIAL_BYTES + Math.min(bytes, MIN_FREE_BYTES);
			const { bytesWritten } = await trial.write(Buffer.alloc(length), 0, length, size);
			if (bytesWritten < length) throw new DiskFullError();
			await trial.sync();
			this.#hasFailed = false;
		} finally {
			await trial.close();
			await unlink(path);
		}
	}
}
