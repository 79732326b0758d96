// Logs and frames in geth's form, and in no form at all, come in; what one address got by them goes out.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { receivedByFrames, receivedByLogs } from "../../../../../relay/simulation/engines/transfers.ts";

const HERE = "0x00000000000000000000000000000000facade01";
const UPPER = "0x00000000000000000000000000000000FACADE01";
const THERE = "0x00000000000000000000000000000000000005e4";
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const EMITTER = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE";

const topic = (address: string) => `0x${address.slice(2).padStart(64, "0")}`;
const data = (wei: number) => `0x${wei.toString(16).padStart(64, "0")}`;
const log = (from: string, to: string, wei: number, fields: object = {}) => ({
	address: EMITTER,
	topics: [TRANSFER, topic(from), topic(to)],
	data: data(wei),
	...fields,
});

describe("what an address got by logs", () => {
	const rows: readonly (readonly [title: string, logs: unknown[], wei: bigint])[] = [
		["no log", [], 0n],
		["a transfer", [log(THERE, HERE, 7)], 7n],
		["a transfer, in capitals", [log(THERE, UPPER, 7)], 7n],
		["two transfers", [log(THERE, HERE, 7), log(THERE, HERE, 8)], 15n],
		["what it gave back", [log(THERE, HERE, 7), log(HERE, THERE, 3)], 4n],
		["more that it gave than it got", [log(THERE, HERE, 7), log(HERE, THERE, 30)], 0n],
		["a transfer to itself", [log(HERE, HERE, 7)], 0n],
		["somebody else's", [log(THERE, THERE, 7)], 0n],
		["a token's transfer", [log(THERE, HERE, 7, { address: THERE })], 0n],
		["another event", [log(THERE, HERE, 7, { topics: [topic(HERE), topic(THERE), topic(HERE)] })], 0n],
		["no topics", [log(THERE, HERE, 7, { topics: null })], 0n],
		["topics of no form", [log(THERE, HERE, 7, { topics: [TRANSFER, 1, 2] })], 0n],
		["data of no form", [log(THERE, HERE, 7, { data: "0x07" })], 0n],
		["no log at all", [null, "0x", 7, []], 0n],
	];
	for (const [title, logs, wei] of rows) {
		it(`${title}: ${wei} wei`, () => assert.equal(receivedByLogs(logs, HERE), wei));
	}
});

describe("what an address got by frames", () => {
	const frame = (fields: object = {}) => ({ type: "CALL", from: THERE, to: HERE, value: "0x7", ...fields });
	const nothing = { value: "0x0" };
	const rows: readonly (readonly [title: string, root: unknown, wei: bigint])[] = [
		["the outermost call", frame(), 7n],
		["the outermost call, in capitals", frame({ to: UPPER }), 7n],
		["a call in it", frame({ ...nothing, calls: [frame()] }), 7n],
		["a call of a call's call", frame({ ...nothing, calls: [frame({ ...nothing, calls: [frame()] })] }), 7n],
		["all of them", frame({ calls: [frame(), frame({ calls: [frame()] })] }), 28n],
		["a creation", frame({ type: "CREATE" }), 7n],
		["a creation by salt", frame({ type: "CREATE2" }), 7n],
		["a selfdestruct", frame({ type: "SELFDESTRUCT" }), 7n],
		["a delegatecall", frame({ type: "DELEGATECALL" }), 0n],
		["a callcode", frame({ type: "CALLCODE" }), 0n],
		["a staticcall", frame({ type: "STATICCALL" }), 0n],
		["a call in a delegatecall", frame({ type: "DELEGATECALL", calls: [frame()] }), 7n],
		["what failed", frame({ error: "execution reverted" }), 0n],
		["what failed in it", frame({ ...nothing, calls: [frame({ error: "out of gas" }), frame()] }), 7n],
		[
			"what stands in what failed",
			frame({ ...nothing, calls: [frame({ error: "x", calls: [frame()] })] }),
			0n,
		],
		["what it gave back", frame({ calls: [frame({ from: HERE, to: THERE, value: "0x3" })] }), 4n],
		["more that it gave", frame({ calls: [frame({ from: HERE, to: THERE, value: "0x30" })] }), 0n],
		["somebody else's", frame({ to: THERE }), 0n],
		["no value", frame({ value: undefined }), 0n],
		["a value of no form", frame({ value: 7 }), 0n],
		["no receiver", frame({ to: undefined }), 0n],
		["no type", frame({ type: undefined }), 0n],
		["no frame", null, 0n],
		["calls of no form", frame({ calls: "no" }), 7n],
	];
	for (const [title, root, wei] of rows) {
		it(`${title}: ${wei} wei`, () => assert.equal(receivedByFrames(root, HERE), wei));
	}
});
