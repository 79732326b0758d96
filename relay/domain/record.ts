// The life of one transaction as data: its stage, its events folded into it, and the table of legal transitions, which alone
// changes a stage. It is what the status, the store and the event page show; it holds no raw bytes.

import type { TxEvent, TxEventType } from "./events.ts";
import type { SimulationError } from "./simulation.ts";
import type { PrivateTransaction } from "./transaction.ts";

/** What one builder was given for one block, and how it answered. */
export type Delivery = Omit<Extract<TxEvent, { type: "delivered" }>, "type">;

/** Everything but deliveries and bids, in order of time. */
export type LifeEvent = Exclude<TxEvent, { type: "delivered" | "bid" }>;

/** That its user took it back, or replaced it. */
export type UserEnd = Extract<LifeEvent, { type: "cancelled" | "replaced" }>;

/** Whether by this event its user ended it. */
export function isUserEnd(event: LifeEvent): event is UserEnd {
	return event.type === "cancelled" || event.type === "replaced";
}

/** The record of one transaction. Numbers fit JSON; wei, gas and nonce are decimal strings. */
export interface TransactionRecord {
	readonly hash: string;
	readonly receivedAt: number;
	readonly path: PrivateTransaction["path"];
	readonly from: string;
	/** Null for a creation. */
	readonly to: string | null;
	readonly gas: string;
	readonly nonce: string;
	readonly value: string;
	readonly referrer: string | null;
	/** The network address that submitted it: who may cancel it. Null once it is settled for good. */
	readonly origin: string | null;
	readonly refundRecipient: string | null;
	stage: Stage;
	/** How it ended before a builder mined it all the same: where a reorganisation takes it back to. */
	ended: Stage | null;
	shared: boolean;
	/** Whether it has ever gone out behind one that searchers don't see. */
	behindHidden: boolean;
	/** Why its last simulation failed; null once it has passed. */
	simulationError: SimulationError | null;
	/** The block of its last event that was about one: when it was included, ended, became ready, or began to wait. */
	block: number | null;
	/** The block that holds it, or null. */
	blockHash: string | null;
	/** The first block of its life: set when its nonce gap closed. */
	firstBlock: number | null;
	/** Whether it has passed a simulation. */
	passed: boolean;
	/** Bids that were accepted, each backrun counted once. */
	backruns: number;
	/** What was really paid to its refund recipient in the block that holds it, in wei. */
	refund: string;
	/** When it was settled, in ms, as {@link laterTime} tells it: set by the store. */
	readonly settledAt?: number;
	events: LifeEvent[];
	deliveries: Delivery[];
	/** Events and deliveries that no longer fitted. */
	omitted: number;
}

/** Events and deliveries kept per transaction: the first ones and the last ones, what lies between is only counted. */
export const MAX_EVENTS = 200;
export const MAX_DELIVERIES = 400;
/** Characters of the error that a compacted record keeps. */
const COMPACT_ERROR_LENGTH = 100;
/** The share of those kept that is of the beginning. */
const KEPT_FIRST = 0.25;

/** How most fields of most records are. */
export const USUAL = {
	...{ to: null, origin: null, referrer: null, refundRecipient: null, simulationError: null },
	...{ ended: null, block: null, blockHash: null, firstBlock: null },
	...{ shared: false, behindHidden: false, passed: false },
	...{ backruns: 0, refund: "0", omitted: 0 },
};

/** A new record, before its first event. */
export function newRecord(transaction: PrivateTransaction): TransactionRecord {
	const { tx, path, origin, receivedAt, referrer, refundRecipient } = transaction;
	const { hash, from, to } = tx;
	return {
		...USUAL,
		...{ hash, receivedAt, path, from, to, referrer, origin, refundRecipient },
		...{ gas: tx.gasLimit.toString(), nonce: tx.nonce.toString(), value: tx.value.toString() },
		...{ stage: "PENDING", events: [], deliveries: [] },
	};
}

/**
 * Folds `event` into `record`. Answers false, and changes nothing, where the lifecycle does not allow it.
 */
export function fold(record: TransactionRecord, event: TxEvent): boolean {
	const stage = nextStage(record.stage, event, record.ended);
	if (stage === null) return false;
	record.stage = stage;
	if (event.type === "bid") {
		record.backruns += 1;
		return true;
	}
	if (event.type === "delivered") {
		const { type: _, ...rest } = event;
		// What is answered comes behind what has happened, however the machine's clock was set meanwhile.
		const delivery = { ...rest, at: Math.max(rest.at, record.events.at(-1)?.at ?? 0) };
		// How builders took a cancel is never left out.
		record.omitted += keep(record.deliveries, delivery, MAX_DELIVERIES, ({ kind }) => kind !== "cancel");
		return true;
	}
	record.omitted += keep(record.events, event, MAX_EVENTS, () => true);
	applyFields(record, event);
	return true;
}

/**
 * Whether its user ended it, or it expired, before any builder had it: nobody else can have it mined, so its bytes are of
 * no use any more.
 */
export function endedUnsent({ ended, events, deliveries }: TransactionRecord): boolean {
	if (ended === null || deliveries.length > 0) return false;
	return !events.some(
		(event) => event.type === "broadcast" || (isUserEnd(event) && event.builders.length > 0),
	);
}

/**
 * The builders that have had it, as far as it is known: what happened in the last moments before a restart (`restored`) may
 * not have been written, not even that it went out; then all that are `eligible`.
 */
export function buildersWith(
	{ deliveries, events, stage }: TransactionRecord,
	eligible: () => readonly string[],
	restored = false,
): ReadonlySet<string> {
	const mayBeOut = restored && stage !== "QUEUED";
	const wasOut = mayBeOut || events.some(({ type }) => type === "broadcast");
	if (wasOut && deliveries.every(({ kind }) => kind === "cancel")) return new Set(eligible());
	const sent = deliveries.filter(({ kind, answer }) => kind !== "cancel" && answer !== "unsent");
	return new Set(sent.map(({ builder }) => builder));
}

/** The record without what can be large: of its life only how it ended, and why it was not sent in a few words. */
export function compacted(record: TransactionRecord): TransactionRecord {
	const { events, omitted, simulationError: error } = record;
	return {
		...record,
		events: events.slice(-1),
		omitted: omitted + Math.max(0, events.length - 1),
		simulationError: error && { code: error.code, message: error.message.slice(0, COMPACT_ERROR_LENGTH) },
	};
}

/** Puts `item` at the end of `list`, taking one out of the middle where it is full; answers how many that were. */
function keep<T>(list: T[], item: T, most: number, mayGo: (item: T) => boolean): number {
	list.push(item);
	if (list.length <= most) return 0;
	const first = Math.floor(most * KEPT_FIRST);
	const at = list.findIndex((one, i) => i >= first && mayGo(one));
	if (at >= 0) list.splice(at, 1);
	return at >= 0 ? 1 : 0;
}

/** Events whose block is not one that it came to or left by. */
const ABOUT_ANOTHER_BLOCK: ReadonlySet<string> = new Set(["simulated", "broadcast", "bundled", "refunded"]);

function applyFields(record: TransactionRecord, event: LifeEvent): void {
	if ("block" in event && !ABOUT_ANOTHER_BLOCK.has(event.type)) record.block = event.block;
	switch (event.type) {
		case "received":
			// Also of one that had expired or was dropped and is admitted anew: its life starts again.
			record.ended = null;
			record.simulationError = null;
			record.passed = false;
			record.firstBlock = null;
			break;
		case "queued":
			// What waits is not sent: its life starts when its turn comes, also where it had begun before.
			record.firstBlock = null;
			break;
		case "ready":
			record.firstBlock ??= event.block;
			break;
		case "simulated":
			record.simulationError = null;
			record.passed = true;
			break;
		case "simulationFailed":
			record.simulationError = event.error;
			break;
		case "shared":
			record.shared = true;
			break;
		case "broadcast":
			record.behindHidden ||= event.behindHidden === true;
			break;
		case "included":
			record.simulationError = null;
			record.blockHash = event.blockHash;
			record.refund = "0";
			break;
		case "refunded":
			record.refund = event.paid;
			break;
		case "reorged":
			record.blockHash = null;
			record.refund = "0";
			break;
		case "replaced":
		case "cancelled":
		case "expired":
			record.ended = record.stage;
			break;
		default:
			break;
	}
}

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
