// Tests plain bundles in races with another head, a later bundle or a bid of the same uuid, a cancel, missed blocks,
// and blocks that are taken back.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlainBundleRequest } from "../../../../relay/domain/bundle.ts";
import { rawTransaction, signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { AuctionScene } from "./auctionScene.ts";

const TX = (label: number) => ({ by: testAccount(300 + label), nonce: 0 });
const MINED = (label: number) => ({ tx: signedTransaction(TX(label)) });

/** Sends one transaction as a bundle, under the uuid `u` unless said. */
function submit(
	scene: AuctionScene,
	label: number,
	first: number | null,
	last: number | null = null,
	uuid: string | null = "u",
) {
	scene.label(MINED(label).tx.hash, `t${label}`);
	const request: PlainBundleRequest = {
		...{ owner: "me", network: "me", uuid, builders: null, refund: null },
		blocks: { first: first === null ? null : BigInt(first), last: last === null ? null : BigInt(last) },
		body: [{ raw: rawTransaction(TX(label)), canRevert: false }],
	};
	return scene.submit(request);
}

async function accepted(...args: Parameters<typeof submit>): Promise<string> {
	const outcome = await submit(...args);
	if (outcome.outcome !== "accepted") throw new Error(outcome.message);
	return outcome.hash;
}

/** Makes the next questions about accounts wait; answers what lets them go. */
function holdAccounts(scene: AuctionScene): () => void {
	let open: () => void = () => {};
	scene.accounts.gate = new Promise((resolve) => {
		open = resolve;
	});
	return () => {
		scene.accounts.gate = Promise.resolve();
		open();
	};
}

const lines = (scene: AuctionScene) => scene.builders.take().map((line) => line.replace(/bundle \S+/, "it"));

test("its block comes while its accounts are asked for: it is in the past, not accepted for nothing", async () => {
	const scene = new AuctionScene();
	const open = holdAccounts(scene);
	const bundle = submit(scene, 1, 101);
	await scene.turn();
	await scene.block();
	open();
	const outcome = await bundle;
	assert.deepEqual(outcome.outcome === "refused" && outcome.code, "BLOCK_PAST");
	assert.deepEqual(lines(scene), []);
});

test("of a range the rest goes out where a block came while its accounts were asked for", async () => {
	const scene = new AuctionScene();
	const open = holdAccounts(scene);
	const bundle = accepted(scene, 1, 101, 103);
	await scene.turn();
	await scene.block();
	open();
	assert.equal(scene.status(await bundle, 102), "SENT");
	assert.deepEqual(lines(scene), ["send t1 for 102 to a,b"]);
});

test("a cancel ends a bundle that was sent before it and is still looked at", async () => {
	const scene = new AuctionScene();
	const open = holdAccounts(scene);
	const bundle = accepted(scene, 1, 101);
	await scene.turn();
	scene.table.cancel("me", "u");
	open();
	const hash = await bundle;
	assert.deepEqual([scene.status(hash, 101), lines(scene)], ["CANCELLED", []]);
	await scene.block();
	assert.deepEqual(lines(scene), []);
});

test("the later one of a uuid was faster: the earlier one is replaced, and never goes out", async () => {
	const scene = new AuctionScene();
	const open = holdAccounts(scene);
	const first = accepted(scene, 1, 101);
	await scene.turn();
	scene.accounts.gate = Promise.resolve();
	const b = await accepted(scene, 2, 101);
	open();
	const a = await first;
	assert.deepEqual([scene.status(a, 101), scene.status(b, 101)], ["REPLACED", "SENT"]);
	assert.deepEqual(lines(scene), ["send t2 for 101 to a,b"]);
});

test("the very same bundle twice under one uuid, the later one faster: it is out, and told so", async () => {
	const scene = new AuctionScene();
	const open = holdAccounts(scene);
	const first = accepted(scene, 1, 101);
	await scene.turn();
	scene.accounts.gate = Promise.resolve();
	const hash = await accepted(scene, 1, 101);
	open();
	assert.equal(await first, hash);
	assert.equal(scene.status(hash, 101), "SENT");
});

test("a bid takes its uuid: the bundle is replaced, and its builders are told to forget it", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const hash = await accepted(scene, 1, 101, 105);
	lines(scene);
	await scene.accepted("A", target, 5n, { uuid: "u" });
	assert.deepEqual(lines(scene).sort(), ["cancel it for 101 at a,b", "send T A for 101 to a,b"]);
	assert.equal(scene.status(hash, 101), "REPLACED");
	await scene.block();
	assert.deepEqual(lines(scene), []);
});

test("a bundle takes a bid's uuid: the bid is over", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const bid = await scene.accepted("A", target, 5n, { uuid: "u" });
	scene.builders.take();
	await accepted(scene, 1, 101);
	assert.deepEqual(scene.builders.take().sort(), [
		"cancel backrun T for 101 at a,b",
		"send t1 for 101 to a,b",
	]);
	assert.deepEqual([scene.status(bid, 101), scene.bids.size], ["REPLACED", 0]);
});

test("blocks that were missed: what it was out for is over, and told so", async () => {
	const scene = new AuctionScene();
	const hash = await accepted(scene, 1, 101, 102);
	scene.chain.make();
	scene.chain.make();
	const last = scene.chain.make();
	await scene.came({ applied: [last], reverted: [] }, true);
	assert.equal(scene.status(hash, 101), "NOT_INCLUDED notChosen");
	await scene.block();
	assert.deepEqual(lines(scene), ["send t1 for 101 to a,b"]);
});

test("another block of the same number: it is sent again for the next one", async () => {
	const scene = new AuctionScene();
	await scene.block();
	await accepted(scene, 1, 102);
	const gone = scene.chain.unmake(1);
	await scene.came({ applied: [scene.chain.make([], "b")], reverted: gone });
	assert.deepEqual(lines(scene), ["send t1 for 102 to a,b", "send t1 for 102 to a,b"]);
});

test("the block that held it is taken back: it is no longer included, and goes out for what is left of its range", async () => {
	const scene = new AuctionScene();
	const hash = await accepted(scene, 1, 101, 105);
	await scene.block([MINED(1)]);
	assert.equal(scene.status(hash, 101), "INCLUDED");
	lines(scene);
	const gone = scene.chain.unmake(1);
	await scene.came({ applied: [scene.chain.make([], "b")], reverted: gone });
	assert.deepEqual(
		[scene.status(hash, 101), scene.detail(hash, 101)?.blockHash],
		["NOT_INCLUDED reorganised", null],
	);
	assert.deepEqual(lines(scene), ["send t1 for 102 to a,b"]);
});

test("the very same bundle again: the same hash, told to nobody, not sent again", async () => {
	const scene = new AuctionScene();
	const hash = await accepted(scene, 1, 101, 103);
	scene.told.length = 0;
	lines(scene);
	assert.equal(await accepted(scene, 1, 101, 103), hash);
	assert.deepEqual([lines(scene), scene.told, scene.status(hash, 101)], [[], [], "SENT"]);
});

test("taken back by a reorganisation, it can still be cancelled by its uuid", async () => {
	const scene = new AuctionScene();
	const hash = await accepted(scene, 1, 101, 105);
	await scene.block([MINED(1)]);
	const gone = scene.chain.unmake(1);
	await scene.came({ applied: [scene.chain.make([], "b")], reverted: gone });
	lines(scene);
	scene.table.cancel("me", "u");
	assert.deepEqual(lines(scene), ["cancel it for 102 at a,b"]);
	assert.equal(scene.status(hash, 102), "CANCELLED");
});

test("taken back by a reorganisation, it does not come back where another bundle has its uuid by now", async () => {
	for (const kind of ["bid", "bundle"] as const) {
		const scene = new AuctionScene();
		const target = scene.target("T");
		await accepted(scene, 1, 101, 105);
		await scene.block([MINED(1)]);
		scene.sendTarget(target);
		if (kind === "bid") await scene.accepted("A", target, 5n, { uuid: "u" });
		else await accepted(scene, 2, 102);
		scene.builders.take();
		const gone = scene.chain.unmake(1);
		await scene.came({ applied: [scene.chain.make([], "b")], reverted: gone });
		assert.deepEqual(
			lines(scene).filter((line) => line.startsWith("send t1")),
			[],
			kind,
		);
	}
});

test("one without a uuid can't be replaced: sent again for other blocks it goes out for both", async () => {
	const scene = new AuctionScene();
	await accepted(scene, 1, 101, 102, null);
	await accepted(scene, 1, 104, 104, null);
	assert.deepEqual(lines(scene), ["send t1 for 101 to a,b"]);
	for (let i = 0; i < 4; i += 1) await scene.block();
	assert.deepEqual(lines(scene), ["send t1 for 102 to a,b", "send t1 for 104 to a,b"]);
});

test("the very same one under its uuid for a later block: it is taken back for this one", async () => {
	const scene = new AuctionScene();
	await accepted(scene, 1, 101);
	await accepted(scene, 1, 104);
	assert.deepEqual(lines(scene), ["send t1 for 101 to a,b", "cancel it for 101 at a,b"]);
	for (let i = 0; i < 4; i += 1) await scene.block();
	assert.deepEqual(lines(scene), ["send t1 for 104 to a,b"]);
});

test("in a block of the other branch too: it is included there, and goes out no more", async () => {
	const scene = new AuctionScene();
	const hash = await accepted(scene, 1, 101, 105);
	await scene.block([MINED(1)]);
	lines(scene);
	const gone = scene.chain.unmake(1);
	const other = scene.chain.make([MINED(1)], "b");
	await scene.came({ applied: [other], reverted: gone });
	assert.deepEqual([scene.status(hash, 101), scene.detail(hash, 101)?.blockHash], ["INCLUDED", other.hash]);
	assert.deepEqual(lines(scene), []);
});
