// The routes for operators: /livez, /readyz and /metrics. Metrics need a token, since counts by
// path and outcome would reveal to searchers that a hidden transaction has arrived.

import { bearerCheck } from "../client.ts";
import { type Clock, withDeadline } from "../clock.ts";
import { type Logger, safeError } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import { jsonAnswer } from "./messages.ts";
import { isOwnHost } from "./ownHost.ts";
import { type Route, UNKNOWN_PATH } from "./routes.ts";

/**
 * `reason` and `note` are public, so they never contain an upstream's text or a URL. A `note` is
 * for the operator, whatever `ok` is.
 */
export type CheckResult = ({ readonly ok: true } | { readonly ok: false; readonly reason: string }) & {
	readonly note?: string;
};

export interface ReadinessCheck {
	readonly name: string;
	check(): Promise<CheckResult> | CheckResult;
}

interface OpsRoutesOptions {
	readonly checks: readonly ReadinessCheck[];
	/** Whether load balancers should send nothing more. */
	readonly draining: () => boolean;
	/** Further fields of the answer. Default: none. */
	readonly place?: () => object;
}

interface OpsRoutesDependencies {
	readonly clock: Clock;
	readonly log: Logger;
}

/** A balancer may have the address of clients, and must not remove a process for their requests. */
const PROBED = { isAlwaysAnswered: true } as const;
/** A slower check counts as failed. */
const CHECK_MS = 2_000;

/**
 * `GET /livez`: 200 while the process answers. `GET /readyz`: 200, or 503 with the failed checks.
 */
export function opsRoutes(options: OpsRoutesOptions, dependencies: OpsRoutesDependencies): Route[] {
	const { checks, draining, place } = options;
	const results = checkRunner(checks, dependencies);
	const logChanges = changeLogger(dependencies.log);
	return [
		{ ...PROBED, path: "/livez", handle: () => jsonAnswer(200, { live: true }) },
		{
			...PROBED,
			path: "/readyz",
			handle: async () => {
				const found = await results();
				logChanges(found);
				const isDraining = draining();
				const ready = !isDraining && found.every(([, { ok }]) => ok);
				const body = { ready, draining: isDraining, ...place?.(), checks: Object.fromEntries(found) };
				return jsonAnswer(ready ? 200 : 503, body);
			},
		},
	];
}

type Results = readonly (readonly [name: string, result: CheckResult])[];

/**
 * Returns a function that logs when a check begins to fail, in its own words, and when that ends.
 * At the start of a process a check that has never passed is no news.
 */
function changeLogger(log: Logger): (results: Results) => void {
	const passed = new Map<string, boolean>();
	return (results) => {
		for (const [name, result] of results) {
			const before = passed.get(name);
			if (!result.ok && before === true) log.warn("not ready", { task: name, reason: result.reason });
			if (result.ok && before === false) log.info("ready again", { task: name });
			if (result.ok || before !== undefined) passed.set(name, result.ok);
		}
	};
}

/** Returns a function that runs all checks. Concurrent calls share one run. */
export function checkRunner(
	checks: readonly ReadinessCheck[],
	{ clock, log }: OpsRoutesDependencies,
): () => Promise<Results> {
	let running: Promise<[string, CheckResult][]> | undefined;

	const runCheck = async ({ name, check }: ReadinessCheck): Promise<[string, CheckResult]> => {
		try {
			return [name, await withDeadline(clock, name, CHECK_MS, async () => check())];
		} catch (thrown) {
			log.warn("readiness check failed", { task: name, fault: safeError(thrown) });
			return [name, { ok: false, reason: "the check failed" }];
		}
	};

	return () => {
		running ??= Promise.all(checks.map(runCheck)).finally(() => {
			running = undefined;
		});
		return running;
	};
}

/** https://www.rfc-editor.org/rfc/rfc9110#section-15.5.20 */
const MISDIRECTED = jsonAnswer(421, {
	error: "METRICS_PORT answers addresses and private names: use one as the host, or METRICS_TOKEN on PORT",
});

/**
 * `GET /metrics` as Prometheus text without a token, for a separate port. 421 if the Host header
 * has a foreign name.
 */
export function openMetricsRoute(metrics: Metrics): Route {
	const route = metricsRoute(metrics);
	return {
		...route,
		handle: (request) => (isOwnHost(request.headers.host) ? route.handle(request) : MISDIRECTED),
	};
}

function metricsRoute(metrics: Metrics): Route {
	const { contentType } = metrics;
	return { path: "/metrics", handle: async () => ({ status: 200, body: await metrics.text(), contentType }) };
}

/** `GET /metrics` with the token; without it, or if no token is set, the path answers 404. */
export function guardedMetricsRoute(metrics: Metrics, token: string | undefined): Route {
	const isAllowed = bearerCheck(token);
	const open = metricsRoute(metrics);
	return {
		...open,
		handle: (request) =>
			isAllowed?.(request.headers.authorization) === true ? open.handle(request) : UNKNOWN_PATH,
	};
}
