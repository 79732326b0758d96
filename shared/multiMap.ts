// A map from a key to a set of values; a key has at least one value.

const NONE: ReadonlySet<never> = new Set();

/** Values by key, in the order in which they were added. */
export class MultiMap<V, K = string> {
	readonly #sets = new Map<K, Set<V>>();

	/** The number of keys. */
	get size(): number {
		return this.#sets.size;
	}

	has(key: K): boolean {
		return this.#sets.has(key);
	}

	/** The values of `key`; empty if it has none. */
	get(key: K): ReadonlySet<V> {
		return this.#sets.get(key) ?? NONE;
	}

	keys(): IterableIterator<K> {
		return this.#sets.keys();
	}

	add(key: K, value: V): void {
		const set = this.#sets.get(key);
		if (set === undefined) this.#sets.set(key, new Set([value]));
		else set.add(value);
	}

	delete(key: K, value: V): void {
		const set = this.#sets.get(key);
		set?.delete(value);
		if (set?.size === 0) this.#sets.delete(key);
	}
}
