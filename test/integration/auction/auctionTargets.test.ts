// Tests bids whose target is replaced, cancelled, held, behind the sender's other transactions, or pending for more
// than one block: what builders and bidders are told, and what the block holds.

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
import { EMITTER } from "../../support/biddingFixture.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";

const BUMPED = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const LIFE_BLOCKS = 8;
/**
 * With calldata it sets slot 0 to the first word; without, it emits an event while slot 0 is not zero, and reverts
 * while it is. CALLDATASIZE JUMPI, SLOAD(0) JUMPI, REVERT, LOG0 STOP, SSTORE(0, CALLDATALOAD(0)) STOP
 */
const EMITS_IF_OPEN = "0x366011575f54600c575f5ffd5b5f5fa0005b5f355f5500";

let fixture: AuctionFixture;
before(async () => {
	fixture = await startAuction({
		builders: [{ name: "dev" }, { name: "other", cancel: "endpoint" }],
		env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
	});
});
after(() => fixture.system.stop());

/** A bid of 10 gwei by a new searcher that is out at both builders. */
async function bidOn(target: Target): Promise<{ bidder: Bidder; backrun: Signed; hash: string }> {
	const bidder = await fixture.bidder();
	const backrun = bidder.backrun(10n * GWEI);
	const hash = await bidder.bid(target, backrun, { uuid: "one" });
	for (const builder of fixture.system.builders) await fixture.out(target, backrun, builder);
	return { bidder, backrun, hash };
}

/** Both builders are told to forget what is behind `target`. */
async function withdrawn(target: Signed): Promise<void> {
	for (const builder of fixture.system.builders) await fixture.out(target, null, builder);
}

/** Orders with `tx` that the builder that builds would still put into a block. */
function live(tx: Signed): number {
	return fixture.live(fixture.system.builder, tx);
}

async function indices(...txs: readonly Signed[]): Promise<readonly (number | undefined)[]> {
	return Promise.all(txs.map(async (tx) => (await fixture.receipt(tx))?.index));
}

describe("a target that is no more", () => {
	it("replaced by its sender takes its bids along; the new one takes bids of its own", async () => {
		const target = await fixture.target();
		const { bidder, backrun, hash } = await bidOn(target);
		const loser = await fixture.bidder();
		const lost = await loser.bid(target, loser.backrun(GWEI));
		const fresh = { ...target.user.sign({ to: EMITTER, ...BUMPED }), user: target.user };
		await fixture.submit("/fast", fresh);
		await fixture.open(fresh);
		await withdrawn(target);
		assert.deepEqual(await bidder.stages(hash), ["DROPPED targetGone"]);
		assert.deepEqual(await loser.stages(lost), ["DROPPED targetGone"]);
		await until("nothing of the old one alive", () => live(target) === 0);
		assert.deepEqual(await bidder.tryBid(target, backrun), { error: "-32000 target transaction not found" });
		await bidder.bid(fresh, backrun, { uuid: "one" });
		await fixture.out(fresh, backrun);
		await fixture.system.nextBlock();
		const [at, behind] = await indices(fresh, backrun);
		assert.equal(behind, (at ?? 0) + 1);
		assert.equal(await fixture.receipt(target), null);
	});

	for (const [path, by] of [
		["/fast", "/nochecks"],
		["/noreverts", "/fullprivacy"],
		["/maxbackruns", "/noreverts"],
	] as const) {
		it(`on ${path}, ended by a transfer to oneself on ${by}, takes its bids along`, async () => {
			const target = await fixture.target(path);
			const { bidder, backrun, hash } = await bidOn(target);
			const ending = target.user.sign({ to: target.user.address, ...BUMPED });
			await fixture.submit(by, ending);
			await withdrawn(target);
			assert.deepEqual(await bidder.stages(hash), ["DROPPED targetGone"]);
			await until("nothing of it alive", () => live(target) === 0);
			await fixture.sent(ending, { builders: ["dev"] });
			await fixture.system.nextBlock();
			assert.deepEqual(await indices(target, backrun), [undefined, undefined]);
			assert.ok(await fixture.receipt(ending));
			assert.deepEqual(await bidder.stages(hash), ["DROPPED targetGone"], "nothing is told behind its end");
		});
	}

	it("expired, ends the bids for later blocks", async () => {
		const target = await fixture.target();
		const bidder = await fixture.bidder();
		const block = (await fixture.head()) + LIFE_BLOCKS + 1;
		const hash = await bidder.bid(target, bidder.backrun(GWEI), { block });
		for (let i = 0; i < LIFE_BLOCKS; i++) await fixture.passBlock();
		await fixture.reaches(target, "EXPIRED");
		assert.deepEqual(await bidder.stages(hash), ["DROPPED targetGone"]);
		assert.deepEqual(fixture.backrunOrders(target), []);
	});

	it("mined by somebody else, without the bid, ends it", async () => {
		const target = await fixture.target();
		const { bidder, hash } = await bidOn(target);
		await fixture.publish(target);
		await fixture.passBlock();
		assert.deepEqual(await bidder.stages(hash), ["NOT_INCLUDED notChosen"]);
		assert.equal((await fixture.status(target)).refund, 0);
	});

	it("whose nonce another transaction has used ends the bids for later blocks too", async () => {
		const target = await fixture.target();
		const block = (await fixture.head()) + 2;
		const bidder = await fixture.bidder();
		const hash = await bidder.bid(target, bidder.backrun(GWEI), { block });
		await fixture.publish(target.user.sign({ ...BUMPED, value: 1n }));
		await fixture.passBlock();
		await fixture.reaches(target, "DROPPED");
		assert.deepEqual(await bidder.stages(hash), ["DROPPED targetGone"]);
	});
});

describe("a target behind its sender's own lower nonces", () => {
	/** A user's contract, opened by nonce 0; and a target of his with nonce 1. */
	async function behind(options: { readonly path: string; readonly to?: string }): Promise<{
		readonly user: Actor;
		readonly gate: string;
		readonly opening: Signed;
		readonly target: Target;
	}> {
		const user = await fixture.actor();
		const gate = await fixture.place(options.to ?? PAYS_IF_OPEN);
		const opening = user.sign({ nonce: 0, to: gate, data: word(1) });
		const tx = user.sign({ nonce: 1, to: options.to === undefined ? EMITTER : gate });
		// Shared, too: bids are taken behind what searchers see alone.
		await fixture.submit("/maxbackruns", opening);
		await fixture.submit(options.path, tx);
		await fixture.open(tx);
		return { user, gate, opening, target: { ...tx, user } };
	}

	it("is bid on in the state that these leave, and stands behind them in the block", async () => {
		const { gate, opening, target } = await behind({ path: "/fast" });
		const bidder = await fixture.bidder();
		const backrun = bidder.backrun(5n * GWEI, { to: gate });
		await bidder.bid(target, backrun);
		await fixture.out(target, backrun);
		await fixture.system.nextBlock();
		const [first, second, third] = await indices(opening, target, backrun);
		assert.ok(first !== undefined && second !== undefined && first < second);
		assert.equal(third, second + 1);
		await fixture.event(target, "refunded", ({ paid }) => paid !== "0");
	});

	it("has its bids tried again when one of them is replaced: what fails is taken back, what passes stays", async () => {
		const { user, gate, target } = await behind({ path: "/fast" });
		const [gated, free] = [await fixture.bidder(), await fixture.bidder()];
		const best = gated.backrun(50n * GWEI, { to: gate });
		const next = free.backrun(5n * GWEI);
		const bestHash = await gated.bid(target, best);
		const nextHash = await free.bid(target, next);
		await fixture.out(target, best);
		const other = user.sign({ nonce: 0, ...BUMPED });
		await fixture.submit("/maxbackruns", other);
		await gated.reaches(bestHash, "DROPPED reverted");
		await fixture.out(target, next);
		assert.deepEqual(await free.stages(nextHash), ["BEST"]);
		await fixture.system.nextBlock();
		const [first, second, third] = await indices(other, target, next);
		assert.ok(first !== undefined && second !== undefined && first < second);
		assert.equal(third, second + 1);
		assert.equal(await fixture.receipt(best), null);
	});

	it("that stops passing on /noreverts within the slot has its bid taken back, until it passes again", async () => {
		const { user, gate, target } = await behind({ path: "/noreverts", to: EMITS_IF_OPEN });
		const { bidder, backrun, hash } = await bidOn(target);
		const ahead = await fixture.bidder();
		const later = ahead.backrun(3n * GWEI);
		const laterHash = await ahead.bid(target, later, { block: (await fixture.head()) + 3 });
		const other = user.sign({ nonce: 0, ...BUMPED });
		await fixture.submit("/maxbackruns", other);
		await fixture.reaches(target, "SIMULATION_FAILED");
		await withdrawn(target);
		await until("nothing of it alive", () => live(target) === 0);
		const held = (await bidder.stages(hash))[0] ?? "";
		assert.match(held, /^(ACCEPTED|DROPPED targetGone)$/, "nothing is with the builders");
		assert.deepEqual(await bidder.tryBid(target, bidder.backrun(20n * GWEI)), {
			error: "-32000 target transaction not found",
		});
		await fixture.system.nextBlock();
		assert.deepEqual(await indices(target, backrun), [undefined, undefined]);
		assert.match((await bidder.stages(hash))[0] ?? "", /^(NOT_INCLUDED|DROPPED) target(NotIncluded|Gone)$/);

		const keeper = await fixture.actor();
		await fixture.publish(keeper.sign({ to: gate, data: word(1) }));
		await fixture.passBlock();
		await fixture.open(target);
		await fixture.out(target, later);
		await fixture.system.nextBlock();
		const [at, behindIt] = await indices(target, later);
		assert.equal(behindIt, (at ?? 0) + 1);
		assert.deepEqual((await ahead.stages(laterHash)).at(-1), "INCLUDED");
	});

	it("with a nonce gap takes no bids, until the gap is closed", async () => {
		const user = await fixture.actor();
		const tx = user.sign({ nonce: 1, to: EMITTER });
		await fixture.submit("/maxbackruns", tx);
		await until("shared", async () => (await fixture.status(tx)).shared);
		const bidder = await fixture.bidder();
		const backrun = bidder.backrun(GWEI);
		assert.deepEqual(await bidder.tryBid(tx, backrun), { error: "-32000 target transaction not found" });
		await fixture.submit("/maxbackruns", user.sign({ nonce: 0 }));
		await fixture.open(tx);
		const hash = await bidder.bid(tx, backrun);
		assert.equal(hash, bundleOf(tx, backrun));
		await fixture.out(tx, backrun);
		await fixture.system.nextBlock();
		const [at, behindIt] = await indices(tx, backrun);
		assert.equal(behindIt, (at ?? 0) + 1);
	});
});
