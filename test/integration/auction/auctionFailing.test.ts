// Backruns that win and then fail, only in the block that the builder makes: by its coinbase, by
// its time, or by what stands before them. The target is in that very block all the same, with the
// next best behind it, by builders of each kind; with a coinbase that nobody knows beforehand, and
// with a fixed one, where a plain transfer to it is a bid.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
	PAYS_ONCE,
	REVERTS_AFTER_TIME,
	REVERTS_IF_COINBASE,
	REVERTS_IF_ODD_TIME,
	REVERTS_UNLESS_COINBASE,
	word,
} from "../../support/auctionContracts.ts";
import {
	type AuctionFixture,
	type Bidder,
	DEV_COINBASE,
	type Placed,
	startAuction,
	type Target,
} from "../../support/bidder.ts";
import { sized } from "../../support/length.ts";
import { GWEI, type Signed } from "../../support/relayFixture.ts";

/** The relay counts on 12 seconds to a block. */
const BUILDER_SLOT_SECONDS = 13;

let fixture: AuctionFixture;

/** Seconds. */
async function headTime(): Promise<number> {
	const head = (await fixture.system.chain.rpc("eth_getBlockByNumber", ["latest", false])) as {
		timestamp: string;
	};
	return Number(head.timestamp);
}

/**
 * A backrun that the relay can't tell from a good one before the builder's block, which it fails
 * in.
 */
interface Trap {
	/** Waits for a head on which the relay is trapped. */
	readonly ready?: () => Promise<void>;
	readonly code: string;
	readonly data?: () => Promise<string> | string;
}

const BY_TIME: Readonly<Record<string, Trap>> = {
	"the parity of the time": {
		async ready() {
			while ((await headTime()) % 2 !== 0) await fixture.system.nextBlock();
		},
		code: REVERTS_IF_ODD_TIME,
	},
	"a second too late": {
		code: REVERTS_AFTER_TIME,
		data: async () => word((await headTime()) + BUILDER_SLOT_SECONDS - 1),
	},
};

/**
 * Asserts that a target on `path` is in the next block, with the good backrun behind it, though the
 * higher bid falls into `trap`.
 */
async function survives(path: string, trap: Trap, percent = 90n): Promise<void> {
	await trap.ready?.();
	const target = await fixture.target(path);
	const other = await fixture.offer(target, GWEI);
	const data = (await trap.data?.()) ?? "0x";
	const best = await fixture.offer(target, 50n * GWEI, { to: await fixture.placeCode(trap.code), data });
	await fixture.out(target, [other.backrun, best.backrun]);
	const block = await fixture.system.nextBlock();
	const { transactions } = await fixture.block(block);
	assert.deepEqual(transactions.map(({ hash }) => hash).slice(0, 2), [target.hash, other.backrun.hash]);
	assert.equal(transactions.length, 3, "and its refund");
	assert.deepEqual(await fixture.receipt(target), { block, ok: true, index: 0 });
	const owed = ((await fixture.brought(other.backrun, GWEI)) * percent) / 100n;
	assert.equal((await fixture.event(target, "refunded")).paid, String(owed));
	const { status, backruns } = await fixture.status(target);
	assert.deepEqual([status, backruns], ["INCLUDED", 2]);
	assert.deepEqual(await fixture.stagesOf([other]), ["INCLUDED"]);
	const { bid, paid } = await best.bidder.told(best.hash, "LOST");
	assert.deepEqual([bid, paid], [String(50n * GWEI), String(GWEI)], "it was higher, and paid nothing");
}

/** The fields of `/info` about how bids pay. */
async function info(): Promise<readonly unknown[]> {
	const { feeRecipient, pay } = (await (await fetch(`${fixture.system.client.url}/info`)).json()) as Record<
		string,
		unknown
	>;
	return [feeRecipient, pay];
}

async function refusalOf(bidder: Bidder, target: Target, backrun: Signed): Promise<string> {
	const answer = await bidder.tryBid(target, backrun);
	return "error" in answer ? answer.error : "accepted";
}

describe("with an unknown coinbase", () => {
	before(async () => {
		fixture = await startAuction({ builder: { slotSeconds: BUILDER_SLOT_SECONDS } });
	});
	after(() => fixture.system.stop());

	for (const path of sized(["/noreverts"], ["/fast", "/noreverts", "/maxbackruns"])) {
		for (const [name, trap] of Object.entries(BY_TIME)) {
			it(`a backrun that fails by ${name} leaves a target on ${path} its block`, () => survives(path, trap));
		}
	}

	it("a backrun whose chance another target's backrun takes leaves its target its block", async () => {
		const once = await fixture.placeCode(PAYS_ONCE);
		const [one, two] = [await fixture.target(), await fixture.target("/noreverts")];
		const bids: Placed[] = [];
		for (const target of [one, two]) {
			bids.push(await fixture.offerOut(target, 30n * GWEI, { to: once }));
		}
		const block = await fixture.system.nextBlock();
		const { transactions } = await fixture.block(block);
		assert.equal(transactions.length, 4, "two targets, one backrun, one refund");
		for (const target of [one, two]) assert.equal((await fixture.receipt(target))?.ok, true);
		assert.deepEqual([...(await fixture.stagesOf(bids))].sort(), ["INCLUDED", "LOST"]);
	});

	it("only what goes to block.coinbase is a bid, and that is one of the last blocks'", async () => {
		assert.deepEqual(await info(), [null, "block.coinbase"]);
		const bidder = await fixture.bidder();
		for (let i = 0; i < sized(1, 3); i++) {
			const target = await fixture.target();
			const words = await refusalOf(bidder, target, bidder.backrun(GWEI, { to: bidder.actor.address }));
			const named = /^-32000 backrun pays nothing to the fee recipient (0x[0-9a-f]{40})$/.exec(words)?.[1];
			assert.ok((await coinbases()).has(named ?? ""), words);
			await fixture.system.nextBlock();
		}
	});

	it("a backrun that fails by any other coinbase than one that no block had is refused", async () => {
		const target = await fixture.target();
		const bidder = await fixture.bidder();
		const to = await fixture.placeCode(REVERTS_UNLESS_COINBASE);
		const backrun = bidder.backrun(GWEI, { to, data: word(bidder.actor.address) });
		assert.equal(await refusalOf(bidder, target, backrun), "-32000 backrun reverted");
		await fixture.system.nextBlock();
	});
});

/** The coinbases of the last 64 blocks. */
async function coinbases(): Promise<ReadonlySet<string>> {
	const head = Number(await fixture.system.chain.rpc("eth_blockNumber"));
	const miners = new Set<string>();
	for (let number = Math.max(1, head - 63); number <= head; number += 1) {
		const params = [`0x${number.toString(16)}`, false];
		const block = (await fixture.system.chain.rpc("eth_getBlockByNumber", params)) as { miner: string };
		miners.add(block.miner.toLowerCase());
	}
	return miners;
}

describe("with FEE_RECIPIENT", () => {
	before(async () => {
		fixture = await startAuction({
			builders: [{ name: "dev", dropping: true }],
			builder: { slotSeconds: BUILDER_SLOT_SECONDS },
			env: { FEE_RECIPIENT: DEV_COINBASE },
		});
	});
	after(() => fixture.system.stop());

	it("a plain transfer to it is a bid, which is refunded to the wei", async () => {
		assert.deepEqual(await info(), [DEV_COINBASE, "block.coinbase"]);
		const target = await fixture.target();
		// More than what the gas of either pays.
		const value = 77n * 1_000_000n * GWEI;
		const best = await fixture.offer(target, value, { to: DEV_COINBASE, gasLimit: 21_000 });
		const second = await fixture.offer(target, value / 2n);
		const { bidder, backrun: transfer, hash } = best;
		await fixture.out(target, [transfer, second.backrun]);
		const { transactions } = await fixture.block(await fixture.system.nextBlock());
		assert.deepEqual(
			transactions.slice(0, 2).map(({ hash: one }) => one),
			[target.hash, transfer.hash],
		);
		const owed = ((await fixture.brought(transfer, value)) * 90n) / 100n;
		assert.deepEqual([transactions[2]?.to, transactions[2]?.value], [target.user.address, owed]);
		const told = await fixture.event(target, "refunded");
		assert.deepEqual([told.bid, told.paid, told.owed], [String(value), String(owed), String(owed)]);
		assert.equal((await bidder.blocks(hash))[0]?.bid, String(value));
	});

	it("a transfer to anybody else pays nothing, and the answer names who must be paid", async () => {
		const target = await fixture.target();
		const bidder = await fixture.bidder();
		for (const to of [bidder.actor.address, target.user.address]) {
			const words = await refusalOf(bidder, target, bidder.backrun(GWEI, { to }));
			assert.equal(words, `-32000 backrun pays nothing to the fee recipient ${DEV_COINBASE}`);
		}
		await fixture.system.nextBlock();
	});

	it("what fails by that coinbase is refused; what needs it is in the block", async () => {
		const target = await fixture.target();
		const bidder = await fixture.bidder();
		const data = word(DEV_COINBASE);
		const shy = bidder.backrun(GWEI, { to: await fixture.placeCode(REVERTS_IF_COINBASE), data });
		assert.equal(await refusalOf(bidder, target, shy), "-32000 backrun reverted");
		const keen = await fixture.offerOut(target, GWEI, {
			to: await fixture.placeCode(REVERTS_UNLESS_COINBASE),
			data,
		});
		await fixture.system.nextBlock();
		assert.deepEqual(await fixture.stagesOf([keen]), ["INCLUDED"]);
		assert.ok((await fixture.event(target, "refunded")).paid !== "0");
	});

	for (const [name, trap] of Object.entries(BY_TIME)) {
		it(`a backrun that fails by ${name} leaves a target its block, by a builder that drops backruns`, () =>
			survives("/fast", trap));
	}
});

describe("with a mev-share builder that pays 40 percent", () => {
	before(async () => {
		fixture = await startAuction({
			builders: [{ name: "dev", dialect: "mev-share", maxRefundPercent: 40 }],
			builder: { slotSeconds: BUILDER_SLOT_SECONDS },
		});
	});
	after(() => fixture.system.stop());

	for (const path of sized(["/fast"], ["/fast", "/noreverts"])) {
		for (const [name, trap] of Object.entries(BY_TIME)) {
			it(`a backrun that fails by ${name} leaves a target on ${path} its block`, () =>
				survives(path, trap, 40n));
		}
	}
});
