// Tests for which blocks and to which builders bids are sent: the next block, later ones and ranges, with the errors
// at their edges, and exactly what each kind of builder gets.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type AuctionFixture, type BackrunOrder, startAuction, type Target } from "../../support/bidder.ts";
import { GWEI, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";

let fixture: AuctionFixture;
before(async () => {
	fixture = await startAuction({
		builders: [
			{ name: "dev" },
			{ name: "share", dialect: "mev-share", maxRefundPercent: 40 },
			{ name: "bare", refund: false },
			{ name: "dropper", dropping: true, maxRefundPercent: 0 },
			{ name: "capped", dropping: true, maxRefundPercent: 75 },
		],
	});
});
after(() => fixture.system.stop());

const quantity = (value: number): string => `0x${value.toString(16)}`;

/** Blocks that `backrun` was sent for behind `target`. */
function blocksOf(target: Signed, backrun: Signed): readonly (number | null)[] {
	return fixture
		.backrunOrders(target)
		.filter((order) => order.backrun === backrun.raw)
		.map(({ block }) => block);
}

/** What the builder with this name was sent behind `target` last. */
function lastOrder(target: Signed, name: string): BackrunOrder | undefined {
	return fixture.backrunOrders(target, fixture.builder(name)).at(-1);
}

async function places(...txs: readonly Signed[]): Promise<readonly (number | undefined)[]> {
	return Promise.all(txs.map(async (tx) => (await fixture.receipt(tx))?.index));
}

describe("the block of a bid", () => {
	it("is the next one where none is named, where the head is, and where it is", async () => {
		const target = await fixture.target();
		const head = await fixture.head();
		for (const block of [undefined, head, head + 1]) {
			const bidder = await fixture.bidder();
			const hash = await bidder.bid(target, bidder.backrun(GWEI), block === undefined ? {} : { block });
			assert.deepEqual(
				(await bidder.blocks(hash)).map(({ blockNumber }) => blockNumber),
				[head + 1],
			);
		}
		await fixture.system.nextBlock();
	});

	it("must be neither in the past nor more than 30 above the head", async () => {
		const target = await fixture.target();
		await fixture.passBlock();
		await fixture.open(target);
		const head = await fixture.head();
		const bidder = await fixture.bidder();
		const bid = (block: number) => bidder.tryBid(target, bidder.backrun(GWEI), { block });
		assert.deepEqual(await bid(head - 1), { error: `-32000 bundle block ${head - 1} is in the past` });
		assert.deepEqual(await bid(0), { error: "-32000 bundle block 0 is in the past" });
		assert.deepEqual(await bid(head + 31), { error: `-32000 bundle block ${head + 31} is too far ahead` });
		const answer = await bid(head + 30);
		assert.ok("hash" in answer, JSON.stringify(answer));
		assert.deepEqual(fixture.backrunOrders(target), []);
		await fixture.system.nextBlock();
	});

	it("may be one ahead: the bid comes into play when it is the next one, and not before", async () => {
		const target = await fixture.target();
		const [early, low] = [await fixture.bidder(), await fixture.bidder()];
		const block = (await fixture.head()) + 3;
		const [best, next] = [early.backrun(90n * GWEI), low.backrun(GWEI)];
		const hash = await early.bid(target, best, { block, uuid: "ahead" });
		const nextHash = await low.bid(target, next);
		await fixture.out(target, next);
		assert.deepEqual(await early.stages(hash), ["ACCEPTED"]);
		assert.deepEqual(await low.stages(nextHash), ["BEST"], "a bid for another block is no rival");
		await fixture.passBlock();
		await fixture.open(target);
		assert.deepEqual(await low.stages(nextHash), ["NOT_INCLUDED targetNotIncluded"]);
		await fixture.passBlock();
		await fixture.out(target, best);
		assert.deepEqual(blocksOf(target, best), [block]);
		assert.deepEqual(blocksOf(target, next), [block - 2]);
		await fixture.system.nextBlock();
		const [at, behind] = await places(target, best);
		assert.equal(behind, (at ?? 0) + 1);
		assert.deepEqual(await early.stages(hash), ["INCLUDED"]);
	});

	it("of a bid under another uuid is another bid of the same backrun", async () => {
		const target = await fixture.target();
		const bidder = await fixture.bidder();
		const backrun = bidder.backrun(GWEI);
		const block = (await fixture.head()) + 1;
		const hash = await bidder.bid(target, backrun, { block, uuid: "now" });
		assert.equal(await bidder.bid(target, backrun, { block: block + 1, uuid: "then" }), hash);
		await fixture.out(target, backrun);
		await bidder.cancel("now");
		await fixture.out(target, null);
		assert.deepEqual(await bidder.stages(hash), ["CANCELLED", "ACCEPTED"]);
		await fixture.passBlock();
		await fixture.out(target, backrun);
		await fixture.system.nextBlock();
		assert.deepEqual(await bidder.stages(hash), ["CANCELLED", "INCLUDED"]);
		assert.equal((await fixture.status(target)).backruns, 1);
	});

	it("may be each of a range by mev_sendBundle, until one holds it", async () => {
		const target = await fixture.target();
		const bidder = await fixture.bidder();
		const backrun = bidder.backrun(7n * GWEI);
		const first = (await fixture.head()) + 2;
		const hash = await bidder.share(target, backrun, { first, last: first + 3 });
		for (const block of [first - 1, first, first + 1]) {
			assert.equal((await fixture.head()) + 1, block);
			if (block >= first) await fixture.out(target, backrun);
			await fixture.passBlock();
		}
		await fixture.out(target, backrun);
		await fixture.system.nextBlock();
		assert.deepEqual(blocksOf(target, backrun), [first, first + 1, first + 2]);
		assert.deepEqual(
			(await bidder.blocks(hash)).map(({ blockNumber, status, reason }) => [blockNumber, status, reason]),
			[
				[first, "NOT_INCLUDED", "targetNotIncluded"],
				[first + 1, "NOT_INCLUDED", "targetNotIncluded"],
				[first + 2, "INCLUDED", null],
			],
		);
		await fixture.passBlock();
		assert.equal((await bidder.blocks(hash)).length, 3, "it has ended");
	});
});

describe("what goes out", () => {
	/** The best bid on a target of its own, once each builder that may have it has it. */
	async function best(path: string, recipient?: string): Promise<{ target: Target; backrun: Signed }> {
		const query = recipient === undefined ? "" : `?refundRecipient=${recipient}`;
		const target = await fixture.target(`${path}${query}`);
		const bidder = await fixture.bidder();
		const backrun = bidder.backrun(GWEI);
		await bidder.bid(target, backrun);
		for (const name of ["dev", "share", "capped"]) await fixture.out(target, backrun, fixture.builder(name));
		return { target, backrun };
	}

	for (const [path, mayRevert] of [
		["/fast", true],
		["/maxbackruns", true],
		["/noreverts", false],
	] as const) {
		it(`says of a target on ${path} what each builder must know, in its own words`, async () => {
			const recipient = `0x${"fe".repeat(19)}01`;
			const { target, backrun } = await best(path, recipient);
			const block = (await fixture.head()) + 1;
			const common = {
				txs: [target.raw, backrun.raw],
				blockNumber: quantity(block),
				revertingTxHashes: mayRevert ? [target.hash] : [],
				refundRecipient: recipient,
				refundTxHashes: [backrun.hash],
			};
			const uuid = (name: string) => lastOrder(target, name)?.uuid;
			assert.deepEqual(lastOrder(target, "dev")?.param, {
				...common,
				replacementUuid: uuid("dev"),
				refundPercent: 90,
			});
			assert.deepEqual(lastOrder(target, "capped")?.param, {
				...common,
				replacementUuid: uuid("capped"),
				refundPercent: 75,
				droppingTxHashes: [backrun.hash],
			});
			assert.deepEqual(lastOrder(target, "share")?.param, {
				version: "v0.1",
				inclusion: { block: quantity(block), maxBlock: quantity(block) },
				body: [
					{ tx: target.raw, canRevert: mayRevert },
					{ tx: backrun.raw, canRevert: false },
				],
				validity: {
					refund: [{ bodyIdx: 0, percent: 40 }],
					refundConfig: [{ address: recipient, percent: 100 }],
				},
				privacy: { hints: [] },
				replacementUuid: uuid("share"),
			});
			await fixture.system.nextBlock();
			await fixture.reaches(target, "INCLUDED");
		});
	}

	it("is asked for in the sender's name where no recipient is given", async () => {
		const { target } = await best("/fast");
		assert.equal(lastOrder(target, "dev")?.param.refundRecipient, target.user.address);
		await fixture.system.nextBlock();
	});

	it("never reaches a builder that pays no refund, which has the target all the same", async () => {
		const { target } = await best("/fast");
		await fixture.sent(target, { builders: ["bare", "dropper"] });
		for (const name of ["bare", "dropper"]) {
			const pairs = fixture.builder(name).requests(({ params }) => {
				const { txs } = { ...(params[0] as { txs?: unknown[] }) };
				return (txs?.length ?? 0) > 1;
			});
			assert.deepEqual(pairs, [], `${name} has never had a backrun`);
			assert.deepEqual(fixture.cancels(fixture.builder(name), target), []);
		}
		await fixture.system.nextBlock();
	});

	it("goes to the builders alone that the bid names; the others keep the best that they may have", async () => {
		const target = await fixture.target();
		const [low, high] = [await fixture.bidder(), await fixture.bidder()];
		const first = low.backrun(GWEI);
		const firstHash = await low.bid(target, first, { uuid: "low" });
		for (const name of ["dev", "share"]) await fixture.out(target, first, fixture.builder(name));
		const block = (await fixture.head()) + 1;
		const second = high.backrun(5n * GWEI);
		const privacy = { builders: ["share"], hints: ["hash"] };
		const secondHash = await high.share(target, second, { first: block, last: block, privacy });
		await fixture.out(target, second, fixture.builder("share"));
		for (const name of ["dev", "capped"]) await fixture.out(target, first, fixture.builder(name));
		assert.deepEqual(await high.stages(secondHash), ["BEST"]);
		assert.deepEqual(await low.stages(firstHash), ["BEST"], "the best of those that the others may have");
		const sent = fixture
			.backrunOrders(target, fixture.builder("share"))
			.filter(({ kind }) => kind === "bundle");
		assert.deepEqual(sent.at(-1)?.param.privacy, { hints: [] }, "no hint ever goes on");
		for (const { params } of fixture.builder("dev").requests())
			assert.ok(!JSON.stringify(params).includes(second.raw), "it was to have nothing of it");
		await fixture.system.nextBlock();
		const [place = -1, own, foreign] = await places(target, first, second);
		assert.deepEqual([own, foreign], [place + 1, undefined]);
		assert.deepEqual(await high.stages(secondHash), ["NOT_INCLUDED notChosen"]);
		assert.deepEqual(await low.stages(firstHash), ["INCLUDED"]);
	});

	it("is told to its bidder builder by builder, and to nobody else", async () => {
		const target = await fixture.target();
		const [bidder, stranger] = [await fixture.bidder(), await fixture.bidder()];
		const hash = await bidder.bid(target, bidder.backrun(GWEI));
		const answers = await until("three answers", async () => {
			const told = (await bidder.blocks(hash))[0]?.builders ?? [];
			return told.length === 3 && told;
		});
		assert.deepEqual(answers.map(({ builder, kind, answer }) => `${builder} ${kind} ${answer}`).sort(), [
			"capped bundle accepted",
			"dev bundle accepted",
			"share bundle accepted",
		]);
		await assert.rejects(stranger.blocks(hash), /HTTP 404/);
		await fixture.system.nextBlock();
	});
});
