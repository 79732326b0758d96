// Bids that meet something on their way: another head, another target, a cancel, a bid of the same uuid, the very same
// bid, a full book. Simulations wait until the test lets them go.

import assert from "node:assert/strict";
import { test } from "node:test";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";
import { AuctionFixture } from "./auctionFixture.ts";

/** A fixture with a target whose bids' simulations wait. */
function held(...labels: string[]) {
	const fixture = new AuctionFixture();
	for (const label of labels) fixture.simulations.holding.add(label);
	return { fixture, target: fixture.target("T") };
}

test("the head moves while a bid is simulated: it is simulated again, for the new next block", async () => {
	const { fixture, target } = held("A");
	const bid = fixture.accepted("A", target, 5n);
	await fixture.turn();
	await fixture.block();
	fixture.sendTarget(target);
	fixture.simulations.finish("A");
	await fixture.turn();
	assert.deepEqual(fixture.simulations.take(), ["A 101 100", "A 102 101"]);
	fixture.simulations.finish("A");
	const hash = await bid;
	assert.deepEqual(fixture.builders.take(), ["send T A for 102 to a,b"]);
	assert.deepEqual([fixture.status(hash, 101), fixture.status(hash, 102)], [undefined, "BEST"]);
});

test("the head moves past the bid's block while it is simulated: it is in the past", async () => {
	const { fixture, target } = held("A");
	const bid = fixture.bid("A", target, 5n, { first: 101 });
	await fixture.turn();
	await fixture.block();
	await fixture.block();
	fixture.simulations.finish("A");
	const outcome = await bid;
	assert.ok(outcome.outcome === "refused" && outcome.code === "BLOCK_PAST");
	assert.equal(fixture.bids.size, 0);
});

test("the head moves again and again: after three simulations the node is called unavailable", async () => {
	const { fixture, target } = held("A");
	const bid = assert.rejects(fixture.bid("A", target, 5n), { data: { reason: "node unavailable" } });
	for (let i = 0; i < 3; i += 1) {
		await fixture.turn();
		await fixture.block();
		fixture.simulations.finish("A");
	}
	await bid;
	assert.equal(fixture.simulations.take().length, 3);
	assert.equal(fixture.bids.size, 0);
});

test("the target is replaced, mined or cancelled while a bid is simulated: it is not found any more", async () => {
	for (const end of ["replaced", "mined", "cancelled"] as const) {
		const { fixture, target } = held("A");
		const bid = fixture.bid("A", target, 5n);
		await fixture.turn();
		if (end === "mined") await fixture.block([target]);
		else fixture.pool.remove(fixture.entry(target));
		if (end === "cancelled") fixture.emit(target, { type: "cancelled", at: 2, block: 100, builders: [] });
		if (end === "replaced")
			fixture.emit(target, { type: "replaced", at: 2, block: 100, by: "0xother", builders: [] });
		fixture.simulations.finish("A");
		const outcome = await bid;
		assert.ok(outcome.outcome === "refused" && outcome.code === "TARGET_NOT_FOUND", end);
		assert.deepEqual([fixture.bids.size, fixture.builders.take(), fixture.faults], [0, [], []], end);
	}
});

test("a link before the target is replaced while a bid is simulated: it is simulated behind the new one", async () => {
	const fixture = new AuctionFixture();
	const by = testAccount(7);
	const first = fixture.target("first", { by, nonce: 0 });
	const target = fixture.target("T", { by, nonce: 1 });
	fixture.simulations.holding.add("A");
	const bid = fixture.accepted("A", target, 5n);
	await fixture.turn();
	fixture.pool.remove(fixture.entry(first));
	const dearer = { maxFeePerGas: 50_000_000_000n, maxPriorityFeePerGas: 5_000_000_000n };
	const other = fixture.target("other", { by, nonce: 0, ...dearer });
	fixture.simulations.finish("A");
	await fixture.turn();
	fixture.simulations.finish("A");
	await bid;
	assert.deepEqual(
		fixture.simulations.requests.map(({ transactions }) => transactions[0]?.hash),
		[first.tx.hash, other.tx.hash],
	);
	assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b"]);
});

test("a cancel ends a bid that was sent before it and is still being simulated, and none that is sent after it", async () => {
	const { fixture, target } = held("A", "B");
	const before = fixture.accepted("A", target, 9n, { uuid: "u" });
	await fixture.turn();
	fixture.table.cancel("me", "u");
	const after = fixture.accepted("B", target, 5n, { uuid: "u" });
	await fixture.turn();
	fixture.simulations.finish("A");
	const a = await before;
	assert.deepEqual(
		[fixture.status(a, 101), fixture.builders.take(), fixture.bids.size],
		["CANCELLED", [], 0],
	);
	fixture.simulations.finish("B");
	assert.deepEqual(
		[fixture.status(await after, 101), fixture.builders.take()],
		["BEST", ["send T B for 101 to a,b"]],
	);
});

test("another owner's cancel of the same uuid ends nothing", async () => {
	const { fixture, target } = held("A");
	const bid = fixture.accepted("A", target, 9n, { uuid: "u", owner: "me" });
	await fixture.turn();
	fixture.table.cancel("you", "u");
	fixture.simulations.finish("A");
	assert.equal(fixture.status(await bid, 101), "BEST");
	fixture.table.cancel("you", "u");
	assert.equal(fixture.bids.size, 1);
});

test("two bids of one uuid, the later one simulated first: it stays, the earlier one is replaced", async () => {
	const { fixture, target } = held("A", "B");
	const first = fixture.accepted("A", target, 9n, { uuid: "u" });
	const second = fixture.accepted("B", target, 5n, { uuid: "u" });
	await fixture.turn();
	fixture.simulations.finish("B");
	const b = await second;
	fixture.simulations.finish("A");
	const a = await first;
	assert.deepEqual([fixture.status(a, 101), fixture.status(b, 101)], ["REPLACED", "BEST"]);
	assert.deepEqual(fixture.builders.take(), ["send T B for 101 to a,b"]);
	assert.equal(fixture.bids.size, 1);
});

test("a uuid goes to another target: the bid on the first one is over", async () => {
	const fixture = new AuctionFixture();
	const [one, two] = [fixture.target("T"), fixture.target("U")];
	const a = await fixture.accepted("A", one, 9n, { uuid: "u" });
	fixture.builders.take();
	const b = await fixture.accepted("B", two, 5n, { uuid: "u" });
	assert.deepEqual(fixture.builders.take().sort(), [
		"cancel backrun T for 101 at a,b",
		"send U B for 101 to a,b",
	]);
	assert.deepEqual([fixture.status(a, 101), fixture.status(b, 101)], ["REPLACED", "BEST"]);
});

test("a refused bid replaces nothing: what holds its uuid stays out", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 9n, { uuid: "u" });
	fixture.builders.take();
	await fixture.bid("B", target, 0n, { uuid: "u" });
	assert.deepEqual([fixture.status(a, 101), fixture.builders.take()], ["BEST", []]);
});

test("the best bid is raised under its uuid: the new one takes its place, with no cancel and no fallback between", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 9n, { uuid: "u" });
	await fixture.accepted("C", target, 3n);
	fixture.builders.take();
	const b = await fixture.accepted("B", target, 12n, { uuid: "u" });
	assert.deepEqual(fixture.builders.take(), ["send T B for 101 to a,b"]);
	assert.deepEqual([fixture.status(a, 101), fixture.status(b, 101)], ["REPLACED", "BEST"]);
});

test("a full target: a dearer bid puts out the cheapest one, which is told; an equal or cheaper one is refused", async () => {
	const fixture = new AuctionFixture({ bids: { maxPerTarget: 2 } });
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 5n, { uuid: "a" });
	const b = await fixture.accepted("B", target, 7n);
	for (const [label, value] of [
		["C", 5n],
		["D", 4n],
	] as const) {
		const outcome = await fixture.bid(label, target, value);
		assert.ok(outcome.outcome === "refused" && outcome.code === "LIMIT");
		assert.match(outcome.message, /^limit exceeded/);
	}
	const e = await fixture.accepted("E", target, 6n);
	assert.deepEqual(
		[a, b, e].map((hash) => fixture.status(hash, 101)),
		["DROPPED outbid", "BEST", "OUTBID"],
	);
	assert.equal(fixture.bids.size, 2);
	// Its uuid is free, and a cancel of it is nobody's.
	fixture.table.cancel("me", "a");
	assert.equal(fixture.status(a, 101), "DROPPED outbid");
});

test("a network's limit is refused before anything is simulated; for everybody's nobody is refused", async () => {
	const fixture = new AuctionFixture({ bids: { maxPerClient: 2, maxTotal: 3 } });
	const target = fixture.target("T");
	for (const label of ["A", "B"]) await fixture.accepted(label, target, 5n, { owner: "me" });
	fixture.simulations.take();
	const own = await fixture.bid("C", target, 5n, { owner: "me" });
	assert.ok(own.outcome === "refused" && own.code === "LIMIT" && /^limit exceeded: 2 bids/.test(own.message));
	await fixture.accepted("D", target, 5n, { owner: "you" });
	assert.deepEqual(fixture.simulations.take(), ["D 101 100"]);
	await fixture.accepted("E", target, 5n, { owner: "her" });
	assert.equal(fixture.bids.size, 3);
});

test("bids that are simulated at the same time do not pass an owner's limit together", async () => {
	const fixture = new AuctionFixture({ bids: { maxPerClient: 2 } });
	const target = fixture.target("T");
	const labels = ["A", "B", "C", "D"];
	for (const label of labels) fixture.simulations.holding.add(label);
	const bids = labels.map((label) => fixture.bid(label, target, 5n));
	await fixture.turn();
	for (const label of labels) fixture.simulations.finish(label);
	const outcomes = await Promise.all(bids);
	assert.deepEqual(outcomes.filter(({ outcome }) => outcome === "accepted").length, 2);
	assert.equal(fixture.bids.size, 2);
});

test("at his limit a searcher can still replace his own bid", async () => {
	const fixture = new AuctionFixture({ bids: { maxPerClient: 1 } });
	const target = fixture.target("T");
	await fixture.accepted("A", target, 5n, { uuid: "u" });
	const b = await fixture.accepted("B", target, 7n, { uuid: "u" });
	assert.deepEqual([fixture.status(b, 101), fixture.bids.size], ["BEST", 1]);
});

test("many bids on many targets at once: each target ends with its dearest, and nothing is left over when they end", async () => {
	const fixture = new AuctionFixture();
	const targets = Array.from({ length: 5 }, (_, i) => fixture.target(`T${i}`));
	const labels = targets.flatMap((_, t) => Array.from({ length: 12 }, (_, i) => `${t}.${i}`));
	for (const label of labels) fixture.simulations.holding.add(label);
	const bids = labels.map((label, n) => {
		const target = targets[Math.floor(n / 12)] ?? privateTransaction();
		return fixture.accepted(label, target, BigInt(((n * 7) % 12) + 1), { uuid: label });
	});
	await fixture.turn();
	for (const label of [...labels].reverse()) fixture.simulations.finish(label);
	const hashes = await Promise.all(bids);
	assert.equal(hashes.filter((hash) => fixture.status(hash, 101) === "BEST").length, 5);
	for (const { tx } of targets) {
		const best = fixture.bids.of(tx.hash).find(({ record }) => fixture.status(record.hash, 101) === "BEST");
		assert.equal(best?.value, 12n);
	}
	for (const label of labels) fixture.table.cancel("me", label);
	assert.equal(fixture.bids.size, 0);
	assert.equal(fixture.builders.lines.filter((line) => line.startsWith("cancel")).length, 5);
	assert.deepEqual(fixture.faults, []);
});

test("of a full target those for later blocks give way to one for the next, however dear they are", async () => {
	const fixture = new AuctionFixture({ bids: { maxPerTarget: 2 } });
	const target = fixture.target("T");
	const far = await fixture.accepted("A", target, 90n, { first: 110, uuid: "a" });
	await fixture.accepted("B", target, 5n);
	const c = await fixture.accepted("C", target, 1n);
	assert.deepEqual([fixture.status(far, 110), fixture.status(c, 101)], ["DROPPED outbid", "OUTBID"]);
	const later = await fixture.bid("D", target, 3n, { first: 110 });
	assert.equal(later.outcome, "accepted");
	assert.deepEqual([fixture.status(c, 101), fixture.bids.size], ["DROPPED outbid", 2]);
});

test("one searcher has so many bids on one target at most", async () => {
	const fixture = new AuctionFixture({ bids: { maxOwnPerTarget: 1 } });
	const target = fixture.target("T");
	await fixture.accepted("A", target, 5n, { uuid: "u" });
	const more = await fixture.bid("B", target, 9n);
	assert.ok(more.outcome === "refused" && more.code === "LIMIT" && !more.simulated);
	await fixture.accepted("C", target, 9n, { uuid: "u" });
	await fixture.accepted("D", target, 7n, { owner: "you" });
	assert.equal(fixture.bids.size, 2);
});
