// Simulating bids again, by itself: how many and which are asked about in a state, what each verdict does, when more are
// asked about, and what is tried again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuctionBook, type Bid, BOOK_LIMITS } from "../../../../relay/auction/book.ts";
import { BidChecks, type Judged } from "../../../../relay/market/bidChecks.ts";
import type { BidSimulation, BidVerdict } from "../../../../relay/market/bidSimulation.ts";
import { Background } from "../../../../shared/background.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { backrunOf, bidOf } from "../auction/bids.ts";

const TARGET = "0xt";

/** Five bids of an earlier state, the dearest first, around simulations that wait for {@link Scene.answer}. */
class Scene {
	readonly clock = new ManualClock();
	readonly book = new AuctionBook(BOOK_LIMITS);
	readonly faults: string[] = [];
	readonly checks: BidChecks;
	readonly bids: readonly Bid[];
	/** The state that the target stands in; null: none may be bid on. */
	basis: string | null = "now";
	block = 101;
	/** What was judged, as `value kind`. */
	readonly judged: string[] = [];
	onJudged: (bid: Bid, verdict: Judged) => void = () => {};
	#asked: number[] = [];
	readonly #waiting = new Map<string, (verdict: BidVerdict | Error) => void>();

	constructor(values: readonly bigint[] = [50n, 40n, 30n, 20n, 10n]) {
		const { book, clock } = this;
		this.bids = values.map((value, i) => bidOf({ value, basis: "before", backrun: backrunOf(i, 0) }));
		for (const bid of [...this.bids].reverse()) book.add(bid);
		const simulation: Pick<BidSimulation, "target" | "basis" | "simulate"> = {
			// Its shape is nobody's business here.
			target: () => (this.basis === null ? null : ({} as ReturnType<BidSimulation["target"]>)),
			basis: () => this.basis ?? "",
			simulate: (_, { hash }) =>
				new Promise((resolve, reject) => {
					this.#asked.push(this.bids.findIndex(({ backrun }) => backrun.hash === hash));
					this.#waiting.set(hash, (answer) => (answer instanceof Error ? reject(answer) : resolve(answer)));
				}),
		};
		const error = (message: string) => void this.faults.push(message);
		this.checks = new BidChecks({
			...{ book, clock },
			// It asks for the next block's number alone.
			tip: { head: () => null, next: () => ({ number: this.block }) as never },
			simulation: simulation as BidSimulation,
			background: new Background({}, { log: { ...silentLogger, error } }),
		});
	}

	bid(index: number): Bid {
		const bid = this.bids[index];
		if (bid === undefined) throw new Error(`no bid ${index}`);
		return bid;
	}

	look(wins = true): void {
		this.checks.look(TARGET, wins, (bid, verdict) => {
			this.judged.push(`${this.bids.indexOf(bid)} ${verdict.kind}`);
			this.onJudged(bid, verdict);
		});
	}

	/** Indices of the bids that were asked about since the last time. */
	asked(): number[] {
		return this.#asked.splice(0);
	}

	async answer(index: number, answer: BidVerdict | Error): Promise<void> {
		const { hash } = this.bid(index).backrun;
		const told = this.#waiting.get(hash);
		if (told === undefined) throw new Error(`nobody asked about ${index}`);
		this.#waiting.delete(hash);
		told(answer);
		await this.clock.advance(0);
	}
}

const valid = (value: bigint): BidVerdict => ({ kind: "valid", value });
const FAILED: BidVerdict = { kind: "failed", error: { code: "EXECUTION_REVERTED", message: "no" } };

test("of many bids the three dearest are asked about, once in a state", () => {
	const scene = new Scene();
	scene.look();
	assert.deepEqual(scene.asked(), [0, 1, 2]);
	scene.look();
	assert.deepEqual(scene.asked(), []);
	scene.basis = "later";
	scene.look();
	assert.deepEqual(scene.asked(), [0, 1, 2]);
});

test("what is valid is known, with its new value, before anybody is told; then there is nothing more to ask", async () => {
	const scene = new Scene();
	scene.look();
	scene.asked();
	const seen: unknown[] = [];
	scene.onJudged = (bid) => seen.push([bid.basis, bid.value, scene.book.ranked(TARGET)[0]?.value]);
	await scene.answer(2, valid(99n));
	assert.deepEqual([scene.judged, seen], [["2 valid"], [["now", 99n, 99n]]]);
	assert.equal(scene.bid(2).checking, null);
	for (const index of [0, 1]) await scene.answer(index, valid(60n));
	scene.look();
	assert.deepEqual(scene.asked(), []);
});

test("one that falls behind others in value is known still; one that is gone makes room for the next", async () => {
	const scene = new Scene();
	scene.look();
	scene.asked();
	// As the auctioneer does.
	scene.onJudged = (bid, { kind }) => {
		if (kind === "failed") scene.book.remove(bid);
		scene.look();
	};
	await scene.answer(0, FAILED);
	assert.deepEqual([scene.judged, scene.asked()], [["0 failed"], [3]]);
	assert.equal(scene.bid(0).basis, null);
	// Behind all others: of the dearest three one is asked about in its place.
	await scene.answer(1, valid(1n));
	assert.deepEqual(scene.asked(), [4]);
	for (const index of [2, 3, 4]) await scene.answer(index, valid(70n));
	assert.deepEqual(scene.asked(), []);
});

test("where none of the valid ones wins, the next three are asked about", async () => {
	const scene = new Scene([60n, 50n, 40n, 30n, 20n, 10n]);
	for (const index of [0, 1]) scene.bid(index).basis = "now";
	scene.look(true);
	assert.deepEqual(scene.asked(), [2]);
	scene.look(false);
	assert.deepEqual(scene.asked(), [3, 4]);
});

test("bids for other blocks are passed over", () => {
	const scene = new Scene();
	scene.block = 102;
	for (const index of [1, 3]) {
		scene.book.remove(scene.bid(index));
		scene.book.add({ ...scene.bid(index), lastBlock: 105 });
	}
	scene.look();
	assert.deepEqual(scene.asked(), [1, 3]);
});

test("no target to stand behind: nothing is asked", () => {
	const scene = new Scene();
	scene.basis = null;
	scene.look();
	assert.deepEqual(scene.asked(), []);
});

for (const [name, answer] of [
	["says nothing of it", { kind: "unavailable" }],
	["is out", new UpstreamError("timeout")],
] as const) {
	test(`the node ${name}: it is not judged, nothing else is asked meanwhile, and it is tried again after 500 ms`, async () => {
		const scene = new Scene();
		scene.look();
		scene.asked();
		await scene.answer(0, answer);
		await scene.answer(1, answer);
		assert.deepEqual([scene.judged, scene.bid(0).basis, scene.bid(0).tried], [[], null, "now"]);
		scene.look();
		assert.deepEqual([scene.asked(), scene.clock.timers], [[], 1]);
		await scene.clock.advance(499);
		assert.deepEqual(scene.asked(), []);
		await scene.clock.advance(1);
		assert.deepEqual([scene.asked(), scene.clock.timers], [[0, 1], 0]);
		await scene.answer(0, valid(7n));
		assert.deepEqual([scene.judged, scene.bid(0).basis, scene.bid(0).value], [["0 valid"], "now", 7n]);
		assert.deepEqual(scene.faults, []);
	});
}

test("the target itself fails: it is told, and nothing more is asked in that state; in another one it is", async () => {
	const scene = new Scene();
	scene.onJudged = () => scene.look();
	scene.look();
	scene.asked();
	await scene.answer(0, { kind: "targetFails" });
	assert.deepEqual([scene.judged, scene.bid(0).tried], [["0 targetFails"], "now"]);
	for (const index of [1, 2]) await scene.answer(index, { kind: "targetFails" });
	assert.deepEqual([scene.asked(), scene.clock.timers], [[], 0]);
	scene.basis = "later";
	scene.look();
	assert.deepEqual(scene.asked(), [0, 1, 2]);
});

test("the state changed meanwhile, or the bid is gone: the verdict changes nothing and nobody is told", async () => {
	const scene = new Scene();
	scene.look();
	scene.basis = "later";
	await scene.answer(0, FAILED);
	scene.basis = null;
	await scene.answer(1, valid(9n));
	scene.basis = "now";
	scene.book.remove(scene.bid(2));
	await scene.answer(2, valid(9n));
	assert.deepEqual(scene.judged, []);
	assert.deepEqual(
		[0, 1, 2].map((index) => [scene.bid(index).basis, scene.bid(index).tried, scene.bid(index).value]),
		[
			["before", null, 50n],
			["before", null, 40n],
			["before", null, 30n],
		],
	);
});

test("a fault of ours is none of the node's: it is logged, and nothing is tried again", async () => {
	const scene = new Scene();
	scene.look();
	await scene.answer(0, new TypeError("ours"));
	assert.deepEqual([scene.faults.length, scene.judged, scene.clock.timers], [1, [], 0]);
});

test("stopped: nothing more is asked, neither now nor later", async () => {
	const scene = new Scene();
	scene.look();
	scene.asked();
	await scene.answer(0, { kind: "unavailable" });
	assert.equal(scene.clock.timers, 1);
	scene.checks.stop();
	assert.equal(scene.clock.timers, 0);
	await scene.answer(1, { kind: "unavailable" });
	scene.basis = "later";
	scene.look();
	await scene.clock.advance(1_000);
	assert.deepEqual([scene.asked(), scene.clock.timers], [[], 0]);
});
