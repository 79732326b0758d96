// A store in PostgreSQL that several processes share, account by account. A write names the mark
// that the process has read, and sets a new one, in one statement. So of two processes that decide
// about an account at the same time, one loses and decides again.

import { randomInt, randomUUID } from "node:crypto";
import { type Clock, inSlices } from "../../clock.ts";
import { recentlyUsed } from "../../recentlyUsed.ts";
import { GroupCommit } from "../groupCommit.ts";
import {
	type Accounts,
	AccountTakenError,
	type AccountWrite,
	type Change,
	type OtherInstance,
	prefixRange,
	type SharedStore,
	type StoreRecord,
} from "../port.ts";
import { Database, type Query, type Rows } from "./database.ts";
import { GroupRead } from "./groupRead.ts";
import { makeTables, type PostgresDependencies, type PostgresOptions } from "./postgres.ts";
import { Statements } from "./statements.ts";

/** Connections for look-ups by hash, which clients can request without a limit. */
const LOOKUPS = 2;
/** Deadline of one query, since clients wait for it. */
const QUERY_MS = 1_000;
/** Deadline of take-overs and purges, for which no client waits. */
const TAKE_MS = 5_000;
/** An instance that has not reported for this long is silent; so is one that has stopped. */
const SILENT_MS = 3_000;
/**
 * After a gap of this length in its own reports, an instance judges no other one until it has
 * reported for {@link SILENT_MS}: the database may have been away for all of them.
 */
const GAP_MS = 2_000;
/** The maximum number of accounts taken over, and removed, in one statement. */
const TAKEN_AT_ONCE = 500;
const PURGED_AT_ONCE = 1_000;
/**
 * How long an account stays without records with work left: longer than its archived rows, if it
 * has any. Otherwise its transactions were all refused.
 */
const [KEPT, BEGUN] = ["10 days", "1 hour"];
/** The maximum number of marks in memory. An account without one is read again. */
const MAX_MARKS = 100_000;
/** How often a mark is read, if this process writes the account meanwhile. */
const ASKED_AT_MOST = 4;
/** Records of an account that are read at a time, since they are parsed in one turn. */
const PAGE = 500;
/** The mark of an account that does not exist. */
const NONE = "0";

/**
 * An envelope's metadata without the transaction, which can be large; see enveloped of archive.ts.
 */
const HEAD = `CASE WHEN s.key LIKE 'b/%' AND octet_length(s.value) > 4 THEN substring(s.value FOR 4
	+ (get_byte(substring(s.value FOR 4), 0) << 24) + (get_byte(substring(s.value FOR 4), 1) << 16)
	+ (get_byte(substring(s.value FOR 4), 2) << 8) + get_byte(substring(s.value FOR 4), 3))
	ELSE s.value END AS value, octet_length(s.value) AS bytes`;
const GET = "SELECT key, value FROM leeward_store WHERE store = $1 AND key = ANY($2::text[])";
/** $2: accounts, $3: keys. */
const LOAD = `SELECT a.sender, a.mark::text AS mark, a.home, s.key, ${HEAD} FROM leeward_account a
		LEFT JOIN leeward_store s ON s.store = $1 AND s.sender = a.sender WHERE a.sender = ANY($2::text[])
	UNION ALL SELECT NULL, NULL, NULL, s.key, ${HEAD} FROM leeward_store s
		WHERE s.store = $1 AND s.key = ANY($3::text[]) ORDER BY key`;
/** $2: accounts, $3: the key before the first one of each. */
const PAGES = `SELECT t.look, page.* FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS t(sender, last, look)
	CROSS JOIN LATERAL (SELECT s.key, ${HEAD} FROM leeward_store s
		WHERE s.store = $1 AND s.sender = t.sender AND s.key > t.last ORDER BY s.key LIMIT ${PAGE}) AS page
	ORDER BY t.look, page.key`;
const MARKS = "SELECT sender, mark::text AS mark FROM leeward_account WHERE sender = ANY($1::text[])";
const OF_HASHES = `SELECT s.key, ${HEAD} FROM leeward_store s
		WHERE right(s.key, 66) = ANY($2::text[]) AND s.sender IS NOT NULL AND s.store = $1
	UNION ALL SELECT s.key, ${HEAD} FROM leeward_store s WHERE s.store = $1 AND s.key = ANY($3::text[])
	ORDER BY key`;
const COUNT =
	"SELECT count(*)::integer AS count FROM leeward_store WHERE store = $1 AND key >= $2 AND key < $3";
/**
 * $1: the store, $2: this instance; $3, $4: accounts and the marks that it knows of each; $5, $6:
 * accounts and their new marks; $7, $8: accounts and keys that must not exist; $9, $10: keys to
 * delete, and their accounts; $11 to $14: keys to write, their values, the accounts of the writes,
 * and the accounts of the records. An account of '' is none. The order prevents deadlocks.
 *
 * The statement reads what was committed when it began. If it then waits for another write of the
 * account, it loses (`seen`), since it would not delete the other's records. An instance whose name
 * was removed writes nothing, and gets a row with null: others have taken over its accounts.
 */
const WRITE = `WITH me AS MATERIALIZED (SELECT 1 FROM leeward_instance WHERE name = $2 FOR KEY SHARE),
	known AS (SELECT * FROM unnest($3::text[], $4::bigint[]) AS t(sender, mark)),
	kept AS (SELECT t.sender FROM unnest($11::text[], $13::text[]) AS t(key, sender) WHERE t.key LIKE 'e/%'),
	new AS (SELECT sender, mark, now() + CASE WHEN sender IN (SELECT sender FROM kept)
			THEN interval '${KEPT}' ELSE interval '${BEGUN}' END AS until
		FROM unnest($5::text[], $6::bigint[]) AS t(sender, mark)
		WHERE EXISTS (SELECT 1 FROM me) AND sender NOT IN (
			SELECT t.sender FROM unnest($7::text[], $8::text[]) AS t(sender, key)
			JOIN leeward_store s ON s.store = $1 AND s.key = t.key)),
	seen AS MATERIALIZED (SELECT sender, mark FROM leeward_account WHERE sender = ANY($5::text[])),
	locked AS MATERIALIZED (SELECT sender, mark FROM leeward_account
		WHERE sender = ANY($5::text[]) ORDER BY sender FOR UPDATE),
	made AS (INSERT INTO leeward_account (sender, mark, home, until)
		SELECT sender, mark, $2, until FROM new
		WHERE sender IN (SELECT sender FROM known WHERE mark = 0) AND sender NOT IN (SELECT sender FROM locked)
		ORDER BY sender ON CONFLICT DO NOTHING RETURNING sender),
	moved AS (UPDATE leeward_account a
		SET mark = new.mark, home = $2, until = greatest(a.until, new.until)
		FROM new JOIN locked ON locked.sender = new.sender
			JOIN seen ON seen.sender = locked.sender AND seen.mark = locked.mark
		WHERE a.sender = new.sender AND (new.sender, seen.mark) IN (SELECT sender, mark FROM known)
		RETURNING a.sender),
	won AS (SELECT sender FROM made UNION ALL SELECT sender FROM moved UNION ALL SELECT ''),
	gone AS (DELETE FROM leeward_store s USING unnest($9::text[], $10::text[]) AS t(key, sender)
		WHERE s.store = $1 AND s.key = t.key AND t.sender IN (SELECT sender FROM won)),
	put AS (INSERT INTO leeward_store (store, key, value, sender)
		SELECT $1, t.key, t.value, nullif(t.of, '')
		FROM unnest($11::text[], $12::bytea[], $13::text[], $14::text[]) AS t(key, value, sender, of)
		WHERE t.sender IN (SELECT sender FROM won)
		ON CONFLICT (store, key) DO UPDATE SET value = excluded.value, sender = excluded.sender)
	SELECT sender FROM won UNION ALL SELECT NULL WHERE NOT EXISTS (SELECT 1 FROM me)`;
const REPORT = `WITH own AS (
		INSERT INTO leeward_instance AS i (name, reported, since, reaches)
		VALUES ($1, clock_timestamp(), clock_timestamp(), $2)
		ON CONFLICT (name) DO UPDATE SET reported = clock_timestamp(), reaches = $2,
			since = CASE WHEN i.reported < clock_timestamp() - ${GAP_MS} * interval '1 ms'
				THEN clock_timestamp() ELSE i.since END
		RETURNING since < clock_timestamp() - ${SILENT_MS} * interval '1 ms' AS may_judge)
	SELECT name, reaches, reported = '-infinity' OR ((SELECT may_judge FROM own)
		AND reported < clock_timestamp() - ${SILENT_MS} * interval '1 ms') AS silent,
		extract(epoch FROM clock_timestamp() - since)::float8 AS up,
		CASE WHEN reported = '-infinity' THEN 0
			ELSE extract(epoch FROM clock_timestamp() - reported)::float8 END AS ago
	FROM leeward_instance WHERE name <> $1`;
const STOPPED = "UPDATE leeward_instance SET reported = '-infinity' WHERE name = $1";
/** Accounts that others are writing have a new home in a moment. */
const TAKE = `WITH due AS (SELECT sender FROM leeward_account a
		WHERE (home = ANY($3::text[]) OR home NOT IN (SELECT name FROM leeward_instance))
		AND EXISTS (SELECT 1 FROM leeward_store s WHERE s.store = $1 AND s.sender = a.sender)
		ORDER BY sender LIMIT ${TAKEN_AT_ONCE} FOR UPDATE SKIP LOCKED)
	UPDATE leeward_account a SET home = $2, mark = 1 + (random() * 9e15)::bigint
	FROM due WHERE a.sender = due.sender RETURNING a.sender`;
const OWNED = `SELECT sender FROM leeward_account a WHERE home = $2
	AND EXISTS (SELECT 1 FROM leeward_store s WHERE s.store = $1 AND s.sender = a.sender)`;
/** Accounts without records. The time is compared again if a write has come first. */
const PURGE = `DELETE FROM leeward_account WHERE until < now() AND sender IN (
	SELECT sender FROM leeward_account a WHERE until < now()
	AND NOT EXISTS (SELECT 1 FROM leeward_store s WHERE s.store = $1 AND s.sender = a.sender)
	ORDER BY until LIMIT ${PURGED_AT_ONCE}) RETURNING 1`;
const BURY = `DELETE FROM leeward_instance WHERE name = ANY($1::text[])
	AND reported < clock_timestamp() - ${SILENT_MS} * interval '1 ms'`;

/**
 * Opens the store, and makes the tables in a new database. Throws DatabaseDownError,
 * DatabaseRefusedError, DatabaseUrlError, OtherFormatError, or the database's error.
 */
export async function openAccounts(
	{ url, verify, store }: Pick<PostgresOptions, "url" | "verify" | "store">,
	{ clock, log }: Omit<PostgresDependencies, "onLost">,
): Promise<SharedStore> {
	const database = new Database({ url, verify, name: store }, { clock });
	const lookups = new Database({ url, verify, name: `${store}-lookups`, connections: LOOKUPS }, { clock });
	const accounts = new PostgresAccounts(store, { database, lookups, clock });
	try {
		if (await makeTables(database)) log.info("created the tables of a new database", { store });
		await accounts.report(false);
		database.tellBy(log);
		lookups.tellBy(log.child("lookups"));
	} catch (thrown) {
		await database.close();
		throw thrown;
	}
	return accounts.asStore();
}

class PostgresAccounts implements Accounts {
	readonly instance = randomUUID();
	readonly lookups = LOOKUPS;
	readonly #store: string;
	readonly #database: Database;
	readonly #lookups: Database;
	readonly #clock: Clock;
	readonly #statements: Statements;
	readonly #group: GroupCommit<AccountWrite>;
	/** Look-ups by an account and keys, with spaces between them. */
	readonly #loads = new GroupRead<Loaded>((looks) => this.#loadAll(looks));
	/** Pages by an account and the key before the first one, with a space between them. */
	readonly #pages = new GroupRead((looks) => this.#pagesOf(looks));
	readonly #current = new GroupRead<string>(async (senders) => {
		const rows = await this.#query("marks", MARKS, [senders]);
		return new Map(rows.map(({ sender, mark }) => [String(sender), String(mark)]));
	});
	readonly #values = new GroupRead((keys) => this.#get(keys));
	readonly #known = recentlyUsed<Known>(MAX_MARKS);
	#isClosed = false;

	constructor(
		store: string,
		{ database, lookups, clock }: { database: Database; lookups: Database; clock: Clock },
	) {
		this.#store = store;
		this.#database = database;
		this.#lookups = lookups;
		this.#clock = clock;
		this.#statements = new Statements(store, { database, clock });
		this.#group = new GroupCommit((writes, since) => this.#commit(writes, since), clock);
	}

	asStore(): SharedStore {
		const database = this.#database;
		return {
			accounts: this,
			isHeld: true,
			confirm: async () => {},
			get trouble() {
				return database.trouble;
			},
			term: null,
			bytes: () => this.#statements.bytes(),
			get: (key) => this.#values.get(key),
			range: (start, end, limit) => this.#statements.range(start, end, limit),
			write: (changes) => this.write({ sender: null, changes, absent: [] }),
			close: () => this.#close(),
		};
	}

	knows(sender: string): boolean {
		return this.#known.has(sender);
	}

	isHome(sender: string): boolean {
		return this.#known.get(sender)?.isHome === true;
	}

	async load(sender: string, keys: readonly string[] = []): Promise<readonly StoreRecord[]> {
		const { mark, home, records } = (await this.#loads.get([sender, ...keys].join(" "))) ?? NOTHING;
		this.#known.set(sender, { marks: [mark], isHome: home === this.instance });
		return records;
	}

	async *pages(sender: string): AsyncGenerator<readonly StoreRecord[]> {
		for (let last: string | undefined = ""; last !== undefined; ) {
			const page: readonly StoreRecord[] = (await this.#pages.get(`${sender} ${last}`)) ?? [];
			yield page;
			last = page.length < PAGE ? undefined : page.at(-1)?.key;
		}
	}

	async isCurrent(sender: string): Promise<boolean> {
		for (let tries = 0; tries < ASKED_AT_MOST; tries += 1) {
			const before = this.#known.get(sender);
			const mark = (await this.#current.get(sender)) ?? NONE;
			// Otherwise a write of this process has begun or ended in between.
			if (this.#known.get(sender) === before) return before?.marks.includes(mark) === true;
		}
		return false;
	}

	forget(sender: string): void {
		this.#known.delete(sender);
	}

	write(write: AccountWrite): Promise<void> {
		if (this.#isClosed) return Promise.reject(new Error("the store is closed"));
		return this.#group.write(write);
	}

	async ofHashes(hashes: readonly string[], keys: readonly string[]): Promise<readonly StoreRecord[]> {
		const values = [this.#store, hashes, keys];
		const rows = await this.#lookups.query({ name: "of hashes", text: OF_HASHES, values }, QUERY_MS);
		return rows.map(recordOf);
	}

	async report(reachesRelay: boolean): Promise<readonly OtherInstance[]> {
		const rows = await this.#query("report", REPORT, [this.instance, reachesRelay]);
		return rows.map(({ name, silent, reaches, up, ago }) => ({
			...{ name: String(name), isSilent: silent === true, reaches: reaches === true },
			...{ upSeconds: Number(up), secondsAgo: Number(ago) },
		}));
	}

	takeOver(from: readonly string[]): Promise<readonly string[]> {
		return this.#senders("take over", TAKE, [this.#store, this.instance, from]);
	}

	owned(): Promise<readonly string[]> {
		return this.#senders("owned", OWNED, [this.#store, this.instance]);
	}

	async #senders(name: string, text: string, values: unknown[]): Promise<readonly string[]> {
		const rows = await this.#query(name, text, values, TAKE_MS);
		return rows.map(({ sender }) => String(sender));
	}

	async bury(names: readonly string[]): Promise<void> {
		await this.#query("bury", BURY, [names]);
	}

	async purge(): Promise<boolean> {
		return (await this.#query("purge", PURGE, [this.#store], TAKE_MS)).length === PURGED_AT_ONCE;
	}

	async count(prefix: string): Promise<number> {
		const [row] = await this.#query("count", COUNT, [this.#store, ...prefixRange(prefix)]);
		return Number(row?.count);
	}

	async #close(): Promise<void> {
		this.#isClosed = true;
		await this.#group.idle();
		await this.#query("stopped", STOPPED, [this.instance]).catch(() => {});
		await Promise.all([this.#lookups.close(), this.#database.close()]);
	}

	async #get(keys: readonly string[]): Promise<ReadonlyMap<string, Buffer>> {
		const query = { name: "get", text: GET, values: [this.#store, keys] };
		const rows = await this.#statements.answered(query);
		return new Map(rows.map(({ key, value }) => [String(key), value as Buffer]));
	}

	async #loadAll(looks: readonly string[]): Promise<ReadonlyMap<string, Loaded>> {
		const split = looks.map((look) => look.split(" "));
		const senders = split.map(([sender = ""]) => sender);
		const keys = split.flatMap(([, ...own]) => own);
		const rows = await this.#query("load", LOAD, [this.#store, senders, keys]);
		const found = new Map<string, Loaded & { readonly records: StoreRecord[] }>();
		const byKey = new Map<string, StoreRecord>();
		await inSlices(rows, this.#clock, (row) => {
			const { sender, mark, home, key } = row;
			const record = recordOf(row);
			if (sender === null) {
				byKey.set(record.key, record);
				return;
			}
			const account = found.get(String(sender)) ?? { mark: String(mark), home: String(home), records: [] };
			found.set(String(sender), account);
			if (key !== null) account.records.push(record);
		});
		return new Map(
			split.map(([sender = "", ...own], i) => {
				const { records, ...account } = found.get(sender) ?? NOTHING;
				const ended = own.flatMap((key) => byKey.get(key) ?? []);
				return [looks[i] ?? "", { ...account, records: [...records, ...ended] }];
			}),
		);
	}

	async #pagesOf(looks: readonly string[]): Promise<ReadonlyMap<string, readonly StoreRecord[]>> {
		const split = looks.map((look) => look.split(" "));
		const senders = split.map(([sender]) => sender);
		const lasts = split.map(([, last]) => last);
		const rows = await this.#query("pages", PAGES, [this.#store, senders, lasts]);
		const pages = new Map(looks.map((look) => [look, [] as StoreRecord[]]));
		for (const row of rows) pages.get(looks[Number(row.look) - 1] ?? "")?.push(recordOf(row));
		return pages;
	}

	/** Returns the error of each write whose account was taken. */
	async #commit(writes: readonly AccountWrite[], since: number): Promise<ReadonlyMap<AccountWrite, Error>> {
		const statement = statementOf(writes, (sender) => this.#known.get(sender)?.marks ?? []);
		// It may arrive whatever happens next.
		for (const [sender, mark] of statement.marks) {
			const known = this.#known.get(sender);
			if (known !== undefined) this.#known.set(sender, { ...known, marks: [...known.marks, mark] });
		}
		const query: Query = {
			name: "write",
			text: WRITE,
			values: [this.#store, this.instance, ...statement.values],
		};
		const rows = await this.#statements.committed(() => query, { since, bytes: statement.bytes });
		const won = new Set(rows.map(({ sender }) => sender));
		// The marks stay: its next report lets it write again.
		if (won.has(null))
			return new Map(
				writes.filter(({ sender }) => sender !== null).map((write) => [write, new BuriedError()]),
			);
		for (const [sender, mark] of statement.marks) {
			if (won.has(sender)) this.#known.set(sender, { marks: [mark], isHome: true });
			else this.forget(sender);
		}
		const lost = writes.filter(({ sender }) => sender !== null && !won.has(sender));
		return new Map(lost.map((write) => [write, new AccountTakenError()]));
	}

	#query(name: string, text: string, values: unknown[], ms = QUERY_MS): Promise<Rows> {
		return this.#database.query({ name, text, values }, ms);
	}
}

/** This process's knowledge of an account. */
interface Known {
	/** The marks that it may have: after a write whose answer was lost, there are several. */
	readonly marks: readonly string[];
	/** Whether this process is its home. */
	readonly isHome: boolean;
}

/** Others have taken this process for ended. */
class BuriedError extends Error {
	override readonly name = "BuriedError";
	constructor() {
		super("this process has not reported for too long");
	}
}

interface Loaded {
	readonly mark: string;
	readonly home: string;
	readonly records: readonly StoreRecord[];
}

const NOTHING: Loaded = { mark: NONE, home: "", records: [] };

function recordOf({ key, value, bytes }: Rows[number]): StoreRecord {
	return { key: String(key), value: value as Buffer, bytes: Number(bytes) };
}

/**
 * The values of {@link WRITE} for these writes, the new marks, and the total bytes. An account
 * whose mark is not known has none, so its writes lose.
 */
function statementOf(
	writes: readonly AccountWrite[],
	marksOf: (sender: string) => readonly string[],
): {
	readonly values: readonly unknown[];
	readonly marks: ReadonlyMap<string, string>;
	readonly bytes: number;
} {
	const marks = new Map<string, string>();
	const known: { sender: string; mark: string }[] = [];
	const absent: { sender: string; key: string }[] = [];
	const last = new Map<string, { change: Change; by: string }>();
	for (const { sender, changes, absent: keys } of writes) {
		const by = sender ?? "";
		if (sender !== null && !marks.has(sender)) {
			const mark = String(1 + randomInt(2 ** 48 - 2));
			marks.set(sender, mark);
			// With the new mark, the write is repeated after a lost answer.
			const before = marksOf(sender);
			if (before.length > 0) for (const one of [...before, mark]) known.push({ sender, mark: one });
		}
		for (const key of keys) absent.push({ sender: by, key });
		for (const change of changes) last.set(change.key, { change, by });
	}
	const all = [...last.values()];
	const gone = all.filter(({ change }) => change.value === null);
	const put = all.flatMap(({ change: { key, value, sender = "" }, by }) =>
		value === null
			? []
			: [{ key, value: Buffer.from(value.buffer, value.byteOffset, value.byteLength), by, sender }],
	);
	return {
		values: [
			known.map(({ sender }) => sender),
			known.map(({ mark }) => mark),
			[...marks.keys()],
			[...marks.values()],
			absent.map(({ sender }) => sender),
			absent.map(({ key }) => key),
			gone.map(({ change }) => change.key),
			gone.map(({ by }) => by),
			put.map(({ key }) => key),
			put.map(({ value }) => value),
			put.map(({ by }) => by),
			put.map(({ sender }) => sender),
		],
		marks,
		bytes: put.reduce((sum, { value }) => sum + value.length, 0),
	};
}
