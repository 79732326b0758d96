// Tests the rules of admission as tables: what is refused first, and with what text.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AccountState, NextBlock } from "../../../../relay/domain/chain.ts";
import type { Rejection } from "../../../../relay/domain/rejection.ts";
import {
	ACCOUNT_RULES,
	blockProblem,
	firstRejection,
	hopelessFeeCap,
	STATIC_RULES,
} from "../../../../relay/domain/transactionRules.ts";
import type { DecodedTransaction } from "../../../../shared/ethereum/transaction.ts";
import { OSAKA, PRAGUE } from "../../../support/forks.ts";
import { signedTransaction, type TxOptions, testAccount } from "../../../support/txFactory.ts";

const GWEI = 10n ** 9n;
const ACCOUNT: AccountState = {
	...{ address: testAccount(0).address, block: 100, nonce: 10n, balance: 10n ** 20n, code: "none" },
};
const CHAIN = { chainId: 31_337n };
const NEXT: NextBlock = {
	...{ number: 101, timestamp: 1_700_000_000, baseFee: GWEI, blobBaseFee: 1n, gasLimit: 30_000_000n },
	fork: OSAKA,
};

interface Row {
	readonly tx?: TxOptions;
	/** Fields that the decoder would refuse, or that are expensive to sign. */
	readonly fields?: Partial<DecodedTransaction>;
	readonly next?: Partial<NextBlock>;
}
/** Null if it is accepted, else `CODE: message`. */
type Expected = string | null;

/**
 * The case, the row, and the refusal. Most boundaries are tested from outside: see
 * test/integration/transport/badInput.
 */
const TABLE: readonly (readonly [string, Row, Expected])[] = [
	["the usual", {}, null],
	["a fee cap under the next base fee", { tx: { maxFeePerGas: 1, maxPriorityFeePerGas: 0 } }, null],
	[
		"another chain, and everything else wrong",
		{ tx: { chainId: 1n, gasLimit: 0, nonce: 0 } },
		"WRONG_CHAIN: invalid chain id for signer: have 1 want 31337",
	],
	["blobs, 1 MiB", { tx: { type: 3 }, fields: { size: 1_048_576 } }, null],
	[
		"a delegation, 128 KiB and a byte",
		{ tx: { type: 4 }, fields: { size: 131_073 } },
		"OVERSIZED: oversized data: transaction size 131073, limit 131072",
	],
	["six blobs", { tx: { type: 3, blobs: 6 } }, null],
	["one proof a blob, which is changed", { tx: { type: 3, sidecarVersion: 0 } }, null],
	["one proof a blob before Osaka", { tx: { type: 3, sidecarVersion: 0 }, next: { fork: PRAGUE } }, null],
	[
		"no blobs",
		{ tx: { type: 3 }, fields: { blobVersionedHashes: [] } },
		"BLOBS: blobless blob transaction: expected at least one blob",
	],
	["gas of the whole block", { tx: { gasLimit: 16_777_216 }, next: { gasLimit: 16_777_216n } }, null],
	[
		"gas over the block",
		{ tx: { gasLimit: 16_777_216 }, next: { gasLimit: 16_777_215n } },
		"BLOCK_GAS_LIMIT: exceeds block gas limit: gas limit 16777216, block gas limit 16777215",
	],
	[
		"EIP-7825, over the cap",
		{ tx: { gasLimit: 16_777_217 } },
		"TX_GAS_LIMIT: transaction gas limit too high (cap: 16777216, tx: 16777217)",
	],
	["over the cap, where the chain has none", { tx: { gasLimit: 16_777_217 }, next: { fork: PRAGUE } }, null],
	// Too little for both is reported as intrinsic gas.
	[
		"a byte, under its intrinsic gas",
		{ tx: { data: "0x01", gasLimit: 21_015 } },
		"INTRINSIC_GAS: intrinsic gas too low: gas 21015, minimum needed 21016",
	],
	[
		"a byte, under the floor",
		{ tx: { data: "0x01", gasLimit: 21_039 } },
		"FLOOR_DATA_GAS: insufficient gas for floor data gas cost: gas 21039, minimum needed 21040",
	],
	["a byte, at the floor", { tx: { data: "0x01", gasLimit: 21_040 } }, null],
];

test("a transaction is refused by the first rule that it breaks, and only then", () => {
	for (const [name, row, expected] of TABLE) assert.equal(textOf(judge(row)), expected, name);
});

/** A refusal as text; it must have no other fields. */
function textOf(refusal: Rejection | null): Expected {
	if (refusal === null) return null;
	const { code, message, ...rest } = refusal;
	assert.deepEqual(rest, {});
	return `${code}: ${message}`;
}

function judge(row: Row): Rejection | null {
	const tx = { ...signedTransaction(row.tx), ...row.fields };
	return firstRejection(STATIC_RULES, tx, CHAIN, { ...NEXT, ...row.next });
}

test("a used nonce is reported before missing funds, since wallets match on the first", () => {
	const broke = { ...ACCOUNT, balance: 0n };
	const of = (nonce: number) => firstRejection(ACCOUNT_RULES, signedTransaction({ nonce }), broke)?.code;
	assert.deepEqual([9, 10, 74, 75].map(of), [
		...["NONCE_TOO_LOW", "INSUFFICIENT_FUNDS", "INSUFFICIENT_FUNDS", "NONCE_TOO_HIGH"],
	]);
	const contract = { ...broke, code: "contract" as const };
	assert.equal(
		firstRejection(ACCOUNT_RULES, signedTransaction({ nonce: 9 }), contract)?.code,
		"SENDER_NOT_EOA",
	);
});

/** Base fee; life in blocks; fee cap; whether it is refused. */
const HOPELESS: readonly (readonly [bigint, number, bigint, boolean])[] = [
	[8n ** 25n, 25, 7n ** 25n, false],
	[8n ** 25n, 25, 7n ** 25n - 1n, true],
	[GWEI, 25, 35_497_791n, false],
	[GWEI, 25, 35_497_790n, true],
	[7n, 25, 1n, false],
];

test("a fee cap is refused if the base fee can't fall to it within the lifetime", () => {
	for (const [baseFee, ttlBlocks, maxFeePerGas, isRefused] of HOPELESS) {
		const tx = signedTransaction({ maxFeePerGas, maxPriorityFeePerGas: 0 });
		const refusal = hopelessFeeCap(tx, { baseFee }, ttlBlocks);
		assert.equal(refusal !== null, isRefused, `${maxFeePerGas} at ${baseFee}, ${ttlBlocks} blocks`);
	}
});

test("a fork's rules read the authorizations of a large transaction once", () => {
	const tx = signedTransaction({ type: 4, data: Buffer.alloc(1_100, 1), gasLimit: 200_000 });
	let reads = 0;
	const counted = Object.defineProperty({ ...tx }, "authorizationList", {
		get() {
			reads += 1;
			return tx.authorizationList;
		},
	});
	assert.equal(blockProblem(counted, NEXT), null);
	const first = reads;
	assert.ok(first > 0);
	for (let i = 0; i < 3; i += 1) assert.equal(blockProblem(counted, { ...NEXT, baseFee: 1n }), null);
	assert.equal(reads, first);
	assert.equal(blockProblem(counted, { ...NEXT, fork: PRAGUE }), null);
	assert.ok(reads > first, "another fork has other rules");
});
