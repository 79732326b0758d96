// Logs and frames in geth's form, and in no form at all: which are a contract's, and what one address got by them.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { emitsEvents } from "../../../../../relay/simulation/engines/nodeObjects.ts";
import { receivedByFrames } from "../../../../../relay/simulation/engines/traces.ts";

const HERE = "0x00000000000000000000000000000000facade01";
const UPPER = "0x00000000000000000000000000000000FACADE01";
const THERE = "0x00000000000000000000000000000000000005e4";

describe("an event of a contract's", () => {
	const system = { address: "0xffffFFFfFFffffffffffffffFfFFFfffFFFfFFfE", topics: [], data: "0x" };
	const own = { address: HERE, topics: [], data: "0x" };
	const rows: readonly (readonly [title: string, logs: unknown, emits: boolean])[] = [
		["is a log", [own], true],
		["is none of the system's, which are for transfers (EIP-7708)", [system, system], false],
		["may stand behind those", [system, own], true],
		["is not where no logs are", [], false],
		["is not what is no log", [null, 7, "0x"], false],
		["is not what is no list", undefined, false],
	];
	for (const [title, logs, emits] of rows) it(title, () => assert.equal(emitsEvents(logs), emits));
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
