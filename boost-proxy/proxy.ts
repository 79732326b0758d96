// The composition root: creates every part of boost from the settings and connects them.

import type { LookupFunction } from "node:net";
import { Background } from "../shared/background.ts";
import { type Clock, systemClock } from "../shared/clock.ts";
import { slotMsOf } from "../shared/config.ts";
import { BlobProofs } from "../shared/ethereum/blobProofs.ts";
import { Slots } from "../shared/ethereum/slots.ts";
import { History } from "../shared/history.ts";
import { connectionsOf } from "../shared/http/connections.ts";
import { Standby } from "../shared/http/standby.ts";
import { JsonRpcClient } from "../shared/jsonrpc/client.ts";
import { type OpenStore, openStore, warnOfClearText } from "../shared/kv/openStore.ts";
import type { SharedStore } from "../shared/kv/port.ts";
import {
	type Assembly,
	assembled,
	type Component,
	onStop,
	type Server,
	sequence,
} from "../shared/lifecycle.ts";
import type { Logger } from "../shared/log.ts";
import { Metrics } from "../shared/metrics.ts";
import { createLookup } from "../shared/outgoing/lookup.ts";
import type { Pages } from "../shared/pages/pages.ts";
import { ProcessFigures } from "../shared/processFigures.ts";
import { NO_TRACES, type Traces } from "../shared/tracing/traces.ts";
import { type ServiceState, Uptime } from "../shared/uptime.ts";
import { type Build, UNKNOWN_BUILD } from "../shared/version.ts";
import type { BoostConfig } from "./config.ts";
import { newVia } from "./domain/loops.ts";
import { NO_OTHERS } from "./domain/ports.ts";
import { boostFigures } from "./figures.ts";
import { Homes } from "./homes/homes.ts";
import { boostPages } from "./ingress/pages.ts";
import { ReportedChain } from "./ingress/reportedChain.ts";
import { ChainBinding } from "./journal/chain.ts";
import { boostMetrics, watchBoost } from "./metrics.ts";
import { createObserver } from "./reconcile/observer.ts";
import { Reconciler } from "./reconcile/reconciler.ts";
import { ChainTime } from "./rows/chainTime.ts";
import { Rows } from "./rows/rows.ts";
import { createServers } from "./servers.ts";
import { createClientTrust } from "./upstream/clientTrust.ts";
import { createReadyBlobs } from "./upstream/readyBlobs.ts";
import { createChainReads, createUpstreams } from "./upstreams.ts";

/** The log, and replacements for defaults. */
export interface ProxyOverrides {
	readonly log: Logger;
	/** Default: of an unknown commit. */
	readonly build?: Build;
	readonly metrics?: Metrics;
	/** Default: none. */
	readonly traces?: Traces;
	readonly clock?: Clock;
	/** In the place of DRAIN_SECONDS, in ms. */
	readonly drainMs?: number;
	readonly openStore?: OpenStore;
	/** Finds the addresses of upstreams. */
	readonly lookup?: LookupFunction;
}

/**
 * Deadline of one delivery by the reconciler, in ms. Two deliveries fit into the time for a
 * shutdown.
 */
const DELIVERY_MS = 3_500;
/** The share of a request's time that it may wait for a database that does not answer yet. */
const HELD_SHARE = 0.8;
const RECONCILE_TICK_MS = 1_000;
/** How long a row that the chain ended can be reopened. */
const REORG_SLOTS = 12;
/** Calls to the independent node, in ms. */
const NODE_TIMEOUT_MS = 3_000;

/**
 * Boost, not started yet. `start` rejects if the journal or the port is unavailable. Upstreams may
 * be unavailable.
 */
export function createProxy(config: BoostConfig, overrides: ProxyOverrides): Server {
	return assembled("boost", (stopped) => assemble(config, overrides, stopped));
}

async function assemble(
	config: BoostConfig,
	overrides: ProxyOverrides,
	stopped: AbortSignal,
): Promise<Assembly> {
	const { log, clock = systemClock } = overrides;
	warnOfClearText(config, log.child("store"));
	// While the journal can't be opened, requests wait as long as there is time to answer them.
	const holdMs = config.REQUEST_BUDGET_MS * HELD_SHARE;
	const pages = boostPages(config);
	const place = {
		...{ ...connectionsOf(config), host: config.HOST, port: config.PORT, holdMs },
		...{ assets: pages.routes, errorPage: pages.error },
	};
	const standby = new Standby(place, { clock, log });
	let kv: SharedStore | null = null;
	try {
		kv = await (overrides.openStore ?? openStore)("boost", config, {
			clock,
			// Boost instances share a database, and a folder's lock is never lost.
			onLost: () => {},
			stopped,
			onWait: (reason) => standby.start(reason),
			log: log.child("store"),
		});
		return await connect(config, { ...overrides, standby, pages }, kv);
	} catch (thrown) {
		await standby.stop();
		await kv?.close();
		throw thrown;
	}
}

async function connect(
	config: BoostConfig,
	{
		log,
		build = UNKNOWN_BUILD,
		metrics: registry = new Metrics(),
		traces = NO_TRACES,
		clock = systemClock,
		drainMs = config.DRAIN_SECONDS * 1_000,
		lookup = createLookup({}, { clock }),
		standby,
		pages,
	}: ProxyOverrides & { standby: Standby; pages: Pages },
	kv: SharedStore,
): Promise<Assembly> {
	const metrics = boostMetrics(registry);
	const background = new Background(
		{ onFault: (task) => metrics.taskFailed({ task }) },
		{ log: log.child("background") },
	);
	const slots = new Slots(
		{ setMs: slotMsOf(config) },
		{ clock, onLearnt: (ms) => log.info("learning the slot time from the chain", { ms }) },
	);
	const node =
		config.ETH_RPC_URL === undefined
			? null
			: new JsonRpcClient({ url: config.ETH_RPC_URL, timeoutMs: NODE_TIMEOUT_MS }, { clock, lookup });
	const via = newVia();
	const binding = await ChainBinding.open(kv);
	const chainId = (): bigint | null => binding.chainId;
	const chainTime = new ChainTime({ chainId }, { clock });
	const rows = await Rows.load(
		{
			get ttlMs() {
				return config.TX_TTL_BLOCKS * slots.ms;
			},
			get reorgMs() {
				return REORG_SLOTS * slots.ms;
			},
		},
		{ kv, clock, chainTime, log: log.child("journal"), onFault: () => metrics.journalFault({}) },
	);
	const reported = new ReportedChain({ slot: slots }, { clock });
	const blobProofs = new BlobProofs({}, { clock });
	const readyBlobs = createReadyBlobs({
		proofs: blobProofs,
		version: () => chainTime.forkIn(slots.ms).sidecarVersion,
		clock,
	});
	const pool = createUpstreams(config, {
		clock,
		lookup,
		via,
		node,
		slot: slots,
		metrics,
		traces,
		chainId,
		reported,
		readyBlobs,
		log: log.child("upstreams"),
	});
	const { upstreams } = pool;
	const chain = createChainReads({ node, upstreams });
	// A fallback may lie, or be on another chain by mistake. Its answers end no row.
	const ours = createChainReads({ node, upstreams: { relay: upstreams.relay, fallback: null } });
	const parts = { rows, upstreams, chain, clock, background };
	const { shared } = rows;
	const homes =
		shared === null
			? null
			: new Homes({
					...{ shared, rows, clock, background, log: log.child("homes") },
					reachesRelay: () => !upstreams.relay.breaker.isUnavailable,
				});
	const others = homes ?? NO_OTHERS;
	const reconciler = new Reconciler(
		{
			budgetMs: config.REQUEST_BUDGET_MS,
			deadlineMs: Math.min(config.REQUEST_BUDGET_MS / 2, DELIVERY_MS),
			tickMs: Math.min(config.PROBE_INTERVAL_MS, RECONCILE_TICK_MS),
		},
		{ ...parts, others, log: log.child("reconciler"), onHandover: metrics.handover },
	);
	const observer = createObserver(
		{ intervalMs: config.PROBE_INTERVAL_MS },
		{ ...parts, slot: slots, chain: ours, log: log.child("observer") },
	);
	const bind = () => binding.start({ chain: ours, clock, background, log: log.child("journal") });
	const clientTrust = createClientTrust({
		relay: upstreams.relay,
		background,
		clock,
		log: log.child("relay"),
	});
	const ofProcess = new ProcessFigures({ clock });
	const figures = new History({ ...ofProcess.figures, ...boostFigures(registry) }, { clock });
	const { relay, fallback } = upstreams;
	const look = (): ServiceState =>
		!relay.breaker.isUnavailable ? "u" : (fallback?.breaker.isUnavailable ?? true) ? "d" : "f";
	const uptime = new Uptime({ kv, look, clock, log: log.child("uptime") });
	for (const one of [relay, fallback]) one?.breaker.onChange(() => uptime.note(look()));
	const servers = createServers(config, {
		...parts,
		reconciler,
		observer,
		clientTrust,
		reported,
		registry,
		metrics,
		history: figures,
		traces,
		log,
		drainMs,
		standby,
		pages,
		others,
		store: kv,
		uptime,
		homes,
		chainId,
		fork: () => chainTime.forkIn(slots.ms),
		slot: slots,
		build,
		via,
		lookup,
	});
	watchBoost(registry, { upstreams, rows, homes, clock, websockets: () => servers.websockets });
	const components: readonly Component[] = [
		// Answers requests that still wait if the start fails. No effect once the server has the port.
		onStop("standby", () => standby.stop()),
		onStop("store", () => kv.close()),
		onStop("journal", () => rows.close()),
		onStop("node", async () => node?.close()),
		// Only a fallback needs blob proofs.
		...(upstreams.fallback === null ? [] : [blobProofs]),
		pool.component,
		onStop("work", () => background.join()),
		uptime,
		{ name: "chain", start: bind, stop: async () => binding.stop() },
		chainTime.follow(slots, { chain: ours, background, clock }),
		clientTrust,
		...(homes === null ? [] : [homes.component]),
		{ name: "reconciler", start: async () => reconciler.start(), stop: () => reconciler.stop() },
		observer,
		servers,
		ofProcess,
		figures,
	];
	return { component: sequence("boost", components, { log, clock }), port: () => servers.port };
}
