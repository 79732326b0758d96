// Creates the relay and the fallback with their transports, breakers and probes from the settings,
// and the reads of the chain.

import type { LookupFunction } from "node:net";
import type { Clock } from "../shared/clock.ts";
import type { SlotLength } from "../shared/ethereum/slots.ts";
import { type JsonRpcClient, type RpcAnswer, type RpcCall, UpstreamError } from "../shared/jsonrpc/client.ts";
import { type Component, onStop, sequence } from "../shared/lifecycle.ts";
import type { Logger } from "../shared/log.ts";
import { advice, type Symptom } from "../shared/outgoing/advice.ts";
import { type Cutter, cutterFor } from "../shared/secrets.ts";
import type { Traces } from "../shared/tracing/traces.ts";
import { type BoostConfig, type FallbackConfig, unfitPaths } from "./config.ts";
import { dialectOf, usualStatusUrl } from "./dialects/dialects.ts";
import { submissionShareMs } from "./domain/budget.ts";
import type { ChainReads, Dialect, Probe, ReportedHeads, Transport, Upstreams } from "./domain/ports.ts";
import { BOOST_PATHS, type BoostPath, type UpstreamName } from "./domain/request.ts";
import { UpstreamBreaker } from "./health/breaker.ts";
import { createHeadReference } from "./health/headReference.ts";
import { keepWarm } from "./health/keepWarm.ts";
import { fallbackProbe, relayProbe } from "./health/probes.ts";
import type { HealthSettings } from "./health/rules.ts";
import type { BoostMetrics } from "./metrics.ts";
import type { ReadyBlobs } from "./upstream/readyBlobs.ts";
import { HttpTransport, type TransportDependencies, type TransportOptions } from "./upstream/transport.ts";
import { HttpUpstream, type PathTransports, type UpstreamOptions } from "./upstream/upstream.ts";

export interface UpstreamsDependencies {
	readonly clock: Clock;
	readonly log: Logger;
	/** Independent of both; null if none is set. */
	readonly node: JsonRpcClient | null;
	readonly slot: SlotLength;
	readonly metrics: BoostMetrics;
	/** That of the relay and the journal; null until it is known. */
	readonly chainId: () => bigint | null;
	readonly reported: Pick<ReportedHeads, "sawHead">;
	readonly readyBlobs: ReadyBlobs;
	/** This boost's entry in `Via`. */
	readonly via: string;
	/** Finds the addresses of upstreams. Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	readonly traces: Traces;
}

/** The upstreams, and their probes and connections as a component. */
export interface UpstreamPool {
	readonly upstreams: Upstreams;
	readonly component: Component;
}

/** How often idle connections are used to keep them open, in ms. */
const WARM_MS = 15_000;
/**
 * Ms for connecting. A lost SYN is sent again after one second, which must not count as an outage.
 */
const CONNECT_MS = 2_500;
/** The most connections for probes. */
const PROBE_CONNECTIONS = 2;
const FIT_FOR_ALL = { fast: null, noreverts: null };

/** Separate connections, so that no kind of traffic uses up the connections of another. */
interface UpstreamTransports {
	readonly own: TransportSet;
	readonly reads: TransportSet;
	readonly probes: TransportSet;
	/** Advice for the operator, derived from the last failure; null if nothing is known. */
	readonly hint: () => string | null;
}

/** The settings that the rules for `upstream`'s breaker use, from boost's settings. */
export function healthSettings(upstream: UpstreamName, config: BoostConfig): HealthSettings {
	return {
		upstream,
		attemptTimeoutMs: submissionShareMs(config.REQUEST_BUDGET_MS),
		faults: config.BREAKER_FAULTS,
		storm: config.BREAKER_STORM,
		probeIntervalMs: config.PROBE_INTERVAL_MS,
		probeTimeoutMs: config.PROBE_TIMEOUT_MS,
		probeSuccesses: config.PROBE_SUCCESSES,
		firstBackoffMs: config.BREAKER_HOLD_MS,
		maxBackoffMs: config.BREAKER_HOLD_MAX_MS,
	};
}

/** Makes no request yet. */
export function createUpstreams(config: BoostConfig, dependencies: UpstreamsDependencies): UpstreamPool {
	const { clock, log, node, slot, metrics, chainId, via, lookup } = dependencies;
	const timeoutMs = config.PROBE_TIMEOUT_MS;
	// A failed connection must be noticed well within a submission's time.
	const connectMs = Math.min(CONNECT_MS, submissionShareMs(config.REQUEST_BUDGET_MS) / 2);
	const transportsTo = (addresses: UpstreamAddresses, setting: string): UpstreamTransports => {
		let last: Symptom = {};
		const onSymptom = (symptom: Symptom) => {
			last = symptom;
		};
		const make = (options: { readonly connections?: number } = {}) =>
			createTransportSet(addresses, { clock, lookup, onSymptom }, { connectMs, via, ...options });
		return {
			own: make(),
			reads: make(),
			probes: make({ connections: PROBE_CONNECTIONS }),
			hint: () => advice(setting, last),
		};
	};
	let relayReadiness: string | null = null;
	const guard = (
		upstream: UpstreamName,
		probe: Probe,
		{ own, reads, probes, hint }: UpstreamTransports,
		alternative: UpstreamBreaker | null,
	) => {
		const breaker = new UpstreamBreaker(healthSettings(upstream, config), {
			probe,
			clock,
			log,
			alternative,
			hint,
			readiness: () => (upstream === "relay" ? relayReadiness : null),
			onTrip: (reason) => metrics.trip({ upstream, reason }),
			onProbe(outcome) {
				if (outcome !== "ok") probes.renew();
				metrics.probe({ upstream, result: outcome });
			},
		});
		breaker.onChange(() => {
			if (breaker.isUnavailable) return;
			own.renew();
			reads.renew();
		});
		return breaker;
	};
	const upstreamOf = (
		options: UpstreamOptions,
		breaker: UpstreamBreaker,
		dialect: Dialect | null,
		{ own, reads }: UpstreamTransports,
	) =>
		new HttpUpstream(options, {
			breaker,
			clock,
			dialect,
			readyBlobs: dialect === null ? null : dependencies.readyBlobs,
			traces: dependencies.traces,
			cutter: dialect === null ? null : cutterOf(config.fallback),
			onAttempt: metrics.attempt,
			transports: own.transports,
			readTransports: reads.transports,
			statusTransport: own.statusTransport,
		});

	// Our relay's paths are those of the mevblocker dialect.
	const ours = transportsTo(
		{
			dialect: "mevblocker",
			baseUrl: config.RELAY_URL,
			statusUrl: null,
			wholeUrls: { fast: null, noreverts: null },
		},
		"RELAY_URL",
	);
	const theirs =
		config.fallback === null ? null : transportsTo(config.fallback, fallbackSetting(config.fallback));
	const theirProbes = theirs?.probes.transports.fast.transport ?? null;
	const reference = createHeadReference({ slot }, { node, fallback: theirProbes, clock, log });
	let fallback: HttpUpstream | null = null;
	let fallbackBreaker: UpstreamBreaker | null = null;
	const fallbackParts: Component[] = [];
	if (theirs !== null && theirProbes !== null) {
		const probe = fallbackProbe({ timeoutMs, expectedChainId: chainId }, { transport: theirProbes });
		// Requests that hang at the fallback have no other upstream to go to.
		fallbackBreaker = guard("fallback", probe, theirs, null);
		const unfit = unfitPaths(config.fallback);
		fallback = upstreamOf(
			{ name: "fallback", unfitPaths: unfit },
			fallbackBreaker,
			theirs.own.dialect,
			theirs,
		);
		const transports = BOOST_PATHS.map((path) => theirs.own.transports[path].transport);
		fallbackParts.push(
			life("fallback probe", fallbackBreaker),
			keepWarm({ everyMs: WARM_MS }, { transports, clock, log }),
		);
	}
	const probe = relayProbe(
		{ timeoutMs, maxHeadLag: config.MAX_HEAD_LAG, slot },
		{
			transport: ours.probes.transports.fast.transport,
			reference,
			clock,
			onReadiness(readiness) {
				relayReadiness = readiness;
			},
			onHead: (number) => dependencies.reported.sawHead(number, "relay"),
		},
	);
	const relayBreaker = guard("relay", probe, ours, fallbackBreaker);
	const relayOptions = { name: "relay", boostSecret: config.BOOST_SECRET, unfitPaths: FIT_FOR_ALL } as const;
	const relay = upstreamOf(relayOptions, relayBreaker, null, ours);
	const close = async (): Promise<void> => {
		for (const all of [ours, theirs]) {
			if (all !== null) await Promise.all([all.own.close(), all.reads.close(), all.probes.close()]);
		}
	};
	const parts = [onStop("transports", close), reference, life("relay probe", relayBreaker), ...fallbackParts];
	return { upstreams: { relay, fallback }, component: sequence("upstreams", parts, { log, clock }) };
}

/** Removes the fallback's URLs, which may contain keys, from its errors. */
function cutterOf(fallback: FallbackConfig | null): Cutter {
	const { baseUrl, statusUrl, wholeUrls } = fallback ?? {};
	const urls = [baseUrl, statusUrl, wholeUrls?.fast, wholeUrls?.noreverts];
	return cutterFor(...urls.map((url) => url ?? undefined));
}

/** The setting to look at when the fallback does not answer. */
function fallbackSetting({ baseUrl, wholeUrls }: UpstreamAddresses): string {
	if (baseUrl !== null) return "FALLBACK_URL";
	return wholeUrls.fast === null ? "FALLBACK_NOREVERTS_URL" : "FALLBACK_FAST_URL";
}

function life(name: string, breaker: UpstreamBreaker): Component {
	return { name, start: async () => breaker.start(), stop: () => breaker.stop() };
}

/** `node`: null if no independent one is set. */
export function createChainReads(dependencies: {
	readonly node: JsonRpcClient | null;
	readonly upstreams: Upstreams;
}): ChainReads {
	const { node, upstreams } = dependencies;
	return {
		async batch(calls: readonly RpcCall[], deadlineMs: number): Promise<readonly RpcAnswer[] | null> {
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

type UpstreamAddresses = Pick<FallbackConfig, "dialect" | "baseUrl" | "wholeUrls" | "statusUrl">;

/** The transports of one upstream in its dialect, the relay's or the fallback's. */
export interface TransportSet {
	readonly dialect: Dialect;
	/**
	 * A path without a URL uses the other path's transport for reads, which are the same everywhere.
	 * That path is unfit for submissions, see unfitPaths.
	 */
	readonly transports: PathTransports;
	/** For `dialect.statusPath(hash)`; null if there are no status pages. */
	readonly statusTransport: Transport | null;
	/** Uses new connections from now on. */
	renew(): void;
	/** Closes all connections. */
	close(): Promise<void>;
}

/** A transport for each URL that is set. Throws TypeError if none is. */
export function createTransportSet(
	addresses: UpstreamAddresses,
	dependencies: TransportDependencies,
	options: Omit<TransportOptions, "url"> = {},
): TransportSet {
	const made = new Map<string, HttpTransport>();
	const transportTo = (url: string): Transport => {
		const transport = made.get(url) ?? new HttpTransport({ ...options, url }, dependencies);
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

function statusUrlOf({ dialect, baseUrl, wholeUrls, statusUrl }: UpstreamAddresses): string | null {
	const url = baseUrl ?? wholeUrls.fast ?? wholeUrls.noreverts;
	return statusUrl ?? (url === null ? null : usualStatusUrl(dialect, url));
}
