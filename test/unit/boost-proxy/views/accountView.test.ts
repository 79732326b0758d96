// The pending nonce over relay, journal, fallback and chain: who is asked, and what is counted.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Row } from "../../../../boost-proxy/domain/row.ts";
import { raised, Views } from "../../../../boost-proxy/views/views.ts";
import { testAccount } from "../../../support/txFactory.ts";
import { refusal, result, ViewScene } from "./viewScene.ts";

const COUNT = "eth_getTransactionCount";
const ADDRESS = testAccount(0).address;

/** The answer, and who is named for it. */
async function ask(scene: ViewScene, budgetMs?: number): Promise<[string, string]> {
	const state = scene.state(budgetMs);
	const nonce = await new Views(scene.dependencies).pendingNonce(ADDRESS, state);
	return [nonce, [...state.trail.answeredBy].join()];
}

test("the relay's word, while it is well and holds everything", async () => {
	const scene = new ViewScene();
	scene.relay.answers(COUNT, "0x7");
	scene.holds(5, ["relay"]);
	scene.holds(6, ["relay"]);
	assert.deepEqual(await ask(scene), ["0x7", "relay"]);
	assert.deepEqual([scene.fallback.asked, scene.chainAsked], [[], []]);
});

test("raised over what only the fallback holds, without a gap, and over what waits behind that at the relay", async () => {
	const scene = new ViewScene();
	scene.relay.answers(COUNT, "0x5");
	scene.holds(5, ["fallback"]);
	assert.deepEqual(await ask(scene), ["0x6", "relay,journal"]);
	scene.holds(6, ["relay"]);
	scene.holds(8, ["fallback"]);
	assert.deepEqual(await ask(scene), ["0x7", "relay,journal"]);
});

test("what the relay holds and does not count is not pending any more", async () => {
	const scene = new ViewScene();
	scene.relay.answers(COUNT, "0x5");
	scene.holds(5, ["relay"]);
	assert.deepEqual(await ask(scene), ["0x5", "relay"]);
	scene.holds(5, ["relay", "fallback"], {}, { value: 9n });
	assert.deepEqual(await ask(scene), ["0x5", "relay"]);
	scene.holds(5, ["fallback"], {}, { value: 8n });
	assert.deepEqual(await ask(scene), ["0x6", "relay,journal"]);
});

test("one whose client was told of an error does not count", async () => {
	const scene = new ViewScene();
	scene.relay.isOut = true;
	scene.fallback.answers(COUNT, "0x5");
	scene.holds(5, ["relay"], { acknowledged: false });
	assert.deepEqual(await ask(scene), ["0x5", "fallback"]);
});

test("the relay's refusal is passed on, in its words", async () => {
	const scene = new ViewScene();
	scene.relay.rows.set(COUNT, () => refusal(-32005, "limit exceeded"));
	await assert.rejects(ask(scene), { name: "RpcError", code: -32005, message: "limit exceeded" });
	assert.deepEqual(scene.fallback.asked, []);
});

test("while the relay is out, or gives no word, the fallback's count and all of the journal", async () => {
	for (const how of ["out", "silent", "nonsense"] as const) {
		const scene = new ViewScene();
		if (how === "out") scene.relay.isOut = true;
		if (how === "nonsense") scene.relay.answers(COUNT, "five");
		scene.fallback.answers(COUNT, "0x5");
		scene.holds(5, ["relay"]);
		scene.holds(6, ["relay", "fallback"]);
		assert.deepEqual(await ask(scene), ["0x7", "fallback,journal"], how);
	}
});

test("a fallback that does not know private transactions is not asked, the chain is: the higher of its two counts", async () => {
	for (const name of ["plain", "flashbots"] as const) {
		const scene = new ViewScene(name);
		scene.relay.isOut = true;
		scene.fallback.answers(COUNT, "0x9");
		scene.holds(5, ["relay"]);
		scene.chainRows.set(COUNT, ([, tag]) => result(tag === "latest" ? "0x5" : "0x4"));
		assert.deepEqual(await ask(scene), ["0x6", "boost,journal"], name);
		scene.chainRows.set(COUNT, ([, tag]) =>
			tag === "latest" ? result("0x5") : refusal(-32602, "unknown block tag"),
		);
		assert.deepEqual(await ask(scene), ["0x6", "boost,journal"], name);
		assert.deepEqual(scene.fallback.asked, []);
	}
});

test("the chain is asked where the fallback is out or gives no count", async () => {
	for (const how of ["out", "silent", "refusing"] as const) {
		const scene = new ViewScene();
		scene.relay.isOut = true;
		scene.fallback.isOut = how === "out";
		if (how === "refusing") scene.fallback.rows.set(COUNT, () => refusal(-32601, "no such method"));
		scene.chainRows.set(COUNT, () => result("0x5"));
		assert.deepEqual(await ask(scene), ["0x5", "boost"], how);
	}
});

test("where nobody can tell it is an error, never a lower count", async () => {
	const scene = new ViewScene();
	scene.relay.isOut = true;
	scene.isChainUp = false;
	scene.holds(5, ["relay"]);
	const unavailable = { name: "RpcError", kind: "unavailable", message: /^no relay available: / };
	await assert.rejects(ask(scene), unavailable);
	scene.isChainUp = true;
	await assert.rejects(ask(scene, 0), unavailable, "no time is left to ask anybody");
});

test("merging is needed while the relay is out, or the journal has anything of the account", () => {
	const scene = new ViewScene();
	const views = new Views(scene.dependencies);
	assert.equal(views.needsMerging(ADDRESS), false);
	scene.relay.isOut = true;
	assert.equal(views.needsMerging(ADDRESS), true);
	scene.relay.isOut = false;
	scene.holds(5, ["relay"]);
	assert.equal(views.needsMerging(ADDRESS), true, "should the relay fail at this very request");
	assert.equal(views.needsMerging(testAccount(1).address), false);
});

test("two of one nonce are one, and a gap ends the count", () => {
	const row = (nonce: bigint): Row => ({ nonce, acknowledged: true }) as Row;
	const rows: [bigint, bigint[], bigint][] = [
		[5n, [], 5n],
		[5n, [4n, 5n, 5n, 6n], 7n],
		[5n, [6n, 7n], 5n],
		[5n, [1n, 2n], 5n],
		[0n, [0n, 1n, 3n], 2n],
	];
	for (const [base, nonces, next] of rows) {
		assert.equal(
			raised(base, nonces.map(row), () => true),
			next,
			`${base} ${nonces}`,
		);
	}
});
