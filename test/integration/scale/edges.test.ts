// Several relays on one database, as processes: each serves, one decides, and the next one takes
// over. How long that takes is judged by test/scale/takeover.nightly.ts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { RelayState } from "../../../relay/ingress/operators.ts";
import { systemClock } from "../../../shared/clock.ts";
import type { OperatorHistory } from "../../../shared/http/operatorData.ts";
import { HolderReader } from "../../../shared/kv/postgres/holder.ts";
import { freePort } from "../../devnet/freePort.ts";
import { type FaultyWire, startFaultyWire } from "../../faults/faultyWire.ts";
import { startRelayHere, startWorld, type World } from "../../faults/world.ts";
import { EventStreamReader } from "../../support/clients.ts";
import { FeedClient } from "../../support/feeds.ts";
import { type PostgresServer, startPostgres } from "../../support/postgresServer.ts";
import { type LaunchedRelay, launchRelay, readyStatus } from "../../support/processes.ts";
import { ADMIN_TOKEN, REFUSED_WITHOUT_CORE, RelayClient } from "../../support/relayClient.ts";
import { signedTransaction } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

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
	world = await startWorld({ blockMs: 400, accounts: 50, builder: "plain" });
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

/** `env`: settings beside the usual ones. Resolves at once if it need not become ready. */
async function startRelay(env: Readonly<Record<string, string>> = {}, isReady = true): Promise<Standing> {
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
			ADMIN_TOKEN,
			LOG_LEVEL: "info",
			...env,
		},
	});
	const one = { process, url, client: new RelayClient(url), wire };
	standing.push(one);
	if (isReady) await until("it is ready", async () => (await readyStatus(url)) === 200);
	return one;
}

/** A signed transaction of an account of its own. */
function signed(options: { readonly value?: bigint } = {}) {
	const by = world.nextAccount();
	if (by === undefined) throw new Error("no more accounts");
	const tx = signedTransaction({ by, ...options });
	return { raw: `0x${tx.raw.toString("hex")}`, hash: tx.hash, from: tx.from };
}

async function infoOf({ url }: Pick<Standing, "url">): Promise<Record<string, unknown>> {
	return (await (await fetch(`${url}/info`)).json()) as Record<string, unknown>;
}

/** The content of the operator's page. */
async function operatorState({ url }: Standing): Promise<RelayState> {
	const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
	return (await (await fetch(`${url}/admin/state`, { headers })).json()) as RelayState;
}

interface Readiness {
	readonly ready: boolean;
	readonly role: string;
	readonly term: number | null;
	readonly checks: Readonly<Record<string, { readonly ok: boolean; readonly reason?: string }>>;
}

/** The answer of /readyz; null while nothing answers. */
async function readiness({ url }: Pick<Standing, "url">): Promise<Readiness | null> {
	const answer = await fetch(`${url}/readyz`).catch(() => null);
	return answer === null ? null : ((await answer.json()) as Readiness);
}

/** The reason of the check of the store that fails; undefined while it is healthy. */
async function storeTrouble(one: Standing): Promise<string | undefined> {
	return (await readiness(one))?.checks.store?.reason;
}

/** The lines of its log about who is the core: the terms since `first`, which is 1. */
function roleLines({ process }: Standing, first: number): readonly string[] {
	return process
		.logs()
		.flatMap(({ msg, term }) => (typeof term === "number" ? [`${msg}: ${term - first + 1}`] : []));
}

/** Requests by which the relay gave its builder something. */
function sentBy({ wire }: Standing) {
	return wire.requests().filter(({ calls }) => calls.some(({ method }) => method.startsWith("eth_send")));
}

let core: Standing;
let edge: Standing;
let firstTerm: number;
let feed: FeedClient;
/** The same of a searcher by event stream. */
let events: EventStreamReader;
/** Its subscription to what is shared. */
let shown: string;

test("the second relay on a database is ready, as an edge of the first one", async () => {
	core = await startRelay();
	edge = await startRelay();
	const [first, second] = [await infoOf(core), await infoOf(edge)];
	assert.deepEqual([first.role, second.role], ["core", "edge"]);
	assert.equal(first.term, second.term);
	assert.deepEqual(first.simulation, second.simulation);
	assert.equal(second.bidding, true);
	firstTerm = Number(first.term);
	assert.deepEqual(
		[await readiness(core), await readiness(edge)].map((one) => [one?.role, one?.term]),
		[
			["core", firstTerm],
			["edge", firstTerm],
		],
	);
	assert.deepEqual(roleLines(core, firstTerm), ["became the core: 1"]);
	assert.deepEqual(roleLines(edge, firstTerm), ["connected to the core: 1"]);
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
	await until("the follower at the edge is notified", () => stages().includes("INCLUDED"));
	assert.deepEqual([...new Set(stages())], stages(), "each stage once");
	assert.ok((await edge.client.events(tx.hash)).some(({ type }) => type === "included"));
	assert.equal(sentBy(edge).length, 0);
	follower.close();
});

test("the operator's page of each shows its own role and connections, and the core's pool, builders and store", async () => {
	const [first, second] = [await operatorState(core), await operatorState(edge)];
	assert.deepEqual(
		[first.role, second.role, first.term, second.term],
		["core", "edge", firstTerm, firstTerm],
	);
	assert.equal(first.core?.edges, 1);
	assert.equal(first.core?.store.kind, "PostgreSQL");
	assert.equal(first.core?.builders[0]?.last?.answer, "accepted");
	assert.deepEqual(second.core?.store.trouble, null);
	assert.deepEqual(
		second.core?.builders.map(({ name }) => name),
		["dev"],
	);
	assert.deepEqual(Object.keys(second.core ?? {}), Object.keys(first.core ?? {}));
	const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
	const figures = (await (await fetch(`${edge.url}/admin/history`, { headers })).json()) as OperatorHistory;
	assert.ok(figures.core?.hour.columns.accepted !== undefined, "an edge has the core's figures");
	const relays = async () => (await operatorState(edge)).core?.relays ?? [];
	await until("both have reported", async () => (await relays()).length === 2);
	const reported = await relays();
	assert.deepEqual(
		reported.map(({ role, problems }) => [role, problems]),
		[
			["core", []],
			["edge", []],
		],
	);
	for (const { since, head, secondsAgo } of reported) {
		assert.ok(Date.parse(since) <= Date.now() && head !== null && secondsAgo < 10, `${since}, ${head}`);
	}
});

test("a browser is shown the page of an error by both, with the same headers", async () => {
	const pages = await Promise.all(
		[core, edge].map(async ({ url }) => {
			const page = await fetch(`${url}/tx/0x12`, { headers: { accept: "text/html" } });
			const headers = [
				"content-type",
				"content-security-policy",
				"x-content-type-options",
				"referrer-policy",
				"vary",
			];
			return [page.status, ...headers.map((name) => page.headers.get(name)), await page.text()];
		}),
	);
	assert.match(String(pages[0]), /default-src 'none'/);
	assert.deepEqual(pages[1], pages[0]);
});

test("a searcher at the edge is shown what one at the core is shown", async () => {
	feed = await FeedClient.open(edge.url.replace("http", "ws"));
	const other = await FeedClient.open(core.url.replace("http", "ws"));
	shown = await feed.subscribe("service_partialPendingTransactions");
	await other.subscribe("service_partialPendingTransactions");
	events = await EventStreamReader.open(`${edge.url}/mev-share`);
	const txs = [signed(), signed(), signed()];
	for (const { raw } of txs) await edge.client.send(raw, "/maxbackruns");
	await until("both were notified", () => feed.told.length === 3 && other.told.length === 3);
	assert.deepEqual(feed.told, other.told);
	assert.deepEqual(
		(await events.come(3)).map(({ data }) => data.hash),
		feed.told.map(({ hash }) => hash),
	);
	other.close();
});

test("when the core is killed, the edge takes over, and its searchers stay", async () => {
	const [before, meanwhile] = [signed(), signed()];
	// Its core can't send them any more.
	await core.wire.set({ kind: "refuse" });
	await edge.client.send(before.raw, "/maxbackruns");
	await edge.client.send(meanwhile.raw, "/fast");
	await until("it was tried", async () =>
		(await edge.client.events(meanwhile.hash)).some(({ answer }) => answer === "failed"),
	);
	assert.equal(await edge.client.stage(meanwhile.hash), "PENDING", "nothing has left");
	const status = await feed.subscribe("service_transactionStatus", meanwhile.hash);
	core.process.signal("SIGSTOP");
	await world.chain.rpc("eth_sendRawTransaction", [meanwhile.raw]);
	await until("one is mined without it", () => world.mined.has(meanwhile.hash));
	const underWay = Array.from({ length: 4 }, () => signed());
	const answers = underWay.map(({ raw }) => edge.client.ask("eth_sendRawTransaction", [raw], "/fast"));
	await core.process.kill();
	await until("the edge sends", () => sentBy(edge).length > 0);
	await until("it is mined", () => world.mined.has(before.hash));
	const tx = signed();
	await until(
		"the edge takes submissions",
		async () =>
			(await edge.client.ask("eth_sendRawTransaction", [tx.raw], "/maxbackruns")).result === tx.hash,
	);
	await until("the searcher is notified", () => feed.told.some(({ hash }) => hash === tx.hash));
	const refused: string[] = [];
	for (const [i, { result, error }] of (await Promise.all(answers)).entries()) {
		const { raw, hash } = underWay[i] ?? assert.fail();
		if (result === hash) continue;
		assert.match(`${error?.code} ${error?.message}`, REFUSED_WITHOUT_CORE);
		refused.push(raw);
	}
	await until("what came behind them is mined", () => world.mined.has(tx.hash));
	for (const { calls } of sentBy(edge))
		for (const raw of refused) assert.ok(!JSON.stringify(calls).includes(raw), "nothing refused is sent");
	const hashes = feed.received(shown).map(({ hash }) => hash);
	assert.equal(new Set(hashes).size, hashes.length, "each once");
	assert.equal(events.ended, null, "event streams stay, too");
	await until("the event stream receives the same", () =>
		isDeepStrictEqual(
			events.messages.map(({ data }) => data.hash),
			hashes,
		),
	);
	const stages = () => feed.received(status).map(({ stage }) => stage);
	await until("what was mined is reported", () => stages().includes("INCLUDED"));
	// The next core may have sent it before it had read the account.
	const told = stages().filter((stage) => stage !== "BROADCAST");
	assert.deepEqual(told, ["PENDING", "INCLUDED"], "each stage once, and none that was over");
});

test("a core that is drained is followed by the next one", async () => {
	core = edge;
	edge = await startRelay();
	const tx = signed();
	const follower = await FeedClient.open(core.url.replace("http", "ws"));
	await follower.subscribe("service_transactionStatus", tx.hash);
	core.process.signal("SIGTERM");
	await until("the edge sends", async () => {
		await edge.client.ask("eth_sendRawTransaction", [tx.raw]);
		return sentBy(edge).length > 0;
	});
	await until("a client of the drained one receives it", () => follower.told.length > 0);
	assert.equal(follower.told[0]?.hash, tx.hash);
	assert.equal((await core.process.ended()).code, 0);
	await until("it is mined", () => world.mined.has(tx.hash));
});

test("each change of the core has one line in each relay's log, with the term, and neither address nor secret", async () => {
	const ended = "connection to the core ended, looking for the next core";
	assert.deepEqual(
		standing.map((one) => roleLines(one, firstTerm)),
		[
			["became the core: 1"],
			// It gave the second term away, and served as an edge of the next core until its end.
			[
				...["connected to the core: 1", `${ended}: 1`, "became the core: 2"],
				...["no longer the core: 2", "connected to the core: 3"],
			],
			["connected to the core: 2", `${ended}: 2`, "became the core: 3"],
		],
	);
	const reader = new HolderReader(
		{ url: database, verify: false, name: "test", store: "relay" },
		{ clock: systemClock },
	);
	const holder = await reader.read();
	await reader.close();
	assert.equal(holder?.address, edge.url);
	assert.equal(holder?.term, firstTerm + 2);
	for (const { process } of standing)
		for (const secret of [holder?.secret ?? "", ...standing.map(({ url }) => new URL(url).host)])
			assert.equal(process.stdout.includes(secret) || process.stderr.includes(secret), false);
});

test("an edge is as ready as its core: neither is while the database is down", async () => {
	core = edge;
	edge = await startRelay();
	await postgres.kill();
	for (const one of [core, edge])
		await until("it is not ready", async () => (await storeTrouble(one)) !== undefined);
	// The core's reason changes while its server ends.
	await until("both say the same", async () => (await storeTrouble(edge)) === (await storeTrouble(core)));
	await postgres.start();
	// Either may have the store then, and a core that has lost it has ended.
	const statuses = () => Promise.all([core, edge].map(({ url }) => readyStatus(url)));
	await until("one is ready again", async () => (await statuses()).includes(200));
});

test("an edge that can't reach the core where that says it is tells so, once in its log", async (t) => {
	const other = await postgres.newDatabase();
	const nowhere = `http://127.0.0.1:${await freePort()}`;
	const here = await startRelayHere({ ...world.relayEnv, DATABASE_URL: other, INTERNAL_URL: nowhere });
	t.after(() => here.stop());
	const lone = { url: `http://127.0.0.1:${here.port}` };
	const lost = await startRelay({ DATABASE_URL: other }, false);
	const trouble = `the relay of term ${(await infoOf(lone)).term} does not answer at its INTERNAL_URL`;
	await until("it says why", async () => (await storeTrouble(lost)) === `no core reachable: ${trouble}`);
	assert.equal((await lost.process.logged("no core reachable")).reason, trouble);
	const asked = await lost.client.ask("eth_sendRawTransaction", [signed().raw]);
	assert.deepEqual([asked.error?.code, asked.error?.data], [-32603, { reason: "no core" }]);
	const stream = await EventStreamReader.open(`${lost.url}/tx/0x${"ab".repeat(32)}/events`);
	assert.equal(await stream.over(), "end");
	assert.deepEqual([stream.status, stream.text], [200, "retry: 1000\n\n: no core reachable, try again\n\n"]);
	const said = lost.process.logs().filter(({ msg }) => msg === "no core reachable");
	assert.equal(said.length, 1);
	const { role, core: unknown, node } = await operatorState(lost);
	assert.deepEqual([role, unknown, node.answerMs === null], ["edge", null, false]);
	assert.equal((await readiness(lone))?.ready, true);
});
