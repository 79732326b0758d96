// The pending nonce and eth_getTransactionByHash over relay, journal, fallback and chain: which are
// asked, and which answer counts.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import { Views } from "../../../../boost-proxy/views/views.ts";
import { pendingTransaction } from "../../../../shared/ethereum/rpcObjects.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { minedObject, refusal, result, type ViewFixture, viewFixtures } from "./viewFixture.ts";

const viewFixture = viewFixtures();

const COUNT = "eth_getTransactionCount";
const METHOD = "eth_getTransactionByHash";
const STATUSES = "service_transactionStatuses";
const ADDRESS = testAccount(0).address;
const HIDDEN = { gasPrice: "0x0", v: "0x0", r: "0x0", s: "0x0", yParity: "0x0" };
const UNAVAILABLE = { name: "RpcError", kind: "unavailable", message: /^no relay available: / };

/** The pending nonce, and who is named for it. */
async function nonceOf(fixture: ViewFixture, budgetMs?: number): Promise<[string, string]> {
	const state = fixture.state(budgetMs);
	const nonce = await new Views(fixture.dependencies).pendingNonce(ADDRESS, state);
	return [nonce, [...state.routing.answeredBy].join()];
}

/** The transaction, and who is named for it. */
async function ask(fixture: ViewFixture, hash: string, budgetMs?: number): Promise<[unknown, string]> {
	const state = fixture.state(budgetMs);
	const found = await new Views(fixture.dependencies).byHash(hash, state);
	return [found, [...state.routing.answeredBy].join()];
}

/**
 * The answers of relay, fallback and chain for the account ("out", or null for none), its rows in
 * the journal, the answer, and the sources that are named for it. A row is its nonce, with R and F
 * for its holders, and ! if its client got an error.
 */
type Row = readonly [string, string | null, string | null, string | null, string, string, string];
const COUNTS: readonly Row[] = [
	["the relay's word, where it holds everything", "0x7", null, null, "5R 6R", "0x7", "relay"],
	["raised over what the fallback alone holds", "0x5", null, null, "5F", "0x6", "relay,journal"],
	["and over what waits behind that, up to a gap", "0x5", null, null, "5F 6R 8F", "0x7", "relay,journal"],
	["two of one nonce are one", "0x5", null, null, "5F 5F 6F", "0x7", "relay,journal"],
	["what was counted, or has a gap before it, is not", "0x5", null, null, "4F 6F", "0x5", "relay"],
	["what the relay holds and does not count is over", "0x5", null, null, "5R 5RF", "0x5", "relay"],
	["the relay is down: all of the journal counts", "out", "0x5", null, "5R 6RF", "0x7", "fallback,journal"],
	["the relay gives no word", null, "0x5", null, "5R", "0x6", "fallback,journal"],
	["the relay talks nonsense", "five", "0x5", null, "", "0x5", "fallback"],
	["one whose client got an error does not count", "out", "0x5", null, "5R!", "0x5", "fallback"],
	["the fallback is down too: the chain", "out", "out", "0x5", "", "0x5", "boost"],
	["the fallback gives no word", "out", null, "0x5", "5R", "0x6", "boost,journal"],
	["the fallback talks nonsense", "out", "five", "0x5", "", "0x5", "boost"],
];
for (const [name, relay, fallback, chain, held, nonce, by] of COUNTS) {
	test(`the pending nonce: ${name}`, async () => {
		const fixture = await viewFixture();
		for (const [one, count] of [
			[fixture.relay, relay],
			[fixture.fallback, fallback],
		] as const) {
			one.isUnavailable = count === "out";
			if (count !== null) one.answers(COUNT, count);
		}
		fixture.chainRows.set(COUNT, () => result(chain));
		for (const [i, [, at, holders = "", error]] of [...held.matchAll(/(\d+)(R?F?)(!?)/g)].entries()) {
			const names = [...holders].map((letter): UpstreamName => (letter === "R" ? "relay" : "fallback"));
			fixture.holds(Number(at), names, { acknowledged: error === "" }, { value: BigInt(i) });
		}
		assert.deepEqual(await nonceOf(fixture), [nonce, by]);
		if (by.startsWith("relay")) assert.deepEqual([fixture.fallback.asked, fixture.chainAsked], [[], []]);
	});
}

test("a fallback that does not know private transactions is not asked, the chain is: the higher of its two counts", async () => {
	for (const name of ["plain", "flashbots"] as const) {
		const fixture = await viewFixture(name);
		fixture.relay.isUnavailable = true;
		fixture.fallback.answers(COUNT, "0x9");
		fixture.holds(5, ["relay"]);
		fixture.chainRows.set(COUNT, ([, tag]) => result(tag === "latest" ? "0x5" : "0x4"));
		assert.deepEqual(await nonceOf(fixture), ["0x6", "boost,journal"], name);
		fixture.chainRows.set(COUNT, ([, tag]) =>
			tag === "latest" ? result("0x5") : refusal(-32602, "unknown block tag"),
		);
		assert.deepEqual(await nonceOf(fixture), ["0x6", "boost,journal"], name);
		assert.deepEqual(fixture.fallback.asked, []);
	}
});

test("without any answer it is an error, never a lower count or null; the relay's refusal is passed on", async () => {
	const fixture = await viewFixture();
	const { hash } = signedTransaction();
	const both = [(ms?: number) => nonceOf(fixture, ms), (ms?: number) => ask(fixture, hash, ms)];
	fixture.relay.isUnavailable = true;
	for (const read of both) {
		fixture.isChainUp = false;
		await assert.rejects(read(), UNAVAILABLE);
		fixture.isChainUp = true;
		await assert.rejects(read(0), UNAVAILABLE, "no time is left to ask anybody");
	}
	for (const method of [COUNT, METHOD]) {
		fixture.chainRows.set(method, () => refusal(-32603, "internal error"));
		fixture.relay.rows.set(method, () => refusal(-32005, "limit exceeded"));
	}
	for (const read of both) await assert.rejects(read(), UNAVAILABLE);
	fixture.relay.isUnavailable = false;
	for (const read of both) {
		await assert.rejects(read(), { name: "RpcError", code: -32005, message: "limit exceeded" });
	}
});

test("a row that the relay lost or never had is shown from the journal", async () => {
	const fixture = await viewFixture();
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

test("a row that the relay has just ended is null, and the observer gets the stage", async () => {
	for (const [stage, elsewhere] of [
		["CANCELLED", false],
		["REPLACED", false],
		["EXPIRED", true],
		["DROPPED", true],
	] as const) {
		const fixture = await viewFixture();
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

test("a transaction that its user ended is null at any upstream, unless it was mined", async () => {
	for (const ending of ["cancelled", "replaced"] as const) {
		const fixture = await viewFixture();
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

test("without an answer of the relay a row is pending until it is mined", async () => {
	for (const how of ["out", "silent", "of another"] as const) {
		const fixture = await viewFixture();
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

test("unknown hashes are asked for at a fallback that knows private transactions, else at the chain", async () => {
	const tx = signedTransaction({ nonce: 7 });
	const fixture = await viewFixture();
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
		const other = await viewFixture(name);
		other.relay.isUnavailable = true;
		other.fallback.answers(METHOD, minedObject(tx));
		assert.deepEqual(await ask(other, tx.hash), [null, ""], name);
		assert.deepEqual(other.fallback.asked, [], name);
	}
});
