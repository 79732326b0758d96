// What a fallback's status pages say of entries that it alone holds: a few at a time are read, what its user ended there
// ends here, and what it gave up or has lost is the handover's. Whether something is mined is the chain's to say.

import type { UpstreamName } from "../domain/delivery.ts";
import type { OpenEntry } from "../domain/journalEntry.ts";
import type { Journal, Upstream } from "../domain/ports.ts";
import type { Handing } from "../handover/handover.ts";
import type { FollowBook, Watch } from "./followBook.ts";
import type { FollowEndings } from "./followEndings.ts";

export interface FollowPagesOptions {
	readonly slotMs: number;
	/** Of one question, in ms. */
	readonly deadlineMs: number;
}

export interface FollowPagesDependencies {
	readonly journal: Journal;
	readonly fallback: Upstream;
	readonly handover: Pick<Handing, "lost" | "spent" | "wake">;
	readonly book: FollowBook;
	readonly endings: FollowEndings;
	readonly clock: { now(): number; monotonic(): number };
}

/** What a page says of an entry; `blank`: it knows nothing of it. */
type Word = "cancelled" | "replaced" | "givenUp" | "blank" | "other";

/** Questions in one look: each is a request of its own, and limits are about us. */
const MAX_QUESTIONS = 10;
/** So many blank pages in a row are a loss, if it does not know the hash either; doubling each time that it was lost. */
const BLANKS = 2;
const MAX_DOUBLINGS = 5;
/** A delivery that brought no verdict may still arrive for so long, in ms. */
const LATE_MS = 15_000;
const HOLDER: UpstreamName = "fallback";

/** Follows a fallback. */
export class FollowPages {
	readonly #options: FollowPagesOptions;
	readonly #with: FollowPagesDependencies;
	#stopped = false;
	/** Left in this look. */
	#questions = 0;

	constructor(options: FollowPagesOptions, dependencies: FollowPagesDependencies) {
		this.#options = options;
		this.#with = dependencies;
	}

	stop(): void {
		this.#stopped = true;
	}

	/** Reads the pages of those that were not asked for the longest, each once a slot at most. */
	async look(): Promise<void> {
		const { journal, fallback, book, clock } = this.#with;
		// The others' pages don't say who ended it.
		if (fallback.dialect?.name !== "mevblocker") return;
		const now = clock.monotonic();
		const due: { readonly hash: string; readonly pageAt: number }[] = [];
		for (const entry of journal.open()) {
			if (!isItsAlone(entry)) continue;
			const { pageAt } = book.of(entry);
			if (now - pageAt >= this.#options.slotMs) due.push({ hash: entry.hash, pageAt });
		}
		if (due.length > MAX_QUESTIONS) due.sort((one, other) => (one.pageAt < other.pageAt ? -1 : 1));
		this.#questions = MAX_QUESTIONS;
		for (const { hash } of due.slice(0, MAX_QUESTIONS)) {
			const asked = journal.get(hash);
			if (this.#stopped || this.#questions === 0 || fallback.breaker.isOut) return;
			if (asked !== null) await this.#read(asked, now);
		}
	}

	async #read(asked: OpenEntry, now: number): Promise<void> {
		const { fallback, book, endings } = this.#with;
		const { pageAt } = book.of(asked);
		book.of(asked).pageAt = now;
		this.#questions -= 1;
		const word = wordOf(await fallback.statusPage(asked.hash, this.#asking));
		const entry = this.#still(asked);
		if (word === null || entry === null) return;
		if (word === "cancelled" || word === "replaced") {
			const others = entry.holders.filter((name) => name !== HOLDER);
			endings.end(entry, word, others);
			return;
		}
		if (!isItsAlone(entry)) return;
		const watch = book.of(entry);
		if (word === "blank") {
			// It comes first in the next look where there is no question left for it.
			if (!(await this.#blank(entry, watch))) watch.pageAt = pageAt;
			return;
		}
		watch.blanks = 0;
		if (word === "givenUp") this.#givenUp(entry);
	}

	/** It tries it no longer: who is well may have it. */
	#givenUp({ hash }: OpenEntry): void {
		const { journal, handover } = this.#with;
		journal.notHeld(hash, HOLDER).catch(() => {});
		handover.spent(hash, HOLDER);
		handover.wake();
	}

	/** It is lost where its page was blank often enough and its hash is not known either. False: that can't be asked now. */
	async #blank(asked: OpenEntry, watch: Watch): Promise<boolean> {
		const { journal, fallback, handover, clock } = this.#with;
		const blanks = watch.blanks + 1;
		if (blanks < BLANKS * 2 ** Math.min(watch.pageLosses, MAX_DOUBLINGS)) {
			watch.blanks = blanks;
			return true;
		}
		if (this.#stopped || this.#questions === 0) return false;
		this.#questions -= 1;
		const call = { method: "eth_getTransactionByHash", params: [asked.hash] };
		const known = await fallback.call(call, this.#asking);
		const entry = this.#still(asked);
		if (entry === null || !isItsAlone(entry) || known?.ok !== true || fallback.breaker.isOut) return true;
		if (known.result !== null) watch.blanks = 0;
		else if (entry.acknowledged) {
			watch.blanks = 0;
			watch.pageLosses += 1;
			handover.lost(entry.hash, HOLDER);
		} else if (clock.now() - entry.receivedAt >= LATE_MS) {
			journal.notHeld(entry.hash, HOLDER).catch(() => {});
		}
		return true;
	}

	get #asking(): { readonly deadlineMs: number; readonly asker: null } {
		return { deadlineMs: this.#options.deadlineMs, asker: null };
	}

	/** The entry as it is now; null where it is not the one that was asked about, or a request sees to it. */
	#still({ hash, receivedAt }: OpenEntry): OpenEntry | null {
		const entry = this.#with.journal.get(hash);
		return entry?.receivedAt === receivedAt && !entry.underWay ? entry : null;
	}
}

function isItsAlone({ underWay, holders }: OpenEntry): boolean {
	return !underWay && holders.length === 1 && holders[0] === HOLDER;
}

/** A relay of ours tells the stage; another one's page says nothing here, but that it knows nothing. Null: no page. */
function wordOf(page: unknown): Word | null {
	if (typeof page !== "object" || page === null) return null;
	const { status, stage = null } = page as { status?: unknown; stage?: unknown };
	if (status === "UNKNOWN") return stage === null ? "blank" : "other";
	if (status !== "FAILED") return "other";
	if (stage === "CANCELLED") return "cancelled";
	if (stage === "REPLACED") return "replaced";
	return stage === "EXPIRED" || stage === "DROPPED" ? "givenUp" : "other";
}
