// Waits of eth_sendRawTransactionSync (EIP-7966) for a transaction's receipt, or for the reason
// that none will come soon.

import { type Clock, pause } from "../../shared/clock.ts";
import { ForeignRpcError, RpcError } from "../../shared/jsonrpc/errors.ts";
import {
	failingSimulation,
	notSoon,
	type SyncCall,
	SyncWaits,
	WHY_NOT_SOON,
} from "../../shared/syncWaits.ts";
import type { NodeReads } from "../chain/nodeReads.ts";
import { isMined, type TransactionRecord } from "../domain/record.ts";
import type { Followers } from "../status/followers.ts";
import type { Transactions } from "../transactions/transactions.ts";

export interface ReceiptWaitsDependencies {
	readonly followers: Pick<Followers, "follow">;
	readonly records: Pick<Transactions, "record">;
	readonly node: Pick<NodeReads, "receipt">;
	readonly clock: Clock;
}

const MAX_WAITS = 4_096;
/** Pause before the node is asked again for a receipt, in ms. */
const RETRY_MS = 250;

/** Why a wait ends when the process stops. */
export const STOPPING = "the relay is shutting down, and keeps it";

/**
 * All waits of the process. If there are too many, a further one times out at once. A wait ends
 * with `notSoon` if its transaction has ended, waits behind a nonce gap or fails its simulation.
 */
export function createReceiptWaits(dependencies: ReceiptWaitsDependencies): SyncWaits {
	return new SyncWaits(
		{ limits: { maxWaits: MAX_WAITS }, stopping: STOPPING },
		{ clock: dependencies.clock, find: (call, signal) => findReceipt(call, dependencies, signal) },
	);
}

/**
 * Follows the transaction first and then reads its record. Past events are in the record and later
 * ones are reported, so nothing is missed.
 */
function findReceipt(
	call: SyncCall,
	{ followers, records, node, clock }: ReceiptWaitsDependencies,
	signal: AbortSignal,
): Promise<unknown> {
	return new Promise((resolve, reject) => {
		/** Whether it is mined, as far as the relay knows. */
		let isInBlock = false;
		let isAsking = false;
		// A reorganisation may remove the receipt, and later bring another one.
		const ask = async (): Promise<void> => {
			isAsking = true;
			while (isInBlock && !signal.aborted) {
				const receipt = await receiptOf(call, node);
				if (isInBlock && receipt !== null) resolve(receipt);
				await pause(clock, RETRY_MS, signal);
			}
			isAsking = false;
		};
		const read = (record: TransactionRecord | null): void => {
			if (record === null || signal.aborted) return;
			const why = whyNotSoon(record);
			if (why !== null) reject(notSoon(record.hash, why));
			isInBlock = why === null && isMined(record.stage);
			if (isInBlock && !isAsking) ask().catch(reject);
		};
		signal.addEventListener("abort", followers.follow(call.hash, read));
		records.record(call.hash).then(read).catch(reject);
	});
}

/** The node's receipt, or null if it has none yet or does not answer. */
async function receiptOf(call: SyncCall, node: Pick<NodeReads, "receipt">): Promise<unknown> {
	try {
		return (await node.receipt(call.hash, call)) ?? null;
	} catch (thrown) {
		if (thrown instanceof RpcError || thrown instanceof ForeignRpcError) return null;
		throw thrown;
	}
}

/** Why the transaction can't be mined soon; null if it is mined or may be in the next block. */
function whyNotSoon({ stage, simulationError, events }: TransactionRecord): string | null {
	if (stage === "QUEUED") {
		const last = events.findLast((event) => event.type === "queued");
		const reason = last?.type === "queued" ? last.reason : null;
		if (reason === "nonceGap") return WHY_NOT_SOON.nonceGap;
		// Behind an unchecked transaction of the same sender, this one is sent for the next block.
		return reason === "behindHeld" ? WHY_NOT_SOON.behindHeld : null;
	}
	if (stage === "SIMULATION_FAILED") {
		// Without a verdict it is simulated again in a second.
		if (simulationError === null || simulationError.code === "NODE_UNAVAILABLE") return null;
		return failingSimulation(simulationError.message);
	}
	return WHY_NOT_SOON.ended[stage] ?? null;
}
