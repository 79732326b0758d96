// Tests that plain bundles are simulated first: what is refused, what waits for a later block of its range, and what
// is tried again at each head.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BundleOutcome } from "../../../../relay/domain/bundle.ts";
import type { SimulationErrorCode } from "../../../../relay/domain/simulation.ts";
import {
	rawTransaction,
	signedTransaction,
	type TxOptions,
	testAccount,
} from "../../../support/txFactory.ts";
import { AuctionFixture } from "./auctionFixture.ts";

const TX = (label: number): TxOptions => ({ by: testAccount(400 + label), nonce: 0 });

interface Options {
	readonly first?: number;
	readonly last?: number;
	readonly uuid?: string;
	readonly owner?: string;
	/** Labels of those that may revert. */
	readonly mayRevert?: readonly number[];
}

function submit(
	fixture: AuctionFixture,
	labels: readonly number[],
	options: Options = {},
): Promise<BundleOutcome> {
	const { first = 101, last = first, uuid = null, owner = "me", mayRevert = [] } = options;
	for (const label of labels) fixture.label(signedTransaction(TX(label)).hash, `t${label}`);
	return fixture.submit({
		...{ owner, network: owner, uuid, builders: null, refund: null },
		blocks: { first: BigInt(first), last: BigInt(last) },
		body: labels.map((label) => ({ raw: rawTransaction(TX(label)), canRevert: mayRevert.includes(label) })),
	});
}

async function accepted(...args: Parameters<typeof submit>): Promise<string> {
	const outcome = await submit(...args);
	if (outcome.outcome !== "accepted") throw new Error(outcome.message);
	return outcome.hash;
}

async function refused(...args: Parameters<typeof submit>): Promise<string> {
	const outcome = await submit(...args);
	if (outcome.outcome === "accepted") throw new Error("accepted");
	assert.equal(outcome.simulated, true);
	return `${outcome.code} ${outcome.message}`;
}

const sent = (fixture: AuctionFixture) =>
	fixture.builders.take().map((line) => line.replace(/bundle \S+/, "it"));
const tried = (fixture: AuctionFixture) =>
	fixture.simulations.plain.splice(0).map(({ labels, block }) => `${labels} in ${block.number}`);

test("it is tried as the next block, all of it, on behalf of its client, and goes out then", async () => {
	const fixture = new AuctionFixture();
	await accepted(fixture, [1, 2], { owner: "you" });
	const [request] = fixture.simulations.plain;
	assert.deepEqual(
		[request?.labels, request?.client, request?.block.number, request?.block.stateBlock],
		["t1 t2", "you", 101, 100],
	);
	assert.equal(request?.accounts.size, 2);
	assert.deepEqual(sent(fixture), ["send t1 t2 for 101 to a,b"]);
});

for (const [fails, expected] of [
	["EXECUTION_REVERTED", "BUNDLE_REVERTED bundle reverted: no luck (body[1])"],
	["OUT_OF_GAS", "BUNDLE_REVERTED bundle reverted: it is OUT_OF_GAS (body[1])"],
	["INSUFFICIENT_FUNDS", "BAD_TRANSACTION it is INSUFFICIENT_FUNDS (body[1])"],
	["NONCE_GAP", "BAD_TRANSACTION it is NONCE_GAP (body[1])"],
	["FEE_CAP_TOO_LOW", "BAD_TRANSACTION it is FEE_CAP_TOO_LOW (body[1])"],
] as const) {
	test(`${fails} in its only block: refused, told why, nothing goes out`, async () => {
		const fixture = new AuctionFixture();
		fixture.simulations.fails.set("t2", fails);
		assert.equal(await refused(fixture, [1, 2]), expected);
		assert.deepEqual([sent(fixture), fixture.told], [[], []]);
		await fixture.block();
		assert.deepEqual(sent(fixture), []);
	});
}

test("what may revert may; what may revert and can't be in the block may not", async () => {
	const fixture = new AuctionFixture();
	fixture.simulations.fails.set("t1", "EXECUTION_REVERTED");
	await accepted(fixture, [1, 2], { mayRevert: [1] });
	assert.deepEqual(sent(fixture), ["send t1 t2 for 101 to a,b"]);
	fixture.simulations.fails.set("t1", "NONCE_GAP");
	assert.match(await refused(fixture, [1, 3], { mayRevert: [1] }), /^BAD_TRANSACTION/);
});

test("unfunded, of a used nonce or of a contract: refused by the accounts alone", async () => {
	const fixture = new AuctionFixture();
	const { address } = testAccount(401);
	fixture.accounts.balances.set(address, 1n);
	assert.match(
		await refused(fixture, [1]),
		/^BAD_TRANSACTION insufficient funds for gas \* price \+ value: balance 1,/,
	);
	fixture.accounts.balances.delete(address);
	fixture.accounts.nonces.set(address, 1n);
	assert.match(
		await refused(fixture, [2, 1], { last: 120 }),
		/^BAD_TRANSACTION nonce too low:.*\(body\[1\]\)$/,
	);
	fixture.accounts.nonces.delete(address);
	fixture.accounts.contracts.add(address);
	assert.match(await refused(fixture, [2, 1]), /^BUNDLE_REVERTED .*sender not an eoa/);
	assert.deepEqual(tried(fixture), []);
});

for (const fails of ["INSUFFICIENT_FUNDS", "NONCE_GAP", "FEE_CAP_TOO_LOW"] as const) {
	test(`${fails} while its range has later blocks: it is kept, goes out when it passes, and the record says so`, async () => {
		const fixture = new AuctionFixture();
		fixture.simulations.fails.set("t1", fails);
		const hash = await accepted(fixture, [1], { first: 101, last: 103 });
		assert.deepEqual([sent(fixture), fixture.status(hash, 101)], [[], "NOT_INCLUDED invalid"]);
		await fixture.block();
		assert.deepEqual([sent(fixture), fixture.status(hash, 102)], [[], "NOT_INCLUDED invalid"]);
		fixture.simulations.fails.clear();
		await fixture.block();
		assert.deepEqual([sent(fixture), fixture.status(hash, 103)], [["send t1 for 103 to a,b"], "SENT"]);
	});
}

test("for a later block it is tried as that: what may come before then is waited for, what reverts is refused", async () => {
	const fixture = new AuctionFixture();
	fixture.simulations.fails.set("t1", "INSUFFICIENT_FUNDS");
	fixture.simulations.fails.set("t2", "EXECUTION_REVERTED");
	const hash = await accepted(fixture, [1], { first: 103 });
	assert.match(await refused(fixture, [2], { first: 103 }), /^BUNDLE_REVERTED/);
	assert.deepEqual(tried(fixture), ["t1 in 103", "t2 in 103"]);
	assert.equal(fixture.status(hash, 103), "ACCEPTED");
	fixture.simulations.fails.clear();
	await fixture.block();
	assert.deepEqual(tried(fixture), []);
	await fixture.block();
	assert.deepEqual([tried(fixture), sent(fixture)], [["t1 in 103"], ["send t1 for 103 to a,b"]]);
});

test("at each head it is tried again: what fails goes to nobody for that block, and is tried for the next", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, [1], { first: 101, last: 104 });
	const fails: readonly (SimulationErrorCode | null)[] = ["EXECUTION_REVERTED", "INSUFFICIENT_FUNDS", null];
	for (const code of fails) {
		if (code === null) fixture.simulations.fails.clear();
		else fixture.simulations.fails.set("t1", code);
		await fixture.block();
	}
	assert.deepEqual(tried(fixture), ["t1 in 101", "t1 in 102", "t1 in 103", "t1 in 104"]);
	assert.deepEqual(sent(fixture), ["send t1 for 101 to a,b", "send t1 for 104 to a,b"]);
	assert.deepEqual(
		[101, 102, 103, 104].map((block) => fixture.status(hash, block)),
		["NOT_INCLUDED notChosen", "NOT_INCLUDED reverted", "NOT_INCLUDED invalid", "SENT"],
	);
});

test("what has failed is tried behind what has passed", async () => {
	const fixture = new AuctionFixture();
	fixture.simulations.fails.set("t1", "INSUFFICIENT_FUNDS");
	await accepted(fixture, [1], { first: 101, last: 104 });
	await accepted(fixture, [2], { first: 101, last: 104 });
	fixture.simulations.plain.length = 0;
	await fixture.block();
	const priorities = fixture.simulations.plain.map(({ labels, priority }) => `${labels} ${priority}`);
	assert.deepEqual(priorities.sort(), ["t1 held", "t2 again"]);
});

test("a head that comes while it is tried ends that, and it is tried for the block behind", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, [1], { first: 101, last: 104 });
	sent(fixture);
	fixture.simulations.holding.add("t1");
	await fixture.block();
	fixture.simulations.holding.clear();
	await fixture.block();
	assert.equal(fixture.simulations.plain.at(-2)?.signal?.aborted, true);
	assert.deepEqual(sent(fixture), ["send t1 for 103 to a,b"]);
	fixture.simulations.finish("t1");
	await fixture.turn();
	assert.deepEqual(sent(fixture), []);
	assert.deepEqual(fixture.status(hash, 102), "NOT_INCLUDED notSimulated");
});

test("cancelled or mined while it is tried: nothing goes out", async () => {
	for (const how of ["cancelled", "mined"] as const) {
		const fixture = new AuctionFixture();
		await accepted(fixture, [1], { first: 101, last: 104, uuid: "u" });
		fixture.simulations.holding.add("t1");
		await fixture.block();
		sent(fixture);
		if (how === "cancelled") fixture.table.cancel("me", "u");
		else await fixture.block([{ tx: signedTransaction(TX(1)) }]);
		assert.equal(fixture.simulations.plain.at(-1)?.signal?.aborted, true, how);
		fixture.simulations.finish("t1");
		await fixture.turn();
		assert.deepEqual(sent(fixture), [], how);
	}
});

test("where the node gives no verdict at a head it is asked again, until it does", async () => {
	const fixture = new AuctionFixture();
	await accepted(fixture, [1], { first: 101, last: 104 });
	sent(fixture);
	fixture.simulations.fails.set("t1", "NODE_UNAVAILABLE");
	await fixture.block();
	await fixture.clock.advance(600);
	assert.deepEqual(sent(fixture), []);
	fixture.simulations.fails.clear();
	await fixture.clock.advance(500);
	assert.deepEqual(sent(fixture), ["send t1 for 102 to a,b"]);
	fixture.plain.stop();
});

test("where the node gives no verdict on a new one: thrown, nothing is kept", async () => {
	const fixture = new AuctionFixture();
	fixture.simulations.fails.set("t1", "NODE_UNAVAILABLE");
	await assert.rejects(submit(fixture, [1]), { data: { reason: "node unavailable" } });
	assert.deepEqual([sent(fixture), fixture.outcomes], [[], ["failed"]]);
});

test("before it is refused for an account that is asked for once more, and it is tried again where it has changed", async () => {
	const fixture = new AuctionFixture();
	const { address } = testAccount(401);
	fixture.accounts.balances.set(address, 1n);
	const paid = accepted(fixture, [1]);
	fixture.accounts.onFresh = () => {
		fixture.accounts.balances.delete(address);
		return 101;
	};
	await fixture.clock.advance(200);
	await paid;
	assert.deepEqual([fixture.laterHeads, sent(fixture)], [1, ["send t1 for 101 to a,b"]]);
});

test("a bundle that replaces another fails: the other one stays out", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, [1], { first: 101, last: 103, uuid: "u" });
	fixture.simulations.fails.set("t2", "EXECUTION_REVERTED");
	await refused(fixture, [2], { first: 101, last: 103, uuid: "u" });
	assert.deepEqual([sent(fixture), fixture.status(hash, 101)], [["send t1 for 101 to a,b"], "SENT"]);
});

test("a bundle that replaces another and waits for its funds takes its place: the other one is taken back", async () => {
	const fixture = new AuctionFixture();
	await accepted(fixture, [1], { first: 101, last: 103, uuid: "u" });
	fixture.simulations.fails.set("t2", "INSUFFICIENT_FUNDS");
	await accepted(fixture, [2], { first: 101, last: 103, uuid: "u" });
	assert.deepEqual(sent(fixture), ["send t1 for 101 to a,b", "cancel it for 101 at a,b"]);
});
