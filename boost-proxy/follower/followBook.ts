// What the follower remembers of each open entry beside the journal, in the order in which the relay was asked. In memory
// alone: after a restart it is found out again.

import type { OpenEntry } from "../domain/journalEntry.ts";
import type { Journal } from "../domain/ports.ts";

/** Times are of the clock's monotonic reading, in ms. */
export interface Watch {
	/** Tells one life of a hash from the next. */
	readonly receivedAt: number;
	/** The relay was asked; −∞ where it never was. */
	askedAt: number;
	/** The relay said something of it, or it is new. */
	heardAt: number;
	/** How often in a row the relay said that it has no record. */
	nulls: number;
	/** How often it got it again because of that. */
	losses: number;
	/** The chain was asked; −∞ where it never was. */
	chainAt: number;
	/** How often in a row its nonce was used and no receipt there. */
	used: number;
	/** The fallback's status page was asked; −∞ where it never was. */
	pageAt: number;
	/** How often in a row the fallback's page knew nothing of it. */
	blanks: number;
	/** How often it was lost there. */
	pageLosses: number;
}

/** The watches of what is open. */
export class FollowBook {
	readonly #journal: Journal;
	readonly #clock: { monotonic(): number };
	readonly #watches = new Map<string, Watch>();

	constructor(dependencies: { readonly journal: Journal; readonly clock: { monotonic(): number } }) {
		this.#journal = dependencies.journal;
		this.#clock = dependencies.clock;
	}

	/** The watch of an open entry. */
	of(entry: OpenEntry): Watch {
		const { hash, receivedAt } = entry;
		const known = this.#watches.get(hash);
		if (known !== undefined && known.receivedAt === receivedAt) return known;
		const never = Number.NEGATIVE_INFINITY;
		const watch: Watch = {
			receivedAt,
			...{ askedAt: never, chainAt: never, pageAt: never },
			heardAt: this.#clock.monotonic(),
			...{ nulls: 0, losses: 0, used: 0, blanks: 0, pageLosses: 0 },
		};
		this.#watches.set(hash, watch);
		return watch;
	}

	get size(): number {
		return this.#watches.size;
	}

	/** Begins a watch for each open entry that has none, and ends those of what is not open any more. */
	sync(): void {
		for (const entry of this.#journal.open()) this.of(entry);
		if (this.#watches.size <= this.#journal.depth) return;
		for (const hash of this.#watches.keys()) if (this.#journal.get(hash) === null) this.#watches.delete(hash);
	}

	/** Up to `limit` entries that `isMeant`, those first that were not asked for the longest. They count as asked now. */
	next(limit: number, isMeant: (entry: OpenEntry, watch: Watch) => boolean): readonly OpenEntry[] {
		const taken: OpenEntry[] = [];
		for (const [hash, watch] of this.#watches) {
			if (taken.length >= limit) break;
			const entry = this.#journal.get(hash);
			if (entry === null) this.#watches.delete(hash);
			else if (isMeant(entry, watch)) taken.push(entry);
		}
		for (const entry of taken) {
			const watch = this.of(entry);
			this.#watches.delete(entry.hash);
			this.#watches.set(entry.hash, watch);
			watch.askedAt = this.#clock.monotonic();
		}
		return taken;
	}
}
