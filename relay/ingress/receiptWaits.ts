// Waits for a transaction's receipt, or for the error that says why there will be none soon (EIP-7966).

import type { Clock, Timer } from "../../shared/clock.ts";
import {
	type SyncCall,
	type SyncEnd,
	SyncWaits,
	type WaitingRoomLimits,
} from "../../shared/http/syncWaits.ts";
import { ForeignRpcError, RpcError } from "../../shared/jsonrpc/errors.ts";
import { failingSimulation, notSoon, WHY_NOT_SOON } from "../../shared/jsonrpc/sendSync.ts";
import { isMined } from "../domain/lifecycle.ts";
import type { Following, NodeReads, RecordReader } from "../domain/ports.ts";
import type { TransactionRecord } from "../domain/record.ts";

export interface ReceiptWaitsDependencies {
	readonly following: Following;
	readonly records: RecordReader;
	readonly node: Pick<NodeReads, "receipt">;
	readonly clock: Clock;
}

const MAX_WAITS = 4_096;
/** How soon a node is asked again that has no receipt yet, or did not answer, in ms. */
const RETRY_MS = 250;

const STOPPING = "the relay is shutting down, and keeps it";

/**
 * All waits of the process. `options`: who comes when there is no room is told at once that the time is up. What has
 * ended, stands behind a nonce gap or fails its simulation ends its wait with `notSoon`.
 */
export function createReceiptWaits(
	options: Partial<WaitingRoomLimits>,
	dependencies: ReceiptWaitsDependencies,
): SyncWaits {
	return new SyncWaits(
		{ limits: { maxWaits: MAX_WAITS, ...options }, stopping: STOPPING },
		{
			clock: dependencies.clock,
			look(call, end) {
				const watch = new RecordWatch(call, dependencies, end);
				watch.begin();
				return () => watch.stop();
			},
		},
	);
}

/** Watches the record of one wait. `begin` must be called once. */
class RecordWatch {
	readonly #call: SyncCall;
	readonly #hash: string;
	readonly #deps: ReceiptWaitsDependencies;
	readonly #end: SyncEnd;
	#unfollow: () => void = () => {};
	#retry: Timer | null = null;
	#asking = false;
	/** In a block, as far as the relay knows. */
	#mined = false;

	constructor(call: SyncCall, dependencies: ReceiptWaitsDependencies, end: SyncEnd) {
		this.#call = call;
		this.#hash = call.hash;
		this.#deps = dependencies;
		this.#end = end;
	}

	/**
	 * Follows first, and looks at the record then: what has happened since the submission is in the record, and what
	 * happens from now on is told. So nothing is missed, and the hash need not be known before the submission.
	 */
	begin(): void {
		const { following, records } = this.#deps;
		this.#unfollow = following.follow(this.#hash, (record) => this.#look(record));
		records.record(this.#hash).then(
			(record) => {
				if (record !== null) this.#look(record);
			},
			(thrown: unknown) => this.#end.fail(thrown),
		);
	}

	stop(): void {
		this.#unfollow();
		this.#retry?.cancel();
	}

	#look(record: TransactionRecord): void {
		if (this.#end.ended) return;
		const why = whyNotSoon(record);
		if (why !== null) {
			this.#end.fail(notSoon(record.hash, why));
			return;
		}
		this.#mined = isMined(record.stage);
		if (this.#mined && !this.#asking && this.#retry === null) this.#ask();
	}

	/** Asks for the receipt, and again until there is one: a reorganisation may take it away, and bring another one. */
	#ask(): void {
		this.#asking = true;
		receiptOf(this.#call, this.#deps.node).then(
			(receipt) => {
				this.#asking = false;
				// Not mined any more: it is of a block that is gone.
				if (this.#end.ended || !this.#mined) return;
				if (receipt !== null) this.#end.mined(receipt);
				else this.#retry = this.#deps.clock.after(RETRY_MS, () => this.#askAgain());
			},
			(thrown: unknown) => this.#end.fail(thrown),
		);
	}

	#askAgain(): void {
		this.#retry = null;
		if (this.#mined && !this.#end.ended) this.#ask();
	}
}

/** The node's receipt, or null where it has none yet or does not answer: it may at the next try. */
async function receiptOf(call: SyncCall, node: Pick<NodeReads, "receipt">): Promise<unknown> {
	try {
		return (await node.receipt(call.hash, call)) ?? null;
	} catch (thrown) {
		if (thrown instanceof RpcError || thrown instanceof ForeignRpcError) return null;
		throw thrown;
	}
}

/** Why it can't be mined soon, or null: it is mined, or may be in the next block. */
function whyNotSoon({ stage, simulationError, events }: TransactionRecord): string | null {
	if (stage === "QUEUED") {
		const last = events.findLast((event) => event.type === "queued");
		const reason = last?.type === "queued" ? last.reason : null;
		if (reason === "nonceGap") return WHY_NOT_SOON.nonceGap;
		// Behind one that is out unchecked its turn comes with the next block.
		return reason === "behindHeld" ? WHY_NOT_SOON.behindHeld : null;
	}
	if (stage === "SIMULATION_FAILED") {
		// The node could not tell: it is asked again in a second.
		if (simulationError === null || simulationError.code === "NODE_UNAVAILABLE") return null;
		return failingSimulation(simulationError.message);
	}
	return WHY_NOT_SOON.ended[stage] ?? null;
}
