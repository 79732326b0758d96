// The frames of the feed on a real system: every type of transaction field by field, aliases, limits and ends of
// subscriptions, a reader that does not read; and no byte of a signature or a raw transaction in any of them.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { TransactionType } from "../../../shared/ethereum/rlp.ts";
import { FeedClient } from "../../support/feeds.ts";
import { LeakWatch, type Secret } from "../../support/leakWatch.ts";
import { metricsOf } from "../../support/relayClient.ts";
import { type Actor, RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { signedTransaction, type TxOptions } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const FEED = "service_partialPendingTransactions";
const GIVEN = [
	...["chainId", "to", "value", "data", "accessList", "nonce", "maxPriorityFeePerGas", "maxFeePerGas"],
	...["gas", "type", "hash", "from"],
];
/** Beside those of the interface. */
const MORE: Readonly<Record<TransactionType, readonly string[]>> = {
	0: ["gasPrice"],
	1: ["gasPrice"],
	2: [],
	3: ["maxFeePerBlobGas", "blobVersionedHashes"],
	4: [],
};
const ACCESS_LIST = [{ address: `0x${"aa".repeat(20)}`, storageKeys: [`0x${"11".repeat(32)}`] }];

let system: TestSystem;
let fixture: RelayFixture;
let url: string;
const clients: FeedClient[] = [];
const secrets: Secret[] = [];

before(async () => {
	system = await startSystem({
		env: { SUBSCRIPTION_ALIASES: "mevblocker_partialPendingTransactions,our-feed" },
	});
	fixture = new RelayFixture(system);
	url = system.client.url.replace("http", "ws");
});
after(async () => {
	for (const client of clients) client.close();
	await system.stop();
});

async function open(path = "/ws"): Promise<FeedClient> {
	const client = await FeedClient.open(`${url}${path}`);
	clients.push(client);
	return client;
}

/** Signs for `actor`; the signatures are secrets from then on. */
function sign(actor: Actor, options: Omit<TxOptions, "by">): Signed {
	const { r, s, authorizationList } = signedTransaction({ ...options, by: actor.account });
	for (const value of [r, s, ...authorizationList.flatMap((one) => [one.r, one.s])]) {
		const word = value.toString(16).padStart(64, "0");
		secrets.push({ name: `a signature of ${actor.address}`, value: `0x${word}` });
	}
	return actor.sign(options);
}

/** Shares a transaction of an account of its own. */
async function share(options: Omit<TxOptions, "by"> = {}): Promise<Signed> {
	const tx = sign(await fixture.actor(), options);
	await fixture.submit("/maxbackruns", tx);
	return tx;
}

describe("a frame", () => {
	for (const type of [0, 1, 2, 3, 4] as const) {
		it(`of type ${type} has the given fields and those of its type, and nothing else`, async () => {
			const client = await open();
			const feed = await client.subscribe(FEED);
			const tx = await share({
				type,
				data: "0xC0FFEE",
				value: 3n,
				gasLimit: 200_000n,
				...(type === 0 ? {} : { accessList: ACCESS_LIST }),
			});
			const shown = await client.shown(feed, tx.hash);
			assert.deepEqual(Object.keys(shown).sort(), [...GIVEN, ...MORE[type]].sort());
			const { to, value, data, accessList, nonce, gas, from, chainId } = shown;
			assert.deepEqual(
				{ type: shown.type, value, data, accessList, nonce, gas, from, chainId },
				{
					...{ type: `0x${type}`, value: "0x3", data: "0xc0ffee", accessList: type === 0 ? [] : ACCESS_LIST },
					...{ nonce: "0x0", gas: "0x30d40", from: tx.from, chainId: "0x7a69" },
				},
			);
			assert.match(String(to), /^0x[0-9a-f]{40}$/);
			const text = client.texts.find((one) => one.includes(tx.hash));
			assert.ok(
				text?.startsWith(
					`{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${feed}","result":{`,
				),
			);
		});
	}

	it("of a creation has `to` null, and of empty data 0x", async () => {
		const client = await open();
		const feed = await client.subscribe(FEED);
		const { to, data } = await client.shown(feed, (await share({ to: null })).hash);
		assert.deepEqual([to, data], [null, "0x"]);
	});

	it("comes under the alias, on every path that takes a websocket, to each subscription once", async () => {
		const heard: [FeedClient, string][] = [];
		for (const path of ["/", "/ws", "/fast", "/fullprivacy"]) {
			for (const name of [FEED, "mevblocker_partialPendingTransactions", "our-feed"]) {
				const client = await open(path);
				heard.push([client, await client.subscribe(name)]);
			}
		}
		const tx = await share();
		for (const [client, id] of heard) await client.shown(id, tx.hash);
		const last = await share();
		for (const [client, id] of heard) {
			await client.shown(id, last.hash);
			assert.equal(client.times(id, tx.hash), 1);
		}
	});
});

describe("a subscription", () => {
	it("is answered before it is told anything, while transactions stream in", async () => {
		const listeners = await Promise.all(Array.from({ length: 16 }, () => open()));
		const sender = await fixture.actor();
		const stream = Array.from({ length: 40 }, (_, nonce) => sign(sender, { nonce }));
		let sent = 0;
		const streaming = (async () => {
			for (const tx of stream) {
				await fixture.submit("/maxbackruns", tx);
				sent++;
			}
		})();
		const heard: [FeedClient, string][] = [];
		for (const client of listeners) heard.push([client, await client.subscribe(FEED)]);
		await streaming;
		assert.equal(sent, stream.length);
		const last = await share();
		for (const [client, id] of heard) {
			await client.shown(id, last.hash);
			const { answer, first } = client.order(id);
			assert.ok(answer >= 0 && answer < first, `${answer} ${first}`);
			const told = client.told(id).map(({ hash }) => hash);
			const from = stream.findIndex(({ hash }) => hash === told[0]);
			// From its first one on it misses none, and they are in order.
			if (from >= 0) assert.deepEqual(told, [...stream.slice(from).map(({ hash }) => hash), last.hash]);
		}
	});

	it("is the sixteenth at most; one that ends makes room, and is told nothing more", async () => {
		const client = await open();
		const kept = await client.subscribe(FEED);
		for (const again of [FEED, "our-feed"]) {
			assert.deepEqual((await client.ask("eth_subscribe", [again])).error, {
				code: -32005,
				message: "limit exceeded: one subscription to pending transactions a connection",
			});
		}
		const ids: string[] = [];
		for (let i = 0; i < 15; i++) ids.push(await client.subscribe("newHeads"));
		const { error } = await client.ask("eth_subscribe", ["newHeads"]);
		assert.deepEqual(error, { code: -32005, message: "limit exceeded: 16 subscriptions a connection" });
		const [gone = ""] = ids;
		assert.equal(await client.call("eth_unsubscribe", [gone]), true);
		assert.equal(await client.call("eth_unsubscribe", [gone]), false);
		const stranger = await open();
		assert.equal(await stranger.call("eth_unsubscribe", [kept]), false);
		const tx = await share();
		await client.shown(kept, tx.hash);
		assert.equal(await client.call("eth_unsubscribe", [kept]), true);
		const again = await client.subscribe(FEED);
		const next = await share();
		await client.shown(again, next.hash);
		assert.equal(client.times(kept, next.hash), 0);
		await client.subscribe("newHeads");
	});

	it("is counted in the metrics, and forgotten with its connection", async () => {
		const count = async () =>
			Number(/^relay_subscriptions (\d+)$/m.exec(await metricsOf(system.client.url))?.[1]);
		for (const client of clients) client.close();
		await until("none is left", async () => (await count()) === 0);
		const client = await open();
		await client.subscribe(FEED);
		await client.subscribe("newHeads");
		assert.equal(await count(), 2);
		client.close();
		await until("both are forgotten", async () => (await count()) === 0);
	});

	it("does not exist over HTTP", async () => {
		for (const [method, params] of [
			["eth_subscribe", [FEED]],
			["eth_unsubscribe", ["0x1"]],
		] as const) {
			const { error } = await system.client.ask(method, params);
			assert.deepEqual(error, {
				code: -32601,
				message: `the method ${method} does not exist/is not available: over a websocket only`,
			});
		}
	});
});

it("a reader that does not read is closed with 1013 and told so; others hear all of it meanwhile", async () => {
	const unread = async () =>
		Number(/^relay_unread_bytes (\d+)$/m.exec(await metricsOf(system.client.url))?.[1]);
	const slow = await open();
	await slow.subscribe(FEED);
	const quick = await open();
	const feed = await quick.subscribe(FEED);
	slow.ws.socket.pause();
	// The system's own buffers take some megabytes before anything is left unread here.
	for (let id = 0; id < 5_000; id++) slow.ws.send({ jsonrpc: "2.0", id, method: "rpc.discover", params: [] });
	await until("more waits than may", async () => (await unread()) > 8 * 1024 * 1024);
	// It must read on within five seconds to learn why it was closed.
	await quick.shown(feed, (await share()).hash);
	slow.ws.socket.resume();
	assert.deepEqual(await slow.ws.closed(), { code: 1013, reason: "too slow" });
	const after = await share();
	await quick.shown(feed, after.hash);
});

it("no byte of a signature or a raw transaction is in any frame", () => {
	const watch = new LeakWatch();
	for (const client of clients) for (const text of client.texts) watch.saw("the feed", text);
	assert.ok(secrets.length >= 100 && watch.places.length === 1);
	assert.deepEqual(watch.found(secrets), []);
	for (const { texts } of clients) {
		for (const text of texts)
			assert.ok(!/"(v|r|s|yParity|authorizationList|raw|sidecar|blobs)":/.test(text), text);
	}
});
