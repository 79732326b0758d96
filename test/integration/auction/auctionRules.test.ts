// The rules of the auction, by the builder's record, the blocks and the bidders' statuses: which bids are sent and what
// replaces them, ties, shared nonces, and how a bidder that does not pay what it bid is barred.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { PAYS_COINBASE, PAYS_LESS_AFTER_TIME, word } from "../../support/auctionContracts.ts";
import { type AuctionFixture, type Placed, startAuction, type Target } from "../../support/bidder.ts";
import { PAYER } from "../../support/biddingFixture.ts";
import { metricsOf } from "../../support/relayClient.ts";
import { ETHER, GWEI, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** The relay counts on 12 seconds to a block. */
const BUILDER_SLOT_SECONDS = 13;
const SHARE = 1_000_000n * GWEI;

let fixture: AuctionFixture;
before(async () => {
	fixture = await start({ BIDS_PER_TARGET: "1" });
});
after(() => fixture.system.stop());

const start = (env: Readonly<Record<string, string>>) =>
	startAuction({ proxied: true, builder: { slotSeconds: BUILDER_SLOT_SECONDS }, env });

/** A bid of `gwei` under the uuid "one". */
function place(target: Target, gwei: bigint, options: Parameters<AuctionFixture["offer"]>[2] = {}) {
	return fixture.offer(target, gwei * GWEI, { uuid: "one", ...options });
}

/** A bid of so many shares on a contract of its own. */
async function placeApart(
	target: Target,
	shares: bigint,
	options: Parameters<AuctionFixture["offer"]>[2] = {},
) {
	return fixture.offer(target, shares * SHARE, { to: await fixture.placeCode(PAYS_COINBASE), ...options });
}

async function assertStages(bids: readonly Placed[], stages: readonly string[]): Promise<void> {
	assert.deepEqual(await fixture.stagesOf(bids), stages);
}

/** Raw backruns that the builder was told about behind `target`, in order; "" for a cancel. */
function told(target: Target): readonly string[] {
	return fixture.backrunOrders(target).map(({ kind, backrun }) => (kind === "cancel" ? "" : backrun));
}

/** Sizes of the orders that the builder would put into a block, with `tx` as the first. */
function live(tx: Signed): readonly number[] {
	const orders = fixture.system.builder.orders().filter(({ state }) => state === "live");
	return orders
		.filter(({ transactions }) => transactions[0]?.hash === tx.hash)
		.map(({ transactions }) => transactions.length)
		.sort();
}

describe("the best bid of a target", () => {
	it("is sent at once, and alone where there is one place; the next best follows when it fails", async () => {
		const target = await fixture.target();
		const ten = await place(target, 10n);
		await fixture.out(target, ten.backrun);
		const five = await place(target, 5n);
		const twenty = await place(target, 20n);
		await fixture.out(target, twenty.backrun);
		const fifteen = await place(target, 15n);
		const all = [five, ten, fifteen, twenty];
		await assertStages(all, ["OUTBID", "OUTBID", "OUTBID", "BEST"]);
		// In which order one bidder's cancel and another's bid reach a builder is nobody's promise.
		const [first, ...others] = told(target);
		assert.deepEqual([first, ...others.sort()], [ten.backrun.raw, "", twenty.backrun.raw]);
		assert.deepEqual(live(target), [1, 2], "the target alone, and one bid behind it");

		await twenty.bidder.cancel("one");
		await fixture.out(target, fifteen.backrun);
		await assertStages(all, ["OUTBID", "OUTBID", "BEST", "CANCELLED"]);
		await ten.bidder.cancel("one");
		await fifteen.bidder.call("eth_sendBundle", [{ txs: [], replacementUuid: "one" }]);
		await fixture.out(target, five.backrun);
		await assertStages(all, ["BEST", "CANCELLED", "CANCELLED", "CANCELLED"]);
		assert.deepEqual(live(target), [1, 2]);

		await five.bidder.cancel("one");
		await fixture.out(target, null);
		await until("the target alone", () => live(target).length === 1);
		assert.deepEqual(
			told(target).filter((raw) => raw !== ""),
			[ten, twenty, fifteen, five].map(({ backrun }) => backrun.raw),
		);
		const uuids = new Set(fixture.backrunOrders(target).map(({ uuid }) => uuid));
		assert.equal(uuids.size, 4, "each bidder's has an identifier of its own");
		for (const uuid of uuids) {
			assert.match(uuid, UUID_V4);
			assert.notEqual(uuid, fixture.deliveries(fixture.system.builder, target)[0]?.uuid, "the target's own");
		}
		assert.deepEqual(await fixture.blockFrom(target), [target.hash]);
	});

	it("is not revealed before the block, nor by how much others lost", async () => {
		const target = await fixture.target();
		const best = await place(target, 30n);
		const lost = await place(target, 11n);
		await fixture.out(target, best.backrun);
		for (const { bidder, hash } of [best, lost])
			assert.deepEqual(
				(await bidder.blocks(hash)).map(({ outbidBy }) => outbidBy),
				[null],
			);
		assert.ok(!JSON.stringify(await fixture.events(target)).includes(best.backrun.hash));
		const [, behind] = await fixture.blockFrom(target);
		assert.equal(behind, best.backrun.hash);
		const won = await best.bidder.reaches(best.hash, "INCLUDED");
		const { hash } = await fixture.block(won.blockNumber);
		assert.deepEqual([won.bid, won.outbidBy, won.blockHash], [String(30n * GWEI), null, hash]);
		const end = await lost.bidder.told(lost.hash, "NOT_INCLUDED outbid");
		assert.deepEqual(
			[end.bid, end.outbidBy, end.blockHash, end.winner],
			[String(11n * GWEI), String(19n * GWEI), null, { backrun: behind, paid: String(30n * GWEI) }],
		);
	});

	it("among equal ones is the earlier", async () => {
		const target = await fixture.target();
		const first = await place(target, 7n);
		const second = await place(target, 7n);
		const third = await place(target, 7n);
		await fixture.out(target, first.backrun);
		await assertStages([first, second, third], ["BEST", "OUTBID", "OUTBID"]);
		await first.bidder.cancel("one");
		await fixture.out(target, second.backrun);
		assert.equal((await fixture.blockFrom(target))[1], second.backrun.hash);
		assert.equal((await third.bidder.told(third.hash, "NOT_INCLUDED outbid")).outbidBy, "0");
		assert.equal((await fixture.status(target)).backruns, 3, "all that were accepted count");
	});

	it("may come from the target's own sender, with the next nonce", async () => {
		const target = await fixture.target();
		const bidder = await fixture.bidder();
		const unpaid = target.user.sign({ nonce: 1 });
		await assert.rejects(bidder.bid(target, unpaid), /backrun pays nothing to the fee recipient 0x/);
		const backrun = target.user.sign({ nonce: 1, to: PAYER, value: ETHER / 1_000n });
		const hash = await bidder.bid(target, backrun);
		await fixture.out(target, backrun);
		assert.equal((await fixture.blockFrom(target))[1], backrun.hash);
		assert.deepEqual(await bidder.stages(hash), ["INCLUDED"]);
	});
});

it("bids on unknown, hidden and mined transactions get the same answer", async () => {
	const bidder = await fixture.bidder();
	const mined = await fixture.target();
	await fixture.system.nextBlock();
	const hidden = (await fixture.actor()).sign();
	await fixture.submit("/fullprivacy", hidden);
	const plain = (await fixture.actor()).sign();
	await fixture.submit("/fast", plain);
	for (const tx of [hidden, plain]) await fixture.waitUntilSent(tx);
	const unknown = (await fixture.actor()).sign({ nonce: 3 });
	for (const target of [unknown, plain, mined, hidden]) {
		const answer = await bidder.tryBid(target, bidder.backrun(GWEI));
		assert.deepEqual(answer, { error: "-32000 target transaction not found" });
	}
});

describe("a uuid", () => {
	it("replaces a bid by another one, also a lower one", async () => {
		const target = await fixture.target();
		const bidder = await fixture.bidder();
		const dear = await place(target, 9n, { bidder });
		const other = await place(target, 5n);
		const cheap = await place(target, 3n, { bidder });
		await assertStages([dear, other, cheap], ["REPLACED", "BEST", "OUTBID"]);
		await fixture.out(target, other.backrun);
		await other.bidder.cancel("one");
		await fixture.out(target, cheap.backrun);
		assert.deepEqual((await fixture.blockFrom(target)).slice(0, 2), [target.hash, cheap.backrun.hash]);
	});

	it("moves a bid from one target to another", async () => {
		const [one, two] = [await fixture.target(), await fixture.target()];
		const bidder = await fixture.bidder();
		const before = await place(one, 9n, { bidder });
		await fixture.out(one, before.backrun);
		const after = await place(two, 4n, { bidder });
		await fixture.out(two, after.backrun);
		await fixture.out(one, null);
		await assertStages([before, after], ["REPLACED", "BEST"]);
		assert.equal((await fixture.blockFrom(two))[1], after.backrun.hash);
		assert.equal(await fixture.receipt(before.backrun), null);
		assert.ok(await fixture.receipt(one), "the target that lost its bid is mined all the same");
	});

	it("of a refused bid replaces nothing", async () => {
		const target = await fixture.target();
		const bidder = await fixture.bidder();
		const good = await place(target, 9n, { bidder });
		await assert.rejects(
			place(target, 99n, { bidder, nonce: 5 }),
			/nonce too high: next nonce 0, tx nonce 5/,
		);
		await assertStages([good], ["BEST"]);
		await fixture.out(target, good.backrun);
		assert.equal((await fixture.blockFrom(target))[1], good.backrun.hash);
	});

	it("with the same bid again keeps it, and it may be cancelled", async () => {
		const target = await fixture.target();
		const once = await place(target, 9n);
		const again = await once.bidder.bid(target, once.backrun, { uuid: "one" });
		assert.equal(again, once.hash);
		await assertStages([once], ["BEST"]);
		await once.bidder.cancel("one");
		await fixture.out(target, null);
		await assertStages([once], ["CANCELLED"]);
		assert.deepEqual(await fixture.blockFrom(target), [target.hash]);
		assert.equal((await fixture.status(target)).backruns, 1, "it counts once, though taken back");
	});
});

it("of two targets' best bids with one nonce the higher stays; the other target gets its next best, or none", async () => {
	const [one, two] = [await fixture.target(), await fixture.target()];
	const bidder = await fixture.bidder();
	const low = await place(one, 10n, { bidder, uuid: "on one" });
	await fixture.out(one, low.backrun);
	const high = await place(two, 20n, { bidder, uuid: "on two" });
	await fixture.out(two, high.backrun);
	await fixture.out(one, null);
	assert.deepEqual(live(one), [1]);
	assert.notEqual((await fixture.stagesOf([low]))[0], "BEST", "nothing is with the builders");
	const next = await place(one, 5n);
	await fixture.out(one, next.backrun);
	await assertStages([low, next, high], ["OUTBID", "BEST", "BEST"]);

	await bidder.cancel("on two");
	await fixture.out(one, low.backrun);
	await fixture.out(two, null);
	await assertStages([low], ["BEST"]);
	const again = await place(two, 30n, { bidder, uuid: "on two" });
	await fixture.out(one, next.backrun);
	await fixture.out(two, again.backrun);
	await fixture.system.nextBlock();
	const [oneAt = -9, nextAt, twoAt = -9, againAt] = await fixture.indices(
		...[one, next.backrun, two, again.backrun],
	);
	assert.deepEqual([nextAt, againAt], [oneAt + 1, twoAt + 1]);
	assert.equal(await fixture.receipt(low.backrun), null);
	await assertStages([next], ["INCLUDED"]);
	assert.match((await fixture.stagesOf([low]))[0] ?? "", /^NOT_INCLUDED /);
});

describe("the bids that builders get where there are three places", () => {
	let single: AuctionFixture;
	before(async () => {
		single = fixture;
		fixture = await start({});
	});
	after(async () => {
		await fixture.system.stop();
		fixture = single;
	});

	it("are the best three, each under its own identifier; the builder keeps the one that pays the most", async () => {
		const target = await fixture.target();
		const four = await placeApart(target, 4n);
		const one = await placeApart(target, 1n);
		const three = await placeApart(target, 3n);
		await fixture.out(target, [four.backrun, three.backrun, one.backrun]);
		const two = await placeApart(target, 2n);
		await fixture.out(target, [four.backrun, three.backrun, two.backrun]);
		await assertStages([four, three, two, one], ["BEST", "RUNNER_UP", "RUNNER_UP", "OUTBID"]);
		assert.equal(new Set(fixture.backrunOrders(target).map(({ uuid }) => uuid)).size, 4);
		assert.deepEqual((await fixture.blockFrom(target)).slice(0, 2), [target.hash, four.backrun.hash]);
		const paid = String(4n * SHARE);
		for (const { bidder, hash } of [three, two, one]) {
			const { winner } = await bidder.told(hash, "NOT_INCLUDED outbid");
			assert.deepEqual(winner, { backrun: four.backrun.hash, paid });
		}
		assert.equal((await four.bidder.reaches(four.hash, "INCLUDED")).bid, paid);
		await until("what it paid", async () => (await four.bidder.blocks(four.hash))[0]?.paid === paid);
		assert.equal((await fixture.event(target, "refunded")).backrun, four.backrun.hash);
	});

	it("are distinct by network address and by sender, but not by contract", async () => {
		const target = await fixture.target();
		const to = await fixture.placeCode(PAYS_COINBASE);
		const best = await placeApart(target, 9n, { to });
		const sameContract = await placeApart(target, 8n, { to });
		const { from, actor } = best.bidder;
		const sameAddress = await placeApart(target, 7n, {
			bidder: Object.assign(await fixture.bidder(), { from }),
		});
		const sameSender = await placeApart(target, 6n, {
			bidder: Object.assign(await fixture.bidder(), { actor }),
		});
		const other = await placeApart(target, 1n);
		await fixture.out(target, [best.backrun, sameContract.backrun, other.backrun]);
		await assertStages(
			[best, sameContract, sameAddress, sameSender, other],
			["BEST", "RUNNER_UP", "OUTBID", "OUTBID", "RUNNER_UP"],
		);
		await fixture.system.nextBlock();
	});
});

it("a bidder that pays one wei instead of its bid is barred, also after a restart, until a reorganisation removes the block", async () => {
	const { system } = fixture;
	const to = await fixture.placeCode(PAYS_LESS_AFTER_TIME);
	const crook = await fixture.bidder();
	const owner = Object.assign(await fixture.bidder(), { from: crook.from });
	const sender = Object.assign(await fixture.bidder(), { actor: crook.actor, nonce: 1 });
	const stranger = await fixture.bidder();
	const good = await fixture.placeCode(PAYS_COINBASE);
	const target = await fixture.target();
	// It pays one wei in a block that comes a second later than the relay counts on.
	const head = (await system.chain.rpc("eth_getBlockByNumber", ["latest", false])) as { timestamp: string };
	const data = word(Number(head.timestamp) + BUILDER_SLOT_SECONDS - 1);
	const short = await fixture.offer(target, 50n * SHARE, { bidder: crook, to, data });
	await fixture.out(target, short.backrun);
	const block = await system.nextBlock();
	const bar = { until: block + 32, bid: String(50n * SHARE), paid: "1", block };
	const barred = async () => {
		const headers = { "x-forwarded-for": crook.from };
		const page = await fetch(`${system.client.url}/bundle/${short.hash}`, { headers });
		return ((await page.json()) as { barred?: unknown }).barred;
	};
	assert.deepEqual(await until("the bar", async () => (await barred()) ?? false), bar);
	assert.equal((await crook.blocks(short.hash))[0]?.paid, "1");
	const metrics = await metricsOf(system.core.url);
	assert.match(metrics, /^relay_bids_in_blocks_total\{fact="short"\} 1$/m);
	assert.match(metrics, /^relay_barred_bidders 3$/m, "the signer, the sender and the network address");

	const fresh = await fixture.target();
	const error = `-32000 bidder is barred until block ${bar.until}: bid ${bar.bid} wei, paid 1 wei in block ${block}`;
	const assertRefused = async () =>
		assert.deepEqual(
			[
				await owner.tryBid(fresh, owner.backrun(SHARE, { to: good })),
				await sender.tryBid(fresh, sender.backrun(SHARE, { to: good })),
			],
			[{ error }, { error }],
		);
	await assertRefused();
	await stranger.bid(await fixture.target(), stranger.backrun(SHARE, { to, data: word(1) }));
	await system.restart();
	await fixture.open(fresh);
	await assertRefused();
	await fixture.offerOut(fresh, SHARE, { to: good });

	const release = system.node?.hold();
	await system.chain.rpc("anvil_reorg", [1, []]).finally(release);
	// What was put on the chain behind the block that is gone has gone with it.
	const again = await fixture.target();
	await until("the bar lifted", async () => {
		const answer = await owner.tryBid(again, owner.backrun(SHARE, { to: good }));
		return "hash" in answer;
	});
});
