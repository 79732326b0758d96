// Tests cancels of what searchers bid on: the target leaves feed and auction at once, its bids end, builders are told
// to forget the backrun too, and a cancelled hash looks like one that nobody has seen.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type AuctionFixture, type Bidder, startAuction, type Target } from "../../support/bidder.ts";
import { EMITTER } from "../../support/biddingFixture.ts";
import { FeedClient } from "../../support/feeds.ts";
import { GWEI, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";
import { cancelBy, NEVER_SEEN } from "../../support/userFixtures.ts";

const NOT_FOUND = "-32000 target transaction not found";
const SOFT = "/noreverts?softCancellations=true";

let fixture: AuctionFixture;
let feed: FeedClient;
let pending: string;
before(async () => {
	fixture = await startAuction({ builders: [{ name: "dev" }, { name: "other" }] });
	feed = await FeedClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`);
	pending = await feed.subscribe("service_partialPendingTransactions");
});
after(async () => {
	feed.close();
	await fixture.system.stop();
});

/** How a user takes a target back. */
const WAYS: Readonly<Record<string, (target: Target) => Promise<void>>> = {
	"by its hash": async (target) => {
		assert.equal(await cancelBy(fixture.system, target), true);
	},
	softly: async ({ user }) => fixture.submit("/fast", user.sign({ to: user.address })),
};

/** A bid of `gwei` by a new searcher. */
async function place(target: Target, gwei: bigint) {
	const bidder = await fixture.bidder();
	const backrun = bidder.backrun(gwei * GWEI);
	return { bidder, backrun, hash: await bidder.bid(target, backrun) };
}

/** What `bidder` is told who bids on `target` again, or simulates behind it. */
async function asked(
	bidder: Bidder,
	target: Pick<Signed, "hash">,
	backrun: Signed,
): Promise<readonly string[]> {
	const head = await fixture.head();
	const hex = (block: number) => `0x${block.toString(16)}`;
	const bundle = { txs: [target.hash, backrun.raw] };
	const share = {
		version: "v0.1",
		inclusion: { block: hex(head + 1) },
		body: [{ hash: target.hash }, { tx: backrun.raw, canRevert: false }],
	};
	const simulation = { ...bundle, blockNumber: hex(head + 1), stateBlockNumber: hex(head) };
	const answers: string[] = [];
	for (const [method, param] of [
		["eth_sendBundle", bundle],
		["mev_sendBundle", share],
		["eth_callMany", simulation],
	] as const) {
		const answer = await bidder.call(method, [param]).then(
			(result) => JSON.stringify(result),
			(thrown: Error) => thrown.message,
		);
		answers.push(answer.replaceAll(target.hash.slice(2), "HASH"));
	}
	return answers;
}

/** How many orders with `tx` each builder would still put into a block. */
function live(tx: Signed): readonly number[] {
	return fixture.system.builders.map((builder) => fixture.live(builder, tx));
}

describe("a target that is taken back", () => {
	for (const [name, takeBack] of Object.entries(WAYS)) {
		it(`${name}: its bids end, it and the backrun are withdrawn from every builder`, async () => {
			const target = await fixture.target(SOFT);
			const lost = await place(target, 5n);
			const best = await place(target, 20n);
			for (const builder of fixture.system.builders) await fixture.out(target, best.backrun, builder);
			await takeBack(target);
			assert.deepEqual(await best.bidder.stages(best.hash), ["DROPPED targetGone"]);
			assert.deepEqual(await lost.bidder.stages(lost.hash), ["DROPPED targetGone"]);
			for (const builder of fixture.system.builders) await fixture.out(target, null, builder);
			await until("nothing of it in the builders' books", () =>
				[target, best.backrun].every((tx) => live(tx).every((count) => count === 0)),
			);
			for (const { bidder, backrun } of [best, lost]) {
				const unknown = await asked(bidder, { hash: NEVER_SEEN }, backrun);
				assert.deepEqual(unknown, [NOT_FOUND, NOT_FOUND, NOT_FOUND]);
				assert.deepEqual(await asked(bidder, target, backrun), unknown);
			}
			const block = await fixture.block(await fixture.system.nextBlock());
			const hashes = block.transactions.map(({ hash }) => hash);
			assert.ok(!hashes.includes(target.hash) && !hashes.includes(best.backrun.hash), hashes.join());
			assert.equal(feed.times(pending, target.hash), 1);
			assert.equal((await fixture.status(target)).stage, "CANCELLED");
			assert.deepEqual(await best.bidder.stages(best.hash), ["DROPPED targetGone"]);
		});

		it(`${name}: a fresh one with its nonce is shared and bid on by itself`, async () => {
			const target = await fixture.target(SOFT);
			const old = await place(target, 9n);
			await fixture.out(target, old.backrun);
			await takeBack(target);
			const fresh = { ...target.user.sign({ to: EMITTER, value: 2n }), user: target.user };
			await fixture.submit("/fast", fresh);
			await fixture.open(fresh);
			await feed.shown(pending, fresh.hash);
			assert.equal((await fixture.status(fresh)).backruns, 0, "bids on the old one are void");
			const best = await place(fresh, 3n);
			await fixture.out(fresh, best.backrun);
			const { transactions } = await fixture.block(await fixture.system.nextBlock());
			const hashes = transactions.map(({ hash }) => hash);
			const at = hashes.indexOf(fresh.hash);
			assert.deepEqual(hashes.slice(at, at + 2), [fresh.hash, best.backrun.hash]);
			await best.bidder.reaches(best.hash, "INCLUDED");
			assert.ok(!hashes.includes(old.backrun.hash));
		});
	}

	it("takes with it the bids on what stands behind it, until the gap is closed", async () => {
		const target = await fixture.target("/maxbackruns");
		const behind = { ...target.user.sign({ to: EMITTER, nonce: 1 }), user: target.user };
		await fixture.submit("/maxbackruns", behind);
		await fixture.open(behind);
		assert.equal(await cancelBy(fixture.system, target), true);
		await fixture.reaches(behind, "QUEUED");
		const bidder = await fixture.bidder();
		const backrun = bidder.backrun(4n * GWEI);
		assert.deepEqual(await bidder.tryBid(behind, backrun), { error: NOT_FOUND });
		await fixture.submit("/fast", target.user.sign({ value: 1n }));
		await fixture.reaches(behind, "BROADCAST");
	});

	it("while bids on it come in is bid on by nobody behind that, and none of them is ever out alone", async () => {
		const target = await fixture.target("/maxbackruns");
		const searchers = await Promise.all(Array.from({ length: 8 }, () => fixture.bidder()));
		const backruns = searchers.map((bidder, i) => bidder.backrun(BigInt(i + 1) * GWEI));
		const bids = searchers.map((bidder, i) => bidder.tryBid(target, backruns[i] ?? target));
		const cancelled = cancelBy(fixture.system, target);
		assert.equal(await cancelled, true);
		for (const [i, answer] of (await Promise.all(bids)).entries()) {
			if ("error" in answer) assert.equal(answer.error, NOT_FOUND);
			else await searchers[i]?.reaches(answer.hash, "DROPPED targetGone");
		}
		await until("nothing of it in the builders' books", () =>
			[target, ...backruns].every((tx) => live(tx).every((count) => count === 0)),
		);
		const { transactions } = await fixture.block(await fixture.system.nextBlock());
		const hashes = transactions.map(({ hash }) => hash);
		for (const { hash } of [target, ...backruns]) assert.ok(!hashes.includes(hash), hash);
	});
});
