// The interface of a durable key-value store without a schema.

/** One change; `value` null removes the key. */
export interface Change {
	readonly key: string;
	readonly value: Uint8Array | null;
	/** The account of a record with work left, by which {@link Accounts.load} finds it. */
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
	/** Set if several processes share the store. */
	readonly accounts?: Accounts;
}

/** The time for which one process has a store that several can reach. */
export interface Term {
	/** Rises with each holder. */
	readonly number: number;
	/** Secret that processes without the store present to the holder. */
	readonly secret: string;
}

/** An entry of a store. */
export interface StoreRecord {
	readonly key: string;
	/** Only the metadata of an envelope, without the transaction; see archive.ts. */
	readonly value: Buffer;
	/** The length of the whole value. */
	readonly bytes: number;
}

/** Another process that shares the accounts. */
export interface OtherInstance {
	readonly name: string;
	/** Whether it has stopped, or has not reported for three seconds. */
	readonly isSilent: boolean;
	/** Whether it reaches the relay. */
	readonly reaches: boolean;
	/** How long it has reported without an interruption, and when it did so last, in s. */
	readonly upSeconds: number;
	readonly secondsAgo: number;
}

/** A write of an account's records. */
export interface AccountWrite {
	/** Null: records of no account, which are written in any case. */
	readonly sender: string | null;
	readonly changes: readonly Change[];
	/** Keys that must not exist yet. */
	readonly absent: readonly string[];
}

/**
 * The accounts in a store that several processes share. Each account has a mark: a random number,
 * set by its last writer. A write is applied only if the account still has the mark that this
 * process knows. Otherwise another process has written it since, and this one reads and decides
 * again. An account's home is the process that wrote it last. It looks after the account, but owns
 * nothing. All methods reject if the database does not answer.
 */
export interface Accounts {
	/** The name of this process, new with each start. */
	readonly instance: string;
	/** Whether this process knows a mark of the account. */
	knows(sender: string): boolean;
	/** Whether this process is the account's home, as far as it knows. */
	isHome(sender: string): boolean;
	/**
	 * Reads the records of an account that have work left, and those under `keys`, in the order of
	 * their keys. Its mark is known from then on. All calls in one turn of the event loop share one
	 * query.
	 */
	load(sender: string, keys?: readonly string[]): Promise<readonly StoreRecord[]>;
	/**
	 * The records of an account that have work left, page by page in the order of their keys. They
	 * need not be of one moment, and the mark stays unknown.
	 */
	pages(sender: string): AsyncIterable<readonly StoreRecord[]>;
	/**
	 * Whether no other process has written the account since. All calls in one turn of the event loop
	 * share one query.
	 */
	isCurrent(sender: string): Promise<boolean>;
	/** Forgets the mark of an account. */
	forget(sender: string): void;
	/**
	 * Writes all changes or none. Rejects with {@link AccountTakenError} if the mark is not known or
	 * another process has written the account since, or if a key of `absent` exists. Rejects with
	 * another error if the others have taken this process for ended; a report ends that.
	 */
	write(write: AccountWrite): Promise<void>;
	/**
	 * The records with work left whose keys end with one of `hashes`, and those under exactly one of
	 * `keys`, in the order of their keys. The look-ups use separate connections, {@link
	 * Accounts.lookups} at most, so that they can't delay anything else.
	 */
	ofHashes(hashes: readonly string[], keys: readonly string[]): Promise<readonly StoreRecord[]>;
	/** How many look-ups by hash can be made at the same time. */
	readonly lookups: number;
	/** Reports that this process is alive, and reads what the others have reported. */
	report(reachesRelay: boolean): Promise<readonly OtherInstance[]>;
	/**
	 * Takes over up to 500 accounts that have work left and whose homes are among `from`, or are no
	 * process's name any more. They must then be loaded.
	 */
	takeOver(from: readonly string[]): Promise<readonly string[]>;
	/** The accounts with work left whose home this process is. */
	owned(): Promise<readonly string[]>;
	/** Removes the names of silent processes that have no accounts left. */
	bury(names: readonly string[]): Promise<void>;
	/** Removes some accounts without rows. Returns whether there may be more. */
	purge(): Promise<boolean>;
	/** Number of entries with this prefix. */
	count(prefix: string): Promise<number>;
}

/** Another process has written the account since this one read it. */
export class AccountTakenError extends Error {
	override readonly name = "AccountTakenError";
	readonly code = "ACCOUNT_TAKEN";
	constructor() {
		super("another boost instance has written the account since");
	}
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
