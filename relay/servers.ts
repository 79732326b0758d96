// Makes the servers of the relay: joins the ingress with the modules and with the node's reads. It
// contains no rules.

import type { Clock } from "../shared/clock.ts";
import { hexToBytes } from "../shared/ethereum/hex.ts";
import { verifyBody } from "../shared/ethereum/signatures.ts";
import { type DecodedTransaction, decodeTransaction } from "../shared/ethereum/transaction.ts";
import type { History } from "../shared/history.ts";
import { connectionsOf } from "../shared/http/connections.ts";
import { EventStreams } from "../shared/http/eventStreams.ts";
import { jsonAnswer } from "../shared/http/messages.ts";
import type { checkRunner, ReadinessCheck } from "../shared/http/opsRoutes.ts";
import { RpcError } from "../shared/jsonrpc/errors.ts";
import type { Logger } from "../shared/log.ts";
import { problemsOf } from "../shared/problems.ts";
import type { Build } from "../shared/version.ts";
import { nextBlockReader } from "./chain/nextBlock.ts";
import { NodeReads } from "./chain/nodeReads.ts";
import type { RelayConfig } from "./config.ts";
import { hasRecords } from "./domain/builder.ts";
import { MAX_PER_SENDER } from "./domain/transaction.ts";
import type { CoreFinder } from "./edge/coreFinder.ts";
import type { CoreRequests } from "./edge/coreRequests.ts";
import type { ConductSum, ConductView } from "./ingress/builderConduct.ts";
import { type InfoFacts, infoReport } from "./ingress/info.ts";
import { createIngress, type Ingress } from "./ingress/ingress.ts";
import type { CoreFacts } from "./ingress/methodDependencies.ts";
import {
	core_conductDays,
	core_conductSums,
	core_facts,
	core_refundSums,
	core_sharedTransaction,
} from "./ingress/methods/betweenRelays.ts";
import { FEED_STREAM_LIFE_MS, FEED_STREAM_RETRY_MS, mevShareStream } from "./ingress/mevShareStream.ts";
import { coreProblems, type RelayState } from "./ingress/operators.ts";
import { OWN_CALL } from "./ingress/ownCall.ts";
import { ownReads } from "./ingress/ownReads.ts";
import { STOPPING } from "./ingress/receiptWaits.ts";
import type { RefundSumsPage } from "./ingress/refundSums.ts";
import { recordRoutesOf } from "./ingress/routes.ts";
import type { PublicServerOptions, WaitingServers } from "./ingress/waiting.ts";
import type { CoreModules, EdgeModules } from "./modules.ts";
import { askCoreHistory, askCoreState, nodeState } from "./operatorState.ts";
import { createCallMany } from "./simulation/callMany/callMany.ts";

export interface ServersOptions {
	readonly log: Logger;
	readonly clock: Clock;
	readonly build: Build;
	/** Time over which websockets are closed once /readyz is 503, in ms; see drainServers. */
	readonly drainMs: number;
	/** Listens on the ports until the ingress starts. */
	readonly waiting: WaitingServers;
	/** The core's modules, while this process is the core; else null. */
	readonly coreOf: () => CoreModules | null;
	/** Finds the core; null if no other relay can reach the store. */
	readonly finder: CoreFinder | null;
	/** Asks the core by HTTP. */
	readonly requests: CoreRequests;
	/** Host and port, by which the core's reports call this relay. */
	readonly name: () => string;
	/** The checks of /readyz, and what runs them for the operator. */
	readonly checks: readonly ReadinessCheck[];
	readonly runChecks: ReturnType<typeof checkRunner>;
	/** This process's own figures over time. */
	readonly history: History;
}

/** Makes the ingress; nothing listens yet. */
export function createServers(config: RelayConfig, options: ServersOptions, edge: EdgeModules): Ingress {
	const { log, clock, build, drainMs, waiting, coreOf, finder, requests, name, history, checks, runChecks } =
		options;
	const { tip, rules, subscriptions, slots, core, limiter, readNode, reads } = edge;
	const feedStreams = new EventStreams(
		{ clock },
		{ lifeMs: FEED_STREAM_LIFE_MS, retryMs: FEED_STREAM_RETRY_MS },
	);
	const streams = (): number => edge.streams.size + requests.streams + feedStreams.size;
	const callMany = createCallMany(
		{ rules, feeRecipientOf: edge.feeRecipientOf },
		{
			node: readNode,
			forkAt: edge.forks.at,
			nextBlock: nextBlockReader({ slots }, { node: readNode, forks: edge.forks }),
			sharedTransaction: (hash) => {
				const { local } = core;
				return local === null ? askShared(core, hash) : local.needs.sharedTransaction(hash);
			},
			recoveries: edge.recoveries,
			clock,
		},
	);
	return createIngress(
		{
			...serverOptionsOf(config),
			drainMs,
			about: { title: "Leeward relay", version: build.version },
			place: () => placeOf(core),
			adminToken: config.ADMIN_TOKEN,
			operator: (websockets) => ({
				async state(): Promise<RelayState> {
					const [own, ofNode, ofCore] = await Promise.all([
						runChecks().then((results) => problemsOf(results)),
						nodeState(edge, clock),
						askCoreState(core),
					]);
					const searchers = {
						websockets: websockets(),
						subscriptions: subscriptions.size,
						eventStreams: streams(),
					};
					const problems = [...own, ...(ofCore === null ? [] : coreProblems(ofCore, name()))];
					return { ...build, problems, ...placeOf(core), node: ofNode, searchers, core: ofCore };
				},
				history: async () => ({ own: history.report(), core: await askCoreHistory(core) }),
				sign: () => signOf(edge, coreOf()),
			}),
			tables: {
				refundSums: async (from) => (await core.run(core_refundSums, [from], OWN_CALL)) as RefundSumsPage,
				days: async () => (await core.run(core_conductDays, [], OWN_CALL)) as readonly ConductView[],
				sums: async () => (await core.run(core_conductSums, [], OWN_CALL)) as readonly ConductSum[],
			},
			async info() {
				return infoReport(config, {
					...build,
					chainId: rules.chainId,
					name: config.PUBLIC_URL?.host ?? null,
					maxPendingPerSender: MAX_PER_SENDER,
					...(await coreFacts(core)),
					...placeOf(core),
					slotMs: slots.ms,
					fork: tip.next()?.fork.name ?? null,
					recordsAt: config.BUILDERS.filter(hasRecords),
					isPublished: tip.next()?.published !== undefined,
				});
			},
		},
		{
			chainId: rules.chainId,
			signatureHiding: config.SIGNATURE_HIDING,
			core,
			node: new NodeReads(reads),
			reads: ownReads({ reads, core }),
			recoveries: edge.recoveries,
			callMany,
			subscriptions,
			filters: edge.filters,
			subscriptionAliases: config.SUBSCRIPTION_ALIASES,
			limiter,
			charge: edge.charge,
			recordRoutes: recordRoutesOf(
				config.PUBLIC_STATS,
				() => coreOf()?.routes ?? null,
				async (request) => {
					const link = await core.soon().catch(() => null);
					return link === null ? NO_CORE : requests.get(link.holder, request);
				},
			),
			searcherRoutes: [mevShareStream({ subscriptions, streams: feedStreams })],
			streams,
			checks,
			tip,
			edges: finder === null ? null : () => coreOf()?.edges ?? null,
			ownSecret: () => coreOf()?.kv.term?.secret ?? null,
			registry: edge.registry,
			onCall: edge.metrics.call,
			onStop() {
				coreOf()?.receipts.close();
				core.endWaits(STOPPING);
			},
			verifySignature: verifyBody,
			clock,
			waiting,
			log: log.child("ingress"),
		},
	);
}

/** See {@link OperatorData.sign}. */
function signOf({ core, tip, heads }: EdgeModules, own: CoreModules | null): string {
	const { role, term } = placeOf(core);
	const node = [tip.head()?.number, heads.isUnavailable, heads.trouble];
	const store =
		own === null ? [core.remote === null] : [own.kv.isHeld, own.kv.trouble, own.deliveries.healthy];
	return JSON.stringify([role, term, node, store]);
}

/** This relay's role and the core's term, for /readyz and /info. */
function placeOf({ local, term }: EdgeModules["core"]): Pick<InfoFacts, "role" | "term"> {
	return { role: local === null ? "edge" : "core", term };
}

/** The answer of a route while no core is reached. */
const NO_CORE = jsonAnswer(503, { error: "no core reachable, try again" }, { "retry-after": "1" });

/** The shared transaction with this hash, from the core; null if it is not shared. */
async function askShared(core: EdgeModules["core"], hash: string): Promise<DecodedTransaction | null> {
	const raw = await core.run(core_sharedTransaction, [hash], OWN_CALL);
	const bytes = typeof raw === "string" ? hexToBytes(raw) : null;
	const decoded = bytes === null ? null : decodeTransaction(bytes);
	return decoded?.ok === true ? decoded.tx : null;
}

/** The core's part of `GET /info`; unknown values if no core answers. */
async function coreFacts(
	core: EdgeModules["core"],
): Promise<CoreFacts | Readonly<Record<keyof CoreFacts, null>>> {
	if (core.local === null && core.remote === null) return UNKNOWN_FACTS;
	try {
		return (await core.run(core_facts, [], OWN_CALL)) as CoreFacts;
	} catch (thrown) {
		if (thrown instanceof RpcError) return UNKNOWN_FACTS;
		throw thrown;
	}
}

const UNKNOWN_FACTS = { bidding: null, simulation: null, receiptSigner: null, leaks: null };

/** The relay's ports and the limits of incoming connections and requests. */
export function serverOptionsOf(config: RelayConfig): PublicServerOptions {
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
		explorerUrl: config.EXPLORER_URL,
		publicStats: config.PUBLIC_STATS,
	};
}
