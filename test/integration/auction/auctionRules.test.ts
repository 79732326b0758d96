// Tests the rules of the auction by the builder's record, the blocks and the bidders' statuses: which bid is sent,
// what replaces it, who wins a tie, and who keeps a nonce that two targets' best bids share.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type AuctionFixture, type Bidder, startAuction, type Target } from "../../support/bidder.ts";
import { PAYER } from "../../support/biddingFixture.ts";
import { ETHER, GWEI, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let fixture: AuctionFixture;
before(async () => {
	fixture = await startAuction();
});
after(() => fixture.system.stop());

/** A bid that was accepted. */
interface Placed {
	readonly bidder: Bidder;
	readonly backrun: Signed;
	readonly hash: string;
}

/** A bid of `gwei` by a new searcher, or by `bidder`, under a uuid. */
async function place(target: Target, gwei: bigint, bidder?: Bidder, uuid = "one"): Promise<Placed> {
	const by = bidder ?? (await fixture.bidder());
	const backrun = by.backrun(gwei * GWEI);
	return { bidder: by, backrun, hash: await by.bid(target, backrun, { uuid }) };
}

function stages(bids: readonly Placed[]): Promise<readonly string[]> {
	return Promise.all(bids.map(async ({ bidder, hash }) => (await bidder.stages(hash)).join()));
}

/** What the builder was told about the backrun behind `target`, in order: raw backruns, and "" for a cancel. */
function told(target: Target): readonly string[] {
	return fixture.backrunOrders(target).map(({ kind, backrun }) => (kind === "cancel" ? "" : backrun));
}

/** Orders that the builder would put into a block, by how many transactions they hold with `tx` as the first. */
function live(tx: Signed): readonly number[] {
	const orders = fixture.system.builder.orders().filter(({ state }) => state === "live");
	return orders
		.filter(({ transactions }) => transactions[0]?.hash === tx.hash)
		.map(({ transactions }) => transactions.length)
		.sort();
}

/** The hashes that the next block holds in front of `target`'s refund, from the target on. */
async function blockFrom(target: Target): Promise<readonly string[]> {
	const { transactions } = await fixture.block(await fixture.system.nextBlock());
	const hashes = transactions.map(({ hash }) => hash);
	return hashes.slice(hashes.indexOf(target.hash));
}

describe("the best bid of a target", () => {
	it("goes out at once, alone of all that call one contract, and each that falls out makes room for the next best", async () => {
		const target = await fixture.target();
		const ten = await place(target, 10n);
		await fixture.out(target, ten.backrun);
		const five = await place(target, 5n);
		const twenty = await place(target, 20n);
		await fixture.out(target, twenty.backrun);
		const fifteen = await place(target, 15n);
		const all = [five, ten, fifteen, twenty];
		assert.deepEqual(await stages(all), ["OUTBID", "OUTBID", "OUTBID", "BEST"]);
		assert.deepEqual(told(target), [ten.backrun.raw, twenty.backrun.raw, ""]);
		assert.deepEqual(live(target), [1, 2], "the target alone, and one bid behind it");

		await twenty.bidder.cancel("one");
		await fixture.out(target, fifteen.backrun);
		assert.deepEqual(await stages(all), ["OUTBID", "OUTBID", "BEST", "CANCELLED"]);
		await ten.bidder.cancel("one");
		await fifteen.bidder.call("eth_sendBundle", [{ txs: [], replacementUuid: "one" }]);
		await fixture.out(target, five.backrun);
		assert.deepEqual(await stages(all), ["BEST", "CANCELLED", "CANCELLED", "CANCELLED"]);
		assert.deepEqual(live(target), [1, 2]);

		await five.bidder.cancel("one");
		await fixture.out(target, null);
		await until("the target alone", () => live(target).length === 1);
		const order = [ten, twenty, fifteen, five].map(({ backrun }) => backrun.raw);
		assert.deepEqual(
			told(target).filter((raw) => raw !== ""),
			order,
		);
		const uuids = new Set(fixture.backrunOrders(target).map(({ uuid }) => uuid));
		assert.equal(uuids.size, 4, "each bidder's has an identifier of its own");
		for (const uuid of uuids) {
			assert.match(uuid, UUID_V4);
			assert.notEqual(uuid, fixture.deliveries(fixture.system.builder, target)[0]?.uuid, "the target's own");
		}
		assert.deepEqual(await blockFrom(target), [target.hash]);
	});

	it("has its losers told by how much only behind the block", async () => {
		const target = await fixture.target();
		const best = await place(target, 30n);
		const lost = await place(target, 11n);
		await fixture.out(target, best.backrun);
		for (const { bidder, hash } of [best, lost])
			assert.deepEqual(
				(await bidder.blocks(hash)).map(({ outbidBy }) => outbidBy),
				[null],
			);
		const events = await fixture.events(target);
		assert.ok(!JSON.stringify(events).includes(best.backrun.hash), "while it may be outbid nobody is told");
		const [, behind] = await blockFrom(target);
		assert.equal(behind, best.backrun.hash);
		const won = await best.bidder.reaches(best.hash, "INCLUDED");
		const { hash } = await fixture.block(won.blockNumber);
		assert.deepEqual([won.bid, won.outbidBy, won.blockHash], [String(30n * GWEI), null, hash]);
		const told = await lost.bidder.told(lost.hash, "NOT_INCLUDED outbid");
		assert.deepEqual(
			[told.bid, told.outbidBy, told.blockHash, told.winner],
			[String(11n * GWEI), String(19n * GWEI), null, { backrun: behind, paid: String(30n * GWEI) }],
		);
	});

	it("of equal ones is the earlier", async () => {
		const target = await fixture.target();
		const [first, second, third] = [
			await place(target, 7n),
			await place(target, 7n),
			await place(target, 7n),
		];
		await fixture.out(target, first.backrun);
		assert.deepEqual(await stages([first, second, third]), ["BEST", "OUTBID", "OUTBID"]);
		await first.bidder.cancel("one");
		await fixture.out(target, second.backrun);
		const [, behind] = await blockFrom(target);
		assert.equal(behind, second.backrun.hash);
		assert.equal((await third.bidder.told(third.hash, "NOT_INCLUDED outbid")).outbidBy, "0");
		assert.equal((await fixture.status(target)).backruns, 3, "all that were accepted count");
	});
});

describe("a uuid", () => {
	it("takes a bid back for another one, also a cheaper one", async () => {
		const target = await fixture.target();
		const bidder = await fixture.bidder();
		const dear = await place(target, 9n, bidder);
		const other = await place(target, 5n);
		const cheap = await place(target, 3n, bidder);
		assert.deepEqual(await stages([dear, other, cheap]), ["REPLACED", "BEST", "OUTBID"]);
		await fixture.out(target, other.backrun);
		await other.bidder.cancel("one");
		await fixture.out(target, cheap.backrun);
		assert.deepEqual((await blockFrom(target)).slice(0, 2), [target.hash, cheap.backrun.hash]);
	});

	it("takes a bid from one target to another", async () => {
		const [one, two] = [await fixture.target(), await fixture.target()];
		const bidder = await fixture.bidder();
		const before = await place(one, 9n, bidder);
		await fixture.out(one, before.backrun);
		const after = await place(two, 4n, bidder);
		await fixture.out(two, after.backrun);
		await fixture.out(one, null);
		assert.deepEqual(await stages([before, after]), ["REPLACED", "BEST"]);
		const hashes = await blockFrom(two);
		assert.equal(hashes[1], after.backrun.hash);
		assert.equal(await fixture.receipt(before.backrun), null);
		assert.ok(await fixture.receipt(one), "the target that lost its bid is mined all the same");
	});

	it("that is refused takes nothing back", async () => {
		const target = await fixture.target();
		const bidder = await fixture.bidder();
		const good = await place(target, 9n, bidder);
		const bad = bidder.backrun(99n * GWEI, { nonce: 5 });
		await assert.rejects(
			bidder.bid(target, bad, { uuid: "one" }),
			/nonce too high: next nonce 0, tx nonce 5/,
		);
		assert.deepEqual(await stages([good]), ["BEST"]);
		await fixture.out(target, good.backrun);
		assert.equal((await blockFrom(target))[1], good.backrun.hash);
	});

	it("whose bid comes again is the same bid still, and may be cancelled", async () => {
		const target = await fixture.target();
		const bidder = await fixture.bidder();
		const once = await place(target, 9n, bidder);
		const twice = await bidder.bid(target, once.backrun, { uuid: "one" });
		assert.equal(twice, once.hash);
		assert.deepEqual(await stages([once]), ["BEST"]);
		await bidder.cancel("one");
		await fixture.out(target, null);
		assert.deepEqual(await stages([once]), ["CANCELLED"]);
		assert.deepEqual(await blockFrom(target), [target.hash]);
		assert.equal(
			(await fixture.status(target)).backruns,
			1,
			"one backrun, whether it came twice or was taken back",
		);
	});
});

describe("a nonce that two targets' best bids share", () => {
	it("is kept by the dearer, and the other target takes its next best", async () => {
		const [one, two] = [await fixture.target(), await fixture.target()];
		const [shared, other] = [await fixture.bidder(), await fixture.bidder()];
		const low = await place(one, 10n, shared, "on one");
		const next = await place(one, 5n, other);
		await fixture.out(one, low.backrun);
		const high = await place(two, 20n, shared, "on two");
		await fixture.out(two, high.backrun);
		await fixture.out(one, next.backrun);
		assert.deepEqual(await stages([low, next, high]), ["OUTBID", "BEST", "BEST"]);

		await shared.cancel("on two");
		await fixture.out(one, low.backrun);
		await fixture.out(two, null);
		const again = await place(two, 30n, shared, "on two");
		await fixture.out(one, next.backrun);
		await fixture.out(two, again.backrun);
		await fixture.system.nextBlock();
		const places = await Promise.all(
			[one, next.backrun, two, again.backrun].map((tx) => fixture.receipt(tx)),
		);
		const [oneAt, nextAt, twoAt, againAt] = places.map((receipt) => receipt?.index ?? -9);
		assert.deepEqual([nextAt, againAt], [(oneAt ?? 0) + 1, (twoAt ?? 0) + 1]);
		assert.equal(await fixture.receipt(low.backrun), null);
		assert.deepEqual((await stages([low, next])).slice(-1), ["INCLUDED"]);
		assert.match((await stages([low]))[0] ?? "", /^NOT_INCLUDED /);
	});

	it("leaves the other target without a bid where there is no next best, and its bidder is not told that it is out", async () => {
		const [one, two] = [await fixture.target(), await fixture.target()];
		const shared = await fixture.bidder();
		const low = await place(one, 10n, shared, "on one");
		await fixture.out(one, low.backrun);
		const high = await place(two, 20n, shared, "on two");
		await fixture.out(two, high.backrun);
		await fixture.out(one, null);
		assert.deepEqual(live(one), [1]);
		assert.notEqual((await stages([low]))[0], "BEST", "nothing is with the builders");
		await shared.cancel("on two");
		await fixture.out(one, low.backrun);
		assert.deepEqual(await stages([low]), ["BEST"]);
		assert.equal((await blockFrom(one))[1], low.backrun.hash);
	});
});

describe("a bid", () => {
	it("may come from the target's own sender, with the nonce behind it", async () => {
		const target = await fixture.target();
		const own = target.user.sign({ nonce: 1 });
		const bidder = await fixture.bidder();
		await assert.rejects(bidder.bid(target, own), /backrun pays nothing to the fee recipient 0x/);
		const backrun = target.user.sign({ nonce: 1, to: PAYER, value: ETHER / 1_000n });
		const hash = await bidder.bid(target, backrun);
		await fixture.out(target, backrun);
		assert.equal((await blockFrom(target))[1], backrun.hash);
		assert.deepEqual(await bidder.stages(hash), ["INCLUDED"]);
	});

	it("on what is unknown, hidden or gone is answered in one and the same way", async () => {
		const bidder = await fixture.bidder();
		const mined = await fixture.target();
		await fixture.system.nextBlock();
		const hidden = (await fixture.actor()).sign();
		await fixture.submit("/fullprivacy", hidden);
		await fixture.sent(hidden);
		const plain = (await fixture.actor()).sign();
		await fixture.submit("/fast", plain);
		await fixture.sent(plain);
		const unknown = (await fixture.actor()).sign({ nonce: 3 });
		for (const target of [unknown, plain, mined, hidden]) {
			const answer = await bidder.tryBid(target, bidder.backrun(GWEI));
			assert.deepEqual(answer, { error: "-32000 target transaction not found" });
		}
	});
});
