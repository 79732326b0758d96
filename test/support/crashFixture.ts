// Transactions for tests that kill a relay.

import type { DevChain } from "../devnet/devChain.ts";
import { accountOf, signedTransaction, type TxOptions } from "./txFactory.ts";

/** Hash and raw bytes as 0x hex. */
export interface Signed {
	readonly hash: string;
	readonly raw: string;
}

/** A transaction of the chain's account with this index. */
export function signedOn(chain: DevChain, account: number, options: TxOptions = {}): Signed {
	const key = chain.accounts[account]?.privateKey ?? "";
	return signed({ by: accountOf(key), ...options });
}

export function signed(options: TxOptions): Signed {
	const { hash, raw } = signedTransaction(options);
	return { hash, raw: `0x${raw.toString("hex")}` };
}

/** Whether these parameters of a builder's request contain `raw`. */
export function holds(params: readonly unknown[], raw: string): boolean {
	return JSON.stringify(params).includes(raw);
}
