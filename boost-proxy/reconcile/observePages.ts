// Reads the fallback's status pages to find rows that it reports as gone. Those are delivered
// again. A third party's report ends no row.

import { inSlices } from "../../shared/clock.ts";
import type { Upstream } from "../domain/ports.ts";
import { isHolder, type Row } from "../domain/row.ts";
import {
	countNoRecord,
	currentRow,
	endingOf,
	type ObserverContext,
	QUESTION_MS,
	wouldBelieveNoRecord,
} from "./observed.ts";

/** Requests in one pass: a third party's rate limits treat boost as one client. */
const MAX_QUESTIONS = 10;
const FALLBACK = "fallback";
const OPTIONS = { deadlineMs: QUESTION_MS, caller: null };

export class PageObserver {
	readonly #context: ObserverContext;
	readonly #fallback: Upstream;

	constructor(observed: ObserverContext, fallback: Upstream) {
		this.#context = observed;
		this.#fallback = fallback;
	}

	/**
	 * Reads the pages of the rows whose last reading is oldest, each at most once a slot. Resolves
	 * with the time it took to scan all rows, in ms.
	 */
	async ask(): Promise<number> {
		const { rows, clock, slot } = this.#context;
		if (this.#fallback.dialect?.pages !== "ours") return 0;
		const now = clock.monotonic();
		const due: Row[] = [];
		const scanMs = await inSlices(rows.allLive(), clock, (row) => {
			if (isOnlyAtFallback(row) && now - row.notes.pageReadAt >= slot.ms) due.push(row);
		});
		await this.#readPages(due, now);
		return scanMs;
	}

	async #readPages(due: Row[], now: number): Promise<void> {
		const { stopping } = this.#context;
		if (due.length > MAX_QUESTIONS)
			due.sort((one, other) => (one.notes.pageReadAt < other.notes.pageReadAt ? -1 : 1));
		let questions = 0;
		for (const asked of due) {
			if (currentRow(this.#context, asked) === null) continue;
			// If its page has no record again, the hash is looked up too.
			questions += wouldBelieveNoRecord(asked.notes, FALLBACK) ? 2 : 1;
			if (stopping.aborted || questions > MAX_QUESTIONS || this.#fallback.breaker.isUnavailable) return;
			asked.notes.pageReadAt = now;
			await this.#readPage(asked);
		}
	}

	/**
	 * A page that shows the row as ended, or has no record, counts as a sign of loss. Enough of them
	 * show that the row is lost there. The page may be wrong, or a lie. So it ends no row, and a
	 * cancel still goes there. Only a relay like ours has pages with a stage.
	 */
	async #readPage(asked: Row): Promise<void> {
		const page = await this.#fallback.statusPage(asked.hash, OPTIONS);
		const row = currentRow(this.#context, asked);
		if (typeof page !== "object" || page === null || row === null || !isOnlyAtFallback(row)) return;
		const { status, stage = null } = page as { status?: unknown; stage?: unknown };
		const ending = endingOf(stage);
		const isEnded = status === "FAILED" && (stage === null || (ending !== undefined && ending !== "mined"));
		if (isEnded) countNoRecord(this.#context, row, FALLBACK);
		else if (status === "UNKNOWN" && stage === null) await this.#takeBlankPage(row);
		else row.notes.unknown[FALLBACK] = 0;
	}

	/**
	 * The page has no record. The row is lost if that was so often enough and the hash is unknown
	 * too.
	 */
	async #takeBlankPage(asked: Row): Promise<void> {
		if (!wouldBelieveNoRecord(asked.notes, FALLBACK)) {
			countNoRecord(this.#context, asked, FALLBACK);
			return;
		}
		if (this.#context.stopping.aborted) return;
		const call = { method: "eth_getTransactionByHash", params: [asked.hash] };
		const known = await this.#fallback.call(call, OPTIONS);
		const row = currentRow(this.#context, asked);
		if (row === null || !isOnlyAtFallback(row) || known?.ok !== true || this.#fallback.breaker.isUnavailable)
			return;
		if (known.result === null) countNoRecord(this.#context, row, FALLBACK);
		else row.notes.unknown[FALLBACK] = 0;
	}
}

function isOnlyAtFallback({ requests, at }: Row): boolean {
	return requests === 0 && isHolder(at.fallback) && !isHolder(at.relay);
}
