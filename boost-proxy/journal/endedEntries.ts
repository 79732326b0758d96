// The ended entries that are remembered, in memory: by hash, within a bound and a time, those that their users ended
// the longest; and what those that were mined are again when their block is reorganised away. It writes nothing.

import { type EndedEntry, isUserEnding } from "../domain/journalEntry.ts";
import type { KeptEntry, KeptState } from "./records.ts";

/** Entries are kept in the order of their ends. */
export class EndedEntries {
	readonly #maxEntries: number;
	readonly #byUser = new Map<string, EndedEntry>();
	readonly #others = new Map<string, EndedEntry>();
	readonly #untold = new Map<string, EndedEntry>();
	readonly #mined = new Map<string, KeptEntry>();

	constructor(options: { maxEntries: number }) {
		this.#maxEntries = options.maxEntries;
	}

	get(hash: string): EndedEntry | undefined {
		return this.#byUser.get(hash) ?? this.#others.get(hash);
	}

	/** What a mined one was, as long as it can be that again. */
	was(hash: string): KeptEntry | null {
		return this.#mined.get(hash) ?? null;
	}

	/** As it is kept. */
	stateOf(ended: EndedEntry): KeptState {
		return { kind: "ended", ended, was: this.was(ended.hash) };
	}

	/** Those of which somebody was not told. */
	*untold(): Generator<EndedEntry> {
		yield* this.#untold.values();
	}

	/** What can be open again, with its end in ms since the epoch; the first to end first. */
	*mined(): Generator<{ readonly entry: KeptEntry; readonly endedAt: number }> {
		for (const [hash, entry] of this.#mined) {
			const ended = this.get(hash);
			if (ended !== undefined) yield { entry, endedAt: ended.endedAt };
		}
	}

	/** One more, or another state of one. Answers the hash that had to make room, or null. */
	set(ended: EndedEntry, was: KeptEntry | null = null): string | null {
		const { hash } = ended;
		if (was !== null) this.#mined.set(hash, was);
		const [own, other] = isUserEnding(ended.ending)
			? [this.#byUser, this.#others]
			: [this.#others, this.#byUser];
		other.delete(hash);
		// A later end is a new one; else it keeps its place.
		if (own.get(hash)?.endedAt !== ended.endedAt) own.delete(hash);
		own.set(hash, ended);
		if (ended.untold.length > 0) this.#untold.set(hash, ended);
		else this.#untold.delete(hash);
		if (this.#byUser.size + this.#others.size <= this.#maxEntries) return null;
		const oldest = first(this.#others) ?? first(this.#byUser);
		if (oldest === undefined) return null;
		this.delete(oldest.hash);
		return oldest.hash;
	}

	delete(hash: string): void {
		this.#byUser.delete(hash);
		this.#others.delete(hash);
		this.#untold.delete(hash);
		this.#mined.delete(hash);
	}

	/** When the first of them ended, and the first of those that can be open again; ms since the epoch. */
	get earliest(): { readonly ended: number | null; readonly mined: number | null } {
		const ends = [first(this.#byUser), first(this.#others)].flatMap((one) => one?.endedAt ?? []);
		const [hash] = this.#mined.keys();
		return {
			ended: ends.length === 0 ? null : Math.min(...ends),
			mined: hash === undefined ? null : (this.get(hash)?.endedAt ?? 0),
		};
	}

	/** Those that ended at or before `ms`, `limit` at most, can't be opened again from now on. */
	closeUntil(ms: number, limit: number): readonly EndedEntry[] {
		const closed: EndedEntry[] = [];
		for (const hash of this.#mined.keys()) {
			const ended = this.get(hash);
			if (closed.length >= limit || ended === undefined || ended.endedAt > ms) break;
			this.#mined.delete(hash);
			closed.push(ended);
		}
		return closed;
	}

	/** Forgets those that ended at or before `ms`, `limit` at most; answers their hashes. */
	forgetUntil(ms: number, limit: number): readonly string[] {
		const forgotten: string[] = [];
		for (const entries of [this.#byUser, this.#others]) {
			for (const { hash, endedAt } of entries.values()) {
				if (endedAt > ms || forgotten.length >= limit) break;
				forgotten.push(hash);
				this.delete(hash);
			}
		}
		return forgotten;
	}
}

function first(entries: ReadonlyMap<string, EndedEntry>): EndedEntry | undefined {
	return entries.values().next().value;
}
