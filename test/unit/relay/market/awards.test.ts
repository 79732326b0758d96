// Who wins at which builder: bids for some of the builders alone beside bids for all of them, seen in what is awarded and
// in what goes out.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { PrivateTransaction } from "../../../../relay/domain/transaction.ts";
import { AuctionScene } from "./auctionScene.ts";

/** What is awarded behind `target`, as `builder hash`. */
function awarded(scene: AuctionScene, { tx }: PrivateTransaction): string[] {
	return [...(scene.awards.winners().get(tx.hash) ?? [])].map(([name, { hash }]) => `${name} ${hash}`);
}

const stages = (scene: AuctionScene, ...hashes: readonly string[]) =>
	hashes.map((hash) => scene.status(hash, 101));

test("a dearer bid for one builder alone takes its place there; the other one keeps what it has, and nobody forgets", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 5n);
	const b = await scene.accepted("B", target, 6n, { builders: ["a"] });
	assert.deepEqual(scene.builders.take(), ["send T A for 101 to a,b", "send T B for 101 to a"]);
	// Each is out somewhere.
	assert.deepEqual(stages(scene, a, b), ["BEST", "BEST"]);
	const c = await scene.accepted("C", target, 7n, { builders: ["a"], uuid: "c" });
	assert.deepEqual(scene.builders.take(), ["send T C for 101 to a"]);
	assert.deepEqual(stages(scene, a, b, c), ["BEST", "OUTBID", "BEST"]);
	assert.deepEqual(awarded(scene, target), [`a ${c}`, `b ${a}`]);
	scene.slots.cancel("me", "c");
	assert.deepEqual(scene.builders.take(), ["send T B for 101 to a"]);
	assert.deepEqual(stages(scene, a, b, c), ["BEST", "BEST", "CANCELLED"]);
});

test("the dearest one for all is out with all of them, and those for one alone are outbid", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const [a, b] = [
		await scene.accepted("A", target, 5n, { builders: ["a"] }),
		await scene.accepted("B", target, 4n, { builders: ["b"] }),
	];
	assert.deepEqual(scene.builders.take(), ["send T A for 101 to a", "send T B for 101 to b"]);
	assert.deepEqual(stages(scene, a, b), ["BEST", "BEST"]);
	const c = await scene.accepted("C", target, 9n, { uuid: "c" });
	assert.deepEqual(scene.builders.take(), ["send T C for 101 to a,b"]);
	assert.deepEqual(stages(scene, a, b, c), ["OUTBID", "OUTBID", "BEST"]);
	scene.slots.cancel("me", "c");
	assert.deepEqual(scene.builders.take().sort(), ["send T A for 101 to a", "send T B for 101 to b"]);
	assert.deepEqual(stages(scene, a, b), ["BEST", "BEST"]);
});

test("one for a builder alone never goes to another one: where nobody else bids, that one has nothing", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	await scene.accepted("A", target, 5n, { builders: ["b"], uuid: "u" });
	assert.deepEqual(scene.events(target, "bundled")[0]?.builders, ["b"]);
	scene.slots.cancel("me", "u");
	assert.deepEqual(scene.builders.take(), ["send T A for 101 to b", "cancel backrun T for 101 at b"]);
});

test("a cheaper one for a builder that has a dearer one goes nowhere", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	await scene.accepted("A", target, 5n);
	scene.builders.take();
	const b = await scene.accepted("B", target, 4n, { builders: ["b"] });
	assert.deepEqual([scene.builders.take(), stages(scene, b)], [[], ["OUTBID"]]);
});

test("a nonce is given out once at each builder: what another target's bid has at one is free at the other", async () => {
	const scene = new AuctionScene();
	const [one, two] = [scene.target("T"), scene.target("U")];
	const b = await scene.accepted("B", two, 8n, { by: 40 });
	scene.builders.take();
	const a = await scene.accepted("A", one, 10n, { by: 40, builders: ["a"] });
	scene.label(b, "B");
	assert.deepEqual([awarded(scene, one), awarded(scene, two)], [[`a ${a}`], [`b ${b}`]]);
	assert.deepEqual(scene.builders.take().sort(), ["cancel backrun U for 101 at a", "send T A for 101 to a"]);
	assert.deepEqual(stages(scene, a, b), ["BEST", "BEST"]);
});

test("only builders that have the target get what is behind it", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	scene.entry(target).outTo = new Set(["b"]);
	const a = await scene.accepted("A", target, 5n);
	await scene.accepted("B", target, 9n, { builders: ["a"] });
	assert.deepEqual([awarded(scene, target), scene.builders.take()], [[`b ${a}`], ["send T A for 101 to b"]]);
});

test("of the bids that were out in a block all are told as sent, and the dearest of them sets by how much others lost", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 5n);
	const b = await scene.accepted("B", target, 9n, { builders: ["a"] });
	const c = await scene.accepted("C", target, 4n);
	await scene.block([target]);
	assert.deepEqual(stages(scene, a, b, c), [
		"NOT_INCLUDED notChosen",
		"NOT_INCLUDED notChosen",
		"NOT_INCLUDED outbid",
	]);
	assert.deepEqual(
		[a, b, c].map((hash) => scene.detail(hash, 101)?.outbidBy),
		[null, null, 5n],
	);
});

test("a bid may win while its target is out, for its own blocks, in the state that it was simulated in, and else not", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	await scene.accepted("A", target, 5n, { first: 101, last: 102 });
	const [bid] = scene.book.of(target.tx.hash);
	assert.ok(bid !== undefined);
	const mayWin = (changes: Partial<typeof bid> = {}) => scene.awards.mayWin()({ ...bid, ...changes });
	assert.equal(mayWin(), true);
	assert.equal(mayWin({ firstBlock: 102 }), false);
	assert.equal(mayWin({ firstBlock: 100, lastBlock: 100 }), false);
	assert.equal(mayWin({ basis: null }), false);
	assert.equal(mayWin({ basis: `${bid.basis} more` }), false);
	scene.entry(target).outFor = null;
	assert.equal(mayWin(), false);
	scene.entry(target).outFor = 101;
	scene.pool.remove(scene.entry(target));
	assert.equal(mayWin(), false);
});
