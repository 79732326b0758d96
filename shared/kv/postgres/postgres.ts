// The store in PostgreSQL, for hosts without a lasting disk. Several processes can share a
// database; each store has one writer.

import { readFileSync } from "node:fs";
import type { Clock } from "../../clock.ts";
import type { Logger } from "../../log.ts";
import { OtherFormatError } from "../format.ts";
import { GroupCommit } from "../groupCommit.ts";
import type { Change, SharedStore, Term } from "../port.ts";
import { Database, type DatabaseOptions, type Query } from "./database.ts";
import { StoreLostError } from "./errors.ts";
import { GroupRead } from "./groupRead.ts";
import { Lease, type LeaseOptions, TERM } from "./lease.ts";
import { Statements } from "./statements.ts";

export type PostgresOptions = LeaseOptions & Pick<DatabaseOptions, "url" | "verify">;

export interface PostgresDependencies {
	readonly clock: Clock;
	readonly log: Logger;
	/** Called if another process has taken over the store. This process must then exit. */
	readonly onLost?: () => void;
}

/**
 * Returns no row if the term is over, since another process may have accepted the missing
 * transactions. Within the term there is at least one row, without a key if no value was found.
 */
const GET = `SELECT s.key, s.value FROM leeward_holder h
	LEFT JOIN leeward_store s ON s.store = h.store AND s.key = ANY($2::text[])
	WHERE h.store = $1 AND ${TERM} = $3`;
/**
 * All changes in one statement, which is one transaction. Changes nothing if the term is over or a
 * later write came first. The row stays locked until the commit, so that no other process can take
 * over the store in between.
 */
const WRITE = `WITH held AS (
		UPDATE leeward_holder SET seq = $6 WHERE store = $1 AND ${TERM} = $2 AND seq < $6 RETURNING 1),
	gone AS (DELETE FROM leeward_store WHERE store = $1 AND key = ANY($3::text[]) AND EXISTS (SELECT 1 FROM held)),
	put AS (INSERT INTO leeward_store (store, key, value, sender)
		SELECT $1, t.key, t.value, t.sender FROM unnest($4::text[], $5::bytea[], $7::text[]) AS t(key, value, sender)
		WHERE EXISTS (SELECT 1 FROM held)
		ON CONFLICT (store, key) DO UPDATE SET value = excluded.value, sender = excluded.sender)
	SELECT count(*)::integer AS held FROM held`;

/**
 * Opens the store, makes the tables in a new database, and takes the lease. Throws StoreInUseError,
 * DatabaseDownError, DatabaseRefusedError, DatabaseUrlError, OtherFormatError, or the database's
 * error.
 */
export async function openPostgres(
	options: PostgresOptions,
	{ clock, log, onLost = () => {} }: PostgresDependencies,
): Promise<SharedStore> {
	const { store, url, verify } = options;
	const database = new Database({ url, verify, name: store }, { clock });
	const lease = new Lease(options, { database, clock, log, onLost });
	try {
		if (await makeTables(database)) log.info("created the tables of a new database", { store });
		await lease.take();
		database.tellBy(log);
	} catch (thrown) {
		await lease.release();
		await database.close();
		throw thrown;
	}
	return new PostgresStore(store, { database, lease, clock });
}

class PostgresStore implements SharedStore {
	readonly term: Term;
	readonly #store: string;
	readonly #database: Database;
	readonly #lease: Lease;
	readonly #group: GroupCommit;
	readonly #statements: Statements;
	readonly #values: GroupRead;
	#isClosed = false;
	/** Sequence number of the last write attempt. */
	#seq = 0;

	constructor(store: string, { database, lease, clock }: { database: Database; lease: Lease; clock: Clock }) {
		this.#store = store;
		this.#database = database;
		this.#lease = lease;
		this.term = { number: lease.number, secret: lease.secret };
		this.#group = new GroupCommit(async (writes, since) => {
			await this.#commit(
				writes.flatMap(({ changes }) => changes),
				since,
			);
			return undefined;
		}, clock);
		this.#statements = new Statements(store, { database, clock });
		this.#values = new GroupRead((keys) => this.#read(keys));
	}

	get isHeld(): boolean {
		return this.#lease.isHeld;
	}

	confirm(): Promise<void> {
		return this.#lease.confirm();
	}

	get trouble(): string | null {
		return this.#database.trouble;
	}

	get(key: string): Promise<Buffer | null> {
		return this.#values.get(key);
	}

	range(start: string, end: string, limit?: number) {
		return this.#statements.range(start, end, limit);
	}

	write(changes: readonly Change[]): Promise<void> {
		if (this.#isClosed && changes.length > 0) return Promise.reject(new Error("the store is closed"));
		return this.#group.write({ changes });
	}

	bytes(): Promise<number> {
		return this.#statements.bytes();
	}

	async close(): Promise<void> {
		this.#isClosed = true;
		await this.#group.idle();
		await this.#lease.release();
		await this.#database.close();
	}

	async #read(keys: readonly string[]): Promise<ReadonlyMap<string, Buffer>> {
		const query = { name: "get", text: GET, values: [this.#store, keys, this.#lease.term] };
		const rows = await this.#statements.answered(query);
		if (rows.length === 0) throw this.#lost();
		return new Map(
			rows.flatMap(({ key, value }) => (key === null ? [] : [[key as string, value as Buffer]])),
		);
	}

	/**
	 * May write the same changes twice. After a lost connection it is unknown whether they were
	 * committed.
	 */
	async #commit(changes: readonly Change[], since: number): Promise<void> {
		const last = new Map(changes.map((change) => [change.key, change]));
		const gone: string[] = [];
		const keys: string[] = [];
		const values: Buffer[] = [];
		const senders: (string | null)[] = [];
		for (const { key, value, sender = null } of last.values()) {
			if (value === null) gone.push(key);
			else {
				keys.push(key);
				values.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
				senders.push(sender);
			}
		}
		const query = (): Query => {
			this.#seq += 1;
			const given = [this.#store, this.#lease.term, gone, keys, values, this.#seq, senders];
			return { name: "write", text: WRITE, values: given };
		};
		const bytes = values.reduce((sum, { length }) => sum + length, 0);
		const rows = await this.#statements.committed(query, { since, bytes });
		if (rows[0]?.held !== 1) throw this.#lost();
	}

	/** Another process has the lease. Reports that once. */
	#lost(): StoreLostError {
		this.#lease.lost();
		return new StoreLostError(this.#store);
	}
}

const TABLES = new URL("./tables.sql", import.meta.url);
/** The advisory lock while tables are made: an arbitrary number. */
const LOCK = 7_133_519_024;
/** Earlier versions had no table of accounts. */
const STATE = `SELECT to_regclass('leeward_store') IS NOT NULL AS made, to_regclass('leeward_account') IS NOT NULL AS accounts`;

/**
 * Makes the tables in a new database, and returns whether it is one. Throws {@link
 * OtherFormatError} or the database's error.
 */
export async function makeTables(database: Database): Promise<boolean> {
	const client = await database.connect();
	try {
		await client.query("BEGIN");
		await client.query({ text: "SELECT pg_advisory_xact_lock($1)", values: [LOCK] });
		const { rows } = await client.query<{ made: boolean; accounts: boolean }>(STATE);
		const isNew = rows[0]?.made !== true;
		if (!isNew && rows[0]?.accounts !== true) throw new OtherFormatError();
		if (isNew) await client.query(readFileSync(TABLES, "utf8"));
		await client.query("COMMIT");
		client.release();
		return isNew;
	} catch (thrown) {
		// Closing the connection rolls the transaction back.
		client.release(true);
		throw thrown;
	}
}
