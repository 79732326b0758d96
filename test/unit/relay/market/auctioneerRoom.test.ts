// Tests a full book: whose bid makes room for a new one, and what becomes of it. And when a backrun counts as sent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuctionFixture } from "./auctionFixture.ts";

test("the cheapest of the network with the most bids gives way, is told, and gives its uuid back; nobody is refused", async () => {
	const fixture = new AuctionFixture({ bids: { maxTotal: 4 } });
	const [one, two] = [fixture.target("T"), fixture.target("U")];
	const a = await fixture.accepted("A", one, 5n);
	const b = await fixture.accepted("B", one, 4n, { uuid: "u" });
	const c = await fixture.accepted("C", two, 9n);
	const d = await fixture.accepted("D", two, 1n, { owner: "you" });
	fixture.builders.take();
	// Cheaper than all, and another network's: it comes in all the same.
	const e = await fixture.accepted("E", two, 1n, { owner: "her" });
	assert.equal(fixture.status(b, 101), "DROPPED outbid");
	assert.deepEqual(
		[
			fixture.status(a, 101),
			fixture.status(c, 101),
			fixture.status(d, 101, "you"),
			fixture.status(e, 101, "her"),
		],
		["BEST", "BEST", "OUTBID", "OUTBID"],
	);
	assert.deepEqual([fixture.bids.size, fixture.builders.take()], [4, []]);
	fixture.table.cancel("me", "u");
	assert.equal(fixture.status(b, 101), "DROPPED outbid");
});

test("bytes count too: as many give way as it takes", async () => {
	const probe = new AuctionFixture();
	const target = probe.target("T");
	await probe.accepted("A", target, 1n);
	const size = probe.bids.of(target.tx.hash)[0]?.backrun.size ?? 0;
	const fixture = new AuctionFixture({ bids: { maxBytes: 2 * size + 20 } });
	const one = fixture.target("T");
	const [a, b] = [await fixture.accepted("A", one, 5n), await fixture.accepted("B", one, 4n)];
	await fixture.accepted("C", one, 3n, { owner: "you" });
	assert.deepEqual(
		[fixture.status(a, 101), fixture.status(b, 101), fixture.bids.size],
		["BEST", "DROPPED outbid", 2],
	);
});

test("one that was out gives way to a better one of the same target: that one is out in its place", async () => {
	const fixture = new AuctionFixture({ bids: { maxTotal: 1 } });
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 5n);
	fixture.builders.take();
	const b = await fixture.accepted("B", target, 9n, { owner: "you" });
	assert.deepEqual(
		[fixture.status(a, 101), fixture.status(b, 101, "you"), fixture.builders.take()],
		["DROPPED outbid", "BEST", ["send T B for 101 to a,b", "cancel backrun T for 101 at a,b"]],
	);
});

test("one that was out gives way to what goes out nowhere now: its builders are told to forget it", async () => {
	const fixture = new AuctionFixture({ bids: { maxTotal: 2 } });
	const [one, two] = [fixture.target("T"), fixture.target("U")];
	const a = await fixture.accepted("A", two, 1n);
	await fixture.accepted("B", one, 9n);
	fixture.builders.take();
	// It loses on its own target, and yet has pushed out the best of another one.
	await fixture.accepted("C", one, 5n, { owner: "you" });
	assert.equal(fixture.status(a, 101), "DROPPED outbid");
	assert.deepEqual(fixture.builders.take(), ["cancel backrun U for 101 at a,b"]);
	// The same by one for a later block: what is left takes the place.
	await fixture.accepted("D", two, 1n, { owner: "her", first: 105 });
	assert.deepEqual(fixture.builders.take(), ["send T C for 101 to a,b", "cancel backrun T for 101 at a,b"]);
});

test("a backrun counts as sent when it leaves for the first builder, once", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	fixture.builders.holding = true;
	const hash = await fixture.accepted("A", target, 5n);
	const [leaves] = fixture.builders.waiting.splice(0);
	assert.deepEqual([fixture.status(hash, 101), fixture.events(target, "bundled")], ["BEST", []]);
	await fixture.clock.advance(7);
	leaves?.();
	leaves?.();
	const [event, ...rest] = fixture.events(target, "bundled");
	assert.deepEqual(
		[event?.bundle, event?.bid, event?.block, event?.at, rest],
		[hash, "5", 101, fixture.clock.now(), []],
	);
	// Sent again, with another one.
	await fixture.accepted("B", target, 9n);
	fixture.builders.waiting.shift()?.();
	assert.deepEqual(
		fixture.events(target, "bundled").map(({ bid }) => bid),
		["5", "9"],
	);
});

test("what never leaves is told nowhere; nor what leaves when its target's block is there", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	fixture.builders.holding = true;
	await fixture.accepted("A", target, 5n);
	await fixture.accepted("B", target, 9n);
	fixture.builders.waiting[1]?.();
	assert.deepEqual(
		fixture.events(target, "bundled").map(({ bid }) => bid),
		["9"],
	);
	await fixture.block([target]);
	fixture.builders.waiting[0]?.();
	assert.equal(fixture.events(target, "bundled").length, 1);
	assert.deepEqual(fixture.faults, []);
});
