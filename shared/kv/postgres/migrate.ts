// Brings a database's tables to what this version needs: the files of `migrations` that it has not had yet are run, in
// the order of their names. Safe where two processes start at once; nothing is ever taken back.

import { readdirSync, readFileSync } from "node:fs";
import type { Database } from "./database.ts";

const FOLDER = new URL("./migrations/", import.meta.url);
/** Of the lock that who migrates holds; any number that nobody else takes. */
const LOCK = 7_133_519_024;

/** The database was made by a later version. */
export class LaterVersionError extends Error {
	readonly code = "LATER_VERSION";
	constructor(name: string) {
		super(
			`the database of DATABASE_URL was made by a later version (${name}): start that version, or a later one`,
		);
		this.name = "LaterVersionError";
	}
}

/** Resolves with the names of those that were run now. Throws {@link LaterVersionError}, or the database's fault. */
export async function migrate(database: Database): Promise<readonly string[]> {
	const files = readdirSync(FOLDER)
		.filter((name) => name.endsWith(".sql"))
		.sort();
	const client = await database.connect();
	try {
		await client.query("BEGIN");
		await client.query({ text: "SELECT pg_advisory_xact_lock($1)", values: [LOCK] });
		await client.query(
			"CREATE TABLE IF NOT EXISTS leeward_migrations (name text PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())",
		);
		const { rows } = await client.query<{ name: string }>("SELECT name FROM leeward_migrations");
		const had = new Set(rows.map(({ name }) => name));
		const unknown = [...had].find((name) => !files.includes(name));
		if (unknown !== undefined) throw new LaterVersionError(unknown);
		const missing = files.filter((name) => !had.has(name));
		for (const name of missing) {
			await client.query(readFileSync(new URL(name, FOLDER), "utf8"));
			await client.query({ text: "INSERT INTO leeward_migrations (name) VALUES ($1)", values: [name] });
		}
		await client.query("COMMIT");
		client.release();
		return missing;
	} catch (thrown) {
		// Without its connection the transaction is gone.
		client.release(true);
		throw thrown;
	}
}
