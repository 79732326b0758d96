// The ended rows in memory: those with work left, and the latest settled ones. All settled rows are
// archived.

import type { Clock } from "../../shared/clock.ts";
import { MultiMap } from "../../shared/multiMap.ts";
import { cancelsPendingAt, isSettled, keepsBytes, type Row } from "../domain/row.ts";

/**
 * How long a row stays after its end, in ms: longer than any request takes. A send in progress may
 * need the row, to cancel the transaction at that upstream, too.
 */
const STAY_MS = 120_000;

export interface EndedRowsOptions {
	/** The number of settled rows that stay regardless of age. */
	readonly maxRecent: number;
}

export interface EndedRowsDependencies {
	readonly clock: Clock;
	/** Whether a row must stay: a request uses it, or it is not on disk yet. */
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
	/** All ended rows in memory by their senders, and the sender of each. */
	readonly #bySender = new MultiMap<string>();
	readonly #senders = new Map<string, string>();
	/** Settled rows with the earliest time to leave (monotonic ms), in the order of arrival. */
	readonly #settled = new Map<string, number>();

	constructor(options: EndedRowsOptions, dependencies: EndedRowsDependencies) {
		this.#maxRecent = options.maxRecent;
		this.#dependencies = dependencies;
	}

	/** Stores a row that ended or changed since; null: the row of this hash is live, or dropped. */
	put(hash: string, row: Row | null): void {
		this.#index(hash, row?.from ?? null);
		if (row !== null && cancelsPendingAt(row).length > 0) this.pendingCancels.add(hash);
		else this.pendingCancels.delete(hash);
		if (keepsBytes(row)) this.reopenable.add(hash);
		else this.reopenable.delete(hash);
		this.#settled.delete(hash);
		if (row !== null && isSettled(row))
			this.#settled.set(hash, this.#dependencies.clock.monotonic() + STAY_MS);
	}

	/** The hashes of a sender's rows. */
	of(sender: string): ReadonlySet<string> {
		return this.#bySender.get(sender);
	}

	/** A settled row was read from the archive. It stays at least until the next sweep. */
	recalled({ hash, from }: Row): void {
		this.#index(hash, from);
		this.#settled.set(hash, 0);
	}

	#index(hash: string, sender: string | null): void {
		const before = this.#senders.get(hash);
		if (before === (sender ?? undefined)) return;
		if (before !== undefined) this.#bySender.delete(before, hash);
		if (sender === null) this.#senders.delete(hash);
		else {
			this.#senders.set(hash, sender);
			this.#bySender.add(sender, hash);
		}
	}

	/** Removes the oldest settled rows beyond the bound, if they may leave. */
	makeRoom(): void {
		const { clock, isNeeded, onLeave } = this.#dependencies;
		for (const [hash, until] of this.#settled) {
			if (this.#settled.size <= this.#maxRecent) return;
			if (until > clock.monotonic() || isNeeded(hash)) continue;
			this.#settled.delete(hash);
			this.#index(hash, null);
			onLeave(hash);
		}
	}
}
