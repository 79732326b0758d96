// A set of transaction hashes in a few bytes each, outside of JavaScript's heap: by it boost knows without a look at the disk
// that it has nothing of a transaction.

import { randomInt } from "node:crypto";

/** Of `0x` and 32 bytes. */
const HASH_LENGTH = 66;
const LEAST_SLOTS = 1024;
/** The largest share of slots that are taken. */
const MAX_LOAD = 3 / 4;

/**
 * Open addressing with the last 64 bits of each hash in a slot of two words, the second of which is never 0 where the slot is
 * taken. Two hashes that agree in these bits count as one; among 200 000, that happens once in a billion times.
 */
export class HashSet {
	#words = new Uint32Array(2 * LEAST_SLOTS);
	#size = 0;
	/** Odd. Where a hash belongs depends on it, so that nobody can choose transactions that share a slot. */
	readonly #seed = 2 * randomInt(2 ** 30) + 1;

	get size(): number {
		return this.#size;
	}

	has(hash: string): boolean {
		return hash.length === HASH_LENGTH && this.#isTaken(this.#find(firstOf(hash), secondOf(hash)));
	}

	add(hash: string): void {
		if (this.#size + 1 > MAX_LOAD * this.#slots) this.#grow();
		const slot = this.#find(firstOf(hash), secondOf(hash));
		if (this.#isTaken(slot)) return;
		this.#put(slot, firstOf(hash), secondOf(hash));
		this.#size += 1;
	}

	delete(hash: string): void {
		let hole = this.#find(firstOf(hash), secondOf(hash));
		if (!this.#isTaken(hole)) return;
		const mask = this.#slots - 1;
		// Those behind it move up as far as they may, so that no search ends at the hole.
		for (let slot = (hole + 1) & mask; this.#isTaken(slot); slot = (slot + 1) & mask) {
			const first = this.#words[2 * slot] ?? 0;
			if (((slot - this.#homeOf(first)) & mask) < ((slot - hole) & mask)) continue;
			this.#put(hole, first, this.#words[2 * slot + 1] ?? 0);
			hole = slot;
		}
		this.#put(hole, 0, 0);
		this.#size -= 1;
	}

	get #slots(): number {
		return this.#words.length / 2;
	}

	/** The slot where it is, or the free one where it belongs. */
	#find(first: number, second: number): number {
		const mask = this.#slots - 1;
		let slot = this.#homeOf(first);
		while (this.#isTaken(slot) && (this.#words[2 * slot] !== first || this.#words[2 * slot + 1] !== second)) {
			slot = (slot + 1) & mask;
		}
		return slot;
	}

	#homeOf(first: number): number {
		return (Math.imul(first, this.#seed) >>> 8) & (this.#slots - 1);
	}

	#isTaken(slot: number): boolean {
		return this.#words[2 * slot + 1] !== 0;
	}

	#put(slot: number, first: number, second: number): void {
		this.#words[2 * slot] = first;
		this.#words[2 * slot + 1] = second;
	}

	#grow(): void {
		const before = this.#words;
		this.#words = new Uint32Array(2 * before.length);
		for (let at = 0; at < before.length; at += 2) {
			const [first = 0, second = 0] = [before[at], before[at + 1]];
			if (second !== 0) this.#put(this.#find(first, second), first, second);
		}
	}
}

function firstOf(hash: string): number {
	return Number.parseInt(hash.slice(-8), 16) >>> 0;
}

/** Never 0. */
function secondOf(hash: string): number {
	return Number.parseInt(hash.slice(-16, -8), 16) >>> 0 || 1;
}
