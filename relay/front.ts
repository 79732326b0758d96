// Wires the ingress to the relay's parts and to the reads that are proxied to the node. It holds no rule.

import type { Clock } from "../shared/clock.ts";
import { verifyBody } from "../shared/ethereum/signatures.ts";
import { unknownStatus } from "../shared/ethereum/statusRecord.ts";
import { connectionsOf } from "../shared/http/connections.ts";
import type { Standby } from "../shared/http/standby.ts";
import type { JsonRpcClient } from "../shared/jsonrpc/client.ts";
import type { Logger } from "../shared/log.ts";
import type { Metrics } from "../shared/metrics.ts";
import type { DeliveryHealth } from "./broadcast/health.ts";
import { nextBlockReader } from "./chain/nextBlock.ts";
import { nodeReads } from "./chain/node.ts";
import { NodeReader } from "./chain/nodeReader.ts";
import { Passthrough } from "./chain/passthrough.ts";
import type { RelayConfig } from "./config.ts";
import type { ChainTip } from "./domain/chain.ts";
import type { Filters } from "./domain/ports.ts";
import { isMined } from "./domain/record.ts";
import type { ChainRules } from "./domain/transactionRules.ts";
import type { HeadTracker } from "./inclusion/heads.ts";
import { infoReport } from "./ingress/info.ts";
import { createIngress, type Ingress } from "./ingress/ingress.ts";
import { callerOf } from "./ingress/methodDependencies.ts";
import type { SubscriptionHub } from "./ingress/subscriptions.ts";
import type { MarketParts } from "./market/market.ts";
import type { RelayMetrics } from "./metrics.ts";
import type { Cancellations, Pipeline } from "./pipeline.ts";
import { readinessChecks } from "./readiness.ts";
import { NODE_TIMEOUT_MS } from "./resources.ts";
import { createCallMany } from "./simulation/callMany/callMany.ts";
import { createAnnouncer, createLifeLog, eventHistory, eventNews, Followers } from "./status/announcer.ts";
import { eventsReport, statusReport } from "./status/report.ts";
import type { TransactionDisk } from "./transactions/disk.ts";
import { MAX_PER_SENDER, type Pool } from "./transactions/pool.ts";
import type { TransactionRecords } from "./transactions/records.ts";

export interface FrontParts {
	readonly rules: ChainRules;
	/** The coinbase of a simulated block. */
	readonly feeRecipientOf: () => string;
	readonly pool: Pool;
	readonly records: TransactionRecords;
	readonly store: TransactionDisk;
	readonly isStoreHeld: () => boolean;
	readonly tip: ChainTip;
	readonly heads: HeadTracker;
	readonly deliveries: DeliveryHealth;
	readonly pipeline: Pipeline;
	readonly cancellations: Cancellations;
	readonly market: MarketParts;
	readonly subscriptions: SubscriptionHub;
	readonly filters: Filters;
	readonly registry: Metrics;
	readonly metrics: RelayMetrics;
	/** For reads of clients, which must not take the connections of the relay's own. */
	readonly readClient: JsonRpcClient;
}

export interface FrontOptions {
	readonly log: Logger;
	readonly clock: Clock;
	readonly version: string;
	/** How long it goes on serving after /readyz has turned 503, in ms. */
	readonly drainMs: number;
	/** Has the port until it starts. */
	readonly standby: Standby;
}

/** Makes the ingress; nothing listens yet. */
export function createFront(config: RelayConfig, options: FrontOptions, parts: FrontParts): Ingress {
	const { log, clock, version, drainMs, standby } = options;
	const { tip, heads, records, store, market } = parts;
	const readNode = new NodeReader({ timeoutMs: NODE_TIMEOUT_MS }, { client: parts.readClient, clock, log });
	const isPublic = (hash: string): boolean => {
		const record = records.get(hash)?.record;
		return record !== undefined && (record.shared || isMined(record.stage));
	};
	const followers = new Followers({ log: log.child("followers") });
	records.subscribe(followers.tell);
	records.subscribe(createLifeLog({ log: log.child("transactions") }));
	records.subscribe(createAnnouncer({ publisher: parts.subscriptions, view: statusReport }));
	const callMany = createCallMany(
		{
			rules: parts.rules,
			slotSeconds: config.SLOT_SECONDS,
			feeRecipientOf: parts.feeRecipientOf,
		},
		{
			node: readNode,
			nextBlock: nextBlockReader({ slotSeconds: config.SLOT_SECONDS }, { node: readNode }),
			shared: market.shared,
			clock,
		},
	);
	const reads = new Passthrough({}, { node: readNode, head: () => tip.head(), log: log.child("reads") });
	return createIngress(
		{
			host: config.HOST,
			port: config.PORT,
			searcherPort: config.SEARCHER_PORT,
			metricsPort: config.METRICS_PORT,
			metricsToken: config.METRICS_TOKEN,
			connections: connectionsOf(config),
			trustProxy: config.TRUST_PROXY,
			boostSecret: config.BOOST_SECRET,
			maxBodyBytes: config.MAX_BODY_BYTES,
			maxBatch: config.MAX_BATCH,
			rateLimitRps: config.RATE_LIMIT_RPS,
			drainMs,
			about: { title: "Leeward relay", version },
			info: infoReport(config, version, parts.rules.chainId, MAX_PER_SENDER, market.open),
		},
		{
			chainId: parts.rules.chainId,
			signatureHiding: config.SIGNATURE_HIDING,
			submitter: parts.pipeline,
			canceller: parts.cancellations,
			following: followers,
			pending: parts.pool,
			node: nodeReads(reads),
			reads: {
				weigh: (method) => reads.weigh(method),
				maxParamsSize: (method) => reads.maxParamsSize(method),
				call: (method, params, context) => reads.call(method, params, callerOf(context)),
			},
			callMany,
			market: market.market,
			bundles: market.bundles,
			subscriptions: parts.subscriptions,
			filters: parts.filters,
			subscriptionAliases: config.SUBSCRIPTION_ALIASES,
			builderNames: config.BUILDERS.map((row) => row.name),
			refundPercent: config.REFUND_PERCENT,
			records: {
				record: async (hash) => records.get(hash)?.record ?? (await store.settled(hash)),
			},
			views: {
				status: statusReport,
				unknown: unknownStatus,
				events: (record) => eventsReport(record, isPublic),
				history: (record) => eventHistory(record, isPublic),
				news: (record, event) => eventNews(record, event, isPublic),
			},
			checks: readinessChecks({
				isNodeWell: () => tip.head() !== null && !heads.isUnavailable,
				headAgeMs: () => heads.ageMs(),
				maxHeadAgeMs: (config.MAX_HEAD_AGE_S ?? 5 * config.SLOT_SECONDS) * 1000,
				isStoreWell: () => store.check(),
				isStoreHeld: parts.isStoreHeld,
				isDelivering: () => parts.deliveries.healthy,
			}),
			tip,
			isOwn: (hash) => records.get(hash) !== undefined,
			registry: parts.registry,
			onCall: parts.metrics.call,
			verifySignature: verifyBody,
			...{ clock, standby },
			log: log.child("ingress"),
		},
	);
}
