// The user's refund, to the wei: blocks, balances, events and status, for builders that keep the
// cost of paying or pay nothing, over reorganisations and restarts.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { formatEther } from "ethers";
import { request } from "undici";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import { DEV_COINBASE_KEY } from "../../devnet/devBuilder.ts";
import {
	type AuctionFixture,
	bundleOf,
	type Placed,
	startAuction,
	type Target,
} from "../../support/bidder.ts";
import { sized } from "../../support/length.ts";
import type { WireEvent } from "../../support/relayClient.ts";
import { ETHER, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";

const PERCENT = 50n;
const REFUND_GAS = 21_000;
const BID = 12_345_678_901_234_567n;
/** Priority fees of nearly nothing: what a backrun brings is then its bid. */
const NO_TIP = { maxPriorityFeePerGas: 1n };

let fixture: AuctionFixture;
let recipients = 0;
before(async () => {
	fixture = await startAuction({
		proxied: true,
		builders: [{ name: "dev", refundGas: REFUND_GAS }],
		builder: { refundGas: BigInt(REFUND_GAS) },
		env: { REFUND_PERCENT: String(PERCENT) },
	});
});
after(() => fixture.system.stop());

/** A made-up address without ether. */
function newRecipient(): string {
	recipients += 1;
	return `0x${(0xfee0_0000 + recipients).toString(16).padStart(40, "0")}`;
}

/** A bid that every builder has. */
function bidOn(target: Target, value = BID): Promise<Placed> {
	return fixture.offerOut(target, value);
}

/** A target whose refund goes to `recipient`. */
function targetFor(recipient: string, path = "/fast"): Promise<Target> {
	return fixture.target(`${path}?refundRecipient=${recipient}`);
}

/** The fields of the refund event for `block`, once it is reported, without its time. */
async function refunded(target: Target, block: number): Promise<Record<string, unknown>> {
	// The last event counts for a block that came again in another shape.
	const isLast = (events: readonly WireEvent[]) =>
		events.findLastIndex(({ type }) => type === "refunded") >
		events.findLastIndex(({ type }) => type === "included");
	const events = await until(`the refund of ${target.hash}`, async () => {
		const all = await fixture.events(target);
		return isLast(all) && all;
	});
	const { at: _, ...told } = events.findLast(({ type }) => type === "refunded") ?? { at: "" };
	assert.equal((told as Record<string, unknown>).block, block);
	return told;
}

/**
 * The expected fields of a refund event; `paid` is the amount paid, by default all that was owed.
 */
async function expected(
	target: Target,
	backrun: Signed,
	about: { block: number; recipient: string; bid?: bigint; paid?: bigint },
): Promise<Record<string, unknown>> {
	const { block, recipient, bid = BID } = about;
	const { coinbase, baseFee } = await fixture.block(block);
	const brought = await fixture.brought(backrun, bid);
	const cost = BigInt(REFUND_GAS) * baseFee;
	const owed = (brought * PERCENT) / 100n - cost;
	return {
		type: "refunded",
		block,
		bundle: bundleOf(target, backrun),
		backrun: backrun.hash,
		bid: String(bid),
		brought: String(brought),
		cost: String(cost),
		owed: String(owed > 0n ? owed : 0n),
		paid: String(about.paid ?? owed),
		payer: coinbase,
		recipient,
	};
}

async function statusRefund(target: Target): Promise<number> {
	return (await fixture.status(target)).refund;
}

describe("a refund", () => {
	it("reaches the requested recipient, and its exact amount is reported", async () => {
		const recipient = newRecipient();
		const target = await targetFor(recipient);
		const { backrun, bidder, hash } = await bidOn(target);
		assert.equal(await statusRefund(target), 0);
		const block = await fixture.system.nextBlock();
		const told = await refunded(target, block);
		assert.deepEqual(told, await expected(target, backrun, { block, recipient }));
		const paid = BigInt(String(told.paid));
		assert.ok(paid > 0n && told.paid === told.owed);
		assert.equal(await fixture.balance(recipient), paid);
		const status = await fixture.status(target);
		assert.deepEqual(
			[status.refund, status.refundRecipient, status.backruns, status.status],
			[Number(formatEther(paid)), recipient, 1, "INCLUDED"],
		);
		const { transactions } = await fixture.block(block);
		assert.deepEqual(transactions.map(({ hash: one }) => one).slice(0, 2), [target.hash, backrun.hash]);
		assert.deepEqual([transactions[2]?.to, transactions[2]?.value], [recipient, paid]);
		assert.deepEqual(await bidder.stages(hash), ["INCLUDED"]);
	});

	it("reaches the sender if no recipient is named", async () => {
		const target = await fixture.target();
		const { backrun } = await bidOn(target);
		const block = await fixture.system.nextBlock();
		const recipient = target.user.address;
		const told = await refunded(target, block);
		assert.deepEqual(told, await expected(target, backrun, { block, recipient }));
		const receipt = (await fixture.system.chain.rpc("eth_getTransactionReceipt", [target.hash])) as {
			gasUsed: string;
			effectiveGasPrice: string;
		};
		const fee = BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice);
		assert.equal(await fixture.balance(recipient), ETHER - fee + BigInt(String(told.paid)));
		assert.equal((await fixture.status(target)).refundRecipient, null);
	});

	it("is reported for the right target, even if several in a block have equal bids and one recipient", async () => {
		const recipient = newRecipient();
		const bids = [3n * BID, BID, BID];
		const targets: Target[] = [];
		const backruns: Signed[] = [];
		for (const [i, bid] of bids.entries()) {
			const target = await targetFor(recipient, i === 0 ? "/fast" : "/noreverts");
			targets.push(target);
			backruns.push((await bidOn(target, bid)).backrun);
		}
		const block = await fixture.system.nextBlock();
		let sum = 0n;
		for (const [i, target] of targets.entries()) {
			const told = await refunded(target, block);
			const about = { block, recipient, bid: bids[i] ?? 0n };
			assert.deepEqual(told, await expected(target, backruns[i] ?? target, about));
			sum += BigInt(String(told.paid));
		}
		assert.equal(await fixture.balance(recipient), sum);
	});

	it("that would not cover its own cost is neither owed nor paid", async () => {
		const recipient = newRecipient();
		const target = await fixture.target(`/fast?refundRecipient=${recipient}`, NO_TIP);
		const bid = 1_000n;
		const { backrun } = await fixture.offerOut(target, bid, NO_TIP);
		const block = await fixture.system.nextBlock();
		assert.equal((await fixture.receipt(backrun))?.block, block);
		assert.deepEqual(
			await refunded(target, block),
			await expected(target, backrun, { block, recipient, bid, paid: 0n }),
		);
		assert.equal((await refunded(target, block)).owed, "0");
		assert.equal(await statusRefund(target), 0);
	});

	it("that the block's builder keeps is reported as owed and not paid", async () => {
		const recipient = newRecipient();
		const target = await targetFor(recipient);
		const { backrun, bidder, hash } = await bidOn(target);
		await fixture.publish(target);
		await fixture.publish(backrun);
		const block = await fixture.passBlock();
		const told = await refunded(target, block);
		assert.deepEqual(told, await expected(target, backrun, { block, recipient, paid: 0n }));
		assert.ok(BigInt(String(told.owed)) > 0n);
		assert.deepEqual([await statusRefund(target), await fixture.balance(recipient)], [0, 0n]);
		assert.deepEqual(await bidder.stages(hash), ["INCLUDED"]);
	});

	it("is neither paid nor reported for a target without a bid", async () => {
		const target = await fixture.target();
		await fixture.system.nextBlock();
		await fixture.passBlock();
		assert.ok(!(await fixture.events(target)).some(({ type }) => type === "refunded"));
		assert.equal(await statusRefund(target), 0);
	});
});

describe("a block that is reorganised away", () => {
	/** The head goes and another block comes in its place, with `mined` in it. */
	async function reorganise(...mined: readonly Signed[]): Promise<void> {
		const pairs = mined.map(({ raw }) => [raw, 0]);
		const release = fixture.system.node?.hold();
		await fixture.system.chain.rpc("anvil_reorg", [1, pairs]).finally(release);
	}

	it("loses its refund; the target may be bid on again, and the new refund is reported", async () => {
		const recipient = newRecipient();
		const target = await targetFor(recipient);
		const { backrun, bidder, hash } = await bidOn(target);
		const first = await fixture.system.nextBlock();
		await refunded(target, first);
		assert.ok((await statusRefund(target)) > 0);
		await reorganise();
		await fixture.reaches(target, "BROADCAST");
		assert.equal(await statusRefund(target), 0);
		const gone = await bidder.reaches(hash, "TARGET_NOT_MINED");
		assert.deepEqual([gone.blockNumber, gone.blockHash, gone.paid], [first, null, null]);
		await fixture.open(target);
		assert.equal(await bidder.bid(target, backrun), hash);
		await fixture.out(target, backrun);
		const second = await fixture.system.nextBlock();
		assert.deepEqual(
			await refunded(target, second),
			await expected(target, backrun, { block: second, recipient }),
		);
		assert.equal((await bidder.stages(hash)).at(-1), "INCLUDED");
		assert.ok((await statusRefund(target)) > 0);
	});

	it("and replaced by one with both transactions but no refund: the status says that nothing was paid", async () => {
		const recipient = newRecipient();
		const target = await targetFor(recipient);
		const { backrun, bidder, hash } = await bidOn(target);
		const block = await fixture.system.nextBlock();
		await refunded(target, block);
		await reorganise(target, backrun);
		await fixture.event(target, "reorged");
		await fixture.reaches(target, "INCLUDED");
		assert.deepEqual(
			await refunded(target, block),
			await expected(target, backrun, { block, recipient, paid: 0n }),
		);
		assert.equal(await statusRefund(target), 0);
		const told = await bidder.reaches(hash, "INCLUDED");
		assert.equal(told.blockHash, (await fixture.block(block)).hash);
	});
});

describe("a refund that can't be read back at once", () => {
	for (const restarts of sized([true], [false, true])) {
		it(`is reported with a later block${restarts ? ", by another process too" : ""}`, async () => {
			const recipient = newRecipient();
			const target = await targetFor(recipient);
			const { backrun } = await bidOn(target);
			const { node } = fixture.system;
			assert.ok(node !== null);
			node.reset();
			node.setFault({ kind: "destroy" }, { methods: ["debug_traceTransaction"] });
			const block = await fixture.system.nextBlock();
			await fixture.reaches(target, "INCLUDED");
			await until("the relay has asked", () => node.calls("debug_traceTransaction").length > 0);
			if (restarts) await fixture.system.restart();
			assert.ok(!(await fixture.events(target)).some(({ type }) => type === "refunded"));
			assert.equal(await statusRefund(target), 0);
			node.setFault(null);
			await until("a block with which it is reported", async () => {
				await fixture.passBlock();
				return (await fixture.events(target)).some(({ type }) => type === "refunded");
			});
			assert.deepEqual(await refunded(target, block), await expected(target, backrun, { block, recipient }));
			assert.equal(await statusRefund(target), Number(formatEther(await fixture.balance(recipient))));
		});
	}

	it("is reported the same before and after a restart", async () => {
		const target = await fixture.target();
		await bidOn(target);
		const block = await fixture.system.nextBlock();
		const told = await refunded(target, block);
		const refund = await statusRefund(target);
		await fixture.system.restart();
		await fixture.passBlock();
		assert.deepEqual(await refunded(target, block), told);
		assert.equal((await fixture.events(target)).filter(({ type }) => type === "refunded").length, 1);
		assert.ok(refund > 0);
		assert.equal(await statusRefund(target), refund);
	});

	it("is read from a block that is found long after, though nobody wrote down that the bid was sent for it", async () => {
		const recipient = newRecipient();
		const target = await targetFor(recipient);
		const { backrun } = await bidOn(target);
		const { builder, chain } = fixture.system;
		const order = fixture.backrunOrders(target).at(-1);
		let block = 0;
		await fixture.system.restart(async () => {
			// The store has events of a bid for the next block alone, which is empty. A relay that is
			// killed has not stored its last sends.
			await chain.rpc("evm_mine");
			block = (await fixture.head()) + 1;
			const blockNumber = `0x${block.toString(16)}`;
			const params = [{ ...order?.param, blockNumber, replacementUuid: randomUUID() }];
			const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendBundle", params });
			const signature = createBodySigner(DEV_COINBASE_KEY).sign(body);
			const headers = { "content-type": "application/json", "x-flashbots-signature": signature };
			await request(builder.url, { method: "POST", headers, body }).then((answer) => answer.body.dump());
			assert.equal((await builder.buildBlock()).number, block);
			await chain.rpc("anvil_mine", [18]);
		});
		await fixture.passBlock();
		assert.deepEqual(await refunded(target, block), await expected(target, backrun, { block, recipient }));
		assert.equal(await statusRefund(target), Number(formatEther(await fixture.balance(recipient))));
	});
});
