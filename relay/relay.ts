// The composition root: creates all modules from the settings and connects them. It contains no
// rules.

import type { LookupFunction } from "node:net";
import { hostname } from "node:os";
import { type Clock, systemClock } from "../shared/clock.ts";
import { History } from "../shared/history.ts";
import { checkRunner } from "../shared/http/opsRoutes.ts";
import { type OpenStore, openStore, warnOfClearText } from "../shared/kv/openStore.ts";
import type { SharedStore } from "../shared/kv/port.ts";
import { HolderReader } from "../shared/kv/postgres/holder.ts";
import type { EntryPair } from "../shared/kv/salvage.ts";
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
import { problemsOf } from "../shared/problems.ts";
import { ProcessFigures } from "../shared/processFigures.ts";
import { NO_TRACES, type Traces } from "../shared/tracing/traces.ts";
import { type Build, UNKNOWN_BUILD } from "../shared/version.ts";
import { awaitNode } from "./chain/node.ts";
import { NodeReader } from "./chain/nodeReader.ts";
import type { RelayConfig } from "./config.ts";
import { CoreRole } from "./coreRole.ts";
import { ASIDE, RECORD, SUBMISSION } from "./domain/storeKeys.ts";
import { CoreFinder } from "./edge/coreFinder.ts";
import { CoreRequests } from "./edge/coreRequests.ts";
import { edgeFigures } from "./figures.ts";
import { registerCoreGauges, registerEdgeGauges } from "./gauges.ts";
import type { Ingress } from "./ingress/ingress.ts";
import { WaitingServers } from "./ingress/waiting.ts";
import { makeCore } from "./makeCore.ts";
import { makeEdge } from "./makeEdge.ts";
import type { EdgeModules } from "./modules.ts";
import { reportsToCore } from "./operatorState.ts";
import { maxHeadAge, readinessChecks } from "./readiness.ts";
import { NODE_TIMEOUT_MS, openResources, type Resources } from "./resources.ts";
import { createServers, serverOptionsOf } from "./servers.ts";
import { bindToChain } from "./store/identity.ts";

/** The dependencies that a caller may supply. */
export interface RelayOverrides {
	readonly log: Logger;
	/** Default: a build of unknown commit. */
	readonly build?: Build;
	/** Default: a new registry. */
	readonly metrics?: Metrics;
	/** Default: none. */
	readonly traces?: Traces;
	readonly clock?: Clock;
	/** Replaces DRAIN_SECONDS, in ms. */
	readonly drainMs?: number;
	/** Called when another process has taken over the store: this relay must stop. */
	readonly onLost?: () => void;
	readonly openStore?: OpenStore;
	/**
	 * Finds the addresses of the node, the builders and the core. Default: the system's name
	 * servers.
	 */
	readonly lookup?: LookupFunction;
}

/** If a submission has lost its record, its user may have cancelled it. */
export const STORE_PAIR: EntryPair = { first: SUBMISSION, second: RECORD, aside: ASIDE };

/** How long the start waits for the first head while requests wait, in ms. */
const FIRST_HEAD_MS = 1_000;

/**
 * A relay that is not started yet. `start` waits for a node that does not answer, with its port
 * open. It rejects if the node or the store is not the one in the settings. It also rejects if the
 * folder or a port is not available.
 */
export function createRelay(config: RelayConfig, overrides: RelayOverrides): Server {
	return assembled("relay", (stopped) => assemble(config, overrides, stopped));
}

async function assemble(
	config: RelayConfig,
	overrides: RelayOverrides,
	stopped: AbortSignal,
): Promise<Assembly> {
	const { log, clock = systemClock, onLost = () => {}, traces = NO_TRACES } = overrides;
	warnOfClearText(config, log.child("store"));
	const registry = overrides.metrics ?? new Metrics();
	const waiting = new WaitingServers(serverOptionsOf(config), { registry, clock, log });
	const resources = openResources(config, { clock, lookup: overrides.lookup });
	const { lookup, readClient } = resources;
	const open = (onWait: (reason: string) => Promise<void>, signal: AbortSignal) =>
		(overrides.openStore ?? openStore)("relay", config, {
			...{ clock, onLost, onWait, stopped: signal },
			address: config.INTERNAL_URL,
			log: log.child("store"),
		});
	const reader = readerOf(config, clock);
	let opened: SharedStore | null = null;
	try {
		const node = new NodeReader(
			{ timeoutMs: NODE_TIMEOUT_MS },
			{ client: resources.client, clock, log: log.child("node") },
		);
		const onWait = (reason: string) => waiting.start(reason);
		// Opened first, so that a fault of the store shows even while the node is unavailable.
		if (reader === null) opened = await open(onWait, stopped);
		else await reader.tryOut();
		const chain = await awaitNode(node, { chainId: config.CHAIN_ID, clock, log, onWait, stopped });
		waiting.goOn();
		const coreOf = () => role.modules;
		const rules = { chainId: chain.chainId };
		const edgeNeeds = { rules, node, readClient, lookup, registry, traces, coreOf, clock, log };
		const edge = await makeEdge(config, edgeNeeds);
		const role = new CoreRole({
			edge,
			open: (onStoreWait, signal) => (opened === null ? open(onStoreWait, signal) : Promise.resolve(opened)),
			async make(kv) {
				await bindToChain(kv, chain.chainId, chain.genesisHash);
				const modules = await makeCore(config, edge, { kv, lookup, clock, log });
				registerCoreGauges(registry, modules, clock);
				return modules;
			},
			onLost,
			clock,
			log,
		});
		const finder =
			reader === null
				? null
				: new CoreFinder({
						core: edge.core,
						reader,
						lookup,
						clock,
						timeoutMs: config.CORE_TIMEOUT_MS,
						log: log.child("core"),
					});
		registerEdgeGauges(edge, finder, coreOf);
		const requests = new CoreRequests({ clock, lookup });
		const { build = UNKNOWN_BUILD, drainMs = config.DRAIN_SECONDS * 1_000 } = overrides;
		const checks = readinessChecks(maxHeadAge(config, edge.slots), edge, finder);
		const runChecks = checkRunner(checks, { clock, log });
		const ofProcess = new ProcessFigures({ clock });
		const history = new History({ ...ofProcess.figures, ...edgeFigures(registry) }, { clock });
		const name = (): string => `${hostname()}:${ingress.port}`;
		const options = {
			log,
			clock,
			build,
			drainMs,
			waiting,
			coreOf,
			finder,
			requests,
			name,
			history,
			checks,
			runChecks,
		};
		const ingress = createServers(config, options, edge);
		const own = async () => ({
			name: name(),
			version: build.version,
			head: edge.tip.head()?.number ?? null,
			subscriptions: edge.subscriptions.size,
			problems: problemsOf(await runChecks()).map(({ text }) => text),
		});
		const components = [
			...inOrder(edge, { role, finder, requests, ingress, resources, waiting, clock }),
			...[ofProcess, history],
			// No other relay can reach another store.
			...(finder === null ? [] : [reportsToCore(own, { core: edge.core, clock })]),
		];
		return { component: sequence("relay", components, { log, clock }), port: () => ingress.port };
	} catch (thrown) {
		await waiting.stop();
		await resources.close();
		await opened?.close();
		await reader?.close();
		throw thrown;
	}
}

/**
 * Reads which relay owns the store in the database; null without a database, since then this
 * process owns it.
 */
function readerOf({ DATABASE_URL: url, DATABASE_VERIFY: verify }: RelayConfig, clock: Clock) {
	return url === undefined
		? null
		: new HolderReader({ url, verify, name: "relay", store: "relay" }, { clock });
}

interface Ordered {
	readonly role: CoreRole;
	readonly finder: CoreFinder | null;
	readonly requests: CoreRequests;
	readonly ingress: Ingress;
	readonly resources: Resources;
	readonly waiting: WaitingServers;
	readonly clock: Clock;
}

/** The components in the order in which they start; they stop in reverse order. */
function inOrder(
	{ heads, tip, beacon }: EdgeModules,
	{ role, finder, requests, ingress, resources, waiting, clock }: Ordered,
): readonly Component[] {
	const serving: readonly Component[] = [
		{
			name: "first head",
			async start() {
				// Requests that waited meanwhile can't be judged without a head.
				if (waiting.isListening) await tip.first({ clock, ms: FIRST_HEAD_MS });
			},
			stop: async () => {},
		},
		ingress,
	];
	const following: readonly Component[] = [
		...(beacon === null ? [] : [beacon]),
		heads,
		onStop("blocks", async () => role.modules?.blockLoop.stop()),
	];
	// If the start fails before the ingress takes over the ports, no request keeps waiting.
	const first = [onStop("waiting", () => waiting.stop()), onStop("node", () => resources.close())];
	if (finder === null) return [...first, role, ...following, ...serving];
	return [
		...first,
		onStop("requests", () => requests.close()),
		...following,
		finder,
		role,
		...serving,
		// Stops before clients are sent away, so that the next core begins at once. Until its own
		// end, this relay is then an edge of that core.
		onStop("core", () => {
			ingress.leave();
			return role.stop();
		}),
	];
}
