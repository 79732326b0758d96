// Reads the swap that a pending transaction of the feed makes in one of the two watched pools, or null. Pure.

import { Interface } from "ethers";
import type { Swap } from "./pools.ts";

/** The part of the pair's interface that is used. */
export const PAIR: Interface = new Interface([
	"function weth() view returns (address)",
	"function token() view returns (address)",
	"function reserves() view returns (uint256 weth, uint256 token)",
	"function swap(address tokenIn, uint256 amountIn, uint256 atLeast) returns (uint256 amountOut)",
]);

/** Where swaps are looked for. Addresses, in any case. */
export interface Watched {
	/** Two pools of the same two tokens. */
	readonly pairs: readonly [string, string];
	readonly weth: string;
	readonly token: string;
}

/** A pending swap in one of the pools. */
export interface Target {
	readonly hash: string;
	/** The place in {@link Watched.pairs} of the pool that it is made in. */
	readonly pool: 0 | 1;
	readonly swap: Swap;
}

/** The swap that the transaction makes by itself, or null: another contract's, another method, nonsense. */
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
		// The selector is swap's, what stands behind it is not.
		return null;
	}
}

function same(one: string, other: string): boolean {
	return one.toLowerCase() === other.toLowerCase();
}
