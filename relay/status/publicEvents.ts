// The public view of a transaction's events. Anyone with the hash can read it, and searchers know
// the hashes of shared transactions. So it shows only the mined bid, and nothing about hidden
// transactions of the same sender. Pure.

import { isoTime } from "../../shared/clock.ts";
import type { TxEvent } from "../domain/events.ts";
import {
	type Delivery,
	isMined,
	isUserEnd,
	type LifeEvent,
	type TransactionRecord,
} from "../domain/record.ts";

/** Whether the transaction with a hash is shared or mined. */
export type IsPublic = (hash: string) => boolean;

/** The public form of an event. */
export interface PublicEvent {
	/** Ms since the epoch. */
	readonly at: number;
	/** `type`, `at` in ISO 8601, and the public fields of the event. */
	readonly view: object;
}

/** How many of the builders that received the transaction have confirmed its cancel. */
export interface CancelsReport {
	readonly builders: number;
	readonly confirmed: number;
	/** "5 of 7 builders confirmed" */
	readonly summary: string;
}

/** All recorded events and deliveries, in order of time. */
export function publicEvents(record: TransactionRecord, isPublic: IsPublic): readonly PublicEvent[] {
	const mined = minedBackrun(record);
	const isShown = (event: LifeEvent | Delivery) => isMined(record.stage) || !tellsOfBids(event);
	const events = record.events
		.filter((event) => isShown(event) && !isForOperator(event))
		.map((event) => shown(event.at, lifeView(record, event, mined, isPublic)));
	const deliveries = hidesBuilders(record) ? [] : record.deliveries.filter(isShown).map(deliveryView);
	return [...events, ...deliveries].sort((a, b) => a.at - b.at);
}

/** The public form of a new event; null if it is not public. */
export function publicEvent(
	record: TransactionRecord,
	event: TxEvent,
	isPublic: IsPublic,
): PublicEvent | null {
	if (event.type === "bid" || isForOperator(event)) return null;
	if (tellsOfBids(event) && !isMined(record.stage)) return null;
	if (event.type === "delivered") return hidesBuilders(record) ? null : deliveryView(event);
	return shown(event.at, lifeView(record, event, minedBackrun(record), isPublic));
}

/**
 * Whether an event reveals bids, which must stay secret until the block that contains their target.
 */
function tellsOfBids(event: TxEvent | Delivery): boolean {
	return ("type" in event && event.type === "bundled") || ("backrun" in event && event.backrun === true);
}

/** Whether only the operator sees it: one such event proves nothing about a builder. */
function isForOperator({ type }: TxEvent): boolean {
	return type === "backrunLeftOut";
}

/**
 * How many builders confirmed the cancel. Null if its user has not ended the transaction, or its
 * builders are hidden.
 */
export function cancelsReport(record: TransactionRecord): CancelsReport | null {
	const end = record.events.findLast(isUserEnd);
	if (end === undefined || hidesBuilders(record)) return null;
	const notified = new Set(end.builders);
	const confirmed = new Set(
		record.deliveries
			.filter(({ kind, backrun }) => kind === "cancel" && backrun !== true)
			.filter(({ answer, at }) => answer === "accepted" && at >= end.at)
			.map(({ builder }) => builder)
			.filter((builder) => notified.has(builder)),
	).size;
	const builders = notified.size;
	const summary = builders === 0 ? "no builder to tell" : `${confirmed} of ${builders} builders confirmed`;
	return { builders, confirmed, summary };
}

/**
 * Whether its builders are hidden. Searchers know this transaction, and its builders would reveal
 * the path of a hidden one before it.
 */
function hidesBuilders(record: TransactionRecord): boolean {
	return record.behindHidden && isKnown(record);
}

/** Whether searchers know its hash, even if it was shared before it expired and was resubmitted. */
function isKnown({ shared, events }: TransactionRecord): boolean {
	return shared || events.some(({ type }) => type === "shared");
}

/** The hash of the backrun that was mined behind it, if any. */
function minedBackrun(record: TransactionRecord): string | undefined {
	const refunded = record.events.findLast(({ type }) => type === "refunded");
	return refunded?.type === "refunded" ? refunded.backrun : undefined;
}

function deliveryView({ at, ...rest }: Delivery): PublicEvent {
	return shown(at, { type: "delivered", ...rest });
}

function shown(at: number, view: object): PublicEvent {
	return { at, view: { ...view, at: isoTime(at) } };
}

function lifeView(
	record: TransactionRecord,
	event: LifeEvent,
	mined: string | undefined,
	isPublic: IsPublic,
): object {
	switch (event.type) {
		case "bundled": {
			const { recipient, ...shown } = event;
			const { bundle, backrun, bid, ...rest } = shown;
			return backrun === mined ? shown : rest;
		}
		case "broadcast": {
			const { behindHidden, ...rest } = event;
			return rest;
		}
		case "cancelled": {
			// A soft cancel is a hidden transaction, so the kind of cancel is not shown either.
			const { builders, byAddress, ...rest } = event;
			return hidesBuilders(record) ? rest : { ...rest, builders };
		}
		case "replaced": {
			const { discreet, by, builders, ...rest } = event;
			const isNamed = isPublic(by) || (!isKnown(record) && discreet !== true);
			return {
				...rest,
				...(hidesBuilders(record) ? {} : { builders }),
				...(isNamed ? { by } : {}),
			};
		}
		case "notSimulated":
		case "simulationFailed": {
			const { error, ...rest } = event;
			return hidesBuilders(record) ? { ...rest, error: { code: error.code } } : event;
		}
		case "seenInPublic": {
			const { alone, ...rest } = event;
			return rest;
		}
		case "queued": {
			const { reason, block, ...rest } = event;
			return isKnown(record) ? rest : { ...rest, reason };
		}
		case "simulated": {
			const { gasUsed, ...rest } = event;
			return isKnown(record) ? rest : event;
		}
		default:
			return event;
	}
}
