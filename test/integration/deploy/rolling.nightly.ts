// A deploy as hosts make it: the next process starts while the last one still runs, on the same
// database. Relays are replaced behind boost, and boost behind its clients, under load; then a
// relay that holds the store is stopped in its tracks and wakes up too late. All of them are real
// processes.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freePort } from "../../devnet/freePort.ts";
import { BOOST_SECRET, boostEnv } from "../../faults/boostHere.ts";
import { type FaultyWire, startFaultyWire } from "../../faults/faultyWire.ts";
import { type Sent, Traffic } from "../../faults/traffic.ts";
import { startWorld, type World } from "../../faults/world.ts";
import { type PostgresServer, startPostgres } from "../../support/postgresServer.ts";
import { type LaunchedRelay, launchBoost, launchRelay, readyStatus } from "../../support/processes.ts";
import { startTcpProxy, type TcpProxy } from "../../support/tcpProxy.ts";
import { until } from "../../support/until.ts";

/** Transactions a second. */
const RATE = 15;
const READY_MS = 30_000;

/** A process and where it is reached. */
interface Standing {
	readonly process: LaunchedRelay;
	readonly port: number;
	readonly url: string;
}

let world: World;
let postgres: PostgresServer;
let database: string;
/** A host's router before the relays, and one before the boost instances. */
let relayRouter: TcpProxy;
let boostRouter: TcpProxy;
const wires: FaultyWire[] = [];
const launched: LaunchedRelay[] = [];
let relay: Standing & { readonly wire: FaultyWire };
let boost: Standing;
let traffic: Traffic;

before(async () => {
	world = await startWorld({ blockMs: 400, accounts: 3_000 });
	postgres = await startPostgres();
	database = await postgres.newDatabase();
	relay = await startRelay();
	await isReady(relay);
	relayRouter = await startTcpProxy(relay.port);
	boost = await startBoost();
	await isReady(boost);
	boostRouter = await startTcpProxy(boost.port);
	traffic = new Traffic({
		url: `http://127.0.0.1:${boostRouter.port}`,
		rate: RATE,
		paths: ["/fast", "/noreverts"],
		refusedEvery: 0,
		chainEvery: 0,
		// A connection that ends while it is idle may have a request on its way: clients of HTTP send
		// it again.
		retries: true,
		fresh: world.nextAccount,
		poor: world.poorAccount(),
	});
	traffic.start();
	await until("there is traffic", () => traffic.sent.length > RATE);
});
after(async () => {
	await traffic.stop();
	for (const process of launched) await process.kill();
	for (const router of [boostRouter, relayRouter]) await router.stop();
	for (const wire of wires) await wire.stop();
	await world.stop();
	await postgres.stop();
});

test("a relay that starts while another one decides is ready as its edge, and takes over when that one ends", async () => {
	const old = relay;
	const next = await startRelay();
	await isReady(next);
	relayRouter.redirect(next.port);
	await mined("by way of the edge");
	assert.deepEqual(sentBy(next), []);
	old.process.signal("SIGTERM");
	assert.equal((await old.process.ended()).code, 0);
	await mined("after the relay was replaced", async () => sentBy(next).length > 0);
	relay = next;
	// Not even for the overlap of one request: the last answer is waited for before the store is let
	// go.
	const [last, first] = [sentBy(old).at(-1)?.at ?? 0, sentBy(next)[0]?.at ?? 0];
	assert.ok(last < first, `the old one sent ${last - first} ms after the new one had begun`);
});

test("boost is replaced under its clients: the new one serves beside the old one, and has its rows when that has ended", async () => {
	const old = boost;
	const next = await startBoost();
	await isReady(next);
	assert.equal(await readyStatus(old.url), 200);
	// Heroku's router sends to the new ones before the old ones receive SIGTERM.
	boostRouter.redirect(next.port);
	old.process.signal("SIGTERM");
	assert.equal((await old.process.ended()).code, 0);
	await next.process.logged("accounts taken over");
	boost = next;
	await mined("after boost was replaced");
	const failed = traffic.sent.filter(({ outcome }) => outcome.kind !== "acknowledged");
	assert.deepEqual(failed.map(shown), [], "no request fails while relay and boost are replaced");
});

test("a relay that was suspended for longer than its lock is valid sends nothing when it continues, and ends", async () => {
	const old = relay;
	const next = await startRelay();
	old.process.signal("SIGSTOP");
	await isReady(next);
	relayRouter.redirect(next.port);
	await mined("after the relay was stopped", async () => sentBy(next).length > 0);
	const before = old.wire.requests().length;
	old.process.signal("SIGCONT");
	const exit = await old.process.ended();
	assert.equal(exit.code, 1);
	assert.match(exit.stdout, /another process has the store, exiting/);
	assert.deepEqual(old.wire.requests().slice(before), []);
	relay = next;
	await mined("after it woke up");
});

test("all that was acknowledged was mined, and was never public", async () => {
	await traffic.stop();
	// While the relay is stopped there is only the fallback, which is in this busy process and may be
	// too slow for some.
	const sent = traffic.sent.filter(({ outcome }) => outcome.kind === "acknowledged");
	await until("all are mined", () => sent.every(({ hash }) => world.mined.has(hash)));
	assert.deepEqual(sent.filter(({ hash }) => world.publicHashes.has(hash)).map(shown), []);
});

/** Waits until a transaction that was sent from now on is mined, and until `more` is so. */
async function mined(when: string, more: () => Promise<boolean> = async () => true): Promise<void> {
	const from = traffic.sent.length;
	await until(
		`a transaction is mined ${when}`,
		async () => traffic.sent.slice(from).some(({ hash }) => world.mined.has(hash)) && (await more()),
		READY_MS,
	);
}

/**
 * One more relay on the database; its builder is reached by a wire of its own. It listens, ready or
 * not.
 */
async function startRelay(): Promise<Standing & { readonly wire: FaultyWire }> {
	const wire = await startFaultyWire(world.builder.url);
	wires.push(wire);
	const builders = JSON.stringify([{ name: "dev", url: wire.url }]);
	const port = await freePort();
	const own = { PORT: String(port), INTERNAL_URL: `http://127.0.0.1:${port}`, DATABASE_URL: database };
	const env = { ...world.relayEnv, ...COMMON, ...own, BUILDERS: builders };
	return { ...(await standing(launchRelay({ env }))), wire };
}

async function startBoost(): Promise<Standing> {
	const urls = { relayUrl: `http://127.0.0.1:${relayRouter.port}`, fallbackUrl: world.fallbackUrl };
	// The fallback is in this busy process, which must not look like an outage of its own.
	const patient = { PROBE_TIMEOUT_MS: "3000", REQUEST_BUDGET_MS: "20000", BREAKER_FAULTS: "10" };
	const env = { ...boostEnv({ ...urls, folder: "" }), ...COMMON, ...patient, DATABASE_URL: database };
	return standing(launchBoost({ env }));
}

const COMMON = { BOOST_SECRET, LOG_LEVEL: "info" };

async function standing(process: LaunchedRelay): Promise<Standing> {
	launched.push(process);
	const port = await until(
		"it listens",
		() => Number(process.logs().find(({ msg }) => msg.startsWith("listening"))?.port ?? 0) || undefined,
		READY_MS,
	);
	return { process, port, url: `http://127.0.0.1:${port}` };
}

async function isReady({ url }: Standing): Promise<void> {
	await until("it is ready", async () => (await readyStatus(url)) === 200);
}

/** Requests that a relay sent to its builder, without cancels. */
function sentBy({ wire }: { readonly wire: FaultyWire }) {
	return wire.requests().filter(({ calls }) => calls.some(({ method }) => method.startsWith("eth_send")));
}

function shown({ path, hash, outcome, broken }: Sent): unknown {
	return { path, hash, outcome, broken };
}
