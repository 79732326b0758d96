// A builder that takes a backrun and its target apart, or keeps the refund: the reports to the
// user, the searcher and the operator agree with the block. The control is a builder that leaves
// both together, with the refund.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { request } from "undici";
import { createBodySigner, createKey } from "../../../shared/ethereum/signatures.ts";
import { DEV_COINBASE_KEY } from "../../devnet/devBuilder.ts";
import { PAYS_COINBASE } from "../../support/auctionContracts.ts";
import {
	type AuctionFixture,
	type Bidder,
	DEV_COINBASE,
	type Placed,
	startAuction,
	type Target,
} from "../../support/bidder.ts";
import { REVERTS } from "../../support/contracts.ts";
import { askRefunds, askTotals, type Refunds } from "../../support/refunds.ts";
import { metricsOf } from "../../support/relayClient.ts";
import type { Signed } from "../../support/relayFixture.ts";
import { accountOf, signedTransaction } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const BID = 10n ** 16n;
/** Wei that a stranger's transaction pays to the coinbase. */
const OTHERS = 3n;
/** Wei that a builder pays to the user, for any reason. */
const PAID = 7n * 10n ** 15n;

let fixture: AuctionFixture;
let url: string;
before(async () => {
	fixture = await startAuction();
	({ url } = fixture.system.client);
});
after(() => fixture?.system.stop());

/** Transactions that a builder may put into its block. */
interface Parts {
	readonly target: Signed;
	readonly backrun: Signed;
	/** Another target with its backrun. */
	readonly target2: Signed;
	readonly backrun2: Signed;
	/** A stranger's transaction that pays to the coinbase. */
	readonly other: Signed;
	/** The coinbase's transfer to the user. */
	readonly refund: Signed;
}

interface Row {
	readonly name: string;
	readonly block: readonly (keyof Parts)[];
	/**
	 * The bundle as its searcher sees it: `stage reason`, and the wei that were paid right behind the
	 * target.
	 */
	readonly told: string;
	readonly paid: bigint | null;
	/** Whether the backrun reverts in the block. */
	readonly reverts?: boolean;
	/** Wei of refund that are reported to the user; null: no refund is reported at all. */
	readonly refund: bigint | null;
}

const APART = "LOST transactionMined";
const ROWS: readonly Row[] = [
	{
		name: "the backrun before its target",
		block: ["backrun", "target"],
		told: APART,
		paid: null,
		refund: null,
	},
	{
		name: "the backrun without its target",
		block: ["backrun"],
		told: "TARGET_NOT_MINED transactionMined",
		...{ paid: null, refund: null },
	},
	{
		name: "another's transaction between them",
		block: ["target", "other", "backrun"],
		...{ told: APART, paid: OTHERS, refund: null },
	},
	{
		name: "another's transaction between them, and pays the user nevertheless",
		block: ["target", "other", "backrun", "refund"],
		...{ told: APART, paid: OTHERS, refund: null },
	},
	{
		name: "the payment to the user between them",
		block: ["target", "refund", "backrun"],
		...{ told: APART, paid: 0n, refund: null },
	},
	{
		name: "each of two backruns behind the other's target",
		block: ["target", "backrun2", "target2", "backrun"],
		...{ told: APART, paid: BID, refund: null },
	},
	{
		name: "both without a refund",
		block: ["target", "backrun"],
		...{ told: "INCLUDED", paid: BID, refund: 0n },
	},
	{
		name: "the payment to the user before both",
		block: ["refund", "target", "backrun"],
		...{ told: "INCLUDED", paid: BID, refund: 0n },
	},
	{
		name: "less than what is owed behind both",
		block: ["target", "backrun", "other", "refund"],
		...{ told: "INCLUDED", paid: BID, refund: PAID },
	},
	{
		name: "a backrun that reverts in the block",
		block: ["target", "backrun"],
		...{ told: "INCLUDED", paid: 0n, reverts: true, refund: 0n },
	},
];

/**
 * A block of exactly these, by the builder with its own coinbase; waits until the relay has handled
 * it.
 */
async function buildExactly(txs: readonly Signed[], mayRevert: readonly Signed[]): Promise<number> {
	const { builder } = fixture.system;
	const blockNumber = `0x${((await fixture.head()) + 1).toString(16)}`;
	const bundle = {
		...{ txs: txs.map(({ raw }) => raw), blockNumber },
		revertingTxHashes: mayRevert.map(({ hash }) => hash),
	};
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendBundle", params: [bundle] });
	const signature = createBodySigner(createKey()).sign(body);
	const headers = { "content-type": "application/json", "x-flashbots-signature": signature };
	// The builder leaves out all that the relay has sent, and accepts nothing more.
	builder.reset();
	const answer = await request(builder.url, { method: "POST", headers, body });
	assert.match(await answer.body.text(), /"result"/);
	builder.setFaults({ reject: true });
	try {
		const number = await fixture.system.nextBlock();
		const { transactions } = await fixture.block(number);
		assert.deepEqual(
			transactions.map(({ hash }) => hash),
			txs.map(({ hash }) => hash),
			"the block is as the test wants it",
		);
		return number;
	} finally {
		builder.setFaults({});
	}
}

/** A target, and a new searcher's bid on it that every builder has. */
async function bidOn(contract?: string): Promise<{ readonly target: Target; readonly placed: Placed }> {
	const target = await fixture.target();
	const more = contract === undefined ? {} : { to: contract };
	return { target, placed: await fixture.offerOut(target, BID, more) };
}

async function refundTo(address: string): Promise<Signed> {
	const by = accountOf(DEV_COINBASE_KEY);
	const nonce = Number(await fixture.system.chain.rpc("eth_getTransactionCount", [by.address, "latest"]));
	const tx = signedTransaction({ by, nonce, to: address, value: PAID });
	return { raw: `0x${Buffer.from(tx.raw).toString("hex")}`, hash: tx.hash, from: tx.from };
}

/** The totals of all that landed, as reported to the operator, users and searchers. */
async function countsOf(bidder: Bidder) {
	const text = await metricsOf(fixture.system.core.url);
	const figure = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1] ?? Number.NaN);
	const days = (await bidder.call("service_searcherStats", [])) as readonly {
		readonly landed: number;
		readonly paid: string;
	}[];
	return {
		landed: figure('relay_bids_in_blocks_total\\{fact="landed"\\}'),
		short: figure('relay_bids_in_blocks_total\\{fact="short"\\}'),
		refundedEther: figure("relay_refunded_ether_total"),
		totalWei: BigInt((await askTotals(url)).refundedWei),
		own: days.reduce((sum, one) => sum + one.landed, 0),
		ownPaid: days.reduce((sum, one) => sum + BigInt(one.paid), 0n),
	};
}

async function hasRecord(bidder: Bidder): Promise<unknown> {
	const stats = (await bidder.call("flashbots_getUserStatsV2", [])) as { readonly isHighPriority: boolean };
	return stats.isHighPriority;
}

/** The rows of an account's refunds, and their sum. */
async function refundsOf({ user }: Target): Promise<Pick<Refunds, "refunds" | "paid">> {
	return (await (await askRefunds(url, user.account)).json()) as Refunds;
}

/**
 * Asserts that the reports on one target and its bid claim nothing that the block does not have.
 */
async function assertTold(
	{ target, placed }: Awaited<ReturnType<typeof bidOn>>,
	row: Omit<Row, "name" | "block">,
	before: Awaited<ReturnType<typeof countsOf>>,
	block: number,
): Promise<void> {
	const { bidder, backrun, hash } = placed;
	const isIn = row.told === "INCLUDED";
	const told = row.paid === null ? await bidder.reaches(hash, row.told) : await bidder.told(hash, row.told);
	const blockHash = isIn ? (await fixture.block(block)).hash : null;
	assert.deepEqual(
		[told.blockNumber, told.paid, told.blockHash],
		[block, row.paid?.toString() ?? null, blockHash],
	);
	if (row.refund !== null) await fixture.event(target, "refunded");
	const isTargetIn = (await fixture.receipt(target)) !== null;
	const status = await fixture.status(target);
	assert.equal(status.stage, isTargetIn ? "INCLUDED" : "BROADCAST");
	assert.equal(BigInt(status.refundWei ?? 0), row.refund ?? 0n);
	const refunds = (await fixture.events(target)).filter(({ type }) => type === "refunded");
	assert.deepEqual(
		refunds.map(({ backrun: by, paid }) => [by, paid]),
		row.refund === null ? [] : [[backrun.hash, String(row.refund)]],
	);
	const own = await refundsOf(target);
	assert.deepEqual(
		[own.paid, own.refunds.map(({ paid }) => paid)],
		[String(row.refund ?? 0n), row.refund === null ? [] : [String(row.refund)]],
	);
	const wanted = {
		landed: before.landed + (isIn && row.paid === BID ? 1 : 0),
		short: before.short + (isIn && row.paid !== BID ? 1 : 0),
		totalWei: before.totalWei + (row.refund ?? 0n),
		own: before.own + (isIn ? 1 : 0),
		ownPaid: before.ownPaid + (isIn ? (row.paid ?? 0n) : 0n),
	};
	let last = "";
	await until("the counts", async () => {
		const { refundedEther, ...now } = await countsOf(bidder);
		last = JSON.stringify({ refundedEther, ...now }, (_, value) =>
			typeof value === "bigint" ? `${value}` : value,
		);
		const ether = before.refundedEther + Number(row.refund ?? 0n) / 1e18;
		return Math.abs(refundedEther - ether) < 1e-9 && isDeepStrictEqual(now, wanted);
	}).catch((thrown: Error) => {
		throw new Error(`${thrown.message}: ${last}`);
	});
	assert.equal(await hasRecord(bidder), isIn, "a bid that is not behind its target leaves no record");
}

describe("a builder that mines", () => {
	it("a target, its backrun and the refund as it got them pays the user, and all are notified", async () => {
		const one = await bidOn();
		const before = await countsOf(one.placed.bidder);
		const block = await fixture.system.nextBlock();
		await fixture.event(one.target, "refunded");
		const { transactions } = await fixture.block(block);
		const payment = transactions.find(
			({ from, to }) => from === DEV_COINBASE && to === one.target.user.address,
		);
		assert.ok(payment !== undefined && payment.value > 0n);
		await assertTold(one, { told: "INCLUDED", paid: BID, refund: payment.value }, before, block);
	});

	for (const { name, block: order, ...row } of ROWS) {
		it(`${name}: nothing is reported that the block does not have`, async () => {
			const contract = await fixture.placeCode(PAYS_COINBASE);
			const one = await bidOn(contract);
			const two = order.includes("target2") ? await bidOn() : one;
			const stranger = await fixture.actor();
			const parts: Parts = {
				...{ target: one.target, backrun: one.placed.backrun },
				...{ target2: two.target, backrun2: two.placed.backrun },
				other: stranger.sign({ to: await fixture.placeCode(PAYS_COINBASE), value: OTHERS }),
				refund: await refundTo(one.target.user.address),
			};
			const before = await countsOf(one.placed.bidder);
			if (row.reverts === true) await fixture.system.chain.rpc("anvil_setCode", [contract, REVERTS]);
			const block = await buildExactly(
				order.map((part) => parts[part]),
				row.reverts === true ? [parts.backrun] : [],
			);
			await assertTold(one, row, before, block);
			if (two !== one) {
				const told = await two.placed.bidder.told(two.placed.hash, APART);
				assert.deepEqual([told.paid, told.blockHash], [String(BID), null]);
			}
			if (order.includes("target")) return;
			// A target that the block left out stays pending; the builder has rejected it for the next
			// block.
			await fixture.passBlock();
			await fixture.open(one.target);
			await fixture.system.nextBlock();
			await fixture.reaches(one.target, "INCLUDED");
		});
	}
});
