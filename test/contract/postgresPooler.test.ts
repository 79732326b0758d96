// PgBouncer between a process and PostgreSQL: in session mode everything works; in the others a
// start ends before it takes a lock, whatever state the pool is in.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { systemClock } from "../../shared/clock.ts";
import { type OpenStoreDependencies, openStore } from "../../shared/kv/openStore.ts";
import type { SharedStore } from "../../shared/kv/port.ts";
import { HolderReader } from "../../shared/kv/postgres/holder.ts";
import { safeError, silentLogger } from "../../shared/log.ts";
import { newDatabase } from "../support/engine.ts";
import { noPgbouncer, startPgbouncer } from "../support/pgbouncer.ts";
import { until } from "../support/until.ts";

const skip = noPgbouncer;

test("in session mode stores are written, taken over and shared", { skip }, async (t) => {
	const { url } = await pgbouncer(t, { pool_mode: "session" });
	const relay = await opened(t, "relay", url);
	await relay.write([{ key: "a", value: Buffer.from("1") }]);
	await relay.close();
	const next = await opened(t, "relay", url);
	assert.equal(String(await next.get("a")), "1");
	for (const _ of ["one", "two"]) await opened(t, "boost", url);
	// PgBouncer knows no startup parameter "options".
	const reasons: string[] = [];
	const stopped = new AbortController();
	const waiting = opened(t, "relay", `${url}?options=-c%20search_path%3Dpublic`, {
		stopped: stopped.signal,
		onWait: async (reason) => void reasons.push(reason),
	});
	await until("it waits", () => reasons.length > 0);
	stopped.abort();
	await assert.rejects(waiting, { code: "STOPPED" });
	assert.match(reasons[0] ?? "", /08P01: .*PgBouncer.* log/);
	const { rows } = await query(
		url,
		"SELECT DISTINCT setting FROM pg_settings WHERE name = 'statement_timeout'",
	);
	assert.deepEqual(rows, [{ setting: "0" }], "other clients of PgBouncer have their own timeout");
});

/**
 * Pools that give a client the same session again, or another one, or let it wait for the only one.
 */
const POOLS: readonly Readonly<Record<string, string>>[] = [
	{ pool_mode: "statement" },
	{ pool_mode: "transaction" },
	{ pool_mode: "transaction", default_pool_size: "1" },
	{ pool_mode: "transaction", default_pool_size: "2", min_pool_size: "2", server_round_robin: "1" },
];

/** The server has databases of other tests, too. */
const LOCKS = `SELECT * FROM pg_locks WHERE locktype = 'advisory'
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

test("in other modes a start ends with a line that names PgBouncer, and leaves nothing behind", {
	skip,
}, async (t) => {
	const message =
		"the database of DATABASE_URL refuses (no sessions: PgBouncer, or a pooler like it, is in transaction or statement mode): expected pool_mode = session there, or the database's own address";
	const refused = async (settings: (typeof POOLS)[number]) => {
		const { url, direct } = await pgbouncer(t, settings);
		const end = keepBusy(url);
		const options = { url, verify: false, name: "relay", store: "relay" };
		const reader = new HolderReader(options, { clock: systemClock });
		t.after(() => reader.close());
		// Beside busy processes its first try may be too late.
		const read = await until("the row's reader is refused", () =>
			reader.tryOut().then(() => null, safeError),
		);
		assert.equal(read?.code, "DATABASE_REFUSED");
		await end();
		for (const name of ["relay", "boost"] as const)
			await assert.rejects(opened(t, name, url), { code: "DATABASE_REFUSED", message });
		const { rows: locks } = await query(direct, LOCKS);
		const { rows: tables } = await query(direct, "SELECT * FROM pg_tables WHERE tablename LIKE 'leeward%'");
		const { rows: timeouts } = await query(url, "SHOW statement_timeout");
		assert.deepEqual([locks, tables, timeouts], [[], [], [{ statement_timeout: "0" }]]);
	};
	await Promise.all(POOLS.map(refused));
});

/** Other clients of the same pool, which take its sessions all the time. */
function keepBusy(url: string): () => Promise<void> {
	let isOver = false;
	const clients = Array.from({ length: 4 }, async () => {
		const client = new pg.Client(url);
		await client.connect();
		while (!isOver) await client.query("SELECT 1");
		await client.end();
	});
	return async () => {
		isOver = true;
		await Promise.all(clients);
	};
}

async function pgbouncer(t: TestContext, settings: Readonly<Record<string, string>>) {
	const direct = await newDatabase();
	const { url, stop } = await startPgbouncer(direct, settings);
	t.after(stop);
	return { url, direct };
}

async function opened(
	t: TestContext,
	process: "relay" | "boost",
	url: string,
	waiting: Partial<Pick<OpenStoreDependencies, "stopped" | "onWait">> = {},
): Promise<SharedStore> {
	const kv = await openStore(
		process,
		{ DATA_DIR: "", DATABASE_URL: url, DATABASE_VERIFY: false },
		{
			...{ clock: systemClock, log: silentLogger, onLost() {}, stopped: new AbortController().signal },
			async onWait() {},
			...waiting,
		},
	);
	t.after(() => kv.close());
	return kv;
}

async function query(url: string, text: string): Promise<pg.QueryResult> {
	const client = new pg.Client(url);
	await client.connect();
	try {
		return await client.query(text);
	} finally {
		await client.end();
	}
}
