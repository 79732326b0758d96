// Makes the servers of the relay: joins the ingress with the parts and with the reads that go to the node. It contains no rules.

import type { Clock } from "../shared/clock.ts";
import { verifyBody } from "../shared/ethereum/signatures.ts";
import type { SlotLength } from "../shared/ethereum/slots.ts";
import { unknownStatus } from "../shared/ethereum/statusRecord.ts";
import { connectionsOf } from "../shared/http/connections.ts";
import type { CheckResult, ReadinessCheck } from "../shared/http/opsRoutes.ts";
import type { JsonRpcClient } from "../shared/jsonrpc/client.ts";
import type { Logger } from "../shared/log.ts";
import { cutterFor } from "../shared/secrets.ts";
import { nextBlockReader } from "./chain/nextBlock.ts";
import { NodeReader } from "./chain/nodeReader.ts";
import { NodeReads } from "./chain/nodeReads.ts";
import { Passthrough } from "./chain/passthrough.ts";
import type { RelayConfig } from "./config.ts";
import { isMined } from "./domain/record.ts";
import { MAX_PER_SENDER } from "./domain/transaction.ts";
import { infoReport } from "./ingress/info.ts";
import { createIngress, type Ingress } from "./ingress/ingress.ts";
import { ownReads } from "./ingress/ownReads.ts";
import type { DoorOptions, WaitingServers } from "./ingress/waiting.ts";
import type { RelayParts } from "./parts.ts";
import { NODE_TIMEOUT_MS } from "./resources.ts";
import { createCallMany } from "./simulation/callMany/callMany.ts";
import { ReadsBehind } from "./simulation/readsBehind.ts";
import { createAnnouncer } from "./status/announcer.ts";
import { eventHistory, eventMessage } from "./status/eventMessages.ts";
import { Followers } from "./status/followers.ts";
import { createLifeLog } from "./status/lifeLog.ts";
import { eventsReport, statusReport } from "./status/report.ts";

export interface ServersOptions {
	readonly log: Logger;
	readonly clock: Clock;
	readonly version: string;
	/** How long the relay keeps serving after /readyz has turned 503, in ms. */
	readonly drainMs: number;
	/** Listens on the ports until the ingress starts. */
	readonly waiting: WaitingServers;
	/** For clients' reads, which must not use up the connections that the relay itself needs. */
	readonly readClient: JsonRpcClient;
}

/** Makes the ingress; nothing listens yet. */
export function createServers(config: RelayConfig, options: ServersOptions, parts: RelayParts): Ingress {
	const { log, clock, version, drainMs, waiting, readClient: client } = options;
	const { tip, rules, transactions, market, feeRecipientOf, subscriptions, pipeline, abilities, slots } =
		parts;
	const { records } = transactions;
	const readNode = new NodeReader({ timeoutMs: NODE_TIMEOUT_MS }, { client, clock, log });
	const isPublic = (hash: string): boolean => {
		const record = records.get(hash)?.record;
		return record !== undefined && (record.shared || isMined(record.stage));
	};
	const followers = new Followers({ log: log.child("followers") });
	records.subscribe(followers.notify);
	records.subscribe(createLifeLog({ log: log.child("transactions") }));
	records.subscribe(createAnnouncer({ publisher: subscriptions, view: statusReport }));
	const callMany = createCallMany(
		{ rules, feeRecipientOf },
		{
			node: readNode,
			forkAt: parts.forks.at,
			nextBlock: nextBlockReader({ slots }, { node: readNode, forks: parts.forks }),
			sharedTransaction: (hash) => market.simulation.shared(hash),
			recoveries: parts.recoveries,
			clock,
		},
	);
	const reads = new Passthrough(
		{},
		{
			node: readNode,
			head: () => tip.head(),
			told: parts.told,
			clock,
			log: log.child("reads"),
			isIncluded(hash) {
				const record = records.get(hash)?.record;
				return record !== undefined && isMined(record.stage);
			},
			cutter: cutterFor(config.ETH_RPC_URL, config.ETH_WS_URL, config.BEACON_URL),
		},
	);
	return createIngress(
		{
			...doorOf(config),
			drainMs,
			about: { title: "Leeward relay", version },
			info: () =>
				infoReport(config, {
					version,
					chainId: rules.chainId,
					maxPendingPerSender: MAX_PER_SENDER,
					bidding: market.isOpen,
					simulation: abilities.report,
					slotMs: slots.ms,
					fork: tip.next()?.fork.name ?? null,
					isPublished: tip.next()?.published !== undefined,
				}),
		},
		{
			chainId: rules.chainId,
			signatureHiding: config.SIGNATURE_HIDING,
			pipeline,
			followers,
			pending: transactions.pool,
			records: transactions,
			node: new NodeReads(reads),
			reads: ownReads({
				reads,
				known: transactions,
				behind: new ReadsBehind({ node: reads, tip, feeRecipientOf, clock }),
			}),
			recoveries: parts.recoveries,
			callMany,
			market,
			bundles: market,
			subscriptions,
			filters: parts.filters,
			subscriptionAliases: config.SUBSCRIPTION_ALIASES,
			builderNames: config.BUILDERS.map((row) => row.name),
			refundPercent: config.REFUND_PERCENT,
			views: {
				status: statusReport,
				unknown: unknownStatus,
				events: (record) => eventsReport(record, isPublic),
				history: (record) => eventHistory(record, isPublic),
				news: (record, event) => eventMessage(record, event, isPublic),
			},
			checks: readinessChecks(maxHeadAge(config, slots), parts),
			tip,
			isOwn: (hash) => records.get(hash) !== undefined,
			registry: parts.registry,
			onCall: parts.metrics.call,
			verifySignature: verifyBody,
			clock,
			waiting,
			log: log.child("ingress"),
		},
	);
}

/** The relay's ports and the limits of what comes in. */
export function doorOf(config: RelayConfig): DoorOptions {
	return {
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
	};
}

/** Slots and ms without a new head after which the relay is not ready. */
const MAX_AGE_SLOTS = 5;
const LEAST_MAX_AGE_MS = 5_000;

/** The age from which a head is too old, in ms. */
function maxHeadAge({ MAX_HEAD_AGE_S }: Pick<RelayConfig, "MAX_HEAD_AGE_S">, slot: SlotLength): () => number {
	if (MAX_HEAD_AGE_S !== undefined) return () => MAX_HEAD_AGE_S * 1_000;
	return () => Math.max(MAX_AGE_SLOTS * slot.ms, LEAST_MAX_AGE_MS);
}

/** The checks of /readyz: whether the relay can serve a submission now. */
export function readinessChecks(
	maxHeadAgeMs: () => number,
	{ tip, heads, kv, transactions, deliveries }: RelayParts,
): readonly ReadinessCheck[] {
	const verdict = (ok: boolean, reason: string): CheckResult => (ok ? { ok } : { ok, reason });
	const isNodeWell = () => tip.head() !== null && !heads.isUnavailable;
	return [
		{ name: "node", check: () => verdict(isNodeWell(), "the node does not answer") },
		{
			name: "head",
			check() {
				const result = verdict(heads.times.ageMs() <= maxHeadAgeMs(), "the head is too old");
				return { ...result, ...clockNote(heads.times.differenceMs()) };
			},
		},
		{
			name: "store",
			async check() {
				// Without the store's lock nothing is sent to builders.
				if (!kv.isHeld) return verdict(false, "the store does not answer, or is another relay's");
				return verdict(await transactions.keeper.isWritable(), "the last write failed");
			},
		},
		// Fails when there were deliveries in the last two slots and no builder answered any.
		{ name: "delivery", check: () => verdict(deliveries.healthy, "no builder answers") },
	];
}

/** A wrong clock makes nothing unready, but the operator should set it. */
function clockNote(differenceMs: number): { readonly note?: string } {
	if (differenceMs === 0) return {};
	const seconds = Math.round(Math.abs(differenceMs) / 1000);
	return {
		note: `this machine's clock is ${seconds} s ${differenceMs > 0 ? "ahead of" : "behind"} the chain's`,
	};
}
