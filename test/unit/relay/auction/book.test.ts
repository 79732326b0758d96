// The book of bids: who wins, what is full, and what is left when bids go.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuctionBook, type Bid, BOOK_LIMITS } from "../../../../relay/auction/book.ts";
import { backrunOf, bidOf } from "./bids.ts";

function bookOf(...bids: readonly Bid[]): AuctionBook {
	const book = new AuctionBook(BOOK_LIMITS);
	for (const bid of bids) book.add(bid);
	return book;
}

const winners = (book: AuctionBook, mayWin: (bid: Bid) => boolean = () => true) => [
	...book.winners(mayWin).values(),
];

test("the dearest bid of each target wins; of equals the earlier one, whatever the order they were added in", () => {
	const early = bidOf({ value: 5n });
	const late = bidOf({ value: 5n });
	const other = bidOf({ value: 1n, target: "0xu" });
	assert.deepEqual(winners(bookOf(late, early, other)), [early, other]);
	const dearer = bidOf({ value: 6n });
	assert.deepEqual(winners(bookOf(early, dearer, late)), [dearer]);
});

test("values beyond what a number holds are told apart", () => {
	const low = bidOf({ value: 2n ** 64n });
	const high = bidOf({ value: 2n ** 64n + 1n });
	assert.deepEqual(winners(bookOf(low, high)), [high]);
});

test("bids that may not win are passed over, and take no nonce from others", () => {
	const backrun = backrunOf(1, 7);
	const stale = bidOf({ value: 9n, backrun });
	const good = bidOf({ value: 3n, target: "0xu", backrun });
	const next = bidOf({ value: 2n });
	assert.deepEqual(
		winners(bookOf(stale, good, next), (bid) => bid !== stale),
		[good, next],
	);
	assert.deepEqual(
		winners(bookOf(stale, good, next), () => false),
		[],
	);
});

test("a sender's nonce is given out once: to the dearest, and the other target takes its next best", () => {
	const backrun = backrunOf(1, 7);
	const [dear, cheap] = [bidOf({ value: 9n, backrun }), bidOf({ value: 8n, target: "0xu", backrun })];
	const [next, worse] = [bidOf({ value: 2n, target: "0xu" }), bidOf({ value: 1n, target: "0xu" })];
	assert.deepEqual(winners(bookOf(cheap, dear, worse, next)), [dear, next]);
	assert.deepEqual(winners(bookOf(cheap, dear)), [dear]);
});

test("another nonce of the same sender, and the same nonce of another sender, are no conflict", () => {
	const bids = [
		[1, 7],
		[1, 8],
		[2, 7],
	].map(([account = 0, nonce = 0], i) =>
		bidOf({ target: `0x${i}`, backrun: backrunOf(account, nonce), value: BigInt(9 - i) }),
	);
	assert.deepEqual(winners(bookOf(...bids)), bids);
});

test("a nonce that a losing bid of the same target has is free for another target", () => {
	const backrun = backrunOf(1, 7);
	const best = bidOf({ value: 9n });
	const second = bidOf({ value: 8n, backrun });
	const other = bidOf({ value: 1n, target: "0xu", backrun });
	assert.deepEqual(winners(bookOf(best, second, other)), [best, other]);
});

test("a new value is a new place", () => {
	const [a, b] = [bidOf({ value: 5n }), bidOf({ value: 3n })];
	const book = bookOf(a, b);
	book.revalue(a, 1n);
	assert.deepEqual([winners(book), a.value], [[b], 1n]);
	book.revalue(b, 1n);
	assert.deepEqual(winners(book), [a]);
	book.revalue(b, 1n);
	assert.equal(book.size, 2);
});

test("what is removed is gone, once", () => {
	const [a, b] = [bidOf({ value: 5n }), bidOf({ value: 3n })];
	const book = bookOf(a, b);
	assert.deepEqual([book.remove(a), book.remove(a), book.remove(bidOf())], [true, false, false]);
	assert.deepEqual([book.size, book.holds(a), book.holds(b), book.has("0xt")], [1, false, true, true]);
	book.remove(b);
	assert.deepEqual(
		[book.size, book.has("0xt"), book.targets(), book.of("0xt"), winners(book)],
		[0, false, [], [], []],
	);
});

test("an owner's room is his own, and comes back; what makes room itself may come", () => {
	const book = new AuctionBook({ ...BOOK_LIMITS, maxPerNetwork: 2 });
	const [a, b] = [bidOf(), bidOf({ target: "0xu" })];
	book.add(a);
	assert.equal(book.full({ owner: "me", network: "me" }, "0xt", 0), null);
	book.add(b);
	assert.match(book.full({ owner: "me", network: "me" }, "0xt", 0) ?? "", /^2 bids of one network$/);
	assert.equal(book.full({ owner: "me", network: "me" }, "0xt", 1), null);
	assert.equal(book.full({ owner: "you", network: "you" }, "0xt", 0), null);
	book.remove(a);
	assert.equal(book.full({ owner: "me", network: "me" }, "0xt", 0), null);
});

test("an owner's room on one target is smaller", () => {
	const book = new AuctionBook({ ...BOOK_LIMITS, maxOwnPerTarget: 2 });
	for (let i = 0; i < 2; i += 1) book.add(bidOf());
	assert.match(
		book.full({ owner: "me", network: "me" }, "0xt", 0) ?? "",
		/^2 bids of one searcher on one transaction$/,
	);
	assert.equal(book.full({ owner: "me", network: "me" }, "0xt", 1), null);
	assert.equal(book.full({ owner: "you", network: "you" }, "0xt", 0), null);
	assert.equal(book.full({ owner: "me", network: "me" }, "0xu", 0), null);
});

test("everybody's room: where bids or bytes are out, the fullest network's cheapest gives way", () => {
	const book = new AuctionBook({ ...BOOK_LIMITS, maxTotal: 3, maxBytes: 1_000 });
	const [dear, cheap] = [bidOf({ owner: "a", value: 1n }), bidOf({ owner: "b", value: 2n })];
	const large = bidOf({ owner: "b", value: 9n, backrun: backrunOf(1, 1, 300) });
	book.add(dear);
	book.add(large);
	const left = 1_000 - dear.backrun.size - large.backrun.size;
	assert.equal(book.cheapestIfFull(left), null);
	assert.notEqual(book.cheapestIfFull(left + 1), null);
	book.add(cheap);
	assert.equal(book.cheapestIfFull(0), cheap);
	book.remove(cheap);
	assert.equal(book.cheapestIfFull(0), null);
});

test("a target is full by number; its cheapest bid is the one to go, of equals the latest", () => {
	const book = new AuctionBook({ ...BOOK_LIMITS, maxPerTarget: 3 });
	assert.equal(book.lastIfFull("0xt", 101), null);
	const bids = [4n, 2n, 2n].map((value) => bidOf({ value }));
	for (const bid of bids) {
		assert.equal(book.lastIfFull("0xt", 101), null);
		book.add(bid);
	}
	assert.equal(book.lastIfFull("0xt", 101), bids[2]);
	assert.equal(book.lastIfFull("0xu", 101), null);
});

test("of a full target those for the latest block to come go first, however dear: they can wait, this block can't", () => {
	const book = new AuctionBook({ ...BOOK_LIMITS, maxPerTarget: 4 });
	const [now, soon, far, begun] = [
		bidOf({ value: 1n }),
		bidOf({ value: 9n, firstBlock: 103, lastBlock: 103 }),
		bidOf({ value: 8n, firstBlock: 110, lastBlock: 110 }),
		bidOf({ value: 2n, firstBlock: 99, lastBlock: 120 }),
	] as const;
	for (const bid of [now, soon, far, begun]) book.add(bid);
	assert.equal(book.lastIfFull("0xt", 101), far);
	book.remove(far);
	book.add(bidOf({ value: 3n }));
	assert.equal(book.lastIfFull("0xt", 101), soon);
	assert.equal(book.lastIfFull("0xt", 103), now);
	assert.equal(book.lastIfFull("0xt", 120), now);
});
