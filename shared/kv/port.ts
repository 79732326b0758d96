// The interface of a durable key-value store without a schema.

/** One change; `value` null removes the key. */
export interface Change {
	readonly key: string;
	readonly value: Uint8Array | null;
}

/** A durable, ordered map from text to bytes. Keys are ASCII and at most 500 bytes. */
export interface KeyValueStore {
	/** The value, or null. */
	get(key: string): Promise<Buffer | null>;
	/** Entries with `start` <= key < `end` in key order, at most `limit`. */
	range(start: string, end: string, limit?: number): AsyncIterable<readonly [string, Buffer]>;
	/** Applies all changes or none; resolves when they are on disk. Writes that arrive together share a commit. */
	write(changes: readonly Change[]): Promise<void>;
	/** Waits for running writes and closes the store. */
	close(): Promise<void>;
}

/** A store that only one process may use at a time. */
export interface SharedStore extends KeyValueStore {
	/** Whether this process certainly has the store: false after it was suspended for long or lost its connection. */
	readonly isHeld: boolean;
	/** This process's term; null where no other process can reach the store. */
	readonly term: Term | null;
}

/** The time for which one process has a store that several can reach. */
export interface Term {
	/** Rises with each holder. */
	readonly number: number;
	/** What those show the holder that do not have the store. */
	readonly secret: string;
}

/** The key range of everything that begins with `prefix`. */
export function prefixRange(prefix: string): readonly [string, string] {
	return [prefix, `${prefix}\u{7f}`];
}

/** A stored value that can't be parsed: the store is damaged or was written by another program. */
export class StoreFormatError extends Error {
	readonly code = "STORE_FORMAT";
	constructor(key: string) {
		super(`the store's entry ${key} can't be read`);
		this.name = "StoreFormatError";
	}
}
