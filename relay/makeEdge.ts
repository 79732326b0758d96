// Makes the modules of every relay and connects them: the node, the heads, reads and client
// subscriptions. It contains no rules.

import type { LookupFunction } from "node:net";
import { Background } from "../shared/background.ts";
import type { Client } from "../shared/client.ts";
import type { Clock } from "../shared/clock.ts";
import { slotMsOf } from "../shared/config.ts";
import { Slots } from "../shared/ethereum/slots.ts";
import { EventStreams } from "../shared/http/eventStreams.ts";
import { RateLimiter } from "../shared/http/rateLimit.ts";
import type { JsonRpcClient } from "../shared/jsonrpc/client.ts";
import type { Logger } from "../shared/log.ts";
import type { Metrics } from "../shared/metrics.ts";
import { cutterFor } from "../shared/secrets.ts";
import { EventLoopQueue } from "../shared/shares/scheduler.ts";
import type { Traces } from "../shared/tracing/traces.ts";
import { BeaconNode } from "./chain/beaconNode.ts";
import { BlockLogs } from "./chain/blockLogs.ts";
import { Coinbases } from "./chain/coinbases.ts";
import { createHeadFeed, createLogFeed } from "./chain/feeds.ts";
import { PolledFilters } from "./chain/filters.ts";
import { ForkReader } from "./chain/forkReader.ts";
import { nextBlockReader } from "./chain/nextBlock.ts";
import { NodeReader } from "./chain/nodeReader.ts";
import { Passthrough } from "./chain/passthrough.ts";
import { ReportedChain } from "./chain/reportedChain.ts";
import type { RelayConfig } from "./config.ts";
import { ChainTip, type ChainUpdate } from "./domain/chain.ts";
import { Recoveries } from "./domain/recoveries.ts";
import type { ChainRules } from "./domain/transactionRules.ts";
import { Core } from "./edge/core.ts";
import { HeadTracker } from "./inclusion/heads.ts";
import type { CoreNeeds } from "./ingress/methodDependencies.ts";
import { recoveredOf } from "./ingress/recoveredOf.ts";
import { SubscriptionHub } from "./ingress/subscriptions.ts";
import { relayMetrics } from "./metrics.ts";
import type { CoreModules, EdgeModules } from "./modules.ts";
import { NODE_TIMEOUT_MS } from "./resources.ts";

export interface EdgeDependencies {
	readonly rules: ChainRules;
	/** For the relay's own calls. */
	readonly node: NodeReader;
	/** For clients' reads. */
	readonly readClient: JsonRpcClient;
	readonly lookup: LookupFunction;
	readonly registry: Metrics;
	readonly traces: Traces;
	/** The core's modules, while this process is the core; else null. */
	readonly coreOf: () => CoreModules | null;
	readonly clock: Clock;
	readonly log: Logger;
}

/** For transactions that the relay holds, these polls are free once a second. */
const POLLED = new Set(["eth_getTransactionReceipt", "eth_getTransactionByHash"]);

/** Creates the modules, dependencies first. */
export async function makeEdge(config: RelayConfig, dependencies: EdgeDependencies): Promise<EdgeModules> {
	const { rules, node, readClient, lookup, registry, traces, coreOf, clock, log } = dependencies;
	const turns = new EventLoopQueue({ clock });
	const subscriptions = new SubscriptionHub({
		...{ turns, log: log.child("subscriptions") },
		onEmpty: (topic) => core.unfollow(topic),
		isNews: (topic, text) => core.isNews(topic, text),
	});
	const metrics = relayMetrics(
		registry,
		config.BUILDERS.map((row) => row.name),
	);
	const background = new Background(
		{ onFault: (task) => metrics.taskFailed({ task }) },
		{ log: log.child("background") },
	);
	const slots = new Slots(
		{ setMs: slotMsOf(config) },
		{
			clock,
			onLearnt(ms) {
				log.info("learning the slot time from the chain", { ms });
				// Only chains with such short slots need to know how the node handles blocks of one
				// second.
				if (ms < 1_000) background.run("abilities", async () => coreOf()?.abilities.learn());
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
							if (tip.refresh()) coreOf()?.market.nextBlockChanged();
						},
					},
				);
	const attributesAfter = (hash: string) => beacon?.attributesAfter(hash) ?? null;
	const forks = new ForkReader(rules, { node, background, log: log.child("node") });
	const tip = new ChainTip(attributesAfter, forks.at);
	const recoveries = new Recoveries();
	const coinbases = new Coinbases();
	await Promise.all([forks.read(), coinbases.read(node, log.child("node"))]);
	const heads = new HeadTracker(
		{ pollMs: config.HEAD_POLL_MS, wsUrl: config.ETH_WS_URL },
		{
			node,
			clock,
			lookup,
			log: log.child("heads"),
			slots,
			recoveries,
			chainId: rules.chainId,
			nextBlock: nextBlockReader({ slots }, { node, forks }),
		},
	);
	const isOwn = (hash: string): boolean =>
		coreOf()?.transactions.records.get(hash) !== undefined || core.hasSubmitted(hash);
	const limiter = new RateLimiter(
		{ rps: config.RATE_LIMIT_RPS },
		{
			clock,
			freePoll: (method, [hash]) =>
				POLLED.has(method) && typeof hash === "string" && isOwn(hash.toLowerCase()) ? hash : undefined,
		},
	);
	const charge = (client: Client, weight: number) => limiter.charge(client, weight);
	const core = new Core<CoreNeeds>({
		subscriptions,
		charge,
		recover: recoveredOf,
		traces,
		clock,
		timeoutMs: config.CORE_TIMEOUT_MS,
	});
	const reported = new ReportedChain({ slot: slots }, { clock });
	const feeds = { publisher: subscriptions, background };
	const headFeed = createHeadFeed({ ...feeds, node, log: log.child("heads") });
	const blockLogs = new BlockLogs({ node });
	const filters = new PolledFilters({ logs: blockLogs, turns, clock });
	const logFeed = createLogFeed({ ...feeds, logs: blockLogs, turns, log: log.child("logs") });
	const readNode = new NodeReader({ timeoutMs: NODE_TIMEOUT_MS }, { client: readClient, clock, log });
	const reads = new Passthrough(
		{},
		{
			node: readNode,
			head: () => tip.head(),
			reported,
			clock,
			log: log.child("reads"),
			cutter: cutterFor(config.ETH_RPC_URL, config.ETH_WS_URL, config.BEACON_URL),
		},
	);
	const headCame = (update: ChainUpdate): void => {
		coinbases.blocksCame(update);
		beacon?.headCame(update.head.hash);
		const next = heads.next();
		if (next !== null) forks.setNext(next);
	};
	const showUpdate = (update: ChainUpdate): void => {
		headFeed.onHeads(reported.onUpdate(update));
		filters.onUpdate(update);
		logFeed.onUpdate(update);
	};
	heads.subscribe(async (update) => {
		const decides = coreOf();
		if (decides !== null) return decides.blockLoop.onUpdate(update);
		tip.set(update.head, heads.next());
		headCame(update);
		showUpdate(update);
	});
	return {
		...{
			registry,
			metrics,
			traces,
			background,
			rules,
			node,
			readNode,
			reads,
			slots,
			tip,
			forks,
			heads,
			beacon,
			recoveries,
		},
		...{ limiter, charge, streams: new EventStreams({ clock }) },
		feeRecipientOf: () => config.FEE_RECIPIENT ?? coinbases.draw(),
		...{ subscriptions, filters, headCame, showUpdate, core },
	};
}
