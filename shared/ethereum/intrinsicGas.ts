// The cost of a transaction by its fields alone: gas charged before and beside execution, and wei.
// Limits and balances are checked by admission.

import type { Fork, GasTable } from "./forks.ts";
import type { DecodedTransaction } from "./transaction.ts";

/** Blob gas of one blob. https://eips.ethereum.org/EIPS/eip-4844 */
const BLOB_GAS = 131_072n;

/** The fields that determine the gas of a transaction before execution. */
export type GasFields = Pick<
	DecodedTransaction,
	"from" | "to" | "value" | "data" | "zeroBytes" | "accessList" | "authorizationList"
>;

/** Gas charged before execution. The gas limit must be at least this. */
export function intrinsicGas(tx: GasFields, { gas }: Pick<Fork, "gas">): bigint {
	let sum = baseGas(tx, gas) + dataGas(tx, gas);
	if (tx.to === null) sum += BigInt(Math.ceil(tx.data.length / 32)) * gas.initCodeWord;
	return sum + listGas(tx, gas) + BigInt(tx.authorizationList.length) * gas.authorization;
}

/**
 * The minimum gas charged for the transaction's content (EIP-7623). The gas limit must be at least
 * this.
 */
export function floorDataGas(tx: GasFields, { gas }: Pick<Fork, "gas">): bigint {
	const { floor } = gas;
	const tokens = dataGas(tx, floor) + listGas(tx, floor);
	return (floor.base ?? baseGas(tx, gas)) + tokens * floor.token;
}

function dataGas(
	{ data, zeroBytes }: GasFields,
	{ zeroByte, otherByte }: Pick<GasTable, "zeroByte" | "otherByte">,
): bigint {
	return BigInt(zeroBytes) * zeroByte + BigInt(data.length - zeroBytes) * otherByte;
}

function listGas(
	{ accessList: { addresses, keys } }: GasFields,
	{ accessAddress, accessKey }: Pick<GasTable, "accessAddress" | "accessKey">,
): bigint {
	return BigInt(addresses) * accessAddress + BigInt(keys) * accessKey;
}

function baseGas({ from, to, value }: GasFields, gas: GasTable): bigint {
	if (to === null) return gas.base + gas.creation;
	if (to === from) return gas.base;
	return gas.base + gas.recipient + (value > 0n ? gas.value : 0n);
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
 * The price of a unit of gas in a block with this base fee, in wei (EIP-1559). If it is below
 * `baseFee`, the block cannot include the transaction.
 */
export function effectiveGasPrice(tx: FeeCaps, baseFee: bigint): bigint {
	const wanted = baseFee + tx.maxPriorityFeePerGas;
	// biome-ignore lint/complexity/useMathMinMax: Math.min throws for bigints.
	return wanted < tx.maxFeePerGas ? wanted : tx.maxFeePerGas;
}

type FeeCaps = Pick<DecodedTransaction, "maxFeePerGas" | "maxPriorityFeePerGas">;
