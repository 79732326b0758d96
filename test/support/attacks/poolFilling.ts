// Transactions of each kind, with which many clients fill the pool.

import { rawTransaction, type TxOptions, testAccount } from "../txFactory.ts";

/** The largest transaction without blobs that a node takes, but for its other fields, in bytes. */
const LARGE = 128 * 1024 - 300;
/** The most gas of a transaction (EIP-7825). */
const MOST_GAS = 16_777_216;
/** Each with one key: 58 bytes and 4,300 gas. */
const ACCESSES = 2_200;
/** Transactions of one account: as many as one may have. */
const OF_ONE_ACCOUNT = 64;

const hex = (n: number, bytes: number): string => `0x${n.toString(16).padStart(2 * bytes, "0")}`;
const fees = { maxFeePerGas: 3n * 10n ** 9n };
const accessList = Array.from({ length: ACCESSES }, (_, i) => {
	return { address: hex(i, 20), storageKeys: [hex(i, 32)] };
});

/** The fields of each kind, without account and nonce. */
const KINDS = {
	calldata: { ...fees, gasLimit: MOST_GAS, data: Buffer.alloc(LARGE, 0x5a) },
	accessLists: { ...fees, gasLimit: MOST_GAS, accessList },
	gapped: { ...fees, gasLimit: 21_000 },
} as const satisfies Readonly<Record<string, TxOptions>>;

export type Filling = keyof typeof KINDS;
export const FILLINGS = Object.keys(KINDS) as readonly Filling[];

/** The `i`th transaction of a client whose accounts begin with number `first`. */
export function fillingTransaction(kind: Filling, first: number, i: number): TxOptions {
	const by = testAccount(first + Math.floor(i / OF_ONE_ACCOUNT));
	return { ...KINDS[kind], by, nonce: (i % OF_ONE_ACCOUNT) + (kind === "gapped" ? 1 : 0) };
}

/** How many accounts the first `count` transactions of a client need. */
export function fillingAccounts(count: number): number {
	return Math.ceil(count / OF_ONE_ACCOUNT);
}

/** Bytes of a transaction of this kind. */
export function fillingBytes(kind: Filling): number {
	return rawTransaction(fillingTransaction(kind, 1, 0)).length;
}
