// The relay and the fallback with their transports and breakers, made from the settings, and the chain as they and the node
// tell it.

import type { Clock } from "../shared/clock.ts";
import { type JsonRpcClient, UpstreamError } from "../shared/jsonrpc/client.ts";
import { type Component, sequence, sink } from "../shared/lifecycle.ts";
import type { Logger } from "../shared/log.ts";
import { type BoostConfig, type FallbackConfig, fallbackRefusals } from "./config.ts";
import { dialectOf } from "./dialects/dialects.ts";
import type { ChainReads, Dialect, Probe, Transport, Upstreams } from "./domain/ports.ts";
import {
	BOOST_PATHS,
	type BoostPath,
	type Call,
	type CallResult,
	type UpstreamName,
} from "./domain/request.ts";
import { UpstreamBreaker } from "./health/breaker.ts";
import { createHeadReference, fallbackProbe, keepWarm, relayProbe } from "./health/probes.ts";
import type { BoostMetrics } from "./metrics.ts";
import { submissionShareMs } from "./requests/failover.ts";
import { createTransport, type RenewableTransport, type TransportOptions } from "./upstream/transport.ts";
import { HttpUpstream, type PathTransports } from "./upstream/upstream.ts";

export interface UpstreamsDependencies {
	readonly clock: Clock;
	readonly log: Logger;
	/** Independent of both; null where none is set. */
	readonly node: JsonRpcClient | null;
	readonly metrics: BoostMetrics;
	/** The relay's and the journal's; null until somebody told it. */
	readonly chainId: () => bigint | null;
}

type Renewable = Pick<RenewableTransport, "renew">;

/** The upstreams and what runs beside them. */
export interface UpstreamPool {
	readonly upstreams: Upstreams;
	readonly component: Component;
}

/** How often an idle transport is kept warm, in ms: well within what keeps a connection. */
const WARM_MS = 15_000;
/** While all is well the fallback is probed so many times less often than the relay. */
const FALLBACK_PROBE_PART = 5;
/** Ms for a connection: a SYN that was lost is sent again after one second, which alone must not look like an outage. */
const CONNECT_MS = 2_500;
/** Connections of a probe's own. */
const PROBE_CONNECTIONS = 2;
const NO_REFUSALS = { fast: null, noreverts: null };

/** Makes them; nothing is asked yet. */
export function createUpstreams(config: BoostConfig, dependencies: UpstreamsDependencies): UpstreamPool {
	const { clock, log, node, metrics, chainId } = dependencies;
	const slotMs = config.SLOT_SECONDS * 1000;
	const { fallback: fallbackConfig } = config;
	// What can't be connected to must be known well within a submission's share.
	const connectMs = Math.min(CONNECT_MS, submissionShareMs(config.REQUEST_BUDGET_MS) / 2);
	const relayTransport = createTransport({ url: config.RELAY_URL, connectMs }, { clock });
	const relayReadTransport = createTransport({ url: config.RELAY_URL, connectMs }, { clock });
	const relayProbeTransport = createTransport(
		{ url: config.RELAY_URL, connections: PROBE_CONNECTIONS },
		{ clock },
	);
	const makeFallbackTransports = (options: { readonly connections?: number } = {}) =>
		fallbackConfig === null
			? null
			: createFallbackTransports(fallbackConfig, { clock }, { connectMs, ...options });
	const fallbackTransports = makeFallbackTransports();
	const fallbackReadTransports = makeFallbackTransports();
	const fallbackProbeTransports = makeFallbackTransports({ connections: PROBE_CONNECTIONS });
	const reference = createHeadReference(
		{ slotMs },
		{ node, fallback: fallbackProbeTransports?.transports.fast.transport ?? null, clock, log },
	);
	const guard = (
		name: UpstreamName,
		probe: Probe,
		transports: { readonly probe: Renewable | null; readonly requests: readonly (Renewable | null)[] },
		// What hangs at a fallback has nowhere else to go.
		yieldsTo: UpstreamBreaker | null,
	) => {
		const isRelay = name === "relay";
		const breaker = new UpstreamBreaker(
			{
				upstream: name,
				faults: config.BREAKER_FAULTS,
				storm: isRelay ? config.BREAKER_STORM : null,
				probeIntervalMs: config.PROBE_INTERVAL_MS,
				...(isRelay
					? {}
					: { calmIntervalMs: config.PROBE_INTERVAL_MS * FALLBACK_PROBE_PART, isPatient: true }),
				probeTimeoutMs: config.PROBE_TIMEOUT_MS,
				probeSuccesses: config.PROBE_SUCCESSES,
				holdMs: config.BREAKER_HOLD_MS,
				holdMaxMs: config.BREAKER_HOLD_MAX_MS,
				shareMs: submissionShareMs(config.REQUEST_BUDGET_MS),
			},
			{
				...{ probe, clock, log, yieldsTo },
				onTrip: (reason) => metrics.trip({ upstream: name, reason }),
				onProbe: (word) => {
					if (word !== "ok") transports.probe?.renew();
					metrics.probe({ upstream: name, word });
				},
			},
		);
		breaker.onChange(() => {
			if (!breaker.isUnavailable) for (const transport of transports.requests) transport?.renew();
		});
		return breaker;
	};
	const fallbackBreaker =
		fallbackProbeTransports === null
			? null
			: guard(
					"fallback",
					fallbackProbe(
						{ timeoutMs: config.PROBE_TIMEOUT_MS, expectedChainId: chainId },
						{ transport: fallbackProbeTransports.transports.fast.transport },
					),
					{ probe: fallbackProbeTransports, requests: [fallbackTransports, fallbackReadTransports] },
					null,
				);
	const relayBreaker = guard(
		"relay",
		relayProbe(
			{ timeoutMs: config.PROBE_TIMEOUT_MS, maxHeadLag: config.MAX_HEAD_LAG },
			{ transport: relayProbeTransport, reference, clock },
		),
		{ probe: relayProbeTransport, requests: [relayTransport, relayReadTransport] },
		fallbackBreaker,
	);
	const relay = new HttpUpstream(
		{ name: "relay", boostSecret: config.BOOST_SECRET, refusals: NO_REFUSALS },
		{
			...{ breaker: relayBreaker, clock },
			dialect: null,
			transports: everyPath(relayTransport),
			readTransports: everyPath(relayReadTransport),
			statusTransport: relayTransport,
			onAttempt: metrics.attempt,
		},
	);
	const all = [
		relayTransport,
		relayReadTransport,
		relayProbeTransport,
		fallbackTransports,
		fallbackReadTransports,
		fallbackProbeTransports,
	];
	const parts: Component[] = [
		sink("transports", async () => {
			for (const one of all) await one?.close();
		}),
		reference,
		life("relay probe", relayBreaker),
	];
	if (fallbackTransports === null || fallbackReadTransports === null || fallbackBreaker === null) {
		return {
			upstreams: { relay, fallback: null },
			component: sequence("upstreams", parts, { log, clock }),
		};
	}
	const fallback = new HttpUpstream(
		{ name: "fallback", refusals: fallbackRefusals(fallbackConfig) },
		{
			...{ breaker: fallbackBreaker, clock },
			dialect: fallbackTransports.dialect,
			transports: fallbackTransports.transports,
			readTransports: fallbackReadTransports.transports,
			statusTransport: fallbackTransports.statusTransport,
			onAttempt: metrics.attempt,
		},
	);
	const warmed = BOOST_PATHS.map((path) => fallbackTransports.transports[path].transport);
	parts.push(
		life("fallback probe", fallbackBreaker),
		keepWarm({ everyMs: WARM_MS }, { transports: warmed, clock }),
	);
	return { upstreams: { relay, fallback }, component: sequence("upstreams", parts, { log, clock }) };
}

function everyPath(transport: Transport) {
	return { fast: { transport, asIs: false }, noreverts: { transport, asIs: false } };
}

function life(name: string, guarded: { start(): void; stop(): Promise<void> }): Component {
	return { name, start: async () => guarded.start(), stop: () => guarded.stop() };
}

/** Reads of the chain; `node` is null where no independent one is set. */
export function createChainReads(dependencies: {
	readonly node: JsonRpcClient | null;
	readonly upstreams: Upstreams;
}): ChainReads {
	const { node, upstreams } = dependencies;
	return {
		async batch(calls: readonly Call[], deadlineMs: number): Promise<readonly CallResult[] | null> {
			if (node !== null) {
				try {
					return await node.batch(calls, deadlineMs);
				} catch (thrown) {
					if (!(thrown instanceof UpstreamError)) throw thrown;
				}
			}
			const options = { deadlineMs, caller: null };
			const answers = await upstreams.relay.batch(calls, options);
			return answers ?? (await upstreams.fallback?.batch(calls, options)) ?? null;
		},
	};
}

/** Where a fallback is. */
type FallbackAddresses = Pick<FallbackConfig, "dialect" | "baseUrl" | "wholeUrls" | "statusUrl">;

export interface FallbackTransports {
	readonly dialect: Dialect;
	/**
	 * Of a path without an address of its own this is the other path's: good for reads, which are the same everywhere.
	 * Submissions are refused there by the policy.
	 */
	readonly transports: PathTransports;
	/** Takes `dialect.statusPath(hash)`; null where statuses are told nowhere. */
	readonly statusTransport: Transport | null;
	/** Leaves the connections of all of them. */
	renew(): void;
	/** Ends all of them. */
	close(): Promise<void>;
}

/** Where Protect tells of transactions. Nobody else is told of hashes there. */
const PROTECT_STATUS_URL = "https://protect.flashbots.net/tx/";
const PROTECT_HOST = /(^|\.)flashbots\.net$/;

/** Transports for each address that is set. Throws TypeError where none is. */
export function createFallbackTransports(
	addresses: FallbackAddresses,
	dependencies: { readonly clock: Clock },
	options: Omit<TransportOptions, "url"> = {},
): FallbackTransports {
	const made = new Map<string, RenewableTransport>();
	const transportTo = (url: string): Transport => {
		const transport = made.get(url) ?? createTransport({ ...options, url }, dependencies);
		made.set(url, transport);
		return transport;
	};
	const { baseUrl } = addresses;
	const base = baseUrl === null ? null : { transport: transportTo(baseUrl), asIs: false };
	const own = (path: BoostPath): PathTransports[BoostPath] | null => {
		const url = addresses.wholeUrls[path];
		return url === null ? base : { transport: transportTo(url), asIs: true };
	};
	const fast = own("fast") ?? own("noreverts");
	const noreverts = own("noreverts") ?? fast;
	if (fast === null || noreverts === null) throw new TypeError("a fallback needs an address");
	const statusUrl = statusUrlOf(addresses);
	const dialect = dialectOf(addresses.dialect, { hasStatusUrl: statusUrl !== null });
	return {
		dialect,
		transports: { fast, noreverts },
		statusTransport: statusUrl === null ? (base?.transport ?? null) : transportTo(statusUrl),
		renew() {
			for (const transport of made.values()) transport.renew();
		},
		async close() {
			await Promise.all([...made.values()].map((transport) => transport.close()));
		},
	};
}

function statusUrlOf({ dialect, baseUrl, wholeUrls, statusUrl }: FallbackAddresses): string | null {
	if (statusUrl !== null || dialect !== "flashbots") return statusUrl;
	const url = baseUrl ?? wholeUrls.fast ?? wholeUrls.noreverts;
	return url !== null && PROTECT_HOST.test(new URL(url).hostname) ? PROTECT_STATUS_URL : null;
}
