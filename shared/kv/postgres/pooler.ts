// Detects a pooler, such as PgBouncer, that gives each statement or transaction another session of
// the database. The lease's lock, prepared statements and settings need a session that
// lasts.

import { randomBytes } from "node:crypto";
import pg from "pg";
import { type Clock, pause } from "../../clock.ts";
import { DatabaseRefusedError } from "./errors.ts";

/** How long a notification may take before one more statement fetches it, in ms. */
const ARRIVAL_MS = 500;

/**
 * Throws {@link DatabaseRefusedError} unless `client` keeps its session. `options` are those of its
 * connection. Listening shows it, however the pool works. Without a session of its own an idle
 * client receives nothing. With one it receives the notification at the latest with the answer to
 * its next statement (https://www.postgresql.org/docs/current/sql-notify.html).
 */
export async function needSession(
	client: pg.ClientBase,
	options: pg.ClientConfig,
	{ clock, host }: { readonly clock: Clock; readonly host: string | undefined },
): Promise<void> {
	const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
	// PostgreSQL itself reports the session's process when a client connects. A pooler reports a
	// number of its own.
	if (rows[0]?.pid === (client as { processID?: unknown }).processID) return;
	const channel = `leeward_${randomBytes(8).toString("hex")}`;
	const arrived = new AbortController();
	client.on("notification", () => arrived.abort());
	await client.query(`LISTEN ${channel}`);
	await notify(channel, options);
	await pause(clock, ARRIVAL_MS, arrived.signal);
	await client.query(`UNLISTEN ${channel}`);
	if (arrived.signal.aborted) return;
	throw new DatabaseRefusedError(
		"no sessions: PgBouncer, or a pooler like it, is in transaction or statement mode",
		"pool_mode = session there, or the database's own address",
		host,
	);
}

async function notify(channel: string, options: pg.ClientConfig): Promise<void> {
	const other = new pg.Client(options);
	other.on("error", () => {});
	try {
		await other.connect();
		await other.query(`NOTIFY ${channel}`);
	} finally {
		other.end().catch(() => {});
	}
}
