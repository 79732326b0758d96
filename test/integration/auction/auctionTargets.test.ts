// Bids whose target is replaced, cancelled, held, behind the sender's other transactions, or
// pending for more than one block: the reports to builders, bidders and searchers, and the contents
// of the block.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { PAYS_IF_OPEN, word } from "../../support/auctionContracts.ts";
import {
	type AuctionFixture,
	type Bidder,
	bundleOf,
	type Placed,
	startAuction,
	type Target,
} from "../../support/bidder.ts";
import { EMITTER } from "../../support/biddingFixture.ts";
import { FeedClient } from "../../support/feeds.ts";
import { sized } from "../../support/length.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";
import { cancelBy, NEVER_SEEN } from "../../support/userFixtures.ts";

const NOT_FOUND = "-32000 target transaction not found";
const SOFT = "/noreverts?softCancellations=true";
const BUMPED = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const LIFE_BLOCKS = 8;
/**
 * With calldata it sets slot 0 to the first word; without, it emits an event while slot 0 is not
 * zero, and reverts while it is. CALLDATASIZE JUMPI, SLOAD(0) JUMPI, REVERT, LOG0 STOP, SSTORE(0,
 * CALLDATALOAD(0)) STOP
 */
const EMITS_IF_OPEN = "0x366011575f54600c575f5ffd5b5f5fa0005b5f355f5500";

let fixture: AuctionFixture;
let feed: FeedClient;
let pending: string;
before(async () => {
	fixture = await startAuction({
		builders: [
			{ name: "dev" },
			{ name: "byEndpoint", cancel: "endpoint" },
			{ name: "byEmpty", cancel: "empty" },
			{ name: "share", dialect: "mev-share" },
		],
		env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
	});
	feed = await FeedClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`);
	pending = await feed.subscribe("service_partialPendingTransactions");
});
after(async () => {
	feed.close();
	await fixture.system.stop();
});

/** A bid of 10 gwei that every builder has. */
function bidOn(target: Target): Promise<Placed> {
	return fixture.offerOut(target, 10n * GWEI, { uuid: "one" });
}

/**
 * Asserts that the bids behind `target` are cancelled at the builders, and that none would put any
 * of `txs` into a block.
 */
async function withdrawn(target: Signed, ...txs: readonly Signed[]): Promise<void> {
	const { builders } = fixture.system;
	for (const builder of builders) await fixture.out(target, null, builder);
	await until("nothing of it in the builders' books", () =>
		txs.every((tx) => builders.every((builder) => fixture.liveOrders(builder, tx) === 0)),
	);
}

/** `target` is in the next block, and `backrun` right behind it. */
async function assertWins(target: Signed, backrun: Signed): Promise<void> {
	assert.deepEqual((await fixture.blockFrom(target)).slice(0, 2), [target.hash, backrun.hash]);
}

/** The answers to `bidder` when it bids on `target` again, or simulates behind it. */
async function asked(bidder: Bidder, hash: string, backrun: Signed): Promise<readonly string[]> {
	const head = await fixture.head();
	const hex = (block: number) => `0x${block.toString(16)}`;
	const bundle = { txs: [hash, backrun.raw] };
	const share = {
		version: "v0.1",
		inclusion: { block: hex(head + 1) },
		body: [{ hash }, { tx: backrun.raw, canRevert: false }],
	};
	const simulation = { ...bundle, blockNumber: hex(head + 1), stateBlockNumber: hex(head) };
	const calls = { eth_sendBundle: bundle, mev_sendBundle: share, eth_callMany: simulation };
	return Promise.all(
		Object.entries(calls).map(([method, param]) =>
			bidder.call(method, [param]).then(
				(result) => JSON.stringify(result),
				(thrown: Error) => thrown.message,
			),
		),
	);
}

/** How a user ends a target; what takes its nonce, where something does. */
interface Ending {
	readonly name: string;
	readonly path: string;
	end(target: Target): Promise<Signed | null>;
}

const ENDINGS: readonly Ending[] = [
	{
		name: "cancelled by its hash",
		path: SOFT,
		async end(target) {
			assert.equal(await cancelBy(fixture.system, target), true);
			return null;
		},
	},
	{
		name: "cancelled softly",
		path: SOFT,
		async end({ user }) {
			await fixture.submit("/fast", user.sign({ to: user.address }));
			return null;
		},
	},
	...sized(
		[["/fast", "/nochecks"]],
		[
			["/fast", "/nochecks"],
			["/noreverts", "/fullprivacy"],
			["/maxbackruns", "/noreverts"],
		],
	).map(
		([path = "", by = ""]): Ending => ({
			name: `on ${path}, replaced by a transfer to oneself on ${by}`,
			path,
			async end({ user }) {
				const tx = user.sign({ to: user.address, ...BUMPED });
				await fixture.submit(by, tx);
				await fixture.waitUntilSent(tx, { builders: ["dev"] });
				return tx;
			},
		}),
	),
];

describe("a target that has ended", () => {
	for (const { name, path, end } of ENDINGS) {
		it(`${name}: its bids end, builders get cancels, and it then looks like an unknown hash`, async () => {
			const target = await fixture.target(path);
			const lost = await fixture.offer(target, 5n * GWEI);
			const best = await fixture.offer(target, 20n * GWEI);
			for (const builder of fixture.system.builders)
				await fixture.out(target, [lost.backrun, best.backrun], builder);
			const ending = await end(target);
			assert.deepEqual(await fixture.stagesOf([best, lost]), ["ACCEPTED", "ACCEPTED"]);
			await withdrawn(target, target, best.backrun, lost.backrun);
			for (const { bidder, backrun } of [best, lost])
				for (const hash of [NEVER_SEEN, target.hash])
					assert.deepEqual(await asked(bidder, hash, backrun), [NOT_FOUND, NOT_FOUND, NOT_FOUND]);
			await fixture.system.nextBlock();
			assert.deepEqual(await fixture.indices(target, best.backrun), [undefined, undefined]);
			if (ending === null) assert.equal((await fixture.status(target)).stage, "CANCELLED");
			else assert.ok(await fixture.receipt(ending));
			assert.equal(feed.times(pending, target.hash), 1);
			const told = await fixture.stagesOf([best, lost]);
			assert.deepEqual(told, ["TARGET_NOT_MINED", "TARGET_NOT_MINED"]);
		});
	}

	for (const { name, end } of ENDINGS.slice(0, sized(1, 2))) {
		it(`${name}: a new one with the same nonce is shared and takes its own bids`, async () => {
			const target = await fixture.target(SOFT);
			const old = await bidOn(target);
			await end(target);
			const fresh = { ...target.user.sign({ to: EMITTER, value: 2n }), user: target.user };
			await fixture.submit("/fast", fresh);
			await fixture.open(fresh);
			await feed.shown(pending, fresh.hash);
			assert.equal((await fixture.status(fresh)).backruns, 0, "bids on the old one are void");
			const best = await bidOn(fresh);
			await assertWins(fresh, best.backrun);
			await best.bidder.reaches(best.hash, "INCLUDED");
			assert.equal(await fixture.receipt(old.backrun), null);
		});
	}

	it("replaced by its sender ends its bids; the same backrun may be bid on the new one", async () => {
		const target = await fixture.target();
		const { bidder, backrun, hash } = await bidOn(target);
		const fresh = { ...target.user.sign({ to: EMITTER, ...BUMPED }), user: target.user };
		await fixture.submit("/fast", fresh);
		await fixture.open(fresh);
		await withdrawn(target, target);
		assert.deepEqual(await bidder.tryBid(target, backrun), { error: NOT_FOUND });
		await bidder.bid(fresh, backrun, { uuid: "two" });
		await fixture.out(fresh, backrun);
		await assertWins(fresh, backrun);
		assert.equal(await fixture.receipt(target), null);
		assert.deepEqual(await bidder.stages(hash), ["TARGET_NOT_MINED transactionMined"]);
	});

	it("expired, ends the bids for later blocks", async () => {
		const target = await fixture.target();
		const block = (await fixture.head()) + LIFE_BLOCKS + 1;
		const bid = await fixture.offer(target, GWEI, { block });
		for (let i = 0; i < LIFE_BLOCKS; i++) await fixture.passBlock();
		await fixture.reaches(target, "EXPIRED");
		await fixture.passBlock();
		assert.deepEqual(await fixture.stagesOf([bid]), ["TARGET_NOT_MINED"]);
		assert.deepEqual(fixture.backrunOrders(target), []);
	});

	it("mined by somebody else, without the bid, ends it", async () => {
		const target = await fixture.target();
		const bid = await bidOn(target);
		await fixture.publish(target);
		await fixture.passBlock();
		assert.deepEqual(await fixture.stagesOf([bid]), ["LOST"]);
		assert.equal((await fixture.status(target)).refund, 0);
	});

	it("whose nonce another transaction has used ends the bids for later blocks too", async () => {
		const target = await fixture.target();
		const bid = await fixture.offer(target, GWEI, { block: (await fixture.head()) + 2 });
		await fixture.publish(target.user.sign({ ...BUMPED, value: 1n }));
		await fixture.passBlock();
		await fixture.reaches(target, "DROPPED");
		await fixture.passBlock();
		assert.deepEqual(await fixture.stagesOf([bid]), ["TARGET_NOT_MINED"]);
	});

	it("cancelled while bids arrive takes no later bids, and no builder ever has a backrun without it", async () => {
		const target = await fixture.target("/maxbackruns");
		const searchers = await Promise.all(Array.from({ length: 8 }, () => fixture.bidder()));
		const backruns = searchers.map((bidder, i) => bidder.backrun(BigInt(i + 1) * GWEI));
		const bids = searchers.map((bidder, i) => bidder.tryBid(target, backruns[i] ?? target));
		assert.equal(await cancelBy(fixture.system, target), true);
		const answers = await Promise.all(bids);
		for (const answer of answers) {
			if ("error" in answer) assert.equal(answer.error, NOT_FOUND);
		}
		await withdrawn(target, target, ...backruns);
		await fixture.system.nextBlock();
		for (const [i, answer] of answers.entries())
			if ("hash" in answer) assert.deepEqual(await searchers[i]?.stages(answer.hash), ["TARGET_NOT_MINED"]);
		for (const tx of [target, ...backruns]) assert.equal(await fixture.receipt(tx), null);
	});
});

describe("a target after its sender's lower nonces", () => {
	/** A user's contract, opened by nonce 0; and a target of his with nonce 1. */
	async function behind(options: { readonly path: string; readonly to?: string }): Promise<{
		readonly user: Actor;
		readonly gate: string;
		readonly opening: Signed;
		readonly target: Target;
	}> {
		const user = await fixture.actor();
		const gate = await fixture.placeCode(options.to ?? PAYS_IF_OPEN);
		const opening = user.sign({ nonce: 0, to: gate, data: word(1) });
		const tx = user.sign({ nonce: 1, to: options.to === undefined ? EMITTER : gate });
		// Shared, too: bids are taken behind what searchers see alone.
		await fixture.submit("/maxbackruns", opening);
		await fixture.submit(options.path, tx);
		await fixture.open(tx);
		return { user, gate, opening, target: { ...tx, user } };
	}

	/** The next block holds `first`, and behind it `target` with `backrun` right behind it. */
	async function assertOrder(first: Signed, target: Signed, backrun: Signed): Promise<void> {
		const hashes = await fixture.blockFrom(first);
		assert.equal(hashes[0], first.hash);
		const at = hashes.indexOf(target.hash);
		assert.deepEqual(hashes.slice(at, at + 2), [target.hash, backrun.hash]);
	}

	it("is bid on in the state after these, and follows them in the block", async () => {
		const { gate, opening, target } = await behind({ path: "/fast" });
		const { backrun } = await fixture.offerOut(target, 5n * GWEI, { to: gate });
		await assertOrder(opening, target, backrun);
		await fixture.event(target, "refunded", ({ paid }) => paid !== "0");
	});

	it("has its bids simulated again when one of these is replaced: failing bids are withdrawn, others stay", async () => {
		const { user, gate, target } = await behind({ path: "/fast" });
		const best = await fixture.offer(target, 50n * GWEI, { to: gate });
		const next = await fixture.offer(target, 5n * GWEI);
		await fixture.out(target, [best.backrun, next.backrun]);
		const before = fixture.backrunOrders(target).length;
		const other = user.sign({ nonce: 0, ...BUMPED });
		await fixture.submit("/maxbackruns", other);
		await until("the good one is sent again", () =>
			fixture.backrunOrders(target).some(({ backrun }, i) => i >= before && backrun === next.backrun.raw),
		);
		await fixture.out(target, next.backrun);
		assert.deepEqual(await fixture.stagesOf([best, next]), ["ACCEPTED", "ACCEPTED"]);
		await assertOrder(other, target, next.backrun);
		assert.equal(await fixture.receipt(best.backrun), null);
		assert.deepEqual(await fixture.stagesOf([best, next]), ["LOST reverted", "INCLUDED"]);
	});

	it("has a bid that fails in it cancelled like any other, so that its owner is not told early that it had failed", async () => {
		const { user, gate, target } = await behind({ path: "/fast" });
		const failing = await fixture.offerOut(target, 50n * GWEI, { to: gate, uuid: "mine" });
		await fixture.submit("/maxbackruns", user.sign({ nonce: 0, ...BUMPED }));
		await fixture.out(target, null);
		// A bid that comes later is simulated later.
		await fixture.offerOut(target, GWEI);
		await failing.bidder.cancel("mine");
		assert.deepEqual(await fixture.stagesOf([failing]), ["CANCELLED"]);
		await fixture.system.nextBlock();
	});

	it("that stops passing on /noreverts within the slot has its bid taken back, until it passes again", async () => {
		const { user, gate, target } = await behind({ path: "/noreverts", to: EMITS_IF_OPEN });
		const now = await bidOn(target);
		const later = await fixture.offer(target, 3n * GWEI, { block: (await fixture.head()) + 3 });
		const other = user.sign({ nonce: 0, ...BUMPED });
		await fixture.submit("/maxbackruns", other);
		await fixture.reaches(target, "SIMULATION_FAILED");
		await fixture.waitUntilSent(other);
		await withdrawn(target, target);
		assert.deepEqual(await fixture.stagesOf([now]), ["ACCEPTED"]);
		const { bidder } = now;
		assert.deepEqual(await bidder.tryBid(target, bidder.backrun(20n * GWEI)), { error: NOT_FOUND });
		await fixture.system.nextBlock();
		assert.deepEqual(await fixture.indices(target, now.backrun), [undefined, undefined]);
		assert.deepEqual(await fixture.stagesOf([now]), ["TARGET_NOT_MINED"]);

		const keeper = await fixture.actor();
		await fixture.publish(keeper.sign({ to: gate, data: word(1) }));
		await fixture.passBlock();
		await fixture.open(target);
		await fixture.out(target, later.backrun);
		await assertWins(target, later.backrun);
		assert.equal((await later.bidder.stages(later.hash)).at(-1), "INCLUDED");
	});

	it("with a nonce gap, from the start or by a cancel, takes no bids until the gap is closed", async () => {
		const opening = await fixture.target("/maxbackruns");
		const { user } = opening;
		const tx = user.sign({ nonce: 1, to: EMITTER });
		await fixture.submit("/maxbackruns", tx);
		await fixture.open(tx);
		assert.equal(await cancelBy(fixture.system, opening), true);
		await fixture.reaches(tx, "QUEUED");
		const other = await fixture.actor();
		const gapped = other.sign({ nonce: 1, to: EMITTER });
		await fixture.submit("/maxbackruns", gapped);
		await until("shared", async () => (await fixture.status(gapped)).shared);
		const bidder = await fixture.bidder();
		const backrun = bidder.backrun(GWEI);
		for (const target of [tx, gapped])
			assert.deepEqual(await bidder.tryBid(target, backrun), { error: NOT_FOUND });
		await fixture.submit("/fast", user.sign({ value: 1n }));
		await fixture.reaches(tx, "BROADCAST");
		await fixture.submit("/maxbackruns", other.sign({ nonce: 0 }));
		await fixture.open(gapped);
		assert.equal(await bidder.bid(gapped, backrun), bundleOf(gapped, backrun));
		await fixture.out(gapped, backrun);
		await assertWins(gapped, backrun);
	});
});
