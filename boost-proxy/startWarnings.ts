// What an operator should know of settings that are valid. Nothing is refused here: two services may share an address.

import { lookup } from "node:dns/promises";
import { type Clock, withDeadline } from "../shared/clock.ts";
import { type BoostConfig, fallbackRefusals } from "./config.ts";
import { BOOST_PATHS } from "./domain/delivery.ts";

/** Warnings in our own words; no value is quoted. */
export function startWarnings(config: Pick<BoostConfig, "fallback" | "BOOST_SECRET">): readonly string[] {
	const warnings: string[] = [];
	if (config.BOOST_SECRET === undefined) {
		warnings.push(
			"BOOST_SECRET is not set: the relay sees boost's address in the place of its clients', for limits and cancels",
		);
	}
	const refusals = fallbackRefusals(config.fallback);
	for (const path of BOOST_PATHS) {
		const why = refusals[path];
		if (why !== null) warnings.push(`while the relay is out nothing of /${path} can be forwarded: ${why}`);
	}
	return warnings;
}

/** The warning for two upstreams that are one. */
export function sameUpstreamWarning(same: "url" | "address"): string {
	return same === "url"
		? "the fallback is the relay itself: RELAY_URL and FALLBACK_URL are the same"
		: "the fallback may be the relay itself: both names have one address and port";
}

/** Names are looked up this long. */
const LOOKUP_MS = 2_000;

export interface SameUpstreamDependencies {
	readonly clock: Clock;
	/** All addresses of a name; rejects where it has none. */
	readonly addressesOf?: (name: string) => Promise<readonly string[]>;
}

/** `url`: one and the same URL; `address`: two names of one address, and one port; null: neither, as far as is known. */
export async function sameUpstream(
	config: Pick<BoostConfig, "RELAY_URL" | "fallback">,
	dependencies: SameUpstreamDependencies,
): Promise<"url" | "address" | null> {
	const fallback = fallbackUrls(config);
	const relay = new URL(config.RELAY_URL);
	const relayUrls = [config.RELAY_URL, ...BOOST_PATHS.map((path) => `${config.RELAY_URL}/${path}`)].map(
		plain,
	);
	if (fallback.some((url) => relayUrls.includes(plain(url)))) return "url";
	const samePort = fallback.map((url) => new URL(url)).filter((url) => portOf(url) === portOf(relay));
	if (samePort.length === 0) return null;
	const { clock, addressesOf = systemAddresses } = dependencies;
	return withDeadline(clock, "look-up of the upstreams", LOOKUP_MS, async () => {
		const ours = new Set(await addressesOf(nameOf(relay)));
		const theirs = await Promise.all(samePort.map((url) => addressesOf(nameOf(url))));
		return theirs.flat().some((address) => ours.has(address)) ? ("address" as const) : null;
		// Who can't be looked up now is told by the probes.
	}).catch(() => null);
}

function fallbackUrls({ fallback }: Pick<BoostConfig, "fallback">): readonly string[] {
	if (fallback === null) return [];
	const { baseUrl, wholeUrls } = fallback;
	return [baseUrl, ...Object.values(wholeUrls)].filter((url) => url !== null);
}

/** Without query, credentials and slashes at the end; scheme and host in lower case, as URLs are parsed. */
function plain(text: string): string {
	const { origin, pathname } = new URL(text);
	return origin + pathname.replace(/\/+$/, "");
}

function portOf({ port, protocol }: URL): string {
	return port === "" ? (protocol === "https:" ? "443" : "80") : port;
}

function nameOf({ hostname }: URL): string {
	return hostname.replace(/^\[|\]$/g, "");
}

async function systemAddresses(name: string): Promise<readonly string[]> {
	return (await lookup(name, { all: true })).map(({ address }) => address);
}
