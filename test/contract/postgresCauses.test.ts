// An operator's view of a PostgreSQL fault while a store is used: the cause with its SQLSTATE and
// the host, and no secrets.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { systemClock } from "../../shared/clock.ts";
import { openStore } from "../../shared/kv/openStore.ts";
import type { SharedStore } from "../../shared/kv/port.ts";
import { openPostgres } from "../../shared/kv/postgres/postgres.ts";
import { createLogger, type Logger, silentLogger } from "../../shared/log.ts";
import { newDatabase } from "../support/engine.ts";
import { startTcpProxy } from "../support/tcpProxy.ts";
import { until } from "../support/until.ts";

const put = (key: string, value: string) => ({ key, value: Buffer.from(value) });

test("a database that goes down while it is used: the log has its host and the cause, and says when it is back", async (t) => {
	const direct = new URL(await newDatabase());
	const wire = await startTcpProxy(Number(direct.port));
	t.after(() => wire.stop());
	const url = direct.toString().replace(direct.port, String(wire.port));
	const { texts, log } = logged();
	const kv = await opened(t, url.replace("leeward@", "leeward:secretsecret@"), log);
	assert.equal(kv.trouble, null);
	wire.cut();
	await assert.rejects(kv.write([put("a", "1")]), { code: "DATABASE_DOWN" });
	assert.match(kv.trouble ?? "", /^the database of DATABASE_URL does not answer \(.+\)$/);
	wire.mend();
	await until("it is back", () => kv.trouble === null && kv.isHeld);
	const lines = texts.map((text) => JSON.parse(text) as LogLine);
	const [, down] = lines;
	const back = lines.at(-1);
	assert.deepEqual([down?.msg, back?.msg], ["the database does not answer", "database answers again"]);
	assert.equal(down?.fault?.host, new URL(url).host);
	assert.match(down?.reason ?? "", /^the database of DATABASE_URL does not answer \(.+\)$/);
	assert.doesNotMatch(texts.join(""), /secretsecret/);
});

/**
 * An operator's change to the role and database `x`, the change that undoes it, the SQLSTATE, and
 * the advice beside it.
 */
const REFUSALS = [
	["ALTER ROLE x NOLOGIN", "ALTER ROLE x LOGIN", "28000", "expected a user and password that it knows"],
	["ALTER DATABASE x RENAME TO x_old", "ALTER DATABASE x_old RENAME TO x", "3D000", "a database that exists"],
	["ALTER ROLE x CONNECTION LIMIT 0", "ALTER ROLE x CONNECTION LIMIT -1", "53300", "no free connection"],
	["ALTER DATABASE x ALLOW_CONNECTIONS false", "ALTER DATABASE x ALLOW_CONNECTIONS true", "55000", ""],
	["ALTER DATABASE x SET role pg_monitor", "ALTER DATABASE x RESET role", "42501", "create and write tables"],
	[
		"ALTER DATABASE x SET default_transaction_read_only = on",
		"ALTER DATABASE x RESET default_transaction_read_only",
		"25006",
		"is it a replica?",
	],
] as const;

test("a running process says what its database refuses, with SQLSTATE and advice, and when that is over", async (t) => {
	const { url, run } = await ownDatabase(t);
	const { texts, log } = logged();
	const kv = await opened(t, url.href, log);
	for (const [begin, end, state, advice] of REFUSALS) {
		texts.splice(0);
		// A database in use can't be renamed.
		await until(`${begin} works`, async () => {
			await run(END_SESSIONS);
			return run(begin).catch(() => null);
		});
		await run(END_SESSIONS);
		await until(`${state} is reported`, async () => {
			await kv.write([put("a", state)]).catch(() => {});
			return kv.trouble?.includes(`(${state}`) && kv.trouble.includes(advice) && !kv.isHeld;
		});
		// Sessions keep the settings of their start. Both in one transaction, since a session in
		// between would end with an outage of its own.
		await run(`${end}; ${END_SESSIONS}`);
		await until(`it works again after ${state}`, async () => {
			await kv.write([put("a", "again")]).catch(() => {});
			return kv.trouble === null && kv.isHeld;
		});
		const lines = texts.map((text) => JSON.parse(text) as LogLine);
		const seen = lines.filter(({ fault }) => fault?.reason === state);
		assert.deepEqual(
			seen.map(({ fault, reason }) => [fault?.host, reason?.includes(advice)]),
			[[url.host, true]],
			`once for ${state}`,
		);
		// Sessions ended before it are an outage of their own.
		const since = lines.slice(lines.findIndex(({ fault }) => fault?.reason === state));
		assert.deepEqual(
			since.flatMap(({ msg }, i) => (msg === "database answers again" ? [i - since.length] : [])),
			[-1],
			`${state}: it is over once, at the end`,
		);
		assert.doesNotMatch(texts.join(""), /secretsecret/);
	}
});

test("a process that waits for the store keeps waiting when it is refused, says why, and gets the store later", async (t) => {
	const { url, run } = await ownDatabase(t);
	const { texts, log } = logged();
	const first = await opened(t, url.href, silentLogger);
	const reasons: string[] = [];
	const waiting = openStore(
		"relay",
		{ DATA_DIR: "", DATABASE_URL: url.href, DATABASE_VERIFY: false },
		{
			...{ clock: systemClock, log, onLost() {}, stopped: new AbortController().signal },
			onWait: async (reason) => void reasons.push(reason),
		},
	);
	waiting.catch(() => {});
	await until("it waits", () => reasons.length > 0);
	await run("ALTER ROLE x NOLOGIN");
	await run(END_SESSIONS);
	await until("it is refused", () => reasons.at(-1)?.includes("refuses (28000)"));
	assert.equal(
		texts.filter((text) => text.includes("refuses (28000)") && text.includes(url.host)).length,
		1,
		"logged once",
	);
	await run("ALTER ROLE x LOGIN");
	await first.close();
	const kv = await waiting;
	t.after(() => kv.close());
	await kv.write([put("a", "1")]);
});

const END_SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'x'";

/** A database of a role of its own. `run` is the administrator's and takes both names as x. */
async function ownDatabase(t: TestContext) {
	const url = new URL(await newDatabase());
	const name = url.pathname.slice(1);
	const admin = new pg.Client({
		connectionString: Object.assign(new URL(url), { pathname: "/postgres" }).href,
	});
	await admin.connect();
	t.after(() => admin.end());
	const run = (text: string) => admin.query(text.replaceAll(/\bx(?=\b|_)/g, name));
	await run("CREATE ROLE x LOGIN PASSWORD 'secretsecret' IN ROLE pg_monitor");
	await run("ALTER DATABASE x OWNER TO x");
	return { url: Object.assign(url, { username: name, password: "secretsecret" }), run };
}

interface LogLine {
	readonly msg: string;
	readonly reason?: string;
	readonly fault?: { readonly host?: string; readonly reason?: string };
}

function logged() {
	const texts: string[] = [];
	return { texts, log: createLogger("info", "relay", { write: (text: string) => void texts.push(text) }) };
}

async function opened(t: TestContext, url: string, log: Logger): Promise<SharedStore> {
	const kv = await openPostgres({ url, verify: false, store: "relay" }, { clock: systemClock, log });
	t.after(() => kv.close());
	return kv;
}
