// Which of the feed's transactions the searcher takes for a swap, and which he leaves.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PAIR, readTarget } from "../../../devnet/searcher/target.ts";

const A = "0xAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAa";
const B = `0x${"b0".repeat(20)}`;
const WETH = `0x${"c0".repeat(20)}`;
const TOKEN = `0x${"d0".repeat(20)}`;
const WATCHED = { pairs: [A, B], weth: WETH, token: TOKEN } as const;
const hash = `0x${"11".repeat(32)}`;
const swap = (tokenIn: string, amountIn = 5n): string =>
	PAIR.encodeFunctionData("swap", [tokenIn, amountIn, 0n]);

test("swaps in either pool, of either token, are taken; addresses in any case", () => {
	assert.deepEqual(readTarget({ hash, to: A.toLowerCase(), data: swap(WETH) }, WATCHED), {
		hash,
		pool: 0,
		swap: { sells: "weth", amountIn: 5n },
	});
	assert.deepEqual(readTarget({ hash, to: B, data: swap(TOKEN, 7n) }, WATCHED), {
		hash,
		pool: 1,
		swap: { sells: "token", amountIn: 7n },
	});
});

const LEFT: readonly (readonly [string, unknown])[] = [
	["another contract", { hash, to: TOKEN, data: swap(WETH) }],
	["a creation", { hash, to: null, data: swap(WETH) }],
	["another method", { hash, to: A, data: PAIR.encodeFunctionData("reserves") }],
	["a transfer", { hash, to: A, data: "0x" }],
	["a third token", { hash, to: A, data: swap(B) }],
	["too short for swap", { hash, to: A, data: swap(WETH).slice(0, -2) }],
	["no hex", { hash, to: A, data: "swap" }],
	["no hash", { to: A, data: swap(WETH) }],
	["text", "0x"],
	["nothing", null],
	["a list", []],
];
for (const [what, transaction] of LEFT) {
	test(`left alone: ${what}`, () => assert.equal(readTarget(transaction, WATCHED), null));
}
