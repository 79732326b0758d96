// A real PostgreSQL with a standby that replicates it and can be promoted.

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import pg from "pg";
import { type PostgresServer, serverBin, startPostgres } from "./postgresServer.ts";
import { startTcpProxy, type TcpProxy } from "./tcpProxy.ts";
import { until } from "./until.ts";

const BIN = serverBin("initdb", "postgres", "pg_basebackup");
/** Why there is no standby here; false: there is. */
export const NO_STANDBY =
	BIN === null ? "no pg_basebackup with a PostgreSQL server of its version here" : false;

/** A primary and its standby, and the URL by which processes reach the leading one. */
export class StandbyPair {
	readonly url: string;
	readonly #primary: PostgresServer;
	readonly #standby: PostgresServer;
	readonly #wire: TcpProxy;

	private constructor(parts: {
		url: string;
		primary: PostgresServer;
		standby: PostgresServer;
		wire: TcpProxy;
	}) {
		this.url = parts.url;
		this.#primary = parts.primary;
		this.#standby = parts.standby;
		this.#wire = parts.wire;
	}

	static async start(t: TestContext, isSynchronous: boolean): Promise<StandbyPair> {
		const primary = await startPostgres({ bin: BIN ?? "" });
		t.after(() => primary.stop());
		const url = new URL(await primary.newDatabase());
		const standby = await startPostgres({ bin: BIN ?? "", standbyOf: url.href });
		t.after(() => standby.stop());
		const wire = await startTcpProxy(Number(url.port));
		t.after(() => wire.stop());
		url.port = String(wire.port);
		const pair = new StandbyPair({ url: url.href, primary, standby, wire });
		if (isSynchronous) await pair.#set(primary, "synchronous_standby_names", "*");
		const wanted = isSynchronous ? "sync" : "async";
		const ask = "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'";
		await until("the standby streams", async () => (await pair.#ask(primary, ask)) === wanted);
		return pair;
	}

	/** The standby gets nothing any more, once it has what the primary has now. */
	async partStandby(): Promise<void> {
		const at = await this.#ask(this.#primary, "SELECT pg_current_wal_lsn()");
		const has = `SELECT pg_last_wal_replay_lsn() >= '${at}'`;
		await until("the standby has all of that", async () => (await this.#ask(this.#standby, has)) === true);
		await this.#set(this.#standby, "primary_conninfo", "");
		const count = "SELECT count(*)::int FROM pg_stat_replication";
		await until("it streams no more", async () => (await this.#ask(this.#primary, count)) === 0);
	}

	/** The primary is killed, and the standby takes its place. */
	async promote(): Promise<void> {
		await this.#primary.kill();
		this.#wire.cut();
		assert.equal(await this.#ask(this.#standby, "SELECT pg_promote()"), true);
		this.#wire.redirect(Number(new URL(this.#standby.url("")).port));
		this.#wire.mend();
	}

	async #set(server: PostgresServer, name: string, value: string): Promise<void> {
		await this.#ask(server, `ALTER SYSTEM SET ${name} = '${value}'`);
		await this.#ask(server, "SELECT pg_reload_conf()");
	}

	/** The value of the one column in the first row. */
	async #ask(server: PostgresServer, text: string): Promise<unknown> {
		const client = new pg.Client({ connectionString: server.url("postgres") });
		await client.connect();
		try {
			const { rows } = await client.query<Record<string, unknown>>(text);
			return Object.values(rows[0] ?? {})[0];
		} finally {
			await client.end();
		}
	}
}
