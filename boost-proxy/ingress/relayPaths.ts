// The relay's paths that boost streams to it. Boost must know them to tell, while the relay is down, what is not there from what
// is not available.

/** As the relay's routes write them. Boost's own paths are not here. */
const PATHS: readonly string[] = [
	"/fullprivacy",
	"/maxbackruns",
	"/nochecks",
	"/ws",
	"/info",
	"/totals",
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

/** Whether `path` is for the relay's operator, who needs it most while the relay is down but may still answer. */
export function isOperatorPath(path: string): boolean {
	return OPERATOR_PATTERN.test(path);
}
