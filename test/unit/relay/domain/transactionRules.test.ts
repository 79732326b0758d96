// The rules of admission as tables, about a transaction alone and about its sender's account: both sides of every limit,
// each with its exact answer.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AccountState, NextBlock } from "../../../../relay/domain/chain.ts";
import type { Rejection } from "../../../../relay/domain/rejection.ts";
import {
	ACCOUNT_RULES,
	feeProblem,
	firstRefusal,
	hopelessFeeCap,
	paysFor,
	STATIC_RULES,
} from "../../../../relay/domain/transactionRules.ts";
import type { DecodedTransaction } from "../../../../shared/ethereum/transaction.ts";
import {
	rawTransaction,
	signedTransaction,
	type TxOptions,
	testAccount,
} from "../../../support/txFactory.ts";

const GWEI = 10n ** 9n;
const ETHER = 10n ** 18n;
const ACCOUNT: AccountState = {
	...{ address: testAccount(0).address, block: 100, nonce: 10n, balance: 100n * ETHER, code: "none" },
};
const CHAIN = { chainId: 31_337n, maxTxGas: 16_777_216n, maxInitCodeBytes: 49_152 };
const OLD_CHAIN = { chainId: 31_337n, maxTxGas: null, maxInitCodeBytes: 49_152 };
const NEXT: NextBlock = {
	...{ number: 101, timestamp: 1_700_000_000, baseFee: GWEI, blobBaseFee: 1n, gasLimit: 30_000_000n },
};
const ADDRESS = `0x${"ab".repeat(20)}`;
const KEY = `0x${"cd".repeat(32)}`;
const MAX_NONCE = 2n ** 64n - 1n;

interface Row {
	readonly tx?: TxOptions;
	/** What the decoder would not let through, or what is dear to sign. */
	readonly fields?: Partial<DecodedTransaction>;
	readonly next?: Partial<NextBlock>;
	readonly oldChain?: boolean;
}
/** Null where it is taken, else `CODE: message`. */
type Expected = string | null;

const EIGHT_BLOBS = rawTransaction({ type: 3, blobs: 8 }).length;

const wrongChain = (have: bigint) => `WRONG_CHAIN: invalid chain id for signer: have ${have} want 31337`;
const oversized = (size: number, limit: number) =>
	`OVERSIZED: oversized data: transaction size ${size}, limit ${limit}`;
const tipAbove = (tip: number, cap: number) =>
	`TIP_ABOVE_FEE_CAP: max priority fee per gas higher than max fee per gas: maxPriorityFeePerGas: ${tip}, maxFeePerGas: ${cap}`;
const blockGas = (gas: number, block: number) =>
	`BLOCK_GAS_LIMIT: exceeds block gas limit: gas limit ${gas}, block gas limit ${block}`;
const intrinsic = (gas: number, needed: number) =>
	`INTRINSIC_GAS: intrinsic gas too low: gas ${gas}, minimum needed ${needed}`;
const floor = (gas: number, needed: number) =>
	`FLOOR_DATA_GAS: floor data gas cost not covered: gas ${gas}, minimum needed ${needed}`;
const tooLow = (next: number, nonce: number) =>
	`NONCE_TOO_LOW: nonce too low: next nonce ${next}, tx nonce ${nonce}`;
const tooHigh = (next: number, nonce: number) =>
	`NONCE_TOO_HIGH: nonce too high: next nonce ${next}, tx nonce ${nonce}`;
const funds = (balance: bigint, cost: bigint) =>
	`INSUFFICIENT_FUNDS: insufficient funds for gas * price + value: balance ${balance}, tx cost ${cost}, overshot ${cost - balance}`;

/** What is asked; the row; what is refused. */
const TABLE: readonly (readonly [string, Row, Expected])[] = [
	["the usual", {}, null],
	["type 0", { tx: { type: 0 } }, null],
	["type 1", { tx: { type: 1 } }, null],
	["type 3", { tx: { type: 3 } }, null],
	["type 4", { tx: { type: 4 } }, null],
	["a creation", { tx: { to: null, data: "0x00" } }, null],

	["another chain", { tx: { chainId: 1n } }, wrongChain(1n)],
	["another chain, legacy", { tx: { type: 0, chainId: 5n } }, wrongChain(5n)],
	["no chain", { fields: { chainId: 0n } }, wrongChain(0n)],
	["a chain id of 32 bytes", { fields: { chainId: 2n ** 256n - 1n } }, wrongChain(2n ** 256n - 1n)],
	[
		"another chain, and everything else wrong",
		{ tx: { chainId: 1n, gasLimit: 0, nonce: 0 } },
		wrongChain(1n),
	],

	["128 KiB", { fields: { size: 131_072 } }, null],
	["128 KiB and a byte", { fields: { size: 131_073 } }, oversized(131_073, 131_072)],
	["blobs, 1 MiB", { tx: { type: 3 }, fields: { size: 1_048_576 } }, null],
	[
		"blobs, 1 MiB and a byte",
		{ tx: { type: 3 }, fields: { size: 1_048_577 } },
		oversized(1_048_577, 1_048_576),
	],
	[
		"a delegation, 128 KiB and a byte",
		{ tx: { type: 4 }, fields: { size: 131_073 } },
		oversized(131_073, 131_072),
	],

	["init code of 49,152 bytes", { tx: { to: null, data: Buffer.alloc(49_152), gasLimit: 512_520 } }, null],
	[
		"init code of 49,153 bytes",
		{ tx: { to: null, data: Buffer.alloc(49_153), gasLimit: 5_000_000 } },
		"INITCODE_SIZE: max initcode size exceeded: code size 49153, limit 49152",
	],
	["call data of 49,153 bytes", { tx: { data: Buffer.alloc(49_153), gasLimit: 5_000_000 } }, null],

	["a tip as high as the cap", { tx: { maxFeePerGas: 5, maxPriorityFeePerGas: 5 } }, null],
	["a tip above the cap", { tx: { maxFeePerGas: 5, maxPriorityFeePerGas: 6 } }, tipAbove(6, 5)],
	["no fee at all", { tx: { maxFeePerGas: 0, maxPriorityFeePerGas: 0 } }, null],
	["a tip and no cap", { tx: { maxFeePerGas: 0, maxPriorityFeePerGas: 1 } }, tipAbove(1, 0)],
	["a cap under the next base fee", { tx: { maxFeePerGas: 1, maxPriorityFeePerGas: 0 } }, null],
	["a gas price under the next base fee", { tx: { type: 0, gasPrice: 1 } }, null],
	[
		"a blob fee cap under the blob base fee",
		{ tx: { type: 3, maxFeePerBlobGas: 1 }, next: { blobBaseFee: GWEI } },
		null,
	],

	["six blobs", { tx: { type: 3, blobs: 6 } }, null],
	["six blobs, older sidecar", { tx: { type: 3, blobs: 6, sidecarVersion: 0 } }, null],
	["seven blobs", { tx: { type: 3, blobs: 7 } }, "BLOBS: too many blobs in transaction: have 7, permitted 6"],
	["eight blobs", { tx: { type: 3, blobs: 8 } }, oversized(EIGHT_BLOBS, 1048576)],
	[
		"no blobs",
		{ tx: { type: 3 }, fields: { blobVersionedHashes: [] } },
		"BLOBS: blobless blob transaction: expected at least one blob",
	],

	[
		"no authorizations",
		{ tx: { type: 4, authorizations: [] } },
		"EMPTY_AUTH_LIST: EIP-7702 transaction with empty auth list",
	],

	[
		"gas of the whole block",
		{
			tx: { gasLimit: 16_777_216, maxFeePerGas: 1, maxPriorityFeePerGas: 1 },
			next: { gasLimit: 16_777_216n },
		},
		null,
	],
	[
		"gas over the block",
		{ tx: { gasLimit: 16_777_216 }, next: { gasLimit: 16_777_215n } },
		blockGas(16_777_216, 16_777_215),
	],
	["EIP-7825, at the cap", { tx: { gasLimit: 16_777_216 } }, null],
	[
		"EIP-7825, over the cap",
		{ tx: { gasLimit: 16_777_217 } },
		"TX_GAS_LIMIT: transaction gas limit too high (cap: 16777216, tx: 16777217)",
	],
	["over the cap, where the chain has none", { tx: { gasLimit: 16_777_217 }, oldChain: true }, null],
	["the whole block, where the chain has no cap", { tx: { gasLimit: 30_000_000 }, oldChain: true }, null],
	[
		"a gas over the block, where the chain has no cap",
		{ tx: { gasLimit: 30_000_001 }, oldChain: true },
		blockGas(30_000_001, 30_000_000),
	],
	[
		"a gas limit of 8 bytes",
		{ fields: { gasLimit: MAX_NONCE } },
		`TX_GAS_LIMIT: transaction gas limit too high (cap: 16777216, tx: ${MAX_NONCE})`,
	],

	["21,000 gas", { tx: { gasLimit: 21_000 } }, null],
	["20,999 gas", { tx: { gasLimit: 20_999 } }, intrinsic(20_999, 21_000)],
	["no gas", { tx: { gasLimit: 0 } }, intrinsic(0, 21_000)],
	["a creation, 53,000 gas", { tx: { to: null, gasLimit: 53_000 } }, null],
	["a creation, 52,999 gas", { tx: { to: null, gasLimit: 52_999 } }, intrinsic(52_999, 53_000)],
	// 53,000 and 33 · 16 for the bytes and 2 · 2 for two words.
	["a creation of 33 bytes", { tx: { to: null, data: "01".repeat(33), gasLimit: 53_532 } }, null],
	[
		"a creation of 33 bytes, a gas less",
		{ tx: { to: null, data: "01".repeat(33), gasLimit: 53_531 } },
		intrinsic(53_531, 53_532),
	],
	// 21,000 and 2,400 for the address and twice 1,900 for the keys.
	[
		"an access list",
		{ tx: { accessList: [{ address: ADDRESS, storageKeys: [KEY, KEY] }], gasLimit: 27_200 } },
		null,
	],
	[
		"an access list, a gas less",
		{ tx: { accessList: [{ address: ADDRESS, storageKeys: [KEY, KEY] }], gasLimit: 27_199 } },
		intrinsic(27_199, 27_200),
	],
	["an authorization", { tx: { type: 4, gasLimit: 46_000 } }, null],
	["an authorization, a gas less", { tx: { type: 4, gasLimit: 45_999 } }, intrinsic(45_999, 46_000)],
	// EIP-7623: 21,000 and 10 a token, a zero byte being one and another four; what it costs otherwise is less.
	["a byte, at the floor", { tx: { data: "0x01", gasLimit: 21_040 } }, null],
	["a byte, under the floor", { tx: { data: "0x01", gasLimit: 21_039 } }, floor(21_039, 21_040)],
	["a byte, at its intrinsic gas", { tx: { data: "0x01", gasLimit: 21_016 } }, floor(21_016, 21_040)],
	["a byte, under its intrinsic gas", { tx: { data: "0x01", gasLimit: 21_015 } }, intrinsic(21_015, 21_016)],
	["a zero byte, at the floor", { tx: { data: "0x00", gasLimit: 21_010 } }, null],
	["a zero byte, under the floor", { tx: { data: "0x00", gasLimit: 21_009 } }, floor(21_009, 21_010)],

	["the last nonce but one", { tx: { nonce: MAX_NONCE - 1n } }, null],
	["the last nonce", { tx: { nonce: MAX_NONCE } }, `NONCE_MAX: nonce has max value: ${MAX_NONCE}`],
];

for (const [name, row, expected] of TABLE) {
	test(`${name}: ${expected ?? "taken"}`, () => assert.equal(told(judge(row)), expected));
}

/** A refusal as the tables tell it; it has nothing else. */
function told(refusal: Rejection | null): Expected {
	if (refusal === null) return null;
	const { code, message, ...rest } = refusal;
	assert.deepEqual(rest, {});
	return `${code}: ${message}`;
}

function judge(row: Row): Rejection | null {
	const tx = { ...signedTransaction(row.tx), ...row.fields };
	const chain = row.oldChain === true ? OLD_CHAIN : CHAIN;
	return firstRefusal(STATIC_RULES, tx, chain, { ...NEXT, ...row.next });
}

interface AccountRow {
	readonly tx?: TxOptions;
	readonly account?: Partial<AccountState>;
}

/** What is asked; the transaction, nonce 10 unless said; the account; what is refused. */
const OF_ACCOUNTS: readonly (readonly [string, AccountRow, Expected])[] = [
	["a nonce as next", { tx: { nonce: 10 } }, null],
	["a used nonce", { tx: { nonce: 9 } }, tooLow(10, 9)],
	["nonce 0 of an account at 0", { tx: { nonce: 0 }, account: { nonce: 0n } }, null],
	["64 nonces ahead", { tx: { nonce: 74 } }, null],
	["65 nonces ahead", { tx: { nonce: 75 } }, tooHigh(10, 75)],
	["64 ahead of nothing", { tx: { nonce: 64 }, account: { nonce: 0n } }, null],
	["65 ahead of nothing", { tx: { nonce: 65 }, account: { nonce: 0n } }, tooHigh(0, 65)],

	["a delegated account", { account: { code: "delegated" } }, null],
	[
		"a contract",
		{ account: { code: "contract" } },
		`SENDER_NOT_EOA: sender not an eoa: address ${ACCOUNT.address} has code`,
	],

	// 100,000 · 20 gwei = 0.002 ether.
	["just enough", { account: { balance: 2n * 10n ** 15n } }, null],
	[
		"a wei too few",
		{ account: { balance: 2n * 10n ** 15n - 1n } },
		funds(1_999_999_999_999_999n, 2_000_000_000_000_000n),
	],
	["just enough for the value too", { tx: { value: 5 }, account: { balance: 2n * 10n ** 15n + 5n } }, null],
	[
		"a wei of the value too few",
		{ tx: { value: 5 }, account: { balance: 2n * 10n ** 15n + 4n } },
		funds(2_000_000_000_000_004n, 2_000_000_000_000_005n),
	],
	["nothing at all", { account: { balance: 0n } }, funds(0n, 2_000_000_000_000_000n)],
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
		funds(2_786_431_999_999_999n, 2_786_432_000_000_000n),
	],
	["a fortune", { tx: { value: 2n ** 255n }, account: { balance: 2n ** 255n + ETHER } }, null],

	// A used nonce is told before an empty purse: wallets match on the first.
	["a used nonce of an empty account", { tx: { nonce: 9 }, account: { balance: 0n } }, tooLow(10, 9)],
];

for (const [name, row, expected] of OF_ACCOUNTS) {
	test(`${name}: ${expected ?? "taken"}`, () => {
		const tx = signedTransaction({ nonce: 10, ...row.tx });
		assert.equal(told(firstRefusal(ACCOUNT_RULES, tx, { ...ACCOUNT, ...row.account })), expected);
	});
}

test("no message holds a byte of the transaction", () => {
	const tx: TxOptions = { data: `0x${"c0ffee".repeat(20)}`, gasLimit: 21_000 };
	for (const row of [{ tx }, { tx: { ...tx, gasLimit: 22_000 } }, { tx: { ...tx, chainId: 1n } }]) {
		const refusal = judge(row);
		assert.ok(refusal !== null);
		assert.ok(!refusal.message.includes("c0ffee"));
	}
});

/** Base fee; life in blocks; fee cap; whether it is refused. */
const HOPELESS: readonly (readonly [bigint, number, bigint, boolean])[] = [
	[8n ** 25n, 25, 7n ** 25n, false],
	[8n ** 25n, 25, 7n ** 25n - 1n, true],
	[GWEI, 1, 875_000_000n, false],
	[GWEI, 1, 874_999_999n, true],
	[GWEI, 25, 35_497_791n, false],
	[GWEI, 25, 35_497_790n, true],
	[GWEI, 1_000, 1n, false],
	[GWEI, 1_000, 0n, true],
	[0n, 25, 0n, false],
	[7n, 25, 1n, false],
];

for (const [baseFee, ttlBlocks, maxFeePerGas, isRefused] of HOPELESS) {
	test(`a fee cap of ${maxFeePerGas} at a base fee of ${baseFee}, ${ttlBlocks} blocks: ${isRefused ? "hopeless" : "taken"}`, () => {
		const tx = signedTransaction({ maxFeePerGas, maxPriorityFeePerGas: 0 });
		const refusal = hopelessFeeCap(tx, { baseFee }, ttlBlocks);
		assert.equal(refusal?.code, isRefused ? "FEE_CAP_TOO_LOW" : undefined);
	});
}

test("a hopeless fee cap is told in go-ethereum's words, with what was expected", () => {
	const tx = signedTransaction({ maxFeePerGas: 35_497_790, maxPriorityFeePerGas: 0 });
	assert.deepEqual(hopelessFeeCap(tx, { baseFee: GWEI }, 25), {
		code: "FEE_CAP_TOO_LOW",
		message: `max fee per gas less than block base fee: address ${tx.from}, maxFeePerGas: 35497790, baseFee: 1000000000, expected at least 35497791`,
	});
});

test("what keeps a transaction out of the block for its fees", () => {
	const block = { baseFee: 100n, blobBaseFee: 10n };
	for (const [maxFeePerGas, maxFeePerBlobGas, code] of [
		[100n, null, undefined],
		[99n, null, "FEE_CAP_TOO_LOW"],
		[100n, 10n, undefined],
		[100n, 9n, "BLOB_FEE_CAP_TOO_LOW"],
		[99n, 9n, "FEE_CAP_TOO_LOW"],
	] as const) {
		const fees = { maxFeePerGas, maxFeePerBlobGas };
		assert.equal(feeProblem(fees, block)?.code, code);
		assert.equal(paysFor(fees, block), code === undefined);
	}
});
