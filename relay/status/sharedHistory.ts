// The shared transactions in blocks of the chain, as MEV-Share's history of events. All of it is on
// the chain, and searchers have seen it before. It is in memory and begins when this process
// becomes the core. Transactions with another end are not in it.

import type { EventListener } from "../domain/ports.ts";

/** Maximum number of remembered shared transactions, and of their bytes. */
export interface HistoryLimits {
	readonly entries: number;
	readonly bytes: number;
}
export const HISTORY_LIMITS: HistoryLimits = { entries: 10_000, bytes: 8 * 1024 * 1024 };

/** Maximum number of entries of one page. */
export const HISTORY_PAGE = 500;

/**
 * Selects the entries of a page, by blocks and by seconds since the epoch; both ends are included.
 */
export interface HistoryQuery {
	readonly blockStart: number;
	readonly blockEnd: number;
	readonly timestampStart: number;
	readonly timestampEnd: number;
	/** Number of entries to skip first. */
	readonly offset: number;
	readonly limit: number;
}

interface Entry {
	readonly block: number;
	/** When searchers saw it, in seconds since the epoch. */
	readonly timestamp: number;
	/** As JSON. */
	readonly text: string;
}

export class SharedHistory {
	readonly #limits: HistoryLimits;
	readonly #hintOf: (hash: string) => object | null;
	/** By hash, in the order in which they were included. */
	readonly #entries = new Map<string, Entry>();
	#bytes = 0;

	/** `hintOf` returns the data of a transaction that searchers saw; null if its bytes are gone. */
	constructor({ hintOf }: { readonly hintOf: (hash: string) => object | null }, limits = HISTORY_LIMITS) {
		this.#hintOf = hintOf;
		this.#limits = limits;
	}

	/** A listener of the records. */
	readonly notify: EventListener = ({ hash, shared, events }, _before, event) => {
		if (event.type === "reorged") this.#remove(hash);
		if (event.type !== "included" || !shared) return;
		this.#remove(hash);
		const hint = this.#hintOf(hash);
		if (hint === null) return;
		const shownAt = events.findLast(({ type }) => type === "shared")?.at ?? event.at;
		const entry = { block: event.block, timestamp: Math.floor(shownAt / 1_000) };
		const text = JSON.stringify({ ...entry, hint });
		this.#entries.set(hash, { ...entry, text });
		this.#bytes += text.length;
		for (const oldest of this.#entries.keys()) {
			if (this.#entries.size <= this.#limits.entries && this.#bytes <= this.#limits.bytes) break;
			this.#remove(oldest);
		}
	};

	/** The number of entries, and their first and last blocks and times; zeros if there are none. */
	info(): object {
		const all = [...this.#entries.values()];
		const blocks = all.map(({ block }) => block);
		const times = all.map(({ timestamp }) => timestamp);
		return {
			count: all.length,
			minBlock: least(blocks),
			maxBlock: most(blocks),
			minTimestamp: least(times),
			maxTimestamp: most(times),
			maxLimit: HISTORY_PAGE,
		};
	}

	/** A page as JSON, oldest block first. */
	page({ blockStart, blockEnd, timestampStart, timestampEnd, offset, limit }: HistoryQuery): string {
		const texts: string[] = [];
		let left = offset;
		for (const { block, timestamp, text } of this.#entries.values()) {
			if (block < blockStart || block > blockEnd) continue;
			if (timestamp < timestampStart || timestamp > timestampEnd) continue;
			if (left > 0) left -= 1;
			else if (texts.push(text) >= limit) break;
		}
		return `[${texts.join(",")}]`;
	}

	#remove(hash: string): void {
		const entry = this.#entries.get(hash);
		if (entry === undefined) return;
		this.#bytes -= entry.text.length;
		this.#entries.delete(hash);
	}
}

function least(numbers: readonly number[]): number {
	return numbers.reduce((a, b) => Math.min(a, b), numbers[0] ?? 0);
}

function most(numbers: readonly number[]): number {
	return numbers.reduce((a, b) => Math.max(a, b), 0);
}
