// Turns what a fallback's status pages say of rows that it alone holds into facts: what its user ended there ends here, and
// what it gave up or has lost it does not have. Whether something is mined is the chain's to say.

import type { UpstreamName } from "../domain/delivery.ts";
import type { Rows, Upstream } from "../domain/ports.ts";
import { abandonedBy, holdersOf, isHolder, lost, notHeld, type Row } from "../domain/row.ts";

export interface ObservePagesOptions {
	readonly slotMs: number;
	/** Of one question, in ms. */
	readonly deadlineMs: number;
}

export interface ObservePagesDependencies {
	readonly rows: Rows;
	readonly fallback: Upstream;
	readonly clock: { now(): number; monotonic(): number };
}

/** What a page says of a row; `blank`: it knows nothing of it. */
type PageWord = "cancelled" | "replaced" | "abandoned" | "blank" | "other";

/** Questions in one pass: each is a request of its own, and limits are about us. */
const MAX_QUESTIONS = 10;
/** So many blank pages in a row are a loss, if it does not know the hash either; doubling each time that it was lost. */
const BLANKS = 2;
const MAX_DOUBLINGS = 5;
/** A delivery that brought no verdict may still arrive for so long, in ms. */
const LATE_MS = 15_000;
const HOLDER: UpstreamName = "fallback";

/** Observes a fallback. */
export class ObservePages {
	readonly #options: ObservePagesOptions;
	readonly #with: ObservePagesDependencies;
	#stopped = false;
	/** Questions that are left in this pass. */
	#questions = 0;

	constructor(options: ObservePagesOptions, dependencies: ObservePagesDependencies) {
		this.#options = options;
		this.#with = dependencies;
	}

	stop(): void {
		this.#stopped = true;
	}

	/** Reads the pages of those that were not asked for the longest, each once a slot at most. */
	async ask(): Promise<void> {
		const { rows, fallback, clock } = this.#with;
		// The others' pages don't say who ended it.
		if (fallback.dialect?.name !== "mevblocker") return;
		const now = clock.monotonic();
		const due: Row[] = [];
		for (const row of rows.open()) {
			if (isItsAlone(row) && now - row.notes.pageAt >= this.#options.slotMs) due.push(row);
		}
		if (due.length > MAX_QUESTIONS)
			due.sort((one, other) => (one.notes.pageAt < other.notes.pageAt ? -1 : 1));
		this.#questions = MAX_QUESTIONS;
		for (const { hash } of due.slice(0, MAX_QUESTIONS)) {
			const asked = rows.live(hash);
			if (this.#stopped || this.#questions === 0 || fallback.breaker.isOut) return;
			if (asked !== null) await this.#read(asked, now);
		}
	}

	async #read(asked: Row, now: number): Promise<void> {
		const { fallback, rows } = this.#with;
		const { pageAt } = asked.notes;
		asked.notes.pageAt = now;
		this.#questions -= 1;
		const word = wordOf(await fallback.statusPage(asked.hash, this.#asking));
		const row = this.#still(asked);
		if (word === null || row === null) return;
		const { hash, notes } = row;
		if (word === "cancelled" || word === "replaced") {
			const others = holdersOf(row).filter((name) => name !== HOLDER);
			rows.end(row, word, others);
			return;
		}
		if (!isItsAlone(row)) return;
		if (word === "blank") {
			// It comes first in the next pass where there is no question left for it.
			if (!(await this.#blank(row))) notes.pageAt = pageAt;
			return;
		}
		notes.blanks = 0;
		// It tries it no longer: who is well may have it.
		if (word === "abandoned") rows.change(hash, (one) => abandonedBy(one, HOLDER));
	}

	/** It is lost where its page was blank often enough and its hash is not known either. False: that can't be asked now. */
	async #blank(asked: Row): Promise<boolean> {
		const { fallback, rows, clock } = this.#with;
		const { hash, notes } = asked;
		const blanks = notes.blanks + 1;
		if (blanks < BLANKS * 2 ** Math.min(notes.pageLosses, MAX_DOUBLINGS)) {
			notes.blanks = blanks;
			return true;
		}
		if (this.#stopped || this.#questions === 0) return false;
		this.#questions -= 1;
		const call = { method: "eth_getTransactionByHash", params: [hash] };
		const known = await fallback.call(call, this.#asking);
		const row = this.#still(asked);
		if (row === null || !isItsAlone(row) || known?.ok !== true || fallback.breaker.isOut) return true;
		if (known.result !== null) notes.blanks = 0;
		else if (row.acknowledged) {
			notes.blanks = 0;
			notes.pageLosses += 1;
			rows.change(hash, (one) => lost(one, HOLDER));
		} else if (clock.now() - row.receivedAt >= LATE_MS) {
			rows.change(hash, (one) => notHeld(one, HOLDER));
		}
		return true;
	}

	get #asking(): { readonly deadlineMs: number; readonly asker: null } {
		return { deadlineMs: this.#options.deadlineMs, asker: null };
	}

	/** The row as it is now; null where it is not the one that was asked about, or a request sees to it. */
	#still(asked: Row): Row | null {
		const row = this.#with.rows.live(asked.hash);
		return row !== null && row.notes === asked.notes && row.requests === 0 ? row : null;
	}
}

function isItsAlone({ requests, at }: Row): boolean {
	return requests === 0 && isHolder(at.fallback) && !isHolder(at.relay);
}

/** A relay of ours tells the stage; another one's page says nothing here, but that it knows nothing. Null: no page. */
function wordOf(page: unknown): PageWord | null {
	if (typeof page !== "object" || page === null) return null;
	const { status, stage = null } = page as { status?: unknown; stage?: unknown };
	if (status === "UNKNOWN") return stage === null ? "blank" : "other";
	if (status !== "FAILED") return "other";
	if (stage === "CANCELLED") return "cancelled";
	if (stage === "REPLACED") return "replaced";
	return stage === "EXPIRED" || stage === "DROPPED" ? "abandoned" : "other";
}
