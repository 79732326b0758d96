// For which blocks and to which builders bids are sent: the next block, later ones and ranges, with
// the errors at their edges, and exactly what each kind of builder gets.

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

/** The last order behind `target` that the builder with this name was sent. */
function lastOrder(target: Signed, name: string): BackrunOrder | undefined {
	return fixture.backrunOrders(target, fixture.builder(name)).at(-1);
}

describe("the block of a bid", () => {
	it("is the next one if none is named, or if it names the head or the next block", async () => {
		const target = await fixture.target();
		const head = await fixture.head();
		for (const block of [undefined, head, head + 1]) {
			const { bidder, hash } = await fixture.offer(target, GWEI, { block });
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
		const block = (await fixture.head()) + 3;
		const ahead = await fixture.offer(target, 90n * GWEI, { block });
		const next = await fixture.offer(target, GWEI);
		await fixture.out(target, next.backrun);
		assert.deepEqual(await fixture.stagesOf([ahead, next]), ["ACCEPTED", "ACCEPTED"]);
		await fixture.passBlock();
		await fixture.open(target);
		assert.deepEqual(await fixture.stagesOf([next]), ["TARGET_NOT_MINED"]);
		await fixture.passBlock();
		await fixture.out(target, ahead.backrun);
		assert.deepEqual(blocksOf(target, ahead.backrun), [block]);
		assert.deepEqual(blocksOf(target, next.backrun), [block - 2]);
		assert.equal((await fixture.blockFrom(target))[1], ahead.backrun.hash);
		assert.deepEqual(await fixture.stagesOf([ahead]), ["INCLUDED"]);
	});

	it("of a bid under another uuid is another bid of the same backrun", async () => {
		const target = await fixture.target();
		const block = (await fixture.head()) + 1;
		const { bidder, backrun, hash } = await fixture.offer(target, GWEI, { block, uuid: "now" });
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
			(await bidder.blocks(hash)).map(({ blockNumber, stage, reason }) => [blockNumber, stage, reason]),
			[
				[first, "TARGET_NOT_MINED", null],
				[first + 1, "TARGET_NOT_MINED", null],
				[first + 2, "INCLUDED", null],
			],
		);
		await fixture.passBlock();
		assert.equal((await bidder.blocks(hash)).length, 3, "it has ended");
	});
});

describe("the bundles that builders receive", () => {
	/** The best bid on a target of its own, once each builder that may have it has it. */
	async function best(path: string, recipient?: string): Promise<{ target: Target; backrun: Signed }> {
		const query = recipient === undefined ? "" : `?refundRecipient=${recipient}`;
		const target = await fixture.target(`${path}${query}`);
		const { backrun } = await fixture.offer(target, GWEI);
		for (const name of ["dev", "share", "capped"]) await fixture.out(target, backrun, fixture.builder(name));
		return { target, backrun };
	}

	for (const path of ["/fast", "/maxbackruns", "/noreverts"]) {
		it(`for a target on ${path} contain what each builder needs, in its dialect`, async () => {
			const mayRevert = path !== "/noreverts";
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

	it("ask for a refund to the sender if no recipient is given, and don't go to builders that pay none", async () => {
		const { target } = await best("/fast");
		assert.equal(lastOrder(target, "dev")?.param.refundRecipient, target.user.address);
		await fixture.waitUntilSent(target, { builders: ["bare", "dropper"] });
		for (const builder of ["bare", "dropper"].map((name) => fixture.builder(name))) {
			const sizes = builder
				.requests()
				.map(({ params }) => (params[0] as { txs?: unknown[] })?.txs?.length ?? 0);
			assert.ok(Math.max(...sizes) <= 1, "it has never had a backrun");
			assert.deepEqual(fixture.cancels(builder, target), []);
		}
		await fixture.system.nextBlock();
	});

	it("go only to the builders that the bid names; the others keep those that they may have", async () => {
		const target = await fixture.target();
		const low = await fixture.offer(target, GWEI);
		const { backrun: first } = low;
		for (const name of ["dev", "share"]) await fixture.out(target, first, fixture.builder(name));
		const block = (await fixture.head()) + 1;
		const high = await fixture.bidder();
		const second = high.backrun(5n * GWEI);
		const privacy = { builders: ["share"], hints: ["hash"] };
		const secondHash = await high.share(target, second, { first: block, last: block, privacy });
		await fixture.out(target, [first, second], fixture.builder("share"));
		for (const name of ["dev", "capped"]) await fixture.out(target, first, fixture.builder(name));
		const sent = fixture.backrunOrders(target, fixture.builder("share"));
		const last = sent.findLast(({ kind }) => kind === "bundle");
		assert.deepEqual(last?.param.privacy, { hints: [] }, "no hint ever goes on");
		for (const { params } of fixture.builder("dev").requests())
			assert.ok(!JSON.stringify(params).includes(second.raw), "it was to have nothing of it");
		const hashes = await fixture.blockFrom(target);
		assert.deepEqual([hashes[1], hashes.includes(second.hash)], [first.hash, false]);
		assert.deepEqual(await high.stages(secondHash), ["LOST"]);
		assert.deepEqual(await fixture.stagesOf([low]), ["INCLUDED"]);
	});

	it("are reported to the bidder for each builder with the block, and to nobody else", async () => {
		const target = await fixture.target();
		const { bidder, backrun, hash } = await fixture.offer(target, GWEI);
		for (const name of ["dev", "share", "capped"]) await fixture.out(target, backrun, fixture.builder(name));
		const told = async () => (await bidder.blocks(hash))[0]?.builders ?? [];
		assert.deepEqual(await told(), []);
		await fixture.system.nextBlock();
		const answers = await until("three answers", async () => {
			const all = await told();
			return all.length === 3 && all;
		});
		assert.deepEqual(answers.map(({ builder, kind, answer }) => `${builder} ${kind} ${answer}`).sort(), [
			"capped bundle accepted",
			"dev bundle accepted",
			"share bundle accepted",
		]);
		await assert.rejects((await fixture.bidder()).blocks(hash), /HTTP 404/);
	});
});
