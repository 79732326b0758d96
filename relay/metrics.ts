// The relay's metrics: each a function, all series there from the start. What is measured is decided by those who
// call them.

import { type Count, labelSets, type Metrics, type Observe } from "../shared/metrics.ts";
import { FULLNESS_OF, type Fullness } from "../shared/shares/shares.ts";
import { BUNDLE_REFUSALS } from "./domain/bundle.ts";
import { ENDPOINTS } from "./domain/endpoints.ts";
import { STAGES } from "./domain/record.ts";
import { REJECTION_CODES } from "./domain/rejection.ts";

/** Steps of a submission, in order. */
export const STEPS = ["decode", "admission", "store", "account", "simulation", "broadcast"] as const;
export type Step = (typeof STEPS)[number];

/** How a submission ended. */
const SUBMISSION_OUTCOMES = ["accepted", "known", "cancels", "failed", ...REJECTION_CODES] as const;

export interface RelayMetrics {
	/** A submission that was answered. */
	readonly submission: Count<"path" | "outcome">;
	/** Seconds that a step of a submission took. */
	readonly step: Observe<"step">;
	/** A transaction came into a stage. */
	readonly stage: Count<"stage">;
	/** Ether that was paid to users, as read from blocks; a reorganisation may have one counted twice. */
	readonly refunded: Count<never>;
	/** A delivery to a builder that was answered, or not. */
	readonly delivery: Count<"builder" | "kind" | "answer">;
	readonly deliverySeconds: Observe<"builder">;
	/** A bid or a plain bundle that was answered. */
	readonly bundle: Count<"kind" | "outcome">;
	/** What a bidder did in a block: see relay/auction/conduct.ts. */
	readonly conduct: Count<"fact">;
	/** A JSON-RPC call that ended. */
	readonly call: Count<"method" | "outcome">;
	/** A background task that failed. */
	readonly taskFailed: Count<"task">;
}

/** Makes the relay's series; `builders` are the builders' names. */
export function relayMetrics(metrics: Metrics, builders: readonly string[]): RelayMetrics {
	return {
		submission: metrics.counter(
			"relay_submissions_total",
			"Submissions by path and outcome",
			labelSets({ path: Object.keys(ENDPOINTS), outcome: SUBMISSION_OUTCOMES }),
		),
		step: metrics.histogram(
			"relay_step_seconds",
			"Time of each step of a submission",
			labelSets({ step: STEPS }),
		),
		stage: metrics.counter(
			"relay_stage_total",
			"Transactions that came into a stage",
			labelSets({ stage: STAGES }),
		),
		refunded: metrics.counter("relay_refunded_ether_total", "Ether that was paid to users", labelSets({})),
		delivery: metrics.counter(
			"relay_deliveries_total",
			"Deliveries to builders by answer",
			labelSets({
				builder: builders,
				kind: ["bundle", "backrun", "private", "cancel"],
				answer: ["accepted", "rejected", "failed", "timeout", "unsent"],
			}),
		),
		deliverySeconds: metrics.histogram(
			"relay_delivery_seconds",
			"Time until a builder answered",
			labelSets({ builder: builders }),
		),
		bundle: metrics.counter(
			"relay_bundles_total",
			"Searchers' bundles by kind and outcome",
			labelSets({ kind: ["bid", "plain"], outcome: ["accepted", "failed", ...BUNDLE_REFUSALS] }),
		),
		conduct: metrics.counter(
			"relay_bids_in_blocks_total",
			"Bids that landed, paid short, or lost to a lower one",
			labelSets({ fact: ["landed", "short", "lost"] }),
		),
		call: metrics.counter(
			"relay_calls_total",
			"JSON-RPC calls by method",
			labelSets({ method: ["eth_sendRawTransaction", "unknown"], outcome: ["ok", "rejected", "internal"] }),
		),
		taskFailed: metrics.counter(
			"relay_task_failures_total",
			"Background tasks that failed",
			labelSets({ task: ["chain", "accounts", "heads", "logs", "bids", "refunds", "records", "conduct"] }),
		),
	};
}

/** What is read when the metrics are asked for. */
export interface RelayGauges {
	readonly pending: () => number;
	readonly oldestAgeSeconds: () => number;
	readonly records: () => number;
	readonly lanes: () => number;
	/** How full the fullest builder's lane is. */
	readonly lanesFullness: () => Fullness;
	/** Live bids. */
	readonly bids: () => number;
	/** Owners, senders and contracts whose bids are refused. */
	readonly barred: () => number;
	/** Number of the last block that was worked off; -1 before the first. */
	readonly head: () => number;
	readonly headAgeSeconds: () => number;
	/** Subscriptions of all websocket connections. */
	readonly subscriptions: () => number;
}

/** Makes the relay's gauges. */
export function watchRelay(metrics: Metrics, read: RelayGauges): void {
	metrics.gauge("relay_pending_transactions", "Transactions in the pool", read.pending);
	metrics.gauge(
		"relay_oldest_pending_seconds",
		"Age of the oldest transaction in the pool",
		read.oldestAgeSeconds,
	);
	metrics.gauge("relay_transaction_records", "Transactions not settled yet", read.records);
	metrics.gauge("relay_lane_depth", "Deliveries that wait or are under way", read.lanes);
	metrics.gauges(
		"relay_lane_fullness",
		"How full the fullest builder's lane is, 0 to 1: of all, and of the client that has the most",
		labelSets({ of: FULLNESS_OF }),
		({ of }) => read.lanesFullness()[of === "all" ? "all" : "client"],
	);
	metrics.gauge("relay_bids", "Live bids", read.bids);
	metrics.gauge("relay_barred_bidders", "Owners, senders and contracts that are barred", read.barred);
	metrics.gauge("relay_head_number", "The last block that was worked off", read.head);
	metrics.gauge("relay_head_age_seconds", "Age of the head", read.headAgeSeconds);
	metrics.gauge("relay_subscriptions", "Subscriptions of websocket clients", read.subscriptions);
}
