// Recovers the signer of a submitted transaction at an edge, so that the core need not do it.

import { hexToBytes } from "../../shared/ethereum/hex.ts";
import { decodeTransaction, type Recovered } from "../../shared/ethereum/transaction.ts";

const SUBMIT: ReadonlySet<string> = new Set(["eth_sendRawTransaction", "eth_sendRawTransactionSync"]);

/**
 * Sender and hash of the transaction that the call submits; undefined if it submits none that can
 * be decoded.
 */
export function recoveredOf(method: string, [raw]: readonly unknown[]): Recovered | undefined {
	const bytes = SUBMIT.has(method) && typeof raw === "string" ? hexToBytes(raw) : null;
	const decoded = bytes === null ? null : decodeTransaction(bytes);
	return decoded?.ok === true ? { hash: decoded.tx.hash, from: decoded.tx.from } : undefined;
}
