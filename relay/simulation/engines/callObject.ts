// Spells transactions and their block as JSON for a node that simulates. This JSON is for the relay's own node alone:
// authorizations keep their signatures, without which they have no effect.

import { bytesToHex, toQuantity } from "../../../shared/ethereum/hex.ts";
import { effectiveGasPrice } from "../../../shared/ethereum/intrinsicGas.ts";
import type { Authorization } from "../../../shared/ethereum/rlp.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { BlockContext } from "../../domain/simulation.ts";

/** anvil reads blob fees into 128 bits and refuses the call beyond. */
const MAX_UINT128 = (1n << 128n) - 1n;

/** A call with all that the transaction says, at the gas price that it pays in `block`. */
export function callObject(tx: DecodedTransaction, block: BlockContext): Record<string, unknown> {
	return {
		from: tx.from,
		...(tx.to === null ? {} : { to: tx.to }),
		nonce: toQuantity(tx.nonce),
		gas: toQuantity(tx.gasLimit),
		value: toQuantity(tx.value),
		input: bytesToHex(tx.data),
		...feeFields(tx, block.baseFee),
		...(tx.accessList.length === 0 ? {} : { accessList: tx.accessList }),
		...blobFields(tx),
		...(tx.authorizationList.length === 0
			? {}
			: { authorizationList: tx.authorizationList.map(authorizationObject) }),
	};
}

/** The simulated block, as the node takes it in block overrides. */
export function blockOverrides(block: BlockContext): Record<string, string> {
	return {
		number: toQuantity(block.number),
		time: toQuantity(block.timestamp),
		gasLimit: toQuantity(block.gasLimit),
		feeRecipient: block.feeRecipient,
		baseFeePerGas: toQuantity(block.baseFee),
		blobBaseFee: toQuantity(block.blobBaseFee),
	};
}

/** {@link callObject} with the fees that it is signed for: a node that validates asks for the most that it can cost. */
export function signedCall(tx: DecodedTransaction, block: BlockContext): Record<string, unknown> {
	if (tx.gasPrice !== null) return callObject(tx, block);
	const fees = {
		maxFeePerGas: toQuantity(tx.maxFeePerGas),
		maxPriorityFeePerGas: toQuantity(tx.maxPriorityFeePerGas),
	};
	return { ...callObject(tx, block), ...fees };
}

/**
 * Both fees are the price that is really paid: without validation anvil takes the base fee for 0 and would charge
 * the tip alone; geth charges the same either way. So the sender's balance is exact behind it.
 */
function feeFields(tx: DecodedTransaction, baseFee: bigint): Record<string, string> {
	const price = toQuantity(effectiveGasPrice(tx, baseFee));
	if (tx.gasPrice !== null) return { gasPrice: price };
	return { maxFeePerGas: price, maxPriorityFeePerGas: price };
}

function blobFields(tx: DecodedTransaction): Record<string, unknown> {
	if (tx.maxFeePerBlobGas === null) return {};
	const cap = tx.maxFeePerBlobGas < MAX_UINT128 ? tx.maxFeePerBlobGas : MAX_UINT128;
	return { maxFeePerBlobGas: toQuantity(cap), blobVersionedHashes: tx.blobVersionedHashes };
}

function authorizationObject(authorization: Authorization): Record<string, string> {
	return {
		chainId: toQuantity(authorization.chainId),
		address: authorization.address,
		nonce: toQuantity(authorization.nonce),
		yParity: toQuantity(authorization.yParity),
		r: toQuantity(authorization.r),
		s: toQuantity(authorization.s),
	};
}

/** Nothing real is at these addresses: a contract that reads for us in a block behind, and its caller. */
export const PROBE_ADDRESS = "0x1ee3a7d5c2b94f6088a1d0e57b3c96f42d8e0b71";
export const PROBE_CALLER = "0x1ee3a7d5c2b94f6088a1d0e57b3c96f42d8e0b72";
