// What its user ended and an upstream may still have: each of those upstreams is asked to take it back until it has
// answered, whatever the answer. What is untold comes from the journal, that it was told goes there.

import type { UpstreamName } from "../domain/delivery.ts";
import type { EndedEntry } from "../domain/journalEntry.ts";
import type { Journal, Upstream, Upstreams } from "../domain/ports.ts";
import { onBehalfOf } from "../domain/request.ts";
import { inParallel, type Look } from "./handoverLooks.ts";
import type { HandoverMarks } from "./handoverMarks.ts";

export interface TellingOptions {
	/** Questions at a time. */
	readonly concurrency: number;
	/** Of each of them, in ms. */
	readonly deadlineMs: number;
}

export interface TellingDependencies {
	readonly journal: Journal;
	readonly upstreams: Upstreams;
	/** Its own: what it remembers are faults. */
	readonly marks: HandoverMarks;
	readonly clock: { monotonic(): number };
}

/** Told in one look at most. */
const MAX_TELLINGS = 1_000;
/** Answers that say nothing about the transaction: too much at once, an internal error. */
const LATER: readonly number[] = [-32005, -32603];

/** Tells upstreams what has ended. */
export class HandoverTelling {
	readonly #options: TellingOptions;
	readonly #with: TellingDependencies;
	#stopped = false;

	constructor(options: TellingOptions, dependencies: TellingDependencies) {
		this.#options = options;
		this.#with = dependencies;
	}

	/** Nobody is told any more. */
	stop(): void {
		this.#stopped = true;
	}

	/** Tells all that can be told now. */
	async look(): Promise<Look> {
		const { journal, marks, clock } = this.#with;
		const begun = clock.monotonic();
		marks.sweep((hash) => (journal.ended(hash)?.untold.length ?? 0) > 0);
		const due: { readonly hash: string; readonly by: UpstreamName }[] = [];
		let left = false;
		for (const { hash, untold } of journal.untold()) {
			for (const by of untold) {
				if (this.#upstream(by)?.breaker.isOut === true) continue;
				if (due.length >= MAX_TELLINGS || !marks.isDue(hash, by)) left = true;
				else due.push({ hash, by });
			}
		}
		const scanMs = clock.monotonic() - begun;
		await inParallel(due, this.#options.concurrency, async ({ hash, by }) => {
			if (!(await this.#tell(hash, by))) left = true;
		});
		return { left, scanMs };
	}

	/** Answers whether it is done with. */
	async #tell(hash: string, by: UpstreamName): Promise<boolean> {
		const { journal, marks } = this.#with;
		const ended = journal.ended(hash);
		if (this.#stopped || ended === null || !ended.untold.includes(by)) return true;
		const upstream = this.#upstream(by);
		const word = upstream === null ? "done" : await this.#takeBack(upstream, ended);
		if (word === "later") {
			marks.fault(hash, by);
			return false;
		}
		marks.clear(hash, by);
		journal.told(hash, by).catch(() => {});
		return true;
	}

	async #takeBack(upstream: Upstream, ended: EndedEntry): Promise<"done" | "later"> {
		const { dialect } = upstream;
		const method = dialect === null ? "eth_cancelTransaction" : dialect.cancelMethod;
		// No way to say it there: a replacement that it is owed says it.
		if (method === null) return "done";
		const asker = dialect === null ? onBehalfOf(ended) : null;
		const call = { method, params: [ended.hash] };
		const options = { deadlineMs: this.#options.deadlineMs, asker, path: ended.path };
		const answer = await upstream.call(call, options);
		if (answer === null) return "later";
		return !answer.ok && LATER.includes(answer.error.code) ? "later" : "done";
	}

	#upstream(by: UpstreamName): Upstream | null {
		return by === "relay" ? this.#with.upstreams.relay : this.#with.upstreams.fallback;
	}
}
