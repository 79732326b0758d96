// Random numbers, bytes and choices that are the same for the same seed. Not for secrets.

/** A reproducible source of random values. */
export interface SeededRandom {
	/** A whole number from 0 to `below` − 1. */
	below(below: number): number;
	bytes(length: number): Buffer;
	/** A value of up to `maxBytes` bytes, small and large ones alike likely. */
	uint(maxBytes: number): bigint;
	pick<T>(items: readonly T[]): T;
}

/** https://en.wikipedia.org/wiki/Xorshift (32 bits): fast, and good enough to shake a decoder. */
export function seededRandom(seed: number): SeededRandom {
	let state = seed | 0 || 1;
	const next = (): number => {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		return state >>> 0;
	};
	const below = (limit: number): number => next() % limit;
	const bytes = (length: number): Buffer => {
		const out = Buffer.alloc(length);
		for (let index = 0; index < length; index++) out[index] = next() >>> 24;
		return out;
	};
	return {
		below,
		bytes,
		uint: (maxBytes) => BigInt(`0x0${bytes(below(maxBytes + 1)).toString("hex")}`),
		pick: (items) => items[below(items.length)] as (typeof items)[number],
	};
}
