// The dependencies of the relay's JSON-RPC methods, and how a method is defined with them.

import { type Client, clientOf, isWebPage, UNKNOWN_ADDRESS } from "../../shared/client.ts";
import type { Clock } from "../../shared/clock.ts";
import { blobMs } from "../../shared/ethereum/blobProofs.ts";
import type { SignatureHiding } from "../../shared/ethereum/rpcObjects.ts";
import type { StatusRecord } from "../../shared/ethereum/statusRecord.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { countAuthorizations } from "../../shared/ethereum/transactionFields.ts";
import type { HistoryReport } from "../../shared/history.ts";
import type { CallContext } from "../../shared/http/callContext.ts";
import type { CheckResult } from "../../shared/http/opsRoutes.ts";
import type { JsonText } from "../../shared/jsonrpc/answers.ts";
import { defineMethod } from "../../shared/jsonrpc/method.ts";
import type { SyncWaits } from "../../shared/syncWaits.ts";
import type { PolledFilters } from "../chain/filters.ts";
import type { NodeReads } from "../chain/nodeReads.ts";
import type { CallMany } from "../domain/callMany.ts";
import type { SubmissionPath } from "../domain/endpoints.ts";
import type { Caller } from "../domain/ports.ts";
import type { TransactionRecord } from "../domain/record.ts";
import type { Recoveries } from "../domain/recoveries.ts";
import type { Requester } from "../domain/transaction.ts";
import type { Core } from "../edge/core.ts";
import type { RelayReport } from "../edge/relayReports.ts";
import type { SearcherMarket } from "../market/market.ts";
import type { Pipeline } from "../pipeline.ts";
import type { PoolReader } from "../transactions/pool.ts";
import type { Transactions } from "../transactions/transactions.ts";
import type { ConductSum, ConductView } from "./builderConduct.ts";
import type { Leaks } from "./info.ts";
import type { CoreState } from "./operators.ts";
import type { VerifyRead } from "./readSignatures.ts";
import type { RefundSumsPage } from "./refundSums.ts";
import type { SignedDigests } from "./signedDigests.ts";
import type { ReceiptOf } from "./signedReceipts.ts";
import type { SubscriptionHub } from "./subscriptions.ts";

/** The dependencies of the core's methods, which run in the process that has the transactions. */
export interface CoreNeeds {
	readonly chainId: bigint;
	readonly pipeline: Pick<Pipeline, "submit" | "cancel">;
	readonly pending: Pick<PoolReader, "pending" | "pendingNonce">;
	readonly records: Pick<Transactions, "record">;
	/** The signed statements about a transaction. */
	readonly receiptOf: ReceiptOf;
	/** A record as `GET /tx/{hash}` shows it. */
	readonly statusView: (record: TransactionRecord) => StatusRecord;
	readonly receipts: Pick<SyncWaits, "wait">;
	readonly market: Pick<SearcherMarket, "bid" | "submit" | "cancel">;
	readonly digests: Pick<SignedDigests, "check">;
	/** A searcher's own bundles and figures. */
	readonly bundles: Pick<SearcherMarket, "bundle" | "bundles" | "figuresOf" | "hasRecord" | "hasOwnRecord">;
	/** Checks the header of a live read. */
	readonly verifyRead: VerifyRead;
	/** The pending transaction with this hash if it is shared with searchers, else null. */
	readonly sharedTransaction: (hash: string) => DecodedTransaction | null;
	/**
	 * Answers a read behind the client's own pending transactions; null if it has none, or the node
	 * must answer alone.
	 */
	readonly readBehind: (method: string, params: readonly unknown[], context: CallContext) => Promise<unknown>;
	/** The core's part of `GET /info`. */
	readonly facts: () => CoreFacts;
	/** The core's checks for /readyz: its store, and its deliveries to builders. */
	readonly check: (name: "store" | "delivery") => Promise<CheckResult>;
	/** The core's part of the operator's page. */
	readonly state: () => Promise<CoreState>;
	/** A page of the operator's sums of refunds; `from`: its place, null for the first one. */
	readonly refundSums: (from: string | null) => Promise<RefundSumsPage>;
	/** The builders' conduct by day, and in sums, for the operator. */
	readonly conductDays: () => Promise<readonly ConductView[]>;
	readonly conductSums: () => Promise<readonly ConductSum[]>;
	/** Accepts the report of a relay. */
	readonly report: (report: RelayReport) => void;
	/** The core's figures over time. */
	readonly history: () => HistoryReport;
	/** Names of all builders; a searcher may choose among them. */
	readonly builderNames: readonly string[];
	/** Names of the builders that a path allows. */
	readonly buildersOf: (path: SubmissionPath) => readonly string[];
	/** Maximum number of blocks for which a transaction stays pending. */
	readonly txTtlBlocks: number;
	/** Percent of a backrun's payment that the target's user gets. */
	readonly refundPercent: number;
	/** Charges `weight` more to the client's rate limit, for a call that was expensive. */
	readonly charge: (client: Client, weight: number) => void;
	readonly clock: Clock;
}

/** The core's part of `GET /info`. */
export interface CoreFacts {
	/** Whether bids are accepted now. */
	readonly bidding: boolean;
	/** The simulation abilities of the node, as JSON. */
	readonly simulation: unknown;
	/** The address whose key signs the receipts. */
	readonly receiptSigner: string;
	/** Whether private transactions would be seen in the node's public mempool. */
	readonly leaks: Leaks;
}

/** The dependencies of the methods that every relay answers by itself. */
export interface MethodDependencies {
	readonly chainId: bigint;
	readonly signatureHiding: SignatureHiding;
	/** Runs the core's methods, and follows topics of the core. */
	readonly core: Pick<Core<CoreNeeds>, "run" | "follow">;
	readonly node: NodeReads;
	readonly callMany: CallMany;
	readonly subscriptions: SubscriptionHub;
	readonly filters: Pick<PolledFilters, "open" | "changes" | "query" | "close">;
	/** Other names of the subscription to pending transactions. */
	readonly subscriptionAliases: readonly string[];
	/** See {@link CoreNeeds}. */
	readonly charge: (client: Client, weight: number) => void;
	readonly recoveries: Pick<Recoveries, "each">;
	/** The OpenRPC document of all methods. */
	readonly describe: () => JsonText;
}

/** Defines a method that every relay answers by itself. */
export const relayMethod = defineMethod<MethodDependencies, CallContext>();

/** Defines a method that only the core answers. */
export const coreMethod = defineMethod<CoreNeeds, CallContext>();

/** This many authorizations (EIP-7702) cost one: recovering their signers may take 1 ms. */
const AUTHORIZATIONS_OF_WEIGHT = 16;

/** Charges the client for the authorizations of the raw transactions that it sends. */
export function chargeAuthorizations(
	raws: readonly Uint8Array[],
	client: Client,
	charge: MethodDependencies["charge"],
): void {
	let count = 0;
	for (const raw of raws) count += countAuthorizations(raw);
	if (count >= AUTHORIZATIONS_OF_WEIGHT) charge(client, Math.floor(count / AUTHORIZATIONS_OF_WEIGHT));
}

/**
 * This many ms of blob verification cost one. A client at its rate limit then keeps one core busy.
 */
const BLOB_MS_OF_WEIGHT = 10;

/** Charges the client for the blobs of the raw transactions that it sends. */
export function chargeBlobs(
	raws: readonly Uint8Array[],
	client: Client,
	charge: MethodDependencies["charge"],
): void {
	let ms = 0;
	for (const raw of raws) ms += blobMs(raw);
	if (ms > 0) charge(client, ms / BLOB_MS_OF_WEIGHT);
}

/** The client that a read of the node is charged to. */
export function callerOf({ client, life }: Pick<CallContext, "client" | "life">): Caller {
	return { client: clientOf(client.address), life };
}

/**
 * The network address that may see its own transactions, or null. All clients of an unknown proxy
 * share its address, and must not see each other's.
 */
export function readerOf(context: CallContext): string | null {
	return context.client.isProxy === true ? null : requesterOf(context).address;
}

/**
 * The address and signer that the request proves. Any web page can send requests from its visitor's
 * address. An untrusted boost instance sends the requests of all its clients from one address. In
 * both cases the address proves nothing.
 */
export function requesterOf({ transport, client, origin }: CallContext): Requester {
	const provesSubmitter =
		!isWebPage(origin) && client.address !== UNKNOWN_ADDRESS && client.unbelieved === undefined;
	return {
		address: provesSubmitter ? client.address : null,
		signer: transport === "http" ? client.signer : null,
	};
}
