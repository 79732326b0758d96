// Transactions and accounts for tests that kill a relay.

import assert from "node:assert/strict";
import type { DevChain } from "../devnet/devChain.ts";
import { accountOf, signedTransaction, type TestAccount, type TxOptions, testAccount } from "./txFactory.ts";

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

/** Whether a builder was given `raw` in these parameters. */
export function holds(params: readonly unknown[], raw: string): boolean {
	return JSON.stringify(params).includes(raw);
}

/** `count` accounts from number `first` on, with ten ether each. */
export async function fundedAccounts(
	chain: DevChain,
	first: number,
	count: number,
): Promise<readonly TestAccount[]> {
	const accounts = Array.from({ length: count }, (_, i) => testAccount(first + i));
	const ether = `0x${(10n ** 19n).toString(16)}`;
	const funded = await chain.batch(
		accounts.map(({ address }) => ({ method: "anvil_setBalance", params: [address, ether] })),
	);
	assert.ok(
		funded.every(({ ok }) => ok),
		"the accounts have funds",
	);
	return accounts;
}
