// Runs boost in the test's process and reads its /status. Its times are the product's divided, so
// that many cells fit into seconds.

import { request } from "undici";
import { readBoostConfig } from "../../boost-proxy/config.ts";
import type { BreakerStatus } from "../../boost-proxy/domain/ports.ts";
import type { UpstreamName } from "../../boost-proxy/domain/request.ts";
import { createProxy } from "../../boost-proxy/proxy.ts";
import { pause, systemClock } from "../../shared/clock.ts";
import { silentLogger } from "../../shared/log.ts";
import { AUTHORIZED, METRICS_TOKEN } from "../support/relayClient.ts";
import { openTestStore } from "../support/storeEngines.ts";
import { SLOT_SECONDS } from "./world.ts";

/** `/status` as its operator gets it. */
export interface BoostStatus {
	readonly relay: BreakerStatus;
	readonly fallback: BreakerStatus | null;
	readonly journal: { readonly depth: number; readonly durable: boolean };
}

export interface BoostHere {
	readonly port: number;
	/** http://127.0.0.1:port */
	readonly url: string;
	stop(): Promise<void>;
}

/** Its upstreams and its folder; the rest has values for tests. */
export interface BoostPlaces {
	readonly relayUrl: string;
	readonly fallbackUrl: string;
	/** For its journal. */
	readonly folder: string;
}

export const BOOST_SECRET = "boost and relay of the fault matrix";

/** Five cells that ask every 20 ms use half a core. */
const LOOK_MS = 60;

/**
 * The environment of a boost instance whose breaker is many times faster than the default one. Its
 * probe is less so.
 */
export function boostEnv(places: BoostPlaces): Readonly<Record<string, string>> {
	return {
		PORT: "0",
		HOST: "127.0.0.1",
		RELAY_URL: places.relayUrl,
		FALLBACK_URL: places.fallbackUrl,
		FALLBACK_DIALECT: "mevblocker",
		BOOST_SECRET,
		METRICS_TOKEN,
		DATA_DIR: places.folder,
		RATE_LIMIT_RPS: "0",
		TX_TTL_BLOCKS: "1000",
		SLOT_SECONDS: String(SLOT_SECONDS),
		REQUEST_BUDGET_MS: "5000",
		PROBE_INTERVAL_MS: "150",
		// On a machine with two cores this process is busy with all the cells' parts.
		PROBE_TIMEOUT_MS: "1000",
		BREAKER_HOLD_MS: "100",
		BREAKER_HOLD_MAX_MS: "400",
	};
}

/** Starts one. */
export async function startBoostHere(env: Readonly<Record<string, string>>): Promise<BoostHere> {
	const proxy = createProxy(readBoostConfig(env), {
		log: silentLogger,
		...{ drainMs: 0, openStore: openTestStore },
	});
	await proxy.start();
	const { port } = proxy;
	return { port, url: `http://127.0.0.1:${port}`, stop: () => proxy.stop() };
}

/** The status of the boost instance at `url`. */
export async function statusOf(url: string): Promise<BoostStatus> {
	const { body } = await request(`${url}/status`, { headers: AUTHORIZED });
	return (await body.json()) as BoostStatus;
}

/**
 * The first status for which `is` holds. Rejects after `ms`. An instance that does not respond is
 * asked again.
 */
export async function statusWhen(
	what: string,
	url: string,
	is: (status: BoostStatus) => boolean,
	ms: number,
): Promise<BoostStatus> {
	const end = systemClock.monotonic() + ms;
	for (;;) {
		const status = await statusOf(url).catch(() => null);
		if (status !== null && is(status)) return status;
		if (systemClock.monotonic() > end) throw new Error(`not seen within ${ms} ms: ${what}`);
		await pause(systemClock, LOOK_MS);
	}
}

/** Whether the breaker of `upstream` lets requests through. */
export async function isWell(url: string, upstream: UpstreamName = "relay"): Promise<boolean> {
	return (await statusOf(url))[upstream]?.state === "closed";
}
