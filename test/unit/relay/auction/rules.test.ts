// Tests the auction's rules as tables: block ranges, bundle names, facts about bidders' conduct and their consequences, and the
// fields of a shared transaction that searchers see.

import assert from "node:assert/strict";
import { test } from "node:test";
import { backrunName } from "../../../../relay/auction/bids.ts";
import {
	bidderOf,
	type ConductFact,
	type DatedFact,
	factsOf,
	isKept,
	mayHave,
	type Round,
	type RoundBid,
	standingOf,
} from "../../../../relay/auction/conduct.ts";
import { partialPendingTransaction } from "../../../../relay/auction/feed.ts";
import { nameOf } from "../../../../relay/auction/plainBundle.ts";
import { blockRange, bundleHash, comingOf } from "../../../../relay/domain/bundle.ts";
import { keccak256 } from "../../../../shared/ethereum/signatures.ts";
import type { DecodedTransaction } from "../../../../shared/ethereum/transaction.ts";
import { signedTransaction, type TxOptions, testAccount } from "../../../support/txFactory.ts";

/** A range, or how the refusal's message begins. */
type Expected = readonly [number, number] | string;

/** First and last as asked for at head 100. */
const RANGES: readonly (readonly [bigint | null, bigint | null, Expected])[] = [
	[null, null, [101, 101]],
	[100n, null, [101, 101]],
	[100n, 100n, [101, 101]],
	[101n, null, [101, 101]],
	[130n, null, [130, 130]],
	[130n, 160n, [130, 160]],
	[100n, 105n, [101, 105]],
	[1n, 105n, [101, 105]],
	[99n, null, "BLOCK_PAST bundle block 99 is in the past"],
	[98n, 100n, "BLOCK_PAST bundle block 100 is in the past"],
	[131n, null, "BLOCK_TOO_FAR bundle block 131 is too far ahead"],
	[2n ** 64n, null, `BLOCK_TOO_FAR bundle block ${2n ** 64n} is too far ahead`],
];

/** Asked for at head 100 and read again when the next block is so and so. */
const COMING: readonly (readonly [bigint | null, bigint | null, number, Expected])[] = [
	[null, null, 103, [103, 103]],
	[101n, null, 102, "BLOCK_PAST bundle block 101 is in the past"],
	[100n, null, 102, "BLOCK_PAST bundle block 101 is in the past"],
	[105n, null, 103, [105, 105]],
	[99n, 104n, 103, [103, 104]],
	[99n, 104n, 105, "BLOCK_PAST bundle block 104 is in the past"],
	// A reorganisation may have lowered the head.
	[105n, 107n, 100, [105, 107]],
];

const textOf = (range: ReturnType<typeof blockRange>) =>
	range.ok ? [range.first, range.last] : `${range.code} ${range.message}`;

test("a bundle is for the requested blocks that are still to come, 30 ahead at most", () => {
	for (const [first, last, expected] of RANGES) {
		assert.deepEqual(textOf(blockRange({ first, last }, 100)), expected, `${first} to ${last}`);
	}
	for (const [first, last, next, expected] of COMING) {
		const asked = { first, last };
		const range = blockRange(asked, 100);
		assert.ok(range.ok);
		assert.deepEqual(textOf(comingOf(asked, range, next)), expected, `${first} to ${last} at ${next}`);
	}
});

test("a bundle's hash is the keccak256 of its transactions' concatenated hashes", () => {
	const [a, b] = [`0x${"0a".repeat(32)}`, `0x${"b0".repeat(32)}`];
	const of = (hex: string) => `0x${Buffer.from(keccak256(Buffer.from(hex, "hex"))).toString("hex")}`;
	assert.equal(bundleHash([a, b]), of("0a".repeat(32) + "b0".repeat(32)));
	assert.equal(bundleHash([]), "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
});

test("a bid is named by owner and target, a plain bundle by its uuid or its content, and no two names collide", () => {
	const names = [
		...[backrunName("0xt", "me"), backrunName("0xu", "me"), backrunName("0xt", "you")],
		nameOf("me", "u", ["0xb", 101, 101]),
		nameOf("you", "u", ["0xb", 101, 101]),
		nameOf("me", "0xb", []),
		nameOf("me", null, ["0xb", 101, 101]),
		nameOf("me", null, ["0xb", 102, 102]),
		nameOf("me", '["0xb",101,101]', []),
		nameOf('me","u', "u", []),
	];
	assert.equal(new Set(names).size, names.length, "names collide");
	assert.equal(nameOf("me", "u", ["0xb"]), nameOf("me", "u", ["0xc"]));
});

const BIDDER = { owner: "me", client: "net", sender: "0xs", contract: "0xc" };
const BLOCK_TIME_MS = 100_000;

function bid(
	backrun: string,
	value: bigint,
	took: Record<string, string> = { a: "accepted", b: "accepted" },
): RoundBid {
	const deliveries = Object.entries(took).map(([builder, answer]) => {
		const late = answer === "late";
		const at = late ? BLOCK_TIME_MS - 999 : BLOCK_TIME_MS - 1_000;
		return { at, builder, kind: "bundle" as const, answer: late ? "accepted" : (answer as "accepted") };
	});
	return { bundle: `of ${backrun}`, backrun, bidder: BIDDER, value, deliveries } as RoundBid;
}

/** `kind backrun` of each fact, with what was paid. */
function facts(round: Partial<Round>): readonly string[] {
	const whole: Round = { time: BLOCK_TIME_MS, makers: ["a", "b"], bids: [], landed: null, ...round };
	return factsOf(whole).map(({ kind, bundle, paid }) => `${kind} ${bundle} ${paid}`);
}

const landed = (backrun: string, transfers: bigint | null, brought = transfers ?? 0n) => ({
	backrun,
	transfers,
	brought,
});

/** Wei that a bid of 100 brought by transfers (null: the node can't tell), and in all; what that is. */
const PAID: readonly (readonly [bigint | null, bigint, string])[] = [
	[100n, 100n, "landed"],
	[99n, 99n, "landed"],
	[98n, 98n, "short"],
	[1_000n, 1_000n, "landed"],
	// Priority fees are no payment.
	[1n, 1_000n, "short"],
	[null, 100n, "landed"],
];
test("a bid that pays more than a hundredth less than was bid is short", () => {
	for (const [transfers, brought, kind] of PAID) {
		const found = facts({ bids: [bid("x", 100n)], landed: landed("x", transfers, brought) });
		assert.deepEqual(found, [`${kind} of x ${transfers}`]);
	}
});

const LOST: readonly (readonly [string, Partial<Round>, boolean])[] = [
	["to a lower one", { landed: landed("y", 50n) }, true],
	["to none", {}, true],
	["to a dearer one", { landed: landed("y", 101n) }, false],
	["to one that brought as much with its fees", { landed: landed("y", 50n, 100n) }, false],
	["where the maker of the block is unknown", { makers: [] }, false],
	[
		"where one of those who may have made it refused it",
		{ bids: [bid("x", 100n, { a: "accepted", b: "rejected" })] },
		false,
	],
	["where it failed to reach one of them", { bids: [bid("x", 100n, { a: "accepted", b: "failed" })] }, false],
	["where one of them has not answered", { bids: [bid("x", 100n, { a: "accepted" })] }, false],
	["where one of them had it late", { bids: [bid("x", 100n, { a: "accepted", b: "late" })] }, false],
	[
		"where one that it did not reach can't have made the block",
		{ makers: ["a"], bids: [bid("x", 100n, { a: "accepted" })] },
		true,
	],
];
test("a bid has lost if every possible maker of the block had it in time and took less", () => {
	for (const [name, round, isLoss] of LOST) {
		assert.deepEqual(facts({ bids: [bid("x", 100n)], ...round }), isLoss ? ["lost of x null"] : [], name);
	}
});

test("a builder does not have what failed, was rejected or was never sent", () => {
	assert.deepEqual(
		(["accepted", "timeout", undefined, "failed", "rejected", "unsent"] as const).map(mayHave),
		[true, true, true, false, false, false],
	);
});

const dated = (kind: ConductFact["kind"], block: number): DatedFact => ({
	...{ kind, block, bundle: "b", bidder: BIDDER, bid: "100", paid: kind === "short" ? "1" : null },
});

test("a short bid bars for 32 blocks, each further one twice as long, 7,200 at most", () => {
	const blocks = Array.from({ length: 10 }, (_, i) => 1_000_000 + i * 10_000);
	for (const [i, block] of blocks.entries()) {
		const known = blocks.slice(0, i + 1).map((one) => dated("short", one));
		const until = block + Math.min(32 * 2 ** i, 7_200);
		assert.deepEqual(standingOf(known, until)?.bar, { until, bid: 100n, paid: 1n, block });
		assert.equal(standingOf(known, until + 1), null);
	}
});

const BEHIND: readonly (readonly [string, readonly DatedFact[], number | null])[] = [
	["two losses", [dated("lost", 1), dated("lost", 2)], null],
	["three", [1, 2, 3].map((n) => dated("lost", n)), 67],
	["three in 64 blocks", [1, 2, 64].map((n) => dated("lost", n)), 128],
	["three in 65", [1, 2, 65].map((n) => dated("lost", n)), null],
	["landing between", [dated("lost", 1), dated("lost", 2), dated("landed", 3), dated("lost", 4)], null],
	["a short one between", [dated("lost", 1), dated("lost", 2), dated("short", 3), dated("lost", 4)], 68],
	["many, the last three count", [1, 30, 60, 90].map((n) => dated("lost", n)), 154],
];
test("three losses in 64 blocks without a landed bid rank a bidder behind for 64", () => {
	for (const [name, known, until] of BEHIND) {
		assert.equal(standingOf(known, 66)?.behindUntil ?? null, until, name);
		if (until !== null) assert.equal(standingOf(known, until + 1)?.behindUntil ?? null, null, name);
	}
});

test("a creation and a transfer to the fixed coinbase call no contract: they count by their sender", () => {
	const by = { owner: "me", network: "net" };
	const contract = (to: string | null, fixed?: string) => bidderOf({ from: "0xs", to }, by, fixed).contract;
	assert.deepEqual(
		[contract("0xc"), contract(null), contract("0xf", "0xf"), contract("0xf")],
		["0xc", "0xs", "0xs", "0xf"],
	);
	assert.deepEqual(bidderOf({ from: "0xs", to: "0xc" }, null, undefined), {
		...BIDDER,
		owner: null,
		client: null,
	});
});

test("facts that can't count any more are not kept", () => {
	assert.deepEqual([isKept({ kind: "lost" }, 100, 291), isKept({ kind: "lost" }, 100, 292)], [true, false]);
	assert.ok(isKept({ kind: "short" }, 100, 50_000) && !isKept({ kind: "short" }, 100, 50_500));
});

/** What an authorization lets an account run. */
const CODE = `0x${"de".repeat(20)}`;
/** The fields of the interface, section 2.3, in its order. */
const GIVEN = [
	...["chainId", "to", "value", "data", "accessList", "nonce", "maxPriorityFeePerGas", "maxFeePerGas"],
	...["gas", "type", "hash", "from"],
];
const PRICE = { gasPrice: "0x7", maxPriorityFeePerGas: "0x7", maxFeePerGas: "0x7" };
/** What is sent, and what is shown of it. */
const SENT: readonly (readonly [TxOptions, Record<string, unknown>])[] = [
	[
		{ type: 0, gasPrice: 7 },
		{ ...PRICE, type: "0x0", accessList: [] },
	],
	[
		{ type: 1, gasPrice: 7 },
		{ ...PRICE, type: "0x1" },
	],
	[
		{ maxFeePerGas: 2n ** 256n - 1n, maxPriorityFeePerGas: 0, nonce: 255, data: "0xA900", value: 16 },
		{
			...{ type: "0x2", maxFeePerGas: `0x${"f".repeat(64)}`, maxPriorityFeePerGas: "0x0" },
			...{ nonce: "0xff", data: "0xa900", value: "0x10", chainId: "0x7a69" },
		},
	],
	[
		{ to: null, data: "0x" },
		{ to: null, data: "0x" },
	],
	[
		{ type: 3, blobs: 2, maxFeePerBlobGas: 7 },
		{ type: "0x3", maxFeePerBlobGas: "0x7" },
	],
	[{ type: 4, authorizations: [{ by: testAccount(9), address: CODE }] }, { type: "0x4" }],
];

/** Halves of signatures as text: in hex with and without leading zeros, and in digits. */
function secretsOf(tx: DecodedTransaction): string[] {
	const halves = [tx.r, tx.s, ...tx.authorizationList.flatMap(({ r, s }) => [r, s])];
	return halves.flatMap((one) => [one.toString(16), one.toString(16).padStart(64, "0"), one.toString()]);
}

test("each type shows the interface's fields in order, and nothing of a signature", () => {
	for (const [options, expected] of SENT) {
		const tx = signedTransaction(options);
		const shown = partialPendingTransaction(tx);
		const name = JSON.stringify(expected);
		const more = ["gasPrice", "maxFeePerBlobGas", "blobVersionedHashes"];
		assert.deepEqual({ ...shown, ...expected }, shown, name);
		assert.deepEqual(
			Object.keys(shown).filter((field) => !more.includes(field)),
			GIVEN,
			name,
		);
		const authorities = [CODE.slice(2), testAccount(9).address.slice(2)];
		for (const secret of [...secretsOf(tx), tx.raw.toString("hex"), ...authorities])
			assert.ok(!JSON.stringify(shown).includes(secret), `${name}: a signature is shown`);
	}
});
