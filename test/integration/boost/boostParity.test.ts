// Boost is as good as its relay while that is healthy: hundreds of requests go to both, and the
// answers are the same but for boost's own headers. Then the same for websockets, streams, the life
// of a transaction, and the paths that boost does not decide about.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BOOST_HEADERS } from "../../../boost-proxy/ingress/routingHeaders.ts";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { EXCEPTIONS, PARITY_TABLES, type ParityRow, requestOf } from "../../support/boostParityRows.ts";
import { EventStreamReader, WsClient, type WsMessage } from "../../support/clients.ts";
import { mevShareClient } from "../../support/mevShare.ts";
import { metricsOf } from "../../support/relayClient.ts";
import type { Actor, Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";
import { prepareAccounts } from "../transport/badInput/fixture.ts";
import { BROKEN_HTTP_ROWS, GOOD } from "../transport/badInput/http.ts";
import { ACCOUNT_RULES, ruleRows } from "../transport/badInput/rules.ts";
import { BROKEN_UPGRADES, MESSAGE_ROWS, UPGRADE_ROWS } from "../transport/badInput/websocket.ts";
import { sendBytes, Wire, type WireResponse } from "../transport/badInput/wire.ts";

/** Headers that are not the same: the time, and what is between two ends of one connection. */
const OTHER = /^(date|connection|keep-alive|x-boost-.*|x-request-id|access-control-expose-headers)$/;
const OWN = ["x-boost-attempts", "x-boost-breaker", "x-boost-upstream"];
/** Refused by a rule of admission, each by an account of its own. */
const RULES = ruleRows(
	ACCOUNT_RULES.filter(({ refusal, tx }) => refusal !== null && tx.type !== 3),
	20_000,
);

let fixture: BoostFixture;
let relay: Wire;
before(async () => {
	// Longer bodies hold up all that is in this process, the probe too.
	const slow = { PROBE_INTERVAL_MS: "500", PROBE_TIMEOUT_MS: "5000" };
	fixture = await startBoostFixture({ unwired: true, boost: slow });
	relay = new Wire(fixture.system.relay.port);
	await prepareAccounts(fixture.system.chain, RULES);
});
after(async () => {
	relay?.close();
	await fixture?.stop();
});

interface Seen {
	readonly status: number;
	readonly body: string;
	readonly headers: Readonly<Record<string, string>>;
}

function seen({ status, headers, body }: WireResponse): Seen {
	const same = Object.entries(headers).filter(([name]) => !OTHER.test(name));
	return { status, body, headers: Object.fromEntries(same) };
}

/** The report of a row that was answered otherwise: both answers from where they differ. */
function difference(name: string, byRelay: WireResponse, byBoost: WireResponse): readonly string[] {
	const [wanted, got] = [JSON.stringify(seen(byRelay)), JSON.stringify(seen(byBoost))];
	if (wanted !== got) {
		const at = [...wanted].findIndex((sign, i) => sign !== got[i]);
		const part = (text: string) => text.slice(Math.max(0, at - 20), at + 100);
		return [`${name}: relay ${part(wanted)} boost ${part(got)}`];
	}
	return [];
}

/** Whether an answer has our headers, and web pages may read them; a preflight has none. */
function isMarked(verb: string, { headers }: WireResponse): boolean {
	const own = Object.keys(headers).filter((header) => header.startsWith("x-boost-"));
	if (verb === "OPTIONS") return own.length === 0;
	const isExposed = headers["access-control-expose-headers"] === BOOST_HEADERS.join(", ");
	return isExposed && own.sort().join() === OWN.join();
}

async function differences(rows: readonly ParityRow[]): Promise<readonly string[]> {
	const found: string[] = [];
	for (const { name, send } of rows) {
		const byRelay = await relay.send(send);
		const byBoost = await fixture.boost.raw(send);
		found.push(...difference(name, byRelay, byBoost));
		if (!isMarked(send.verb ?? "POST", byBoost)) found.push(`${name}: not marked as it should be`);
	}
	return found;
}

for (const [about, rows] of Object.entries(PARITY_TABLES)) {
	test(`${about}: ${rows.length} requests are answered as by the relay`, async () => {
		const found = await differences(rows.filter(({ name }) => EXCEPTIONS[name] === undefined));
		assert.deepEqual(found, []);
	});
}

test("there are hundreds of them, and each exception is one of them", () => {
	const all = Object.values(PARITY_TABLES).flat();
	assert.ok(all.length > 500, `${all.length}`);
	for (const name of Object.keys(EXCEPTIONS)) {
		assert.ok(
			all.some((row) => row.name === name),
			name,
		);
	}
});

test("a difference by design: a preflight on an unknown path is allowed", async () => {
	const { status, headers } = await fixture.boost.send({ verb: "OPTIONS", path: "/nope" });
	assert.deepEqual([status, headers.allow], [204, "GET, HEAD, POST, OPTIONS"]);
});

test("transactions that break an admission rule get the same errors", async () => {
	assert.ok(RULES.length >= 20, `${RULES.length}`);
	assert.deepEqual(await differences(RULES.map(({ row }) => requestOf(row))), []);
	assert.deepEqual((await fixture.boost.status()).journal.depth, 0, "nothing of it is kept");
});

test("invalid HTTP is answered as by the relay", async () => {
	const found: string[] = [];
	for (const { name, bytes, half } of [...BROKEN_HTTP_ROWS, ...UPGRADE_ROWS].map(asBytes)) {
		const byRelay = (await sendBytes(fixture.system.relay.port, bytes, half)) ?? NOTHING;
		const byBoost = (await sendBytes(fixture.boost.port, bytes, half)) ?? NOTHING;
		found.push(...difference(name, byRelay, byBoost));
		const hasOurs = byBoost.headers["x-boost-breaker"] === "closed" || String(bytes).startsWith("OPTIONS");
		if (!hasOurs && byBoost !== NOTHING && !NODES.includes(name)) found.push(`${name} without our headers`);
	}
	assert.deepEqual(found, []);
	// Their words are those of the websocket library, where boost does not answer itself.
	for (const { name, bytes, status } of BROKEN_UPGRADES) {
		for (const port of [fixture.system.relay.port, fixture.boost.port]) {
			assert.equal((await sendBytes(port, bytes))?.status, status, name);
		}
	}
});

/** Node answers these itself, before anybody is asked. */
const NODES = ["no Host", "an unknown expectation"];
/** Closed without a word. */
const NOTHING: WireResponse = { status: 0, headers: {}, body: "" };

function asBytes(row: { name: string; bytes: string | Uint8Array; half?: boolean }) {
	return { name: row.name, bytes: row.bytes, half: row.half === true };
}

test("websockets are the relay's on every path", async () => {
	for (const path of ["/", "/ws", "/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"]) {
		const client = await WsClient.open(`${fixture.boost.url.replace("http", "ws")}${path}`);
		client.send(GOOD);
		assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 1, result: "0x7a69" }, path);
		client.socket.close(1000);
		assert.equal((await client.closed()).code, 1000, path);
	}
});

test("messages over a websocket are answered as by the relay", async () => {
	const client = await WsClient.open(`${fixture.boost.url.replace("http", "ws")}/fast`);
	for (const { name, message, answer } of MESSAGE_ROWS) {
		client.send(message);
		if (answer !== undefined) assert.deepEqual(await client.next(), answer, name);
	}
	client.terminate();
});

test("a submission over a websocket is treated by its path, and searchers get what is shared", async () => {
	const base = fixture.boost.url.replace("http", "ws");
	const searcher = await WsClient.open(`${base}/ws`);
	searcher.send({ id: 1, method: "eth_subscribe", params: ["service_partialPendingTransactions"] });
	const { result: subscription } = await searcher.next();
	const hashes = new Map<string, string>();
	for (const path of ["/fullprivacy", "/maxbackruns"]) {
		const client = await WsClient.open(base + path);
		const { raw, hash } = (await fixture.users.actor()).sign();
		client.send({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] });
		assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 1, result: hash });
		hashes.set(path, hash);
		client.terminate();
	}
	const told = (await searcher.next()) as WsMessage & {
		params: { subscription: string; result: { hash: string } };
	};
	assert.equal(told.params.subscription, subscription);
	assert.equal(told.params.result.hash, hashes.get("/maxbackruns"));
	assert.equal(searcher.unread, 0);
	searcher.terminate();
});

/** All that one can ask about a transaction. */
function questions({ hash }: { readonly hash: string }, { address }: Actor): readonly ParityRow[] {
	const about = (method: string, ...params: unknown[]) => requestOf({ name: "about it", method, params });
	const page = (path: string): ParityRow => ({ name: path, send: { verb: "GET", path } });
	return [
		about("eth_getTransactionByHash", hash),
		about("eth_getTransactionByHash", hash.toUpperCase().replace("0X", "0x")),
		about("eth_getTransactionReceipt", hash),
		about("eth_getTransactionCount", address, "pending"),
		about("eth_getTransactionCount", address, "latest"),
		about("eth_getRawTransactionByHash", hash),
		about("service_transactionStatuses", [hash]),
		page(`/tx/${hash}`),
		page(`/tx/${hash}/events`),
	];
}

test("a transaction's whole life is reported as by the relay, whether it came through boost or not", async () => {
	const pastBoost = (raw: string, path: string) => fixture.system.client.send(raw, path);
	const through = (raw: string, path: string) =>
		fixture.boost.result("eth_sendRawTransaction", [raw], { path });
	const all: { path: string; actor: Actor; tx: Signed; again: ParityRow }[] = [];
	for (const [path, send] of [
		["/fast", pastBoost],
		["/fast?referrer=me", through],
		["/noreverts?softCancellations=true", through],
		["/fullprivacy", through],
	] as const) {
		const actor = await fixture.users.actor();
		const tx = actor.sign();
		assert.equal(await send(tx.raw, path), tx.hash);
		const again = requestOf({ name: "again", method: "eth_sendRawTransaction", params: [tx.raw], path });
		all.push({ path, actor, tx, again });
	}
	for (const { path, actor, tx, again } of all) {
		await fixture.users.waitUntilSent(tx);
		await until("its delivery is reported", async () =>
			(await fixture.users.events(tx)).some(
				({ type, answer }) => type === "delivered" && answer === "accepted",
			),
		);
		assert.deepEqual(await differences(questions(tx, actor)), [], `pending on ${path}`);
		assert.deepEqual(await differences([again]), []);
	}
	await fixture.system.nextBlock();
	for (const { path, actor, tx, again } of all) {
		await fixture.users.reaches(tx, "INCLUDED");
		assert.deepEqual(await differences(questions(tx, actor)), [], `mined on ${path}`);
		assert.deepEqual(await differences([again]), []);
	}
});

test("a cancel through boost is answered by the relay, as are the reads after it", async () => {
	const actor = await fixture.users.actor();
	const tx = actor.sign();
	const cancel = requestOf({ name: "it", method: "eth_cancelTransaction", params: [tx.hash] });
	await fixture.boost.result("eth_sendRawTransaction", [tx.raw]);
	assert.equal(await fixture.boost.result("eth_cancelTransaction", [tx.hash]), true);
	assert.deepEqual(await differences([cancel, ...questions(tx, actor)]), []);
});

test("a submission on a path that boost does not know goes to the relay, and boost does not journal it", async () => {
	await fixture.boost.reaches("nothing is open", ({ journal }) => journal.depth === 0);
	const tx = (await fixture.users.actor()).sign();
	const reply = await fixture.boost.call("eth_sendRawTransaction", [tx.raw], { path: "/fullprivacy" });
	assert.deepEqual([reply.status, reply.json], [200, { jsonrpc: "2.0", id: 1, result: tx.hash }]);
	assert.equal(reply.headers["x-boost-upstream"], "relay");
	assert.equal((await fixture.boost.status()).journal.depth, 0);
});

test("events of a transaction arrive as they happen, and the relay's stream ends with the client's", async () => {
	const tx = (await fixture.users.actor()).sign();
	await fixture.boost.result("eth_sendRawTransaction", [tx.raw], { path: "/noreverts" });
	const reader = await EventStreamReader.open(`${fixture.boost.url}/tx/${tx.hash}/events`);
	assert.deepEqual(
		[reader.status, reader.headers["content-type"], reader.headers["x-boost-upstream"]],
		[200, "text/event-stream; charset=utf-8", "relay"],
	);
	await reader.message("delivered", ({ type }) => type === "delivered");
	assert.equal(reader.ended, null);
	await fixture.users.waitUntilSent(tx);
	await fixture.system.nextBlock();
	await reader.message("included", ({ type }) => type === "included");
	reader.leave();
	await until("the relay has no stream left", async () => {
		return /^relay_event_streams 0$/m.test(await metricsOf(fixture.system.client.url));
	});
});

test("MEV-Share's client receives the feed and asks for its history through boost", async () => {
	const client = mevShareClient(fixture.boost.url);
	const received: string[] = [];
	const stream = client.on("transaction", ({ hash }) => void received.push(hash));
	await until("the stream is open", () => stream.readyState === 1);
	const tx = (await fixture.users.actor()).sign();
	await fixture.system.client.send(tx.raw, "/maxbackruns");
	await until("it is received", () => received.includes(tx.hash));
	await fixture.users.waitUntilSent(tx);
	const block = await fixture.system.nextBlock();
	const known = async () =>
		(await client.getEventHistory({ blockStart: block })).map(({ hint }) => hint.hash);
	await until("it is in the history", async () => (await known()).includes(tx.hash));
	assert.equal((await client.getEventHistoryInfo()).maxBlock, block);
	stream.close();
});

test("a stop of boost ends streams and websockets, and does not wait for them", async () => {
	const tx = (await fixture.users.actor()).sign();
	await fixture.boost.result("eth_sendRawTransaction", [tx.raw], { path: "/noreverts" });
	const reader = await EventStreamReader.open(`${fixture.boost.url}/tx/${tx.hash}/events`);
	const client = await WsClient.open(`${fixture.boost.url.replace("http", "ws")}/`);
	const begun = performance.now();
	await fixture.stop();
	assert.ok(performance.now() - begun < 6_000, "it waited");
	assert.equal(await reader.over(), "end");
	await client.closed();
});
