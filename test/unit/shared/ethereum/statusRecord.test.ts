// What a stage means to its user: the plain word, the reason and the next step.

import assert from "node:assert/strict";
import { test } from "node:test";
import { STAGES } from "../../../../relay/domain/record.ts";
import { feeProblem } from "../../../../relay/domain/transactionRules.ts";
import { stageReport, unknownStatus } from "../../../../shared/ethereum/statusRecord.ts";

test("each stage has a plain word, and each that is not on its way into a block a reason", () => {
	const onItsWay = ["PENDING", "SHARED", "BROADCAST", "INCLUDED"];
	for (const stage of [...STAGES, "HELD"]) {
		const { state, reason } = stageReport(stage);
		assert.match(state, /^[a-z ]+$/, stage);
		if (stage !== "SIMULATION_FAILED") assert.equal(reason === null, onItsWay.includes(stage), stage);
	}
});

test("what fails says why, and what can be done", () => {
	const rows: [code: string, message: string, nextStep: RegExp][] = [
		["EXECUTION_REVERTED", "execution reverted: no luck", /tried again with each block, or cancel it/],
		["INSUFFICIENT_FUNDS", "insufficient funds", /add Ether to the sender's account/],
		["OUT_OF_GAS", "out of gas", /higher gas limit/],
		["GAS_LIMIT_TOO_HIGH", "exceeds block gas limit", /lower gas limit/],
		["BLOB_FEE_CAP_TOO_LOW", "max fee per blob gas less", /fee cap for blobs/],
		["NODE_UNAVAILABLE", "node unavailable", /node does not answer/],
		["A_NEW_CODE", "of another relay", /or cancel it/],
	];
	for (const [code, message, nextStep] of rows) {
		const told = stageReport("SIMULATION_FAILED", { error: { code, message } });
		assert.equal(told.reason, message);
		assert.match(told.nextStep ?? "", nextStep, code);
	}
});

test("a fee cap under the base fee is told with one that is good for the next block, too", () => {
	const rows: [baseFee: bigint, gwei: string][] = [
		[10_500_000_000n, "12"],
		[1_000_000_000n, "1.1"],
		[50_000_000n, "0.056"],
		[123_000_000_000n, "140"],
		[7n, "7e-9"],
	];
	for (const [baseFee, gwei] of rows) {
		const error = feeProblem({ maxFeePerGas: 1n, maxFeePerBlobGas: null }, { baseFee, blobBaseFee: 1n });
		assert.equal(
			stageReport("SIMULATION_FAILED", { error }).nextStep,
			`raise the fee cap to ${gwei} gwei, or wait until the base fee falls`,
		);
	}
});

test("of a hash that was never seen there are the interface's fields alone", () => {
	assert.deepEqual(Object.keys(unknownStatus(`0x${"1".repeat(64)}`)), [
		...["status", "hash", "rpc_timestamp", "transaction", "fastMode", "shared", "simulationError"],
		...["backruns", "referrer", "refundRecipient", "refund"],
	]);
});
