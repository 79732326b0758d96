// GET /tx/{hash} over relay, journal, fallback and chain: who counts when, and that somebody always does.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import type { Ending } from "../../../../boost-proxy/domain/row.ts";
import { Views } from "../../../../boost-proxy/views/views.ts";
import { stageReport, unknownStatus } from "../../../../shared/ethereum/statusRecord.ts";
import { signedTransaction } from "../../../support/txFactory.ts";
import { minedObject, refusal, ViewFixture } from "./viewFixture.ts";

/** As it would be sent, and who is named for it. */
async function ask(fixture: ViewFixture, hash: string): Promise<[unknown, string, number]> {
	const { body, by, status } = await new Views(fixture.dependencies).status(hash);
	return [JSON.parse(JSON.stringify(body)), by, status];
}

const held = (hash: string, fastMode = true) => ({
	...unknownStatus(hash),
	fastMode,
	...stageReport("HELD"),
});

test("the relay's record is shown as it came, and the observer hears of its stage", async () => {
	const fixture = new ViewFixture();
	const tx = fixture.holds(5, ["relay"]);
	for (const [status, stage] of [
		["UNKNOWN", "BROADCAST"],
		["FAILED", "SIMULATION_FAILED"],
		["FAILED", "EXPIRED"],
		["INCLUDED", "INCLUDED"],
	]) {
		const page = { ...unknownStatus(tx.hash), status, stage, backruns: 3, more: "to come" };
		fixture.relay.pages.set(tx.hash, page);
		assert.deepEqual(await ask(fixture, tx.hash), [page, "relay", 200]);
		assert.deepEqual(fixture.learned.pop(), [tx.hash, stage]);
	}
	assert.deepEqual([fixture.chainAsked, fixture.fallback.asked], [[], []]);
});

test("an entry is HELD while the relay has no record, is out or tells nonsense, until the chain has it", async () => {
	const rows: ((fixture: ViewFixture, hash: string) => void)[] = [
		(fixture, hash) => fixture.relay.pages.set(hash, unknownStatus(hash)),
		(fixture) => {
			fixture.relay.isUnavailable = true;
		},
		() => {},
		(fixture, hash) =>
			fixture.relay.pages.set(hash, { ...unknownStatus(`0x${"00".repeat(32)}`), stage: "PENDING" }),
		(fixture, hash) => fixture.relay.pages.set(hash, [hash]),
	];
	for (const prepare of rows) {
		const fixture = new ViewFixture();
		const tx = fixture.holds(5, ["relay"], { search: "referrer=x" });
		prepare(fixture, tx.hash);
		assert.deepEqual(await ask(fixture, tx.hash), [held(tx.hash), "journal", 200]);
		fixture.isChainUp = false;
		assert.deepEqual(await ask(fixture, tx.hash), [held(tx.hash), "journal", 200]);
		fixture.isChainUp = true;
		fixture.mines(tx);
		assert.equal(((await ask(fixture, tx.hash))[0] as { status: string }).status, "INCLUDED");
	}
});

test("a mined one has the fields of the chain and what its client asked for", async () => {
	const recipient = `0x${"Ab".repeat(20)}`;
	for (const [status, stage] of [
		["0x1", "INCLUDED"],
		["0x0", "REVERTED"],
	] as const) {
		const fixture = new ViewFixture();
		fixture.relay.isUnavailable = true;
		const search = `refundRecipient=${recipient}&referrer=a%20wallet`;
		const tx = fixture.holds(
			5,
			["relay"],
			{ path: "noreverts", search },
			{ value: 10n ** 30n, gasLimit: 50_000 },
		);
		fixture.mines(tx, status);
		const expected = {
			...unknownStatus(tx.hash),
			...{ status: "INCLUDED", rpc_timestamp: "2026-01-01T00:00:00.000Z" },
			...stageReport(stage, { blockNumber: 9 }),
			transaction: { from: tx.from, to: tx.to, gas: "50000", nonce: "5", value: (10n ** 30n).toString() },
			...{ refundRecipient: recipient.toLowerCase(), referrer: "a wallet" },
		};
		assert.deepEqual(await ask(fixture, tx.hash), [expected, "journal", 200]);
		fixture.chainRows.set("eth_getTransactionByHash", () => refusal(-32000, "pruned"));
		const { transaction } = (await ask(fixture, tx.hash))[0] as { transaction: object };
		assert.deepEqual(transaction, { from: tx.from, to: "", gas: "", nonce: "5", value: "" });
	}
});

test("a receipt of another transaction, or of none, is not believed", async () => {
	const fixture = new ViewFixture();
	fixture.relay.isUnavailable = true;
	const tx = fixture.holds(5, ["relay"]);
	const other = signedTransaction({ nonce: 6 });
	for (const receipt of [
		{ transactionHash: other.hash, blockHash: "0x1", status: "0x1" },
		{ transactionHash: tx.hash, blockHash: null },
		"0x1",
		[],
	]) {
		fixture.chainRows.set("eth_getTransactionReceipt", () => ({ ok: true, result: receipt }));
		assert.deepEqual(await ask(fixture, tx.hash), [held(tx.hash), "journal", 200]);
	}
});

test("what the relay has given up is HELD where another one holds it", async () => {
	for (const [stage, holders, isHeld] of [
		["EXPIRED", ["relay", "fallback"], true],
		["DROPPED", ["fallback"], true],
		["EXPIRED", ["relay"], false],
		["CANCELLED", ["relay", "fallback"], false],
		["INCLUDED", ["fallback"], false],
	] as const) {
		const fixture = new ViewFixture();
		const tx = fixture.holds(5, holders as readonly UpstreamName[]);
		const status = stage === "INCLUDED" ? stage : "FAILED";
		const page = { ...unknownStatus(tx.hash), status, stage };
		fixture.relay.pages.set(tx.hash, page);
		assert.deepEqual((await ask(fixture, tx.hash))[0], isHeld ? held(tx.hash) : page, `${stage} ${holders}`);
	}
});

const ENDED: readonly (readonly [Ending, string, string])[] = [
	["mined", "INCLUDED", "INCLUDED"],
	["replaced", "FAILED", "REPLACED"],
	["cancelled", "FAILED", "CANCELLED"],
	["expired", "FAILED", "EXPIRED"],
	["dropped", "FAILED", "DROPPED"],
];

for (const [ending, status, stage] of ENDED) {
	test(`one that is ${ending}: ${status} ${stage}, with the relay out and the chain too, unless it was mined`, async () => {
		const fixture = new ViewFixture();
		fixture.relay.isUnavailable = true;
		const tx = fixture.ended(5, ending);
		const blank = unknownStatus(tx.hash);
		const transaction = { ...blank.transaction, from: tx.from, nonce: "5" };
		const expected = { ...blank, status, ...stageReport(stage), transaction };
		assert.deepEqual(await ask(fixture, tx.hash), [expected, "journal", 200]);
		fixture.isChainUp = false;
		assert.deepEqual(await ask(fixture, tx.hash), [expected, "journal", 200]);
		fixture.isChainUp = true;
		fixture.mines(tx);
		const [mined] = (await ask(fixture, tx.hash)) as [
			{ status: string; stage: string; transaction: object },
			string,
			number,
		];
		assert.deepEqual([mined.status, mined.stage], ["INCLUDED", "INCLUDED"]);
		const { gas, value } = minedObject(tx);
		assert.deepEqual(mined.transaction, {
			...{ from: tx.from, to: tx.to, nonce: "5" },
			...{ gas: BigInt(String(gas)).toString(), value: BigInt(String(value)).toString() },
		});
	});
}

test("what its user ended while the relay was out stays ended, though the relay has not heard of it", async () => {
	for (const [ending, stage] of [
		["cancelled", "CANCELLED"],
		["replaced", "REPLACED"],
	] as const) {
		const fixture = new ViewFixture();
		const tx = fixture.ended(5, ending);
		const blank = unknownStatus(tx.hash);
		fixture.relay.pages.set(tx.hash, { ...blank, stage: "BROADCAST" });
		const transaction = { ...blank.transaction, from: tx.from, nonce: "5" };
		assert.deepEqual(await ask(fixture, tx.hash), [
			{ ...blank, status: "FAILED", ...stageReport(stage), transaction },
			"journal",
			200,
		]);
		const failing = { ...blank, status: "FAILED", stage: "SIMULATION_FAILED", backruns: 2 };
		fixture.relay.pages.set(tx.hash, failing);
		assert.deepEqual(await ask(fixture, tx.hash), [{ ...failing, ...stageReport(stage) }, "journal", 200]);
		const included = { ...blank, status: "INCLUDED", stage: "INCLUDED" };
		fixture.relay.pages.set(tx.hash, included);
		assert.deepEqual(await ask(fixture, tx.hash), [included, "relay", 200], "a builder was faster");
		const knows = { ...blank, status: "FAILED", stage: "CANCELLED" };
		fixture.relay.pages.set(tx.hash, knows);
		assert.deepEqual(await ask(fixture, tx.hash), [knows, "relay", 200]);
	}
});

test("while the relay is out the fallback's page tells of what nobody of ours knows", async () => {
	const { hash } = signedTransaction();
	const fixture = new ViewFixture();
	fixture.relay.isUnavailable = true;
	fixture.fallback.pages.set(hash, { ...unknownStatus(hash), stage: "BROADCAST", shared: true });
	assert.deepEqual(await ask(fixture, hash), [
		{ ...unknownStatus(hash), shared: true, ...stageReport("HELD") },
		"fallback",
		200,
	]);
	fixture.fallback.pages.set(hash, { ...unknownStatus(hash), status: "FAILED" });
	assert.deepEqual(await ask(fixture, hash), [{ ...unknownStatus(hash), status: "FAILED" }, "fallback", 200]);
	assert.deepEqual(fixture.chainAsked, []);
	fixture.fallback.pages.set(hash, unknownStatus(hash));
	assert.deepEqual(await ask(fixture, hash), [unknownStatus(hash), "fallback", 200]);
	const protect = new ViewFixture("flashbots");
	protect.relay.isUnavailable = true;
	protect.fallback.pages.set(hash, { status: "PENDING", hash });
	assert.deepEqual(await ask(protect, hash), [
		{ ...unknownStatus(hash), ...stageReport("HELD") },
		"fallback",
		200,
	]);
});

test("without such a page the chain tells; where nobody tells anything it is 503", async () => {
	const tx = signedTransaction();
	const fixture = new ViewFixture("plain");
	fixture.relay.isUnavailable = true;
	assert.deepEqual(await ask(fixture, tx.hash), [unknownStatus(tx.hash), "boost", 200]);
	fixture.mines(tx);
	const [mined, by, status] = await ask(fixture, tx.hash);
	assert.deepEqual([(mined as { stage: string }).stage, by, status], ["INCLUDED", "boost", 200]);
	fixture.isChainUp = false;
	const nobody = { error: "no relay available: nobody who could know the transaction answers" };
	assert.deepEqual(await ask(fixture, tx.hash), [nobody, "boost", 503]);
	const views = new Views({ ...fixture.dependencies, upstreams: { relay: fixture.relay, fallback: null } });
	assert.equal((await views.status(tx.hash)).status, 503);
	fixture.relay.isUnavailable = false;
	fixture.relay.pages.set(tx.hash, unknownStatus(tx.hash));
	assert.equal((await views.status(tx.hash)).status, 200);
});

test("one whose client was told of an error is told of by the upstreams alone", async () => {
	const fixture = new ViewFixture();
	fixture.relay.isUnavailable = true;
	const tx = fixture.holds(5, ["relay"], { acknowledged: false });
	assert.deepEqual(await ask(fixture, tx.hash), [unknownStatus(tx.hash), "boost", 200]);
});
