// Pseudo-random numbers, the same for the same seed, for generated cases.

/** Draws by mulberry32; enough for test data, for nothing else. */
export class SeededRandom {
	#state: number;

	constructor(seed: number) {
		this.#state = seed >>> 0;
	}

	/** A whole number from 0 up to, not including, `below`. */
	below(below: number): number {
		this.#state = (this.#state + 0x6d2b79f5) >>> 0;
		let t = this.#state;
		t = Math.imul(t ^ (t >>> 15), t | 1);
		t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
		return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
	}

	/** True once in `times`. */
	once(times: number): boolean {
		return this.below(times) === 0;
	}

	/** One of `items`, which must not be empty. */
	pick<T>(items: readonly T[]): T {
		const item = items[this.below(items.length)];
		if (item === undefined) throw new RangeError("there is nothing to pick from");
		return item;
	}

	/** How often each of a list of weights is drawn: the key drawn. */
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
		return Buffer.from(Array.from({ length }, () => this.below(256)));
	}

	/** A value of up to `maxBytes` bytes, small and large ones alike likely. */
	uint(maxBytes: number): bigint {
		return BigInt(`0x0${this.bytes(this.below(maxBytes + 1)).toString("hex")}`);
	}
}

export function seededRandom(seed: number): SeededRandom {
	return new SeededRandom(seed);
}
