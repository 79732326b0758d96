// The fields that are read from fallbacks' status pages.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readFallbackPage } from "../../../../boost-proxy/views/thirdParties.ts";
import { stageReport, unknownStatus } from "../../../../shared/ethereum/statusRecord.ts";

const HASH = `0x${"ab".repeat(32)}`;
const BLANK = unknownStatus(HASH);
const TRANSACTION = { from: "0xF1", to: "0xT2", gas: "21000", nonce: "5", value: "9" };
const SHOWN = { ...TRANSACTION, from: "0xf1", to: "0xt2" };

test("a page in our own format: pending with a stage is HELD, an ended one has its details", () => {
	const full = {
		...{ hash: HASH.toUpperCase().replace("X", "x"), rpc_timestamp: "2026-02-03T04:05:06.007Z" },
		...{ transaction: TRANSACTION, fastMode: true, shared: true, simulationError: null, backruns: 2 },
		...{ referrer: "wallet", refundRecipient: "0x11", refund: 0.5, origin: "203.0.113.7" },
	};
	const flags = { fastMode: true, shared: true };
	const rows: [object, object][] = [
		[{ status: "UNKNOWN" }, BLANK],
		[
			{ status: "UNKNOWN", stage: "PENDING" },
			{ ...BLANK, ...flags, ...stageReport("HELD") },
		],
		[
			{ status: "UNKNOWN", stage: "HELD" },
			{ ...BLANK, ...flags, ...stageReport("HELD") },
		],
		[{ status: "UNKNOWN", stage: "NEW" }, BLANK],
	];
	for (const [page, record] of rows) {
		assert.deepEqual(readFallbackPage("ours", { ...full, ...page }, HASH), record);
	}
	const { origin: _, ...told } = full;
	for (const [status, stage, shown] of [
		["INCLUDED", "REVERTED", stageReport("REVERTED", { refundWei: "500000000000000000" })],
		["INCLUDED", undefined, { refundWei: "500000000000000000" }],
		["FAILED", "CANCELLED", stageReport("CANCELLED", { refundWei: "500000000000000000" })],
		["FAILED", "<b>", { refundWei: "500000000000000000" }],
	] as const) {
		const page = readFallbackPage("ours", { ...full, status, stage }, HASH);
		assert.deepEqual(page, { ...told, hash: HASH, status, transaction: SHOWN, ...shown });
	}
});

test("a refund in ETH alone is returned in wei, too, to the last decimal", () => {
	for (const [refund, wei] of [
		[0.009, "9000000000000000"],
		[1.000000000000001, "1000000000000001000"],
		[1e-7, "100000000000"],
		[1.5e-18, "1"],
		[120, "120000000000000000000"],
		[1e21, "0"],
		[-1, "0"],
		["x", "0"],
	] as const) {
		const page = readFallbackPage("ours", { status: "INCLUDED", hash: HASH, refund }, HASH);
		assert.equal(page?.refundWei, wei, `${refund}`);
	}
});

test("a simulation error is read as a string or an object", () => {
	const rows: [unknown, unknown][] = [
		[null, null],
		["", null],
		["execution reverted", { code: "EXECUTION_FAILED", message: "execution reverted" }],
		[
			{ code: "OUT_OF_GAS", message: "out of gas", data: "0x", more: 1 },
			{ code: "OUT_OF_GAS", message: "out of gas", data: "0x" },
		],
		[{ message: "no" }, { code: "EXECUTION_FAILED", message: "no" }],
	];
	for (const [given, shown] of rows) {
		const page = { status: "FAILED", hash: HASH, simulationError: given };
		assert.deepEqual(readFallbackPage("ours", page, HASH)?.simulationError, shown);
	}
});

test("Flashbots Protect's statuses are translated", () => {
	const transaction = {
		from: "0xF1",
		to: "0xT2",
		gasLimit: "21000",
		nonce: "5",
		value: "9",
		maxFeePerGas: "7",
	};
	const rows: [object, object | null][] = [
		[{ status: "UNKNOWN", fastMode: true }, BLANK],
		[
			{ status: "PENDING", fastMode: true, transaction },
			{ ...BLANK, fastMode: true, ...stageReport("HELD") },
		],
		[
			{ status: "INCLUDED", transaction },
			{ ...BLANK, status: "INCLUDED", ...stageReport("INCLUDED"), transaction: SHOWN },
		],
		[
			{ status: "INCLUDED", isRevert: true, transaction },
			{ ...BLANK, status: "INCLUDED", ...stageReport("REVERTED"), transaction: SHOWN },
		],
		[{ status: "FAILED" }, { ...BLANK, status: "FAILED", ...stageReport("EXPIRED") }],
		[{ status: "CANCELLED" }, { ...BLANK, status: "FAILED", ...stageReport("CANCELLED") }],
		[{ status: "toString" }, null],
		[{}, null],
	];
	for (const [page, record] of rows) assert.deepEqual(readFallbackPage("protect", page, HASH), record);
});

const FORMATS = ["ours", "protect"] as const;

test("a malformed page, or another transaction's, is ignored", () => {
	const other = `0x${"cd".repeat(32)}`;
	for (const page of [
		null,
		undefined,
		"",
		"UNKNOWN",
		7,
		[],
		[{ status: "INCLUDED" }],
		{},
		{ status: 7 },
		{ status: "INCLUDED", hash: other },
	]) {
		for (const format of FORMATS) {
			assert.equal(readFallbackPage(format, page, HASH), null, `${format} ${JSON.stringify(page)}`);
		}
	}
});

test("for any page the record has exactly the documented fields and types", () => {
	const value = fc.jsonValue({ maxDepth: 2 });
	const keys = [...Object.keys(BLANK), "stage", "isRevert", "raw"];
	const status = fc.constantFrom("INCLUDED", "FAILED", "UNKNOWN", "PENDING", "CANCELLED");
	const page = fc.record(
		{ ...Object.fromEntries(keys.map((key) => [key, value])), status, hash: fc.constant(HASH) },
		{ requiredKeys: ["status"] },
	);
	fc.assert(
		fc.property(fc.constantFrom(...FORMATS), page, (format, given) => {
			const record = readFallbackPage(format, given, HASH);
			if (record === null) return;
			const { stage, state, reason, nextStep, blockNumber, refundWei, simulationError, ...rest } = record;
			assert.deepEqual(
				Object.keys(rest).sort(),
				Object.keys(BLANK)
					.filter((key) => key !== "simulationError")
					.sort(),
			);
			assert.ok(stage === undefined || /^[A-Z_]+$/.test(stage), "stage");
			assert.equal(typeof state, stage === undefined ? "undefined" : "string");
			assert.ok(typeof refundWei === "string" || (stage === undefined && rest.refund === 0), "refundWei");
			for (const text of [reason, nextStep]) assert.ok(text == null || typeof text === "string");
			assert.ok(blockNumber == null || typeof blockNumber === "number", "blockNumber");
			assert.ok(simulationError === null || typeof simulationError.message === "string", "simulationError");
			assert.deepEqual(Object.keys(rest.transaction), Object.keys(BLANK.transaction));
			for (const field of Object.values(rest.transaction)) assert.equal(typeof field, "string");
			assert.deepEqual([typeof rest.fastMode, typeof rest.shared], ["boolean", "boolean"]);
			assert.deepEqual([typeof rest.backruns, typeof rest.refund], ["number", "number"]);
			for (const field of [rest.rpc_timestamp, rest.referrer, rest.refundRecipient]) {
				assert.ok(field === null || typeof field === "string", "text");
			}
		}),
		{ numRuns: 300 },
	);
});
