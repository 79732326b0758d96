// GET /tx/{hash} over relay, journal, fallback and chain: which source counts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ABSENT } from "../../../../boost-proxy/domain/deliveryState.ts";
import { NO_OTHERS } from "../../../../boost-proxy/domain/ports.ts";
import type { UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import type { Ending } from "../../../../boost-proxy/domain/row.ts";
import { Views } from "../../../../boost-proxy/views/views.ts";
import { type StatusRecord, stageReport, unknownStatus } from "../../../../shared/ethereum/statusRecord.ts";
import type { DecodedTransaction } from "../../../../shared/ethereum/transaction.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { signedTransaction } from "../../../support/txFactory.ts";
import { minedObject, refusal, type ViewFixture, viewFixtures } from "./viewFixture.ts";

const viewFixture = viewFixtures();
const ADDRESS = "192.0.2.1";
const HAS = { ...ABSENT, presence: "has" } as const;

/** As it would be sent, and who is named for it. */
async function ask(fixture: ViewFixture, hash: string): Promise<[unknown, string, number]> {
	const { body, by, status } = await new Views(fixture.dependencies).status(hash, ADDRESS);
	return [JSON.parse(JSON.stringify(body)), by, status];
}

const SILENT = "the relay reports nothing about it now: boost keeps it";
const ELSEWHERE = "another private relay has it";

const RECEIVED = { rpc_timestamp: "2026-01-01T00:00:00.000Z" };

/** The fields that the journal has of each transaction that it accepted. */
const kept = (tx: DecodedTransaction) => ({
	...RECEIVED,
	transaction: {
		...{ from: tx.from, to: String(tx.to), nonce: tx.nonce.toString() },
		...{ gas: tx.gasLimit.toString(), value: tx.value.toString() },
	},
});

/** `reason`: of a held transaction while the relay is up. */
const held = (hash: string, reason?: string) => ({
	...unknownStatus(hash),
	fastMode: true,
	...stageReport("HELD"),
	...(reason === undefined ? {} : { reason }),
});

test("the relay's record is shown unchanged, and the observer gets its stage", async () => {
	const fixture = await viewFixture();
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

test("a row is HELD while the relay has no valid record or is unavailable, until it is mined", async () => {
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
		const fixture = await viewFixture();
		const tx = fixture.holds(5, ["relay"], { search: "referrer=x" });
		prepare(fixture, tx.hash);
		const expected = held(tx.hash, fixture.relay.isUnavailable ? undefined : SILENT);
		assert.deepEqual(await ask(fixture, tx.hash), [expected, "journal", 200]);
		fixture.isChainUp = false;
		assert.deepEqual(await ask(fixture, tx.hash), [expected, "journal", 200]);
		fixture.isChainUp = true;
		fixture.mines(tx);
		assert.equal(((await ask(fixture, tx.hash))[0] as { status: string }).status, "INCLUDED");
	}
});

test("a mined row has the chain's fields and its client's parameters", async () => {
	const recipient = `0x${"Ab".repeat(20)}`;
	for (const [status, stage] of [
		["0x1", "INCLUDED"],
		["0x0", "REVERTED"],
	] as const) {
		const fixture = await viewFixture();
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
		assert.deepEqual(await ask(fixture, tx.hash), [expected, "journal", 200], "the fields of its bytes");
	}
});

test("a receipt of another transaction is ignored", async () => {
	const fixture = await viewFixture();
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

test("a row that the relay abandoned is HELD while the fallback has it", async () => {
	for (const [stage, holders, isHeld] of [
		["EXPIRED", ["relay", "fallback"], true],
		["DROPPED", ["fallback"], true],
		["EXPIRED", ["relay"], false],
		["CANCELLED", ["relay", "fallback"], false],
		["INCLUDED", ["fallback"], false],
	] as const) {
		const fixture = await viewFixture();
		const tx = fixture.holds(5, holders as readonly UpstreamName[]);
		const status = stage === "INCLUDED" ? stage : "FAILED";
		const page = { ...unknownStatus(tx.hash), status, stage };
		fixture.relay.pages.set(tx.hash, page);
		assert.deepEqual(
			(await ask(fixture, tx.hash))[0],
			isHeld ? held(tx.hash, ELSEWHERE) : page,
			`${stage} ${holders}`,
		);
	}
});

test("why a row is HELD follows from where it is", async () => {
	for (const [presence, isOut, reason] of [
		["has", true, "the relay is down: boost keeps it, and another relay may have it"],
		["has", false, ELSEWHERE],
		["unanswered", false, "another private relay may have it"],
		["rejected", false, SILENT],
	] as const) {
		const fixture = await viewFixture();
		fixture.relay.isUnavailable = isOut;
		const tx = fixture.holds(5, [], { at: { relay: ABSENT, fallback: { ...ABSENT, presence } } });
		fixture.relay.pages.set(tx.hash, unknownStatus(tx.hash));
		const [page] = (await ask(fixture, tx.hash)) as [StatusRecord, string, number];
		assert.deepEqual([page.stage, page.reason], ["HELD", reason]);
	}
});

const ENDED: readonly (readonly [Ending, string, string])[] = [
	["mined", "INCLUDED", "INCLUDED"],
	["replaced", "FAILED", "REPLACED"],
	["cancelled", "FAILED", "CANCELLED"],
	["expired", "FAILED", "EXPIRED"],
	["dropped", "FAILED", "DROPPED"],
];

const ASK_LATER = {
	reason: "no block included it in time; the relay, which is down, may know why",
	nextStep: "look again when the relay is back, before you send it again",
};

for (const [ending, status, stage] of ENDED) {
	test(`one that is ${ending}: ${status} ${stage}, with relay and chain unavailable, unless it was mined`, async () => {
		const fixture = await viewFixture();
		fixture.relay.isUnavailable = true;
		const tx = fixture.ended(5, ending);
		const expected = {
			...{ ...unknownStatus(tx.hash), ...kept(tx), status, ...stageReport(stage) },
			// Why it was not mined boost does not know.
			...(ending === "expired" ? ASK_LATER : {}),
		};
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

test("a row that its user ended stays ended although the relay was not told to cancel it yet", async () => {
	for (const [ending, stage] of [
		["cancelled", "CANCELLED"],
		["replaced", "REPLACED"],
	] as const) {
		const fixture = await viewFixture();
		const tx = fixture.ended(5, ending);
		const blank = unknownStatus(tx.hash);
		fixture.relay.pages.set(tx.hash, { ...blank, stage: "BROADCAST" });
		assert.deepEqual(await ask(fixture, tx.hash), [
			{ ...blank, ...kept(tx), status: "FAILED", ...stageReport(stage) },
			"journal",
			200,
		]);
		const failing = { ...blank, ...kept(tx), status: "FAILED", stage: "SIMULATION_FAILED", backruns: 2 };
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

test("a transaction at the fallback is reported with the data of its page and of the journal, also when the relay is back", async () => {
	for (const isBack of [false, true]) {
		const fixture = await viewFixture();
		fixture.relay.isUnavailable = !isBack;
		const tx = fixture.holds(5, ["fallback"], { search: "referrer=a%20wallet" });
		if (isBack) fixture.relay.pages.set(tx.hash, unknownStatus(tx.hash));
		const theirs = { ...unknownStatus(tx.hash), backruns: 2, shared: true };
		const own = { ...kept(tx), referrer: "a wallet", fastMode: true, shared: true };

		fixture.fallback.pages.set(tx.hash, { ...unknownStatus(tx.hash), stage: "SHARED", shared: true });
		assert.deepEqual((await ask(fixture, tx.hash))[0], {
			...held(tx.hash, isBack ? ELSEWHERE : undefined),
			shared: true,
		});
		// No word of a third party ends it, but that its simulation fails is worth knowing.
		fixture.fallback.pages.set(tx.hash, { ...theirs, status: "FAILED", stage: "CANCELLED" });
		assert.equal(((await ask(fixture, tx.hash))[0] as { stage: string }).stage, "HELD");
		const error = { code: "EXECUTION_REVERTED", message: "execution reverted: no" };
		const failing = { ...theirs, status: "FAILED", stage: "SIMULATION_FAILED", simulationError: error };
		fixture.fallback.pages.set(tx.hash, failing);
		assert.deepEqual((await ask(fixture, tx.hash))[0], {
			...{ ...theirs, ...own, status: "FAILED", simulationError: error },
			...stageReport("SIMULATION_FAILED", { error }),
		});
		const paid = { refund: 0.009, refundWei: "9000000000000001", refundRecipient: tx.from };
		fixture.fallback.pages.set(tx.hash, { ...theirs, ...paid, status: "INCLUDED", stage: "INCLUDED" });
		fixture.mines(tx);
		const { refund, refundRecipient, refundWei } = paid;
		const mined = {
			...{ ...theirs, ...own, status: "INCLUDED", refund, refundRecipient },
			...stageReport("INCLUDED", { blockNumber: 9, refundWei }),
		};
		assert.deepEqual((await ask(fixture, tx.hash))[0], mined);
		// For good: what has ended keeps its query, when it came, and that the fallback had it.
		fixture.ends(tx, "mined");
		assert.deepEqual((await ask(fixture, tx.hash))[0], mined);
	}
});

test("the relay's page gets what only the fallback's knows of one that the fallback was given", async () => {
	for (const [ending, presence, isAsked] of [
		["mined", "has", true],
		["mined", "absent", false],
		[null, "abandoned", true],
		[null, "absent", false],
	] as const) {
		const fixture = await viewFixture();
		const at = { relay: HAS, fallback: { ...ABSENT, presence } };
		const tx = ending === null ? fixture.holds(5, [], { at }) : fixture.ended(5, ending, { at });
		const { transaction } = kept(tx);
		const block = { status: "INCLUDED", ...stageReport("INCLUDED", { blockNumber: 9 }) };
		const told = { ...unknownStatus(tx.hash), ...block, transaction, referrer: "relay's", more: "to come" };
		const own = { ...told, rpc_timestamp: "2026-01-01T00:00:01.000Z" };
		fixture.relay.pages.set(tx.hash, own);
		const news = { backruns: 3, shared: true, refund: 0.009, refundWei: "9000000000000000" };
		const error = { code: "OUT_OF_GAS", message: "out of gas" };
		const theirs = { ...told, ...news, referrer: "other", blockNumber: 8, simulationError: error };
		fixture.fallback.pages.set(tx.hash, theirs);
		const [page, by] = await ask(fixture, tx.hash);
		assert.deepEqual([page, by], [isAsked ? { ...own, ...news } : own, "relay"], `${ending} ${presence}`);
		assert.deepEqual(fixture.fallback.asked, isAsked ? ["page"] : []);
		const paid = { ...own, refund: 0.01, refundWei: "10000000000000000", backruns: 4, shared: true };
		fixture.relay.pages.set(tx.hash, paid);
		assert.deepEqual((await ask(fixture, tx.hash))[0], paid);
	}
});

test("the page of a mined one does not depend on another boost instance's answer", async () => {
	const fixture = await viewFixture();
	const { hash } = signedTransaction();
	const page = { ...unknownStatus(hash), status: "INCLUDED", stage: "INCLUDED" };
	fixture.relay.pages.set(hash, page);
	const fails = () => Promise.reject(new RpcError("unavailable", "no answer"));
	const others = { ...NO_OTHERS, isAlone: false, find: fails };
	const { body } = await new Views({ ...fixture.dependencies, others }).status(hash, ADDRESS);
	assert.deepEqual(JSON.parse(JSON.stringify(body)), page);
});

test("while the chain can't be read the fallback's word counts that it was mined", async () => {
	for (const [fields, stage, blockNumber] of [
		[{}, "INCLUDED", null],
		[{ stage: "INCLUDED", blockNumber: 9 }, "INCLUDED", 9],
		[{ stage: "REVERTED", blockNumber: 9 }, "REVERTED", 9],
	] as const) {
		const fixture = await viewFixture();
		fixture.relay.isUnavailable = true;
		const tx = fixture.holds(5, ["fallback"]);
		const told = { ...unknownStatus(tx.hash), ...kept(tx), status: "INCLUDED", refund: 0.009, backruns: 3 };
		fixture.fallback.pages.set(tx.hash, { ...told, ...fields });
		assert.deepEqual((await ask(fixture, tx.hash))[0], held(tx.hash), "the chain has not got it");
		fixture.isChainUp = false;
		assert.deepEqual(await ask(fixture, tx.hash), [
			{
				...{ ...told, fastMode: true },
				...stageReport(stage, { blockNumber, refundWei: "9000000000000000" }),
			},
			"journal",
			200,
		]);
	}
});

test("no field of a transaction is the fallback's", async () => {
	const fixture = await viewFixture();
	fixture.relay.isUnavailable = true;
	const tx = fixture.ended(5, "cancelled", { at: { relay: ABSENT, fallback: HAS } });
	const theirs = { from: `0x${"12".repeat(20)}`, to: "0x11", gas: "21000", nonce: "5", value: "7" };
	const page = { ...unknownStatus(tx.hash), status: "FAILED", transaction: theirs };
	fixture.fallback.pages.set(tx.hash, page);
	assert.deepEqual(((await ask(fixture, tx.hash))[0] as StatusRecord).transaction, kept(tx).transaction);
	assert.deepEqual(fixture.fallback.asked, ["page"]);
});

test("the fallback is not asked about what it never got", async () => {
	const fixture = await viewFixture();
	fixture.relay.isUnavailable = true;
	const tx = fixture.ended(5, "cancelled", { at: { relay: HAS, fallback: ABSENT } });
	assert.equal(((await ask(fixture, tx.hash))[0] as StatusRecord).stage, "CANCELLED");
	assert.deepEqual(fixture.fallback.asked, []);
});

test("while the relay is unavailable the fallback's page is used for unknown hashes", async () => {
	const { hash } = signedTransaction();
	const fixture = await viewFixture();
	fixture.relay.isUnavailable = true;
	fixture.fallback.pages.set(hash, { ...unknownStatus(hash), stage: "BROADCAST", shared: true });
	assert.deepEqual(await ask(fixture, hash), [
		{ ...unknownStatus(hash), shared: true, ...stageReport("HELD") },
		"fallback",
		200,
	]);
	fixture.fallback.pages.set(hash, { ...unknownStatus(hash), status: "FAILED" });
	const failed = { ...unknownStatus(hash), status: "FAILED", refundWei: "0" };
	assert.deepEqual(await ask(fixture, hash), [failed, "fallback", 200]);
	assert.deepEqual(fixture.chainAsked, []);
	fixture.fallback.pages.set(hash, unknownStatus(hash));
	assert.deepEqual(await ask(fixture, hash), [unknownStatus(hash), "fallback", 200]);
	const protect = await viewFixture("flashbots");
	protect.relay.isUnavailable = true;
	protect.fallback.pages.set(hash, { status: "PENDING", hash });
	assert.deepEqual(await ask(protect, hash), [
		{ ...unknownStatus(hash), ...stageReport("HELD") },
		"fallback",
		200,
	]);
});

test("without such a page the chain is used; without any answer it is 503", async () => {
	const tx = signedTransaction();
	const fixture = await viewFixture("plain");
	fixture.relay.isUnavailable = true;
	assert.deepEqual(await ask(fixture, tx.hash), [unknownStatus(tx.hash), "boost", 200]);
	fixture.mines(tx);
	const [mined, by, status] = await ask(fixture, tx.hash);
	assert.deepEqual([(mined as { stage: string }).stage, by, status], ["INCLUDED", "boost", 200]);
	fixture.isChainUp = false;
	const nobody = { error: "no relay available: no upstream that might know the transaction responds" };
	assert.deepEqual(await ask(fixture, tx.hash), [nobody, "boost", 503]);
	const views = new Views({
		...fixture.dependencies,
		upstreams: { relay: fixture.relay.near, fallback: null },
	});
	assert.equal((await views.status(tx.hash, ADDRESS)).status, 503);
	fixture.relay.isUnavailable = false;
	fixture.relay.pages.set(tx.hash, unknownStatus(tx.hash));
	assert.equal((await views.status(tx.hash, ADDRESS)).status, 200);
});

test("an unacknowledged row is not shown", async () => {
	const fixture = await viewFixture();
	fixture.relay.isUnavailable = true;
	const tx = fixture.holds(5, ["relay"], { acknowledged: false });
	assert.deepEqual(await ask(fixture, tx.hash), [unknownStatus(tx.hash), "boost", 200]);
});

test("a mined transaction has the refund of a page without a stage in wei, too", async () => {
	const fixture = await viewFixture();
	fixture.relay.isUnavailable = true;
	const tx = fixture.holds(5, ["fallback"]);
	fixture.fallback.pages.set(tx.hash, { ...unknownStatus(tx.hash), status: "INCLUDED", refund: 0.009 });
	fixture.mines(tx);
	const [page] = (await ask(fixture, tx.hash)) as [StatusRecord, string, number];
	assert.deepEqual([page.refund, page.refundWei], [0.009, "9000000000000000"]);
});
