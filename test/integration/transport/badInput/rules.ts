// Well-formed transactions that this chain or account may not send, with their exact answers, and
// what is just within each rule. Each row has an account of its own.

import { keccak256 } from "../../../../shared/ethereum/signatures.ts";
import type { TransactionType } from "../../../../shared/ethereum/transactionFields.ts";
import {
	rawTransaction,
	signedTransaction,
	type TestAccount,
	type TxOptions,
	testAccount,
} from "../../../support/txFactory.ts";
import { type CallRow, hex, refusal as refusedWith, type Standing } from "./fixture.ts";

/** A transaction, and why it is refused; null where it is taken. */
interface Rule {
	readonly name: string;
	readonly tx: TxOptions;
	/** It is filled up with calldata to so many bytes. */
	readonly sizedTo?: number;
	/** SENDER stands for the sender's address. */
	readonly refusal: { readonly reason: string; readonly message: string } | null;
	readonly standing: Standing;
}

/** A rule as it goes through the wire. */
interface RuleRow {
	readonly row: CallRow;
	readonly account: TestAccount;
	readonly standing: Standing;
}

const GWEI = 10n ** 9n;

/**
 * Fees under which a transaction is taken and waits, so that no block has to be built of all of
 * them.
 */
const WAITING: TxOptions = { maxFeePerGas: GWEI / 10n, maxPriorityFeePerGas: 0 };

/** A rule that refuses. */
export function refused(
	reason: string,
	name: string,
	tx: TxOptions,
	message: string,
	standing: Standing = {},
): Rule {
	return { name, tx, refusal: { reason, message }, standing };
}

const wrongChain = (name: string, tx: TxOptions, have: bigint): Rule =>
	refused("WRONG_CHAIN", name, tx, `invalid chain id for signer: have ${have} want 31337`);
/** The refusal for a sender whose next nonce is `next`. */
const wrongNonce = (
	is: "LOW" | "HIGH",
	name: string,
	nonce: bigint | number,
	next: number,
	type: TransactionType = 2,
): Rule =>
	refused(
		`NONCE_TOO_${is}`,
		name,
		{ type, nonce },
		`nonce too ${is.toLowerCase()}: next nonce ${next}, tx nonce ${nonce}`,
		next === 0 ? {} : { nonce: next },
	);
const gasCap = (name: string, gasLimit: bigint | number, type: TransactionType = 2): Rule =>
	refused(
		"TX_GAS_LIMIT",
		name,
		{ type, gasLimit },
		`transaction gas limit too high (cap: ${GAS_CAP}, tx: ${gasLimit})`,
	);
const notEoa = (name: string, code: string, type: TransactionType = 2): Rule =>
	refused("SENDER_NOT_EOA", name, { type }, "sender not an eoa: address SENDER has code", { code });

/** A transaction just within a rule; it waits for a lower base fee unless its fees are given. */
export function taken(name: string, tx: TxOptions, standing: Standing = {}): Rule {
	return { name: `${name} is taken`, tx: { ...WAITING, ...tx }, refusal: null, standing };
}

/** The rows of `rules`; their accounts are those from `first` on. */
export function ruleRows(rules: readonly Rule[], first: number): RuleRow[] {
	return rules.map(({ name, tx, sizedTo, refusal, standing }, i) => {
		const account = testAccount(first + i);
		const options = { ...tx, by: account };
		const made = sizedTo === undefined ? options : sized(sizedTo, options);
		const raw = rawTransaction(made);
		const call = { name, method: "eth_sendRawTransaction", params: [hex(raw)] };
		if (refusal === null) return { row: { ...call, result: hashOf(raw, made) }, account, standing };
		const { reason } = refusal;
		const message = refusal.message.replace("SENDER", account.address);
		return { row: { ...call, error: refusedWith(reason, message) }, account, standing };
	});
}

/**
 * That of a blob transaction is without its sidecar: there the decoder is believed, which its own
 * tests check.
 */
function hashOf(raw: Buffer, options: TxOptions): string {
	return options.type === 3 ? signedTransaction(options).hash : hex(keccak256(raw));
}

/**
 * A transaction of exactly this many bytes: the length of a signature is a matter of luck, so
 * several are tried.
 */
function sized(bytes: number, options: TxOptions): TxOptions {
	const having = (value: number, data: number): TxOptions => ({
		...options,
		value,
		data: Buffer.alloc(data),
	});
	for (let value = 1; value < 100; value++) {
		let data = bytes - signedTransaction(having(value, 0)).size;
		// Headers grow with what they head: a few bytes less are the ones.
		for (; data > bytes - 1_000_000; data--) {
			const tx = having(value, data);
			const { size } = signedTransaction(tx);
			if (size === bytes) return tx;
			if (size < bytes) break;
		}
	}
	throw new Error(`no transaction of ${bytes} bytes was found`);
}

const MAX_NONCE = 2n ** 64n - 1n;
const TYPES = [0, 1, 2, 3, 4] as const;
const TWO_FEES = [2, 3, 4] as const;

/** Fees for the next block; not for blobs, for which a dev chain loads seconds of tables. */
const GOING_OUT: TxOptions = { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI };

const CHAIN: readonly Rule[] = [
	...TYPES.map((type) => wrongChain(`type ${type}: another chain`, { type, chainId: 1n }, 1n)),
	...[0n, 31_338n, 2n ** 64n - 1n].map((chainId) => wrongChain(`chain ${chainId}`, { chainId }, chainId)),
	wrongChain("legacy: chain 0", { type: 0, chainId: 0n }, 0n),
	...([0, 1, 2, 4] as const).map((type) => taken(`type ${type}`, { type, ...GOING_OUT })),
	taken("type 3", { type: 3 }),
];

const NONCES: readonly Rule[] = [
	...TYPES.map((type) => wrongNonce("LOW", `type ${type}: a nonce that is used`, 4, 5, type)),
	wrongNonce("LOW", "nonce 0 of 5", 0, 5),
	wrongNonce("HIGH", "65 ahead", 65, 0),
	wrongNonce("HIGH", "65 ahead of 5", 70, 5),
	wrongNonce("HIGH", "2^64-2", MAX_NONCE - 1n, 0),
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
	gasBoundary("FLOOR_DATA_GAS", "insufficient gas for floor data gas cost", name, tx, gas);

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
	...TYPES.map((type) => gasCap(`type ${type}: one gas over the cap`, GAS_CAP + 1, type)),
	gasCap("2^64-1 gas", MAX_GAS),
	taken("gas of the cap", { gasLimit: GAS_CAP }),
];

const DELEGATION = `0xef0100${"33".repeat(20)}`;

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
	...TYPES.map((type) => notEoa(`type ${type}: a sender with code`, "0x6000", type)),
	notEoa("a sender with code of one byte", "0x00"),
	notEoa("a sender with a delegation behind a byte", `0x00${DELEGATION.slice(2)}`),
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
