// eth_getTransactionByHash over relay, journal, fallback and chain: a table of who knows what.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Views } from "../../../../boost-proxy/views/views.ts";
import { pendingTransaction } from "../../../../shared/ethereum/rpcObjects.ts";
import { signedTransaction } from "../../../support/txFactory.ts";
import { minedObject, refusal, result, ViewFixture } from "./viewFixture.ts";

const METHOD = "eth_getTransactionByHash";
const STATUSES = "service_transactionStatuses";
const HIDDEN = { gasPrice: "0x0", v: "0x0", r: "0x0", s: "0x0", yParity: "0x0" };

/** The answer, and who is named for it. */
async function ask(fixture: ViewFixture, hash: string, budgetMs?: number): Promise<[unknown, string]> {
	const state = fixture.state(budgetMs);
	const found = await new Views(fixture.dependencies).byHash(hash, state);
	return [found, [...state.routing.answeredBy].join()];
}

test("what the relay shows, without a signature whoever gave it", async () => {
	const fixture = new ViewFixture();
	const tx = signedTransaction();
	fixture.relay.answers(METHOD, minedObject(tx));
	assert.deepEqual(await ask(fixture, tx.hash), [{ ...minedObject(tx), ...HIDDEN }, "relay"]);
	fixture.relay.answers(METHOD, null);
	assert.deepEqual(await ask(fixture, tx.hash), [null, "relay"]);
	assert.deepEqual(
		fixture.relay.asked,
		[METHOD, METHOD],
		"what the journal does not know is not asked for again",
	);
	assert.deepEqual(fixture.chainAsked, []);
});

test("what the relay has lost, or never had, is shown as the journal has it", async () => {
	const fixture = new ViewFixture();
	fixture.relay.answers(METHOD, null);
	for (const holders of [["relay"], ["fallback"], ["relay", "fallback"], []] as const) {
		const tx = fixture.holds(5, holders);
		for (const stage of [null, "PENDING", "INCLUDED"]) {
			fixture.relay.answers(STATUSES, [{ hash: tx.hash, status: "UNKNOWN", stage }]);
			assert.deepEqual(await ask(fixture, tx.hash), [pendingTransaction(tx), "relay,journal"], `${holders}`);
		}
		fixture.relay.rows.set(STATUSES, () => refusal(-32601, "the method does not exist/is not available"));
		assert.deepEqual(await ask(fixture, tx.hash), [pendingTransaction(tx), "relay,journal"], `${holders}`);
		fixture.relay.answers(STATUSES, "nonsense");
		assert.deepEqual(await ask(fixture, tx.hash), [pendingTransaction(tx), "relay,journal"], `${holders}`);
	}
});

test("what the relay has just ended is null, and the observer hears of it", async () => {
	for (const [stage, elsewhere] of [
		["CANCELLED", false],
		["REPLACED", false],
		["EXPIRED", true],
		["DROPPED", true],
	] as const) {
		const fixture = new ViewFixture();
		fixture.relay.answers(METHOD, null);
		const tx = fixture.holds(5, ["relay"]);
		fixture.relay.answers(STATUSES, [{ hash: tx.hash, status: "FAILED", stage }]);
		assert.deepEqual(await ask(fixture, tx.hash), [null, "relay"], stage);
		assert.deepEqual(fixture.learned, [[tx.hash, stage]]);
		fixture.holds(5, ["relay", "fallback"]);
		const shown = elsewhere ? pendingTransaction(tx) : null;
		assert.deepEqual((await ask(fixture, tx.hash))[0], shown, `${stage}, and the fallback holds it`);
	}
});

test("what its user ended is null wherever it still lies, unless it was mined", async () => {
	for (const ending of ["cancelled", "replaced"] as const) {
		const fixture = new ViewFixture();
		const tx = fixture.ended(5, ending);
		fixture.relay.answers(METHOD, pendingTransaction(tx));
		assert.equal((await ask(fixture, tx.hash))[0], null, "the relay has not heard of it yet");
		fixture.relay.answers(METHOD, minedObject(tx));
		assert.deepEqual(await ask(fixture, tx.hash), [{ ...minedObject(tx), ...HIDDEN }, "relay"]);
		fixture.relay.isUnavailable = true;
		fixture.fallback.answers(METHOD, pendingTransaction(tx));
		assert.equal((await ask(fixture, tx.hash))[0], null);
		fixture.isChainUp = false;
		assert.equal((await ask(fixture, tx.hash))[0], null);
		fixture.isChainUp = true;
		fixture.mines(tx);
		assert.deepEqual((await ask(fixture, tx.hash))[0], { ...minedObject(tx), ...HIDDEN });
	}
});

test("while the relay is out, or gives no word, what the journal holds is pending until the chain has it", async () => {
	for (const how of ["out", "silent", "of another"] as const) {
		const fixture = new ViewFixture();
		fixture.relay.isUnavailable = how === "out";
		if (how === "of another") fixture.relay.answers(METHOD, minedObject(signedTransaction({ nonce: 99 })));
		const tx = fixture.holds(5, ["relay"]);
		assert.deepEqual((await ask(fixture, tx.hash))[0], pendingTransaction(tx), how);
		fixture.isChainUp = false;
		assert.deepEqual(await ask(fixture, tx.hash), [pendingTransaction(tx), "journal"], how);
		fixture.isChainUp = true;
		fixture.chainRows.set(METHOD, () => result({ ...minedObject(tx), blockHash: null }));
		assert.deepEqual((await ask(fixture, tx.hash))[0], pendingTransaction(tx), "it lies in a mempool");
		fixture.mines(tx);
		assert.deepEqual((await ask(fixture, tx.hash))[0], { ...minedObject(tx), ...HIDDEN }, how);
	}
});

test("one whose client was told of an error is not shown as ours", async () => {
	const fixture = new ViewFixture("plain");
	fixture.relay.isUnavailable = true;
	const tx = fixture.holds(5, ["relay"], { acknowledged: false });
	assert.deepEqual(await ask(fixture, tx.hash), [null, ""]);
});

test("what nobody of ours knows: a fallback that knows private transactions, else the chain", async () => {
	const tx = signedTransaction({ nonce: 7 });
	const fixture = new ViewFixture();
	fixture.relay.isUnavailable = true;
	fixture.fallback.answers(METHOD, minedObject(tx));
	assert.deepEqual(await ask(fixture, tx.hash), [{ ...minedObject(tx), ...HIDDEN }, "fallback"]);
	fixture.fallback.answers(METHOD, null);
	assert.deepEqual(await ask(fixture, tx.hash), [null, "fallback"]);
	assert.deepEqual(fixture.chainAsked, []);
	fixture.fallback.rows.clear();
	assert.deepEqual(await ask(fixture, tx.hash), [null, ""]);
	fixture.mines(tx);
	assert.deepEqual(await ask(fixture, tx.hash), [{ ...minedObject(tx), ...HIDDEN }, "boost"]);
	for (const name of ["plain", "flashbots"] as const) {
		const other = new ViewFixture(name);
		other.relay.isUnavailable = true;
		other.fallback.answers(METHOD, minedObject(tx));
		assert.deepEqual(await ask(other, tx.hash), [null, ""], name);
		assert.deepEqual(other.fallback.asked, [], name);
	}
});

test("where nobody can tell it is an error, never null; the relay's refusal is passed on", async () => {
	const { hash } = signedTransaction();
	const fixture = new ViewFixture();
	fixture.relay.isUnavailable = true;
	fixture.isChainUp = false;
	const unavailable = { name: "RpcError", kind: "unavailable", message: /^no relay available: / };
	await assert.rejects(ask(fixture, hash), unavailable);
	fixture.isChainUp = true;
	await assert.rejects(ask(fixture, hash, 0), unavailable);
	fixture.chainRows.set(METHOD, () => refusal(-32603, "internal error"));
	await assert.rejects(ask(fixture, hash), unavailable);
	fixture.relay.isUnavailable = false;
	fixture.relay.rows.set(METHOD, () => refusal(-32005, "limit exceeded"));
	await assert.rejects(ask(fixture, hash), { name: "RpcError", code: -32005 });
});

test("merging is needed while the relay is out, and of what the journal knows", () => {
	const fixture = new ViewFixture();
	const views = new Views(fixture.dependencies);
	const other = signedTransaction({ nonce: 99 });
	assert.equal(views.needsMergingHash(other.hash), false);
	assert.equal(views.needsMergingHash(fixture.holds(1, ["relay"]).hash), true);
	assert.equal(views.needsMergingHash(fixture.ended(2, "cancelled").hash), true);
	fixture.relay.isUnavailable = true;
	assert.equal(views.needsMergingHash(other.hash), true);
});

test("a chain whose number is not known yet leaves the answer's own", async () => {
	const fixture = new ViewFixture();
	const { chainId, ...bare } = minedObject(signedTransaction());
	fixture.relay.answers(METHOD, bare);
	const views = new Views({ ...fixture.dependencies, chainId: () => null });
	assert.deepEqual(await views.byHash(String(bare.hash), fixture.state()), {
		...bare,
		...HIDDEN,
		chainId: null,
	});
	assert.equal(chainId, "0x7a69");
});
