// Bids that meet something on their way: another head, another target, a cancel, a bid of the same uuid, the very same
// bid, a full book. Simulations wait until the test lets them go.

import assert from "node:assert/strict";
import { test } from "node:test";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";
import { AuctionScene } from "./auctionScene.ts";

/** A scene with a target whose bids' simulations wait. */
function held(...labels: string[]) {
	const scene = new AuctionScene();
	for (const label of labels) scene.simulations.holding.add(label);
	return { scene, target: scene.target("T") };
}

test("the head moves while a bid is simulated: it is simulated again, for the new next block", async () => {
	const { scene, target } = held("A");
	const bid = scene.accepted("A", target, 5n);
	await scene.turn();
	await scene.block();
	scene.sendTarget(target);
	scene.simulations.finish("A");
	await scene.turn();
	assert.deepEqual(scene.simulations.take(), ["A 101 100", "A 102 101"]);
	scene.simulations.finish("A");
	const hash = await bid;
	assert.deepEqual(scene.builders.take(), ["send T A for 102 to a,b"]);
	assert.deepEqual([scene.status(hash, 101), scene.status(hash, 102)], [undefined, "BEST"]);
});

test("the head moves past the bid's block while it is simulated: it is in the past", async () => {
	const { scene, target } = held("A");
	const bid = scene.bid("A", target, 5n, { first: 101 });
	await scene.turn();
	await scene.block();
	await scene.block();
	scene.simulations.finish("A");
	const outcome = await bid;
	assert.ok(outcome.outcome === "refused" && outcome.code === "BLOCK_PAST");
	assert.equal(scene.bids.size, 0);
});

test("the head moves again and again: after three simulations the node is called unavailable", async () => {
	const { scene, target } = held("A");
	const bid = assert.rejects(scene.bid("A", target, 5n), { data: { reason: "node unavailable" } });
	for (let i = 0; i < 3; i += 1) {
		await scene.turn();
		await scene.block();
		scene.simulations.finish("A");
	}
	await bid;
	assert.equal(scene.simulations.take().length, 3);
	assert.equal(scene.bids.size, 0);
});

test("the target is replaced, mined or cancelled while a bid is simulated: it is not found any more", async () => {
	for (const end of ["replaced", "mined", "cancelled"] as const) {
		const { scene, target } = held("A");
		const bid = scene.bid("A", target, 5n);
		await scene.turn();
		if (end === "mined") await scene.block([target]);
		else scene.pool.remove(scene.entry(target));
		if (end === "cancelled") scene.emit(target, { type: "cancelled", at: 2, block: 100, builders: [] });
		if (end === "replaced")
			scene.emit(target, { type: "replaced", at: 2, block: 100, by: "0xother", builders: [] });
		scene.simulations.finish("A");
		const outcome = await bid;
		assert.ok(outcome.outcome === "refused" && outcome.code === "TARGET_NOT_FOUND", end);
		assert.deepEqual([scene.bids.size, scene.builders.take(), scene.faults], [0, [], []], end);
	}
});

test("a link before the target is replaced while a bid is simulated: it is simulated behind the new one", async () => {
	const scene = new AuctionScene();
	const by = testAccount(7);
	const first = scene.target("first", { by, nonce: 0 });
	const target = scene.target("T", { by, nonce: 1 });
	scene.simulations.holding.add("A");
	const bid = scene.accepted("A", target, 5n);
	await scene.turn();
	scene.pool.remove(scene.entry(first));
	const dearer = { maxFeePerGas: 50_000_000_000n, maxPriorityFeePerGas: 5_000_000_000n };
	const other = scene.target("other", { by, nonce: 0, ...dearer });
	scene.simulations.finish("A");
	await scene.turn();
	scene.simulations.finish("A");
	await bid;
	assert.deepEqual(
		scene.simulations.requests.map(({ transactions }) => transactions[0]?.hash),
		[first.tx.hash, other.tx.hash],
	);
	assert.deepEqual(scene.builders.take(), ["send T A for 101 to a,b"]);
});

test("a cancel ends a bid that was sent before it and is still being simulated, and none that is sent after it", async () => {
	const { scene, target } = held("A", "B");
	const before = scene.accepted("A", target, 9n, { uuid: "u" });
	await scene.turn();
	scene.table.cancel("me", "u");
	const after = scene.accepted("B", target, 5n, { uuid: "u" });
	await scene.turn();
	scene.simulations.finish("A");
	const a = await before;
	assert.deepEqual([scene.status(a, 101), scene.builders.take(), scene.bids.size], ["CANCELLED", [], 0]);
	scene.simulations.finish("B");
	assert.deepEqual(
		[scene.status(await after, 101), scene.builders.take()],
		["BEST", ["send T B for 101 to a,b"]],
	);
});

test("another owner's cancel of the same uuid ends nothing", async () => {
	const { scene, target } = held("A");
	const bid = scene.accepted("A", target, 9n, { uuid: "u", owner: "me" });
	await scene.turn();
	scene.table.cancel("you", "u");
	scene.simulations.finish("A");
	assert.equal(scene.status(await bid, 101), "BEST");
	scene.table.cancel("you", "u");
	assert.equal(scene.bids.size, 1);
});

test("two bids of one uuid, the later one simulated first: it stays, the earlier one is replaced", async () => {
	const { scene, target } = held("A", "B");
	const first = scene.accepted("A", target, 9n, { uuid: "u" });
	const second = scene.accepted("B", target, 5n, { uuid: "u" });
	await scene.turn();
	scene.simulations.finish("B");
	const b = await second;
	scene.simulations.finish("A");
	const a = await first;
	assert.deepEqual([scene.status(a, 101), scene.status(b, 101)], ["REPLACED", "BEST"]);
	assert.deepEqual(scene.builders.take(), ["send T B for 101 to a,b"]);
	assert.equal(scene.bids.size, 1);
});

test("a uuid goes to another target: the bid on the first one is over", async () => {
	const scene = new AuctionScene();
	const [one, two] = [scene.target("T"), scene.target("U")];
	const a = await scene.accepted("A", one, 9n, { uuid: "u" });
	scene.builders.take();
	const b = await scene.accepted("B", two, 5n, { uuid: "u" });
	assert.deepEqual(scene.builders.take().sort(), [
		"cancel backrun T for 101 at a,b",
		"send U B for 101 to a,b",
	]);
	assert.deepEqual([scene.status(a, 101), scene.status(b, 101)], ["REPLACED", "BEST"]);
});

test("a refused bid replaces nothing: what holds its uuid stays out", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 9n, { uuid: "u" });
	scene.builders.take();
	await scene.bid("B", target, 0n, { uuid: "u" });
	assert.deepEqual([scene.status(a, 101), scene.builders.take()], ["BEST", []]);
});

test("the best bid is raised under its uuid: the new one takes its place, with no cancel and no fallback between", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 9n, { uuid: "u" });
	await scene.accepted("C", target, 3n);
	scene.builders.take();
	const b = await scene.accepted("B", target, 12n, { uuid: "u" });
	assert.deepEqual(scene.builders.take(), ["send T B for 101 to a,b"]);
	assert.deepEqual([scene.status(a, 101), scene.status(b, 101)], ["REPLACED", "BEST"]);
});

test("a full target: a dearer bid puts out the cheapest one, which is told; an equal or cheaper one is refused", async () => {
	const scene = new AuctionScene({ bids: { maxPerTarget: 2 } });
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 5n, { uuid: "a" });
	const b = await scene.accepted("B", target, 7n);
	for (const [label, value] of [
		["C", 5n],
		["D", 4n],
	] as const) {
		const outcome = await scene.bid(label, target, value);
		assert.ok(outcome.outcome === "refused" && outcome.code === "LIMIT");
		assert.match(outcome.message, /^limit exceeded/);
	}
	const e = await scene.accepted("E", target, 6n);
	assert.deepEqual(
		[a, b, e].map((hash) => scene.status(hash, 101)),
		["DROPPED outbid", "BEST", "OUTBID"],
	);
	assert.equal(scene.bids.size, 2);
	// Its uuid is free, and a cancel of it is nobody's.
	scene.table.cancel("me", "a");
	assert.equal(scene.status(a, 101), "DROPPED outbid");
});

test("a network's limit is refused before anything is simulated; for everybody's nobody is refused", async () => {
	const scene = new AuctionScene({ bids: { maxPerClient: 2, maxTotal: 3 } });
	const target = scene.target("T");
	for (const label of ["A", "B"]) await scene.accepted(label, target, 5n, { owner: "me" });
	scene.simulations.take();
	const own = await scene.bid("C", target, 5n, { owner: "me" });
	assert.ok(own.outcome === "refused" && own.code === "LIMIT" && /^limit exceeded: 2 bids/.test(own.message));
	await scene.accepted("D", target, 5n, { owner: "you" });
	assert.deepEqual(scene.simulations.take(), ["D 101 100"]);
	await scene.accepted("E", target, 5n, { owner: "her" });
	assert.equal(scene.bids.size, 3);
});

test("bids that are simulated at the same time do not pass an owner's limit together", async () => {
	const scene = new AuctionScene({ bids: { maxPerClient: 2 } });
	const target = scene.target("T");
	const labels = ["A", "B", "C", "D"];
	for (const label of labels) scene.simulations.holding.add(label);
	const bids = labels.map((label) => scene.bid(label, target, 5n));
	await scene.turn();
	for (const label of labels) scene.simulations.finish(label);
	const outcomes = await Promise.all(bids);
	assert.deepEqual(outcomes.filter(({ outcome }) => outcome === "accepted").length, 2);
	assert.equal(scene.bids.size, 2);
});

test("at his limit a searcher can still replace his own bid", async () => {
	const scene = new AuctionScene({ bids: { maxPerClient: 1 } });
	const target = scene.target("T");
	await scene.accepted("A", target, 5n, { uuid: "u" });
	const b = await scene.accepted("B", target, 7n, { uuid: "u" });
	assert.deepEqual([scene.status(b, 101), scene.bids.size], ["BEST", 1]);
});

test("many bids on many targets at once: each target ends with its dearest, and nothing is left over when they end", async () => {
	const scene = new AuctionScene();
	const targets = Array.from({ length: 5 }, (_, i) => scene.target(`T${i}`));
	const labels = targets.flatMap((_, t) => Array.from({ length: 12 }, (_, i) => `${t}.${i}`));
	for (const label of labels) scene.simulations.holding.add(label);
	const bids = labels.map((label, n) => {
		const target = targets[Math.floor(n / 12)] ?? privateTransaction();
		return scene.accepted(label, target, BigInt(((n * 7) % 12) + 1), { uuid: label });
	});
	await scene.turn();
	for (const label of [...labels].reverse()) scene.simulations.finish(label);
	const hashes = await Promise.all(bids);
	assert.equal(hashes.filter((hash) => scene.status(hash, 101) === "BEST").length, 5);
	for (const { tx } of targets) {
		const best = scene.bids.of(tx.hash).find(({ record }) => scene.status(record.hash, 101) === "BEST");
		assert.equal(best?.value, 12n);
	}
	for (const label of labels) scene.table.cancel("me", label);
	assert.equal(scene.bids.size, 0);
	assert.equal(scene.builders.lines.filter((line) => line.startsWith("cancel")).length, 5);
	assert.deepEqual(scene.faults, []);
});

test("of a full target those for later blocks give way to one for the next, however dear they are", async () => {
	const scene = new AuctionScene({ bids: { maxPerTarget: 2 } });
	const target = scene.target("T");
	const far = await scene.accepted("A", target, 90n, { first: 110, uuid: "a" });
	await scene.accepted("B", target, 5n);
	const c = await scene.accepted("C", target, 1n);
	assert.deepEqual([scene.status(far, 110), scene.status(c, 101)], ["DROPPED outbid", "OUTBID"]);
	const later = await scene.bid("D", target, 3n, { first: 110 });
	assert.equal(later.outcome, "accepted");
	assert.deepEqual([scene.status(c, 101), scene.bids.size], ["DROPPED outbid", 2]);
});

test("one searcher has so many bids on one target at most", async () => {
	const scene = new AuctionScene({ bids: { maxOwnPerTarget: 1 } });
	const target = scene.target("T");
	await scene.accepted("A", target, 5n, { uuid: "u" });
	const more = await scene.bid("B", target, 9n);
	assert.ok(more.outcome === "refused" && more.code === "LIMIT" && !more.simulated);
	await scene.accepted("C", target, 9n, { uuid: "u" });
	await scene.accepted("D", target, 7n, { owner: "you" });
	assert.equal(scene.bids.size, 2);
});
