// Sets the balances, nonces and code that rows of bad input need. It must run before the relay has heard of the
// accounts, since it remembers them until the next head.

import type { DevChain } from "../../../devnet/devChain.ts";
import type { TestAccount } from "../../../support/txFactory.ts";

/** How an account must stand. */
export interface Standing {
	/** Wei; 1,000 ether unless said. */
	readonly balance?: bigint;
	readonly nonce?: number;
	readonly code?: string;
}

const ETHER = 10n ** 18n;

/** Sets every account as asked. Throws when the chain refuses one. */
export async function prepareAccounts(
	chain: DevChain,
	accounts: readonly { readonly account: TestAccount; readonly standing: Standing }[],
): Promise<void> {
	const calls = accounts.flatMap(
		({ account: { address }, standing: { balance = 1_000n * ETHER, nonce, code } }) => [
			{ method: "anvil_setBalance", params: [address, quantity(balance)] },
			...(nonce === undefined ? [] : [{ method: "anvil_setNonce", params: [address, quantity(nonce)] }]),
			...(code === undefined ? [] : [{ method: "anvil_setCode", params: [address, code] }]),
		],
	);
	for (const [i, outcome] of (await chain.batch(calls)).entries()) {
		if (!outcome.ok) throw new Error(`${calls[i]?.method}: ${outcome.message}`);
	}
}

function quantity(value: bigint | number): string {
	return `0x${value.toString(16)}`;
}
