// The pending nonce over relay, journal, fallback and chain: who is asked, and what is counted.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Row } from "../../../../boost-proxy/domain/row.ts";
import { raised, Views } from "../../../../boost-proxy/views/views.ts";
import { testAccount } from "../../../support/txFactory.ts";
import { refusal, result, ViewFixture } from "./viewFixture.ts";

const COUNT = "eth_getTransactionCount";
const ADDRESS = testAccount(0).address;

/** The answer, and who is named for it. */
async function ask(fixture: ViewFixture, budgetMs?: number): Promise<[string, string]> {
	const state = fixture.state(budgetMs);
	const nonce = await new Views(fixture.dependencies).pendingNonce(ADDRESS, state);
	return [nonce, [...state.routing.answeredBy].join()];
}

test("the relay's word, while it is well and holds everything", async () => {
	const fixture = new ViewFixture();
	fixture.relay.answers(COUNT, "0x7");
	fixture.holds(5, ["relay"]);
	fixture.holds(6, ["relay"]);
	assert.deepEqual(await ask(fixture), ["0x7", "relay"]);
	assert.deepEqual([fixture.fallback.asked, fixture.chainAsked], [[], []]);
});

test("raised over what only the fallback holds, without a gap, and over what waits behind that at the relay", async () => {
	const fixture = new ViewFixture();
	fixture.relay.answers(COUNT, "0x5");
	fixture.holds(5, ["fallback"]);
	assert.deepEqual(await ask(fixture), ["0x6", "relay,journal"]);
	fixture.holds(6, ["relay"]);
	fixture.holds(8, ["fallback"]);
	assert.deepEqual(await ask(fixture), ["0x7", "relay,journal"]);
});

test("what the relay holds and does not count is not pending any more", async () => {
	const fixture = new ViewFixture();
	fixture.relay.answers(COUNT, "0x5");
	fixture.holds(5, ["relay"]);
	assert.deepEqual(await ask(fixture), ["0x5", "relay"]);
	fixture.holds(5, ["relay", "fallback"], {}, { value: 9n });
	assert.deepEqual(await ask(fixture), ["0x5", "relay"]);
	fixture.holds(5, ["fallback"], {}, { value: 8n });
	assert.deepEqual(await ask(fixture), ["0x6", "relay,journal"]);
});

test("one whose client was told of an error does not count", async () => {
	const fixture = new ViewFixture();
	fixture.relay.isUnavailable = true;
	fixture.fallback.answers(COUNT, "0x5");
	fixture.holds(5, ["relay"], { acknowledged: false });
	assert.deepEqual(await ask(fixture), ["0x5", "fallback"]);
});

test("the relay's refusal is passed on, in its words", async () => {
	const fixture = new ViewFixture();
	fixture.relay.rows.set(COUNT, () => refusal(-32005, "limit exceeded"));
	await assert.rejects(ask(fixture), { name: "RpcError", code: -32005, message: "limit exceeded" });
	assert.deepEqual(fixture.fallback.asked, []);
});

test("while the relay is out, or gives no word, the fallback's count and all of the journal", async () => {
	for (const how of ["out", "silent", "nonsense"] as const) {
		const fixture = new ViewFixture();
		if (how === "out") fixture.relay.isUnavailable = true;
		if (how === "nonsense") fixture.relay.answers(COUNT, "five");
		fixture.fallback.answers(COUNT, "0x5");
		fixture.holds(5, ["relay"]);
		fixture.holds(6, ["relay", "fallback"]);
		assert.deepEqual(await ask(fixture), ["0x7", "fallback,journal"], how);
	}
});

test("a fallback that does not know private transactions is not asked, the chain is: the higher of its two counts", async () => {
	for (const name of ["plain", "flashbots"] as const) {
		const fixture = new ViewFixture(name);
		fixture.relay.isUnavailable = true;
		fixture.fallback.answers(COUNT, "0x9");
		fixture.holds(5, ["relay"]);
		fixture.chainRows.set(COUNT, ([, tag]) => result(tag === "latest" ? "0x5" : "0x4"));
		assert.deepEqual(await ask(fixture), ["0x6", "boost,journal"], name);
		fixture.chainRows.set(COUNT, ([, tag]) =>
			tag === "latest" ? result("0x5") : refusal(-32602, "unknown block tag"),
		);
		assert.deepEqual(await ask(fixture), ["0x6", "boost,journal"], name);
		assert.deepEqual(fixture.fallback.asked, []);
	}
});

test("the chain is asked where the fallback is out or gives no count", async () => {
	for (const how of ["out", "silent", "refusing"] as const) {
		const fixture = new ViewFixture();
		fixture.relay.isUnavailable = true;
		fixture.fallback.isUnavailable = how === "out";
		if (how === "refusing") fixture.fallback.rows.set(COUNT, () => refusal(-32601, "no such method"));
		fixture.chainRows.set(COUNT, () => result("0x5"));
		assert.deepEqual(await ask(fixture), ["0x5", "boost"], how);
	}
});

test("where nobody can tell it is an error, never a lower count", async () => {
	const fixture = new ViewFixture();
	fixture.relay.isUnavailable = true;
	fixture.isChainUp = false;
	fixture.holds(5, ["relay"]);
	const unavailable = { name: "RpcError", kind: "unavailable", message: /^no relay available: / };
	await assert.rejects(ask(fixture), unavailable);
	fixture.isChainUp = true;
	await assert.rejects(ask(fixture, 0), unavailable, "no time is left to ask anybody");
});

test("merging is needed while the relay is out, or the journal has anything of the account", () => {
	const fixture = new ViewFixture();
	const views = new Views(fixture.dependencies);
	assert.equal(views.needsMerging(ADDRESS), false);
	fixture.relay.isUnavailable = true;
	assert.equal(views.needsMerging(ADDRESS), true);
	fixture.relay.isUnavailable = false;
	fixture.holds(5, ["relay"]);
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
