// Websockets of boost with a real relay behind it. They are as the relay's own while it is healthy.
// Through an outage they stay open, and heads, logs, reads and submissions go on. Calls that only
// the relay can serve say so until it is back. Also tests how a stop closes them.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { WsClient } from "../../support/clients.ts";
import { FeedClient } from "../../support/feeds.ts";
import { metricsOf } from "../../support/relayClient.ts";
import type { Actor } from "../../support/relayFixture.ts";
import { StoppableClock } from "../../support/stoppableClock.ts";
import { startTcpProxy, type TcpProxy } from "../../support/tcpProxy.ts";
import { until } from "../../support/until.ts";

/**
 * Emits one event with the first word of its input as its topic. PUSH0 CALLDATALOAD PUSH0 PUSH0
 * LOG1 STOP
 */
const EMITS_TOPIC = "0x5f355f5fa100";
const OUT = { code: -32603, message: "no relay available: the relay is down" };
const SEARCHERS = "service_partialPendingTransactions";

let fixture: BoostFixture;
let boost: BoostClient;
/** Between boost and the relay. */
let line: TcpProxy;
let actor: Actor;
let contract: string;
let nonce = 0;
before(async () => {
	fixture = await startBoostFixture({ boost: { TRUST_PROXY: "1" } });
	line = await startTcpProxy(Number(new URL(fixture.system.client.url).port));
	boost = await fixture.startBoost({ env: { RELAY_URL: `http://127.0.0.1:${line.port}` } });
	actor = await fixture.users.actor();
	contract = await fixture.users.placeCode(EMITS_TOPIC);
	await fixture.users.passBlock();
});
after(async () => {
	await line?.stop();
	await fixture?.stop();
});

const open = (path = "/fast", headers: Record<string, string> = {}): Promise<FeedClient> =>
	FeedClient.open(`ws://127.0.0.1:${boost.port}${path}`, { headers });
const topic = (digit: string): string => `0x${digit.repeat(64)}`;

/** A block with an event of each topic; answers its number. */
async function emit(...topics: readonly string[]): Promise<number> {
	for (const data of topics) {
		const { raw } = actor.sign({ nonce, to: contract, data, gasLimit: 100_000n });
		nonce += 1;
		await fixture.system.chain.rpc("eth_sendRawTransaction", [raw]);
	}
	return fixture.users.passBlock();
}

const numbers = (feed: FeedClient, id: string) => feed.received(id).map(({ number }) => Number(number));
const topics = (feed: FeedClient, id: string) =>
	feed.received(id).map((log) => [(log.topics as readonly unknown[])[0], log.removed]);

async function fails(): Promise<void> {
	line.cut();
	await boost.reaches("the relay is down", ({ relay }) => relay.state !== "closed");
}

async function recovers(): Promise<void> {
	line.mend();
	await boost.isWell();
}

describe("while the relay is healthy", () => {
	it("each path has its own rules, and boost journals submissions on its own paths only", async () => {
		const user = await fixture.users.actor();
		const [kept, passed] = [user.sign({ nonce: 0 }), user.sign({ nonce: 1 })];
		const feed = await open("/noreverts?referrer=mine");
		assert.equal(await feed.call("eth_sendRawTransaction", [kept.raw]), kept.hash);
		assert.equal((await boost.status()).journal.depth, 1);
		const hidden = await open("/fullprivacy?referrer=me");
		assert.equal(await hidden.call("eth_sendRawTransaction", [passed.raw]), passed.hash);
		assert.equal((await boost.status()).journal.depth, 1, "the relay alone answers for it");
		await fixture.users.waitUntilSent(kept);
		await fixture.users.waitUntilSent(passed);
		await fixture.system.nextBlock();
		for (const [tx, referrer] of [
			[kept, "mine"],
			[passed, "me"],
		] as const) {
			const status = await fixture.system.client.status(tx.hash);
			assert.deepEqual([status.status, status.referrer, status.shared], ["INCLUDED", referrer, false]);
		}
		for (const one of [feed, hidden]) one.close();
		await until("boost is rid of both", async () => /^boost_websockets 0$/m.test(await metricsOf(boost.url)));
	});

	it("the relay gets the client's real address, whatever the client claims", async () => {
		const headers = { "x-forwarded-for": "6.6.6.6, 203.0.113.7", "x-boost-auth": "a guess" };
		const feed = await open("/maxbackruns", headers);
		const id = await feed.subscribe(SEARCHERS);
		const tx = (await fixture.users.actor()).sign();
		assert.equal(await feed.call("eth_sendRawTransaction", [tx.raw]), tx.hash);
		await feed.shown(id, tx.hash);
		const cancel = async (address: string) =>
			(await boost.call("eth_cancelTransaction", [tx.hash], { headers: { "x-forwarded-for": address } }))
				.json;
		assert.match(JSON.stringify(await cancel("203.0.113.8")), /-32000/);
		assert.match(JSON.stringify(await cancel("203.0.113.7")), /"result":true/);
		feed.close();
	});

	it("what only the relay serves is the client's own there, and arrives in order", async () => {
		const feed = await open();
		const block = `0x${((await fixture.users.passBlock()) + 3).toString(16)}`;
		const user = await fixture.users.actor();
		const asked = Array.from({ length: 12 }, async (_, i) => {
			const { raw } = user.sign({ value: BigInt(i + 1) });
			const body = [{ tx: raw, canRevert: false }];
			const bundle = { version: "v0.1", inclusion: { block }, body, replacementUuid: `u${i}` };
			const sent = feed.call("mev_sendBundle", [bundle]);
			const cancelled = feed.call("eth_cancelBundle", [{ replacementUuid: `u${i}` }]);
			assert.equal(await cancelled, 200);
			return ((await sent) as { bundleHash: string }).bundleHash;
		});
		for (const hash of await Promise.all(asked)) {
			const { json } = await boost.get(`/bundle/${hash}`);
			const stages = (json as { blocks: { stage: string }[] }).blocks.map(({ stage }) => stage);
			assert.deepEqual([...new Set(stages)], ["CANCELLED"], JSON.stringify(json));
		}
		feed.close();
	});

	it("a subscription is answered before its first notification, and ends when its client unsubscribes", async () => {
		const feed = await open();
		const id = await feed.subscribe("newHeads");
		const number = await fixture.users.passBlock();
		await until("it is reported", () => numbers(feed, id).includes(number));
		const { answer, first } = feed.order(id);
		assert.ok(answer < first);
		assert.equal(await feed.call("eth_unsubscribe", [id]), true);
		assert.equal(await feed.call("eth_unsubscribe", [id]), false);
		const again = await feed.subscribe("newHeads");
		const next = await fixture.users.passBlock();
		await until("the other one is notified", () => numbers(feed, again).includes(next));
		assert.deepEqual(numbers(feed, id), [number]);
		assert.equal((await feed.ask("eth_subscribe", ["nothing"])).error?.code, -32602);
		feed.close();
	});
});

describe("through an outage", () => {
	it("heads and logs go on, in order and none twice", async (t) => {
		t.after(recovers);
		const feed = await open();
		const heads = await feed.subscribe("newHeads");
		const logs = await feed.subscribe("logs", { address: contract, topics: [[topic("a"), topic("b")]] });
		const blocks = [await emit(topic("a"), topic("c"))];
		await until("all arrive", () => numbers(feed, heads).length === 1 && feed.received(logs).length === 1);
		await fails();
		blocks.push(await emit(topic("b")), await emit(topic("a")));
		await until("heads go on", () => numbers(feed, heads).length === 3);
		await until("logs go on", () => feed.received(logs).length === 3);
		const late = await feed.subscribe("newHeads");
		await recovers();
		blocks.push(await emit(topic("b")));
		await until("and later", () => numbers(feed, heads).length === 4 && feed.received(logs).length === 4);
		blocks.push(await emit());
		await until("all know the last one", () =>
			[heads, late].every((id) => numbers(feed, id).includes(blocks.at(-1) ?? 0)),
		);
		assert.deepEqual(numbers(feed, heads), blocks);
		assert.deepEqual(numbers(feed, late), blocks.slice(3));
		assert.deepEqual(
			topics(feed, logs),
			["a", "b", "a", "b"].map((digit) => [topic(digit), false]),
		);
		const [first, second] = feed.received(heads);
		assert.deepEqual(Object.keys(second ?? {}).sort(), Object.keys(first ?? {}).sort());
		assert.equal(await feed.call("eth_unsubscribe", [logs]), true);
		feed.close();
	});

	it("ends the websocket that has missed news, with 1012, and tells the status of a transaction under the same id", async (t) => {
		t.after(recovers);
		const tx = (await fixture.users.actor()).sign();
		const [searcher, wallet, sender] = [await open(), await open(), await open("/maxbackruns")];
		const closed = new Promise((resolve) =>
			searcher.ws.socket.on("close", (code: number, reason: Buffer) => resolve([code, reason.toString()])),
		);
		await searcher.subscribe("newHeads");
		await searcher.subscribe(SEARCHERS);
		const id = await wallet.subscribe("service_transactionStatus", tx.hash);
		await fails();
		// It is shown to searchers while boost's websockets have no relay.
		await fixture.users.submit("/maxbackruns", tx);
		assert.equal(await searcher.call("eth_chainId", []), "0x7a69");
		await recovers();
		assert.deepEqual(await closed, [1012, "the server restarts: connect again"]);
		await until("the status is sent", () => wallet.received(id).some(({ stage }) => stage === "BROADCAST"));
		const again = await open();
		const shared = await again.subscribe(SEARCHERS);
		const next = (await fixture.users.actor()).sign();
		await sender.call("eth_sendRawTransaction", [next.raw]);
		await until("the feed goes on", () => again.received(shared).length > 0);
		const status = await again.subscribe("service_transactionStatus", tx.hash);
		await until("the status comes at once", () => again.received(status).length > 0);
		for (const one of [wallet, sender, again]) one.close();
	});

	it("a reorganisation sends removed logs", async (t) => {
		t.after(recovers);
		const feed = await open();
		const heads = await feed.subscribe("newHeads");
		const logs = await feed.subscribe("logs", { address: contract });
		await fails();
		const number = await emit(topic("d"));
		await until("it arrives", () => feed.received(logs).length === 1 && numbers(feed, heads).length === 1);
		await fixture.system.chain.rpc("anvil_reorg", [1, []]);
		nonce -= 1;
		await until("it is taken back", () => feed.received(logs).length === 2);
		await fixture.users.passBlock();
		await until("the new chain is reported", () => numbers(feed, heads).length === 3);
		assert.deepEqual(topics(feed, logs), [
			[topic("d"), false],
			[topic("d"), true],
		]);
		assert.deepEqual(numbers(feed, heads), [number, number, number + 1]);
		feed.close();
	});

	it("reads and submissions go on; calls that only the relay can serve get an error on the open socket", async (t) => {
		t.after(recovers);
		const [feed, hidden] = [await open(), await open("/fullprivacy")];
		await fails();
		for (const one of [feed, hidden, await open("/ws")]) {
			assert.equal(await one.call("eth_chainId", []), "0x7a69");
		}
		const tx = (await fixture.users.actor()).sign();
		assert.deepEqual((await hidden.ask("eth_sendRawTransaction", [tx.raw])).error, OUT);
		assert.deepEqual((await feed.ask("eth_subscribe", [SEARCHERS])).error, OUT);
		for (const params of [
			["logs", { address: 1 }],
			["newHeads", {}],
		])
			assert.equal((await feed.ask("eth_subscribe", params)).error?.code, -32602);
		assert.equal((await feed.ask("eth_sendBundle", [{ txs: [] }])).error?.code, -32603);
		for (const one of [feed, hidden])
			assert.equal((await one.ask("eth_sendPrivateTransaction", [{ tx: "0x" }])).error?.code, -32601);
		assert.equal(await feed.call("eth_sendRawTransaction", [tx.raw]), tx.hash);
		const { journal } = await boost.status();
		assert.ok(journal.depth >= 1);
		assert.equal((await fetch(`${fixture.fallbackUrl}/tx/${tx.hash}/events`)).status, 200);
		for (const one of [feed, hidden]) one.close();
	});
});

describe("while boost drains", () => {
	it("its websockets are closed one after another, are served until then, and new ones are refused", async () => {
		const clock = new StoppableClock();
		const env = { RELAY_URL: `http://127.0.0.1:${line.port}`, DRAIN_SECONDS: "20" };
		const draining = await fixture.startBoost({ env, clock });
		const url = `ws://127.0.0.1:${draining.port}/fast`;
		const feeds = await Promise.all(Array.from({ length: 8 }, () => FeedClient.open(url)));
		const closed = new Set<FeedClient>();
		const ends = feeds.map(
			(feed) => new Promise((resolve) => feed.ws.socket.on("close", () => resolve(closed.add(feed)))),
		);
		const ids = await Promise.all(feeds.map((feed) => feed.call("eth_subscribe", ["newHeads"])));
		// One is closed after 1.5 s, and one each fifth of a second from then on.
		clock.stopAfter(1_800);
		const stopping = draining.stop();
		await until("some are closed", () => closed.size > 0);
		assert.ok(closed.size <= 2, `${closed.size}`);
		const readiness = await fetch(`${draining.url}/readyz`);
		assert.equal(readiness.status, 503);
		assert.match(await readiness.text(), /"draining":true/);
		assert.equal((await WsClient.refused(url)).status, 503);
		const number = await fixture.users.passBlock();
		for (const [i, feed] of feeds.entries()) {
			if (closed.has(feed)) continue;
			// Its close may be under way.
			const answer = feed.call("eth_chainId", []).catch(() => null);
			await Promise.race([answer, ends[i]]);
			if (closed.has(feed)) continue;
			assert.equal(await answer, "0x7a69");
			await until("it has the head", () => numbers(feed, String(ids[i])).includes(number));
		}
		clock.goOn();
		await stopping;
		for (const { ws } of feeds)
			assert.deepEqual(await ws.closed(), { code: 1012, reason: "the server restarts: connect again" });
	});
});
