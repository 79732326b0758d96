// The holder of a store in PostgreSQL: one that hung, was cut off, stopped or paused writes nothing
// after the next one has come.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { systemClock } from "../../shared/clock.ts";
import { silentLogger } from "../../shared/log.ts";
import { type PostgresServer, startPostgres } from "../support/postgresServer.ts";
import { isWritten, opened, openedNext, put, wired } from "../support/postgresStores.ts";
import { StorePlaces } from "../support/storeEngines.ts";
import { until } from "../support/until.ts";

/** How long a lease lasts without renewal, in ms. */
const TTL_MS = 600;
const places = new StorePlaces();
let server: PostgresServer;
before(async () => {
	server = await startPostgres();
});
after(async () => {
	places.remove();
	await server?.stop();
});

test("a holder that hangs for longer than its time loses the store, and what it writes then is refused", async (t) => {
	const { kv, wire, url } = await wired(t, server);
	await kv.close();
	const holderUrl = new URL(url);
	holderUrl.port = String(wire.port);
	let lost = 0;
	const lines: unknown[] = [];
	const onLost = (): void => {
		lost += 1;
	};
	const log = { ...silentLogger, error: (...line: unknown[]) => void lines.push(line) };
	const holder = await opened(t, holderUrl.toString(), { ttlMs: 400 }, onLost, log);
	await holder.write([put("mine", "1")]);
	assert.equal(holder.isHeld, true);
	wire.freeze();
	const next = await openedNext(t, url);
	assert.equal(holder.isHeld, false);
	assert.equal(`${await next.get("mine")}`, "1");
	wire.cut();
	wire.mend();
	await assert.rejects(
		async () => {
			for (;;) {
				await holder.write([put("mine", "2")]).catch((thrown: { code?: unknown }) => {
					if (thrown.code !== "DATABASE_DOWN") throw thrown;
				});
			}
		},
		{ code: "STORE_LOST" },
	);
	await until("it is notified", () => lost === 1);
	const { number: term } = holder.term ?? {};
	assert.deepEqual(lines, [["another process took over the store", { store: "relay", term }]]);
	assert.equal(`${await next.get("mine")}`, "1");
});

test("a holder keeps the store while a write hangs for longer than its time", async (t) => {
	const { kv, url } = await wired(t, server);
	await kv.close();
	const holder = await opened(t, url, { ttlMs: TTL_MS });
	const other = new pg.Client({ connectionString: url });
	await other.connect();
	try {
		// Each write locks this row until its commit.
		await other.query("BEGIN");
		await other.query("UPDATE leeward_holder SET seq = seq WHERE store = 'relay'");
		const begun = systemClock.monotonic();
		await until("its time would be over", () => {
			assert.equal(holder.isHeld, true);
			return systemClock.monotonic() - begun > 3 * TTL_MS;
		});
	} finally {
		await other.end();
	}
	await holder.write([put("mine", "1")]);
});

test("a holder that is cut off does not say that what the next one has stored is unknown", async (t) => {
	const { kv, wire, url } = await wired(t, server);
	await kv.write([put("known", "1")]);
	wire.cut();
	const next = await openedNext(t, url);
	await next.write([put("later", "2")]);
	wire.mend();
	for (const key of ["later", "known", "never"]) {
		let said: unknown;
		await until("it knows", async () => {
			said = await kv.get(key).catch((thrown: { code?: unknown }) => thrown.code);
			return said !== "DATABASE_DOWN";
		});
		assert.equal(said, "STORE_LOST", key);
	}
});

test("a term ends with the next one though that has the same number, as after a standby without its commit was promoted", async (t) => {
	let lost = 0;
	const { kv: former, wire, url } = await wired(t, server, { ttlMs: 400 }, () => void lost++);
	await former.write([put("a", "1")]);
	wire.cut();
	await until("it is not held", () => !former.isHeld);
	const client = new pg.Client({ connectionString: url });
	await client.connect();
	await client.query("UPDATE leeward_holder SET epoch = epoch - 1");
	await client.end();
	const next = await openedNext(t, url);
	assert.equal(next.term?.number, former.term?.number);
	await next.write([put("a", "2")]);
	wire.mend();
	assert.equal(await isWritten(former, put("a", "3")), false);
	await until("the former one ends", () => lost === 1);
	assert.deepEqual([former.isHeld, next.isHeld, String(await next.get("a"))], [false, true, "2"]);
});

test("a process that is stopped for longer than its time and wakes up writes nothing more", async (t) => {
	const engine = places.engines.find(({ name }) => name === "postgres");
	assert.ok(engine);
	const url = await server.newDatabase();
	const holder = places.another(
		engine,
		`const kv = await openPostgres({ url: ${JSON.stringify(url)}, store: "relay", verify: false, ttlMs: 400 }, { clock: systemClock, log: silentLogger, onLost: () => say("lost") });
		await kv.write([{ key: "a", value: Buffer.from("1") }]);
		say("held " + kv.isHeld);
		process.stdin.once("data", async () => {
			say("held " + kv.isHeld);
			await kv.write([{ key: "a", value: Buffer.from("2") }]).then(() => say("written"), (thrown) => say(thrown.code));
		});`,
	);
	assert.equal(await holder.line(), "held true");
	holder.child.kill("SIGSTOP");
	const next = await openedNext(t, url);
	holder.child.stdin?.write("wake\n");
	holder.child.kill("SIGCONT");
	const said = new Set([await holder.line(), await holder.line(), await holder.line()]);
	assert.equal(said.has("held true") || said.has("written"), false, [...said].join());
	assert.ok(said.has("lost"), [...said].join());
	assert.equal(`${await next.get("a")}`, "1");
});

/**
 * A clock that does not notice that its process was stopped, as that of a virtual machine that was
 * paused.
 */
const UNAWARE = `
	let [last, lostMs] = [systemClock.monotonic(), 0];
	const awake = () => {
		const now = systemClock.monotonic();
		if (now - last > 200) lostMs += now - last;
		last = now;
		return lostMs;
	};
	setInterval(awake, 20);
	const clock = { ...systemClock, monotonic: () => systemClock.monotonic() - awake(), now: () => systemClock.now() - awake() };
	clock.after = (ms, fn) => systemClock.after(ms, fn);`;

for (const [what, isTaken] of [
	["another process has the store: it is not held", true],
	["nobody has: it is held", false],
] as const) {
	test(`the database says whether a process that was paused unnoticed may go on, though ${what}`, async (t) => {
		const engine = places.engines.find(({ name }) => name === "postgres");
		assert.ok(engine);
		const url = await server.newDatabase();
		const holder = places.another(
			engine,
			`${UNAWARE}
			const kv = await openPostgres({ url: ${JSON.stringify(url)}, store: "relay", verify: false, ttlMs: 3_000 }, { clock, log: silentLogger, onLost: () => {} });
			say("held " + kv.isHeld);
			process.stdin.once("data", async () => {
				await kv.confirm();
				say("held " + kv.isHeld);
			});`,
		);
		assert.equal(await holder.line(), "held true");
		holder.child.kill("SIGSTOP");
		if (isTaken) await openedNext(t, url);
		holder.child.stdin?.write("wake\n");
		holder.child.kill("SIGCONT");
		assert.equal(await holder.line(), `held ${!isTaken}`);
	});
}
