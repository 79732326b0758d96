// Whether a transaction is in a block. The answers are a third party's, and believed only where they are about its hash.

import type { RpcTransaction } from "../../shared/ethereum/rpcTransaction.ts";
import type { CallResult, ChainReads } from "../domain/ports.ts";

/** A mined transaction. */
export interface Mined {
	/** The node's object, or null where it gave none. */
	readonly transaction: RpcTransaction | null;
	readonly reverted: boolean;
}

/** The transaction with its receipt where it is mined; null where it is not, undefined where nobody can tell. */
export async function minedOnChain(
	chain: ChainReads,
	hash: string,
	deadlineMs: number,
): Promise<Mined | null | undefined> {
	if (deadlineMs <= 0) return undefined;
	const params = [hash];
	const calls = [
		{ method: "eth_getTransactionReceipt", params },
		{ method: "eth_getTransactionByHash", params },
	];
	const [receipt, transaction] = (await chain.batch(calls, deadlineMs)) ?? [];
	if (receipt?.ok !== true) return undefined;
	if (receipt.result === null) return null;
	const mined = isObject(receipt.result) ? receipt.result : {};
	if (!isHash(mined.transactionHash, hash) || !isBlock(mined.blockHash)) return undefined;
	return { transaction: transactionOf(transaction, hash) ?? null, reverted: mined.status === "0x0" };
}

/** The object in an answer to `eth_getTransactionByHash`; null where there is none, undefined where it is no answer. */
export function transactionOf(
	answer: CallResult | null | undefined,
	hash: string,
): RpcTransaction | null | undefined {
	if (answer?.ok !== true) return undefined;
	if (answer.result === null) return null;
	return isObject(answer.result) && isHash(answer.result.hash, hash) ? answer.result : undefined;
}

/** Whether a transaction object is of one in a block. */
export function isInBlock(transaction: RpcTransaction): boolean {
	return isBlock(transaction.blockHash);
}

function isBlock(value: unknown): boolean {
	return typeof value === "string";
}

function isHash(value: unknown, hash: string): boolean {
	return typeof value === "string" && value.toLowerCase() === hash;
}

/** Whether it is a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}
