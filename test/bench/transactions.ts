// What the benchmarks send: accounts, the same in each run, and signed transfers with calldata, 200 bytes each.

import { rawTransaction, type TestAccount, testAccount } from "../support/txFactory.ts";

/** Makes the whole transaction 200 bytes long. */
const CALLDATA = Buffer.alloc(86, 7);

/** `count` accounts. */
export function benchAccounts(count: number): readonly TestAccount[] {
	return Array.from({ length: count }, (_, i) => testAccount(i));
}

/** A signed transfer with calldata as 0x hex: 200 bytes. */
export function benchTransaction(by: TestAccount | undefined, nonce: number): string {
	if (by === undefined) throw new Error("no such account");
	const raw = rawTransaction({ by, nonce, gasLimit: 30_000, value: 1, data: CALLDATA });
	return `0x${raw.toString("hex")}`;
}
