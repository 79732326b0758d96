// Tests the searchers' feed: which transactions it shows, and their fields; aliases, limits and
// ends of subscriptions; that only the owner gets a bundle's status; and that the feed never holds
// a signature or raw transaction.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { TransactionType } from "../../../shared/ethereum/transactionFields.ts";
import { type AuctionFixture, bundleOf, startAuction } from "../../support/bidder.ts";
import { EMITTER } from "../../support/biddingFixture.ts";
import { EMITS, REVERTS } from "../../support/contracts.ts";
import { FeedClient } from "../../support/feeds.ts";
import { LeakWatch, type Secret } from "../../support/leakWatch.ts";
import { sized } from "../../support/length.ts";
import { metricsOf } from "../../support/relayClient.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
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
/** A unit test has the fields of every type. A block with blobs costs the chain many seconds. */
const TYPES = sized<readonly TransactionType[]>([0, 2, 4], [0, 1, 2, 3, 4]);
const ACCESS_LIST = [{ address: `0x${"aa".repeat(20)}`, storageKeys: [`0x${"11".repeat(32)}`] }];

let fixture: AuctionFixture;
let searcher: FeedClient;
let feed: string;
const clients: FeedClient[] = [];
const secrets: Secret[] = [];

before(async () => {
	fixture = await startAuction({
		builders: [{ name: "vault", fullPrivacy: true }, { name: "plain" }],
		env: { SUBSCRIPTION_ALIASES: "mevblocker_partialPendingTransactions,our-feed" },
	});
	searcher = await open();
	feed = await searcher.subscribe(FEED);
});
after(async () => {
	for (const client of clients) client.close();
	await fixture.system.stop();
});

async function open(path = "/ws"): Promise<FeedClient> {
	const client = await FeedClient.open(`${fixture.system.client.url.replace("http", "ws")}${path}`);
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

/** Submits a transaction of an account of its own. */
async function send(path: string, options: Omit<TxOptions, "by"> = {}): Promise<Signed> {
	const tx = sign(await fixture.actor(), options);
	await fixture.submit(path, tx);
	return tx;
}

function share(options: Omit<TxOptions, "by"> = {}): Promise<Signed> {
	return send("/maxbackruns", options);
}

const times = (tx: Signed): number => searcher.times(feed, tx.hash);
/** Resolves once everything shared before has arrived. */
async function fence(): Promise<void> {
	await searcher.shown(feed, (await share()).hash);
}

/** Blocks pass without them; they are never shown, and their statuses say so. */
async function stayHidden(transactions: readonly Signed[], blocks: number): Promise<void> {
	for (let block = 0; block < blocks; block++) {
		await fence();
		for (const tx of transactions) assert.equal(times(tx), 0, `block ${block}`);
		await fixture.passBlock();
	}
	for (const tx of transactions) {
		assert.equal((await fixture.status(tx)).shared, false);
		assert.ok(!(await fixture.life(tx)).includes("shared"));
	}
}

/** Each is shown once, and its status says so; blocks that pass change nothing. */
async function areSharedOnce(transactions: readonly Signed[]): Promise<void> {
	for (const tx of transactions) {
		await searcher.shown(feed, tx.hash);
		await fixture.event(tx, "shared");
		assert.equal((await fixture.status(tx)).shared, true);
	}
	await fixture.passBlock();
	await fixture.passBlock();
	await fence();
	for (const tx of transactions) {
		assert.equal(times(tx), 1);
		assert.equal((await fixture.life(tx)).filter((event) => event === "shared").length, 1);
	}
}

describe("the table of endpoints, column `shared`", () => {
	it("what emits an event is shared on /fast and /noreverts; on /maxbackruns everything, also what fails or waits", async () => {
		const failing = await share({ to: await fixture.placeCode(REVERTS) });
		const passing = [
			await send("/fast", { to: EMITTER }),
			await send("/noreverts", { to: EMITTER }),
			await share({ to: EMITTER }),
			await share({ value: 5n }),
		];
		for (const tx of passing) await fixture.waitUntilSent(tx);
		await areSharedOnce([...passing, failing, await share({ nonce: 3 })]);
		assert.ok(!(await fixture.life(failing)).some((event) => event.startsWith("broadcast")));
	});

	it("what fails on /fast and /noreverts is shared when it passes, and not before", async () => {
		const contract = await fixture.placeCode(REVERTS);
		const failing = [await send("/fast", { to: contract }), await send("/noreverts", { to: contract })];
		for (const tx of failing) await fixture.reaches(tx, "SIMULATION_FAILED");
		await fixture.passBlock();
		await fence();
		for (const tx of failing) assert.equal(times(tx), 0);
		await fixture.system.chain.rpc("anvil_setCode", [contract, EMITS]);
		await fixture.passBlock();
		await areSharedOnce(failing);
		for (const tx of failing) await fixture.waitUntilSent(tx);
	});

	it("never shared: plain transfers, all on /fullprivacy and /nochecks, and what depends on those, over many blocks", async () => {
		const contract = await fixture.placeCode(REVERTS);
		const plain = [await send("/fast", { value: 5n }), await send("/noreverts", { value: 5n })];
		for (const tx of plain) await fixture.waitUntilSent(tx);
		const secret: Signed[] = [];
		const others: Signed[] = [];
		for (const path of ["/fullprivacy", "/nochecks"]) {
			secret.push(await send(path, { to: EMITTER }));
			others.push(await send(path, { value: 1n }));
			others.push(await send(path, { to: contract }));
			others.push(await send(path, { to: EMITTER, nonce: 1 }));
		}
		const actor = await fixture.actor();
		const [link, behind] = [sign(actor, { to: EMITTER }), sign(actor, { to: EMITTER, nonce: 1 })];
		await fixture.submit("/fullprivacy", link);
		await fixture.submit("/fast", behind);
		secret.push(link);
		const hidden = [...plain, ...secret, ...others];
		const out = async () => {
			for (const tx of [...secret, behind]) await fixture.waitUntilSent(tx, { builders: ["vault"] });
		};
		await out();
		await stayHidden([...hidden, behind], sized(2, 4));
		await fixture.system.chain.rpc("anvil_setCode", [contract, EMITS]);
		await stayHidden(hidden, sized(1, 2));
		await out();
		await fixture.system.nextBlock();
		await fence();
		for (const tx of hidden) assert.equal(times(tx), 0);
		for (const tx of secret) assert.equal((await fixture.reaches(tx, "INCLUDED")).shared, false);
	});

	it("transactions of one sender are shared together, in the order of their nonces", async () => {
		const actor = await fixture.actor();
		const [first, second] = [sign(actor, { to: EMITTER }), sign(actor, { to: EMITTER, nonce: 1 })];
		await fixture.submit("/fast", second, first);
		await searcher.shown(feed, second.hash);
		const hashes = searcher.received(feed).map(({ hash }) => hash);
		assert.ok(hashes.indexOf(first.hash) >= 0 && hashes.indexOf(first.hash) < hashes.indexOf(second.hash));
		await areSharedOnce([first, second]);
	});
});

describe("a frame", () => {
	for (const type of TYPES) {
		it(`of type ${type} has the given fields and those of its type, and nothing else`, async () => {
			const tx = await share({
				type,
				data: "0xC0FFEE",
				value: 3n,
				gasLimit: 200_000n,
				...(type === 0 ? {} : { accessList: ACCESS_LIST }),
			});
			const shown = await searcher.shown(feed, tx.hash);
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
			const text = searcher.texts.find((one) => one.includes(tx.hash));
			assert.ok(
				text?.startsWith(
					`{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${feed}","result":{`,
				),
			);
		});
	}

	it("of a creation has `to` null, and of empty data 0x", async () => {
		const { to, data } = await searcher.shown(feed, (await share({ to: null })).hash);
		assert.deepEqual([to, data], [null, "0x"]);
	});

	it("comes once to each subscription, also under the alias, on every websocket path", async () => {
		const received: [FeedClient, string][] = [];
		for (const path of sized(["/", "/fast"], ["/", "/ws", "/fast", "/fullprivacy"])) {
			for (const name of [FEED, "mevblocker_partialPendingTransactions", "our-feed"]) {
				const client = await open(path);
				received.push([client, await client.subscribe(name)]);
			}
		}
		const tx = await share();
		for (const [client, id] of received) await client.shown(id, tx.hash);
		const last = await share();
		for (const [client, id] of received) {
			await client.shown(id, last.hash);
			assert.equal(client.times(id, tx.hash), 1);
		}
	});
});

describe("a subscription", () => {
	it("is answered before its first notification, while transactions stream in", async () => {
		const listeners = await Promise.all(Array.from({ length: sized(6, 16) }, () => open()));
		const sender = await fixture.actor();
		const stream = Array.from({ length: sized(20, 40) }, (_, nonce) => sign(sender, { nonce }));
		const streaming = fixture.submit("/maxbackruns", ...stream);
		const received: [FeedClient, string][] = [];
		for (const client of listeners) received.push([client, await client.subscribe(FEED)]);
		await streaming;
		const last = await share();
		for (const [client, id] of received) {
			await client.shown(id, last.hash);
			const { answer, first } = client.order(id);
			assert.ok(answer >= 0 && answer < first, `${answer} ${first}`);
			const told = client.received(id).map(({ hash }) => hash);
			const from = stream.findIndex(({ hash }) => hash === told[0]);
			// From its first one on it misses none, and they are in order.
			if (from >= 0) assert.deepEqual(told, [...stream.slice(from).map(({ hash }) => hash), last.hash]);
		}
	});

	it("is one of at most 16 on a connection; one that ends makes room and gets no more notifications", async () => {
		const client = await open();
		const kept = await client.subscribe(FEED);
		for (const again of [FEED, "our-feed"]) {
			assert.deepEqual((await client.ask("eth_subscribe", [again])).error, {
				code: -32005,
				message: "limit exceeded: one subscription to pending transactions per connection",
			});
		}
		const ids: string[] = [];
		for (let i = 0; i < 15; i++) ids.push(await client.subscribe("newHeads"));
		const { error } = await client.ask("eth_subscribe", ["newHeads"]);
		assert.deepEqual(error, { code: -32005, message: "limit exceeded: 16 subscriptions per connection" });
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
			Number(/^relay_subscriptions (\d+)$/m.exec(await metricsOf(fixture.system.client.url))?.[1]);
		for (const client of clients) if (client !== searcher) client.close();
		await until("the searcher's is left", async () => (await count()) === 1);
		const client = await open();
		await client.subscribe(FEED);
		await client.subscribe("newHeads");
		assert.equal(await count(), 3);
		client.close();
		await until("both are forgotten", async () => (await count()) === 1);
	});

	it("does not exist over HTTP", async () => {
		for (const [method, params] of [
			["eth_subscribe", [FEED]],
			["eth_unsubscribe", ["0x1"]],
		] as const) {
			const { error } = await fixture.system.client.ask(method, params);
			assert.deepEqual(error, {
				code: -32601,
				message: `the method ${method} does not exist/is not available: over a websocket only`,
			});
		}
	});
});

it("a client that does not read is closed with 1013, while the others get all notifications", async () => {
	const unread = async () =>
		Number(/^relay_unread_bytes (\d+)$/m.exec(await metricsOf(fixture.system.client.url))?.[1]);
	const slow = await open();
	await slow.subscribe(FEED);
	slow.ws.socket.pause();
	// The system's own buffers take some megabytes before anything is left unread here.
	for (let id = 0; id < 5_000; id++) slow.ws.send({ jsonrpc: "2.0", id, method: "rpc.discover", params: [] });
	// More than may wait is given up, and only what is on its way to the system is left, which nobody
	// takes.
	let before = 0;
	await until("it is closed", async () => {
		const now = await unread();
		const isLeft = now === before && now > 64 * 1024 && now < 1024 * 1024;
		before = now;
		return isLeft;
	});
	// It must read on within five seconds to learn why it was closed.
	await fence();
	slow.ws.socket.resume();
	assert.deepEqual(await slow.ws.closed(), { code: 1013, reason: "too slow" });
	await fence();
});

it("the status of two bids is reported with the block, and nothing of each other before, each only to its own client", async () => {
	const [low, high] = [await fixture.bidder(), await fixture.bidder()];
	const [lowFeed, highFeed, stranger] = [await low.connect(), await high.connect(), await open()];
	clients.push(lowFeed, highFeed);
	const name = "service_bundleStatus";
	const target = await fixture.target();
	const [lower, higher] = [low.backrun(1_000n * GWEI), high.backrun(3_000n * GWEI)];
	const [lowHash, highHash] = [bundleOf(target, lower), bundleOf(target, higher)];
	const spying = [
		[stranger, await stranger.subscribe(name, lowHash)],
		[stranger, await stranger.subscribe(name, highHash)],
		[highFeed, await highFeed.subscribe(name, lowHash)],
	] as const;
	// Before it is sent there is nothing to tell.
	const lowId = await lowFeed.subscribe(name, lowHash);
	const at = (client: FeedClient, id: string, stage: string) =>
		until(`${stage} told of ${id}`, () => client.received(id).find((one) => one.stage === stage));
	assert.equal(await low.bid(target, lower), lowHash);
	const accepted = await at(lowFeed, lowId, "ACCEPTED");
	const block = (await fixture.head()) + 1;
	assert.deepEqual(
		[accepted.bundleHash, accepted.target, accepted.blockNumber, accepted.bid, accepted.paid],
		[lowHash, target.hash, block, String(1_000n * GWEI), null],
	);

	assert.equal(await high.bid(target, higher), highHash);
	// A later subscriber receives the present state at once.
	const highId = await highFeed.subscribe(name, highHash);
	const now = await until("the present state", () => highFeed.received(highId)[0]);
	assert.deepEqual([now.bundleHash, now.stage, now.bid], [highHash, "ACCEPTED", String(3_000n * GWEI)]);
	await fixture.out(target, [lower, higher]);
	for (const { stage, builders } of [...lowFeed.received(lowId), ...highFeed.received(highId)])
		assert.deepEqual([stage, builders], ["ACCEPTED", []]);

	await fixture.system.nextBlock();
	const included = await at(highFeed, highId, "INCLUDED");
	const { hash } = await fixture.block(block);
	assert.deepEqual([included.blockNumber, included.blockHash], [block, hash]);
	await at(lowFeed, lowId, "LOST");
	const lost = await until("what was paid", () => lowFeed.received(lowId).find(({ paid }) => paid !== null));
	assert.deepEqual([lost.stage, lost.reason, lost.blockHash], ["LOST", null, null]);
	assert.equal(lost.paid, String(3_000n * GWEI));
	const [answer] = lost.builders as { answer: string }[];
	assert.equal(answer?.answer, "accepted");
	for (const [client, id] of spying) assert.deepEqual(client.received(id), []);
	const stages = lowFeed.received(lowId).map(({ stage }) => stage);
	assert.deepEqual([...new Set(stages)], ["ACCEPTED", "LOST"]);
	for (const { raw } of [lower, higher])
		secrets.push(
			{ name: "a backrun's s", value: `0x${raw.slice(-64)}` },
			{ name: "a backrun's r", value: `0x${raw.slice(-130, -66)}` },
		);
});

it("all that the feed has shown also has `shared` in its status", async () => {
	const told = searcher.received(feed);
	assert.ok(told.length > 20);
	for (const { hash } of told) assert.equal((await fixture.system.client.status(String(hash))).shared, true);
});

it("no byte of a signature or a raw transaction is in any frame", () => {
	const watch = new LeakWatch();
	for (const client of clients) for (const text of client.texts) watch.saw("the feed", text);
	assert.ok(secrets.length >= 60 && watch.places.length === 1);
	assert.deepEqual(watch.found(secrets), []);
	for (const { texts } of clients) {
		for (const text of texts)
			assert.ok(!/"(v|r|s|yParity|authorizationList|raw|sidecar|blobs)":/.test(text), text);
	}
});
