// What PostgreSQL as a store must do beside the contract of all engines: be out, hang and come back without losing what
// was promised, and have one writer across machines, which a process that was stopped for long is not any more.

import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { systemClock } from "../../shared/clock.ts";
import type { SharedStore } from "../../shared/kv/port.ts";
import { openPostgres, type PostgresOptions } from "../../shared/kv/postgres/postgres.ts";
import { silentLogger } from "../../shared/log.ts";
import type { PostgresServer } from "../support/postgresServer.ts";
import { StorePlaces } from "../support/storeEngines.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcpProxy.ts";
import { until } from "../support/until.ts";

const put = (key: string, value: string) => ({ key, value: Buffer.from(value) });

const places = new StorePlaces();
let server: PostgresServer;
before(async () => {
	server = await places.server();
});
after(() => places.remove());

async function opened(
	t: TestContext,
	url: string,
	options: Partial<PostgresOptions> = {},
	onLost = () => {},
): Promise<SharedStore> {
	const kv = await openPostgres(
		{ url, store: "relay", verify: false, ...options },
		{ clock: systemClock, log: silentLogger, onLost },
	);
	t.after(() => kv.close());
	return kv;
}

/** A store behind a wire that can be cut. */
async function wired(
	t: TestContext,
): Promise<{ readonly kv: SharedStore; readonly wire: TcpProxy; readonly url: string }> {
	const url = new URL(await server.newDatabase());
	const wire = await startTcpProxy(Number(url.port));
	t.after(() => wire.stop());
	const direct = url.toString();
	url.port = String(wire.port);
	return { kv: await opened(t, url.toString()), wire, url: direct };
}

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
	await until("it is written to again", () => told.length > before + 100, 20_000);
	isOver = true;
	await Promise.all(workers);
	for (const key of told) assert.ok((await kv.get(key)) !== null, `${key} is lost`);
	await until("it is held again", () => kv.isHeld);
});

test("a cut that is mended within a second is not seen; a longer one refuses in time, and few connections are tried", async (t) => {
	const { kv, wire } = await wired(t);
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
		await until(
			"it is written to",
			() =>
				kv.write([put("back", how)]).then(
					() => true,
					() => false,
				),
			20_000,
		);
	}
});

test("a write that was given up and arrives behind a later one changes nothing", async (t) => {
	const { kv, wire } = await wired(t);
	await kv.write([put("k", "first")]);
	wire.hold();
	await assert.rejects(kv.write([put("k", "given up"), put("lost", "x")]), { code: "DATABASE_DOWN" });
	// By a new connection: those that are held say nothing.
	await until("a later write comes through", () =>
		kv.write([put("k", "later")]).then(
			() => true,
			() => false,
		),
	);
	await wire.deliver();
	assert.equal(String(await kv.get("k")), "later");
	assert.equal(await kv.get("lost"), null);
	await kv.write([put("k", "last")]);
	assert.equal(String(await kv.get("k")), "last");
});

test("a holder that hangs for longer than its time loses the store, and what it writes then is refused", async (t) => {
	const { kv, wire, url } = await wired(t);
	await kv.close();
	const holderUrl = new URL(url);
	holderUrl.port = String(wire.port);
	let lost = 0;
	const holder = await opened(t, holderUrl.toString(), { ttlMs: 400 }, () => {
		lost += 1;
	});
	await holder.write([put("mine", "1")]);
	assert.equal(holder.isHeld, true);
	wire.freeze();
	const next = await until(
		"another one has it",
		() => opened(t, url, { ttlMs: 400 }).catch(() => undefined),
		20_000,
	);
	assert.equal(holder.isHeld, false);
	assert.equal(`${await next?.get("mine")}`, "1");
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
	await until("it is told", () => lost === 1);
	assert.equal(`${await next?.get("mine")}`, "1");
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
	const next = await until(
		"another one has it",
		() => opened(t, url, { ttlMs: 400 }).catch(() => undefined),
		20_000,
	);
	holder.child.stdin?.write("wake\n");
	holder.child.kill("SIGCONT");
	const said = new Set([await holder.line(), await holder.line(), await holder.line()]);
	assert.equal(said.has("held true") || said.has("written"), false, [...said].join());
	assert.ok(said.has("lost"), [...said].join());
	assert.equal(`${await next?.get("a")}`, "1");
});

test("stores of one database are apart, and many processes may bring its tables up to date at once", async (t) => {
	const url = await server.newDatabase();
	const stores = await Promise.all(
		["relay", "boost", "a", "b", "c"].map((store) => opened(t, url, { store }).then((kv) => ({ store, kv }))),
	);
	await Promise.all(stores.map(({ store, kv }) => kv.write([put("k", store)])));
	for (const { store, kv } of stores) assert.equal(`${await kv.get("k")}`, store);
});
