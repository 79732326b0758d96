// The messages of a transaction's event stream.

import type { ShownEvent, TxEvent } from "../domain/events.ts";
import { publicStage, type TransactionRecord } from "../domain/record.ts";
import { cancelsReport, type IsPublic, publicEvent, publicEvents } from "./publicEvents.ts";

/**
 * All events so far, in order of time. Only the last one has `stage` and `cancels`, since earlier
 * values are not kept.
 */
export function eventHistory(record: TransactionRecord, isPublic: IsPublic): readonly ShownEvent[] {
	const events = publicEvents(record, isPublic);
	const last = events.length - 1;
	return events.map(({ at, view }, i) => ({
		at,
		data: i === last ? { ...view, ...stageOf(record) } : view,
	}));
}

/**
 * The message for a new event: with the resulting `stage` and, after a cancel or replacement, how
 * many builders have confirmed it (`cancels`). Null for events that are not public.
 */
export function eventMessage(
	record: TransactionRecord,
	event: TxEvent,
	isPublic: IsPublic,
): ShownEvent | null {
	const shown = publicEvent(record, event, isPublic);
	return shown === null ? null : { at: shown.at, data: { ...shown.view, ...stageOf(record) } };
}

function stageOf(record: TransactionRecord): object {
	const cancels = cancelsReport(record);
	return { stage: publicStage(record), ...(cancels === null ? {} : { cancels }) };
}
