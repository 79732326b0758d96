// The rules about a transaction's own fields that hold in every block of a fork. The relay's
// admission and boost both check them. Each function returns null or the rejection, in
// go-ethereum's words, since wallets match on them.

import type { Fork } from "./forks.ts";
import { floorDataGas, intrinsicGas } from "./intrinsicGas.ts";
import type { DecodedTransaction } from "./transaction.ts";

/** The first invalid nonce (EIP-2681). */
const MAX_NONCE = 2n ** 64n - 1n;

/** A rejection: its code, and the message for the client. */
export interface FieldRejection {
	readonly code: "WRONG_CHAIN" | "TIP_ABOVE_FEE_CAP" | "INTRINSIC_GAS" | "FLOOR_DATA_GAS" | "NONCE_MAX";
	readonly message: string;
}

/**
 * The transaction is signed for another chain than `chainId`, so anybody may copy it from there.
 */
export function wrongChain(tx: Pick<DecodedTransaction, "chainId">, chainId: bigint): FieldRejection | null {
	if (tx.chainId === chainId) return null;
	return {
		code: "WRONG_CHAIN",
		message: `invalid chain id for signer: have ${tx.chainId} want ${chainId}`,
	};
}

export function tipAboveFeeCap(tx: DecodedTransaction): FieldRejection | null {
	if (tx.maxPriorityFeePerGas <= tx.maxFeePerGas) return null;
	return {
		code: "TIP_ABOVE_FEE_CAP",
		message: `max priority fee per gas higher than max fee per gas: maxPriorityFeePerGas: ${tx.maxPriorityFeePerGas}, maxFeePerGas: ${tx.maxFeePerGas}`,
	};
}

export function belowIntrinsicGas(tx: DecodedTransaction, fork: Fork): FieldRejection | null {
	const needed = intrinsicGas(tx, fork);
	if (tx.gasLimit >= needed) return null;
	return {
		code: "INTRINSIC_GAS",
		message: `intrinsic gas too low: gas ${tx.gasLimit}, minimum needed ${needed}`,
	};
}

/** The gas limit is below the floor, or the charge is more than any transaction may have. */
export function outsideFloorGas(tx: DecodedTransaction, fork: Fork): FieldRejection | null {
	const floor = floorDataGas(tx, fork);
	const words = "insufficient gas for floor data gas cost";
	if (tx.gasLimit < floor) {
		return { code: "FLOOR_DATA_GAS", message: `${words}: gas ${tx.gasLimit}, minimum needed ${floor}` };
	}
	if (fork.maxFieldsGas === null) return null;
	const intrinsic = intrinsicGas(tx, fork);
	if (intrinsic <= fork.maxFieldsGas && floor <= fork.maxFieldsGas) return null;
	const limit = `expected ${fork.maxFieldsGas} at most`;
	return {
		code: "FLOOR_DATA_GAS",
		message: `${words}: intrinsic cost ${intrinsic}, floor: ${floor}, ${limit}`,
	};
}

export function nonceAtMax(tx: DecodedTransaction): FieldRejection | null {
	if (tx.nonce < MAX_NONCE) return null;
	return { code: "NONCE_MAX", message: `nonce has max value: ${tx.nonce}` };
}
