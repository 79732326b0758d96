// The modules of every relay and the modules of the core, for relay.ts, servers.ts and gauges.ts,
// which join them.

import type { Background } from "../shared/background.ts";
import type { Client } from "../shared/client.ts";
import type { BlobProofs } from "../shared/ethereum/blobProofs.ts";
import type { SignatureWork } from "../shared/ethereum/signatureWork.ts";
import type { Slots } from "../shared/ethereum/slots.ts";
import type { History } from "../shared/history.ts";
import type { EventStreams } from "../shared/http/eventStreams.ts";
import type { RateLimiter } from "../shared/http/rateLimit.ts";
import type { Route } from "../shared/http/routes.ts";
import type { DamagedEntries } from "../shared/kv/damagedEntries.ts";
import type { SharedStore } from "../shared/kv/port.ts";
import type { Metrics } from "../shared/metrics.ts";
import type { SyncWaits } from "../shared/syncWaits.ts";
import type { Traces } from "../shared/tracing/traces.ts";
import type { Uptime } from "../shared/uptime.ts";
import type { BlockLoop } from "./blockLoop.ts";
import type { Fanout } from "./broadcast/fanout.ts";
import type { DeliveryHealth } from "./broadcast/health.ts";
import type { Canaries } from "./canaries.ts";
import type { BeaconNode } from "./chain/beaconNode.ts";
import type { PolledFilters } from "./chain/filters.ts";
import type { ForkReader } from "./chain/forkReader.ts";
import type { NodeReader } from "./chain/nodeReader.ts";
import type { Passthrough } from "./chain/passthrough.ts";
import type { ChainTip, ChainUpdate } from "./domain/chain.ts";
import type { Recoveries } from "./domain/recoveries.ts";
import type { ChainRules } from "./domain/transactionRules.ts";
import type { Core, LocalCore } from "./edge/core.ts";
import type { EdgeServer } from "./edge/edgeServer.ts";
import type { HeadTracker } from "./inclusion/heads.ts";
import type { PublicPool } from "./inclusion/publicPool.ts";
import type { CoreNeeds } from "./ingress/methodDependencies.ts";
import type { SubscriptionHub } from "./ingress/subscriptions.ts";
import type { SearcherMarket } from "./market/market.ts";
import type { RelayMetrics } from "./metrics.ts";
import type { SenderRunner } from "./senderRunner.ts";
import type { LearntAbilities } from "./simulation/nodeAbilities.ts";
import type { SimulationQueue } from "./simulation/queue.ts";
import type { Transactions } from "./transactions/transactions.ts";

/** The modules of every relay, core or edge. */
export interface EdgeModules {
	readonly registry: Metrics;
	readonly metrics: RelayMetrics;
	readonly traces: Traces;
	readonly background: Background;
	readonly rules: ChainRules;
	/** For the relay's own calls. */
	readonly node: NodeReader;
	/** For clients' reads, which must not use up the connections that the relay itself needs. */
	readonly readNode: NodeReader;
	readonly reads: Passthrough;
	readonly slots: Slots;
	/** Limits the clients of this process. */
	readonly limiter: RateLimiter;
	readonly charge: (client: Client, weight: number) => void;
	readonly streams: EventStreams;
	/** The last processed head. */
	readonly tip: ChainTip;
	readonly forks: ForkReader;
	readonly heads: HeadTracker;
	/** Null without a consensus node. */
	readonly beacon: BeaconNode | null;
	readonly recoveries: Recoveries;
	/** The coinbase of a simulated block. */
	readonly feeRecipientOf: () => string;
	readonly subscriptions: SubscriptionHub;
	readonly filters: PolledFilters;
	/** Receives a change of the chain before it is processed. */
	readonly headCame: (update: ChainUpdate) => void;
	/** Notifies clients of a change of the chain. */
	readonly showUpdate: (update: ChainUpdate) => void;
	readonly core: Core<CoreNeeds>;
}

/** The modules of the core alone. */
export interface CoreModules {
	readonly kv: SharedStore;
	readonly damaged: DamagedEntries;
	readonly transactions: Transactions;
	readonly blobProofs: BlobProofs;
	readonly work: SignatureWork;
	readonly simulations: SimulationQueue;
	readonly abilities: LearntAbilities;
	readonly fanout: Fanout;
	readonly deliveries: DeliveryHealth;
	readonly market: SearcherMarket;
	readonly runner: SenderRunner;
	readonly publicPool: PublicPool;
	/** Null without a key. */
	readonly canaries: Canaries | null;
	readonly blockLoop: BlockLoop;
	readonly receipts: SyncWaits;
	/** The service by quarter of an hour. */
	readonly uptime: Uptime;
	/** The connections of the other relays; null if no other relay can reach the store. */
	readonly edges: EdgeServer | null;
	/** Figures over time. */
	readonly history: History;
	/** The core as this process's own clients use it. */
	readonly decides: LocalCore<CoreNeeds>;
	/** The routes of transactions and bundles. */
	readonly routes: readonly Route[];
}
