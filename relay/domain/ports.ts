// The interfaces between the relay's parts. Each is small and declared for its consumer; relay.ts connects them, so that the
// parts need not import each other.

import type { Stage } from "../../shared/ethereum/statusRecord.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { RequestLife } from "../../shared/http/callContext.ts";
import type { JsonPieces } from "../../shared/jsonrpc/answers.ts";
import type { LogCriteria } from "../../shared/jsonrpc/logs.ts";
import type { BidRequest, BundleOutcome, PlainBundleRequest } from "./bundle.ts";
import type { BundleRecord, Standing } from "./bundleStatus.ts";
import type { AccountState } from "./chain.ts";
import type { TxEvent } from "./events.ts";
import type { TransactionRecord } from "./record.ts";
import type { SimulationOutcome, SimulationRequest } from "./simulation.ts";
import type { CancelRequest, ChainLink, Submission, SubmitOutcome } from "./transaction.ts";

/** Account states, read from the node once per head and address, with fair queueing by client. */
export interface Accounts {
	/**
	 * State of `address` after the tracked head, charged to `client` (see clientOf). `urgent` reads go first. Throws an
	 * UpstreamError if it is not available within a second.
	 */
	get(address: string, client: string, urgent?: boolean): Promise<AccountState>;
	/**
	 * The same, read from the node now and possibly after a later head: for the check before a rejection. Urgent. Throws an
	 * UpstreamError if it is not available within a second.
	 */
	fresh(address: string, client: string): Promise<AccountState>;
	/** Sets the tracked head and drops all cached states. */
	setHead(block: number): void;
}

/** The queue of simulations. */
export interface Simulations {
	/** As {@link Simulator.simulate}, after waiting in the queue. */
	simulate(request: SimulationRequest): Promise<readonly SimulationOutcome[]>;
}

/** Runs simulations. */
export interface Simulator {
	/**
	 * Runs the transactions in order; returns one outcome each, up to the first one that fails and must not. A failing node is
	 * an outcome (`NODE_UNAVAILABLE`), never thrown.
	 */
	simulate(request: SimulationRequest): Promise<SimulationOutcome[]>;
}

/** Called for every event after it was applied to the record. */
export type EventListener = (record: TransactionRecord, before: Stage, event: TxEvent) => void;

/** Accepts submissions. */
export interface Submitter {
	/** Resolves once the transaction is on disk, or is rejected. Throws if the node or the store fails. */
	submit(submission: Submission): Promise<SubmitOutcome>;
}

/** Cancels transactions. */
export interface Canceller {
	/**
	 * True once the transaction is cancelled and that is on disk, by this request or an earlier one. False if it is not pending
	 * here or the client may not cancel it, without saying which. Throws if the store fails.
	 */
	cancel(request: CancelRequest): Promise<boolean>;
}

/** Subscribes to the events of single transactions. */
export interface Following {
	/**
	 * Calls `listener` for each future event of the transaction, after its record has changed; the transaction need not be known
	 * yet. The listener must not keep the record. Returns an unsubscribe function.
	 */
	follow(hash: string, listener: (record: TransactionRecord, event: TxEvent) => void): () => void;
}

/** Makes clients' calls behind pending transactions that are not in a block yet. */
export interface ReadsBehind {
	/**
	 * The node's answer to `eth_call`, `eth_estimateGas` or `eth_createAccessList` in the next block, behind `chain`, charged to
	 * the caller; null if the node can't run that. Throws a ForeignRpcError with the node's verdict on the call.
	 */
	answer(
		method: string,
		params: readonly unknown[],
		chain: readonly ChainLink[],
		caller: Caller,
	): Promise<{ readonly result: unknown } | null>;
}

/** The client for which the node is called. */
export interface Caller {
	/** The client that is charged for the call: see clientOf. */
	readonly client: string;
	/** A queued call is abandoned when the client disconnects. */
	readonly life: Pick<RequestLife, "onGone">;
}

/** Reads from the node for the relay's own methods. All throw RpcError or ForeignRpcError, ready for the client. */
export interface NodeReads {
	/** How many transactions the account has sent, those in the node's mempool included. */
	pendingCount(address: string, caller: Caller): Promise<bigint>;
	/** The node's answer for any block number, tag or EIP-1898 object: a quantity. */
	transactionCount(address: string, block: unknown, caller: Caller): Promise<unknown>;
	/** The node's transaction object, or null. */
	transactionByHash(hash: string, caller: Caller): Promise<unknown>;
	/** The node's receipt, or null. */
	receipt(hash: string, caller: Caller): Promise<unknown>;
	/** The node's logs for the object that `eth_getLogs` takes. */
	logs(criteria: unknown, caller: Caller): Promise<unknown>;
}

/** Filters that clients poll. An unknown id is answered with an RpcError. */
export interface Filters {
	/** Creates a filter of logs or (null) of blocks; returns its id. Throws RpcError `limit` if `client` has too many. */
	open(client: string, logs: LogCriteria | null): string;
	/**
	 * The changes since the last call as a list: hashes of new blocks, or logs; those of some blocks, where all are more than an answer
	 * may have, and the others at the next call.
	 */
	changes(id: string, caller: Caller): Promise<JsonPieces>;
	/** The `eth_getLogs` object of a filter of logs. */
	query(id: string): object;
	/** Removes a filter; false if there is none with this id. */
	close(id: string): boolean;
}

/** Accepts searchers' bundles. */
export interface Market {
	/** Resolves once the bid was simulated behind its target. Throws RpcError if the node fails. */
	bid(request: BidRequest): Promise<BundleOutcome>;
	/** Submits a plain bundle. Throws RpcError if the node fails. */
	submit(request: PlainBundleRequest): Promise<BundleOutcome>;
	/** Cancels the owner's bundles with this uuid, if any. */
	cancel(owner: string, uuid: string): void;
}

/** Reads the status of bundles. */
export interface BundleReader {
	/** The owner's bundle with this hash, or null; other owners' bundles are not visible. */
	bundle(owner: string, hash: string): BundleRecord | null;
	/** The standing of a bundle's bidder for the next block; null: nothing against it, or it is a plain bundle. */
	standing(record: BundleRecord): Standing | null;
}

/** Reads the transactions that searchers may see. */
export interface SharedTransactions {
	/** The pending transaction with this hash if it is shared with searchers, else null. */
	shared(hash: string): DecodedTransaction | null;
}

/** Publishes notifications to subscribers. */
export interface Publisher {
	/** `make` creates the notification's result as JSON values; called once, and only if there are subscribers. */
	publish(topic: string, make: () => unknown): void;
}
