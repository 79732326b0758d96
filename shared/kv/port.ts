// The interface of a durable key-value store without a schema.

/** One change; `value` null removes the key. */
export interface Change {
	readonly key: string;
	readonly value: Uint8Array | null;
	/**
	 * The account of the change, by which {@link StoreParts} finds it. Without parts it has no
	 * effect.
	 */
	readonly sender?: string | undefined;
}

/** A durable, ordered map from text to bytes. Keys are ASCII and at most 500 bytes. */
export interface KeyValueStore {
	/** The value, or null. */
	get(key: string): Promise<Buffer | null>;
	/** Entries with `start` <= key < `end` in key order, at most `limit`. */
	range(start: string, end: string, limit?: number): AsyncIterable<readonly [string, Buffer]>;
	/**
	 * Applies all changes or none; resolves when they are on disk. Writes that arrive together share
	 * a commit.
	 */
	write(changes: readonly Change[]): Promise<void>;
	/** Waits for running writes and closes the store. */
	close(): Promise<void>;
}

/** A store that only one process may use at a time. */
export interface SharedStore extends KeyValueStore {
	/**
	 * Whether this process certainly has the store. False after it was suspended for long or lost
	 * its connection.
	 */
	readonly isHeld: boolean;
	/**
	 * Resolves when this process certainly still had the store after this call, or when `isHeld` is
	 * false. Never rejects.
	 */
	confirm(): Promise<void>;
	/**
	 * Why nothing can be stored now, as far as it has been tried. Null if there is no problem.
	 * Public.
	 */
	readonly trouble: string | null;
	/** This process's term. Null if no other process can reach the store. */
	readonly term: Term | null;
	/** Size of the file or the table on disk, in bytes, for all stores in it. */
	bytes(): Promise<number>;
	/** Set where several processes have a part of one store each: this store is such a part. */
	readonly parts?: StoreParts;
}

/** The time for which one process has a store that several can reach. */
export interface Term {
	/** Rises with each holder. */
	readonly number: number;
	/** Secret that processes without the store present to the holder. */
	readonly secret: string;
}

/** Another part of a store. */
export interface OtherPart {
	readonly part: string;
	/** Whether its process has been gone for so long that another process may open the part. */
	readonly isLeft: boolean;
}

/** A record of a part. */
export interface PartRecord {
	readonly part: string;
	readonly key: string;
	readonly value: Buffer;
}

/**
 * A request for an account's records in one part, from the process of another part (`taker`, in its
 * `term`).
 */
export interface Wish {
	readonly sender: string;
	readonly taker: string;
	readonly term: string;
}

/**
 * The keys of a move that did not move. The other part has them too, or, if `isFenced`, a part has
 * a new process.
 */
export interface Moved {
	readonly left: readonly string[];
	readonly isFenced: boolean;
}

/**
 * The parts of a store, as seen from one of them. Each process has one part. A record moves from
 * part to part in one transaction, and only while both parts still belong to the processes of the
 * move. All methods reject if the database does not respond.
 */
export interface StoreParts {
	/** The name of this process's part. */
	readonly own: string;
	/** The other parts that may have records. */
	others(): Promise<readonly OtherPart[]>;
	/**
	 * The records of an account in the other parts, and those under exactly `key`. All calls in one
	 * turn of the event loop share one query.
	 */
	ofSender(sender: string, key: string): Promise<readonly PartRecord[]>;
	/** The records of an account in this part. */
	ownOf(sender: string): Promise<readonly PartRecord[]>;
	/**
	 * The records of all parts that belong to an account and whose keys end with one of `hashes`,
	 * and those of the other parts under exactly one of `keys`. The look-ups use separate
	 * connections, {@link StoreParts.lookups} at most, so that they can't delay anything else.
	 */
	ofHashes(hashes: readonly string[], keys: readonly string[]): Promise<readonly PartRecord[]>;
	/** How many look-ups by hash can be made at the same time. */
	readonly lookups: number;
	/** Those of `senders` that have records in other parts. */
	alsoElsewhere(senders: readonly string[]): Promise<readonly string[]>;
	/** Opens a part whose process has left it. Null if the part has a process. */
	open(part: string): Promise<LeftPart | null>;
	/** Moves records of this part to the taker, if it still wants them. */
	give(keys: readonly string[], to: Wish): Promise<Moved>;
	/** Open requests of the other parts for records of this one. */
	wishes(): Promise<readonly Wish[]>;
	/** Asks `parts` for an account's records. */
	wish(sender: string, parts: readonly string[]): Promise<void>;
	/**
	 * Withdraws a request of this part. If it was granted, the records are here now. It can't be
	 * granted any more later.
	 */
	unwish(sender: string): Promise<void>;
	/** Whether requests of this part for an account are still open. */
	isOpen(sender: string): Promise<boolean>;
	/** Reports to the taker that its request was granted, as far as possible. */
	granted(wish: Wish): Promise<void>;
	/**
	 * Sets the only listener. It is called soon after another part requests records of this one, or
	 * grants it some.
	 */
	onNews(listener: () => void): void;
}

/** A part without a process, which this process has opened. */
export interface LeftPart extends SharedStore {
	/** Moves records to this process's own part. */
	moveHere(keys: readonly string[]): Promise<Moved>;
	/** Closes it. `isEmpty`: whether it has no records left that others need to look for. */
	leave(isEmpty: boolean): Promise<void>;
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
