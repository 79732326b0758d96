// The engine of the stores of a test's relays and boosts: LMDB. With TEST_STORES=postgres those in
// the test's own process use both engines at once (see storeEngines.ts), and those in processes of
// their own a schema each in a PostgreSQL database.

import { join } from "node:path";
import { open } from "lmdb";
import pg from "pg";
import { startPostgres } from "./postgresServer.ts";

type Env = Readonly<Record<string, string | undefined>>;

/**
 * The environment variable with a database for all test files; the runner of many files sets it.
 */
export const TEST_DATABASE = "TEST_DATABASE_URL";
/** The environment variable by which the relay of a whole system is an edge: see systems.ts. */
export const RELAY_AS = "RELAY_AS";
export const isEdge = process.env[RELAY_AS] === "edge";
/**
 * With `postgres` in this environment variable, stores are in PostgreSQL: those in the test's own
 * process on both engines.
 */
export const STORES = "TEST_STORES";
export const isOnPostgres = process.env[STORES] === "postgres";
/** Forces LMDB, for tests of the data folder itself. */
export const IN_FOLDER = { DATABASE_URL: "" };
/** Maximum stores of one test process's processes. */
const SCHEMAS = 256;

let own: Promise<string> | null = null;
/** Unused schemas for processes. */
let free: readonly string[] = [];
let used = 0;
const urls = new Map<string, string>();
let databases = 0;

/**
 * Adds the database URL for its DATA_DIR to a process's `env`, unless it has one, or LMDB is used.
 */
export function onEngine<E extends Env>(env: E): E {
	const { DATA_DIR } = env;
	if (!isOnPostgres || DATA_DIR === undefined || env.DATABASE_URL !== undefined) return env;
	const url = urls.get(DATA_DIR) ?? free[used++];
	if (url === undefined) throw new Error(`a test process may have ${SCHEMAS} stores of processes`);
	urls.set(DATA_DIR, url);
	return { ...env, DATABASE_URL: url };
}

/** The URL of the schema that belongs to a folder. */
export async function databaseOf(dataDir: string): Promise<string> {
	const base = await database();
	const known = urls.get(dataDir);
	if (known !== undefined) return known;
	const name = `f${process.pid}_${urls.size}`;
	const url = inSchema(base, name);
	urls.set(dataDir, url);
	await query(base, `CREATE SCHEMA ${name}`);
	return url;
}

/**
 * Makes an empty database on the server of all test files, which no test may stop or slow down, and
 * returns its URL.
 */
export async function newDatabase(): Promise<string> {
	const base = await database();
	const name = `d${process.pid}_${databases++}`;
	await query(base, `CREATE DATABASE ${name}`);
	return Object.assign(new URL(base), { pathname: `/${name}` }).toString();
}

/**
 * Reads the value of the key that begins and ends so directly from the store of `process`; null if
 * there is none.
 */
export async function peek(
	env: Env,
	process: "relay" | "boost",
	{ prefix, end }: { readonly prefix: string; readonly end: string },
): Promise<Buffer | null> {
	const { DATA_DIR = "", DATABASE_URL } = onEngine(env);
	if (DATABASE_URL === undefined) {
		const disk = open<Buffer, string>({ path: join(DATA_DIR, process), readOnly: true, encoding: "binary" });
		const rows = [...disk.getRange({ start: prefix, end: `${prefix}\u{7f}` })];
		await disk.close();
		return rows.find(({ key }) => key.endsWith(end))?.value ?? null;
	}
	const text =
		"SELECT value FROM leeward_store WHERE store = $1 AND starts_with(key, $2) AND key LIKE '%' || $3";
	const [row] = await query(DATABASE_URL, text, [process, prefix, end]);
	return (row as { value: Buffer } | undefined)?.value ?? null;
}

/** With TEST_STORES=postgres, to be called before any process is started. */
export async function prepareStores(): Promise<void> {
	if (!isOnPostgres) return;
	const names = Array.from({ length: SCHEMAS }, (_, i) => `p${process.pid}_${i}`);
	const base = await database();
	await query(base, names.map((name) => `CREATE SCHEMA ${name}`).join(";"));
	free = names.map((name) => inSchema(base, name));
}

function inSchema(base: string, schema: string): string {
	const url = new URL(base);
	url.searchParams.set("options", `-c search_path=${schema}`);
	return url.toString();
}

async function query(url: string, text: string, values?: unknown[]): Promise<readonly unknown[]> {
	const client = new pg.Client({ connectionString: url });
	await client.connect();
	try {
		return (await client.query({ text, ...(values === undefined ? {} : { values }) })).rows;
	} finally {
		await client.end();
	}
}

/** The database of the environment variable, or else of one server for this whole process. */
async function database(): Promise<string> {
	own ??= (async () => {
		const given = process.env[TEST_DATABASE];
		return given ?? (await (await startPostgres({ connections: 200 })).newDatabase());
	})();
	return own;
}
