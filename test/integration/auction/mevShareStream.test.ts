// Flashbots' MEV-Share client, unmodified, on the relay's event stream and its history. It receives
// the websocket feed's transactions, in the same order, with no field more, and never a hidden one.
// Limits apply to each client; the history has only transactions that are in blocks. Bundles are in
// clientsSearchers.test.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { EventHistoryEntry, IPendingTransaction } from "@flashbots/mev-share-client";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { EMITTER, PAYER } from "../../support/biddingFixture.ts";
import { EventStreamReader } from "../../support/clients.ts";
import { snippets } from "../../support/documents.ts";
import { FeedClient } from "../../support/feeds.ts";
import { type MevShareClient, mevShareClient } from "../../support/mevShare.ts";
import { metricsOf } from "../../support/relayClient.ts";
import type { Actor, Signed } from "../../support/relayFixture.ts";
import { mineAll } from "../../support/systems.ts";
import type { TxOptions } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const FEED = "service_partialPendingTransactions";
/**
 * Fields of a partial pending transaction that an event has by another name, or once more outside.
 */
const RENAMED = new Set(["data", "to", "hash"]);

let fixture: AuctionFixture;
let client: MevShareClient;
let websocket: FeedClient;
let feed: string;
const received: IPendingTransaction[] = [];
const bundles: unknown[] = [];
const sent: Signed[] = [];
const opened: { close(): void }[] = [];
before(async () => {
	fixture = await startAuction({ env: { TRUST_PROXY: "1" } });
	assert.equal(snippets("docs/searchers.md", "ts").length, 1, "support/mevShare.ts runs it");
	client = mevShareClient(fixture.system.client.url);
	websocket = await FeedClient.open(fixture.system.client.url.replace("http", "ws"));
	feed = await websocket.subscribe(FEED);
	await listen(client, received);
	const ofBundles = client.on("bundle", (one) => void bundles.push(one));
	opened.push(ofBundles);
	await until("the stream of bundles is open", () => ofBundles.readyState === 1);
});
after(async () => {
	for (const one of opened) one.close();
	websocket?.close();
	await fixture?.system.stop();
});

async function listen(from: MevShareClient, into: IPendingTransaction[]): Promise<void> {
	const stream = from.on("transaction", (one) => void into.push(one));
	opened.push(stream);
	await until("the stream is open", () => stream.readyState === 1);
}

async function send(path: string, options: Omit<TxOptions, "by"> = {}, by?: Actor): Promise<Signed> {
	const tx = (by ?? (await fixture.actor())).sign(options);
	await fixture.submit(path, tx);
	sent.push(tx);
	return tx;
}

const hashes = (some: readonly { readonly hash: string }[]) => some.map(({ hash }) => hash);
const arrives = (tx: Signed) => until("it is received", () => received.find(({ hash }) => hash === tx.hash));

describe("the MEV-Share client's event stream", () => {
	it("on(transaction) receives each shared transaction as the websocket feed shows it, and no hint more", async () => {
		const data = `0xa9059cbb${"00".repeat(31)}07`;
		const call = await send("/fast", { to: EMITTER, data });
		const plain = await send("/maxbackruns", { value: 5n });
		const creation = await send("/maxbackruns", { to: null, data: "0x00", gasLimit: 100_000n });
		for (const tx of [call, plain, creation]) await arrives(tx);
		const shown = await arrives(call);
		assert.deepEqual([shown.to, shown.functionSelector, shown.callData], [EMITTER, "0xa9059cbb", data]);
		assert.deepEqual([shown.logs, shown.gasUsed, shown.mevGasPrice], [undefined, undefined, undefined]);
		const transfer = await arrives(plain);
		assert.deepEqual([transfer.functionSelector, transfer.callData], [undefined, "0x"]);
		assert.equal((await arrives(creation)).to, undefined);
	});

	it("an event has the fields of the feed's result and no others", async () => {
		const reader = await EventStreamReader.open(`${fixture.system.client.url}/mev-share`);
		const tx = await send("/maxbackruns", { to: EMITTER, data: "0x01020304" });
		const { data } = await reader.message("the event", ({ hash }) => hash === tx.hash);
		const told = await websocket.shown(feed, tx.hash);
		const [one] = data.txs as [Record<string, unknown>];
		assert.deepEqual(Object.keys(data), ["hash", "logs", "txs"]);
		assert.equal(data.logs, null);
		const { callData, functionSelector, to, hash, ...rest } = one;
		assert.deepEqual([callData, functionSelector, to, hash], [told.data, told.data, told.to, told.hash]);
		assert.deepEqual(rest, Object.fromEntries(Object.entries(told).filter(([name]) => !RENAMED.has(name))));
		reader.leave();
	});

	it("what is hidden is not received, and all else once and in the websocket's order", async () => {
		const hidden = [
			await send("/fullprivacy", { to: EMITTER }),
			await send("/nochecks", { to: EMITTER }),
			await send("/fast", { value: 1n }),
		];
		for (const tx of hidden) await fixture.waitUntilSent(tx);
		const shared: Signed[] = [];
		for (let i = 0; i < 5; i++) shared.push(await send("/maxbackruns", { value: BigInt(i) }));
		await fixture.passBlock();
		await arrives(await send("/maxbackruns"));
		for (const tx of hidden) assert.ok(!hashes(received).includes(tx.hash));
		assert.deepEqual(
			hashes(received).filter((hash) => shared.some((tx) => tx.hash === hash)),
			hashes(shared),
		);
		const last = hashes(received).at(-1) ?? "";
		await websocket.shown(feed, last);
		const told = websocket.received(feed).map((one) => String(one.hash));
		assert.deepEqual(hashes(received), told.slice(0, told.indexOf(last) + 1));
	});

	it("on(bundle) is silent: bundles are shown to nobody", async () => {
		const target = await send("/maxbackruns", { to: EMITTER });
		await arrives(target);
		const bid = (await fixture.actor()).sign({ to: PAYER, value: 1_000n });
		const block = (await fixture.head()) + 1;
		await client.sendBundle({
			inclusion: { block },
			body: [{ hash: target.hash }, { tx: bid.raw, canRevert: false }],
		});
		await client.sendBundle({
			inclusion: { block },
			body: [
				{ tx: (await fixture.actor()).sign({ to: PAYER, value: 1n }).raw, canRevert: false },
				{ tx: (await fixture.actor()).sign({ to: PAYER, value: 2n }).raw, canRevert: false },
			],
			privacy: { hints: { txHash: true, calldata: true, logs: true } },
		});
		await arrives(await send("/maxbackruns"));
		assert.deepEqual(bundles, []);
		assert.ok(!hashes(received).includes(bid.hash));
	});

	it("one client has 16 streams, a web page at its address others; a transaction's stream is not among them", async () => {
		const from = (address: string, headers = {}) =>
			EventStreamReader.open(`${fixture.system.client.url}/mev-share`, {
				"x-forwarded-for": address,
				...headers,
			});
		const streams: EventStreamReader[] = [];
		for (let i = 0; i < 16; i++) streams.push(await from("192.0.2.7"));
		const over = await from("192.0.2.7");
		assert.deepEqual([over.status, over.headers["retry-after"]], [429, "1"]);
		const others = [await from("192.0.2.8"), await from("192.0.2.7", { origin: "https://page.example" })];
		assert.deepEqual(
			others.map(({ status }) => status),
			[200, 200],
		);
		const tx = await send("/maxbackruns");
		const life = await EventStreamReader.open(`${fixture.system.client.url}/tx/${tx.hash}/events`, {
			"x-forwarded-for": "192.0.2.7",
		});
		assert.equal(life.status, 200);
		for (const one of [...streams, over, ...others, life]) one.leave();
	});

	it("a stream that is closed takes no part any more", async () => {
		const count = (is: number) =>
			until(`${is} are open`, async () =>
				(await metricsOf(fixture.system.client.url)).includes(`\nrelay_subscriptions ${is}\n`),
			);
		// The websocket's, and the client's two streams.
		await count(3);
		const reader = await EventStreamReader.open(`${fixture.system.client.url}/mev-share`);
		await count(4);
		assert.equal(reader.retry ?? 1_000, 1_000);
		reader.leave();
		await count(3);
	});
});

describe("the MEV-Share client's history", () => {
	it("has what was shared and is in a block, in pages, and nothing else", async () => {
		// Transactions of other tests are in earlier blocks.
		await mineAll(fixture.system, sent);
		const pending = await send("/maxbackruns", { nonce: 5 });
		const cancelled = await send("/maxbackruns", { to: EMITTER });
		const hidden = await send("/fullprivacy", { to: EMITTER });
		await arrives(cancelled);
		await fixture.system.client.call("eth_cancelTransaction", [cancelled.hash]);
		const mined: Signed[] = [];
		for (let i = 0; i < 3; i++) {
			mined.push(await send("/maxbackruns", { to: EMITTER, data: `0x0102030${i}` }));
			await fixture.waitUntilSent(mined.at(-1) as Signed);
			await fixture.system.nextBlock();
		}
		const all = await until("all are in it", async () => {
			const now = await client.getEventHistory();
			return now.at(-1)?.hint.hash === mined.at(-1)?.hash && now;
		});
		const info = await client.getEventHistoryInfo();
		assert.equal(all.length, info.count);
		const known = all.map(({ hint }) => hint.hash);
		for (const tx of [pending, cancelled, hidden]) assert.ok(!known.includes(tx.hash));
		assert.deepEqual(known.slice(-3), hashes(mined));
		const last = all.at(-1) as EventHistoryEntry;
		assert.deepEqual(
			[last.hint.txs?.[0]?.callData, last.hint.txs?.[0]?.functionSelector, last.hint.txs?.[0]?.to],
			["0x01020302", "0x01020302", EMITTER],
		);
		assert.deepEqual([last.hint.gasUsed, last.hint.mevGasPrice, last.hint.logs], [0n, 0n, null]);
		assert.deepEqual(
			[info.minBlock, info.maxBlock, info.minTimestamp <= info.maxTimestamp, info.maxLimit],
			[all[0]?.block, last.block, true, 500],
		);
		// Page by page, as the client's own example does.
		const paged: string[] = [];
		for (let offset = 0; offset < info.count; offset += 2) {
			const page = await client.getEventHistory({ limit: 2, offset, blockStart: info.minBlock });
			assert.ok(page.length <= 2);
			paged.push(...page.map(({ hint }) => hint.hash));
		}
		assert.deepEqual(paged, known);
		const inOne = await client.getEventHistory({ blockStart: last.block, blockEnd: last.block });
		assert.deepEqual(
			inOne.map(({ hint }) => hint.hash),
			[mined[2]?.hash],
		);
		assert.deepEqual(await client.getEventHistory({ timestampStart: last.timestamp + 1_000 }), []);
	});

	it("bad queries are refused by name", async () => {
		for (const [query, error] of [
			["limit=501", "limit: expected 1 to 500"],
			["limit=0", "limit: expected 1 to 500"],
			["blockStart=0x10", "blockStart: expected a whole number"],
		]) {
			const answer = await fetch(`${fixture.system.client.url}/mev-share/api/v1/history?${query}`);
			assert.deepEqual([answer.status, await answer.json()], [400, { error }]);
		}
	});
});
