// Compares the outcomes of acknowledged transactions with the final chain, for tests in which nodes
// disagree on the way.

import type { DevChain } from "../devnet/devChain.ts";
import type { BoostClient } from "./boostFixture.ts";
import type { WireStatus } from "./relayClient.ts";
import type { Signed } from "./relayFixture.ts";

/** Stages of a transaction that lost its nonce to another one: which other one may be seen late. */
export const OVERTAKEN: readonly string[] = ["REPLACED", "DROPPED"];

/** An acknowledged transaction, and what its user did with it. */
export interface Acknowledged {
	readonly path: string;
	readonly tx: Signed;
	/** Its possible ends if no block has it. */
	readonly mayEnd: readonly string[];
}

/** The chain's record of a transaction. */
export interface Mined {
	readonly stage: string;
	readonly blockNumber: number;
	readonly blockHash: string;
	/** Wei that its sender paid for gas. */
	readonly cost: bigint;
}

/** Submits it by boost; null where that was refused. */
export async function submits(
	boost: BoostClient,
	path: string,
	tx: Signed,
	mayEnd: readonly string[] = [],
): Promise<Acknowledged | null> {
	const { json } = await boost.call("eth_sendRawTransaction", [tx.raw], { path });
	return (json as { result?: unknown }).result === tx.hash ? { path, tx, mayEnd } : null;
}

/** Whether a cancel by boost was acknowledged. */
export async function cancels(boost: BoostClient, { hash }: Signed): Promise<boolean> {
	const { json } = await boost.call("eth_cancelTransaction", [hash]);
	return (json as { result?: unknown }).result === true;
}

export async function statusAt(boost: BoostClient, { hash }: Signed): Promise<WireStatus> {
	return (await boost.get(`/tx/${hash}`)).json as WireStatus;
}

/** Null: no block of the chain has it. */
export async function minedOn(chain: Pick<DevChain, "rpc">, { hash }: Signed): Promise<Mined | null> {
	const found = await chain.rpc("eth_getTransactionReceipt", [hash]);
	if (found === null) return null;
	const { status, blockNumber, blockHash, gasUsed, effectiveGasPrice } = found as Record<string, string>;
	return {
		stage: status === "0x1" ? "INCLUDED" : "REVERTED",
		blockNumber: Number(blockNumber),
		blockHash: String(blockHash),
		cost: BigInt(gasUsed ?? 0) * BigInt(effectiveGasPrice ?? 0),
	};
}

/** A statement of a status that the chain contradicts; null: none. */
export function contradiction(
	{ tx, mayEnd }: Acknowledged,
	found: Mined | null,
	{ stage, blockNumber }: WireStatus,
): string | null {
	const what = `${tx.hash} is ${stage} in ${blockNumber}`;
	if (found === null) return mayEnd.includes(stage ?? "") ? null : `${what}, and no block has it`;
	if (stage === found.stage && blockNumber === found.blockNumber) return null;
	return `${what}, and the chain has it as ${found.stage} in ${found.blockNumber}`;
}
