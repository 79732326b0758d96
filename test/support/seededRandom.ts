// Pseudo-random numbers, the same for the same seed, for generated test data.

/** The generator mulberry32: good enough for test data, and for nothing else. */
export class SeededRandom {
	#state: number;

	constructor(seed: number) {
		this.#state = seed >>> 0;
	}

	/** A whole number from 0 to `limit` - 1. */
	below(limit: number): number {
		this.#state = (this.#state + 0x6d2b79f5) >>> 0;
		let t = this.#state;
		t = Math.imul(t ^ (t >>> 15), t | 1);
		t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
		return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * limit);
	}

	/** True with a probability of one in `n`. */
	oneIn(n: number): boolean {
		return this.below(n) === 0;
	}

	/** One of `items`, which must not be empty. */
	pick<T>(items: readonly T[]): T {
		const item = items[this.below(items.length)];
		if (item === undefined) throw new RangeError("there is nothing to pick from");
		return item;
	}

	/** Draws a key of `weights`, each with a probability proportional to its weight. */
	weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
		const keys = Object.keys(weights) as K[];
		let left = this.below(keys.reduce((sum, key) => sum + weights[key], 0));
		for (const key of keys) {
			left -= weights[key];
			if (left < 0) return key;
		}
		throw new RangeError("there is nothing to draw");
	}

	bytes(length: number): Buffer {
		const bytes = Buffer.alloc(length);
		for (let i = 0; i < length; i += 1) bytes[i] = this.below(256);
		return bytes;
	}

	/**
	 * A number of at most `maxBytes` bytes; each length is equally likely, so small numbers come as
	 * often as large ones.
	 */
	uint(maxBytes: number): bigint {
		return BigInt(`0x0${this.bytes(this.below(maxBytes + 1)).toString("hex")}`);
	}
}
