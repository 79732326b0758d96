// Transactions with too much or too little gas, blobs, authorizations or bytes, or from a sender with code, with
// their exact answers, and what is just within each rule.

import type { TransactionType } from "../../../../shared/ethereum/rlp.ts";
import { type TxOptions, testAccount } from "../../../support/txFactory.ts";
import { type Rule, refused, taken } from "./rules.ts";

const TYPES = [0, 1, 2, 3, 4] as const;
const MAX_GAS = 2n ** 64n - 1n;
/** The chain's limit for one transaction (EIP-7825), and the length of init code (EIP-3860). */
const GAS_CAP = 2 ** 24;
const INITCODE = 49_152;

/** `gas` is one too little, `gas` + 1 is enough. */
function gasBoundary(reason: string, words: string, name: string, tx: TxOptions, gas: number): Rule[] {
	const message = `${words}: gas ${gas}, minimum needed ${gas + 1}`;
	return [
		refused(reason, name, { ...tx, gasLimit: gas }, message),
		taken(`${name}, enough`, { ...tx, gasLimit: gas + 1 }),
	];
}

const intrinsic = (name: string, tx: TxOptions, gas: number): Rule[] =>
	gasBoundary("INTRINSIC_GAS", "intrinsic gas too low", name, tx, gas);
const floor = (name: string, tx: TxOptions, gas: number): Rule[] =>
	gasBoundary("FLOOR_DATA_GAS", "floor data gas cost not covered", name, tx, gas);

const KEY = `0x${"11".repeat(32)}`;
const ENTRY = { address: `0x${"22".repeat(20)}`, storageKeys: [KEY] };
const AUTHORIZATION = { by: testAccount(999), address: ENTRY.address };

const GAS: readonly Rule[] = [
	refused("INTRINSIC_GAS", "no gas", { gasLimit: 0 }, "intrinsic gas too low: gas 0, minimum needed 21000"),
	...([0, 1, 2, 3] as const).flatMap((type) =>
		intrinsic(`type ${type}: gas of a transfer`, { type }, 20_999),
	),
	...intrinsic("gas of an authorization", { type: 4, authorizations: [AUTHORIZATION] }, 45_999),
	...intrinsic(
		"gas of three authorizations",
		{ type: 4, authorizations: [AUTHORIZATION, AUTHORIZATION, AUTHORIZATION] },
		95_999,
	),
	...intrinsic("gas of a creation", { to: null }, 52_999),
	...intrinsic(
		"gas of a creation with 33 zero bytes",
		{ to: null, data: Buffer.alloc(33) },
		53_000 + 33 * 4 + 2 * 2 - 1,
	),
	...intrinsic("gas of an access list", { accessList: [ENTRY] }, 25_299),
	...intrinsic(
		"gas of a storage key more",
		{ type: 1, accessList: [{ ...ENTRY, storageKeys: [KEY, KEY] }] },
		27_199,
	),
	...floor("floor of 100 bytes of calldata", { data: Buffer.alloc(100, 1) }, 24_999),
	...floor("floor of 100 zero bytes, legacy", { type: 0, data: Buffer.alloc(100) }, 21_999),
	...TYPES.map((type) =>
		refused(
			"TX_GAS_LIMIT",
			`type ${type}: one gas over the cap`,
			{ type, gasLimit: GAS_CAP + 1 },
			`transaction gas limit too high (cap: ${GAS_CAP}, tx: ${GAS_CAP + 1})`,
		),
	),
	refused(
		"TX_GAS_LIMIT",
		"2^64-1 gas",
		{ gasLimit: MAX_GAS },
		`transaction gas limit too high (cap: ${GAS_CAP}, tx: ${MAX_GAS})`,
	),
	taken("gas of the cap", { gasLimit: GAS_CAP }),
];

const CODE = "0x6000";
const DELEGATION = `0xef0100${"33".repeat(20)}`;
const NOT_EOA = "sender not an eoa: address SENDER has code";

const LISTS: readonly Rule[] = [
	refused(
		"EMPTY_AUTH_LIST",
		"no authorizations",
		{ type: 4, authorizations: [] },
		"EIP-7702 transaction with empty auth list",
	),
	refused(
		"BLOBS",
		"seven blobs",
		{ type: 3, blobs: 7 },
		"too many blobs in transaction: have 7, permitted 6",
	),
	taken("six blobs", { type: 3, blobs: 6 }),
	taken("a blob with the older sidecar", { type: 3, sidecarVersion: 0 }),
	taken("an authorization for another chain", {
		type: 4,
		authorizations: [{ ...AUTHORIZATION, chainId: 1n }],
	}),
	...TYPES.map((type) =>
		refused("SENDER_NOT_EOA", `type ${type}: a sender with code`, { type }, NOT_EOA, { code: CODE }),
	),
	refused("SENDER_NOT_EOA", "a sender with code of one byte", {}, NOT_EOA, { code: "0x00" }),
	refused("SENDER_NOT_EOA", "a sender with a delegation behind a byte", {}, NOT_EOA, {
		code: `0x00${DELEGATION.slice(2)}`,
	}),
	taken("a delegated sender", {}, { code: DELEGATION }),
	taken("a delegated sender of blobs", { type: 3 }, { code: DELEGATION }),
];

const MAX_TX_BYTES = 128 * 1024;
const MAX_BLOB_TX_BYTES = 1024 * 1024;

function sizeRules(type: TransactionType, limit: number): Rule[] {
	const tx: TxOptions = { type, gasLimit: 10_000_000 };
	const over = `oversized data: transaction size ${limit + 1}, limit ${limit}`;
	return [
		{ ...refused("OVERSIZED", `type ${type}: one byte too many`, tx, over), sizedTo: limit + 1 },
		{ ...taken(`type ${type}: all bytes that are allowed`, tx), sizedTo: limit },
	];
}

/** Zeros: each is a STOP. */
const initcode = (bytes: number): TxOptions => ({
	to: null,
	data: Buffer.alloc(bytes),
	gasLimit: 1_000_000,
});
const TOO_MUCH_CODE = `max initcode size exceeded: code size ${INITCODE + 1}, limit ${INITCODE}`;

const SIZES: readonly Rule[] = [
	...([0, 1, 2, 4] as const).flatMap((type) => sizeRules(type, MAX_TX_BYTES)),
	...sizeRules(3, MAX_BLOB_TX_BYTES),
	...([0, 1, 2] as const).map((type) =>
		refused(
			"INITCODE_SIZE",
			`type ${type}: a byte of init code too many`,
			{ ...initcode(INITCODE + 1), type },
			TOO_MUCH_CODE,
		),
	),
	taken("all init code that is allowed", initcode(INITCODE)),
	taken("as many bytes of calldata", { data: Buffer.alloc(INITCODE + 1), gasLimit: 1_000_000 }),
];

export const SIZE_RULES: readonly Rule[] = [...GAS, ...LISTS, ...SIZES];
