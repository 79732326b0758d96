// A transaction with a real record, a node whose receipts a test hands out, and waits for them on a
// clock that is moved by hand. What each wait came to is kept.

import type { TxEvent } from "../../../../relay/domain/events.ts";
import type { Following, RecordReader } from "../../../../relay/domain/ports.ts";
import { newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { createReceiptWaits } from "../../../../relay/ingress/receiptWaits.ts";
import { Followers } from "../../../../relay/status/announcer.ts";
import { TransactionRecords } from "../../../../relay/transactions/records.ts";
import { ClientLife } from "../../../../shared/http/callContext.ts";
import type { SyncCall, SyncWaits, WaitingRoomLimits } from "../../../../shared/http/syncWaits.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

export const transaction = privateTransaction();
export const HASH = transaction.tx.hash;
export const RECEIPT = { transactionHash: HASH, status: "0x1" };
export const NOT_PROCESSED = "The transaction was added to the mempool but wasn't processed";

/** How a wait ended: its receipt, or the error as the client reads it; undefined while it waits. */
export interface Outcome {
	ended?: unknown;
}

/** What an event says beside its type; `at` and `block` where it has them need not be said. */
export type Happening = { readonly type: TxEvent["type"] } & Readonly<Record<string, unknown>>;

export class ReceiptFixture {
	readonly clock = new ManualClock();
	readonly records = new TransactionRecords({ log: silentLogger });
	readonly #followers = new Followers({ log: silentLogger });
	readonly waits: SyncWaits;
	/** What the node answers: a value, or an error that it throws. */
	answer: unknown = null;
	/** Hashes that the node was asked for. */
	readonly asked: string[] = [];
	/** Records of transactions that are settled. */
	readonly settled = new Map<string, TransactionRecord>();
	/** Who follows the transaction now. */
	follows = 0;
	#gate: Promise<void> = Promise.resolve();

	constructor(options: Partial<WaitingRoomLimits> = {}) {
		this.records.subscribe((record, _before, event) => this.#followers.tell(record, event));
		this.waits = createReceiptWaits(options, {
			following: { follow: (hash, listener) => this.#follow(hash, listener) },
			records: this.reader,
			node: { receipt: (hash) => this.#receipt(hash) },
			clock: this.clock,
		});
	}

	readonly reader: RecordReader = {
		record: async (hash) => this.records.get(hash)?.record ?? this.settled.get(hash) ?? null,
	};

	/** The relay has taken it, and each of these has happened to it. */
	take(...happenings: readonly Happening[]): this {
		this.records.open({ transaction, record: newRecord(transaction) });
		this.happens({ type: "received" }, ...happenings);
		return this;
	}

	happens(...happenings: readonly Happening[]): void {
		for (const one of happenings) {
			this.records.emit(HASH, { at: this.clock.now(), block: 7, builders: [], ...one } as TxEvent);
		}
	}

	/** Waits for so many ms, from now on unless said. */
	wait(ms: number, request: Partial<SyncCall> = {}): Outcome {
		const begun = this.clock.monotonic();
		const outcome: Outcome = {};
		const life = new ClientLife(0);
		this.waits.wait({ hash: HASH, client: "192.0.2.1", life, begun, until: begun + ms, ...request }).then(
			(receipt) => {
				outcome.ended = receipt;
			},
			(thrown: unknown) => {
				outcome.ended = thrown instanceof RpcError ? [thrown.code, thrown.message, thrown.data] : thrown;
			},
		);
		return outcome;
	}

	/** The node's answers wait until what is answered is called. */
	hold(): () => void {
		let release = (): void => {};
		this.#gate = new Promise((resolve) => {
			release = resolve;
		});
		return release;
	}

	#follow(...[hash, listener]: Parameters<Following["follow"]>): () => void {
		const end = this.#followers.follow(hash, listener);
		this.follows++;
		return () => {
			this.follows--;
			end();
		};
	}

	async #receipt(hash: string): Promise<unknown> {
		this.asked.push(hash);
		const { answer } = this;
		await this.#gate;
		if (answer instanceof Error) throw answer;
		return answer;
	}
}

/** It is in a block. */
export function included(reverted = false): Happening {
	return { type: "included", blockHash: `0x${"b1".repeat(32)}`, index: 0, reverted };
}

export function failed(code: string, message: string): Happening {
	return { type: "simulationFailed", error: { code, message } };
}

export function queued(reason: string): Happening {
	return { type: "queued", reason };
}
