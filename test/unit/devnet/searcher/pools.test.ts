// The searcher's arithmetic, and the swaps that it recognises.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	afterSwap,
	amountOut,
	bestRoundTrip,
	gainOf,
	PAIR,
	type Reserves,
	readTarget,
} from "../../../devnet/searcher/pools.ts";

const ETHER = 10n ** 18n;
const POOL: Reserves = { weth: 1_000n * ETHER, token: 3_000_000n * ETHER };
const PLENTY = 10n ** 30n;

test("an amount is rounded down, after a fee of 0.3 %", () => {
	assert.equal(amountOut(1000n, 1_000_000n, 1_000_000n), 996n);
	assert.equal(amountOut(0n, 5n, 5n), 0n);
	assert.equal(amountOut(1n, 1_000_000n, 1_000_000n), 0n);
	assert.equal(amountOut(10n ** 40n, 7n, 7n), 6n);
});

test("a swap moves both reserves and never lowers their product", () => {
	for (const sells of ["weth", "token"] as const) {
		for (const amountIn of [1n, 997n, ETHER, 500n * ETHER]) {
			const after = afterSwap(POOL, { sells, amountIn });
			assert.equal(after[sells], POOL[sells] + amountIn);
			assert.ok(after.weth * after.token >= POOL.weth * POOL.token);
		}
	}
});

test("pools whose prices differ by less than the fees give no gain", () => {
	assert.equal(bestRoundTrip(POOL, POOL, PLENTY), null);
	const bigger = { weth: 7n * POOL.weth, token: 7n * POOL.token };
	assert.equal(bestRoundTrip(POOL, bigger, PLENTY), null);
	const near = afterSwap(POOL, { sells: "weth", amountIn: 2n * ETHER });
	assert.equal(bestRoundTrip(POOL, near, PLENTY), null);
	const empty = { weth: 0n, token: 0n };
	assert.equal(bestRoundTrip(POOL, empty, PLENTY), null);
});

test("no other size gains more than the best one", () => {
	for (const swapped of [4n, 10n, 77n, 400n]) {
		const costly = afterSwap(POOL, { sells: "weth", amountIn: swapped * ETHER });
		const best = bestRoundTrip(POOL, costly, PLENTY);
		assert.ok(best !== null);
		assert.equal(best.gain, gainOf(best.amountIn, POOL, costly));
		for (let permille = 1n; permille < 4_000n; permille += 7n) {
			const other = (best.amountIn * permille) / 1_000n;
			// Rounding may give or take a wei or two.
			assert.ok(gainOf(other, POOL, costly) <= best.gain + 2n, `${swapped} at ${permille}`);
		}
		// The other way round loses.
		assert.equal(bestRoundTrip(costly, POOL, PLENTY), null);
	}
});

test("too little capital is used up, and none gives no gain", () => {
	const costly = afterSwap(POOL, { sells: "weth", amountIn: 10n * ETHER });
	const best = bestRoundTrip(POOL, costly, ETHER);
	assert.deepEqual(best, { amountIn: ETHER, gain: gainOf(ETHER, POOL, costly) });
	assert.equal(bestRoundTrip(POOL, costly, 0n), null);
});

const A = "0xAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAaAa";
const B = `0x${"b0".repeat(20)}`;
const WETH = `0x${"c0".repeat(20)}`;
const TOKEN = `0x${"d0".repeat(20)}`;
const WATCHED = { pairs: [A, B], weth: WETH, token: TOKEN } as const;
const hash = `0x${"11".repeat(32)}`;
const swap = (tokenIn: string, amountIn = 5n): string =>
	PAIR.encodeFunctionData("swap", [tokenIn, amountIn, 0n]);

test("swaps of either token in either pool are recognised, with addresses in any case", () => {
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
	["no hash", { to: A, data: swap(WETH) }],
	["nothing", null],
];
test("other transactions are ignored", () => {
	for (const [what, transaction] of LEFT) assert.equal(readTarget(transaction, WATCHED), null, what);
});
