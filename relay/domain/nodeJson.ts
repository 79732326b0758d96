// Parses the JSON of an execution node. The operator trusts the node, so shapes are checked and
// contents are not.

import { forkShownBy } from "../../shared/ethereum/forks.ts";
import { parseAddress, parseHash, parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { Authorization } from "../../shared/ethereum/transactionFields.ts";
import { type Fields, isObject } from "../../shared/jsonrpc/fields.ts";
import type { AccountState, Header } from "./chain.ts";

/** The fields of an object; null for anything else. */
export function fieldsOf(value: unknown): Fields | null {
	return isObject(value) ? value : null;
}

/** Lower case, or null. */
export function readAddress(value: unknown): string | null {
	return typeof value === "string" ? parseAddress(value) : null;
}

/** Lower case, or null. */
export function readHash(value: unknown): string | null {
	return typeof value === "string" ? parseHash(value) : null;
}

/** Parses the header of a block, with or without transactions; null if it is invalid. */
export function readHeader(json: unknown): Header | null {
	const block = fieldsOf(json) ?? {};
	const [number, timestamp, gasLimit, gasUsed, baseFee, excessBlobGas, blobGasUsed] = [
		...[block.number, block.timestamp, block.gasLimit, block.gasUsed],
		// Absent before the forks that introduced them.
		...[block.baseFeePerGas ?? "0x0", block.excessBlobGas ?? "0x0", block.blobGasUsed ?? "0x0"],
	].map(parseNodeQuantity);
	const [hash, parentHash, miner] = [
		readHash(block.hash),
		readHash(block.parentHash),
		readAddress(block.miner),
	];
	if (number == null || timestamp == null || gasLimit == null || gasUsed == null || baseFee == null)
		return null;
	if (excessBlobGas == null || blobGasUsed == null || !hash || !parentHash || !miner) return null;
	const shownFork = forkShownBy(block);
	return {
		number: Number(number),
		hash,
		parentHash,
		timestamp: Number(timestamp),
		gasLimit,
		gasUsed,
		baseFee,
		excessBlobGas,
		blobGasUsed,
		miner,
		...(shownFork === null ? {} : { shownFork }),
	};
}

/** Parses an EIP-7702 authorization; null if it is invalid. */
export function readAuthorization(json: unknown): Authorization | null {
	const fields = fieldsOf(json) ?? {};
	const address = readAddress(fields.address);
	// Some nodes name it v.
	const yParity = parseNodeQuantity(fields.yParity ?? fields.v);
	const [chainId, nonce, r, s] = [fields.chainId, fields.nonce, fields.r, fields.s].map(parseNodeQuantity);
	if (address === null || yParity === null) return null;
	if (chainId == null || nonce == null || r == null || s == null) return null;
	return { chainId, address, nonce, yParity: Number(yParity), r, s };
}

/** `0xef0100` and an address. https://eips.ethereum.org/EIPS/eip-7702 */
const DELEGATION = /^0xef0100[0-9a-f]{40}$/i;

/**
 * The calls that read an account, in the order in which {@link readAccount} expects the results.
 */
export const ACCOUNT_METHODS = ["eth_getTransactionCount", "eth_getBalance", "eth_getCode"] as const;

/** Nonce, balance and code of an account; null if one of them is missing. */
export function readAccount([nonce, balance, code]: readonly unknown[]): Pick<
	AccountState,
	"nonce" | "balance" | "code"
> | null {
	const [nonceValue, balanceValue] = [parseNodeQuantity(nonce), parseNodeQuantity(balance)];
	if (nonceValue === null || balanceValue === null || typeof code !== "string") return null;
	// Without code some nodes answer `0x`, others an empty string.
	const kind = code === "0x" || code === "" ? "none" : DELEGATION.test(code) ? "delegated" : "contract";
	return { nonce: nonceValue, balance: balanceValue, code: kind };
}
