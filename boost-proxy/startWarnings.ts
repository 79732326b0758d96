// What an operator should know of settings that are valid: they come in, warnings go out. Nothing is refused here.

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
