// Groups reads of single values, or of the values of a key, into common queries. A query has the
// reads of one turn of the event loop, and those that arrive while queries are running. Each query
// costs a process more than reading its values.

import { nextTurn } from "../../clock.ts";

/** Maximum values of one query. */
const MAX_KEYS = 256;
/** Queries at the same time, so that a slow one does not delay all others. */
const AT_ONCE = 2;

interface Read<T> {
	readonly key: string;
	readonly resolve: (value: T | null) => void;
	readonly reject: (thrown: unknown) => void;
}

export class GroupRead<T = Buffer> {
	readonly #query: (keys: readonly string[]) => Promise<ReadonlyMap<string, T>>;
	#waiting: Read<T>[] = [];
	#running = 0;
	#isDue = false;

	/** `query` resolves to the existing values, by their keys. */
	constructor(query: (keys: readonly string[]) => Promise<ReadonlyMap<string, T>>) {
		this.#query = query;
	}

	/** The value, or null. Rejects as its query does. */
	get(key: string): Promise<T | null> {
		return new Promise((resolve, reject) => {
			this.#waiting.push({ key, resolve, reject });
			this.#startSoon();
		});
	}

	#startSoon(): void {
		if (this.#isDue || this.#running >= AT_ONCE || this.#waiting.length === 0) return;
		this.#isDue = true;
		void nextTurn().then(() => {
			this.#isDue = false;
			void this.#run(this.#waiting.splice(0, MAX_KEYS));
			this.#startSoon();
		});
	}

	async #run(group: readonly Read<T>[]): Promise<void> {
		this.#running += 1;
		try {
			const found = await this.#query([...new Set(group.map(({ key }) => key))]);
			for (const { key, resolve } of group) resolve(found.get(key) ?? null);
		} catch (thrown) {
			for (const { reject } of group) reject(thrown);
		}
		this.#running -= 1;
		this.#startSoon();
	}
}
