// The relay's metrics, one function each. All series exist from the start, so that a rate over them
// has no gaps.

import { STAGES } from "../shared/ethereum/statusRecord.ts";
import { labelSets, type Metrics } from "../shared/metrics.ts";
import type { Traces } from "../shared/tracing/traces.ts";
import { BUNDLE_REJECTIONS } from "./domain/bundle.ts";
import type { ChainUpdate } from "./domain/chain.ts";
import { type ConductCount, type ConductTerms, conductOf } from "./domain/conduct.ts";
import { ENDPOINTS } from "./domain/endpoints.ts";
import type { DeliveryAnswer, TxEventType } from "./domain/events.ts";
import type { EventListener } from "./domain/ports.ts";
import { REJECTION_CODES } from "./domain/rejection.ts";

/** Steps of a submission, in order. */
export const STEPS = ["decode", "admission", "store", "account", "simulation", "broadcast"] as const;

/** How a submission ended. */
const SUBMISSION_OUTCOMES = ["accepted", "known", "cancels", "failed", ...REJECTION_CODES] as const;

/** Bounds of buckets: a lifetime of blocks, and what lies behind it. */
const INCLUSION_BLOCKS = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 50, 100];
/** The label of a block whose coinbase is no builder's. */
export const OTHER_BUILDER = "other";

export type RelayMetrics = ReturnType<typeof relayMetrics>;

/** Registers the relay's series; `builders` are the builders' names. */
export function relayMetrics(metrics: Metrics, builders: readonly string[]) {
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
			"Transactions that reached a stage",
			labelSets({ stage: STAGES }),
		),
		/** The first block that could contain a transaction counts as one. */
		blocks: metrics.histogram(
			"relay_inclusion_blocks",
			"Blocks until a transaction was mined",
			labelSets({}),
			INCLUSION_BLOCKS,
		),
		built: metrics.counter(
			"relay_blocks_with_ours_total",
			"Blocks with transactions of this relay, by the builder whose coinbase they have",
			labelSets({ builder: [...builders, OTHER_BUILDER] }),
		),
		/** As read from blocks; after a reorganisation a refund may be counted twice. */
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
			labelSets({ kind: ["bid", "plain"], outcome: ["accepted", "failed", ...BUNDLE_REJECTIONS] }),
		),
		landed: metrics.counter(
			"relay_bids_in_blocks_total",
			"Bids that landed directly behind their target, by whether they paid at least 99 % of their claim",
			labelSets({ fact: ["landed", "short"] }),
		),
		bid: metrics.counter(
			"relay_bids_in_blocks_ether_total",
			"Ether that landed bids claimed, and paid",
			labelSets({ of: ["claimed", "paid"] }),
		),
		/** As it happens; after a reorganisation a transaction may be counted twice. */
		conduct: metrics.counter(
			"relay_builder_conduct_total",
			"Transactions by what a builder did with them, as in builders.csv",
			labelSets({ builder: builders, count: COUNTED }),
		),
		seen: metrics.counter(
			"relay_seen_in_public_total",
			"Transactions that the public mempool had before any block",
			labelSets({ of: ["transaction", "canary"] }),
		),
		call: metrics.counter(
			"relay_calls_total",
			"JSON-RPC calls by method",
			labelSets({ method: ["eth_sendRawTransaction", "unknown"], outcome: ["ok", "rejected", "internal"] }),
		),
		taskFailed: metrics.counter(
			"relay_task_failures_total",
			"Background tasks that failed",
			labelSets({
				task: ["chain", "accounts", "heads", "logs", "bids", "refunds", "records", "payments", "canaries"],
			}),
		),
	};
}

const WEI_PER_ETHER = 1e18;

/** The counts of a builder's conduct that an event may raise. */
const RAISED: Readonly<Partial<Record<TxEventType, readonly ConductCount[]>>> = {
	included: ["mined", "minedAfterCancel", "leakedCanaries"],
	refunded: ["backrun", "shortRefunds"],
	backrunLeftOut: ["otherBackrun", "noBackrun"],
	seenInPublic: ["seenAlone", "leakedCanaries"],
};
const COUNTED = [...new Set(Object.values(RAISED).flat())];

/** Returns a listener of the records that counts the changes of transactions. */
export function countsRecords(
	{ stage, blocks, refunded, conduct, seen }: RelayMetrics,
	terms: ConductTerms,
): EventListener {
	return (record, before, event) => {
		if (event.type === "seenInPublic") seen({ of: record.from === terms.canary ? "canary" : "transaction" });
		const raised = RAISED[event.type];
		if (raised !== undefined) {
			for (const one of conductOf(record, terms))
				for (const count of raised) conduct({ builder: one.builder, count }, one[count]);
		}
		if (event.type === "included" && record.firstBlock !== null)
			blocks({}, Math.max(1, event.block - record.firstBlock + 1));
		if (record.stage !== before) stage({ stage: record.stage });
		if (event.type === "refunded") refunded({}, Number(BigInt(event.paid)) / WEI_PER_ETHER);
	};
}

/**
 * Returns a function that counts the new blocks with transactions of ours. `builtBy` returns the
 * builders with that coinbase.
 */
export function countsBlocks(
	{ built }: RelayMetrics,
	isOurs: (hash: string) => boolean,
	builtBy: (coinbase: string) => readonly string[],
): (update: ChainUpdate) => void {
	return ({ applied }) => {
		for (const { transactions, miner } of applied) {
			if (transactions.some(({ hash }) => isOurs(hash)))
				built({ builder: builtBy(miner.toLowerCase())[0] ?? OTHER_BUILDER });
		}
	};
}

/** Counts deliveries to builders, and reports them to `health` and the traces. */
export function countsDeliveries(
	{ delivery, deliverySeconds }: RelayMetrics,
	health: { note(builder: string, answer: DeliveryAnswer, ms: number): void },
	traces: Traces,
) {
	return (
		builder: string,
		kind: string,
		answer: DeliveryAnswer,
		ms: number,
		hash: string,
		block: number,
	): void => {
		health.note(builder, answer, ms);
		delivery({ builder, kind, answer });
		if (answer === "unsent") return;
		deliverySeconds({ builder }, ms / 1_000);
		if (traces.isOn) traces.past("relay.delivery", hash, ms, { builder, kind, block, outcome: answer });
	};
}

/**
 * Returns a function that counts landed bids, given the payment that each claimed and made, in wei.
 */
export function countsLanded({ landed, bid }: RelayMetrics): (claimed: bigint, paid: bigint) => void {
	return (claimed, paid) => {
		landed({ fact: paid * 100n < claimed * 99n ? "short" : "landed" });
		bid({ of: "claimed" }, Number(claimed) / WEI_PER_ETHER);
		bid({ of: "paid" }, Number(paid) / WEI_PER_ETHER);
	};
}
