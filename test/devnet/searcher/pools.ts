// Finds the swap of a pending transaction in one of the two watched pools, and computes
// constant-product pools with a fee of
// 0.3 %, with the contract's rounding. Pure functions.

import { Interface } from "ethers";

/** The reserves of a pool, in the tokens' smallest units. */
export interface Reserves {
	readonly weth: bigint;
	readonly token: bigint;
}

/** A swap of WETH for the token, or of the token for WETH. */
interface Swap {
	readonly sells: "weth" | "token";
	readonly amountIn: bigint;
}

/** Buys the token with WETH in one pool, and sells it in the other. */
export interface RoundTrip {
	/** WETH that it starts with. */
	readonly amountIn: bigint;
	/** WETH that it gains; always above zero. */
	readonly gain: bigint;
}

/** The swapped part of 1000 units paid in; the rest is the fee. */
const SWAPPED = 997n;
const WHOLE = 1000n;

/** The amount that the pool pays out for `amountIn`. */
export function amountOut(amountIn: bigint, reserveIn: bigint, reserveOut: bigint): bigint {
	const withoutFee = amountIn * SWAPPED;
	return (withoutFee * reserveOut) / (reserveIn * WHOLE + withoutFee);
}

/** The pool's reserves after a swap. */
export function afterSwap(pool: Reserves, { sells, amountIn }: Swap): Reserves {
	return sells === "weth"
		? { weth: pool.weth + amountIn, token: pool.token - amountOut(amountIn, pool.weth, pool.token) }
		: { weth: pool.weth - amountOut(amountIn, pool.token, pool.weth), token: pool.token + amountIn };
}

/**
 * WETH gained by buying the token for `amountIn` at `buyAt` and selling all of it at `sellAt`; may
 * be negative.
 */
export function gainOf(amountIn: bigint, buyAt: Reserves, sellAt: Reserves): bigint {
	const bought = amountOut(amountIn, buyAt.weth, buyAt.token);
	return amountOut(bought, sellAt.token, sellAt.weth) - amountIn;
}

/**
 * The round trip that gains most with at most `capital` WETH, or null if none gains anything.
 *
 * Both swaps together give A·a / (B + C·a) WETH for `a`, so the gain is greatest at a = (√(A·B) −
 * B) / C.
 */
export function bestRoundTrip(buyAt: Reserves, sellAt: Reserves, capital: bigint): RoundTrip | null {
	const A = SWAPPED * SWAPPED * buyAt.token * sellAt.weth;
	const B = WHOLE * WHOLE * buyAt.weth * sellAt.token;
	const C = SWAPPED * WHOLE * sellAt.token + SWAPPED * SWAPPED * buyAt.token;
	if (A <= B || C === 0n) return null;
	const best = (squareRoot(A * B) - B) / C;
	const amountIn = best < capital ? best : capital;
	const gain = gainOf(amountIn, buyAt, sellAt);
	return gain > 0n ? { amountIn, gain } : null;
}

/** The square root, rounded down, by Newton's method from above. */
function squareRoot(value: bigint): bigint {
	if (value < 2n) return value;
	let root = 1n << BigInt((value.toString(2).length + 1) >> 1);
	for (;;) {
		const next = (root + value / root) >> 1n;
		if (next >= root) return root;
		root = next;
	}
}

/** The part of the pair's interface that is used. */
export const PAIR: Interface = new Interface([
	"function weth() view returns (address)",
	"function token() view returns (address)",
	"function reserves() view returns (uint256 weth, uint256 token)",
	"function swap(address tokenIn, uint256 amountIn, uint256 atLeast) returns (uint256 amountOut)",
]);

/** The watched pools. Addresses are in any case. */
export interface Watched {
	/** Two pools of the same two tokens. */
	readonly pairs: readonly [string, string];
	readonly weth: string;
	readonly token: string;
}

/** A pending swap in one of the pools. */
export interface Target {
	readonly hash: string;
	/** The index of its pool in {@link Watched.pairs}. */
	readonly pool: 0 | 1;
	readonly swap: Swap;
}

/** The swap that the transaction calls directly, or null for any other transaction. */
export function readTarget(transaction: unknown, { pairs, weth, token }: Watched): Target | null {
	if (typeof transaction !== "object" || transaction === null) return null;
	const { hash, to, data }: { hash?: unknown; to?: unknown; data?: unknown } = transaction;
	if (typeof hash !== "string" || typeof to !== "string" || typeof data !== "string") return null;
	const pool = pairs.findIndex((pair) => same(pair, to));
	if (pool !== 0 && pool !== 1) return null;
	const call = parseSwap(data);
	if (call === null) return null;
	const sells = same(call.tokenIn, weth) ? "weth" : same(call.tokenIn, token) ? "token" : null;
	return sells === null ? null : { hash, pool, swap: { sells, amountIn: call.amountIn } };
}

function parseSwap(data: string): { readonly tokenIn: string; readonly amountIn: bigint } | null {
	try {
		const call = PAIR.parseTransaction({ data });
		if (call?.name !== "swap") return null;
		return { tokenIn: String(call.args.tokenIn), amountIn: BigInt(call.args.amountIn) };
	} catch {
		// The selector is that of swap, but the arguments are invalid.
		return null;
	}
}

function same(one: string, other: string): boolean {
	return one.toLowerCase() === other.toLowerCase();
}
