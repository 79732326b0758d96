// The book against a naive model of it: thousands of random steps from seeds, compared after each one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuctionBook, type AuctionBookOptions, type Bid } from "../../../../relay/auction/book.ts";
import { SeededRandom } from "../../../support/seededRandom.ts";
import { backrunOf, bidOf } from "./bids.ts";

const STEPS = 2_000;
const LIMITS: AuctionBookOptions = {
	maxTotal: 30,
	maxPerNetwork: 16,
	maxPerTarget: 12,
	maxOwnPerTarget: 8,
	maxBytes: 12_000,
};
const TARGETS = ["0xa", "0xb", "0xc"];
const OWNERS = ["me", "you", "her"];
/** What one step may come to; "gave way" and "conflict" beside. */
const CORNERS = ["evicted", "later", "cheap", "removed", "revalued", "gave way", "conflict"];
const NETWORKS = ["n1", "n2", "n3", "n4"];

/** The obvious way to say the same: one list, searched anew each time. */
class Model {
	bids: Bid[] = [];

	full({ owner, network, target }: Bid): boolean {
		const ofNetwork = this.bids.filter((bid) => bid.network === network);
		const own = this.of(target).filter((bid) => bid.owner === owner);
		return ofNetwork.length >= LIMITS.maxPerNetwork || own.length >= LIMITS.maxOwnPerTarget;
	}

	/** Whether `bid` is one that may have to give way for `bytes` more: the cheapest of one of the fullest networks. */
	mayGiveWay(bid: Bid | null, bytes: number): boolean {
		const total = this.bids.reduce((sum, { backrun }) => sum + backrun.size, 0);
		const isFull = this.bids.length >= LIMITS.maxTotal || total + bytes > LIMITS.maxBytes;
		if (bid === null || !isFull) return bid === null && !isFull;
		const sizes = NETWORKS.map((name) => this.bids.filter(({ network }) => network === name).length);
		const own = this.bids.filter(({ network }) => network === bid.network);
		const isCheapest = own.every(
			(one) => one.value > bid.value || (one.value === bid.value && one.seq <= bid.seq),
		);
		return own.length === Math.max(...sizes) && isCheapest;
	}

	of(target: string): Bid[] {
		return this.bids.filter((bid) => bid.target === target);
	}

	/** The one to go: of the latest block behind `block`, else the cheapest, the latest of those. */
	last(target: string, block: number): Bid | null {
		const bids = this.of(target);
		if (bids.length < LIMITS.maxPerTarget) return null;
		const far = Math.max(...bids.map((bid) => bid.firstBlock));
		if (far > block) return bids.find((bid) => bid.firstBlock === far) ?? null;
		const ordered = [...bids].sort((a, b) =>
			a.value === b.value ? b.seq - a.seq : a.value < b.value ? -1 : 1,
		);
		return ordered[0] ?? null;
	}

	/** Again and again the dearest of what may still win, until nothing may. */
	winners(mayWin: (bid: Bid) => boolean): Map<string, Bid> {
		const won: Bid[] = [];
		for (;;) {
			const open = this.bids.filter(
				(bid) =>
					mayWin(bid) &&
					won.every(
						({ target, backrun }) =>
							target !== bid.target &&
							(backrun.from !== bid.backrun.from || backrun.nonce !== bid.backrun.nonce),
					),
			);
			const [first] = open;
			if (first === undefined) return new Map(won.map((bid) => [bid.target, bid]));
			const dearer = (a: Bid, b: Bid) => b.value > a.value || (b.value === a.value && b.seq < a.seq);
			won.push(open.reduce((best, bid) => (dearer(best, bid) ? bid : best), first));
		}
	}
}

for (const seed of [11, 12, 13, 14]) {
	test(`the book does what the model does, seed ${seed}`, () => {
		const random = new SeededRandom(seed);
		const book = new AuctionBook(LIMITS);
		const model = new Model();
		const seen = new Set<string>();
		for (let i = 0; i < STEPS; i += 1) {
			for (const what of step(random, book, model)) seen.add(what);
			if (compare(random, book, model, `seed ${seed}, step ${i}`)) seen.add("conflict");
		}
		// A run that never came to a corner would prove nothing about it.
		for (const corner of ["added", "full", ...CORNERS]) {
			assert.ok(seen.has(corner), `never ${corner}`);
		}
		for (const bid of [...model.bids]) assert.ok(book.remove(bid));
		assert.deepEqual([book.size, book.targets()], [0, []]);
		for (const network of NETWORKS) assert.equal(book.full({ owner: "me", network }, "0xa", 0), null);
	});
}

/** One random step on both; answers what it came to. */
function step(random: SeededRandom, book: AuctionBook, model: Model): string[] {
	const kind = random.weighted({ add: 12, remove: 3, revalue: 5 });
	if (kind === "add" || model.bids.length === 0) return add(random, book, model);
	const bid = random.pick(model.bids);
	if (kind === "remove") {
		assert.ok(book.remove(bid));
		assert.ok(!book.remove(bid));
		model.bids = model.bids.filter((one) => one !== bid);
		return ["removed"];
	}
	book.revalue(bid, weiOf(random));
	return ["revalued"];
}

function add(random: SeededRandom, book: AuctionBook, model: Model): string[] {
	const backrun = backrunOf(random.below(6), random.below(3), random.pick([0, 100, 600]));
	const firstBlock = random.once(25) ? 102 + random.below(3) : 101;
	const bid = bidOf({
		firstBlock,
		target: random.pick(TARGETS),
		owner: random.pick(OWNERS),
		network: random.pick(NETWORKS),
		backrun,
		value: weiOf(random),
	});
	const full = model.full(bid);
	assert.equal(book.full(bid, bid.target, 0) !== null, full);
	if (full) return ["full"];
	const last = book.lastIfFull(bid.target, 101);
	const expected = model.last(bid.target, 101);
	assert.deepEqual([last?.firstBlock, last !== null], [expected?.firstBlock, expected !== null]);
	if (last !== null && last.firstBlock <= 101) {
		assert.equal(last, expected);
		if (last.value >= bid.value) return ["cheap"];
	}
	const told = [last === null ? "added" : last.firstBlock > 101 ? "later" : "evicted"];
	const remove = (gone: Bid) => {
		book.remove(gone);
		model.bids = model.bids.filter((one) => one !== gone);
	};
	if (last !== null) remove(last);
	for (;;) {
		const cheapest = book.cheapestIfFull(backrun.size);
		assert.ok(model.mayGiveWay(cheapest, backrun.size));
		if (cheapest === null) break;
		remove(cheapest);
		told.push("gave way");
	}
	book.add(bid);
	model.bids.push(bid);
	return told;
}

/** Few values, so that many are equal; some large ones. */
function weiOf(random: SeededRandom): bigint {
	return BigInt(random.below(8)) * (random.once(4) ? 10n ** 18n : 1n) + 1n;
}

/** Answers whether a target's best bid had to give way to another target's. */
function compare(random: SeededRandom, book: AuctionBook, model: Model, where: string): boolean {
	assert.equal(book.size, model.bids.length, where);
	assert.deepEqual(
		[...book.targets()].sort(),
		TARGETS.filter((target) => model.of(target).length > 0),
		where,
	);
	for (const target of TARGETS) {
		assert.equal(book.has(target), model.of(target).length > 0, where);
		assert.deepEqual(new Set(book.of(target)), new Set(model.of(target)), where);
	}
	for (const bid of model.bids) assert.ok(book.holds(bid), where);
	const barred = random.below(4);
	const mayWin = (bid: Bid) => barred === 0 || bid.seq % 4 !== barred;
	const expected = model.winners(mayWin);
	const got = book.winners(mayWin);
	assert.deepEqual([...got.keys()].sort(), [...expected.keys()].sort(), where);
	for (const [target, bid] of expected) assert.equal(got.get(target), bid, where);
	return [...expected].some(([target, bid]) =>
		model.of(target).some((one) => mayWin(one) && one.value > bid.value),
	);
}
