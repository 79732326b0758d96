// Tests which transfer of the coinbase counts for which refund, and what was due by whose terms.
// test/integration/auction/auctionRefund.test.ts tests reading refunds from a real chain, retries
// and reorganisations.

import assert from "node:assert/strict";
import { test } from "node:test";
import { newRecord } from "../../../../relay/domain/record.ts";
import type { RefundTerms } from "../../../../relay/domain/refund.ts";
import type { PaidBlock } from "../../../../relay/inclusion/payments.ts";
import { type Landed, refundsOf } from "../../../../relay/market/settlement.ts";
import type { Fork } from "../../../../shared/ethereum/forks.ts";
import { AMSTERDAM, OSAKA } from "../../../support/forks.ts";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";

const COINBASE = "0xc01";
const USER = `0x${"77".repeat(20)}`;
/** The refunds that builders owe: 90 percent, or half of it without their gas. */
const A: RefundTerms = { percent: 90, refundGas: 0 };
const B: RefundTerms = { percent: 50, refundGas: 3 };

type Row = PaidBlock["transactions"][number];
type ForkedBlock = Parameters<typeof refundsOf>[0];

/**
 * Hashes of targets and backruns, and payments of the coinbase to the user, in the order of the
 * block.
 */
function blockOf(rows: readonly (string | Partial<Row>)[], fork: Fork = OSAKA): ForkedBlock {
	const transactions = rows.map((row, i): Row => {
		const usual = { hash: `pay ${i}`, from: COINBASE, to: USER, value: 0n };
		return typeof row === "string" ? { ...usual, hash: row, from: "0xsome" } : { ...usual, ...row };
	});
	return { number: 101, timestamp: 1_212, coinbase: COINBASE, baseFee: 10n, transactions, fork };
}

/** The backrun `hash` that is in the block, bid so many wei and brought as many. */
function landedIn(block: PaidBlock, hash: string, bid: bigint, terms: readonly RefundTerms[] = [A]): Landed {
	const bundled = { bundle: `bundle of ${hash}`, backrun: hash, bid: bid.toString() };
	return {
		record: newRecord(privateTransaction({ by: testAccount(400) })),
		...{ bundled, index: block.transactions.findIndex((tx) => tx.hash === hash) },
		...{ recipient: USER, isNew: false, brought: bid, terms },
	};
}

/** Cost, owed and paid of each. */
function amountsOf(block: ForkedBlock, landed: readonly Landed[]): readonly string[] {
	const refunds = refundsOf(block, landed);
	return landed.map(({ record }) => {
		const { cost, owed, paid } = refunds.get(record) ?? {};
		return `${cost} ${owed} ${paid}`;
	});
}

test("a refund names the bid, its proceeds, the payer and the recipient", () => {
	const block = blockOf(["T", "0xa", { value: 990n }]);
	const landed = { ...landedIn(block, "0xa", 1_000n), brought: 1_100n };
	assert.deepEqual(refundsOf(block, [landed]).get(landed.record), {
		...{ bundle: "bundle of 0xa", backrun: "0xa", bid: "1000", brought: "1100" },
		...{ cost: "0", owed: "990", paid: "990", payer: COINBASE, recipient: USER },
	});
});

const PAID = { value: 900n };
/** The block's contents, and the amount that counts as paid for a backrun owed 900 wei. */
const PAYMENTS: readonly (readonly [name: string, rows: readonly (string | Partial<Row>)[], paid: bigint])[] =
	[
		["nothing was paid", ["T", "0xa"], 0n],
		["another amount was paid", ["T", "0xa", { value: 5n }], 5n],
		["all that was paid up to the block's end counts", ["T", "0xa", { value: 5n }, "U", PAID, "V"], 905n],
		["somebody else paid it", ["T", "0xa", { ...PAID, from: "0xother" }], 0n],
		["it was paid to somebody else", ["T", "0xa", { ...PAID, to: "0xother" }], 0n],
		["a creation by the coinbase is no payment", ["T", "0xa", { ...PAID, to: null }], 0n],
		["a payment of nothing is none", ["T", "0xa", { value: 0n }, { value: 3n }], 3n],
		["a payment before the backrun is not for it", [PAID, "T", PAID, "0xa"], 0n],
	];

test("the coinbase's payment to the user behind the backrun is the refund", () => {
	for (const [name, rows, paid] of PAYMENTS) {
		const block = blockOf(rows);
		assert.deepEqual(amountsOf(block, [landedIn(block, "0xa", 1_000n)]), [`0 900 ${paid}`], name);
	}
});

/**
 * The bid of the second of two backruns of one recipient, the block behind the first one, and the
 * amounts that count as paid for each.
 */
const TWO: readonly (readonly [
	name: string,
	bid: bigint,
	rest: readonly (string | bigint)[],
	amounts: readonly [string, string],
])[] = [
	["each right behind its own", 500n, [900n, "U", "0xb", 450n], ["0 900 900", "0 450 450"]],
	["each at the end, whatever the order", 500n, ["U", "0xb", "V", 450n, 900n], ["0 900 900", "0 450 450"]],
	["both in one transfer at the end", 500n, ["U", "0xb", "V", 1_350n], ["0 900 900", "0 450 450"]],
	["less than is owed is divided by what is owed", 500n, ["U", "0xb", 600n], ["0 900 400", "0 450 200"]],
	[
		"more, too; what is left of a wei is the last one's",
		500n,
		["U", "0xb", 1_351n],
		["0 900 900", "0 450 451"],
	],
	["nothing was paid in the block", 500n, ["U", "0xb", "V"], ["0 900 0", "0 450 0"]],
];

test("what was paid to one recipient is divided among its backruns by what is owed", () => {
	for (const [name, bid, rest, expected] of TWO) {
		const all = rest.map((row) => (typeof row === "string" ? row : { value: row }));
		const block = blockOf(["T", "0xa", ...all]);
		const both = [landedIn(block, "0xa", 1_000n), landedIn(block, "0xb", bid)];
		assert.deepEqual(amountsOf(block, both), expected, name);
	}
});

test("two recipients have nothing to do with each other", () => {
	const other = `0x${"88".repeat(20)}`;
	const block = blockOf(["T", "0xa", { value: 900n, to: other }, "U", "0xb", { value: 7n }]);
	const both = [landedIn(block, "0xa", 1_000n), { ...landedIn(block, "0xb", 1_000n), recipient: other }];
	assert.deepEqual(amountsOf(block, both), ["0 900 7", "0 900 0"], "that came before the other's backrun");
});

/** Terms of the builders that had the backrun, and what was paid. */
const TERMS: readonly (readonly [name: string, readonly RefundTerms[], paid: bigint, amounts: string])[] = [
	["the one whose terms fit what was paid", [B, A], 470n, "30 470 470"],
	["the other one, whose terms fit", [B, A], 900n, "0 900 900"],
	["the builder that owes the most where none fits", [B, A], 7n, "0 900 7"],
	["the builder that owes the most where nothing was paid", [B, A], 0n, "0 900 0"],
	["nobody's where no builder is in the list any more", [], 42n, "0 0 42"],
];

test("the amount due follows the terms of the builder that matches the payment", () => {
	for (const [name, terms, paid, expected] of TERMS) {
		const block = blockOf(["T", "0xa", { value: paid }]);
		assert.deepEqual(amountsOf(block, [landedIn(block, "0xa", 1_000n, terms)]), [expected], name);
	}
});

test("since Amsterdam a payment to a new account costs more, also if the block itself has made it or nobody knew", () => {
	const brought = 10_000_000n;
	const usual: RefundTerms = { percent: 90, refundGas: "usual" };
	for (const [isNew, paid, expected] of [
		[false, 8_790_000n, "210000 8790000 8790000"],
		[false, 6_954_000n, "2046000 6954000 6954000"],
		[true, 6_954_000n, "2046000 6954000 6954000"],
		[true, 8_790_000n, "210000 8790000 8790000"],
		[true, 5n, "2046000 6954000 5"],
		[false, 5n, "210000 8790000 5"],
	] as const) {
		const block = blockOf(["T", "0xa", { value: paid }], AMSTERDAM);
		const landed = { ...landedIn(block, "0xa", brought, [usual]), isNew };
		assert.deepEqual(amountsOf(block, [landed]), [expected], `${isNew} ${paid}`);
	}
});
