// Tests opening a process's store on a real PostgreSQL: which waits there are and how they end, what is refused with
// which message, and TLS as hosts have it, with a self-signed certificate.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { type Clock, systemClock } from "../../shared/clock.ts";
import { openStore } from "../../shared/kv/openStore.ts";
import type { SharedStore } from "../../shared/kv/port.ts";
import { type Logger, silentLogger } from "../../shared/log.ts";
import { type PostgresServer, startPostgres } from "../support/postgresServer.ts";
import { SELF_SIGNED } from "../support/selfSigned.ts";
import { until } from "../support/until.ts";

let server: PostgresServer;
let folder: string;
before(async () => {
	server = await startPostgres();
	folder = mkdtempSync(join(tmpdir(), "leeward-open-"));
});
after(async () => {
	await server.stop();
	rmSync(folder, { recursive: true, force: true });
});

interface Opening {
	readonly url?: string;
	readonly dataDir?: string;
	readonly verify?: boolean;
	readonly clock?: Clock;
	readonly onWait?: () => void;
	readonly stopped?: AbortSignal;
	readonly log?: Logger;
}

async function opened(t: TestContext, opening: Opening): Promise<SharedStore> {
	const { url, dataDir = "", verify = false, clock = systemClock, onWait = () => {} } = opening;
	const kv = await openStore(
		"relay",
		{ DATA_DIR: dataDir, DATABASE_URL: url, DATABASE_VERIFY: verify },
		{
			...{ clock, log: opening.log ?? silentLogger, onLost: () => {}, onWait: async () => onWait() },
			stopped: opening.stopped ?? new AbortController().signal,
		},
	);
	t.after(() => kv.close());
	return kv;
}

test("while another process has the store the start waits, says so once, and goes on within a moment of its end", async (t) => {
	const url = await server.newDatabase();
	const first = await opened(t, { url });
	await first.write([{ key: "a", value: Buffer.from("1") }]);
	let waits = 0;
	const second = opened(t, { url, onWait: () => (waits += 1) });
	await until("it waits", () => waits > 0);
	await first.close();
	assert.equal(String(await (await second).get("a")), "1");
	assert.equal(waits, 1);
});

test("who waits for another process outlives a database that is killed and comes back", async (t) => {
	const url = await server.newDatabase();
	const first = await opened(t, { url });
	let waits = 0;
	// For so long that who did not wait would have given up.
	const hurried = { ...systemClock, monotonic: () => systemClock.monotonic() * 100 };
	const second = opened(t, { url, clock: hurried, onWait: () => (waits += 1) });
	await until("it waits", () => waits > 0);
	await server.kill();
	await server.start();
	// Either may be the first to find it back.
	const again = until("the first one has it again", () => first.isHeld, 20_000).catch(() => {});
	await Promise.race([second, again]);
	await first.close();
	const kv = await second;
	// In its hurried time a read has ten milliseconds.
	const read = async () => (await kv.get("a").catch(() => "failed")) === null;
	assert.ok(await until("it is read", read));
});

test("who is told to stop waits no longer", async (t) => {
	const url = await server.newDatabase();
	await opened(t, { url });
	const stop = new AbortController();
	const waiting = opened(t, { url, stopped: stop.signal, onWait: () => stop.abort() });
	await assert.rejects(waiting, { code: "STORE_IN_USE" });
});

test("a database that is not there yet is waited for", async (t) => {
	const url = await server.newDatabase();
	await server.kill();
	const clock = counting(systemClock);
	const opening = opened(t, { url, clock });
	await until("it was tried", () => clock.pauses > 0);
	await server.start();
	assert.equal(await (await opening).get("a"), null);
});

test("after half a minute the start gives up, in words for its operator and without the URL's password", async (t) => {
	const hurried = { ...systemClock, monotonic: () => systemClock.monotonic() * 100 };
	const opening = opened(t, { url: "postgres://user:secretsecret@127.0.0.1:1/relay", clock: hurried });
	await assert.rejects(opening, {
		code: "DATABASE_DOWN",
		message: "the database of DATABASE_URL does not answer (ECONNREFUSED)",
	});
});

test("what no later try would change is refused at once, with what was expected", async (t) => {
	const url = new URL(await server.newDatabase());
	url.pathname = "/nowhere";
	await assert.rejects(opened(t, { url: url.toString() }), {
		code: "DATABASE_REFUSED",
		message: "the database of DATABASE_URL refuses (3D000): expected the name of a database that exists",
	});
	url.username = "nobody";
	await assert.rejects(opened(t, { url: url.toString() }), {
		code: "DATABASE_REFUSED",
		message: "the database of DATABASE_URL refuses (28000): expected a user and password that it knows",
	});
	url.searchParams.set("sslmode", "sometimes");
	await assert.rejects(opened(t, { url: url.toString() }), {
		code: "DATABASE_URL",
		message: /expected an sslmode of/,
	});
});

test("TLS with a certificate that nobody has signed: taken, unless it must be valid", async (t) => {
	const strict = await startPostgres({ tls: SELF_SIGNED });
	t.after(() => strict.stop());
	const url = await strict.newDatabase();
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
		const kv = await opened(t, { url: taken });
		await kv.write([{ key: "a", value: Buffer.from(taken) }]);
		await kv.close();
	}
	await (await opened(t, { url: `${url}?sslrootcert=${root}`, verify: true })).close();
	for (const [refused, code, verify] of [
		[url, "DEPTH_ZERO_SELF_SIGNED_CERT", true],
		[`${url}?sslmode=verify-full`, "DEPTH_ZERO_SELF_SIGNED_CERT", false],
		[`${named}?sslmode=verify-full&sslrootcert=${root}`, "ERR_TLS_CERT_ALTNAME_INVALID", false],
		[`${url}?sslmode=disable`, "28000", false],
	] as const) {
		await assert.rejects(opened(t, { url: refused, verify }), (thrown: Error & { code?: unknown }) => {
			assert.equal(thrown.code, "DATABASE_REFUSED", `${refused}: ${thrown.message}`);
			assert.ok(thrown.message.includes(`(${code}): expected `), thrown.message);
			return true;
		});
	}
});

test("clear text over a network is for sslmode=disable alone, and is told of in the log", async (t) => {
	const url = (await server.newDatabase()).replace("127.0.0.1", "0.0.0.0");
	const warned: string[] = [];
	const log = { ...silentLogger, warn: (message: string) => void warned.push(message) };
	for (const query of ["", "?sslmode=prefer", "?sslmode=allow"]) {
		await assert.rejects(opened(t, { url: `${url}${query}`, log }), { code: "DATABASE_REFUSED" });
	}
	await (await opened(t, { url: `${url}?sslmode=disable`.replace("0.0.0.0", "127.0.0.1"), log })).close();
	assert.deepEqual(warned, []);
	await (await opened(t, { url: `${url}?sslmode=disable`, log })).close();
	assert.deepEqual(warned, [
		"the database is spoken to in clear text, as sslmode=disable asks: keep its network private",
	]);
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
