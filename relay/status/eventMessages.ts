// The messages of a transaction's event stream: each event as `GET /tx/{hash}/events` lists it, with the stage that
// follows from it. Pure.

import type { TxEvent } from "../domain/events.ts";
import type { TransactionRecord } from "../domain/record.ts";
import { cancelsReport, type IsPublic, publicEvent, publicEvents } from "./publicEvents.ts";

/** One message: when it happened, in ms since the epoch, and what is told of it. */
export interface EventNews {
	readonly at: number;
	readonly data: object;
}

/**
 * What has happened so far, in order of time. The last one alone has `stage` and `cancels`: what they were after the
 * earlier ones is not kept.
 */
export function eventHistory(record: TransactionRecord, isPublic: IsPublic): readonly EventNews[] {
	const events = publicEvents(record, isPublic);
	const last = events.length - 1;
	return events.map(({ at, view }, i) => ({
		at,
		data: i === last ? { ...view, ...standing(record) } : view,
	}));
}

/**
 * What the record has just been through: the event with the `stage` that it led to and, where its user has ended the
 * transaction, how many builders have confirmed it (`cancels`). Null for what is not told.
 */
export function eventNews(record: TransactionRecord, event: TxEvent, isPublic: IsPublic): EventNews | null {
	const told = publicEvent(record, event, isPublic);
	return told === null ? null : { at: told.at, data: { ...told.view, ...standing(record) } };
}

function standing(record: TransactionRecord): object {
	const cancels = cancelsReport(record);
	return { stage: record.stage, ...(cancels === null ? {} : { cancels }) };
}
