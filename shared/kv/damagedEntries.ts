// Entries of a store that can't be read. They stay where they are: one of them must not keep the others from being served.

import { type Logger, safeError } from "../log.ts";

export class DamagedEntries {
	readonly #log: Logger;
	#count = 0;

	constructor({ log }: { readonly log: Logger }) {
		this.#log = log;
	}

	/** How many were left out since the start of this process. */
	get count(): number {
		return this.#count;
	}

	/** What `read` makes of the entry at `key`; undefined if that throws: then the entry is logged, counted and left out. */
	tried<T>(key: string, read: () => T): T | undefined {
		try {
			return read();
		} catch (thrown) {
			this.#count += 1;
			this.#log.error("an entry of the store is damaged and left out", { key, fault: safeError(thrown) });
			return undefined;
		}
	}
}
