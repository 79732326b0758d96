// What the relay's methods need of the process, and what they get of a request: two types, for the method files.

import type { Clock } from "../../shared/clock.ts";
import type { SignatureHiding } from "../../shared/ethereum/rpcObjects.ts";
import type { StatusRecord } from "../../shared/ethereum/statusRecord.ts";
import { type CallContext, type Client, clientOf } from "../../shared/http/callContext.ts";
import type { SyncWaits } from "../../shared/http/syncWaits.ts";
import type { JsonText } from "../../shared/jsonrpc/envelope.ts";
import { defineMethod } from "../../shared/jsonrpc/method.ts";
import type { CallMany } from "../domain/callMany.ts";
import type {
	BundleReader,
	Caller,
	Canceller,
	Filters,
	Following,
	Market,
	NodeReads,
	PendingReader,
	RecordReader,
	Submitter,
} from "../domain/ports.ts";
import type { TransactionRecord } from "../domain/record.ts";
import type { SubscriptionHub } from "./subscriptions.ts";

/** The parts of the relay that methods use. */
export interface MethodDependencies {
	readonly chainId: bigint;
	readonly signatureHiding: SignatureHiding;
	readonly submitter: Submitter;
	readonly canceller: Canceller;
	readonly pending: PendingReader;
	readonly records: RecordReader;
	/** A record as `GET /tx/{hash}` shows it. */
	readonly statusView: (record: TransactionRecord) => StatusRecord;
	readonly following: Following;
	readonly receipts: Pick<SyncWaits, "wait">;
	readonly node: NodeReads;
	readonly callMany: CallMany;
	readonly subscriptions: SubscriptionHub;
	readonly filters: Filters;
	/** Names that mean the subscription to pending transactions as well. */
	readonly subscriptionAliases: readonly string[];
	readonly market: Market;
	readonly bundles: BundleReader;
	/** Names of all builders: a searcher may choose among them. */
	readonly builderNames: readonly string[];
	/** Percent of what a backrun brings that its target's user gets. */
	readonly refundPercent: number;
	/** Takes `weight` more of the client's rate limit, for a call that turned out dear. */
	readonly charge: (client: Client, weight: number) => void;
	readonly clock: Clock;
	/** The OpenRPC document of all methods, made once. */
	readonly describe: () => JsonText;
}

/** Defines a method of the relay's. */
export const relayMethod = defineMethod<MethodDependencies, CallContext>();

/** For whom the node is asked what a call needs. */
export function callerOf({ client, life }: Pick<CallContext, "client" | "life">): Caller {
	return { client: clientOf(client.address), life };
}
