// The engine that relays and boosts of a test keep their stores on: LMDB, or PostgreSQL where the suite was told so. The
// environment of one comes in, the same goes out with the place that belongs to its folder there.

import { join } from "node:path";
import { open } from "lmdb";
import pg from "pg";
import { startPostgres } from "./postgresServer.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Set by who runs many files: a database for all of them. */
export const TEST_DATABASE = "TEST_DATABASE_URL";
/** Stores that one suite may need. */
const SCHEMAS = 64;

/** Null: LMDB. */
let free: string[] | null = null;
let suites = 0;
let own: Promise<string> | null = null;
const urls = new Map<string, string>();

/** From now on stores are schemas of a PostgreSQL database. */
export async function usePostgres(): Promise<void> {
	const database = process.env[TEST_DATABASE] ?? (await ownDatabase());
	suites += 1;
	const prefix = `test_${process.pid}_${suites}`;
	const client = new pg.Client({ connectionString: database });
	await client.connect();
	try {
		await client.query(`DO $$ BEGIN
			FOR i IN 1..${SCHEMAS} LOOP EXECUTE format('CREATE SCHEMA ${prefix}_%s', i); END LOOP; END $$`);
	} finally {
		await client.end();
	}
	free = Array.from({ length: SCHEMAS }, (_, i) => {
		const url = new URL(database);
		url.searchParams.set("options", `-c search_path=${prefix}_${i + 1}`);
		return url.toString();
	});
}

/** From now on stores are LMDB's. */
export function useLmdb(): void {
	free = null;
	urls.clear();
}

/** Whether stores are PostgreSQL's now. */
export function isPostgres(): boolean {
	return free !== null;
}

/** For tests of what a folder alone can be: its store is LMDB's whatever the engine is. */
export const IN_FOLDER = { DATABASE_URL: "" };

/** What the store of `process` holds by `key`, read past it; null where there is nothing. */
export async function peek(env: Env, process: "relay" | "boost", key: string): Promise<Buffer | null> {
	const { DATA_DIR = "", DATABASE_URL } = onEngine(env);
	if (DATABASE_URL === undefined) {
		const disk = open<Buffer, string>({ path: join(DATA_DIR, process), readOnly: true, encoding: "binary" });
		const value = disk.get(key);
		await disk.close();
		return value ?? null;
	}
	const client = new pg.Client({ connectionString: DATABASE_URL });
	await client.connect();
	try {
		const text = "SELECT value FROM leeward_store WHERE store = $1 AND key = $2";
		const { rows } = await client.query<{ value: Buffer }>(text, [process, key]);
		return rows[0]?.value ?? null;
	} finally {
		await client.end();
	}
}

/** `env` with the URL that stands for its DATA_DIR; as it is where it has a URL, or the engine is LMDB. */
export function onEngine<E extends Env>(env: E): E {
	const { DATA_DIR } = env;
	if (free === null || DATA_DIR === undefined || env.DATABASE_URL !== undefined) return env;
	const url = urls.get(DATA_DIR) ?? free.pop();
	if (url === undefined) throw new Error(`a suite may have ${SCHEMAS} stores`);
	urls.set(DATA_DIR, url);
	return { ...env, DATABASE_URL: url };
}

async function ownDatabase(): Promise<string> {
	own ??= startPostgres({ connections: 200 }).then((server) => server.newDatabase());
	return own;
}
