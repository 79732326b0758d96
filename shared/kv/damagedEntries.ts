// Entries of a store that can't be read. They stay in place, since one damaged entry must not keep
// the others from being served.

import { type Logger, safeError } from "../log.ts";

export class DamagedEntries {
	readonly #log: Logger;
	#count = 0;

	constructor({ log }: { readonly log: Logger }) {
		this.#log = log;
	}

	/** Number of entries that were skipped since the start of this process. */
	get count(): number {
		return this.#count;
	}

	/**
	 * The result of `read` for the entry at `key`. If that throws, the entry is logged, counted and
	 * skipped, and the result is undefined.
	 */
	tried<T>(key: string, read: () => T): T | undefined {
		try {
			return read();
		} catch (thrown) {
			this.#count += 1;
			this.#log.error("damaged entry of the store skipped", { key, fault: safeError(thrown) });
			return undefined;
		}
	}
}
