// PostgreSQL as a store, beyond the contract of all engines: it fails, hangs and comes back without
// losing confirmed writes. postgresTerms.test.ts has who may write. Then how a process opens it:
// what it waits for and how waits end, what is refused with which message, and TLS with a
// self-signed certificate, as hosts have it.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import pg from "pg";
import { type Clock, systemClock } from "../../shared/clock.ts";
import { openStore } from "../../shared/kv/openStore.ts";
import type { SharedStore } from "../../shared/kv/port.ts";
import { type Logger, silentLogger } from "../../shared/log.ts";
import { type PostgresServer, startPostgres } from "../support/postgresServer.ts";
import { isWritten, opened, put, wired } from "../support/postgresStores.ts";
import { SELF_SIGNED, StorePlaces } from "../support/storeEngines.ts";
import { until } from "../support/until.ts";

const places = new StorePlaces();
/** PostgreSQL keeps three for its superuser, who is ours here. */
const CONNECTIONS = 6;
let server: PostgresServer;
/** Asks for a password, and has few connections. */
let small: PostgresServer;
before(async () => {
	server = await startPostgres();
	small = await startPostgres({ password: "secretsecret", connections: CONNECTIONS });
});
after(async () => {
	places.remove();
	await server?.stop();
	await small?.stop();
});

test("a database that is killed while it is written to holds all that was promised, and is written to again", async (t) => {
	const url = await server.newDatabase();
	const kv = await opened(t, url);
	const told: string[] = [];
	let refused = 0;
	let isOver = false;
	const work = async (n: number): Promise<void> => {
		for (let i = 0; !isOver; i += 1) {
			await kv.write([put(`k/${n}/${i}`, "x".repeat(300))]).then(
				() => told.push(`k/${n}/${i}`),
				(thrown: { code?: unknown }) => {
					assert.equal(thrown.code, "DATABASE_DOWN");
					refused += 1;
				},
			);
		}
	};
	const workers = Array.from({ length: 16 }, (_, n) => work(n));
	await until("a thousand writes", () => told.length > 1_000);
	await server.kill();
	const before = told.length;
	await until("a write is refused", () => refused > 0);
	await server.start();
	await until("it is written to again", () => told.length > before + 100);
	isOver = true;
	await Promise.all(workers);
	for (const key of told) assert.ok((await kv.get(key)) !== null, `${key} is lost`);
	await until("it is held again", () => kv.isHeld);
});

test("a cut that is mended within a second is not seen; a longer one refuses in time, and few connections are tried", async (t) => {
	const { kv, wire } = await wired(t, server);
	await kv.write([put("a", "1")]);
	wire.cut();
	const waiting = kv.write([put("b", "2")]);
	wire.mend();
	await waiting;
	assert.equal(`${await kv.get("b")}`, "2");
	for (const how of ["cut", "freeze"] as const) {
		wire[how]();
		const begun = systemClock.monotonic();
		const writes = Array.from({ length: 50 }, (_, i) => kv.write([put(`w${i}`, how)]));
		for (const write of writes) await assert.rejects(write, { code: "DATABASE_DOWN" });
		const tookMs = systemClock.monotonic() - begun;
		assert.ok(tookMs < 3_000, `refused after ${tookMs} ms`);
		const accepted = wire.accepted;
		await Promise.allSettled(Array.from({ length: 500 }, (_, i) => kv.get(`g${i}`)));
		assert.ok(wire.accepted - accepted < 20, `${wire.accepted - accepted} connections for 500 reads`);
		if (how === "freeze") wire.cut();
		wire.mend();
		await until("it is written to", () => isWritten(kv, put("back", how)));
	}
});

test("a write that was given up and arrives behind a later one changes nothing", async (t) => {
	const { kv, wire } = await wired(t, server);
	await kv.write([put("k", "first")]);
	wire.hold();
	await assert.rejects(kv.write([put("k", "given up"), put("lost", "x")]), { code: "DATABASE_DOWN" });
	// By a new connection: those that are held say nothing.
	await until("a later write comes through", () => isWritten(kv, put("k", "later")));
	await wire.deliver();
	assert.equal(String(await kv.get("k")), "later");
	assert.equal(await kv.get("lost"), null);
	await kv.write([put("k", "last")]);
	assert.equal(String(await kv.get("k")), "last");
});

test("stores of one database are apart, and many processes may bring its tables up to date at once", async (t) => {
	const url = await server.newDatabase();
	const stores = await Promise.all(
		["relay", "boost", "a", "b", "c"].map((store) => opened(t, url, { store }).then((kv) => ({ store, kv }))),
	);
	await Promise.all(stores.map(({ store, kv }) => kv.write([put("k", store)])));
	for (const { store, kv } of stores) assert.equal(`${await kv.get("k")}`, store);
});

interface Opening {
	readonly url?: string;
	readonly dataDir?: string;
	readonly verify?: boolean;
	readonly clock?: Clock;
	readonly onWait?: (reason: string) => void;
	readonly stopped?: AbortSignal;
	readonly log?: Logger;
}

/** As a process does it at its start. */
async function started(t: TestContext, opening: Opening): Promise<SharedStore> {
	const { url, dataDir = "", verify = false, clock = systemClock, onWait = () => {} } = opening;
	const kv = await openStore(
		"relay",
		{ DATA_DIR: dataDir, DATABASE_URL: url, DATABASE_VERIFY: verify },
		{
			...{
				clock,
				log: opening.log ?? silentLogger,
				onLost: () => {},
				onWait: async (reason) => onWait(reason),
			},
			stopped: opening.stopped ?? new AbortController().signal,
		},
	);
	t.after(() => kv.close());
	return kv;
}

test("while another process has the store the start waits, says so once, and goes on within a moment of its end", async (t) => {
	const url = await server.newDatabase();
	const first = await started(t, { url });
	await first.write([{ key: "a", value: Buffer.from("1") }]);
	let waits = 0;
	const second = started(t, { url, onWait: () => (waits += 1) });
	await until("it waits", () => waits > 0);
	await first.close();
	assert.equal(String(await (await second).get("a")), "1");
	assert.equal(waits, 1);
});

test("who waits for another process outlives a database that is killed and comes back", async (t) => {
	const url = await server.newDatabase();
	const first = await started(t, { url });
	let waits = 0;
	// This clock is so fast that a process that did not wait would have given up.
	const hurried = { ...systemClock, monotonic: () => systemClock.monotonic() * 100 };
	let isTaken = false;
	const begun = hurried.monotonic();
	const second = started(t, { url, clock: hurried, onWait: () => (waits += 1) });
	second.then(
		() => (isTaken = true),
		() => {},
	);
	await until("it waits", () => waits > 0);
	await until("a minute has passed for it", () => hurried.monotonic() - begun > 60_000);
	await server.kill();
	await server.start();
	await until("either has it again", () => isTaken || first.isHeld);
	await first.close();
	const kv = await second;
	// In its hurried time a read has ten milliseconds.
	const read = async () => (await kv.get("a").catch(() => "failed")) === null;
	assert.ok(await until("it is read", read));
});

test("who waits for another process, and can't use its port meanwhile, ends with that and no word about the database", async (t) => {
	const url = await server.newDatabase();
	await started(t, { url });
	const lines: string[] = [];
	const log = { ...silentLogger, warn: (line: string) => void lines.push(line) };
	const taken = Object.assign(new Error("PORT 8080 is taken"), { code: "LISTEN" });
	const stop = new AbortController();
	let waits = 0;
	const waiting = started(t, {
		...{ url, log, stopped: stop.signal },
		onWait() {
			waits += 1;
			if (waits === 1) throw taken;
			stop.abort();
		},
	});
	await assert.rejects(waiting, taken);
	assert.deepEqual(lines, ["another process has the store, waiting"]);
});

test("a waiting process that is stopped waits no longer", async (t) => {
	const url = await server.newDatabase();
	await started(t, { url });
	const stop = new AbortController();
	const waiting = started(t, { url, stopped: stop.signal, onWait: () => stop.abort() });
	await assert.rejects(waiting, { code: "STOPPED" });
});

test("a database that is not there yet is waited for", async (t) => {
	const url = await server.newDatabase();
	await server.kill();
	const clock = counting(systemClock);
	const opening = started(t, { url, clock });
	await until("it was tried", () => clock.pauses > 0);
	await server.start();
	assert.equal(await (await opening).get("a"), null);
});

test("a database that does not answer is waited for until a stop, with the reason but without the URL's password", async (t) => {
	const stop = new AbortController();
	const lines: string[] = [];
	const reasons: string[] = [];
	const log = { ...silentLogger, warn: (...line: unknown[]) => lines.push(JSON.stringify(line)) };
	// In its time half a minute is over after a moment.
	const hurried = { ...systemClock, monotonic: () => systemClock.monotonic() * 100 };
	const waiting = started(t, {
		...{ url: "postgres://user:secretsecret@127.0.0.1:1/relay", clock: hurried, log, stopped: stop.signal },
		onWait: (reason) => reasons.push(reason),
	});
	const ended = assert.rejects(waiting, { code: "STOPPED" });
	await until("it was tried again", () => reasons.length > 2);
	stop.abort();
	await ended;
	const refused = "ECONNREFUSED: nothing listens there: is it up, and is the port of DATABASE_URL right?";
	const reason = `the database of DATABASE_URL does not answer (${refused})`;
	assert.deepEqual([...new Set(reasons)], [reason], "in public without its host");
	const [, told] = JSON.parse(lines[0] ?? "") as [string, { reason: string; fault: Record<string, unknown> }];
	assert.equal(told.reason, reason);
	assert.deepEqual([told.fault.host, told.fault.reason], ["127.0.0.1:1", "ECONNREFUSED"]);
	assert.doesNotMatch(lines.join(), /secretsecret/);
});

test("what no later try would change is refused at once, with what was expected", async (t) => {
	const url = new URL(await server.newDatabase());
	url.pathname = "/nowhere";
	await assert.rejects(started(t, { url: url.toString() }), {
		code: "DATABASE_REFUSED",
		message:
			"the database of DATABASE_URL refuses (3D000): expected the name of a database that exists; set it in DATABASE_URL and restart",
		...{ host: url.host, reason: "3D000" },
	});
	url.username = "nobody";
	await assert.rejects(started(t, { url: url.toString() }), {
		code: "DATABASE_REFUSED",
		message:
			"the database of DATABASE_URL refuses (28000): expected a user and password that it knows; set them in DATABASE_URL and restart",
	});
	url.searchParams.set("sslmode", "sometimes");
	await assert.rejects(started(t, { url: url.toString() }), {
		code: "DATABASE_URL",
		message: /expected an sslmode of/,
	});
});

test("a database without a free connection is waited for, and taken when one is free", async (t) => {
	const url = await small.newDatabase();
	const others = await Promise.all(
		Array.from({ length: CONNECTIONS }, async () => {
			const client = new pg.Client({ connectionString: url });
			client.on("error", () => {});
			await client.connect();
			return client;
		}),
	);
	const reasons: string[] = [];
	const opening = started(t, { url, onWait: (reason) => reasons.push(reason) });
	await until("it waits", () => reasons.length > 0);
	assert.match(
		reasons[0] ?? "",
		/ does not answer \(53300: it has no free connection: raise its max_connections/,
	);
	await Promise.all(others.map((client) => client.end()));
	assert.equal(await (await opening).get("a"), null);
});

test("a password that is missing or wrong is refused at once, in words that don't repeat it", async (t) => {
	const url = await small.newDatabase();
	const expected = "expected a user and password that it knows; set them in DATABASE_URL and restart";
	for (const [password, state] of [
		["", "no password"],
		["anothersecret", "28P01"],
	] as const) {
		const other = new URL(url);
		other.password = password;
		await assert.rejects(started(t, { url: other.toString() }), {
			code: "DATABASE_REFUSED",
			message: `the database of DATABASE_URL refuses (${state}): ${expected}`,
		});
	}
	assert.equal(await (await started(t, { url })).get("a"), null);
});

test("TLS with a certificate that nobody has signed: taken, unless it must be valid", async (t) => {
	const strict = await startPostgres({ tls: SELF_SIGNED });
	t.after(() => strict.stop());
	const url = await strict.newDatabase();
	const folder = mkdtempSync(join(tmpdir(), "leeward-open-"));
	t.after(() => rmSync(folder, { recursive: true, force: true }));
	const root = join(folder, "root.pem");
	writeFileSync(root, SELF_SIGNED.cert);
	const named = url.replace("127.0.0.1", "localhost");
	for (const taken of [
		// Reached over no network either, but by none of the names of loopback: as hosts have it.
		url.replace("127.0.0.1", "0.0.0.0"),
		...[url, `${url}?sslmode=prefer`, `${url}?sslmode=require`, `${url}?sslmode=no-verify`],
		`${url}?sslmode=verify-full&sslrootcert=${root}`,
		`${named}?sslmode=verify-ca&sslrootcert=${root}`,
	]) {
		const kv = await started(t, { url: taken });
		await kv.write([{ key: "a", value: Buffer.from(taken) }]);
		await kv.close();
	}
	await (await started(t, { url: `${url}?sslrootcert=${root}`, verify: true })).close();
	for (const [refused, code, verify] of [
		[url, "DEPTH_ZERO_SELF_SIGNED_CERT", true],
		[`${url}?sslmode=verify-full`, "DEPTH_ZERO_SELF_SIGNED_CERT", false],
		[`${named}?sslmode=verify-full&sslrootcert=${root}`, "ERR_TLS_CERT_ALTNAME_INVALID", false],
		[`${url}?sslmode=disable`, "28000", false],
	] as const) {
		await assert.rejects(started(t, { url: refused, verify }), (thrown: Error & { code?: unknown }) => {
			assert.equal(thrown.code, "DATABASE_REFUSED", `${refused}: ${thrown.message}`);
			assert.ok(thrown.message.includes(`(${code}): expected `), thrown.message);
			return true;
		});
	}
});

test("clear text over a network is for sslmode=disable alone", async (t) => {
	const url = (await server.newDatabase()).replace("127.0.0.1", "0.0.0.0");
	for (const query of ["", "?sslmode=prefer", "?sslmode=allow"]) {
		await assert.rejects(started(t, { url: `${url}${query}` }), { code: "DATABASE_REFUSED" });
	}
	await (await started(t, { url: `${url}?sslmode=disable` })).close();
});

/** A clock that counts what is waited for. */
function counting(clock: Clock): Clock & { readonly pauses: number } {
	let pauses = 0;
	return {
		...clock,
		get pauses() {
			return pauses;
		},
		after(ms, fn) {
			if (ms === 500) pauses += 1;
			return clock.after(ms, fn);
		},
	};
}
