// The rows of a store that several boost instances share. An account's rows are in memory while
// this instance is its home, or while a request uses them. If another instance has written the
// account, its rows are read again, and what this one has changed since is applied to them.

import { type Clock, inSlices } from "../../shared/clock.ts";
import { archivedKey, hashIn } from "../../shared/kv/archive.ts";
import type { Accounts, StoreRecord } from "../../shared/kv/port.ts";
import type { Logger } from "../../shared/log.ts";
import { markAsked } from "../domain/deliveries.ts";
import { statesAt } from "../domain/deliveryState.ts";
import { isRevivable, joinRow } from "../domain/owners.ts";
import type { AccountRequest, Claim } from "../domain/ports.ts";
import {
	cancelsPendingAt,
	endRow,
	holdersOf,
	isEndedByUser,
	isHolder,
	isLive,
	type Row,
	setCancelPending,
} from "../domain/row.ts";
import type { Dirty, Journal, RowChange } from "../journal/journal.ts";
import { RowReader, readArchived } from "../journal/readRows.ts";
import { isSameOnDisk, keysOf } from "../journal/records.ts";
import { byNonce } from "./liveRows.ts";

/** Number of accounts that are read at a time, when they are taken over. */
const READ_AT_ONCE = 8;

/** The table of rows in memory. */
export interface RowTable {
	get(hash: string): Row | null;
	/** All of an account's rows. */
	ofAccount(from: string): readonly Row[];
	/** A row from the store as it is in memory. */
	opened(row: Row): Row;
	/** Replaces a row in memory only; null: none. */
	replace(before: Row | null, row: Row | null): void;
	/** Runs `work`, which replaces rows of one account. */
	inBulk(from: string, work: () => void): void;
	/** Changes a row in memory and on disk. */
	apply(hash: string, made: RowChange): void;
	/** Removes a row from memory only. */
	drop(row: Row): void;
}

export interface SharedRowsDependencies {
	readonly accounts: Accounts;
	readonly journal: Journal;
	readonly table: RowTable;
	readonly clock: Clock;
	readonly log: Logger;
}

/** The rows that one read of the store has found. */
export interface FoundRows {
	/** With work left. */
	readonly open: readonly Row[];
	/** Archived. */
	readonly settled: readonly Row[];
}

export class SharedRows {
	readonly #dependencies: SharedRowsDependencies;
	/** Accounts that are being read. */
	readonly #reading = new Map<string, Promise<void>>();
	/** Rows that requests wait to be written before they send them. */
	readonly #claims = new Set<string>();
	/** Number of requests that use an account. */
	readonly #uses = new Map<string, number>();

	constructor(dependencies: SharedRowsDependencies) {
		this.#dependencies = dependencies;
		dependencies.journal.onTaken((from) => {
			// Nobody waits for it; the journal tries again.
			this.#read(from, null).catch(() => {});
		});
	}

	get accounts(): Accounts {
		return this.#dependencies.accounts;
	}

	/**
	 * Brings an account's rows into memory, where they stay until the returned function is called.
	 * `hash`: its transaction, which may be archived. `isCareful`: reads them again if another
	 * instance has written them; otherwise the next write shows that. Rejects if the database does
	 * not answer.
	 */
	async enter({
		from,
		hash,
		isCareful,
	}: Pick<AccountRequest, "from" | "hash" | "isCareful">): Promise<() => void> {
		this.#uses.set(from, (this.#uses.get(from) ?? 0) + 1);
		const leave = (): void => {
			const count = (this.#uses.get(from) ?? 1) - 1;
			if (count > 0) this.#uses.set(from, count);
			else {
				this.#uses.delete(from);
				this.#leave(from);
			}
		};
		try {
			await this.#bring(from, hash, isCareful);
			return leave;
		} catch (thrown) {
			leave();
			throw thrown;
		}
	}

	/** Whether a live row may be sent. See {@link Claim}. */
	async claimed({ hash, from, version }: Row): Promise<Claim> {
		const { accounts, journal, table } = this.#dependencies;
		if (!journal.isDurable) return "failed";
		const isStill = () => {
			const row = table.get(hash);
			return row !== null && isLive(row) && row.version === version;
		};
		this.#claims.add(hash);
		try {
			if (journal.holds(hash)) {
				if (!(await journal.written(hash)) && isStill()) return "failed";
			} else if (!(await accounts.isCurrent(from))) await this.#readAnew(from, null);
			return isStill() ? "won" : "lost";
		} catch {
			return "failed";
		} finally {
			this.#claims.delete(hash);
		}
	}

	/** Reads accounts that this instance has taken over. */
	async takeIn(senders: readonly string[]): Promise<void> {
		for (let at = 0; at < senders.length; at += READ_AT_ONCE)
			await Promise.all(senders.slice(at, at + READ_AT_ONCE).map((from) => this.#readAnew(from, null)));
	}

	/**
	 * Reads accounts again that another instance has written. Others leave memory if this is not
	 * their home.
	 */
	async refresh(senders: readonly string[]): Promise<void> {
		const { accounts } = this.#dependencies;
		await Promise.all(
			senders.map(async (from) => {
				if (accounts.knows(from) && (await accounts.isCurrent(from))) this.#leave(from);
				else await this.#readAnew(from, null);
			}),
		);
	}

	/** Rows in pages of records, in the order of their keys. Yields to other work in between. */
	async decoded(
		pages: Iterable<readonly StoreRecord[]> | AsyncIterable<readonly StoreRecord[]>,
	): Promise<FoundRows> {
		const { clock, log } = this.#dependencies;
		const reader = new RowReader(log);
		const settled: Row[] = [];
		for await (const page of pages)
			await inSlices(page, clock, ({ key, value, bytes }) => {
				if (!key.startsWith(ARCHIVED)) reader.take(key, value, bytes);
				else {
					const row = readArchived(hashIn(key), value, log);
					if (row !== null) settled.push(row);
				}
			});
		return { open: reader.rows(), settled };
	}

	/** An account's live rows as the store has them, by nonce and arrival. */
	async stored(from: string): Promise<readonly Row[]> {
		const { open } = await this.decoded(this.#dependencies.accounts.pages(from));
		return open.filter(isLive).sort(byNonce);
	}

	async #bring(from: string, hash: string, isCareful: boolean): Promise<void> {
		const { accounts } = this.#dependencies;
		await this.#readBefore(from);
		if (accounts.knows(from) && (!isCareful || (await accounts.isCurrent(from)))) return;
		await this.#readAnew(from, hash);
	}

	/** Ends when no read of the account is running. */
	async #readBefore(from: string): Promise<void> {
		for (let running = this.#reading.get(from); running !== undefined; running = this.#reading.get(from))
			await running.catch(() => {});
	}

	/** A read that began earlier may have seen an earlier state. */
	async #readAnew(from: string, hash: string | null): Promise<void> {
		await this.#readBefore(from);
		await this.#read(from, hash);
	}

	/** `hash`: one that may be archived, too. */
	#read(from: string, hash: string | null): Promise<void> {
		const running = this.#reading.get(from);
		if (running !== undefined) return running;
		const reading = this.#readNow(from, hash).finally(() => this.#reading.delete(from));
		this.#reading.set(from, reading);
		return reading;
	}

	async #readNow(from: string, hash: string | null): Promise<void> {
		const { accounts, journal } = this.#dependencies;
		await journal.hold(from);
		let found: FoundRows;
		/** A transaction with a change here may have ended elsewhere. */
		const hashes = new Set(hash === null ? [] : [hash]);
		const isMore = () => {
			const before = hashes.size;
			for (const one of journal.waiting(from)) hashes.add(one);
			return hashes.size > before;
		};
		try {
			isMore();
			do found = await this.decoded([await accounts.load(from, [...hashes].map(archivedKey))]);
			while (isMore());
		} catch (thrown) {
			journal.failed(from, thrown);
			throw thrown;
		}
		this.#settle(from, found, journal.takeBack(from));
	}

	/**
	 * `waiting`: states that are not on disk. A request that waits for its own to be written decides
	 * again. All others are applied to what was found.
	 */
	#settle(from: string, { open, settled }: FoundRows, waiting: ReadonlyMap<string, Dirty>): void {
		const { journal, table } = this.#dependencies;
		const before = new Map(table.ofAccount(from).map((row) => [row.hash, row]));
		const found = new Map([...open, ...settled].map((row) => [row.hash, row]));
		/** Those that were accepted while the database did not answer. */
		const isLeft = (hash: string) => {
			const state = waiting.get(hash);
			return state?.isLeft === true || (state?.arrives === true && !this.#claims.has(hash));
		};
		const stays = new Set(
			[...waiting].flatMap(([hash, { row }]) =>
				isLeft(hash) && isNewer(row, found.get(hash)) ? [hash] : [],
			),
		);
		table.inBulk(from, () => {
			for (const [hash, row] of before) {
				// A settled row of no account may not be on disk yet.
				const isLoose = journal.holds(hash) && !waiting.has(hash) && !found.has(hash);
				if (!stays.has(hash) && !isLoose) table.drop(row);
			}
			for (const [hash, row] of found) {
				if (stays.has(hash)) continue;
				const own = before.get(hash) ?? null;
				table.replace(null, carried(table.opened(row), own, waiting.get(hash)?.arrives === true));
			}
		});
		for (const [hash, state] of waiting) {
			if (stays.has(hash)) {
				const was = found.get(hash);
				journal.writeAgain(hash, state, was === undefined ? null : keysOf(was));
				continue;
			}
			if (isLeft(hash)) table.apply(hash, (row) => row && joined(row, state.row));
			else if (!state.arrives) for (const one of state.made) table.apply(hash, one);
			// The changes have counted their requests once before.
			const requests = requestsLeft(before.get(hash) ?? null, state.arrives);
			table.apply(hash, (row) => (row === null || row.requests === requests ? row : { ...row, requests }));
		}
		// A row may be gone from memory, and still be written: without the mark that was read, never.
		if (![...waiting.keys()].some((hash) => journal.holds(hash))) this.#leave(from);
	}

	/** An account without requests in progress stays in memory at its home only. */
	#leave(from: string): void {
		const { accounts, journal, table } = this.#dependencies;
		if (this.#uses.has(from) || !accounts.knows(from) || accounts.isHome(from)) return;
		const rows = table.ofAccount(from);
		if (rows.length === 0 || rows.some(({ hash }) => journal.holds(hash))) return;
		table.inBulk(from, () => {
			for (const row of rows) table.drop(row);
		});
		accounts.forget(from);
	}
}

const ARCHIVED = archivedKey("");

/**
 * `found` with what only memory knows of it. `arrives`: this process had taken it for a new one, so
 * the request that brought it decides again.
 */
function carried(found: Row, own: Row | null, arrives: boolean): Row {
	if (own === null) return found;
	const requests = requestsLeft(own, arrives);
	if (arrives || !isLive(own) || !isLive(found)) return { ...found, requests };
	const { version, notes } = own;
	// Memory knows more of the deliveries, if nobody has changed them. An attempt at the relay may be
	// another instance's too, and must not be undone.
	const isSame = isSameOnDisk({ ...own, owners: found.owners }, found);
	const relay = own.at.relay.askedAt > 0 ? found.at.relay : own.at.relay;
	return { ...found, requests, version, notes, at: isSame ? statesAt(relay, own.at.fallback) : found.at };
}

/** Whether a row that only memory has is a later life of the transaction than what was found. */
function isNewer(own: Row | null, found: Row | undefined): boolean {
	if (found === undefined || own === null) return found === undefined;
	if (isLive(found) || found.desired === "mined") return false;
	return !isEndedByUser(found) || (isRevivable(found) && own.receivedAt > found.endedAt);
}

/** The number of requests in progress about a row. `arrives`: without the request for it. */
function requestsLeft(own: Row | null, arrives: boolean): number {
	return Math.max(0, (own?.requests ?? 0) - (arrives ? 1 : 0));
}

/** `found` with what this process has done about the transaction while it knew of no other row. */
function joined(found: Row, own: Row | null): Row {
	if (own === null) return found;
	if (isLive(found) && own.desired !== "live" && isEndedByUser(own)) {
		const at = new Set([...holdersOf(found), ...holdersOf(own), ...cancelsPendingAt(own)]);
		return { ...endRow(found, own.desired, own.endedAt, [...at]), bySender: own.bySender };
	}
	const more = holdersOf(own).filter((by) => !isHolder(found.at[by]));
	if (!isLive(found)) {
		return isEndedByUser(found) ? more.reduce((row, by) => setCancelPending(row, by, true), found) : found;
	}
	const asked = more.reduce((row, by) => markAsked(row, by, own.at[by].askedAt), found);
	const all = own.owners.reduce((row, owner) => joinRow(row, owner, "fallback"), asked);
	return { ...all, acknowledged: found.acknowledged || own.acknowledged };
}
