// Boost's metrics, each a function to count with. All series exist from the start.

import type { Clock } from "../shared/clock.ts";
import type { CallOutcome } from "../shared/jsonrpc/answers.ts";
import { labelSets, type Metrics } from "../shared/metrics.ts";
import { FULLNESS_OF } from "../shared/shares/shares.ts";
import {
	type Attempted,
	BREAKER_STATES,
	type ProbeOutcome,
	TRIP_REASONS,
	type Upstreams,
} from "./domain/ports.ts";
import { BOOST_PATHS, FAULTS, UPSTREAMS, type UpstreamName } from "./domain/request.ts";
import { kindOf, METHOD_LABELS, type MethodKind } from "./ingress/methods.ts";
import type { InstancesStatus } from "./ingress/operators.ts";
import { PASS_OUTCOMES } from "./ingress/routingHeaders.ts";
import { HANDOVER_OUTCOMES } from "./reconcile/sender.ts";
import { SUBMISSION_OUTCOMES } from "./requests/submissions.ts";
import type { Rows } from "./rows/rows.ts";

/** All label values; a missing one does not compile. */
const ATTEMPT_OUTCOMES = keys<Attempted["outcome"]>({ ...all(FAULTS), answered: 0, aborted: 0 });
const PROBE_OUTCOMES = keys<ProbeOutcome>({
	...all(FAULTS),
	ok: 0,
	staleHead: 0,
	notReady: 0,
	node: 0,
	probe: 0,
});
const METHOD_KINDS = keys<MethodKind>({
	submission: 0,
	sync: 0,
	cancel: 0,
	nonce: 0,
	byHash: 0,
	read: 0,
	relay: 0,
});
/** How a call ended for the client. `refused`: with an error about the call itself. */
export const REQUEST_OUTCOMES = ["ok", "refused", "limited", "unavailable", "internal"] as const;
const TASKS = [
	"reconcile",
	"following the relay",
	"following the chain",
	"chain",
	"client trust",
	"subscriptions",
	"homes",
] as const;

/** A request to an upstream that has ended. */
export interface EndedRequest {
	readonly upstream: UpstreamName;
	readonly kind: "read" | "submission";
	readonly outcome: Attempted["outcome"];
	/** In seconds. */
	readonly took: number;
}

export type BoostMetrics = ReturnType<typeof boostMetrics>;

export function boostMetrics(metrics: Metrics) {
	const requests = metrics.counter(
		"boost_requests_total",
		"JSON-RPC calls by method",
		labelSets({ method: METHOD_LABELS, outcome: REQUEST_OUTCOMES }),
	);
	const seconds = metrics.histogram(
		"boost_request_seconds",
		"Time of a JSON-RPC call by the kind of its method",
		labelSets({ kind: METHOD_KINDS }),
	);
	const attempts = metrics.counter(
		"boost_attempts_total",
		"Requests to upstreams",
		labelSets({ upstream: UPSTREAMS, kind: ["read", "submission"], outcome: ATTEMPT_OUTCOMES }),
	);
	const attemptSeconds = metrics.histogram(
		"boost_attempt_seconds",
		"Time of a request to an upstream until its answer or fault",
		labelSets({ upstream: UPSTREAMS }),
	);
	return {
		trip: metrics.counter(
			"boost_trips_total",
			"Openings of a breaker",
			labelSets({ upstream: UPSTREAMS, reason: Object.keys(TRIP_REASONS) }),
		),
		/** Counts a request to an upstream and the seconds that it took. */
		attempt({ upstream, kind, outcome, took }: EndedRequest): void {
			attempts({ upstream, kind, outcome });
			if (outcome !== "aborted") attemptSeconds({ upstream }, took);
		},
		/** Counts a client's call by its label (see labelOf) and the seconds that it took. */
		call(method: string, outcome: CallOutcome, took: number): void {
			requests({ method, outcome: requestOutcome(outcome) });
			seconds({ kind: kindOf(method) }, took);
		},
		submission: metrics.counter(
			"boost_submissions_total",
			"Submissions by path and outcome",
			labelSets({ path: BOOST_PATHS, outcome: SUBMISSION_OUTCOMES }),
		),
		handover: metrics.counter(
			"boost_handovers_total",
			"Deliveries of transactions that another upstream had",
			labelSets({ to: UPSTREAMS, outcome: HANDOVER_OUTCOMES }),
		),
		journalFault: metrics.counter(
			"boost_journal_faults_total",
			"Writes and look-ups of the journal that failed",
			labelSets({}),
		),
		probe: metrics.counter(
			"boost_probes_total",
			"Probes by result",
			labelSets({ upstream: UPSTREAMS, result: PROBE_OUTCOMES }),
		),
		passed: metrics.counter(
			"boost_passed_total",
			"Requests that were passed through to the relay",
			labelSets({ outcome: PASS_OUTCOMES }),
		),
		taskFailed: metrics.counter(
			"boost_task_failures_total",
			"Background tasks that failed",
			labelSets({ task: TASKS }),
		),
	};
}

/** The sources of the gauges. */
export interface BoostReadings {
	readonly upstreams: Upstreams;
	readonly rows: Rows;
	/** Null without a database. */
	readonly homes: InstancesStatus | null;
	readonly clock: Pick<Clock, "now">;
	/** Number of open websockets. */
	readonly websockets: () => number;
}

/** Makes boost's gauges. Without a fallback its series stay 0. */
export function watchBoost(
	metrics: Metrics,
	{ upstreams, rows, homes, clock, websockets }: BoostReadings,
): void {
	const breakerOf = (upstream: string) =>
		(upstream === "relay" ? upstreams.relay : upstreams.fallback)?.breaker;
	metrics.gauges(
		"boost_breaker_state",
		"1 for the current state of a breaker",
		labelSets({ upstream: UPSTREAMS, state: BREAKER_STATES }),
		({ upstream, state }) => (breakerOf(upstream)?.state === state ? 1 : 0),
	);
	metrics.gauges(
		"boost_in_flight",
		"Requests to an upstream that are not answered yet",
		labelSets({ upstream: UPSTREAMS }),
		({ upstream }) => breakerOf(upstream)?.status().inFlight ?? 0,
	);
	metrics.gauge("boost_journal_depth", "Transactions that are not final", () => rows.liveCount);
	metrics.gauge("boost_oldest_open_seconds", "Age of the oldest transaction that is not final", () => {
		let oldest = clock.now();
		for (const { receivedAt } of rows.allLive()) oldest = Math.min(oldest, receivedAt);
		return (clock.now() - oldest) / 1000;
	});
	metrics.gauge(
		"boost_journal_durable",
		"1 if the last write of the journal succeeded and it is not full",
		() => (rows.isDurable && !rows.isFull ? 1 : 0),
	);
	metrics.gauges(
		"boost_journal_fullness",
		"Fill level of the journal, 0 to 1: in total, and of the client with the most",
		labelSets({ of: FULLNESS_OF }),
		({ of }) => rows.fullness[of === "all" ? "all" : "client"],
	);
	metrics.gauge("boost_instances", "Boost instances on this database", () => homes?.count ?? 1);
	metrics.gauge(
		"boost_accounts_taken_over",
		"Accounts that this instance has taken over from others since its start",
		() => homes?.takenOver ?? 0,
	);
	metrics.gauge("boost_websockets", "Websockets that are open", websockets);
}

function requestOutcome(outcome: CallOutcome): (typeof REQUEST_OUTCOMES)[number] {
	switch (outcome) {
		case "ok":
		case "unavailable":
		case "internal":
			return outcome;
		case "limit":
		case "rateLimit":
			return "limited";
		default:
			return "refused";
	}
}

/** The keys of a record, which the type requires to be complete. */
function keys<K extends string>(names: Readonly<Record<K, 0>>): readonly K[] {
	return Object.keys(names) as K[];
}

function all<K extends string>(names: readonly K[]): Record<K, 0> {
	return Object.fromEntries(names.map((name) => [name, 0])) as Record<K, 0>;
}
