// The relay's paths that boost streams to it. While the relay is down, boost uses them to
// distinguish unknown paths from unavailable ones.

/** As the relay's routes write them. Boost's own paths are not here. */
const PATHS: readonly string[] = [
	"/fullprivacy",
	"/maxbackruns",
	"/nochecks",
	"/ws",
	"/info",
	"/totals",
	"/stats",
	"/stats.json",
	"/stats/builders.json",
	"/tx/{hash}/events",
	"/bundle/{hash}",
	"/refunds/{address}",
	"/mev-share",
	"/mev-share/api/v1/history",
	"/mev-share/api/v1/history/info",
];
const PATTERN = new RegExp(`^(?:${PATHS.join("|").replaceAll(/\{\w+\}/g, "[^/]+")})$`);
/** The relay's operator's page through boost, and its data. */
const OPERATOR_PATTERN = /^\/relay\/(operator|admin)(\/|$)/;

/** Whether the relay serves `path`, which has no slash at its end. */
export function isRelayPath(path: string): boolean {
	return PATTERN.test(path);
}

/**
 * Whether `path` is for the relay's operator, who needs it most while the breaker is open but the
 * relay may still answer.
 */
export function isOperatorPath(path: string): boolean {
	return OPERATOR_PATTERN.test(path);
}
