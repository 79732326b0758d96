// The composition root: creates all parts from the settings, in the order in which a transaction passes them, and connects
// them. It contains no rules.

import type { LookupFunction } from "node:net";
import { Background } from "../shared/background.ts";
import { type Clock, systemClock } from "../shared/clock.ts";
import { slotMsOf } from "../shared/config.ts";
import { BlobProofs } from "../shared/ethereum/blobProofs.ts";
import { Slots } from "../shared/ethereum/slots.ts";
import { connectionsOf } from "../shared/http/connections.ts";
import { Standby } from "../shared/http/standby.ts";
import { type OpenStore, openStore } from "../shared/kv/openStore.ts";
import {
	type Assembly,
	assembled,
	type Component,
	type Server,
	sequence,
	sink,
} from "../shared/lifecycle.ts";
import type { Logger } from "../shared/log.ts";
import { Metrics } from "../shared/metrics.ts";
import { EventLoopQueue } from "../shared/shares/scheduler.ts";
import { BID_LIMITS } from "./auction/bids.ts";
import { TABLE_LIMITS } from "./auction/bundleTable.ts";
import { PLAIN_LIMITS } from "./auction/plainBundle.ts";
import { BlockLoop } from "./blockLoop.ts";
import { Fanout } from "./broadcast/fanout.ts";
import { DeliveryHealth } from "./broadcast/health.ts";
import { NodeAccounts } from "./chain/accounts.ts";
import { BeaconNode } from "./chain/beaconNode.ts";
import { BlockLogs } from "./chain/blockLogs.ts";
import { Coinbases } from "./chain/coinbases.ts";
import { createHeadFeed, createLogFeed } from "./chain/feeds.ts";
import { PolledFilters } from "./chain/filters.ts";
import { ForkReader } from "./chain/forkReader.ts";
import { nextBlockReader } from "./chain/nextBlock.ts";
import { awaitNode } from "./chain/node.ts";
import { NodeReader } from "./chain/nodeReader.ts";
import { ToldChain } from "./chain/toldChain.ts";
import type { RelayConfig } from "./config.ts";
import { ChainTip } from "./domain/chain.ts";
import { Recoveries } from "./domain/recoveries.ts";
import { registerGauges } from "./gauges.ts";
import { HeadTracker } from "./inclusion/heads.ts";
import { paymentReader } from "./inclusion/payments.ts";
import { receiptReader } from "./inclusion/receipts.ts";
import { bundleBlockView } from "./ingress/bundleViews.ts";
import { SubscriptionHub } from "./ingress/subscriptions.ts";
import { WaitingServers } from "./ingress/waiting.ts";
import { SearcherMarket } from "./market/market.ts";
import { relayMetrics } from "./metrics.ts";
import type { RelayParts } from "./parts.ts";
import { Pipeline } from "./pipeline.ts";
import { NODE_TIMEOUT_MS, openResources, type Resources } from "./resources.ts";
import { SenderRunner } from "./senderRunner.ts";
import { createServers, doorOf } from "./servers.ts";
import { receivedByFrames } from "./simulation/engines/traces.ts";
import { LearntAbilities } from "./simulation/nodeAbilities.ts";
import { SimulationQueue } from "./simulation/queue.ts";
import { createSimulationMetrics } from "./simulation/simulationMetrics.ts";
import { createSimulator } from "./simulation/simulator.ts";
import { bindToChain, keptSigningKey } from "./store/identity.ts";
import { Transactions } from "./transactions/transactions.ts";

/** What a caller may supply. */
export interface RelayOverrides {
	readonly log: Logger;
	readonly version: string;
	/** Default: a new registry. */
	readonly metrics?: Metrics;
	readonly clock?: Clock;
	/** How long the relay keeps serving after /readyz has turned 503, in ms. */
	readonly drainMs?: number;
	/** Called when another process has taken over the store: this relay must stop. */
	readonly onLost?: () => void;
	readonly openStore?: OpenStore;
	/** Finds the addresses of the node and the builders. Default: by the system's name servers. */
	readonly lookup?: LookupFunction;
}

/** Outcomes of submissions that are not rejections. */
const TAKEN: ReadonlySet<string> = new Set(["accepted", "known", "cancels", "failed"]);
/** Items that may wait for one builder. */
const LANE_CAPACITY = 100_000;
/** Work for subscribers and polled filters in one turn of the event loop, in ms: less than what requests get. */
const NOTIFYING_MS = 5;
/** Balancers look at /readyz every second or two. */
const DRAIN_MS = 1_500;
/** How long the start waits for the first head while requests are held, in ms. */
const FIRST_HEAD_MS = 1_000;
/** How long a request waits for another relay to release the store, in ms. Short, since boost can use another relay. */
const HOLD_MS = 1_000;

/**
 * A relay that is not started yet. `start` waits for a node and a database that do not answer, with its port open; it rejects
 * when they are others than the settings say, and when the folder or a port is not available.
 */
export function createRelay(config: RelayConfig, overrides: RelayOverrides): Server {
	return assembled("relay", (stopped) => assemble(config, overrides, stopped));
}

async function assemble(
	config: RelayConfig,
	overrides: RelayOverrides,
	stopped: AbortSignal,
): Promise<Assembly> {
	const { log, clock = systemClock, onLost = () => {} } = overrides;
	const place = { ...connectionsOf(config), host: config.HOST, port: config.PORT, holdMs: HOLD_MS };
	const standby = new Standby(place, { clock, log });
	const metrics = overrides.metrics ?? new Metrics();
	const waiting = new WaitingServers(doorOf(config), { standby, registry: metrics, clock, log });
	let resources: Resources | null = null;
	try {
		resources = await openResources(config, overrides.openStore ?? openStore, {
			clock,
			onLost,
			stopped,
			onWait: (reason) => standby.start(reason),
			log: log.child("store"),
			lookup: overrides.lookup,
		});
		const parts = await makeParts(config, { ...overrides, clock, stopped, metrics, waiting }, resources);
		registerGauges(parts, clock);
		const ingress = createServers(
			config,
			{
				log,
				clock,
				waiting,
				version: overrides.version,
				readClient: resources.readClient,
				drainMs: overrides.drainMs ?? DRAIN_MS,
			},
			parts,
		);
		const components = inOrder(parts, ingress, { resources, waiting, clock, log });
		return { component: sequence("relay", components, { log, clock }), port: () => ingress.port };
	} catch (thrown) {
		await waiting.stop();
		await resources?.close();
		throw thrown;
	}
}

/** Creates everything behind the ingress, dependencies first. */
async function makeParts(
	config: RelayConfig,
	{
		log,
		clock,
		stopped,
		metrics: registry,
		waiting,
	}: RelayOverrides & { clock: Clock; stopped: AbortSignal; metrics: Metrics; waiting: WaitingServers },
	{ kv, client, lookup }: Resources,
): Promise<RelayParts> {
	const turns = new EventLoopQueue({ clock }, NOTIFYING_MS);
	const subscriptions = new SubscriptionHub({ turns, log: log.child("subscriptions") });
	const node = new NodeReader({ timeoutMs: NODE_TIMEOUT_MS }, { client, clock, log: log.child("node") });
	const onWait = (reason: string) => waiting.start(reason);
	const chain = await awaitNode(node, { chainId: config.CHAIN_ID, clock, log, onWait, stopped });
	waiting.goOn();
	await bindToChain(kv, chain.chainId, chain.genesisHash);
	const signingKey = config.SIGNING_KEY ?? (await keptSigningKey(kv, log));
	const metrics = relayMetrics(
		registry,
		config.BUILDERS.map((row) => row.name),
	);
	const background = new Background(
		{ onFault: (task) => metrics.taskFailed({ task }) },
		{ log: log.child("background") },
	);
	const onStep = (step: Parameters<typeof metrics.step>[0]["step"], seconds: number) =>
		metrics.step({ step }, seconds);
	const onLaterHead = () => heads.checkNow();

	const slots = new Slots(
		{ setMs: slotMsOf(config) },
		{
			clock,
			onLearnt(ms) {
				log.info("the time between blocks is learnt from the chain", { ms });
				// What it does with blocks of one second is asked only where there are such.
				if (ms < 1_000) background.run("abilities", () => abilities.learn());
			},
		},
	);
	const beacon =
		config.BEACON_URL === undefined
			? null
			: new BeaconNode(
					{ url: config.BEACON_URL, slot: slots },
					{
						clock,
						lookup,
						log: log.child("beacon"),
						onAttributes() {
							if (tip.refresh()) market.nextBlockChanged();
						},
					},
				);
	const attributesAfter = (hash: string) => beacon?.attributesAfter(hash) ?? null;
	const rules = { chainId: chain.chainId };
	const forks = new ForkReader(rules, { node, background, log: log.child("node") });
	const tip = new ChainTip(attributesAfter, forks.at);
	const accounts = new NodeAccounts({}, { node, background, clock });
	const inclusions = receiptReader({ node });
	const simulationMetrics = createSimulationMetrics(registry);
	const abilities = new LearntAbilities({
		node,
		slot: slots,
		clock,
		background,
		log: log.child("simulation"),
	});
	await abilities.learn();
	const onSurprise = () => abilities.doubt();
	const recoveries = new Recoveries();
	const simulator = createSimulator(abilities, {
		node,
		clock,
		recoveries,
		onRun: simulationMetrics.runs,
		onSurprise,
	});
	const simulations = new SimulationQueue({ slot: slots }, { simulator, clock, metrics: simulationMetrics });
	const deliveries = new DeliveryHealth({ slot: slots }, { clock });
	const fanout = new Fanout(
		{ builders: config.BUILDERS, signingKey, laneCapacity: LANE_CAPACITY },
		{
			clock,
			lookup,
			maySend: () => kv.isHeld,
			delivered: (hash, event) => transactions.delivered(hash, event),
			log: log.child("builders"),
			onDelivery(builder, kind, answer, ms) {
				deliveries.note(answer);
				metrics.delivery({ builder, kind, answer });
				if (answer !== "unsent") metrics.deliverySeconds({ builder }, ms / 1000);
			},
		},
	);
	const coinbases = new Coinbases();
	await Promise.all([forks.read(), coinbases.read(node, log.child("node"))]);
	const feeRecipientOf = () => config.FEE_RECIPIENT ?? coinbases.draw();
	const blobProofs = new BlobProofs({}, { clock });
	const transactions = new Transactions(
		{ maxBytes: config.POOL_MAX_BYTES },
		{
			kv,
			broadcaster: fanout,
			tip,
			clock,
			blobProofs,
			background,
			log,
			onChange: (sender, refresh) => runner.run(sender, "new", refresh),
			onWritten: (seconds) => onStep("store", seconds),
		},
	);
	const market = new SearcherMarket(
		{
			rules,
			feeRecipientOf,
			bidding: () => abilities.bidding,
			refundPercent: config.REFUND_PERCENT,
			bidsPerTarget: config.BIDS_PER_TARGET,
			limits: { bids: BID_LIMITS, table: TABLE_LIMITS, plain: PLAIN_LIMITS },
		},
		{
			transactions,
			accounts,
			tip,
			simulations,
			forkAt: forks.at,
			sender: fanout,
			payments: paymentReader({ node, received: receivedByFrames }),
			blobProofs,
			publisher: subscriptions,
			kv,
			view: bundleBlockView,
			onBundle: (kind, outcome) => metrics.bundle({ kind, outcome }),
			onPayment: (fact) => metrics.payment({ fact }),
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
			onStep,
		},
	);
	const pipeline = new Pipeline(
		{ rules, txTtlBlocks: config.TX_TTL_BLOCKS, cancelPolicy: config.CANCEL_POLICY },
		{
			transactions,
			accounts,
			tip,
			onLaterHead,
			blobProofs,
			clock,
			onStep,
			onOutcome(path, outcome, hash) {
				metrics.submission({ path, outcome });
				if (TAKEN.has(outcome)) return;
				log.info("transaction refused", { path, code: outcome, ...(hash && { hash }) });
			},
		},
	);
	const heads = new HeadTracker(
		{ pollMs: config.HEAD_POLL_MS, wsUrl: config.ETH_WS_URL },
		{
			node,
			clock,
			lookup,
			log: log.child("heads"),
			slots,
			recoveries,
			onDifference(ms) {
				if (ms === 0) log.info("this machine's clock agrees with the chain's again");
				else
					log.warn(`this machine's clock is ${ms > 0 ? "ahead of" : "behind"} the chain's`, {
						ms: Math.abs(ms),
					});
			},
			nextBlock: nextBlockReader({ slots }, { node, forks }),
		},
	);
	const told = new ToldChain({ slot: slots }, { clock });
	const feeds = { publisher: subscriptions, background };
	const headFeed = createHeadFeed({ ...feeds, node, log: log.child("heads") });
	const blockLogs = new BlockLogs({ node });
	const filters = new PolledFilters({ logs: blockLogs, turns, clock });
	const logFeed = createLogFeed({ ...feeds, logs: blockLogs, turns, log: log.child("logs") });
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
			onHead(update) {
				simulations.setHead(update.head.number);
				abilities.headCame();
				coinbases.blocksCame(update);
				beacon?.headCame(update.head.hash);
				const next = heads.next();
				if (next !== null) {
					forks.setNext(next);
					transactions.convertBlobs(next.fork.sidecarVersion);
				}
				fanout.setHead(update.head.number);
				market.onChainUpdate(update);
				headFeed.onHeads(told.onUpdate(update));
				filters.onUpdate(update);
				logFeed.onUpdate(update);
			},
		},
	);
	heads.subscribe((update) => blockLoop.onUpdate(update));
	transactions.records.subscribe((record, before, event) => {
		if (record.stage !== before) metrics.stage({ stage: record.stage });
		if (event.type === "refunded") metrics.refunded({}, Number(BigInt(event.paid)) / 1e18);
	});
	simulationMetrics.watch(simulations);
	return {
		kv,
		registry,
		metrics,
		background,
		rules,
		slots,
		tip,
		forks,
		heads,
		beacon,
		told,
		transactions,
		blobProofs,
		simulations,
		abilities,
		recoveries,
		feeRecipientOf,
		fanout,
		deliveries,
		market,
		runner,
		pipeline,
		blockLoop,
		subscriptions,
		filters,
	};
}

/** The components in the order in which they start; they stop in reverse order. */
function inOrder(
	parts: RelayParts,
	ingress: Component,
	{
		resources,
		waiting,
		clock,
		log,
	}: { resources: Resources; waiting: WaitingServers; clock: Clock; log: Logger },
): readonly Component[] {
	const { transactions, fanout, market, runner, simulations, background, heads, blockLoop, tip, beacon } =
		parts;
	const { blobProofs } = parts;
	return [
		// If the start fails before the ingress has taken over the ports, no request keeps waiting.
		sink("waiting", () => waiting.stop()),
		sink("store", () => resources.close()),
		blobProofs,
		sink("records", () => transactions.keeper.flush(true)),
		sink("builders", () => fanout.close()),
		{
			name: "pool",
			async start() {
				await transactions.load();
				await market.ledger.load();
				log.info("pending transactions restored", { count: transactions.pool.size });
			},
			async stop() {
				runner.stop();
				market.stop();
				transactions.keeper.stop();
				await simulations.stop();
				await background.join();
			},
		},
		...(beacon === null ? [] : [beacon]),
		heads,
		sink("blocks", async () => blockLoop.stop()),
		{
			name: "first head",
			async start() {
				// Requests that were held while another relay had the store can't be judged without a head.
				if (waiting.isListening) await tip.first({ clock, ms: FIRST_HEAD_MS });
			},
			stop: async () => {},
		},
		ingress,
	];
}
