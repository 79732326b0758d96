// Blocks that were seen and leave the chain with private transactions in them. These are public
// now, are sent again at once with their bids, and are reported as exposed to everybody who asks.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { FeedClient } from "../../support/feeds.ts";
import { sized } from "../../support/length.ts";
import { ETHER, type Signed } from "../../support/relayFixture.ts";
import { StoppableClock } from "../../support/stoppableClock.ts";
import { until } from "../../support/until.ts";

/**
 * From the head that shows it to the builders, by the relay's clock: less than the second after
 * which it would ask again.
 */
const AT_ONCE_MS = 800;
const BID = ETHER / 100n;

const clock = new StoppableClock();
let fixture: AuctionFixture;
before(async () => {
	fixture = await startAuction({ proxied: true, clock });
});
afterEach(() => clock.goOn());
after(() => fixture.system.stop());

/**
 * The last `depth` blocks go, as many others come; the relay's clock stops soon behind the moment
 * when its node shows them.
 */
async function reorganise(depth: number, mined: readonly Signed[] = []): Promise<void> {
	const pairs = mined.map(({ raw }) => [raw, 0]);
	const release = fixture.system.node?.hold();
	await fixture.system.chain.rpc("anvil_reorg", [depth, pairs]).finally(() => {
		clock.stopAfter(AT_ONCE_MS);
		release?.();
	});
}

const noteOf = (block: number, depth = 1) => ({
	...{ block, depth },
	message: `it was seen in block ${block}, which has left the chain, so it is public: only another transaction with its nonce can stop it`,
});

describe("a transaction in a block that is gone", () => {
	const PATHS = ["/fast", "/noreverts", "/nochecks", "/fullprivacy", "/maxbackruns"];
	for (const path of PATHS.slice(0, sized(3, PATHS.length))) {
		it(`on ${path} is reported as exposed and is with the builders again at once`, async () => {
			const tx = (await fixture.actor()).sign();
			await fixture.submit(path, tx);
			await fixture.waitUntilSent(tx);
			const block = await fixture.system.nextBlock();
			await fixture.reaches(tx, "INCLUDED");
			assert.ok(!("exposed" in (await fixture.status(tx))));
			const before = fixture.deliveries(fixture.system.builder, tx).length;
			await reorganise(1);
			await until("it is sent again", () => fixture.deliveries(fixture.system.builder, tx).length > before);
			const told = await fixture.event(tx, "exposed");
			assert.deepEqual([told.block, told.depth], [block, 1]);
			const { stage, exposed } = await fixture.reaches(tx, "BROADCAST");
			assert.deepEqual([stage, exposed], ["BROADCAST", noteOf(block)]);
		});
	}

	it("keeps the note where it is mined again, in the block that came in place or later, and over a restart", async () => {
		const [one, two] = [(await fixture.actor()).sign(), (await fixture.actor()).sign()];
		await fixture.submit("/fast", one, two);
		for (const tx of [one, two]) await fixture.waitUntilSent(tx);
		const block = await fixture.system.nextBlock();
		for (const tx of [one, two]) await fixture.reaches(tx, "INCLUDED");
		await reorganise(1, [two]);
		await fixture.reaches(one, "BROADCAST");
		clock.goOn();
		await fixture.waitUntilSent(one);
		await fixture.system.nextBlock();
		await fixture.reaches(one, "INCLUDED");
		await fixture.system.restart();
		for (const tx of [one, two])
			assert.deepEqual((await fixture.reaches(tx, "INCLUDED")).exposed, noteOf(block));
	});

	it("three blocks deep has that depth, and each of a chain its own block", async () => {
		const actor = await fixture.actor();
		const chain = [0, 1, 2].map((nonce) => actor.sign({ nonce }));
		const blocks: number[] = [];
		for (const tx of chain) {
			await fixture.submit("/fast", tx);
			await fixture.waitUntilSent(tx);
			blocks.push(await fixture.system.nextBlock());
			await fixture.reaches(tx, "INCLUDED");
		}
		await reorganise(3);
		for (const [i, tx] of chain.entries()) {
			await fixture.waitUntilSent(tx);
			assert.deepEqual((await fixture.status(tx)).exposed, noteOf(blocks[i] ?? 0, 3 - i));
		}
	});

	it("is reported on its event stream and to its subscribers, the same through all of them", async () => {
		const { url } = fixture.system.client;
		const tx = (await fixture.actor()).sign();
		await fixture.submit("/fast", tx);
		await fixture.waitUntilSent(tx);
		const stop = new AbortController();
		const stream = await fetch(`${url}/tx/${tx.hash}/events`, {
			headers: { accept: "text/event-stream" },
			signal: stop.signal,
		});
		let streamed = "";
		const reading = (async () => {
			for await (const part of stream.body ?? []) streamed += Buffer.from(part).toString("utf8");
		})().catch(() => {});
		const feed = await FeedClient.open(`${url.replace("http", "ws")}/ws`);
		const id = await feed.subscribe("service_transactionStatus", tx.hash);
		const block = await fixture.system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		await reorganise(1);
		await until("the event comes", () => streamed.includes(`"type":"exposed"`));
		assert.match(streamed, new RegExp(`"type":"exposed","at":"[^"]+","block":${block},"depth":1,"stage"`));
		const told = await until("subscribers receive it", () =>
			feed.received(id).find((one) => one.stage === "BROADCAST" && one.exposed !== undefined),
		);
		assert.deepEqual(told.exposed, noteOf(block));
		stop.abort();
		await reading;
		feed.close();
	});
});

describe("the bid that was mined behind it", () => {
	it("is sent behind it again at once where its blocks allow, and pays its refund in the end", async () => {
		const target = await fixture.target();
		const bidder = await fixture.bidder();
		const backrun = bidder.backrun(BID);
		const first = (await fixture.head()) + 1;
		const hash = await bidder.share(target, backrun, { first, last: first + 5 });
		await fixture.out(target, backrun);
		assert.equal(await fixture.system.nextBlock(), first);
		await fixture.event(target, "refunded");
		await reorganise(1);
		// The head has the old block's number again: bids sent after that are for the next block.
		await fixture.seesHead(first);
		await fixture.holds(target, backrun);
		clock.goOn();
		assert.deepEqual((await bidder.stages(hash)).slice(-2), ["TARGET_NOT_MINED", "ACCEPTED"]);
		assert.deepEqual((await fixture.status(target)).refund, 0);
		const second = await fixture.system.nextBlock();
		await fixture.event(target, "refunded", (event) => event.block === second);
		assert.equal((await bidder.stages(hash)).at(-1), "INCLUDED");
		const { refund, exposed } = await fixture.status(target);
		assert.ok(refund > 0);
		assert.deepEqual(exposed, noteOf(first));
	});

	it("for that block alone is sent again where nothing comes in its place, as where a payload is withheld", async () => {
		const target = await fixture.target();
		const bidder = await fixture.bidder();
		const backrun = bidder.backrun(BID);
		const snapshot = await fixture.system.chain.snapshot();
		const hash = await bidder.bid(target, backrun);
		await fixture.out(target, backrun);
		const block = await fixture.system.nextBlock();
		await fixture.event(target, "refunded");
		const before = fixture.backrunOrders(target).length;
		await fixture.system.chain.revert(snapshot);
		await fixture.event(target, "exposed", (event) => event.block === block && event.depth === 1);
		await until("the bid is sent again", () => fixture.backrunOrders(target).length > before);
		await fixture.holds(target, backrun);
		assert.equal(await fixture.system.nextBlock(), block);
		await fixture.event(target, "refunded", (event) => event.block === block);
		assert.equal((await bidder.stages(hash)).at(-1), "INCLUDED");
	});
});
