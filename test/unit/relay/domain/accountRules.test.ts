// The rules about the sender's account as a table: both sides of every limit, each with its exact answer.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AccountState } from "../../../../relay/domain/chain.ts";
import type { RejectionCode } from "../../../../relay/domain/rejection.ts";
import { ACCOUNT_RULES, firstRefusal } from "../../../../relay/domain/transactionRules.ts";
import { signedTransaction, type TxOptions, testAccount } from "../../../support/txFactory.ts";

const ETHER = 10n ** 18n;
const GWEI = 10n ** 9n;
const ACCOUNT: AccountState = {
	...{ address: testAccount(0).address, block: 100, nonce: 10n, balance: 100n * ETHER, code: "none" },
};

interface Row {
	/** Of the transaction; nonce 10 unless said. */
	readonly tx?: TxOptions;
	readonly account?: Partial<AccountState>;
}
type Expected = null | readonly [RejectionCode, string];

const FUNDS = "insufficient funds for gas * price + value: balance";

/** What is asked; the row; what is refused. */
const TABLE: readonly (readonly [string, Row, Expected])[] = [
	["a nonce as next", { tx: { nonce: 10 } }, null],
	["a used nonce", { tx: { nonce: 9 } }, ["NONCE_TOO_LOW", "nonce too low: next nonce 10, tx nonce 9"]],
	["nonce 0 of an account at 0", { tx: { nonce: 0 }, account: { nonce: 0n } }, null],
	["64 nonces ahead", { tx: { nonce: 74 } }, null],
	[
		"65 nonces ahead",
		{ tx: { nonce: 75 } },
		["NONCE_TOO_HIGH", "nonce too high: next nonce 10, tx nonce 75"],
	],
	["64 ahead of nothing", { tx: { nonce: 64 }, account: { nonce: 0n } }, null],
	[
		"65 ahead of nothing",
		{ tx: { nonce: 65 }, account: { nonce: 0n } },
		["NONCE_TOO_HIGH", "nonce too high: next nonce 0, tx nonce 65"],
	],

	["a delegated account", { account: { code: "delegated" } }, null],
	[
		"a contract",
		{ account: { code: "contract" } },
		["SENDER_NOT_EOA", `sender not an eoa: address ${ACCOUNT.address} has code`],
	],

	// 100,000 · 20 gwei = 0.002 ether.
	["just enough", { account: { balance: 2n * 10n ** 15n } }, null],
	[
		"a wei too few",
		{ account: { balance: 2n * 10n ** 15n - 1n } },
		["INSUFFICIENT_FUNDS", `${FUNDS} 1999999999999999, tx cost 2000000000000000, overshot 1`],
	],
	["just enough for the value too", { tx: { value: 5 }, account: { balance: 2n * 10n ** 15n + 5n } }, null],
	[
		"a wei of the value too few",
		{ tx: { value: 5 }, account: { balance: 2n * 10n ** 15n + 4n } },
		["INSUFFICIENT_FUNDS", `${FUNDS} 2000000000000004, tx cost 2000000000000005, overshot 1`],
	],
	[
		"nothing at all",
		{ account: { balance: 0n } },
		["INSUFFICIENT_FUNDS", `${FUNDS} 0, tx cost 2000000000000000, overshot 2000000000000000`],
	],
	[
		"an empty account and no fee",
		{ tx: { maxFeePerGas: 0, maxPriorityFeePerGas: 0 }, account: { balance: 0n } },
		null,
	],
	// Two blobs of 131,072 gas at 3 gwei: 786,432 gwei more.
	["just enough for the blobs", { tx: { type: 3, blobs: 2 }, account: { balance: 2_786_432n * GWEI } }, null],
	[
		"a wei too few for the blobs",
		{ tx: { type: 3, blobs: 2 }, account: { balance: 2_786_432n * GWEI - 1n } },
		["INSUFFICIENT_FUNDS", `${FUNDS} 2786431999999999, tx cost 2786432000000000, overshot 1`],
	],
	["a fortune", { tx: { value: 2n ** 255n }, account: { balance: 2n ** 255n + ETHER } }, null],

	// A used nonce is told before an empty purse: wallets match on the first.
	[
		"a used nonce of an empty account",
		{ tx: { nonce: 9 }, account: { balance: 0n } },
		["NONCE_TOO_LOW", "nonce too low: next nonce 10, tx nonce 9"],
	],
];

for (const [name, row, expected] of TABLE) {
	test(`${name}: ${expected === null ? "taken" : expected[0]}`, () => {
		const tx = signedTransaction({ nonce: 10, ...row.tx });
		const refusal = firstRefusal(ACCOUNT_RULES, tx, { ...ACCOUNT, ...row.account });
		if (expected === null) assert.equal(refusal, null);
		else assert.deepEqual(refusal, { code: expected[0], message: expected[1] });
	});
}
