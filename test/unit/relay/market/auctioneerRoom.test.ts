// Tests a full book: whose bid makes room for a new one, and what becomes of it. And when a backrun counts as sent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuctionScene } from "./auctionScene.ts";

test("the cheapest of the network with the most bids gives way, is told, and gives its uuid back; nobody is refused", async () => {
	const scene = new AuctionScene({ bids: { maxTotal: 4 } });
	const [one, two] = [scene.target("T"), scene.target("U")];
	const a = await scene.accepted("A", one, 5n);
	const b = await scene.accepted("B", one, 4n, { uuid: "u" });
	const c = await scene.accepted("C", two, 9n);
	const d = await scene.accepted("D", two, 1n, { owner: "you" });
	scene.builders.take();
	// Cheaper than all, and another network's: it comes in all the same.
	const e = await scene.accepted("E", two, 1n, { owner: "her" });
	assert.equal(scene.status(b, 101), "DROPPED outbid");
	assert.deepEqual(
		[scene.status(a, 101), scene.status(c, 101), scene.status(d, 101, "you"), scene.status(e, 101, "her")],
		["BEST", "BEST", "OUTBID", "OUTBID"],
	);
	assert.deepEqual([scene.bids.size, scene.builders.take()], [4, []]);
	scene.table.cancel("me", "u");
	assert.equal(scene.status(b, 101), "DROPPED outbid");
});

test("bytes count too: as many give way as it takes", async () => {
	const probe = new AuctionScene();
	const target = probe.target("T");
	await probe.accepted("A", target, 1n);
	const size = probe.bids.of(target.tx.hash)[0]?.backrun.size ?? 0;
	const scene = new AuctionScene({ bids: { maxBytes: 2 * size + 20 } });
	const one = scene.target("T");
	const [a, b] = [await scene.accepted("A", one, 5n), await scene.accepted("B", one, 4n)];
	await scene.accepted("C", one, 3n, { owner: "you" });
	assert.deepEqual(
		[scene.status(a, 101), scene.status(b, 101), scene.bids.size],
		["BEST", "DROPPED outbid", 2],
	);
});

test("one that was out gives way to a better one of the same target: that one is out in its place", async () => {
	const scene = new AuctionScene({ bids: { maxTotal: 1 } });
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 5n);
	scene.builders.take();
	const b = await scene.accepted("B", target, 9n, { owner: "you" });
	assert.deepEqual(
		[scene.status(a, 101), scene.status(b, 101, "you"), scene.builders.take()],
		["DROPPED outbid", "BEST", ["send T B for 101 to a,b", "cancel backrun T for 101 at a,b"]],
	);
});

test("one that was out gives way to what goes out nowhere now: its builders are told to forget it", async () => {
	const scene = new AuctionScene({ bids: { maxTotal: 2 } });
	const [one, two] = [scene.target("T"), scene.target("U")];
	const a = await scene.accepted("A", two, 1n);
	await scene.accepted("B", one, 9n);
	scene.builders.take();
	// It loses on its own target, and yet has pushed out the best of another one.
	await scene.accepted("C", one, 5n, { owner: "you" });
	assert.equal(scene.status(a, 101), "DROPPED outbid");
	assert.deepEqual(scene.builders.take(), ["cancel backrun U for 101 at a,b"]);
	// The same by one for a later block: what is left takes the place.
	await scene.accepted("D", two, 1n, { owner: "her", first: 105 });
	assert.deepEqual(scene.builders.take(), ["send T C for 101 to a,b", "cancel backrun T for 101 at a,b"]);
});

test("a backrun counts as sent when it leaves for the first builder, once", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	scene.builders.holding = true;
	const hash = await scene.accepted("A", target, 5n);
	const [leaves] = scene.builders.waiting.splice(0);
	assert.deepEqual([scene.status(hash, 101), scene.events(target, "bundled")], ["BEST", []]);
	await scene.clock.advance(7);
	leaves?.();
	leaves?.();
	const [event, ...rest] = scene.events(target, "bundled");
	assert.deepEqual(
		[event?.bundle, event?.bid, event?.block, event?.at, rest],
		[hash, "5", 101, scene.clock.now(), []],
	);
	// Sent again, with another one.
	await scene.accepted("B", target, 9n);
	scene.builders.waiting.shift()?.();
	assert.deepEqual(
		scene.events(target, "bundled").map(({ bid }) => bid),
		["5", "9"],
	);
});

test("what never leaves is told nowhere; nor what leaves when its target's block is there", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	scene.builders.holding = true;
	await scene.accepted("A", target, 5n);
	await scene.accepted("B", target, 9n);
	scene.builders.waiting[1]?.();
	assert.deepEqual(
		scene.events(target, "bundled").map(({ bid }) => bid),
		["9"],
	);
	await scene.block([target]);
	scene.builders.waiting[0]?.();
	assert.equal(scene.events(target, "bundled").length, 1);
	assert.deepEqual(scene.faults, []);
});
