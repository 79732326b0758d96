// The rules of the auction, by the builder's orders, the blocks and the bidders' statuses: which
// bids get a slot and what replaces them, shared nonces, and what a record at a builder is good
// for.

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
/** The least: two by record, one by bid, one by lot. */
const SLOTS = 4;
const SHARE = 1_000_000n * GWEI;

let fixture: AuctionFixture;
before(async () => {
	fixture = await startAuction({
		proxied: true,
		builder: { slotSeconds: BUILDER_SLOT_SECONDS },
		env: { BIDS_PER_TARGET: String(SLOTS) },
	});
});
after(() => fixture.system.stop());

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

/** Sizes of the orders that the builder would put into a block, with `tx` as the first. */
function live(tx: Signed): readonly number[] {
	const orders = fixture.system.builder.orders().filter(({ state }) => state === "live");
	return orders
		.filter(({ transactions }) => transactions[0]?.hash === tx.hash)
		.map(({ transactions }) => transactions.length)
		.sort();
}

describe("a bid", () => {
	it("is sent at once, under its own identifier, until it is withdrawn; the builder keeps the highest bid", async () => {
		const target = await fixture.target();
		const ten = await place(target, 10n);
		await fixture.out(target, ten.backrun);
		const five = await place(target, 5n);
		const twenty = await place(target, 20n);
		const fifteen = await place(target, 15n);
		const all = [five, ten, fifteen, twenty];
		const backruns = all.map(({ backrun }) => backrun);
		await fixture.out(target, backruns);
		await assertStages(all, ["ACCEPTED", "ACCEPTED", "ACCEPTED", "ACCEPTED"]);
		assert.deepEqual(live(target), [1, 2, 2, 2, 2], "the target alone, and each bid behind it");
		const uuids = new Set(fixture.backrunOrders(target).map(({ uuid }) => uuid));
		assert.equal(uuids.size, 4, "each bidder's has an identifier of its own");
		for (const uuid of uuids) {
			assert.match(uuid, UUID_V4);
			assert.notEqual(uuid, fixture.deliveries(fixture.system.builder, target)[0]?.uuid, "the target's own");
		}

		await twenty.bidder.cancel("one");
		await ten.bidder.call("eth_sendBundle", [{ txs: [], replacementUuid: "one" }]);
		await fixture.out(target, [five.backrun, fifteen.backrun]);
		await assertStages(all, ["ACCEPTED", "CANCELLED", "ACCEPTED", "CANCELLED"]);
		await until("they are gone there", () => live(target).join() === "1,2,2");
		assert.deepEqual((await fixture.blockFrom(target)).slice(0, 2), [target.hash, fifteen.backrun.hash]);
		await assertStages(all, ["LOST", "CANCELLED", "INCLUDED", "CANCELLED"]);
		assert.equal((await fixture.status(target)).backruns, 4, "all that were accepted count");
	});

	it("is not revealed before the block, but what won is then", async () => {
		const target = await fixture.target();
		const best = await place(target, 30n);
		const lost = await place(target, 11n);
		await fixture.out(target, [best.backrun, lost.backrun]);
		for (const { bidder, hash } of [best, lost]) {
			const [told] = await bidder.blocks(hash);
			const { stage, reason, paid, blockHash, builders } = told ?? {};
			assert.deepEqual([stage, reason, paid, blockHash, builders], ["ACCEPTED", null, null, null, []]);
		}
		assert.ok(!JSON.stringify(await fixture.events(target)).includes(best.backrun.hash));
		const [, behind] = await fixture.blockFrom(target);
		assert.equal(behind, best.backrun.hash);
		const won = await best.bidder.told(best.hash, "INCLUDED");
		const { hash } = await fixture.block(won.blockNumber);
		const paid = String(30n * GWEI);
		assert.deepEqual([won.bid, won.paid, won.blockHash], [paid, paid, hash]);
		const end = await lost.bidder.told(lost.hash, "LOST");
		assert.deepEqual(
			[end.bid, end.paid, end.reason, end.blockHash],
			[String(11n * GWEI), paid, null, null],
			"what the transaction behind the target paid",
		);
		assert.deepEqual(
			end.builders.map(({ builder, kind, answer }) => `${builder} ${kind} ${answer}`),
			["dev bundle accepted"],
		);
		assert.equal((await fixture.event(target, "refunded")).backrun, behind);
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
		const high = await place(target, 9n, { bidder });
		const other = await place(target, 5n);
		const low = await place(target, 3n, { bidder });
		await assertStages([high, other, low], ["REPLACED", "ACCEPTED", "ACCEPTED"]);
		await fixture.out(target, [other.backrun, low.backrun]);
		await other.bidder.cancel("one");
		await fixture.out(target, low.backrun);
		assert.deepEqual((await fixture.blockFrom(target)).slice(0, 2), [target.hash, low.backrun.hash]);
	});

	it("moves a bid from one target to another", async () => {
		const [one, two] = [await fixture.target(), await fixture.target()];
		const bidder = await fixture.bidder();
		const before = await place(one, 9n, { bidder });
		await fixture.out(one, before.backrun);
		const after = await place(two, 4n, { bidder });
		await fixture.out(two, after.backrun);
		await fixture.out(one, null);
		await assertStages([before, after], ["REPLACED", "ACCEPTED"]);
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
		await assertStages([good], ["ACCEPTED"]);
		await fixture.out(target, good.backrun);
		assert.equal((await fixture.blockFrom(target))[1], good.backrun.hash);
	});

	it("with the same bid again keeps it, and it may be cancelled", async () => {
		const target = await fixture.target();
		const once = await place(target, 9n);
		const again = await once.bidder.bid(target, once.backrun, { uuid: "one" });
		assert.equal(again, once.hash);
		await assertStages([once], ["ACCEPTED"]);
		await once.bidder.cancel("one");
		await fixture.out(target, null);
		await assertStages([once], ["CANCELLED"]);
		assert.deepEqual(await fixture.blockFrom(target), [target.hash]);
		assert.equal((await fixture.status(target)).backruns, 1, "it counts once, though taken back");
	});
});

it("of two targets' bids with one nonce the builder keeps the higher; the other target gets its next best", async () => {
	const [one, two] = [await fixture.target(), await fixture.target()];
	const bidder = await fixture.bidder();
	const low = await fixture.offer(one, 10n * SHARE, { bidder });
	const high = await fixture.offer(two, 20n * SHARE, { bidder });
	const next = await fixture.offer(one, 5n * SHARE);
	await fixture.out(one, [low.backrun, next.backrun]);
	await fixture.out(two, high.backrun);
	await fixture.system.nextBlock();
	const [oneAt = -9, nextAt, twoAt = -9, highAt] = await fixture.indices(
		...[one, next.backrun, two, high.backrun],
	);
	assert.deepEqual([nextAt, highAt], [oneAt + 1, twoAt + 1]);
	assert.equal(await fixture.receipt(low.backrun), null);
	await assertStages([low, next, high], ["LOST", "INCLUDED", "INCLUDED"]);
	assert.equal((await low.bidder.told(low.hash, "LOST")).paid, String(5n * SHARE));
});

describe("a slot", () => {
	it("is a sender's once, and a network address's once, but not a contract's", async () => {
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
		const all = [best, sameContract, sameAddress, sameSender, other];
		await fixture.out(target, [best.backrun, sameContract.backrun, other.backrun]);
		await assertStages(all, Array(5).fill("ACCEPTED"));
		await fixture.system.nextBlock();
		await assertStages(all, ["INCLUDED", "LOST", "NOT_PLACED", "NOT_PLACED", "LOST"]);
	});

	it("among a client's equal bids is the earlier's", async () => {
		const target = await fixture.target();
		const first = await place(target, 7n);
		const twin = Object.assign(await fixture.bidder(), { from: first.bidder.from });
		const second = await place(target, 7n, { bidder: twin, uuid: "two" });
		const probe = await place(target, 1n);
		await fixture.out(target, [first.backrun, probe.backrun]);
		await first.bidder.cancel("one");
		await fixture.out(target, [second.backrun, probe.backrun]);
		await fixture.system.nextBlock();
		await assertStages([first, second, probe], ["CANCELLED", "INCLUDED", "LOST"]);
	});

	it("goes to the highest bid, where there are more bids than slots; lots are drawn among the others, whatever they bid", async () => {
		const target = await fixture.target();
		const others = await Promise.all([1n, 2n, 3n, 4n, 5n, 6n].map((shares) => placeApart(target, shares)));
		const best = await placeApart(target, 9n);
		await fixture.holds(target, best.backrun);
		await until("every slot is taken", () => live(target).length === 1 + SLOTS);
		assert.deepEqual((await fixture.blockFrom(target)).slice(0, 2), [target.hash, best.backrun.hash]);
		await assertStages([best], ["INCLUDED"]);
		const stages = [...(await fixture.stagesOf(others))].sort();
		// Lots move when a higher bid comes; a bid that had a slot before was with the builder all the
		// same.
		const lost = stages.filter((stage) => stage === "LOST").length;
		assert.ok(lost >= SLOTS - 1 && lost <= others.length, stages.join());
		assert.ok(
			stages.every((stage) => stage === "LOST" || stage === "NOT_PLACED"),
			stages.join(),
		);
	});
});

it("a bidder that pays one wei instead of its bid is notified, and may bid on", async () => {
	const { system } = fixture;
	const cheat = await fixture.bidder();
	const to = await fixture.placeCode(PAYS_LESS_AFTER_TIME);
	const target = await fixture.target();
	// It pays one wei in a block that comes a second later than the relay counts on.
	const head = (await system.chain.rpc("eth_getBlockByNumber", ["latest", false])) as { timestamp: string };
	const data = word(Number(head.timestamp) + BUILDER_SLOT_SECONDS - 1);
	const short = await fixture.offerOut(target, 50n * SHARE, { bidder: cheat, to, data });
	await system.nextBlock();
	const { bid, paid } = await cheat.told(short.hash, "INCLUDED");
	assert.deepEqual([bid, paid], [String(50n * SHARE), "1"]);
	const metrics = await until("it is counted", async () => {
		const text = await metricsOf(system.core.url);
		return /^relay_bids_in_blocks_total\{fact="short"\} 1$/m.test(text) && text;
	});
	const ether = (of: string) =>
		Number(new RegExp(`^relay_bids_in_blocks_ether_total\\{of="${of}"\\} (\\S+)$`, "m").exec(metrics)?.[1]);
	assert.ok(ether("claimed") - ether("paid") > 0.049, "what it owes");
	cheat.nonce += 1;
	await fixture.offerOut(await fixture.target(), SHARE, { bidder: cheat });
});

it("a landed bid gives its bidder a slot among any number of higher bids, also after a restart, until its block leaves the chain", async () => {
	const { system } = fixture;
	const bidder = await fixture.bidder();
	const landed = await fixture.offerOut(await fixture.target(), SHARE, { bidder });
	const block = await system.nextBlock();
	const hasRecord = async ({ hash }: Placed, blockNumber: number) => {
		const params = [{ bundleHash: hash, blockNumber: `0x${blockNumber.toString(16)}` }];
		const told = (await bidder.call("flashbots_getBundleStatsV2", params)) as { isHighPriority: boolean };
		return told.isHighPriority;
	};
	await until("its record", () => hasRecord(landed, block));
	bidder.nonce += 1;

	await system.restart();
	const target = await fixture.target();
	for (let shares = 2n; shares < 12n; shares += 1n) await placeApart(target, shares);
	const again = await placeApart(target, 1n, { bidder });
	await fixture.holds(target, again.backrun);
	assert.equal(await hasRecord(again, block + 1), true);

	const release = system.node?.hold();
	await system.chain.rpc("anvil_reorg", [1, []]).finally(release);
	await until("the record is gone", async () => !(await hasRecord(again, block + 1)));
});
