// Connections to a fallback's addresses: for submissions and reads of each path, and for status pages. What may not go there
// is for the policy to say.

import type { Clock } from "../../shared/clock.ts";
import type { FallbackConfig } from "../config.ts";
import { dialectOf } from "../dialects/dialects.ts";
import type { BoostPath } from "../domain/delivery.ts";
import type { Dialect, Road } from "../domain/ports.ts";
import { createRoad, type RenewableRoad, type RoadOptions } from "./road.ts";
import type { PathRoads } from "./upstream.ts";

/** Where a fallback is. */
type FallbackAddresses = Pick<FallbackConfig, "dialect" | "baseUrl" | "wholeUrls" | "statusUrl">;

export interface FallbackRoads {
	readonly dialect: Dialect;
	/**
	 * Of a path without an address of its own this is the other path's: good for reads, which are the same everywhere.
	 * Submissions are refused there by the policy.
	 */
	readonly roads: PathRoads;
	/** Takes `dialect.statusPath(hash)`; null where statuses are told nowhere. */
	readonly statusRoad: Road | null;
	/** Leaves the connections of all of them. */
	renew(): void;
	/** Ends all of them. */
	close(): Promise<void>;
}

/** Where Protect tells of transactions. Nobody else is told of hashes there. */
const PROTECT_STATUS_URL = "https://protect.flashbots.net/tx/";
const PROTECT_HOST = /(^|\.)flashbots\.net$/;

/** Roads for each address that is set. Throws TypeError where none is. */
export function createFallbackRoads(
	addresses: FallbackAddresses,
	dependencies: { readonly clock: Clock },
	options: Omit<RoadOptions, "url"> = {},
): FallbackRoads {
	const made = new Map<string, RenewableRoad>();
	const roadTo = (url: string): Road => {
		const road = made.get(url) ?? createRoad({ ...options, url }, dependencies);
		made.set(url, road);
		return road;
	};
	const { baseUrl } = addresses;
	const base = baseUrl === null ? null : { road: roadTo(baseUrl), asIs: false };
	const own = (path: BoostPath): PathRoads[BoostPath] | null => {
		const url = addresses.wholeUrls[path];
		return url === null ? base : { road: roadTo(url), asIs: true };
	};
	const fast = own("fast") ?? own("noreverts");
	const noreverts = own("noreverts") ?? fast;
	if (fast === null || noreverts === null) throw new TypeError("a fallback needs an address");
	const statusUrl = statusUrlOf(addresses);
	const dialect = dialectOf(addresses.dialect, { hasStatusUrl: statusUrl !== null });
	return {
		dialect,
		roads: { fast, noreverts },
		statusRoad: statusUrl === null ? (base?.road ?? null) : roadTo(statusUrl),
		renew() {
			for (const road of made.values()) road.renew();
		},
		async close() {
			await Promise.all([...made.values()].map((road) => road.close()));
		},
	};
}

function statusUrlOf({ dialect, baseUrl, wholeUrls, statusUrl }: FallbackAddresses): string | null {
	if (statusUrl !== null || dialect !== "flashbots") return statusUrl;
	const url = baseUrl ?? wholeUrls.fast ?? wholeUrls.noreverts;
	return url !== null && PROTECT_HOST.test(new URL(url).hostname) ? PROTECT_STATUS_URL : null;
}
