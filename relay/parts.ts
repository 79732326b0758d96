// The parts of a relay that is made (relay.ts), for its servers (servers.ts).

import type { Background } from "../shared/background.ts";
import type { BlobProofs } from "../shared/ethereum/blobProofs.ts";
import type { Slots } from "../shared/ethereum/slots.ts";
import type { SharedStore } from "../shared/kv/port.ts";
import type { Metrics } from "../shared/metrics.ts";
import type { BlockLoop } from "./blockLoop.ts";
import type { Fanout } from "./broadcast/fanout.ts";
import type { DeliveryHealth } from "./broadcast/health.ts";
import type { BeaconNode } from "./chain/beaconNode.ts";
import type { PolledFilters } from "./chain/filters.ts";
import type { ForkReader } from "./chain/forkReader.ts";
import type { ToldChain } from "./chain/toldChain.ts";
import type { ChainTip } from "./domain/chain.ts";
import type { Recoveries } from "./domain/recoveries.ts";
import type { ChainRules } from "./domain/transactionRules.ts";
import type { HeadTracker } from "./inclusion/heads.ts";
import type { SubscriptionHub } from "./ingress/subscriptions.ts";
import type { SearcherMarket } from "./market/market.ts";
import type { RelayMetrics } from "./metrics.ts";
import type { Pipeline } from "./pipeline.ts";
import type { SenderRunner } from "./senderRunner.ts";
import type { LearntAbilities } from "./simulation/nodeAbilities.ts";
import type { SimulationQueue } from "./simulation/queue.ts";
import type { Transactions } from "./transactions/transactions.ts";

/** As far as the servers, the gauges, and the order of start and stop need them. */
export interface RelayParts {
	readonly kv: SharedStore;
	readonly registry: Metrics;
	readonly metrics: RelayMetrics;
	readonly background: Background;
	readonly rules: ChainRules;
	readonly slots: Slots;
	/** The head that was worked off. */
	readonly tip: ChainTip;
	readonly forks: ForkReader;
	readonly heads: HeadTracker;
	/** Null without a consensus node. */
	readonly beacon: BeaconNode | null;
	readonly told: ToldChain;
	readonly transactions: Transactions;
	readonly blobProofs: BlobProofs;
	readonly simulations: SimulationQueue;
	readonly abilities: LearntAbilities;
	readonly recoveries: Recoveries;
	/** The coinbase of a simulated block. */
	readonly feeRecipientOf: () => string;
	readonly fanout: Fanout;
	readonly deliveries: DeliveryHealth;
	readonly market: SearcherMarket;
	readonly runner: SenderRunner;
	readonly pipeline: Pipeline;
	readonly blockLoop: BlockLoop;
	readonly subscriptions: SubscriptionHub;
	readonly filters: PolledFilters;
}
