// What the status pages of fallbacks amount to, as tables; and that nothing of them passes that was not looked at.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DIALECTS } from "../../../../boost-proxy/domain/ports.ts";
import { readFallbackPage } from "../../../../boost-proxy/views/thirdParties.ts";
import { stageReport, unknownStatus } from "../../../../shared/ethereum/statusRecord.ts";

const HASH = `0x${"ab".repeat(32)}`;
const BLANK = unknownStatus(HASH);
const TRANSACTION = { from: "0xF1", to: "0xT2", gas: "21000", nonce: "5", value: "9" };
const SHOWN = { ...TRANSACTION, from: "0xf1", to: "0xt2" };

test("a record like our own: pending with a stage is HELD, what has ended is told with what is known", () => {
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
		assert.deepEqual(readFallbackPage("mevblocker", { ...full, ...page }, HASH), record);
	}
	const { origin: _, ...told } = full;
	for (const [status, stage, shown] of [
		["INCLUDED", "REVERTED", stageReport("REVERTED")],
		["INCLUDED", undefined, {}],
		["FAILED", "CANCELLED", stageReport("CANCELLED")],
		["FAILED", "<b>", {}],
	] as const) {
		const page = readFallbackPage("mevblocker", { ...full, status, stage }, HASH);
		assert.deepEqual(page, { ...told, hash: HASH, status, transaction: SHOWN, ...shown });
	}
});

test("a failing simulation is told with its words, in whatever form it comes", () => {
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
		assert.deepEqual(readFallbackPage("mevblocker", page, HASH)?.simulationError, shown);
	}
});

test("Flashbots Protect's words are put into ours", () => {
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
	for (const [page, record] of rows) assert.deepEqual(readFallbackPage("flashbots", page, HASH), record);
});

test("what is no such page, or another transaction's, is nothing", () => {
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
		for (const dialect of ["mevblocker", "flashbots"] as const) {
			assert.equal(readFallbackPage(dialect, page, HASH), null, `${dialect} ${JSON.stringify(page)}`);
		}
	}
});

test("whatever a page holds, the record has the interface's fields with their types and no others", () => {
	const value = fc.jsonValue({ maxDepth: 2 });
	const keys = [...Object.keys(BLANK), "stage", "isRevert", "raw"];
	const status = fc.constantFrom("INCLUDED", "FAILED", "UNKNOWN", "PENDING", "CANCELLED");
	const page = fc.record(
		{ ...Object.fromEntries(keys.map((key) => [key, value])), status, hash: fc.constant(HASH) },
		{ requiredKeys: ["status"] },
	);
	fc.assert(
		fc.property(fc.constantFrom(...DIALECTS), page, (dialect, given) => {
			const record = readFallbackPage(dialect, given, HASH);
			if (record === null) return;
			const { stage, state, reason, nextStep, blockNumber, refundWei, simulationError, ...rest } = record;
			assert.deepEqual(
				Object.keys(rest).sort(),
				Object.keys(BLANK)
					.filter((key) => key !== "simulationError")
					.sort(),
			);
			assert.ok(stage === undefined || /^[A-Z_]+$/.test(stage), "stage");
			const told = [state, refundWei].every((text) => typeof text === "string");
			assert.equal(told, stage !== undefined);
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
