// The figures of boost's charts, all read from its metrics.

import type { Figure } from "../shared/history.ts";
import type { Metrics } from "../shared/metrics.ts";
import { UPSTREAMS } from "./domain/request.ts";
import { REQUEST_OUTCOMES } from "./metrics.ts";

/** Times are in ms. */
export function boostFigures(metrics: Metrics): Readonly<Record<string, Figure>> {
	const sum = (name: string, labels: Readonly<Record<string, string>> = {}): Figure => ({
		kind: "sum",
		read: () => metrics.sum(name, labels),
	});
	const level = (name: string): Figure => ({ kind: "level", read: () => metrics.sum(name) });
	const times = (name: string, labels: Readonly<Record<string, string>> = {}): Figure => ({
		...{ kind: "times", quantiles: [0.5, 0.99], scale: 1_000 },
		read: () => metrics.buckets(name, labels),
	});
	const figures: Record<string, Figure> = {
		call: times("boost_request_seconds"),
		depth: level("boost_journal_depth"),
		websockets: level("boost_websockets"),
	};
	for (const upstream of UPSTREAMS) {
		figures[`${upstream} time`] = times("boost_attempt_seconds", { upstream });
		figures[`to ${upstream}`] = sum("boost_handovers_total", { to: upstream, outcome: "acknowledged" });
	}
	for (const outcome of REQUEST_OUTCOMES) figures[outcome] = sum("boost_requests_total", { outcome });
	return figures;
}
