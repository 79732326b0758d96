// The ports through which the stages meet: each is declared for its consumer and has one to four methods. The
// composition root plugs the stages into them; the stages themselves never import each other.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { RequestLife } from "../../shared/http/callContext.ts";
import type { LogCriteria } from "../../shared/jsonrpc/logs.ts";
import type { BidRequest, BundleOutcome, OutgoingBundle, PlainBundleRequest } from "./bundle.ts";
import type { BundleDelivery, BundleRecord, Standing } from "./bundleStatus.ts";
import type { AccountState, Inclusion } from "./chain.ts";
import type { TxEvent } from "./events.ts";
import type { Stage, TransactionRecord } from "./record.ts";
import type { SimulationOutcome, SimulationRequest } from "./simulation.ts";
import type { CancelRequest, PrivateTransaction, Submission, SubmitOutcome } from "./transaction.ts";

/** Account states, each asked of the node once per head however many want it, clients taking turns. */
export interface Accounts {
	/**
	 * State of `address` after the tracked head. `client` (see clientOf) is whose turn it takes; `urgent`: before all that
	 * is not. Throws an UpstreamError when it can't be had within a second.
	 */
	get(address: string, client: string, urgent?: boolean): Promise<AccountState>;
	/**
	 * State of `address` after the tracked head or the node's own later one, asked of the node now: for a look before a
	 * refusal. Urgent. Throws an UpstreamError when it can't be had within a second.
	 */
	fresh(address: string, client: string): Promise<AccountState>;
	/** Tells it the new head; everything known of older ones is forgotten. */
	setHead(block: number): void;
}

/** Where transactions were mined, asked of the node. */
export interface InclusionReader {
	/** For each hash where it was mined in the canonical chain up to `maxBlock`, or null. Throws an UpstreamError. */
	inclusions(hashes: readonly string[], maxBlock: number): Promise<(Inclusion | null)[]>;
}

/** Simulations in the next block, when their turn comes. */
export interface Simulations {
	/** Like {@link Simulator.simulate}, when its turn comes. */
	simulate(request: SimulationRequest): Promise<readonly SimulationOutcome[]>;
}

/** Simulations in the next block, at once. */
export interface Simulator {
	/**
	 * Runs the transactions in order; answers one outcome each. Once one fails that must not, those behind it are absent.
	 * A node that fails is an outcome (`NODE_UNAVAILABLE`), never thrown.
	 */
	simulate(request: SimulationRequest): Promise<SimulationOutcome[]>;
}

/** Takes what happened. */
export interface EventSink {
	emit(hash: string, event: TxEvent): void;
}

/** Told of every event after it was folded. */
export type EventListener = (record: TransactionRecord, before: Stage, event: TxEvent) => void;

/** One transaction to be handed to builders. */
export interface Dispatch {
	readonly transaction: PrivateTransaction;
	/** The block it is for. */
	readonly block: number;
	/** The last block of its life: how long a private transaction may be kept. */
	readonly lastBlock: number;
}

/** The builders. */
export interface Broadcaster {
	/** Names of the builders that may have it by its path alone. */
	eligible(transaction: PrivateTransaction): readonly string[];
	/** Puts it into the lanes of `builders`; returns at once. */
	send(dispatch: Dispatch, builders: readonly string[]): void;
	/** Tells the builders in `builders` to forget it, in every form they understand; returns at once. */
	cancel(transaction: PrivateTransaction, builders: readonly string[], block: number): void;
}

/** Takes submissions. */
export interface Submitter {
	/** Resolves once the transaction is on disk, or is refused. Throws where the node or the store fails. */
	submit(submission: Submission): Promise<SubmitOutcome>;
}

/** Takes transactions back. */
export interface Canceller {
	/**
	 * True once the transaction is cancelled and that is on disk, by this request or an earlier one. False where it is not
	 * pending here, or is not the client's to cancel: which of these is not told. Throws where the store fails.
	 */
	cancel(request: CancelRequest): Promise<boolean>;
}

/** Follows single transactions. */
export interface Following {
	/**
	 * Calls `listener` for each event of the transaction from now on, behind the change of its record, which must not be
	 * kept; also of one that has not come yet. Answers what ends it.
	 */
	follow(hash: string, listener: (record: TransactionRecord, event: TxEvent) => void): () => void;
}

/** What the relay tells of its own pending transactions. */
export interface PendingReader {
	/** The pending transaction with this hash, or null. */
	pending(hash: string): PrivateTransaction | null;
	/** `base` raised over the address's pending nonces that follow it without a gap. */
	pendingNonce(address: string, base: bigint): bigint;
}

/** The records of transactions. */
export interface RecordReader {
	/** The record of a transaction that the relay holds or held, or null. */
	record(hash: string): Promise<TransactionRecord | null>;
}

/** For whom the node is asked. */
export interface Caller {
	/** Whose turn it takes: see clientOf. */
	readonly client: string;
	/** What waits for its turn is given up when the client has gone. */
	readonly life: Pick<RequestLife, "onGone">;
}

/** What the relay's own methods ask of the node. All throw RpcError or ForeignRpcError, ready for the client. */
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

/** Filters that clients poll. Whoever asks for one that its client does not have gets an RpcError. */
export interface Filters {
	/** Makes one, of logs or (null) of blocks; answers its id. Throws RpcError `limit` where its client has too many. */
	open(client: string, logs: LogCriteria | null): string;
	/** What has changed since it was asked last: hashes of new blocks, or logs. */
	changes(client: string, id: string): Promise<readonly unknown[]>;
	/** The object of `eth_getLogs` for a filter of logs. */
	query(client: string, id: string): object;
	/** Ends it; false where its client has none with this id. */
	close(client: string, id: string): boolean;
}

/** The builders, for bundles of more than one transaction. */
export interface BundleSender {
	/**
	 * Puts it into the lanes of those of `builders` that may have it, in the place of what went out under its name
	 * before; returns their names at once. One with a refund goes to builders that pay refunds alone.
	 */
	sendBundle(
		bundle: OutgoingBundle,
		builders: readonly string[],
		answered: BundleAnswered,
		/** Called when it leaves for a builder: one that is overtaken while it waits never does. */
		leaves?: () => void,
	): readonly string[];
	/** Tells `builders` to forget what went out under `name`; returns at once. */
	cancelBundle(name: string, block: number, builders: readonly string[], answered: BundleAnswered): void;
	/** All builders' names. */
	names(): readonly string[];
}

/** Told of each builder's answer. */
export type BundleAnswered = (delivery: BundleDelivery) => void;

/** Takes searchers' bundles. */
export interface Market {
	/** Resolves once the bid was simulated behind its target. Throws RpcError where the node fails. */
	bid(request: BidRequest): Promise<BundleOutcome>;
	/** Takes a plain bundle. Throws RpcError where the node fails. */
	submit(request: PlainBundleRequest): Promise<BundleOutcome>;
	/** Ends what the owner has under `uuid`; nothing happens where there is nothing. */
	cancel(owner: string, uuid: string): void;
}

/** What became of bundles. */
export interface BundleReader {
	/** The bundle that `owner` sent, or null: one of somebody else's is not told of. */
	bundle(owner: string, hash: string): BundleRecord | null;
	/** How the bidder of a bundle stands for the next block; null: as anybody, or it is a plain bundle. */
	standing(record: BundleRecord): Standing | null;
}

/** What searchers may see. */
export interface SharedTransactions {
	/** The pending transaction with this hash if it is shared with searchers, else null. */
	shared(hash: string): DecodedTransaction | null;
}

/** Takes what subscribers are told. */
export interface Publisher {
	/** `make` answers the notification's result as JSON values; it is called once, and only if somebody listens. */
	publish(topic: string, make: () => unknown): void;
}

/** A mined block, as far as refunds need it. */
export interface PaidBlock {
	readonly number: number;
	/** Seconds since the epoch. */
	readonly timestamp: number;
	/** Lower case. */
	readonly coinbase: string;
	/** Wei per gas. */
	readonly baseFee: bigint;
	/** In order; `to` is null for a creation, `value` in wei. */
	readonly transactions: readonly {
		readonly hash: string;
		readonly from: string;
		readonly to: string | null;
		readonly value: bigint;
	}[];
}

/** What was paid in blocks, asked of the node. */
export interface PaymentReader {
	/** The block, or null where the node does not have it. Throws an UpstreamError. */
	block(hash: string): Promise<PaidBlock | null>;
	/**
	 * What a mined transaction brought to the coinbase, in wei: its priority fees, and its transfers, internal ones
	 * included; null where the node can't trace it. Throws an UpstreamError.
	 */
	brought(
		hash: string,
		block: PaidBlock,
	): Promise<{ readonly fees: bigint; readonly transfers: bigint | null }>;
	/** The hash of the canonical block with this number, or null. Throws an UpstreamError. */
	canonicalHash(number: number): Promise<string | null>;
}
