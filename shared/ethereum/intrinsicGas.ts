// What a transaction costs by its fields alone: gas charged before the first opcode, and wei. Limits and
// balances are admission's.

import type { DecodedTransaction } from "./transaction.ts";

/** The longest init code, in bytes. https://eips.ethereum.org/EIPS/eip-3860 */
export const MAX_INITCODE_BYTES = 49_152;
/** The highest gas limit of one transaction, 2²⁴, on chains that have Osaka. https://eips.ethereum.org/EIPS/eip-7825 */
export const MAX_TX_GAS = 16_777_216n;
/** Blob gas of one blob. https://eips.ethereum.org/EIPS/eip-4844 */
const BLOB_GAS = 131_072n;

const CALL_GAS = 21_000n;
const CREATION_GAS = 53_000n;
/** Calldata, per zero byte and per other byte (EIP-2028). */
const ZERO_BYTE_GAS = 4n;
const NONZERO_BYTE_GAS = 16n;
/** Per address and per storage key (EIP-2930). */
const ACCESS_LIST_ADDRESS_GAS = 2_400n;
const ACCESS_LIST_KEY_GAS = 1_900n;
/** Per 32 bytes of init code, begun ones included (EIP-3860). */
const INITCODE_WORD_GAS = 2n;
/** Per authorization, before any refund for accounts that exist (EIP-7702). */
const AUTHORIZATION_GAS = 25_000n;
/** Per token of calldata, the least that is charged for it (EIP-7623): a zero byte is one token, another is four. */
const FLOOR_TOKEN_GAS = 10n;
const NONZERO_BYTE_TOKENS = 4n;

/** Gas charged before execution, by the rules since Prague: the gas limit must be at least this. */
export function intrinsicGas(
	tx: Pick<DecodedTransaction, "to" | "data" | "accessList" | "authorizationList">,
): bigint {
	const zeros = countZeroBytes(tx.data);
	let gas = tx.to === null ? CREATION_GAS : CALL_GAS;
	gas += BigInt(zeros) * ZERO_BYTE_GAS + BigInt(tx.data.length - zeros) * NONZERO_BYTE_GAS;
	if (tx.to === null) gas += BigInt(Math.ceil(tx.data.length / 32)) * INITCODE_WORD_GAS;
	for (const entry of tx.accessList) {
		gas += ACCESS_LIST_ADDRESS_GAS + BigInt(entry.storageKeys.length) * ACCESS_LIST_KEY_GAS;
	}
	return gas + BigInt(tx.authorizationList.length) * AUTHORIZATION_GAS;
}

/** The least gas that the transaction will be charged for its calldata (EIP-7623): the gas limit must be at least this. */
export function floorDataGas(tx: Pick<DecodedTransaction, "data">): bigint {
	const zeros = countZeroBytes(tx.data);
	const tokens = BigInt(zeros) + BigInt(tx.data.length - zeros) * NONZERO_BYTE_TOKENS;
	return CALL_GAS + tokens * FLOOR_TOKEN_GAS;
}

/** The most that the sender can be charged, in wei: what the balance must cover, blobs included. */
export function transactionCost(
	tx: Pick<
		DecodedTransaction,
		"gasLimit" | "maxFeePerGas" | "value" | "maxFeePerBlobGas" | "blobVersionedHashes"
	>,
): bigint {
	return tx.gasLimit * tx.maxFeePerGas + tx.value + blobGas(tx) * (tx.maxFeePerBlobGas ?? 0n);
}

/** Blob gas used: nothing but for type 3. */
export function blobGas(tx: Pick<DecodedTransaction, "blobVersionedHashes">): bigint {
	return BigInt(tx.blobVersionedHashes.length) * BLOB_GAS;
}

/**
 * The price of a unit of gas in a block of this base fee, in wei (EIP-1559). It is below `baseFee` where the fee
 * cap is: such a block cannot take the transaction.
 */
export function effectiveGasPrice(tx: FeeCaps, baseFee: bigint): bigint {
	const wanted = baseFee + tx.maxPriorityFeePerGas;
	// biome-ignore lint/complexity/useMathMinMax: Math.min throws for bigints.
	return wanted < tx.maxFeePerGas ? wanted : tx.maxFeePerGas;
}

/** Counted by index: an iterator or a callback for each byte is ten times slower. */
function countZeroBytes(bytes: Uint8Array): number {
	let zeros = 0;
	for (let index = 0; index < bytes.length; index++) {
		if (bytes[index] === 0) zeros++;
	}
	return zeros;
}

type FeeCaps = Pick<DecodedTransaction, "maxFeePerGas" | "maxPriorityFeePerGas">;
