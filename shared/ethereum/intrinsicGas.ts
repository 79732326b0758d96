// The cost of a transaction by its fields alone: gas charged before execution, and wei. Limits and balances are checked by
// admission.

import type { DecodedTransaction } from "./transaction.ts";

/** Maximum init code. https://eips.ethereum.org/EIPS/eip-3860 */
export const MAX_INITCODE_BYTES = 49_152;
/** Maximum gas limit of a transaction since Osaka, 2²⁴. https://eips.ethereum.org/EIPS/eip-7825 */
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
/** Per 32 bytes of init code, rounded up (EIP-3860). */
const INITCODE_WORD_GAS = 2n;
/** Per authorization, before refunds for existing accounts (EIP-7702). */
const AUTHORIZATION_GAS = 25_000n;
/** The least that a block charges for an authorization, whatever is refunded. https://eips.ethereum.org/EIPS/eip-7702#parameters */
export const LEAST_AUTHORIZATION_GAS = 12_500n;
/** Minimum per token of calldata (EIP-7623): a zero byte is one token, any other four. */
const FLOOR_TOKEN_GAS = 10n;
const NONZERO_BYTE_TOKENS = 4n;

/** Gas charged before execution, by the rules since Prague. The gas limit must be at least this. */
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

/** The minimum gas charged for the calldata (EIP-7623). The gas limit must be at least this. */
export function floorDataGas(tx: Pick<DecodedTransaction, "data">): bigint {
	const zeros = countZeroBytes(tx.data);
	const tokens = BigInt(zeros) + BigInt(tx.data.length - zeros) * NONZERO_BYTE_TOKENS;
	return CALL_GAS + tokens * FLOOR_TOKEN_GAS;
}

/** The maximum charge in wei, blobs included, which the balance must cover. */
export function transactionCost(
	tx: Pick<
		DecodedTransaction,
		"gasLimit" | "maxFeePerGas" | "value" | "maxFeePerBlobGas" | "blobVersionedHashes"
	>,
): bigint {
	return tx.gasLimit * tx.maxFeePerGas + tx.value + blobGas(tx) * (tx.maxFeePerBlobGas ?? 0n);
}

/** Blob gas used; 0 except for type 3. */
export function blobGas(tx: Pick<DecodedTransaction, "blobVersionedHashes">): bigint {
	return BigInt(tx.blobVersionedHashes.length) * BLOB_GAS;
}

/**
 * The price of a unit of gas in a block with this base fee, in wei (EIP-1559). If it is below `baseFee`, the block cannot
 * include the transaction.
 */
export function effectiveGasPrice(tx: FeeCaps, baseFee: bigint): bigint {
	const wanted = baseFee + tx.maxPriorityFeePerGas;
	// biome-ignore lint/complexity/useMathMinMax: Math.min throws for bigints.
	return wanted < tx.maxFeePerGas ? wanted : tx.maxFeePerGas;
}

/** A loop by index: an iterator or callback is ten times slower. */
function countZeroBytes(bytes: Uint8Array): number {
	let zeros = 0;
	for (let index = 0; index < bytes.length; index++) {
		if (bytes[index] === 0) zeros++;
	}
	return zeros;
}

type FeeCaps = Pick<DecodedTransaction, "maxFeePerGas" | "maxPriorityFeePerGas">;
