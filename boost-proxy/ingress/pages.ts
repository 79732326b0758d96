// Boost's web pages: the home page, with the paths that boost serves itself, and the operator's
// page if a token is set.

import type { Endpoint } from "../../shared/pages/endpoints.ts";
import { createPages, type Pages } from "../../shared/pages/pages.ts";
import { TRIP_REASONS } from "../domain/ports.ts";

/** The same as the relay's endpoints of these names, which a test checks. */
export const ENDPOINTS: readonly Endpoint[] = [
	{
		path: "/fast",
		about: "the default: searchers may bid for the place behind you, and you get the refund",
		...{ builders: "all", sharing: "likely", mayRevert: true, softCancellations: false },
	},
	{
		path: "/noreverts",
		about: "mined only if it succeeds; searchers may bid, and you get the refund",
		...{ builders: "all", sharing: "likely", mayRevert: false, softCancellations: true },
	},
];

export function boostPages(config: {
	readonly ADMIN_TOKEN: string | undefined;
	readonly EXPLORER_URL: string | undefined;
	readonly PUBLIC_STATS: boolean;
}): Pages {
	const reasons = config.ADMIN_TOKEN === undefined ? null : TRIP_REASONS;
	return createPages("boost", ENDPOINTS, reasons, config.EXPLORER_URL, config.PUBLIC_STATS);
}
