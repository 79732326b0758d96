// Transactions that were mined a moment ago: they come in when they end, and go out after some blocks. Until then a
// reorganisation may take them back.

import type { OpenEntry } from "../domain/journalEntry.ts";

/** One that is mined. Times are of the clock's monotonic reading, in ms. */
export interface Mined {
	readonly hash: string;
	readonly from: string;
	readonly nonce: bigint;
	readonly at: number;
	askedAt: number;
	/** How often in a row it had no receipt. */
	gone: number;
	/** Whether only the chain can speak for it. */
	byChain: boolean;
}

/** As many as may be open at once; what is beyond is not watched. */
const MAX_MINED = 100_000;

/** In the order of their ends. */
export class MinedEntries {
	readonly #keepMs: number;
	readonly #clock: { monotonic(): number };
	readonly #byHash = new Map<string, Mined>();
	readonly #byNonce = new Map<string, string>();

	/** `keepMs`: how long a block may be taken back. */
	constructor(
		options: { readonly keepMs: number },
		dependencies: { readonly clock: { monotonic(): number } },
	) {
		this.#keepMs = options.keepMs;
		this.#clock = dependencies.clock;
	}

	/** `ageMs`: since it was mined. Those that were mined first are added first. */
	add(entry: OpenEntry, ageMs = 0): void {
		const { hash, from, nonce } = entry;
		const at = this.#clock.monotonic() - ageMs;
		const byChain = !entry.holders.includes("relay");
		this.delete(hash);
		this.#byHash.set(hash, { hash, from, nonce, at, askedAt: at, gone: 0, byChain });
		this.#byNonce.set(`${from} ${nonce}`, hash);
		this.#prune();
	}

	get(hash: string): Mined | null {
		return this.#byHash.get(hash) ?? null;
	}

	/** Whether a transaction of this nonce was mined a moment ago. */
	hasNonce({ from, nonce }: OpenEntry): boolean {
		return this.#byNonce.has(`${from} ${nonce}`);
	}

	/** Up to `limit` that `isMeant` and were not asked for since `ms` ms. They count as asked now. */
	due(limit: number, ms: number, isMeant: (mined: Mined) => boolean): readonly Mined[] {
		this.#prune();
		const now = this.#clock.monotonic();
		const taken: Mined[] = [];
		for (const mined of this.#byHash.values()) {
			if (taken.length >= limit) break;
			if (now - mined.askedAt < ms || !isMeant(mined)) continue;
			mined.askedAt = now;
			taken.push(mined);
		}
		return taken;
	}

	delete(hash: string): void {
		const mined = this.#byHash.get(hash);
		if (mined === undefined) return;
		this.#byHash.delete(hash);
		const key = `${mined.from} ${mined.nonce}`;
		if (this.#byNonce.get(key) === hash) this.#byNonce.delete(key);
	}

	#prune(): void {
		const until = this.#clock.monotonic() - this.#keepMs;
		for (const { hash, at } of this.#byHash.values()) {
			if (at > until && this.#byHash.size <= MAX_MINED) return;
			this.delete(hash);
		}
	}
}
