// Connections to a fallback's addresses: for submissions and reads of each path, and for status pages. What may not go there
// is for the policy to say.

import type { Clock } from "../../shared/clock.ts";
import type { FallbackConfig } from "../config.ts";
import { dialectOf } from "../dialects/dialects.ts";
import type { BoostPath } from "../domain/delivery.ts";
import type { Dialect, Transport } from "../domain/ports.ts";
import { createTransport, type RenewableTransport, type TransportOptions } from "./transport.ts";
import type { PathTransports } from "./upstream.ts";

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
