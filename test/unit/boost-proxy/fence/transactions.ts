// The transactions of the only sender, all with one nonce.

import { signedTransaction, testAccount } from "../../../support/txFactory.ts";

const OWNER = testAccount(0);
const GWEI = 1_000_000_000n;
/** Its fees would replace the self-transfer. */
export const TX = signedTransaction({
	...{ nonce: 0n, by: OWNER, maxFeePerGas: 200n * GWEI, maxPriorityFeePerGas: 20n * GWEI },
});
export const REPLACEMENT = signedTransaction({
	...{ nonce: 0n, by: OWNER, maxFeePerGas: 400n * GWEI, maxPriorityFeePerGas: 40n * GWEI },
});
export const TO_SELF = signedTransaction({ nonce: 0n, to: OWNER.address, value: 0n, by: OWNER });
export const NAMES = new Map([
	[TX.hash, "transaction"],
	[REPLACEMENT.hash, "replacement"],
	[TO_SELF.hash, "self-transfer"],
]);
