// eth_getTransactionByHash over relay, journal, fallback and chain: a table of who knows what.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Views } from "../../../../boost-proxy/views/views.ts";
import { pendingTransaction } from "../../../../shared/ethereum/rpcTransaction.ts";
import { signedTransaction } from "../../../support/txFactory.ts";
import { minedObject, refusal, result, ViewScene } from "./viewScene.ts";

const METHOD = "eth_getTransactionByHash";
const STATUSES = "service_transactionStatuses";
const HIDDEN = { gasPrice: "0x0", v: "0x0", r: "0x0", s: "0x0", yParity: "0x0" };

/** The answer, and who is named for it. */
async function ask(scene: ViewScene, hash: string, budgetMs?: number): Promise<[unknown, string]> {
	const state = scene.state(budgetMs);
	const found = await new Views(scene.dependencies).byHash(hash, state);
	return [found, [...state.trail.answeredBy].join()];
}

test("what the relay shows, without a signature whoever gave it", async () => {
	const scene = new ViewScene();
	const tx = signedTransaction();
	scene.relay.answers(METHOD, minedObject(tx));
	assert.deepEqual(await ask(scene, tx.hash), [{ ...minedObject(tx), ...HIDDEN }, "relay"]);
	scene.relay.answers(METHOD, null);
	assert.deepEqual(await ask(scene, tx.hash), [null, "relay"]);
	assert.deepEqual(
		scene.relay.asked,
		[METHOD, METHOD],
		"what the journal does not know is not asked for again",
	);
	assert.deepEqual(scene.chainAsked, []);
});

test("what the relay has lost, or never had, is shown as the journal has it", async () => {
	const scene = new ViewScene();
	scene.relay.answers(METHOD, null);
	for (const holders of [["relay"], ["fallback"], ["relay", "fallback"], []] as const) {
		const tx = scene.holds(5, holders);
		for (const stage of [null, "PENDING", "INCLUDED"]) {
			scene.relay.answers(STATUSES, [{ hash: tx.hash, status: "UNKNOWN", stage }]);
			assert.deepEqual(await ask(scene, tx.hash), [pendingTransaction(tx), "relay,journal"], `${holders}`);
		}
		scene.relay.rows.set(STATUSES, () => refusal(-32601, "the method does not exist/is not available"));
		assert.deepEqual(await ask(scene, tx.hash), [pendingTransaction(tx), "relay,journal"], `${holders}`);
		scene.relay.answers(STATUSES, "nonsense");
		assert.deepEqual(await ask(scene, tx.hash), [pendingTransaction(tx), "relay,journal"], `${holders}`);
	}
});

test("what the relay has just ended is null, and the observer hears of it", async () => {
	for (const [stage, elsewhere] of [
		["CANCELLED", false],
		["REPLACED", false],
		["EXPIRED", true],
		["DROPPED", true],
	] as const) {
		const scene = new ViewScene();
		scene.relay.answers(METHOD, null);
		const tx = scene.holds(5, ["relay"]);
		scene.relay.answers(STATUSES, [{ hash: tx.hash, status: "FAILED", stage }]);
		assert.deepEqual(await ask(scene, tx.hash), [null, "relay"], stage);
		assert.deepEqual(scene.learned, [[tx.hash, stage]]);
		scene.holds(5, ["relay", "fallback"]);
		const shown = elsewhere ? pendingTransaction(tx) : null;
		assert.deepEqual((await ask(scene, tx.hash))[0], shown, `${stage}, and the fallback holds it`);
	}
});

test("what its user ended is null wherever it still lies, unless it was mined", async () => {
	for (const ending of ["cancelled", "replaced"] as const) {
		const scene = new ViewScene();
		const tx = scene.ended(5, ending);
		scene.relay.answers(METHOD, pendingTransaction(tx));
		assert.equal((await ask(scene, tx.hash))[0], null, "the relay has not heard of it yet");
		scene.relay.answers(METHOD, minedObject(tx));
		assert.deepEqual(await ask(scene, tx.hash), [{ ...minedObject(tx), ...HIDDEN }, "relay"]);
		scene.relay.isOut = true;
		scene.fallback.answers(METHOD, pendingTransaction(tx));
		assert.equal((await ask(scene, tx.hash))[0], null);
		scene.isChainUp = false;
		assert.equal((await ask(scene, tx.hash))[0], null);
		scene.isChainUp = true;
		scene.mines(tx);
		assert.deepEqual((await ask(scene, tx.hash))[0], { ...minedObject(tx), ...HIDDEN });
	}
});

test("while the relay is out, or gives no word, what the journal holds is pending until the chain has it", async () => {
	for (const how of ["out", "silent", "of another"] as const) {
		const scene = new ViewScene();
		scene.relay.isOut = how === "out";
		if (how === "of another") scene.relay.answers(METHOD, minedObject(signedTransaction({ nonce: 99 })));
		const tx = scene.holds(5, ["relay"]);
		assert.deepEqual((await ask(scene, tx.hash))[0], pendingTransaction(tx), how);
		scene.isChainUp = false;
		assert.deepEqual(await ask(scene, tx.hash), [pendingTransaction(tx), "journal"], how);
		scene.isChainUp = true;
		scene.chainRows.set(METHOD, () => result({ ...minedObject(tx), blockHash: null }));
		assert.deepEqual((await ask(scene, tx.hash))[0], pendingTransaction(tx), "it lies in a mempool");
		scene.mines(tx);
		assert.deepEqual((await ask(scene, tx.hash))[0], { ...minedObject(tx), ...HIDDEN }, how);
	}
});

test("one whose client was told of an error is not shown as ours", async () => {
	const scene = new ViewScene("plain");
	scene.relay.isOut = true;
	const tx = scene.holds(5, ["relay"], { acknowledged: false });
	assert.deepEqual(await ask(scene, tx.hash), [null, ""]);
});

test("what nobody of ours knows: a fallback that knows private transactions, else the chain", async () => {
	const tx = signedTransaction({ nonce: 7 });
	const scene = new ViewScene();
	scene.relay.isOut = true;
	scene.fallback.answers(METHOD, minedObject(tx));
	assert.deepEqual(await ask(scene, tx.hash), [{ ...minedObject(tx), ...HIDDEN }, "fallback"]);
	scene.fallback.answers(METHOD, null);
	assert.deepEqual(await ask(scene, tx.hash), [null, "fallback"]);
	assert.deepEqual(scene.chainAsked, []);
	scene.fallback.rows.clear();
	assert.deepEqual(await ask(scene, tx.hash), [null, ""]);
	scene.mines(tx);
	assert.deepEqual(await ask(scene, tx.hash), [{ ...minedObject(tx), ...HIDDEN }, "boost"]);
	for (const name of ["plain", "flashbots"] as const) {
		const other = new ViewScene(name);
		other.relay.isOut = true;
		other.fallback.answers(METHOD, minedObject(tx));
		assert.deepEqual(await ask(other, tx.hash), [null, ""], name);
		assert.deepEqual(other.fallback.asked, [], name);
	}
});

test("where nobody can tell it is an error, never null; the relay's refusal is passed on", async () => {
	const { hash } = signedTransaction();
	const scene = new ViewScene();
	scene.relay.isOut = true;
	scene.isChainUp = false;
	const unavailable = { name: "RpcError", kind: "unavailable", message: /^no relay available: / };
	await assert.rejects(ask(scene, hash), unavailable);
	scene.isChainUp = true;
	await assert.rejects(ask(scene, hash, 0), unavailable);
	scene.chainRows.set(METHOD, () => refusal(-32603, "internal error"));
	await assert.rejects(ask(scene, hash), unavailable);
	scene.relay.isOut = false;
	scene.relay.rows.set(METHOD, () => refusal(-32005, "limit exceeded"));
	await assert.rejects(ask(scene, hash), { name: "RpcError", code: -32005 });
});

test("merging is needed while the relay is out, and of what the journal knows", () => {
	const scene = new ViewScene();
	const views = new Views(scene.dependencies);
	const other = signedTransaction({ nonce: 99 });
	assert.equal(views.needsMergingHash(other.hash), false);
	assert.equal(views.needsMergingHash(scene.holds(1, ["relay"]).hash), true);
	assert.equal(views.needsMergingHash(scene.ended(2, "cancelled").hash), true);
	scene.relay.isOut = true;
	assert.equal(views.needsMergingHash(other.hash), true);
});

test("a chain whose number is not known yet leaves the answer's own", async () => {
	const scene = new ViewScene();
	const { chainId, ...bare } = minedObject(signedTransaction());
	scene.relay.answers(METHOD, bare);
	const views = new Views({ ...scene.dependencies, chainId: () => null });
	assert.deepEqual(await views.byHash(String(bare.hash), scene.state()), {
		...bare,
		...HIDDEN,
		chainId: null,
	});
	assert.equal(chainId, "0x7a69");
});
