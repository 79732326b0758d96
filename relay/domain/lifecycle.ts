// The legal transitions of a transaction: the next stage by stage and event, or null where the event can't happen.
// Nothing else changes a stage.

import type { TxEvent, TxEventType } from "./events.ts";

/** The stages of a transaction, as the status shows them. */
export const STAGES = [
	"PENDING",
	"QUEUED",
	"SIMULATION_FAILED",
	"SHARED",
	"BROADCAST",
	"INCLUDED",
	"REVERTED",
	"REPLACED",
	"CANCELLED",
	"EXPIRED",
	"DROPPED",
] as const;
export type Stage = (typeof STAGES)[number];

/** The stages of a transaction that may still go out. */
export const LIVE: readonly Stage[] = ["PENDING", "QUEUED", "SIMULATION_FAILED", "SHARED", "BROADCAST"];
const MINED: readonly Stage[] = ["INCLUDED", "REVERTED"];
/** Ended by its user: the same bytes never bring it back. */
const ENDED_BY_USER: readonly Stage[] = ["REPLACED", "CANCELLED"];
const ENDED_BY_RELAY: readonly Stage[] = ["EXPIRED", "DROPPED"];
const ALL: readonly Stage[] = STAGES;

/** `same`: the stage stays. `mined`: INCLUDED, or REVERTED where the event says so. `back`: what it was before the block. */
type Target = Stage | "same" | "mined" | "back";

/** For each event where it may happen, and what it leads to; the first row that holds the stage counts. */
export const TRANSITIONS: Readonly<Record<TxEventType, readonly (readonly [readonly Stage[], Target])[]>> = {
	received: [
		[["PENDING"], "same"],
		[ENDED_BY_RELAY, "PENDING"],
	],
	queued: [[LIVE, "QUEUED"]],
	ready: [
		[["QUEUED"], "PENDING"],
		[["PENDING", "SIMULATION_FAILED", "SHARED", "BROADCAST"], "same"],
	],
	simulated: [
		[["SIMULATION_FAILED"], "PENDING"],
		[["PENDING", "SHARED", "BROADCAST"], "same"],
	],
	simulationFailed: [[["PENDING", "SIMULATION_FAILED", "SHARED", "BROADCAST"], "SIMULATION_FAILED"]],
	shared: [
		[["PENDING"], "SHARED"],
		[["QUEUED", "SIMULATION_FAILED", "BROADCAST"], "same"],
	],
	broadcast: [[["PENDING", "SHARED", "BROADCAST"], "BROADCAST"]],
	bid: [[LIVE, "same"]],
	bundled: [[["BROADCAST"], "same"]],
	// Read from the block some time after it came.
	refunded: [[MINED, "same"]],
	// Answers come late: a delivery may be heard of at any time.
	delivered: [[ALL, "same"]],
	// A builder may mine what was replaced, cancelled or given up a moment ago.
	included: [[[...LIVE, ...ENDED_BY_USER, ...ENDED_BY_RELAY], "mined"]],
	reorged: [
		[MINED, "back"],
		[["DROPPED"], "PENDING"],
	],
	// What expired would come back with the same bytes: its user may end it for good.
	replaced: [[[...LIVE, "EXPIRED"], "REPLACED"]],
	cancelled: [[[...LIVE, "EXPIRED"], "CANCELLED"]],
	expired: [[LIVE, "EXPIRED"]],
	dropped: [[LIVE, "DROPPED"]],
};

/**
 * The stage that `event` leads to from `stage`, or null where it is illegal there. `ended` is how the transaction
 * had ended before a builder mined it all the same: a reorganisation takes it back to that, never to life.
 */
export function nextStage(stage: Stage, event: TxEvent, ended: Stage | null): Stage | null {
	const row = TRANSITIONS[event.type].find(([stages]) => stages.includes(stage));
	if (row === undefined) return null;
	const [, target] = row;
	if (target === "same") return stage;
	if (target === "mined") return event.type === "included" && event.reverted ? "REVERTED" : "INCLUDED";
	if (target === "back") return ended ?? "PENDING";
	return target;
}

/** Whether a transaction in `stage` may still go out. */
export function isLive(stage: Stage): boolean {
	return LIVE.includes(stage);
}

/** Whether a transaction in `stage` is in a block. */
export function isMined(stage: Stage): boolean {
	return MINED.includes(stage);
}

/** Whether its user ended it: the same bytes are answered with the hash and nothing happens. */
export function isEndedByUser(stage: Stage): boolean {
	return ENDED_BY_USER.includes(stage);
}
