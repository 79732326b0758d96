// The time of eth_sendRawTransactionSync and its errors, in the words and with the data of EIP-7966.

import assert from "node:assert/strict";
import { test } from "node:test";
import { neverMined, notSoon, syncTimeoutMs, timedOut } from "../../../../shared/jsonrpc/sendSync.ts";

const HASH = `0x${"ab".repeat(32)}`;
const BEGINS = "The transaction was added to the mempool but wasn't processed";

test("times are numbers or hex, and longer ones count as the longest", () => {
	const rows: [unknown, number | undefined][] = [
		[undefined, undefined],
		[1, 1],
		[25_000, 25_000],
		[86_400_000, 25_000],
		["0x1", 1],
		["0X61A8", 25_000],
		["0x61a9", 25_000],
	];
	for (const [given, ms] of rows) assert.equal(syncTimeoutMs.parse(given), ms, `${given}`);
});

test("anything else is refused with what was expected", () => {
	for (const given of [null, 0, -1, 1.5, 1e21, Number.NaN, "", "1", "0x0", "0x01", true, [1], {}]) {
		const { success, error } = syncTimeoutMs.safeParse(given);
		assert.equal(success, false, `${given}`);
		assert.deepEqual(
			error?.issues.map((issue) => issue.message),
			["expected milliseconds, 1 or more, as a number or as 0x hex"],
		);
	}
});

test("each error has its code, the words that clients look for, and the hash as data", () => {
	const rows = [
		[timedOut(HASH, 1_500), 4, " in 1.5s."],
		[timedOut(HASH, 20_000.4, "the relay is shutting down"), 4, " in 20s: the relay is shutting down."],
		[notSoon(HASH, "a missing nonce"), 5, " due to a missing nonce"],
		[neverMined(HASH), 5, " due to being a soft cancel, which is never mined itself"],
	] as const;
	for (const [error, code, tail] of rows) {
		assert.deepEqual([error.code, error.message, error.data], [code, BEGINS + tail, HASH]);
	}
});
