// What an operator is told of a fault of PostgreSQL while a store is used: the cause with its SQLSTATE and the host, and nothing
// that is secret.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { systemClock } from "../../shared/clock.ts";
import type { SharedStore } from "../../shared/kv/port.ts";
import { openPostgres } from "../../shared/kv/postgres/postgres.ts";
import { createLogger, type Logger, safeError, silentLogger } from "../../shared/log.ts";
import { newDatabase } from "../support/engine.ts";
import { startTcpProxy } from "../support/tcpProxy.ts";
import { until } from "../support/until.ts";

const put = (key: string, value: string) => ({ key, value: Buffer.from(value) });

test("a database that is out while it is used: the log has its host and the cause, and says when it is back", async (t) => {
	const direct = new URL(await newDatabase());
	const wire = await startTcpProxy(Number(direct.port));
	t.after(() => wire.stop());
	const url = direct.toString().replace(direct.port, String(wire.port));
	const texts: string[] = [];
	const log = createLogger("info", "relay", { write: (text: string) => void texts.push(text) });
	const kv = await opened(t, url.replace("leeward@", "leeward:secretsecret@"), log);
	assert.equal(kv.trouble, null);
	wire.cut();
	await assert.rejects(kv.write([put("a", "1")]), { code: "DATABASE_DOWN" });
	assert.match(kv.trouble ?? "", /^the database of DATABASE_URL does not answer \(.+\)$/);
	wire.mend();
	await until("it is back", () => kv.trouble === null && kv.isHeld);
	const lines = texts.map((text) => JSON.parse(text) as LogLine);
	const [down, back] = lines.filter(
		({ msg }) => msg.startsWith("the database answers") || msg.startsWith("the database does"),
	);
	assert.deepEqual([down?.msg, back?.msg], ["the database does not answer", "the database answers again"]);
	assert.equal(down?.fault?.host, new URL(url).host);
	assert.match(down?.reason ?? "", /^the database of DATABASE_URL does not answer \(.+\)$/);
	assert.doesNotMatch(texts.join(""), /secretsecret/);
});

test("what the database refuses while it is used has host and SQLSTATE", async (t) => {
	const url = await newDatabase();
	const kv = await opened(t, url, silentLogger);
	const client = new pg.Client({ connectionString: url });
	await client.connect();
	const name = new URL(url).pathname.slice(1);
	await client.query(`CREATE ROLE ${name}; GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${name}`);
	await client.query(`ALTER DATABASE ${name} SET role ${name}`);
	await client.query(
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()",
	);
	await client.end();
	await until(
		"it is refused",
		async () => {
			const fault = await kv.write([put("a", "1")]).then(() => null, safeError);
			return fault?.code === "DATABASE_REFUSED" && fault;
		},
		20_000,
	).then((fault) => assert.deepEqual([fault.host, fault.reason], [new URL(url).host, "42501"]));
});

interface LogLine {
	readonly msg: string;
	readonly reason?: string;
	readonly fault?: { readonly host?: string };
}

async function opened(t: TestContext, url: string, log: Logger): Promise<SharedStore> {
	const kv = await openPostgres({ url, verify: false, store: "relay" }, { clock: systemClock, log });
	t.after(() => kv.close());
	return kv;
}
