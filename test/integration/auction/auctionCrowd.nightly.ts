// Two hundred searchers and one target after another: in every block the highest valid bid stands
// right behind its target, then its refund, and nothing of the others; also when the best one is
// withdrawn in the last moment, or its backrun stops being valid.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { PAYS_IF_OPEN, word } from "../../support/auctionContracts.ts";
import {
	type AuctionFixture,
	type Bidder,
	bundleOf,
	startAuction,
	type Target,
} from "../../support/bidder.ts";
import { MISER, REVERTER } from "../../support/biddingFixture.ts";
import { GWEI, type Signed } from "../../support/relayFixture.ts";
import { SeededRandom } from "../../support/seededRandom.ts";

const SEARCHERS = 200;
/** Number of searchers that use a websocket. */
const CONNECTED = 20;
/** Every so many searchers one bids in each of the ways of {@link FAULTS}, others each time. */
const FAULTY_EVERY = 15;
const TARGETS = Number(process.env.CROWD_TARGETS ?? 6);
const PERCENT = 90n;
/** How often one bids again where the node did not answer in time. */
const MAX_AGAIN = 5;
const SEED = Number(process.env.CROWD_SEED ?? Date.now() % 2 ** 31);

/** Bids that look higher than all others but are invalid, with the words of each refusal. */
const FAULTS: readonly {
	readonly words: RegExp;
	readonly sign: (bidder: Bidder, value: bigint) => Signed;
}[] = [
	{
		words: /^-32000 backrun reverted/,
		sign: (bidder, value) => bidder.backrun(value, { to: REVERTER }),
	},
	{
		words: /^-32000 backrun pays nothing to the fee recipient 0x[0-9a-f]{40}$/,
		sign: (bidder, value) => bidder.backrun(value, { to: MISER }),
	},
	{
		words: /^-32000 nonce too high: next nonce \d+, tx nonce \d+$/,
		sign: (bidder, value) => bidder.backrun(value, { nonce: bidder.nonce + 1 }),
	},
];

/** A bid of one of the crowd. */
interface CrowdBid {
	readonly bidder: Bidder;
	readonly backrun: Signed;
	readonly value: bigint;
	readonly uuid: string;
	/** The words that it is refused with; null: it is valid. */
	readonly words: RegExp | null;
}

const random = new SeededRandom(SEED);
let fixture: AuctionFixture;
const crowd: Bidder[] = [];
let round = 0;

before(async () => {
	fixture = await startAuction();
	for (let i = 0; i < SEARCHERS; i++) crowd.push(await fixture.bidder());
	await Promise.all(crowd.slice(0, CONNECTED).map((bidder) => bidder.connect()));
});
after(async () => {
	for (const bidder of crowd) bidder.close();
	await fixture.system.stop();
});

/** One bid of each searcher, in no order; `faulty`: some of them are invalid. */
function bidsOfAll(faulty: boolean): readonly CrowdBid[] {
	round += 1;
	const bids = crowd.map((bidder, i): CrowdBid => {
		const value = 1_000n * GWEI + BigInt(random.below(2 ** 31)) * 500_000n + BigInt(i);
		const uuid = `bid ${round}`;
		const fault = faulty ? FAULTS[(i + round) % FAULTY_EVERY] : undefined;
		if (fault === undefined) {
			const backrun = bidder.backrun(value);
			return { bidder, backrun, value, uuid, words: null };
		}
		const higher = 2n ** 51n + value;
		return { bidder, backrun: fault.sign(bidder, higher), value: higher, uuid, words: fault.words };
	});
	return bids
		.map((bid) => ({ bid, at: random.below(2 ** 31) }))
		.sort((a, b) => a.at - b.at)
		.map(({ bid }) => bid);
}

/** Sends all bids at once and checks each answer. Returns the valid ones, the highest first. */
async function bidAll(
	target: Target,
	bids: readonly CrowdBid[],
	block?: number,
): Promise<readonly CrowdBid[]> {
	await Promise.all(
		bids.map(async ({ bidder, backrun, uuid, words }) => {
			const options = { uuid, ...(block === undefined ? {} : { block }) };
			let answer = await bidder.tryBid(target, backrun, options);
			// A node that is too busy has judged nothing, and nothing was kept.
			for (let i = 0; i < MAX_AGAIN && "error" in answer && answer.error.startsWith("-32603"); i++)
				answer = await bidder.tryBid(target, backrun, options);
			if (words === null) assert.ok("hash" in answer, JSON.stringify(answer));
			else assert.match("error" in answer ? answer.error : "accepted", words);
		}),
	);
	return bids.filter(({ words }) => words === null).sort((a, b) => (a.value < b.value ? 1 : -1));
}

/**
 * Asserts that the next block holds the target, `best` behind it and its refund, and nothing else.
 * The builder had `gone` before.
 */
async function assertWins(target: Target, best: CrowdBid, gone?: CrowdBid): Promise<void> {
	await fixture.holds(target, best.backrun, gone?.backrun);
	const { transactions, coinbase } = await fixture.block(await fixture.system.nextBlock());
	assert.deepEqual(transactions.map(({ hash }) => hash).slice(0, 2), [target.hash, best.backrun.hash]);
	assert.equal(transactions.length, 3);
	const refund = transactions[2];
	const owed = ((await fixture.brought(best.backrun, best.value)) * PERCENT) / 100n;
	assert.deepEqual([refund?.from, refund?.to, refund?.value], [coinbase, target.user.address, owed]);
	best.bidder.nonce += 1;
}

/** Asserts that only valid bids were sent. Bids of several owners reach a builder in any order. */
function assertValid(target: Target, bids: readonly CrowdBid[]): void {
	for (const { kind, backrun } of fixture.backrunOrders(target)) {
		if (kind === "cancel") continue;
		const bid = bids.find((one) => one.backrun.raw === backrun);
		assert.equal(bid?.words, null, "only valid bids reach a builder");
	}
}

function two(ranked: readonly CrowdBid[]): readonly [CrowdBid, CrowdBid] {
	const [best, next] = ranked;
	assert.ok(best !== undefined && next !== undefined);
	return [best, next];
}

describe(`${SEARCHERS} searchers (CROWD_SEED=${SEED})`, () => {
	it(`bid on each of ${TARGETS} targets, and the highest valid bid is in its block`, async () => {
		for (let i = 0; i < TARGETS; i++) {
			const target = await fixture.target();
			const bids = bidsOfAll(true);
			const ranked = await bidAll(target, bids);
			const [best, next] = two(ranked);
			await fixture.holds(target, next.backrun);
			await assertWins(target, best);
			assertValid(target, bids);
			assert.equal((await fixture.status(target)).backruns, ranked.length);
			const told = await next.bidder.told(bundleOf(target, next.backrun), "LOST");
			assert.equal(told.paid, String(best.value));
		}
	});

	it("cancel the best bid in the last moment, and the next best is in the block", async () => {
		for (let i = 0; i < 2; i++) {
			const target = await fixture.target();
			const [best, next] = two(await bidAll(target, bidsOfAll(true)));
			await fixture.holds(target, best.backrun);
			await best.bidder.cancel(best.uuid);
			await assertWins(target, next, best);
			assert.deepEqual(await best.bidder.stages(bundleOf(target, best.backrun)), ["CANCELLED"]);
		}
	});

	it("lose the best bid to a nonce that is used in public, and the next best is in the block", async () => {
		const target = await fixture.target();
		const bids = bidsOfAll(false);
		const block = (await fixture.head()) + 2;
		const ahead = await bidAll(target, bids, block);
		const [best, next] = two(ahead);
		// For the block before too, which another one makes.
		const now = await best.bidder.bid(target, best.backrun, { uuid: "for now" });
		await fixture.holds(target, best.backrun);
		await fixture.publish(best.bidder.actor.sign({ nonce: best.bidder.nonce }));
		best.bidder.nonce += 1;
		await fixture.passBlock();
		await assertWins(target, next);
		const [first, second] = await best.bidder.stages(now);
		assert.equal(first, "TARGET_NOT_MINED");
		assert.match(second ?? "", /^NOT_PLACED (invalid|notSimulated)$/);
		assert.ok(!sentFor(target, block).includes(best.backrun.raw), "it was never out for the later block");
	});

	it("lose the best bid to a gate that closes, and the next best is in the block", async () => {
		const gate = await fixture.placeCode(PAYS_IF_OPEN);
		const keeper = await fixture.actor();
		const opens = keeper.sign({ nonce: 0, to: gate, data: word(1) });
		await fixture.publish(opens);
		await fixture.passBlock();
		const target = await fixture.target();
		const block = (await fixture.head()) + 2;
		const gated = new Set(crowd.slice(0, 5));
		const open = bidsOfAll(false);
		const bids = open.map((bid) => {
			if (!gated.has(bid.bidder)) return bid;
			const value = bid.value + 2n ** 51n;
			return { ...bid, value, backrun: bid.bidder.backrun(value, { to: gate }) };
		});
		const ranked = await bidAll(target, bids, block);
		const [best] = two(ranked);
		assert.ok(gated.has(best.bidder));
		await fixture.publish(keeper.sign({ nonce: 1, to: gate, data: word(0) }));
		await fixture.passBlock();
		const fallen = ranked.filter(({ bidder }) => gated.has(bidder));
		const still = ranked.find(({ bidder }) => !gated.has(bidder));
		assert.ok(still !== undefined);
		await assertWins(target, still);
		assert.deepEqual(await best.bidder.stages(bundleOf(target, best.backrun)), ["NOT_PLACED reverted"]);
		for (const { backrun } of fallen)
			assert.ok(!sentFor(target, block).includes(backrun.raw), "none was ever out for that block");
	});
});

/** Raw backruns that went out behind `target` for `block`. */
function sentFor(target: Target, block: number): readonly string[] {
	return fixture.backrunOrders(target).flatMap((order) => (order.block === block ? [order.backrun] : []));
}
