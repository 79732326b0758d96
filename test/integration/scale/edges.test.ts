// Several relays on one database, as processes: each serves, one decides, and the next one takes over.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { systemClock } from "../../../shared/clock.ts";
import { freePort } from "../../devnet/freePort.ts";
import { type FaultyWire, startFaultyWire } from "../../faults/faultyWire.ts";
import { startWorld, type World } from "../../faults/world.ts";
import { FeedClient } from "../../support/feeds.ts";
import { type PostgresServer, startPostgres } from "../../support/postgresServer.ts";
import { type LaunchedRelay, launchRelay, readyStatus } from "../../support/processes.ts";
import { RelayClient } from "../../support/relayClient.ts";
import { signedTransaction } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const READY_MS = 30_000;
/** From the end of a core to the next request to a builder, in ms: killed, and drained. */
const [KILLED_MS, DRAINED_MS] = [5_000, 1_000];

interface Standing {
	readonly process: LaunchedRelay;
	readonly url: string;
	readonly client: RelayClient;
	readonly wire: FaultyWire;
}

let world: World;
let postgres: PostgresServer;
let database: string;
const standing: Standing[] = [];

before(async () => {
	world = await startWorld({ blockMs: 400, accounts: 200 });
	postgres = await startPostgres();
	database = await postgres.newDatabase();
});
after(async () => {
	for (const { process, wire } of standing) {
		await process.kill();
		await wire.stop();
	}
	await world.stop();
	await postgres.stop();
});

async function startRelay(): Promise<Standing> {
	const wire = await startFaultyWire(world.builder.url);
	const port = await freePort();
	const url = `http://127.0.0.1:${port}`;
	const process = launchRelay({
		env: {
			...world.relayEnv,
			PORT: String(port),
			INTERNAL_URL: url,
			BUILDERS: JSON.stringify([{ name: "dev", url: wire.url }]),
			DATABASE_URL: database,
			LOG_LEVEL: "info",
		},
	});
	const one = { process, url, client: new RelayClient(url), wire };
	standing.push(one);
	await until("it is ready", async () => (await readyStatus(url)) === 200, READY_MS);
	return one;
}

/** A signed transaction of an account of its own. */
function signed(options: { readonly value?: bigint } = {}) {
	const by = world.nextAccount();
	if (by === undefined) throw new Error("no more accounts");
	const tx = signedTransaction({ by, ...options });
	return { raw: `0x${tx.raw.toString("hex")}`, hash: tx.hash, from: tx.from };
}

async function infoOf({ url }: Standing): Promise<Record<string, unknown>> {
	return (await (await fetch(`${url}/info`)).json()) as Record<string, unknown>;
}

/** Requests by which the relay gave its builder something. */
function sentBy({ wire }: Standing) {
	return wire.requests().filter(({ calls }) => calls.some(({ method }) => method.startsWith("eth_send")));
}

let core: Standing;
let edge: Standing;
let feed: FeedClient;

test("the second relay on a database is ready, as an edge of the first one", async () => {
	core = await startRelay();
	edge = await startRelay();
	const [first, second] = [await infoOf(core), await infoOf(edge)];
	assert.deepEqual([first.role, second.role], ["core", "edge"]);
	assert.equal(first.term, second.term);
	assert.deepEqual(first.simulation, second.simulation);
	assert.equal(second.bidding, true);
});

test("a submission to the edge is the core's, and is shown by both", async () => {
	const tx = signed();
	const follower = await FeedClient.open(edge.url.replace("http", "ws"));
	await follower.subscribe("service_transactionStatus", tx.hash);
	assert.equal(await edge.client.send(tx.raw), tx.hash);
	for (const { client } of [core, edge]) {
		const held = (await client.call("eth_getTransactionByHash", [tx.hash])) as Record<string, unknown>;
		assert.equal(held.from, tx.from);
		assert.equal(await client.call("eth_getTransactionCount", [tx.from, "pending"]), "0x1");
	}
	await until("it is mined", () => world.mined.has(tx.hash));
	await until("the edge says so", async () => (await edge.client.stage(tx.hash)) === "INCLUDED");
	const stages = () => follower.told.map(({ stage }) => stage);
	await until("the follower at the edge is told", () => stages().includes("INCLUDED"));
	assert.deepEqual([...new Set(stages())], stages(), "each stage once");
	assert.ok((await edge.client.events(tx.hash)).some(({ type }) => type === "included"));
	assert.equal(sentBy(edge).length, 0);
	follower.close();
});

test("a searcher at the edge is shown what one at the core is shown", async () => {
	feed = await FeedClient.open(edge.url.replace("http", "ws"));
	const other = await FeedClient.open(core.url.replace("http", "ws"));
	for (const one of [feed, other]) await one.subscribe("service_partialPendingTransactions");
	const txs = [signed(), signed(), signed()];
	for (const { raw } of txs) await edge.client.send(raw, "/maxbackruns");
	await until("both were told", () => feed.told.length === 3 && other.told.length === 3);
	assert.deepEqual(feed.told, other.told);
	other.close();
});

test("when the core is killed, the edge takes over within five seconds, and its searchers stay", async () => {
	const before = signed();
	// Mined only after the core has ended: nobody may send it before.
	await edge.client.send(before.raw, "/maxbackruns");
	const at = systemClock.now();
	await core.process.kill();
	await until("the edge sends", () => sentBy(edge).length > 0, 2 * KILLED_MS);
	const ms = (sentBy(edge)[0]?.at ?? 0) - at;
	assert.ok(ms < KILLED_MS, `it took ${ms} ms`);
	await until("it is mined", () => world.mined.has(before.hash));
	const tx = signed();
	await until(
		"the edge takes submissions",
		async () =>
			(await edge.client.ask("eth_sendRawTransaction", [tx.raw], "/maxbackruns")).result === tx.hash,
	);
	await until("the searcher is told", () => feed.told.some(({ hash }) => hash === tx.hash));
	const hashes = feed.told.map(({ hash }) => hash);
	assert.equal(new Set(hashes).size, hashes.length, "each once");
});

test("a core that is drained is followed by the next one within a second", async () => {
	core = edge;
	edge = await startRelay();
	const at = systemClock.now();
	core.process.signal("SIGTERM");
	const tx = signed();
	await until(
		"the edge sends",
		async () => {
			await edge.client.ask("eth_sendRawTransaction", [tx.raw]);
			return sentBy(edge).length > 0;
		},
		2 * KILLED_MS,
	);
	const ms = (sentBy(edge)[0]?.at ?? 0) - at;
	assert.ok(ms < DRAINED_MS, `it took ${ms} ms`);
	assert.equal((await core.process.ended()).code, 0);
	await until("it is mined", () => world.mined.has(tx.hash));
});
