// Makes the parts that only the core has, and connects them in the order in which a transaction passes them. It contains no rules.

import { randomBytes } from "node:crypto";
import type { LookupFunction } from "node:net";
import { availableParallelism } from "node:os";
import type { Clock } from "../shared/clock.ts";
import { BlobProofs } from "../shared/ethereum/blobProofs.ts";
import { verifyBody } from "../shared/ethereum/signatures.ts";
import { SignatureWork } from "../shared/ethereum/signatureWork.ts";
import { unknownStatus } from "../shared/ethereum/statusRecord.ts";
import { DamagedEntries } from "../shared/kv/damagedEntries.ts";
import type { SharedStore } from "../shared/kv/port.ts";
import type { Logger } from "../shared/log.ts";
import { BID_LIMITS } from "./auction/bids.ts";
import { TABLE_LIMITS } from "./auction/bundleTable.ts";
import { partialPendingTransaction } from "./auction/feed.ts";
import { PLAIN_LIMITS } from "./auction/plainBundle.ts";
import { BlockLoop } from "./blockLoop.ts";
import { Fanout } from "./broadcast/fanout.ts";
import { DeliveryHealth } from "./broadcast/health.ts";
import { NodeAccounts } from "./chain/accounts.ts";
import { NodeReads } from "./chain/nodeReads.ts";
import type { RelayConfig } from "./config.ts";
import { mevShareEvent } from "./domain/mevShareEvent.ts";
import { isMined } from "./domain/record.ts";
import type { LocalCore } from "./edge/core.ts";
import { EdgeServer } from "./edge/edgeServer.ts";
import { FeedPublisher } from "./edge/feedPublisher.ts";
import { paymentReader } from "./inclusion/payments.ts";
import { receiptReader } from "./inclusion/receipts.ts";
import { bundleBlockView } from "./ingress/bundleViews.ts";
import type { CoreNeeds } from "./ingress/methodDependencies.ts";
import { coreCalls } from "./ingress/methods/index.ts";
import { readBehind } from "./ingress/ownReads.ts";
import { readVerifier } from "./ingress/readSignatures.ts";
import { createReceiptWaits } from "./ingress/receiptWaits.ts";
import { recordRoutes } from "./ingress/routes.ts";
import { DIGEST_LIMITS, SignedDigests } from "./ingress/signedDigests.ts";
import { createTopics } from "./ingress/topics.ts";
import { FIGURES_LIMITS } from "./market/figures.ts";
import { SearcherMarket } from "./market/market.ts";
import { coreState, type LastWrite } from "./operatorState.ts";
import type { CoreParts, EdgeParts } from "./parts.ts";
import { Pipeline } from "./pipeline.ts";
import { coreChecks } from "./readiness.ts";
import { SenderRunner } from "./senderRunner.ts";
import { receivedByFrames } from "./simulation/engines/traces.ts";
import { LearntAbilities } from "./simulation/nodeAbilities.ts";
import { SimulationQueue } from "./simulation/queue.ts";
import { ReadsBehind } from "./simulation/readsBehind.ts";
import { createSimulationMetrics } from "./simulation/simulationMetrics.ts";
import { createSimulator } from "./simulation/simulator.ts";
import { createAnnouncer } from "./status/announcer.ts";
import { eventHistory, eventMessage } from "./status/eventMessages.ts";
import { Followers } from "./status/followers.ts";
import { createLifeLog } from "./status/lifeLog.ts";
import { eventsReport, statusReport } from "./status/report.ts";
import { HISTORY_PAGE, SharedHistory } from "./status/sharedHistory.ts";
import { keptSigningKey } from "./store/identity.ts";
import { Transactions } from "./transactions/transactions.ts";

export interface CoreDependencies {
	/** Which this process has. */
	readonly kv: SharedStore;
	readonly lookup: LookupFunction;
	readonly clock: Clock;
	readonly log: Logger;
}

/** Outcomes of submissions that are not rejections. */
const TAKEN: ReadonlySet<string> = new Set(["accepted", "known", "cancels", "failed"]);
/** Items that may wait for one builder. */
const LANE_CAPACITY = 100_000;

/** Creates them, dependencies first. */
export async function makeCore(
	config: RelayConfig,
	edge: EdgeParts,
	{ kv, lookup, clock, log }: CoreDependencies,
): Promise<CoreParts> {
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
			onDelivery(builder, kind, answer, ms, hash, block) {
				deliveries.note(builder, answer, ms);
				metrics.delivery({ builder, kind, answer });
				if (answer === "unsent") return;
				metrics.deliverySeconds({ builder }, ms / 1000);
				if (traces.isOn) traces.past("relay.delivery", hash, ms, { builder, kind, block, outcome: answer });
			},
		},
	);
	const blobProofs = new BlobProofs({}, { clock });
	const lastWrite: LastWrite = { ms: null };
	const damaged = new DamagedEntries({ log: log.child("store") });
	const transactions = new Transactions(
		{ maxBytes: config.POOL_MAX_BYTES },
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
	const { records } = transactions;
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
			onLanded: (claimed, paid) => {
				metrics.landed({ fact: paid * 100n < claimed * 99n ? "short" : "landed" });
				metrics.bid({ of: "claimed" }, Number(claimed) / 1e18);
				metrics.bid({ of: "paid" }, Number(paid) / 1e18);
			},
			onLaterHead,
			background,
			clock,
			log: log.child("market"),
		},
	);
	const runner = new SenderRunner(
		{ txTtlBlocks: config.TX_TTL_BLOCKS, feeRecipientOf },
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
			onOutcome({ path, requestId }, outcome, hash) {
				metrics.submission({ path, outcome });
				if (TAKEN.has(outcome)) return;
				const request = requestId ?? undefined;
				log.info("transaction refused", { path, request, code: outcome, ...(hash && { hash }) });
			},
		},
	);
	const blockLoop = new BlockLoop(
		{ txTtlBlocks: config.TX_TTL_BLOCKS, slot: slots },
		{
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
			onHead(update) {
				simulations.setHead(update.head.number);
				abilities.headCame();
				edge.headCame(update);
				const next = heads.next();
				if (next !== null) transactions.convertBlobs(next.fork.sidecarVersion);
				fanout.setHead(update.head.number);
				market.onChainUpdate(update);
				edge.showUpdate(update);
			},
		},
	);
	const requestOf = (hash: string) => records.get(hash)?.transaction.requestId ?? undefined;
	const followers = new Followers({ log: log.child("followers") });
	records.subscribe((record, before, event) => {
		if (record.stage !== before) metrics.stage({ stage: record.stage });
		if (event.type === "refunded") metrics.refunded({}, Number(BigInt(event.paid)) / 1e18);
	});
	records.subscribe(followers.notify);
	records.subscribe(createLifeLog({ log: log.child("transactions"), requestOf }));
	records.subscribe(createAnnouncer({ publisher: subscriptions, view: statusReport }));
	const history = new SharedHistory({
		hintOf(hash) {
			const tx = records.get(hash)?.transaction.tx;
			return tx === undefined || tx.raw.length === 0 ? null : mevShareEvent(partialPendingTransaction(tx));
		},
	});
	records.subscribe(history.notify);
	simulationMetrics.watch(simulations);
	const isPublic = (hash: string): boolean => {
		const record = records.get(hash)?.record;
		return record !== undefined && (record.shared || isMined(record.stage));
	};
	const receipts = createReceiptWaits({
		...{ followers, records: transactions, clock },
		node: new NodeReads(edge.reads),
	});
	const check = coreChecks({ kv, transactions, deliveries });
	const verifyRead = readVerifier({ chainId: rules.chainId, name: config.PUBLIC_URL?.host ?? null, clock });
	const needs: CoreNeeds = {
		chainId: rules.chainId,
		pipeline,
		pending: transactions.pool,
		records: transactions,
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
		facts: () => ({ bidding: market.isOpen, simulation: abilities.report }),
		check,
		state: coreState({
			...{ kv, transactions, deliveries, fanout, market, abilities, edges, check, lastWrite },
			clock,
		}),
		builderNames: config.BUILDERS.map((row) => row.name),
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
		*shared() {
			for (const sender of transactions.pool.senders()) {
				const { ready, waiting } = transactions.pool.transactionsOf(sender);
				for (const { transaction } of [...ready, ...waiting]) {
					const { tx } = transaction;
					if (market.simulation.shared(tx.hash) === null) continue;
					yield { hash: tx.hash, text: JSON.stringify(partialPendingTransaction(tx)) };
				}
			}
		},
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
			blockLoop,
		},
		...{ receipts, edges, decides },
		routes: recordRoutes({
			records: transactions,
			bundles: market,
			refunds: transactions.refunds,
			clock,
			followers,
			views: {
				status: statusReport,
				unknown: unknownStatus,
				events: (record) => eventsReport(record, isPublic),
				history: (record) => eventHistory(record, isPublic),
				news: (record, event) => eventMessage(record, event, isPublic),
			},
			isOpen: (hash) => records.get(hash) !== undefined,
			verifySignature: verifyBody,
			verifyRead,
			streams: edge.streams,
			history,
			maxLimit: HISTORY_PAGE,
		}),
	};
}
