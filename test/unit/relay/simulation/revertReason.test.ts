// Tests the message and data that users see for every kind of revert data.

import assert from "node:assert/strict";
import { it } from "node:test";
import { revertError } from "../../../../relay/simulation/revertReason.ts";
import { errorString, panic } from "../../../support/contracts.ts";

const word = (value: number) => value.toString(16).padStart(64, "0");
const CUT = `${"é".repeat(256)}…`;

/** Title, data, what follows `execution reverted`. */
const ROWS: readonly (readonly [title: string, data: unknown, message: string])[] = [
	["a reason", errorString("UniswapV2: K"), ": UniswapV2: K"],
	["an empty reason", errorString(""), ": "],
	["a reason of 256 characters", errorString("é".repeat(256)), `: ${"é".repeat(256)}`],
	["a longer reason", errorString("é".repeat(257)), `: ${CUT}`],
	["a reason with lines and colours", errorString("a\nb\r\u001b[31mc\u2028d"), ": a?b??[31mc?d"],
	["a reason that turns the text around", errorString("a\u202eb\u200bc"), ": a?b?c"],
	["a reason that is no UTF-8", `0x08c379a0${word(32)}${word(2)}ff41${"00".repeat(30)}`, ": \ufffdA"],
	["a reason without padding", `0x08c379a0${word(32)}${word(2)}4142`, ": AB"],
	["a reason longer than its data", `0x08c379a0${word(32)}${word(3)}4142`, ": custom error 0x08c379a0"],
	["a reason whose offset leads out", `0x08c379a0${word(9999)}`, ": custom error 0x08c379a0"],
	["a reason whose length is absurd", `0x08c379a0${word(32)}${"f".repeat(64)}`, ": custom error 0x08c379a0"],
	["a reason that is cut off", "0x08c379a000", ": custom error 0x08c379a0"],
	["panic 0x01", panic(1), ": panic 0x01 (assertion failed)"],
	["panic 0x11", panic(0x11), ": panic 0x11 (arithmetic overflow)"],
	["an unknown panic", panic(0x77), ": panic 0x77"],
	["a panic that is cut off", "0x4e487b7100", ": custom error 0x4e487b71"],
	["a custom error", `0xDEADBEEF${word(7)}`, ": custom error 0xdeadbeef"],
	["too little for a selector", "0xaabbcc", ""],
	["no data", "0x", ""],
	["data that is missing", undefined, ""],
	["data that is no hex", "0xzz", ""],
];

for (const [title, data, message] of ROWS) {
	it(title, () => {
		const error = revertError(data);
		assert.equal(error.code, "EXECUTION_REVERTED");
		assert.equal(error.message, `execution reverted${message}`);
		const isBytes = typeof data === "string" && /^0x([0-9a-f]{2})+$/i.test(data);
		assert.equal(error.data, isBytes ? data.toLowerCase().slice(0, 2 + 2 * 4096) : undefined);
	});
}

it("keeps 4 KiB of data and not a byte more", () => {
	assert.equal(revertError(`0x${"ab".repeat(4096)}`).data?.length, 2 + 2 * 4096);
	assert.equal(revertError(`0x${"ab".repeat(4097)}`).data?.length, 2 + 2 * 4096);
});
