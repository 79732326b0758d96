// The interface of a durable key-value store without a schema.

/** One change; `value` null removes the key. */
export interface Change {
	readonly key: string;
	readonly value: Uint8Array | null;
	/** The account that it is about, by which {@link StoreParts} finds it. Without parts of no effect. */
	readonly sender?: string | undefined;
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
	/** Resolves when it is known that this process still had the store after this call, or when `isHeld` is false. Never rejects. */
	confirm(): Promise<void>;
	/** Why nothing can be stored now, as far as it has been tried; null while all is well. Public. */
	readonly trouble: string | null;
	/** This process's term; null where no other process can reach the store. */
	readonly term: Term | null;
	/** What the file or the table takes on disk, in bytes: of all stores in it. */
	bytes(): Promise<number>;
	/** Set where several processes have a part of one store each: this store is such a part. */
	readonly parts?: StoreParts;
}

/** The time for which one process has a store that several can reach. */
export interface Term {
	/** Rises with each holder. */
	readonly number: number;
	/** What those show the holder that do not have the store. */
	readonly secret: string;
}

/** Another part of a store. */
export interface OtherPart {
	readonly part: string;
	/** Whether its process is gone for so long that its part may be opened by another. */
	readonly isLeft: boolean;
}

/** A record of a part. */
export interface PartRecord {
	readonly part: string;
	readonly key: string;
	readonly value: Buffer;
}

/** An account's records in one part, which the process of another part (`taker`, in its `term`) wants. */
export interface Wish {
	readonly sender: string;
	readonly taker: string;
	readonly term: string;
}

/** The keys of a move that are still where they were: the other part has them too, or, if `isFenced`, a part has a new process. */
export interface Moved {
	readonly left: readonly string[];
	readonly isFenced: boolean;
}

/**
 * The parts of a store of which each process has one, as seen from its own. A record moves from part to part in one transaction,
 * and only while both belong to the processes that the move is between. All methods reject if the database does not answer.
 */
export interface StoreParts {
	/** The name of this process's part. */
	readonly own: string;
	/** The other parts that may hold anything. */
	others(): Promise<readonly OtherPart[]>;
	/** What the other parts hold of an account, and under exactly `key`. Questions of one turn are one query. */
	ofSender(sender: string, key: string): Promise<readonly PartRecord[]>;
	/** What this part holds of an account. */
	ownOf(sender: string): Promise<readonly PartRecord[]>;
	/**
	 * What all parts hold under keys that end with one of `hashes`, of an account; and what the others hold under exactly one of
	 * `keys`. Asked over connections of its own, so that these look-ups can't delay anything else. They are
	 * {@link StoreParts.lookups} at most.
	 */
	ofHashes(hashes: readonly string[], keys: readonly string[]): Promise<readonly PartRecord[]>;
	/** How many look-ups by hash can be made at the same time. */
	readonly lookups: number;
	/** Which of these accounts other parts hold anything of. */
	alsoElsewhere(senders: readonly string[]): Promise<readonly string[]>;
	/** Opens a part that its process has left; null if it has a process. */
	open(part: string): Promise<LeftPart | null>;
	/** Moves records of this part to the taker, if it still wants them. */
	give(keys: readonly string[], to: Wish): Promise<Moved>;
	/** What the others want of this part. */
	wishes(): Promise<readonly Wish[]>;
	/** Asks `parts` for an account's records. */
	wish(sender: string, parts: readonly string[]): Promise<void>;
	/** Takes a wish of this part's back. If it was granted, the records are here now; later it is not granted any more. */
	unwish(sender: string): Promise<void>;
	/** Whether wishes of this part's for an account are still open. */
	isOpen(sender: string): Promise<boolean>;
	/** Tells the taker that its wish was granted, as far as it can be. */
	granted(wish: Wish): Promise<void>;
	/** Sets the one listener, called soon after another part wants something of this one, or has granted it something. */
	onNews(listener: () => void): void;
}

/** A part without a process, in this one's hands. */
export interface LeftPart extends SharedStore {
	/** Moves records to this process's own part. */
	moveHere(keys: readonly string[]): Promise<Moved>;
	/** Closes it. `isEmpty`: whether nothing is left in it that anybody need look for. */
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
