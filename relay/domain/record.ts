// The record of one transaction: its stage, its events and the fields that follow from them. The
// table of legal transitions decides each change of stage. Status, store and event page show the
// record. It contains no raw bytes.

import {
	type Exposure,
	LIVE_STAGES,
	MINED_STAGES,
	OUTGOING_STAGES,
	STAGES,
	type Stage,
	waitsForFee,
} from "../../shared/ethereum/statusRecord.ts";
import type { Owner } from "../../shared/ownership.ts";
import type { TxEvent, TxEventType } from "./events.ts";
import type { SimulationError } from "./simulation.ts";
import type { PrivateTransaction } from "./transaction.ts";

/** A delivery to one builder, with its response. */
export type Delivery = Omit<Extract<TxEvent, { type: "delivered" }>, "type">;

/** The events that a record lists: all except deliveries and bids. */
export type LifeEvent = Exclude<TxEvent, { type: "delivered" | "bid" }>;

/** Its user cancelled or replaced it. */
export type UserEnd = Extract<LifeEvent, { type: "cancelled" | "replaced" }>;

/** Whether the event is a cancel or a replacement. */
export function isUserEnd(event: LifeEvent): event is UserEnd {
	return event.type === "cancelled" || event.type === "replaced";
}

/**
 * The record of one transaction. Only {@link fold}, {@link setOwners}, {@link endForAll} and the
 * archive change it. Numbers fit JSON; wei, gas and nonce are decimal strings.
 */
export interface TransactionRecord {
	readonly hash: string;
	readonly receivedAt: number;
	readonly from: string;
	/** Null for a creation. */
	readonly to: string | null;
	readonly gas: string;
	readonly nonce: string;
	readonly value: string;
	/**
	 * Its submitters, who determine its path and refund recipient. Without their addresses once it
	 * is archived.
	 */
	readonly owners: readonly Owner[];
	/**
	 * The addresses that have ended it together; anybody else may submit it again. Empty if it has
	 * not ended so, or if its sender has ended it since, for everybody.
	 */
	readonly endedBy: readonly string[];
	readonly stage: Stage;
	/**
	 * REPLACED, CANCELLED or EXPIRED once it has ended so, even if it is mined anyway: a
	 * reorganisation returns it to that stage. Null if it has not ended so, was submitted again, or
	 * its nonce was used (DROPPED).
	 */
	readonly ended: Stage | null;
	/** Whether searchers have seen it since it was last submitted. */
	readonly shared: boolean;
	/** Whether it was ever sent behind a transaction that is hidden from searchers. */
	readonly behindHidden: boolean;
	/** The last block that contained it and has left the chain; null if there was none. */
	readonly exposed: Exposure | null;
	/** When the public mempool had it before any block, in ms since the epoch; null: never seen. */
	readonly seenAt: number | null;
	/** The error of its last simulation, or why there was none. Null once it has passed. */
	readonly simulationError: SimulationError | null;
	/**
	 * The block of the last event about its state: included, ended, failed, ready, waiting,
	 * received.
	 */
	readonly block: number | null;
	/** The block that contains it, or null. */
	readonly blockHash: string | null;
	/** The first block of its lifetime, which starts when its nonce is next. */
	readonly firstBlock: number | null;
	/**
	 * Whether it has passed a simulation since it was last submitted, whatever later ones returned.
	 */
	readonly passed: boolean;
	/** The number of accepted bids. */
	readonly backruns: number;
	/** The refund that was actually paid in its block, in wei. */
	readonly refund: string;
	/** When it was archived (transactions/disk.ts), in ms by {@link laterTime}; set by the store. */
	readonly settledAt?: number;
	readonly events: readonly LifeEvent[];
	readonly deliveries: readonly Delivery[];
	/** The number of events and deliveries that were not kept. */
	readonly omitted: number;
}

/**
 * Its public stage. A transaction that waits for a fee to fall is stored like a failed one, but has
 * not failed.
 */
export function publicStage({
	stage,
	simulationError,
}: Pick<TransactionRecord, "stage" | "simulationError">): Stage {
	const waits = stage === "SIMULATION_FAILED" && simulationError !== null && waitsForFee(simulationError);
	return waits ? "PENDING" : stage;
}

/** A record while {@link fold} changes it. */
type Draft = { -readonly [Name in keyof TransactionRecord]: TransactionRecord[Name] };

/**
 * Events and deliveries kept per transaction: the first and the last ones; those in between are
 * only counted.
 */
export const MAX_EVENTS = 200;
export const MAX_DELIVERIES = 400;
/** Most characters of a compacted record's error message. */
const COMPACT_ERROR_LENGTH = 100;
/** The part of the kept events that is reserved for the first ones. */
const KEPT_FIRST = 0.25;
/** One interned list for most records. */
export const NOBODY: readonly string[] = [];

/** The part of a transaction that its record has. */
interface Recorded extends Pick<PrivateTransaction, "receivedAt" | "owners"> {
	readonly tx: Pick<PrivateTransaction["tx"], "hash" | "from" | "to" | "gasLimit" | "nonce" | "value">;
}

/** A new record, before its first event. */
export function newRecord(transaction: Recorded): TransactionRecord {
	const { tx } = transaction;
	// One literal with every property: an object built by spreads is slow for as long as the record
	// lives.
	return {
		hash: tx.hash,
		receivedAt: transaction.receivedAt,
		from: tx.from,
		to: tx.to,
		gas: tx.gasLimit.toString(),
		nonce: tx.nonce.toString(),
		value: tx.value.toString(),
		owners: transaction.owners,
		endedBy: NOBODY,
		stage: "PENDING",
		ended: null,
		shared: false,
		behindHidden: false,
		exposed: null,
		seenAt: null,
		simulationError: null,
		block: null,
		blockHash: null,
		firstBlock: null,
		passed: false,
		backruns: 0,
		refund: "0",
		events: [],
		deliveries: [],
		omitted: 0,
	};
}

/**
 * Applies `event` to the record. Returns false, and changes nothing, if the transition is illegal.
 */
export function fold(known: TransactionRecord, given: TxEvent): boolean {
	const event = inOrder(known, given);
	const stage = nextStage(known.stage, event, known.ended);
	if (stage === null) return false;
	const record = known as Draft;
	record.stage = stage;
	if (event.type === "bid") {
		record.backruns += 1;
		return true;
	}
	if (event.type === "delivered") {
		const deliveries = kept(record.deliveries, deliveryOf(event), MAX_DELIVERIES, isNoCancel);
		record.omitted += record.deliveries.length + 1 - deliveries.length;
		record.deliveries = deliveries;
		return true;
	}
	const events = kept(record.events, event, MAX_EVENTS, isAny);
	record.omitted += record.events.length + 1 - events.length;
	record.events = events;
	applyFields(record, event);
	return true;
}

/**
 * `event`, with a time not before the record's events, even if the machine's clock was set back.
 */
export function inOrder({ events, deliveries }: TransactionRecord, event: TxEvent): TxEvent {
	const at = Math.max(event.at, events.at(-1)?.at ?? 0, deliveries.at(-1)?.at ?? 0);
	return at === event.at ? event : { ...event, at };
}

/** Gives the record other owners. The event about that is applied separately. */
export function setOwners(record: TransactionRecord, owners: readonly Owner[]): void {
	(record as Draft).owners = owners;
}

/**
 * Its sender has ended it for everybody; before, only addresses had cancelled it. It stays
 * `CANCELLED`.
 */
export function endForAll(record: TransactionRecord): void {
	(record as Draft).endedBy = NOBODY;
}

/**
 * Whether its user ended it, or it expired, before any builder had it. Then nobody can mine it, and
 * its bytes can go.
 */
export function endedUnsent({ ended, events, deliveries }: TransactionRecord): boolean {
	if (ended === null || deliveries.some(({ answer }) => answer !== "unsent")) return false;
	return !events.some((event) => isLeaving(event) || (isUserEnd(event) && event.builders.length > 0));
}

/**
 * The builders that may have it: those of its deliveries, except unsent ones. If it was sent and no
 * delivery is known, all `eligible` ones. The same applies after a restart (`atStartup`), when its
 * last events may be missing.
 */
export function holdersOf(
	{ deliveries, events, stage }: TransactionRecord,
	eligible: () => readonly string[],
	atStartup = false,
): ReadonlySet<string> {
	const mayBeOut = atStartup && stage !== "QUEUED";
	const sent = deliveries.filter(({ kind, answer }) => kind !== "cancel" && answer !== "unsent");
	const wasOut = mayBeOut || events.some(isLeaving);
	return new Set(wasOut && sent.length === 0 ? eligible() : sent.map(({ builder }) => builder));
}

/** Whether the event means that a builder was sent the transaction, alone or with a bid. */
function isLeaving({ type }: LifeEvent): boolean {
	return type === "broadcast" || type === "bundled";
}

/** The record with only its last event, and a shortened error. */
export function compacted(record: TransactionRecord): TransactionRecord {
	const { events, omitted, simulationError: error } = record;
	return {
		...record,
		events: events.slice(-1),
		omitted: omitted + Math.max(0, events.length - 1),
		simulationError: error && { code: error.code, message: error.message.slice(0, COMPACT_ERROR_LENGTH) },
	};
}

/**
 * A literal: an object built by spreads takes more memory, and there is one for each builder and
 * block.
 */
function deliveryOf(event: Extract<TxEvent, { type: "delivered" }>): Delivery {
	const { at, block, builder, kind, answer, ms, backrun } = event;
	return backrun === undefined
		? { at, block, builder, kind, answer, ms }
		: { at, block, builder, kind, backrun, answer, ms };
}

/**
 * The list with `item` appended. If it is too long then, one of its middle items that may go is
 * removed. The new list has no spare room, which would exceed the items in most records.
 */
function kept<T>(list: readonly T[], item: T, most: number, mayGo: (item: T) => boolean): readonly T[] {
	const longer = list.concat([item]);
	if (longer.length <= most) return longer;
	const first = Math.floor(most * KEPT_FIRST);
	const at = longer.findIndex((one, i) => i >= first && mayGo(one));
	return at >= 0 ? longer.toSpliced(at, 1) : longer;
}

/** Responses to cancels are never dropped. */
function isNoCancel({ kind }: Delivery): boolean {
	return kind !== "cancel";
}

function isAny(): boolean {
	return true;
}

/**
 * Events that do not set the record's block. From that block, blockLoop.ts counts how long a
 * transaction that is not ready has waited.
 */
const ABOUT_ANOTHER_BLOCK: ReadonlySet<string> = new Set([
	"joined",
	"left",
	"simulated",
	"notSimulated",
	"broadcast",
	"bundled",
	"refunded",
	"exposed",
	"backrunLeftOut",
	"seenInPublic",
]);

function applyFields(record: Draft, event: LifeEvent): void {
	if ("block" in event && !ABOUT_ANOTHER_BLOCK.has(event.type)) record.block = event.block;
	switch (event.type) {
		case "received":
			// A resubmitted transaction starts its lifetime again.
			record.ended = null;
			record.endedBy = NOBODY;
			record.simulationError = null;
			record.passed = false;
			record.firstBlock = null;
			break;
		case "queued":
			// Its lifetime starts (again) when its nonce is next.
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
		case "notSimulated":
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
		case "exposed":
			record.exposed = { block: event.block, depth: event.depth };
			// It is sent again whatever its age, so its lifetime starts again.
			if (record.firstBlock !== null) record.firstBlock = event.block + event.depth;
			break;
		case "seenInPublic":
			record.seenAt = event.at;
			break;
		case "replaced":
		case "cancelled":
		case "expired":
			record.ended = record.stage;
			record.endedBy = "byAddress" in event ? addressesOf(record.owners) : NOBODY;
			break;
		default:
			break;
	}
}

/** A row with one of these lists includes each stage that is added to the list. */
const LIVE: readonly Stage[] = LIVE_STAGES;
const OUTGOING: readonly Stage[] = OUTGOING_STAGES;
const MINED: readonly Stage[] = MINED_STAGES;
const ENDED_BY_USER: readonly Stage[] = ["REPLACED", "CANCELLED"];
const ENDED_BY_RELAY: readonly Stage[] = ["EXPIRED", "DROPPED"];
const ALL: readonly Stage[] = STAGES;

/**
 * `same`: the stage stays. `mined`: INCLUDED, or REVERTED if the event says so. `back`: the stage
 * in which it had ended, else PENDING.
 */
type Target = Stage | "same" | "mined" | "back";

/**
 * For each event, the stages in which it is legal and the resulting stage. The first matching row
 * counts.
 */
export const TRANSITIONS: Readonly<Record<TxEventType, readonly (readonly [readonly Stage[], Target])[]>> = {
	received: [
		[["PENDING"], "same"],
		[[...ENDED_BY_RELAY, "CANCELLED"], "PENDING"],
	],
	joined: [[LIVE, "same"]],
	left: [[LIVE, "same"]],
	queued: [[LIVE, "QUEUED"]],
	ready: [
		[["QUEUED"], "PENDING"],
		[["PENDING", "SIMULATION_FAILED", "SHARED", "BROADCAST"], "same"],
	],
	simulated: [
		[["SIMULATION_FAILED"], "PENDING"],
		[OUTGOING, "same"],
	],
	simulationFailed: [[["PENDING", "SIMULATION_FAILED", "SHARED", "BROADCAST"], "SIMULATION_FAILED"]],
	notSimulated: [
		[["SIMULATION_FAILED"], "PENDING"],
		[OUTGOING, "same"],
	],
	shared: [
		[["PENDING"], "SHARED"],
		[["QUEUED", "SIMULATION_FAILED", "BROADCAST"], "same"],
	],
	broadcast: [[OUTGOING, "BROADCAST"]],
	bid: [[LIVE, "same"]],
	bundled: [[OUTGOING, "BROADCAST"]],
	// Read from the block some time later.
	refunded: [[MINED, "same"]],
	backrunLeftOut: [[MINED, "same"]],
	// Builders may respond at any time.
	delivered: [[ALL, "same"]],
	// A builder may mine a transaction that has just been replaced, cancelled or expired.
	included: [[[...LIVE, ...ENDED_BY_USER, ...ENDED_BY_RELAY], "mined"]],
	reorged: [
		[MINED, "back"],
		[["DROPPED"], "PENDING"],
	],
	exposed: [[[...LIVE, ...ENDED_BY_USER, ...ENDED_BY_RELAY], "same"]],
	seenInPublic: [[[...LIVE, ...ENDED_BY_USER, "EXPIRED"], "same"]],
	// An expired transaction could be resubmitted, so its user may still end it.
	replaced: [[[...LIVE, "EXPIRED"], "REPLACED"]],
	cancelled: [[[...LIVE, "EXPIRED"], "CANCELLED"]],
	expired: [[LIVE, "EXPIRED"]],
	dropped: [[LIVE, "DROPPED"]],
};

/**
 * The stage after `event`, or null if that is illegal in `stage`. `ended` is the stage in which the
 * transaction had ended before it was mined anyway: a reorganisation returns it to that stage.
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

/** Whether a transaction in `stage` may still be sent. */
export function isLive(stage: Stage): boolean {
	return LIVE.includes(stage);
}

/** Whether a transaction in `stage` is sent for each block. */
export function isOutgoing(stage: Stage): boolean {
	return OUTGOING.includes(stage);
}

/** Whether a transaction in `stage` is in a block. */
export function isMined(stage: Stage): boolean {
	return MINED.includes(stage);
}

/**
 * Whether a sighting in the public mempool means something: no block has it, or had it before a
 * reorganisation, and it was not seen before.
 */
export function canBeSeen({
	stage,
	exposed,
	seenAt,
}: Pick<TransactionRecord, "stage" | "exposed" | "seenAt">): boolean {
	return seenAt === null && exposed === null && !isMined(stage) && stage !== "DROPPED";
}

/** Whether its user ended it. */
export function isEndedByUser(stage: Stage): boolean {
	return ENDED_BY_USER.includes(stage);
}

/**
 * Whether the same bytes can be admitted again, by anybody or by an address that has not ended it.
 * Its sender can end it for everybody, by a transaction of the same nonce or a signed cancel.
 */
export function isRevivable({ stage, endedBy }: Pick<TransactionRecord, "stage" | "endedBy">): boolean {
	return stage === "EXPIRED" || (stage === "CANCELLED" && endedBy.length > 0);
}

function addressesOf(owners: readonly Owner[]): readonly string[] {
	return owners.flatMap(({ address }) => address ?? []);
}
