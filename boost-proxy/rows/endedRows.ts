// The ended rows that are in memory: those with something left to do, and of the settled ones, which are all archived, the latest.

import type { Clock } from "../../shared/clock.ts";
import { cancelsPendingAt, isSettled, keepsBytes, type Row } from "../domain/row.ts";

/**
 * How long a row stays after its end, in ms: longer than any request takes. What is on its way to an upstream meanwhile may need
 * it, to have it cancelled there, too.
 */
const STAY_MS = 120_000;

export interface EndedRowsOptions {
	/** The settled rows that stay however long ago they ended. */
	readonly maxRecent: number;
}

export interface EndedRowsDependencies {
	readonly clock: Clock;
	/** Whether a row must stay: a request is about it, or it is not on disk yet. */
	readonly isNeeded: (hash: string) => boolean;
	/** Called when a row leaves. */
	readonly onLeave: (hash: string) => void;
}

export class EndedRows {
	readonly #maxRecent: number;
	readonly #dependencies: EndedRowsDependencies;
	/** Rows that must still be cancelled at an upstream. */
	readonly pendingCancels = new Set<string>();
	/** Rows that the chain ended and that can be reopened, in the order of their ends. */
	readonly reopenable = new Set<string>();
	/** Settled rows, each with when it may leave (monotonic ms), in the order in which they came. */
	readonly #settled = new Map<string, number>();

	constructor(options: EndedRowsOptions, dependencies: EndedRowsDependencies) {
		this.#maxRecent = options.maxRecent;
		this.#dependencies = dependencies;
	}

	/** What ended, or changed since; null: the row of this hash is live, or dropped. */
	put(hash: string, row: Row | null): void {
		if (row !== null && cancelsPendingAt(row).length > 0) this.pendingCancels.add(hash);
		else this.pendingCancels.delete(hash);
		if (keepsBytes(row)) this.reopenable.add(hash);
		else this.reopenable.delete(hash);
		this.#settled.delete(hash);
		if (row !== null && isSettled(row))
			this.#settled.set(hash, this.#dependencies.clock.monotonic() + STAY_MS);
	}

	/** A settled row was read from the archive: it stays until the next sweep at least. */
	recalled(hash: string): void {
		this.#settled.set(hash, 0);
	}

	/** Those beyond the bound leave, the oldest first, if they may. */
	makeRoom(): void {
		const { clock, isNeeded, onLeave } = this.#dependencies;
		for (const [hash, until] of this.#settled) {
			if (this.#settled.size <= this.#maxRecent) return;
			if (until > clock.monotonic() || isNeeded(hash)) continue;
			this.#settled.delete(hash);
			onLeave(hash);
		}
	}
}
