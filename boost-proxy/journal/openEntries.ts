// The open entries in memory: by hash, and by sender in the order of their nonces. It writes nothing.

import type { OpenEntry } from "../domain/journalEntry.ts";
import type { KeptEntry } from "./records.ts";

const NONE: readonly KeptEntry[] = Object.freeze([]);

/** An index; the lists that it hands out never change, a change makes a new one. */
export class OpenEntries {
	readonly #byHash = new Map<string, KeptEntry>();
	readonly #bySender = new Map<string, readonly KeptEntry[]>();

	get size(): number {
		return this.#byHash.size;
	}

	get(hash: string): KeptEntry | undefined {
		return this.#byHash.get(hash);
	}

	/** By nonce, those of one nonce in the order of their arrival. */
	of(from: string): readonly KeptEntry[] {
		return this.#bySender.get(from) ?? NONE;
	}

	/** Those that are open when their turn comes. */
	*all(): Generator<KeptEntry> {
		for (const entries of this.#bySender.values()) {
			for (const entry of entries) if (this.#byHash.get(entry.hash) === entry) yield entry;
		}
	}

	/** `entry`'s hash must not be in it. */
	add(entry: KeptEntry): void {
		this.#byHash.set(entry.hash, entry);
		const entries = this.#bySender.get(entry.from);
		if (entries === undefined) {
			this.#bySender.set(entry.from, [entry]);
			return;
		}
		// From the end: most come in order.
		let at = entries.length;
		for (; at > 0; at -= 1) {
			const before = entries[at - 1];
			if (before === undefined || !isBehind(before, entry)) break;
		}
		this.#bySender.set(entry.from, entries.toSpliced(at, 0, entry));
	}

	remove(entry: KeptEntry): void {
		this.#byHash.delete(entry.hash);
		const entries = this.of(entry.from);
		if (entries.length <= 1) this.#bySender.delete(entry.from);
		else
			this.#bySender.set(
				entry.from,
				entries.filter((one) => one !== entry),
			);
	}
}

function isBehind(one: OpenEntry, other: OpenEntry): boolean {
	return one.nonce > other.nonce || (one.nonce === other.nonce && one.receivedAt > other.receivedAt);
}
