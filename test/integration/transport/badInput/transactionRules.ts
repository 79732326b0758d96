// Well-formed transactions that this chain or account may not send: chain ids, nonces, funds and fees, with their
// exact answers, and what is just within each rule.

import type { TxOptions } from "../../../support/txFactory.ts";
import { GWEI, type Rule, refused, taken } from "./rules.ts";

const MAX_NONCE = 2n ** 64n - 1n;
const TYPES = [0, 1, 2, 3, 4] as const;
const TWO_FEES = [2, 3, 4] as const;

/** Fees for the next block; not for blobs, for which a dev chain loads seconds of tables. */
const GOING_OUT: TxOptions = { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI };

const CHAIN: readonly Rule[] = [
	...TYPES.map((type) =>
		refused(
			"WRONG_CHAIN",
			`type ${type}: another chain`,
			{ type, chainId: 1n },
			"invalid chain id for signer: have 1 want 31337",
		),
	),
	...([0n, 31_338n, 2n ** 64n - 1n] as const).map((chainId) =>
		refused(
			"WRONG_CHAIN",
			`chain ${chainId}`,
			{ chainId },
			`invalid chain id for signer: have ${chainId} want 31337`,
		),
	),
	refused(
		"WRONG_CHAIN",
		"legacy: chain 0",
		{ type: 0, chainId: 0n },
		"invalid chain id for signer: have 0 want 31337",
	),
	...([0, 1, 2, 4] as const).map((type) => taken(`type ${type}`, { type, ...GOING_OUT })),
	taken("type 3", { type: 3 }),
];

const NONCES: readonly Rule[] = [
	...TYPES.map((type) =>
		refused(
			"NONCE_TOO_LOW",
			`type ${type}: a nonce that is used`,
			{ type, nonce: 4 },
			"nonce too low: next nonce 5, tx nonce 4",
			{ nonce: 5 },
		),
	),
	refused("NONCE_TOO_LOW", "nonce 0 of 5", { nonce: 0 }, "nonce too low: next nonce 5, tx nonce 0", {
		nonce: 5,
	}),
	refused("NONCE_TOO_HIGH", "65 ahead", { nonce: 65 }, "nonce too high: next nonce 0, tx nonce 65"),
	refused("NONCE_TOO_HIGH", "65 ahead of 5", { nonce: 70 }, "nonce too high: next nonce 5, tx nonce 70", {
		nonce: 5,
	}),
	refused(
		"NONCE_TOO_HIGH",
		"2^64-2",
		{ nonce: MAX_NONCE - 1n },
		`nonce too high: next nonce 0, tx nonce ${MAX_NONCE - 1n}`,
	),
	...TYPES.map((type) =>
		refused(
			"NONCE_MAX",
			`type ${type}: nonce 2^64-1`,
			{ type, nonce: MAX_NONCE },
			`nonce has max value: ${MAX_NONCE}`,
		),
	),
	taken("64 ahead", { nonce: 64 }),
	taken("64 ahead of 5", { nonce: 69 }, { nonce: 5 }),
	taken("the next nonce", { nonce: 5 }, { nonce: 5 }),
];

/** Under the base fee, which may fall to it. */
const LOW = GWEI / 10n;
/** 21,000 gas, and 7 wei. */
const PLAIN: TxOptions = { gasLimit: 21_000, maxFeePerGas: LOW, maxPriorityFeePerGas: 0, value: 7 };
const PLAIN_COST = 21_000n * LOW + 7n;
/** A blob at 3 gwei beside it. */
const BLOB_COST = PLAIN_COST + 131_072n * 3n * GWEI;
const BLOB: TxOptions = { ...PLAIN, type: 3, maxFeePerBlobGas: 3n * GWEI };

function short(name: string, tx: TxOptions, cost: bigint, balance: bigint): Rule {
	const figures = `balance ${balance}, tx cost ${cost}, overshot ${cost - balance}`;
	return refused("INSUFFICIENT_FUNDS", name, tx, `insufficient funds for gas * price + value: ${figures}`, {
		balance,
	});
}

const FUNDS: readonly Rule[] = [
	short("one wei short", PLAIN, PLAIN_COST, PLAIN_COST - 1n),
	short("nothing at all", PLAIN, PLAIN_COST, 0n),
	short("legacy, one wei short", { ...PLAIN, type: 0 }, PLAIN_COST, PLAIN_COST - 1n),
	short("access list type, one wei short", { ...PLAIN, type: 1 }, PLAIN_COST, PLAIN_COST - 1n),
	short("blobs count, one wei short", BLOB, BLOB_COST, BLOB_COST - 1n),
	short(
		"the priority fee does not, one wei short",
		{ ...PLAIN, maxPriorityFeePerGas: LOW },
		PLAIN_COST,
		PLAIN_COST - 1n,
	),
	short("a value of 2^256-1", { ...PLAIN, value: 2n ** 256n - 1n }, 2n ** 256n - 8n + PLAIN_COST, 10n ** 18n),
	short(
		"a fee of 2^256-1",
		{ ...PLAIN, maxFeePerGas: 2n ** 256n - 1n },
		21_000n * (2n ** 256n - 1n) + 7n,
		10n ** 18n,
	),
	taken("exactly enough", PLAIN, { balance: PLAIN_COST }),
	taken("exactly enough with a blob", BLOB, { balance: BLOB_COST }),
];

const FEES: readonly Rule[] = [
	...TWO_FEES.map((type) =>
		refused(
			"TIP_ABOVE_FEE_CAP",
			`type ${type}: a priority fee one wei over the fee cap`,
			{ type, maxFeePerGas: GWEI, maxPriorityFeePerGas: GWEI + 1n },
			`max priority fee per gas higher than max fee per gas: maxPriorityFeePerGas: ${GWEI + 1n}, maxFeePerGas: ${GWEI}`,
		),
	),
	taken("a priority fee of the fee cap", { maxFeePerGas: GWEI, maxPriorityFeePerGas: GWEI }),
	taken("a fee cap under the base fee", { maxFeePerGas: LOW, maxPriorityFeePerGas: LOW }),
	taken("no priority fee", { maxFeePerGas: LOW, maxPriorityFeePerGas: 0 }),
	taken("a gas price under the base fee", { type: 0, gasPrice: LOW }),
	taken("no blob fee", { type: 3, maxFeePerBlobGas: 0 }),
];

export const ACCOUNT_RULES: readonly Rule[] = [...CHAIN, ...NONCES, ...FUNDS, ...FEES];
