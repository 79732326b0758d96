// An in-memory database that several boost instances share, for tests of all orders of events. The
// contract test of accounts runs on it too, so that it behaves like PostgreSQL.

import {
	type Accounts,
	AccountTakenError,
	type AccountWrite,
	type KeyValueStore,
	prefixRange,
	type SharedStore,
	type StoreRecord,
} from "../../../../shared/kv/port.ts";

interface Entry {
	readonly value: Buffer;
	readonly sender: string | undefined;
}

interface Account {
	readonly mark: number;
	readonly home: string;
}

/** The database of all instances. */
export class SharedDisk {
	readonly entries = new Map<string, Entry>();
	readonly accounts = new Map<string, Account>();
	readonly instances = new Map<string, { isSilent: boolean; reaches: boolean }>();
	#marks = 0;

	newMark(): number {
		this.#marks += 1;
		return this.#marks;
	}

	/** One instance's store. */
	open(instance: string): KeyValueStore & Required<Pick<SharedStore, "accounts">> {
		const accounts = new SharedDiskAccounts(this, instance);
		return {
			accounts,
			get: async (key) => this.entries.get(key)?.value ?? null,
			range: (start, end, limit) => this.#range(start, end, limit),
			write: (changes) => accounts.write({ sender: null, changes, absent: [] }),
			close: async () => {},
		};
	}

	async *#range(start: string, end: string, limit = Number.POSITIVE_INFINITY) {
		const keys = [...this.entries.keys()].filter((key) => key >= start && key < end).sort();
		for (const key of keys.slice(0, limit))
			yield [key, this.entries.get(key)?.value ?? Buffer.alloc(0)] as const;
	}

	recordsOf(has: (key: string, sender: string | undefined) => boolean): readonly StoreRecord[] {
		return [...this.entries]
			.flatMap(([key, { value, sender }]) => (has(key, sender) ? [{ key, value, bytes: value.length }] : []))
			.sort((one, other) => (one.key < other.key ? -1 : 1));
	}
}

class SharedDiskAccounts implements Accounts {
	readonly instance: string;
	readonly lookups = 2;
	readonly #disk: SharedDisk;
	readonly #marks = new Map<string, number>();

	constructor(disk: SharedDisk, instance: string) {
		this.#disk = disk;
		this.instance = instance;
		disk.instances.set(instance, { isSilent: false, reaches: true });
	}

	knows(sender: string): boolean {
		return this.#marks.has(sender);
	}

	isHome(sender: string): boolean {
		return this.knows(sender) && this.#disk.accounts.get(sender)?.home === this.instance;
	}

	async load(sender: string, keys: readonly string[] = []): Promise<readonly StoreRecord[]> {
		this.#marks.set(sender, this.#markOf(sender));
		return this.#disk.recordsOf((key, by) => by === sender || keys.includes(key));
	}

	async *pages(sender: string): AsyncGenerator<readonly StoreRecord[]> {
		yield this.#disk.recordsOf((_, by) => by === sender);
	}

	async isCurrent(sender: string): Promise<boolean> {
		return this.#marks.get(sender) === this.#markOf(sender);
	}

	forget(sender: string): void {
		this.#marks.delete(sender);
	}

	async write({ sender, changes, absent }: AccountWrite): Promise<void> {
		const { entries, accounts, instances } = this.#disk;
		if (sender !== null) {
			if (!instances.has(this.instance)) throw new Error("buried");
			const isKnown = this.#marks.get(sender) === this.#markOf(sender);
			if (!isKnown || absent.some((key) => entries.has(key))) {
				this.forget(sender);
				throw new AccountTakenError();
			}
			const mark = this.#disk.newMark();
			accounts.set(sender, { mark, home: this.instance });
			this.#marks.set(sender, mark);
		}
		for (const { key, value, sender: of } of changes) {
			if (value === null) entries.delete(key);
			else entries.set(key, { value: Buffer.from(value), sender: of });
		}
	}

	async ofHashes(hashes: readonly string[], keys: readonly string[]): Promise<readonly StoreRecord[]> {
		return this.#disk.recordsOf((key, sender) => {
			return keys.includes(key) || (sender !== undefined && hashes.some((hash) => key.endsWith(hash)));
		});
	}

	async report(reaches: boolean) {
		this.#disk.instances.set(this.instance, { isSilent: false, reaches });
		return [...this.#disk.instances].flatMap(([name, one]) =>
			name === this.instance ? [] : [{ name, ...one, upSeconds: 0, secondsAgo: 0 }],
		);
	}

	async owned(): Promise<readonly string[]> {
		return [...this.#disk.accounts].flatMap(([sender, { home }]) => (home === this.instance ? [sender] : []));
	}

	async takeOver(from: readonly string[]): Promise<readonly string[]> {
		const { accounts, instances } = this.#disk;
		const taken = [...accounts].flatMap(([sender, { home }]) => {
			const isDue = !instances.has(home) || from.includes(home);
			return isDue && this.#disk.recordsOf((_, by) => by === sender).length > 0 ? [sender] : [];
		});
		for (const sender of taken) accounts.set(sender, { mark: this.#disk.newMark(), home: this.instance });
		return taken;
	}

	async bury(names: readonly string[]): Promise<void> {
		for (const name of names) this.#disk.instances.delete(name);
	}

	/** The model has no time. */
	async purge(): Promise<boolean> {
		return false;
	}

	async count(prefix: string): Promise<number> {
		const [start, end] = prefixRange(prefix);
		return this.#disk.recordsOf((key) => key >= start && key < end).length;
	}

	#markOf(sender: string): number {
		return this.#disk.accounts.get(sender)?.mark ?? 0;
	}
}
