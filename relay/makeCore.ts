// Makes the core's own modules and connects them in the order in which a transaction passes them.
// It contains no rules.

import { randomBytes, randomInt } from "node:crypto";
import type { LookupFunction } from "node:net";
import { availableParallelism } from "node:os";
import type { Clock } from "../shared/clock.ts";
import { BlobProofs } from "../shared/ethereum/blobProofs.ts";
import { addressOfKey, verifyBody } from "../shared/ethereum/signatures.ts";
import { SignatureWork } from "../shared/ethereum/signatureWork.ts";
import { History } from "../shared/history.ts";
import { checkRunner } from "../shared/http/opsRoutes.ts";
import { DamagedEntries } from "../shared/kv/damagedEntries.ts";
import type { SharedStore } from "../shared/kv/port.ts";
import type { Logger } from "../shared/log.ts";
import { Uptime } from "../shared/uptime.ts";
import { BID_LIMITS } from "./auction/bids.ts";
import { TABLE_LIMITS } from "./auction/bundleTable.ts";
import { partialPendingTransaction } from "./auction/feed.ts";
import { PLAIN_LIMITS } from "./auction/plainBundle.ts";
import { BlockLoop } from "./blockLoop.ts";
import { Fanout } from "./broadcast/fanout.ts";
import { DeliveryHealth } from "./broadcast/health.ts";
import { Canaries } from "./canaries.ts";
import { NodeAccounts } from "./chain/accounts.ts";
import { NodeReads } from "./chain/nodeReads.ts";
import type { RelayConfig } from "./config.ts";
import { mevShareEvent } from "./domain/mevShareEvent.ts";
import { canBeSeen } from "./domain/record.ts";
import type { LocalCore } from "./edge/core.ts";
import { EdgeServer } from "./edge/edgeServer.ts";
import { FeedPublisher } from "./edge/feedPublisher.ts";
import { RelayReports } from "./edge/relayReports.ts";
import { coreFigures } from "./figures.ts";
import { paymentReader } from "./inclusion/payments.ts";
import { PublicPool } from "./inclusion/publicPool.ts";
import { receiptReader } from "./inclusion/receipts.ts";
import { conductSums, conductView } from "./ingress/builderConduct.ts";
import { bundleBlockView } from "./ingress/bundleViews.ts";
import type { CoreNeeds } from "./ingress/methodDependencies.ts";
import { coreCalls } from "./ingress/methods/index.ts";
import { readBehind } from "./ingress/ownReads.ts";
import { readVerifier } from "./ingress/readSignatures.ts";
import { createReceiptWaits } from "./ingress/receiptWaits.ts";
import { refundSums } from "./ingress/refundSums.ts";
import { recordRoutes } from "./ingress/routes.ts";
import { DIGEST_LIMITS, SignedDigests } from "./ingress/signedDigests.ts";
import { signedReceipts } from "./ingress/signedReceipts.ts";
import { createTopics } from "./ingress/topics.ts";
import { FIGURES_LIMITS } from "./market/figures.ts";
import { SearcherMarket } from "./market/market.ts";
import { countsBlocks, countsDeliveries, countsLanded, countsRecords } from "./metrics.ts";
import type { CoreModules, EdgeModules } from "./modules.ts";
import { coreState, type LastWrite, StageCounts } from "./operatorState.ts";
import { Pipeline } from "./pipeline.ts";
import { coreChecks, maxHeadAge, readinessChecks } from "./readiness.ts";
import { SenderRunner } from "./senderRunner.ts";
import { receivedByFrames } from "./simulation/engines/traces.ts";
import { LearntAbilities } from "./simulation/nodeAbilities.ts";
import { SimulationQueue } from "./simulation/queue.ts";
import { ReadsBehind } from "./simulation/readsBehind.ts";
import { createSimulationMetrics } from "./simulation/simulationMetrics.ts";
import { createSimulator } from "./simulation/simulator.ts";
import { createAnnouncer } from "./status/announcer.ts";
import { Followers } from "./status/followers.ts";
import { createLifeLog } from "./status/lifeLog.ts";
import { statusReport } from "./status/report.ts";
import { HISTORY_PAGE, SharedHistory } from "./status/sharedHistory.ts";
import { recordViews } from "./status/views.ts";
import { keptSigningKey } from "./store/identity.ts";
import { Transactions } from "./transactions/transactions.ts";

export interface CoreDependencies {
	/** The store that this process owns. */
	readonly kv: SharedStore;
	readonly lookup: LookupFunction;
	readonly clock: Clock;
	readonly log: Logger;
}

/** Items that may wait for one builder. */
const LANE_CAPACITY = 100_000;

/** Creates the modules, dependencies first. */
export async function makeCore(
	config: RelayConfig,
	edge: EdgeModules,
	{ kv, lookup, clock, log }: CoreDependencies,
): Promise<CoreModules> {
	const { registry, metrics, background, rules, node, slots, tip, forks, heads, recoveries } = edge;
	const { subscriptions, feeRecipientOf, core, charge, traces } = edge;
	const signingKey = config.SIGNING_KEY ?? (await keptSigningKey(kv, log));
	const onStep = (step: Parameters<typeof metrics.step>[0]["step"], seconds: number) =>
		metrics.step({ step }, seconds);
	const onLaterHead = () => heads.checkNow();
	const accounts = new NodeAccounts(
		{ timeoutMs: config.ACCOUNT_TIMEOUT_MS },
		{ node, background, clock, log: log.child("accounts") },
	);
	const inclusions = receiptReader({ node, chain: heads });
	const simulationMetrics = createSimulationMetrics(registry);
	const abilities = new LearntAbilities({
		node,
		slot: slots,
		clock,
		background,
		log: log.child("simulation"),
	});
	await abilities.learn();
	const simulator = createSimulator(abilities, {
		node,
		clock,
		recoveries,
		onRun: simulationMetrics.runs,
	});
	const simulations = new SimulationQueue({ slot: slots }, { simulator, clock, metrics: simulationMetrics });
	const deliveries = new DeliveryHealth({ slot: slots }, { clock });
	const threaded = config.SIGNATURE_THREAD && availableParallelism() > 1;
	const work = new SignatureWork({ threaded }, { clock, log: log.child("signatures") });
	const fanout = new Fanout(
		{ builders: config.BUILDERS, signingKey, laneCapacity: LANE_CAPACITY },
		{
			clock,
			lookup,
			work,
			maySend: () => kv.isHeld,
			delivered: (hash, event) => transactions.delivered(hash, event),
			log: log.child("builders"),
			onDelivery: countsDeliveries(metrics, deliveries, traces),
		},
	);
	const blobProofs = new BlobProofs({}, { clock });
	const canary = config.CANARY_KEY === undefined ? null : addressOfKey(config.CANARY_KEY);
	const lastWrite: LastWrite = { ms: null };
	const damaged = new DamagedEntries({ log: log.child("store") });
	const transactions = new Transactions(
		{ maxBytes: config.POOL_MAX_BYTES, txTtlBlocks: config.TX_TTL_BLOCKS, slot: slots, canary },
		{
			kv,
			damaged,
			broadcaster: fanout,
			tip,
			clock,
			blobProofs,
			background,
			log,
			onChange: (sender, refresh) => runner.run(sender, "new", refresh),
			onWritten(seconds, hash) {
				lastWrite.ms = seconds * 1_000;
				onStep("store", seconds);
				if (traces.isOn) traces.past("relay.store", hash, seconds * 1000, {});
			},
		},
	);
	const { records, conduct } = transactions;
	const edges =
		kv.term === null
			? null
			: new EdgeServer({ secret: kv.term.secret }, { clock, timeoutMs: config.CORE_TIMEOUT_MS, log });
	const market = new SearcherMarket(
		{
			rules,
			feeRecipientOf,
			secret: randomBytes(32),
			bidding: () => abilities.bidding,
			refundPercent: config.REFUND_PERCENT,
			bidsPerTarget: config.BIDS_PER_TARGET,
			limits: { bids: BID_LIMITS, table: TABLE_LIMITS, plain: PLAIN_LIMITS, figures: FIGURES_LIMITS },
		},
		{
			transactions,
			accounts,
			tip,
			simulations,
			forkAt: forks.at,
			sender: fanout,
			slot: slots,
			payments: paymentReader({ node, received: receivedByFrames }),
			blobProofs,
			publisher: edges === null ? subscriptions : new FeedPublisher({ subscriptions, edges, core }),
			kv,
			damaged,
			view: bundleBlockView,
			onBundle: (kind, outcome) => metrics.bundle({ kind, outcome }),
			onLanded: countsLanded(metrics),
			onLaterHead,
			background,
			clock,
			log: log.child("market"),
		},
	);
	const runner = new SenderRunner(
		{ feeRecipientOf },
		{
			transactions,
			accounts,
			inclusions,
			tip,
			simulations,
			broadcaster: fanout,
			searchers: market,
			background,
			clock,
			traces,
			onStep,
		},
	);
	const publicPool = new PublicPool(
		{ wsUrl: config.ETH_WS_URL, pollMs: config.HEAD_POLL_MS, slot: slots },
		{
			...{ node, lookup, clock, log: log.child("public mempool") },
			isWatched(hash) {
				const record = records.get(hash)?.record;
				return record !== undefined && canBeSeen(record);
			},
			onSeen: (hash, at) => transactions.seenInPublic(hash, at),
		},
	);
	const pipeline = new Pipeline(
		{ rules, txTtlBlocks: config.TX_TTL_BLOCKS, cancelPolicy: config.CANCEL_POLICY },
		{
			transactions,
			accounts,
			broadcaster: fanout,
			tip,
			onLaterHead,
			blobProofs,
			work,
			clock,
			traces,
			onStep,
			onOutcome: metrics.submission,
			log,
		},
	);
	const canaries =
		config.CANARY_KEY === undefined || canary === null
			? null
			: new Canaries(
					{
						...{ key: config.CANARY_KEY, address: canary, perDay: config.CANARY_PER_DAY },
						...{ chainId: rules.chainId, builders: fanout.names(), slot: slots },
					},
					{
						...{ pipeline, accounts, tip, background, clock, pool: transactions.pool },
						random: () => randomInt(2 ** 40) / 2 ** 40,
						log: log.child("canaries"),
					},
				);
	const blockLoop = new BlockLoop({
		transactions,
		accounts,
		inclusions,
		broadcaster: fanout,
		runner,
		tip,
		background,
		clock,
		log: log.child("blocks"),
		nextOf: () => heads.next(),
		confirm: () => kv.confirm(),
		onHead: [
			// Drop queued work of older blocks first, so that it delays nothing.
			({ head }) => simulations.setHead(head.number),
			({ head }) => fanout.setHead(head.number),
			() => abilities.headCame(),
			// Set the next block's coinbase and fork before any decision about it.
			edge.headCame,
			() => transactions.blobs.convert(heads.next()?.fork.sidecarVersion ?? 0),
			(update) => market.onChainUpdate(update),
			() => canaries?.headCame(),
			countsBlocks(
				metrics,
				(hash) => records.get(hash) !== undefined,
				(coinbase) => fanout.builtBy(coinbase),
			),
			// Notify clients when everything is processed.
			edge.showUpdate,
		],
	});
	const requestOf = (hash: string) => records.get(hash)?.transaction.requestId ?? undefined;
	const followers = new Followers({ log: log.child("followers") });
	records.subscribe(countsRecords(metrics, { builtBy: fanout.builtBy.bind(fanout), canary }));
	records.subscribe(followers.notify);
	records.subscribe(createLifeLog({ log: log.child("transactions"), requestOf }));
	records.subscribe(createAnnouncer({ publisher: subscriptions, view: statusReport }));
	const sharedHistory = new SharedHistory({
		hintOf(hash) {
			const tx = records.get(hash)?.transaction.tx;
			return tx === undefined || tx.raw.length === 0 ? null : mevShareEvent(partialPendingTransaction(tx));
		},
	});
	records.subscribe(sharedHistory.notify);
	simulationMetrics.watch(simulations);
	const receipts = createReceiptWaits({
		...{ followers, records: transactions, clock },
		node: new NodeReads(edge.reads),
	});
	const relays = new RelayReports({ clock });
	const stageCounts = new StageCounts(records, { clock });
	const builderNames = config.BUILDERS.map((row) => row.name);
	const figures = coreFigures(registry, builderNames, (stage) => stageCounts.counts[stage] ?? 0);
	const history = new History(figures, {
		clock,
		prepare: async () => void (await stageCounts.count()),
	});
	const check = coreChecks({ kv, transactions, deliveries });
	const runChecks = checkRunner(readinessChecks(maxHeadAge(config, slots), edge, null), { clock, log });
	const uptime = new Uptime({
		kv,
		look: async () => ((await runChecks()).every(([, { ok }]) => ok) ? "u" : "d"),
		clock,
		log: log.child("uptime"),
	});
	const verifyRead = readVerifier({ chainId: rules.chainId, name: config.PUBLIC_URL?.host ?? null, clock });
	const { receiptOf, signer: receiptSigner } = signedReceipts(
		{
			...{ chainId: rules.chainId, key: signingKey },
			...{ refundPercent: config.REFUND_PERCENT, cancelPolicy: config.CANCEL_POLICY },
		},
		{ builders: fanout, market, transactions },
	);
	const needs: CoreNeeds = {
		chainId: rules.chainId,
		pipeline,
		pending: transactions.pool,
		records: transactions,
		receiptOf,
		statusView: statusReport,
		receipts,
		market,
		bundles: market,
		digests: new SignedDigests(DIGEST_LIMITS, { tip }),
		verifyRead,
		sharedTransaction: (hash) => market.simulation.shared(hash),
		readBehind: readBehind({
			known: transactions,
			behind: new ReadsBehind({ node: edge.reads, tip, feeRecipientOf, clock }),
		}),
		facts: () => ({
			bidding: market.isOpen,
			simulation: abilities.report,
			receiptSigner,
			leaks: publicPool.isSeen ? "seen" : "unseen",
		}),
		check,
		conductDays: async () => (await conduct.all()).map(conductView),
		conductSums: async () => conductSums(await conduct.all()),
		state: coreState({
			...{ kv, transactions, deliveries, fanout, market, abilities, edges, check, lastWrite },
			...{ stageCounts, relays, clock },
		}),
		refundSums: refundSums({ refunds: transactions.refunds, builders: fanout }),
		history: () => history.report(),
		report: (one) => relays.note(one),
		builderNames,
		buildersOf: (path) => fanout.allowed(path),
		txTtlBlocks: config.TX_TTL_BLOCKS,
		refundPercent: config.REFUND_PERCENT,
		charge,
		clock,
	};
	const decides: LocalCore<CoreNeeds> = {
		needs,
		term: kv.term,
		follow: createTopics({ subscriptions, records: transactions, statusView: statusReport, bundles: market }),
		shared: () => market.sharedNow(),
	};
	edges?.open({ call: coreCalls(needs), follow: decides.follow, shared: decides.shared });
	return {
		...{
			kv,
			damaged,
			transactions,
			blobProofs,
			work,
			simulations,
			abilities,
			fanout,
			deliveries,
			market,
			runner,
			publicPool,
			canaries,
			blockLoop,
		},
		...{ receipts, edges, decides, history, uptime },
		routes: recordRoutes({
			records: transactions,
			bundles: market,
			refunds: transactions.refunds,
			clock,
			followers,
			views: recordViews(records),
			isOpen: (hash) => records.get(hash) !== undefined,
			verifySignature: verifyBody,
			verifyRead,
			streams: edge.streams,
			history: sharedHistory,
			maxLimit: HISTORY_PAGE,
			stats: config.PUBLIC_STATS ? { table: transactions.stats, conduct, uptime, tip, clock } : null,
		}),
	};
}
