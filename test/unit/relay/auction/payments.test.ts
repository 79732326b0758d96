// Tests as tables what follows from what bids have paid in blocks, and from places that were had in vain.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	barOf,
	type DatedPayment,
	isKept,
	landingsOf,
	partiesOf,
	paymentOf,
	provenBy,
} from "../../../../relay/auction/payments.ts";
import { PlacesHad } from "../../../../relay/auction/placesHad.ts";
import type { Bidder } from "../../../../relay/domain/bundleStatus.ts";

const BIDDER = { owner: "me", client: "net", sender: "0xs" };

/** Wei that a bid of 100 paid by transfers (null: the node can't tell), and what that is. */
const PAID: readonly (readonly [bigint | null, string])[] = [
	[100n, "landed"],
	[99n, "landed"],
	[98n, "short"],
	[0n, "short"],
	[1_000n, "landed"],
	[null, "landed"],
];
test("a bid that pays more than a hundredth less than was bid is short", () => {
	for (const [paid, kind] of PAID) {
		const expected = { kind, bundle: "b", bidder: BIDDER, bid: "100", paid: paid?.toString() ?? null };
		assert.deepEqual(paymentOf("b", BIDDER, 100n, paid), expected);
	}
});

const dated = (block: number, bid: bigint, paid: bigint | null): DatedPayment => ({
	...paymentOf("b", BIDDER, bid, paid),
	block,
});

test("a short payment bars for 32 blocks, each further one twice as long, 7,200 at most", () => {
	const blocks = Array.from({ length: 10 }, (_, i) => 1_000_000 + i * 10_000);
	for (const [i, block] of blocks.entries()) {
		const known = blocks.slice(0, i + 1).map((one) => dated(one, 100n, 1n));
		const until = block + Math.min(32 * 2 ** i, 7_200);
		assert.deepEqual(barOf(known, until), { until, bid: 100n, paid: 1n, block });
		assert.equal(barOf(known, until + 1), null);
	}
	assert.equal(barOf([dated(1, 100n, 100n)], 2), null);
});

const PROOFS: readonly (readonly [string, readonly DatedPayment[], number, bigint])[] = [
	["nothing paid", [], 10, 0n],
	["one payment counts eight times", [dated(1, 10n, 10n)], 10, 80n],
	["what was paid counts, not what was bid", [dated(1, 10n, 25n)], 10, 200n],
	["the highest one", [dated(1, 10n, 10n), dated(2, 30n, 30n), dated(3, 20n, 20n)], 10, 240n],
	["for 7,200 blocks", [dated(1, 10n, 10n)], 7_201, 80n],
	["and no longer", [dated(1, 10n, 10n)], 7_202, 0n],
	["one that was not traced proves nothing", [dated(1, 10n, null)], 10, 0n],
	["a short one ends all proofs before it", [dated(1, 10n, 10n), dated(2, 80n, 1n)], 10, 0n],
	["and proves nothing itself", [dated(1, 1_000n, 500n)], 10, 0n],
	["which are earned anew", [dated(1, 10n, 10n), dated(2, 80n, 1n), dated(40, 2n, 2n)], 50, 16n],
];
test("a sender is proven up to eight times the most that it has paid in full since it last paid short", () => {
	for (const [name, payments, block, upTo] of PROOFS)
		assert.equal(provenBy(payments, block, BIDDER), upTo, name);
});

const by = (owner: string | null, client: string | null) => ({ owner, client, sender: "0xs" });
const paidBy = (bidder: Bidder, block: number, bid: bigint, paid: bigint): DatedPayment => ({
	...paymentOf(`b${block}`, bidder, bid, paid),
	block,
});
/** What was paid for one sender by whom, who bids, and up to what he is proven. */
const BROUGHT: readonly (readonly [string, readonly DatedPayment[], Bidder, bigint])[] = [
	["the same signer elsewhere", [paidBy(BIDDER, 1, 10n, 10n)], by("me", "away"), 80n],
	["the same address with another key", [paidBy(BIDDER, 1, 10n, 10n)], by("my other key", "net"), 80n],
	["a stranger with the sender's signed backruns", [paidBy(BIDDER, 1, 10n, 10n)], by("you", "far"), 0n],
	["whoever it was, where that is not known", [paidBy(by(null, null), 1, 10n, 10n)], BIDDER, 80n],
	[
		"what a stranger brings ends no proof",
		[paidBy(BIDDER, 1, 10n, 10n), paidBy(by("you", "far"), 2, 80n, 1n)],
		...([BIDDER, 80n] as const),
	],
	[
		"what the signer brings elsewhere does",
		[paidBy(BIDDER, 1, 10n, 10n), paidBy(by("me", "away"), 2, 80n, 1n)],
		...([BIDDER, 0n] as const),
	],
	[
		"one payment is good for one short one, whoever shares the signer or the address with it",
		[paidBy(BIDDER, 1, 10n, 10n), paidBy(by("my other key", "net"), 2, 80n, 1n)],
		...([by("me", "away"), 0n] as const),
	],
	[
		"a stranger's own payment is ended by his own short one",
		[paidBy(by("you", "far"), 1, 10n, 10n), paidBy(by("you", "far"), 2, 80n, 1n)],
		...([by("you", "far"), 0n] as const),
	],
];
test("a sender is proven for the signer and the address by which it has paid, and for nobody else", () => {
	for (const [name, payments, bidder, upTo] of BROUGHT)
		assert.equal(provenBy(payments, 10, bidder), upTo, name);
});

test("payments are counted by sender, network address and signer, never by a contract", () => {
	assert.deepEqual(partiesOf(BIDDER), ["sender 0xs", "client net", "owner me"]);
	assert.deepEqual(partiesOf({ owner: null, client: null, sender: "0xs" }), ["sender 0xs"]);
});

test("payments that can't count any more are not kept", () => {
	assert.ok(isKept({ kind: "landed" }, 100, 7_299) && !isKept({ kind: "landed" }, 100, 7_300));
	assert.ok(isKept({ kind: "short" }, 100, 50_000) && !isKept({ kind: "short" }, 100, 50_500));
});

/** Blocks with places by bids of 80 wei; the block of a landing and what it paid; until when the bidder is spent at 70. */
const SPENT: readonly (readonly [
	string,
	readonly number[],
	readonly [number, bigint | null] | null,
	number | null,
])[] = [
	["two", [1, 2], null, null],
	["three", [1, 2, 10], null, 74],
	["three in 64 blocks", [5, 6, 68], null, 132],
	["three in 65", [4, 6, 68], null, null],
	["one block twice", [7, 7, 8], null, null],
	["landed after the first", [10, 11, 12], [10, 10n], null],
	["landed for less than an eighth", [10, 11, 12], [12, 9n], 76],
	["landed, and nobody can tell for what", [10, 11, 12], [12, null], null],
	["landed before them", [10, 11, 12], [9, 10n], 76],
	["three, then 64 blocks", [1, 2, 5], null, null],
	["many: the last three count", [1, 20, 40, 60, 61, 62], null, 126],
	["after a reorganisation a block comes again", [10, 11, 10, 11], null, null],
];
test("a bidder with places in three blocks of 64 is spent for 64, or until it lands with an eighth of what it bid", () => {
	for (const [name, blocks, landed, until] of SPENT) {
		const landings = landed === null ? [] : landingsOf([dated(landed[0], landed[1] ?? 1n, landed[1])], 70);
		for (const by of ["sender", "client"] as const) {
			const had = new PlacesHad();
			const other = { ...BIDDER, [by]: "another" };
			for (const [i, block] of blocks.entries())
				had.note(
					by === "sender" ? { ...BIDDER, sender: `0x${i}` } : { ...BIDDER, client: `n${i}` },
					...([80n, block] as const),
				);
			// Its address had them all, or its sender.
			assert.equal(
				had.spentUntil(BIDDER, 70, () => landings),
				until,
				`${name}, by ${by}`,
			);
			const stranger = { owner: "me", client: "elsewhere", sender: "0xelse" };
			const alone = had.spentUntil(stranger, 70, () => []);
			assert.equal(alone, null, `${name}: ${other.owner} alone`);
		}
	}
});

test("a short payment is no landing, and the dearest bid of a block is what has to be made up for", () => {
	assert.deepEqual(landingsOf([dated(10, 100n, 1n)], 70), []);
	for (const values of [
		[800n, 80n],
		[80n, 800n],
	]) {
		const had = new PlacesHad();
		for (const block of [10, 11, 12]) for (const value of values) had.note(BIDDER, value, block);
		const spent = (paid: bigint) => had.spentUntil(BIDDER, 70, () => landingsOf([dated(12, paid, paid)], 70));
		assert.deepEqual([spent(99n), spent(100n)], [76, null]);
	}
});

test("who is spent is forgotten when it can't count any more", () => {
	const had = new PlacesHad();
	for (const block of [1, 2, 3]) had.note(BIDDER, 80n, block);
	had.forget(67);
	assert.equal(
		had.spentUntil(BIDDER, 67, () => []),
		67,
	);
	had.forget(200);
	assert.equal(
		had.spentUntil(BIDDER, 60, () => []),
		null,
	);
});
