// The searcher's arithmetic: the best size against all sizes around it, and where there is nothing to gain.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	afterSwap,
	amountOut,
	bestRoundTrip,
	gainOf,
	type Reserves,
} from "../../../devnet/searcher/pools.ts";

const ETHER = 10n ** 18n;
const POOL: Reserves = { weth: 1_000n * ETHER, token: 3_000_000n * ETHER };
const PLENTY = 10n ** 30n;

test("an amount is rounded down, and 0.3 % of what goes in is not swapped", () => {
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

test("pools at one price, or closer than the fees, gain nothing", () => {
	assert.equal(bestRoundTrip(POOL, POOL, PLENTY), null);
	const bigger = { weth: 7n * POOL.weth, token: 7n * POOL.token };
	assert.equal(bestRoundTrip(POOL, bigger, PLENTY), null);
	const near = afterSwap(POOL, { sells: "weth", amountIn: 2n * ETHER });
	assert.equal(bestRoundTrip(POOL, near, PLENTY), null);
	assert.equal(bestRoundTrip(near, POOL, PLENTY), null);
});

test("an empty pool gains nothing and breaks nothing", () => {
	const empty = { weth: 0n, token: 0n };
	assert.equal(bestRoundTrip(empty, empty, PLENTY), null);
	assert.equal(bestRoundTrip(POOL, empty, PLENTY), null);
	assert.equal(bestRoundTrip(empty, POOL, PLENTY), null);
});

test("no other size gains more than the best one", () => {
	for (const swapped of [4n, 10n, 77n, 400n]) {
		const dear = afterSwap(POOL, { sells: "weth", amountIn: swapped * ETHER });
		const best = bestRoundTrip(POOL, dear, PLENTY);
		assert.ok(best !== null);
		assert.equal(best.gain, gainOf(best.amountIn, POOL, dear));
		for (let permille = 1n; permille < 4_000n; permille += 7n) {
			const other = (best.amountIn * permille) / 1_000n;
			// Rounding may give or take a wei or two.
			assert.ok(gainOf(other, POOL, dear) <= best.gain + 2n, `${swapped} at ${permille}`);
		}
		// The other way round loses.
		assert.equal(bestRoundTrip(dear, POOL, PLENTY), null);
	}
});

test("capital that is too small is used up, and none gains nothing", () => {
	const dear = afterSwap(POOL, { sells: "weth", amountIn: 10n * ETHER });
	const best = bestRoundTrip(POOL, dear, ETHER);
	assert.deepEqual(best, { amountIn: ETHER, gain: gainOf(ETHER, POOL, dear) });
	assert.equal(bestRoundTrip(POOL, dear, 0n), null);
});
