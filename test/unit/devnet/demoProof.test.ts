// Which calls of a trace pay an address.

import assert from "node:assert/strict";
import { test } from "node:test";
import { reached, type TracedCall } from "../../devnet/demoProof.ts";

const COINBASE = "0xc0C0c0c0c0C0c0c0C0c0c0c0c0C0C0c0C0c0C0c0";
const to = COINBASE.toLowerCase();
const other = `0x${"11".repeat(20)}`;

const CASES: readonly (readonly [string, TracedCall, bigint])[] = [
	["the transaction's own value", { type: "CALL", to, value: "0x5" }, 5n],
	["to another", { type: "CALL", to: other, value: "0x5" }, 0n],
	["without a value", { type: "CALL", to }, 0n],
	[
		"calls within calls, all of them",
		{
			type: "CALL",
			to: other,
			value: "0x64",
			calls: [
				{ type: "CALL", to, value: "0x1" },
				{ type: "DELEGATECALL", to: other, calls: [{ type: "CALL", to, value: "0x2" }] },
			],
		},
		3n,
	],
	["a delegatecall shows a value and moves none", { type: "DELEGATECALL", to, value: "0x5" }, 0n],
	["a staticcall", { type: "STATICCALL", to, value: "0x0" }, 0n],
	["a call that failed", { type: "CALL", to, value: "0x5", error: "execution reverted" }, 0n],
	[
		"within a call that failed",
		{ type: "CALL", to: other, error: "out of gas", calls: [{ type: "CALL", to, value: "0x5" }] },
		0n,
	],
];
test("the wei of a trace that reach an address", () => {
	for (const [what, call, wei] of CASES) assert.equal(reached(COINBASE, call), wei, what);
});
