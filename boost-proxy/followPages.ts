// What a fallback's status pages say of entries that it alone holds: a few pages at a time are read, and what its user
// ended there ends here. Whether something is mined is the chain's to say.

import type { Journal, Upstream } from "./domain/ports.ts";
import type { FollowBook } from "./followBook.ts";
import type { FollowEndings } from "./followEndings.ts";

export interface FollowPagesOptions {
	readonly slotMs: number;
	/** Of one page, in ms. */
	readonly deadlineMs: number;
}

export interface FollowPagesDependencies {
	readonly journal: Journal;
	readonly fallback: Upstream;
	readonly book: FollowBook;
	readonly endings: FollowEndings;
	readonly clock: { monotonic(): number };
}

/** Pages in one look: each is a request of its own, and limits are about us. */
const MAX_PAGES = 10;

/** Follows a fallback. */
export class FollowPages {
	readonly #options: FollowPagesOptions;
	readonly #with: FollowPagesDependencies;
	#stopped = false;

	constructor(options: FollowPagesOptions, dependencies: FollowPagesDependencies) {
		this.#options = options;
		this.#with = dependencies;
	}

	stop(): void {
		this.#stopped = true;
	}

	/** Reads the pages of those that were not asked for the longest, each once a slot at most. */
	async look(): Promise<void> {
		const { journal, fallback, book, endings, clock } = this.#with;
		const { slotMs, deadlineMs } = this.#options;
		// The others' pages don't say who ended it.
		if (fallback.dialect?.name !== "mevblocker") return;
		const now = clock.monotonic();
		const due: { readonly hash: string; readonly pageAt: number }[] = [];
		for (const entry of journal.open()) {
			if (entry.underWay || entry.holders.length !== 1 || entry.holders[0] !== "fallback") continue;
			const { pageAt } = book.of(entry);
			if (now - pageAt >= slotMs) due.push({ hash: entry.hash, pageAt });
		}
		if (due.length > MAX_PAGES) due.sort((one, other) => (one.pageAt < other.pageAt ? -1 : 1));
		for (const { hash } of due.slice(0, MAX_PAGES)) {
			const asked = journal.get(hash);
			if (this.#stopped || fallback.breaker.isOut) return;
			if (asked === null) continue;
			book.of(asked).pageAt = now;
			const ending = endingOf(await fallback.statusPage(hash, { deadlineMs, asker: null }));
			const entry = journal.get(hash);
			if (ending === null || entry === null || entry.underWay || entry.receivedAt !== asked.receivedAt)
				continue;
			endings.end(
				entry,
				ending,
				entry.holders.filter((name) => name !== "fallback"),
			);
		}
	}
}

/** A relay of ours tells the stage; another one's page says nothing here. */
function endingOf(page: unknown): "cancelled" | "replaced" | null {
	if (typeof page !== "object" || page === null) return null;
	const { status, stage } = page as { status?: unknown; stage?: unknown };
	if (status !== "FAILED") return null;
	if (stage === "CANCELLED") return "cancelled";
	return stage === "REPLACED" ? "replaced" : null;
}
