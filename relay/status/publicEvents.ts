// The public events of a transaction, in order of time. Searchers know the hashes of shared transactions, so only the
// bid that was mined is shown, and nothing by which the transactions before and behind it could be told apart. Pure.

import type { TxEvent } from "../domain/events.ts";
import {
	type Delivery,
	isLive,
	isUserEnd,
	type LifeEvent,
	type TransactionRecord,
} from "../domain/record.ts";

/** Whether the transaction with a hash is shared or mined. */
export type IsPublic = (hash: string) => boolean;

/** An event as it may be told. */
export interface PublicEvent {
	/** Ms since the epoch. */
	readonly at: number;
	/** `type`, `at` in ISO 8601, and what else belongs to it. */
	readonly view: object;
}

/** How many of the builders that have had it have confirmed that they forget it. */
export interface CancelsReport {
	readonly builders: number;
	readonly confirmed: number;
	/** "5 of 7 builders confirmed" */
	readonly summary: string;
}

/** All that is kept of its life, deliveries among the rest. */
export function publicEvents(record: TransactionRecord, isPublic: IsPublic): readonly PublicEvent[] {
	const mined = minedBackrun(record);
	const events = record.events.map((event) => shown(event.at, lifeView(record, event, mined, isPublic)));
	const deliveries = hidesBuilders(record) ? [] : record.deliveries.map(deliveryView);
	return [...events, ...deliveries].sort((a, b) => a.at - b.at);
}

/** The event that the record has just been through; null for one that is not listed. */
export function publicEvent(
	record: TransactionRecord,
	event: TxEvent,
	isPublic: IsPublic,
): PublicEvent | null {
	if (event.type === "bid") return null;
	if (event.type === "delivered") return hidesBuilders(record) ? null : deliveryView(event);
	return shown(event.at, lifeView(record, event, minedBackrun(record), isPublic));
}

/** How far its builders have taken it back; null where its user has not ended it, or builders are not told of. */
export function cancelsReport(record: TransactionRecord): CancelsReport | null {
	const end = record.events.findLast(isUserEnd);
	if (end === undefined || hidesBuilders(record)) return null;
	const told = new Set(end.builders);
	const confirmed = new Set(
		record.deliveries
			.filter(({ kind, backrun }) => kind === "cancel" && backrun !== true)
			.filter(({ answer, at }) => answer === "accepted" && at >= end.at)
			.map(({ builder }) => builder)
			.filter((builder) => told.has(builder)),
	).size;
	const builders = told.size;
	const summary = builders === 0 ? "no builder to tell" : `${confirmed} of ${builders} builders confirmed`;
	return { builders, confirmed, summary };
}

/** Whether searchers know it and could learn from who has it what stood before it: who may have one, and who may not. */
function hidesBuilders(record: TransactionRecord): boolean {
	return record.behindHidden && isKnown(record);
}

/** Whether searchers know its hash: also where they were shown it before it expired and came again. */
function isKnown({ shared, events }: TransactionRecord): boolean {
	return shared || events.some(({ type }) => type === "shared");
}

/** The backrun behind it in its block, where it is in one with a backrun. */
function minedBackrun(record: TransactionRecord): string | undefined {
	const refunded = record.events.findLast(({ type }) => type === "refunded");
	return refunded?.type === "refunded" ? refunded.backrun : undefined;
}

function deliveryView({ at, ...rest }: Delivery): PublicEvent {
	return shown(at, { type: "delivered", ...rest });
}

function shown(at: number, view: object): PublicEvent {
	return { at, view: { ...view, at: new Date(at).toISOString() } };
}

function lifeView(
	record: TransactionRecord,
	event: LifeEvent,
	mined: string | undefined,
	isPublic: IsPublic,
): object {
	switch (event.type) {
		case "bundled": {
			const { bundle, backrun, bid, ...rest } = event;
			return !isLive(record.stage) && backrun === mined ? event : rest;
		}
		case "broadcast": {
			const { behindHidden, ...rest } = event;
			return rest;
		}
		case "cancelled": {
			const { builders, ...rest } = event;
			return hidesBuilders(record) ? rest : event;
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
		case "simulationFailed": {
			const { error, ...rest } = event;
			return hidesBuilders(record) ? { ...rest, error: { code: error.code } } : event;
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
