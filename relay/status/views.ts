// The views of one transaction: its status, its events and its news. They decide which other
// transactions may be named.

import { type StatusRecord, unknownStatus } from "../../shared/ethereum/statusRecord.ts";
import type { ShownEvent, TxEvent } from "../domain/events.ts";
import { isMined, type TransactionRecord } from "../domain/record.ts";
import { eventHistory, eventMessage } from "./eventMessages.ts";
import type { IsPublic } from "./publicEvents.ts";
import { eventsReport, statusReport } from "./report.ts";

/** How the events of a record are shown. */
export interface EventViews {
	/** The JSON page. */
	readonly events: (record: TransactionRecord) => unknown;
	/** The past events, in order of time. */
	readonly history: (record: TransactionRecord) => readonly ShownEvent[];
	/** The view of a new event; null if it is not shown. */
	readonly news: (record: TransactionRecord, event: TxEvent) => ShownEvent | null;
}

/** How a record is shown. */
export interface RecordViews extends EventViews {
	readonly status: (record: TransactionRecord) => StatusRecord;
	readonly unknown: (hash: string) => unknown;
}

/** The records by hash. */
interface Records {
	get(hash: string): { readonly record: TransactionRecord } | undefined;
}

/** The views of `records`. */
export function recordViews(records: Records): RecordViews {
	// Events of other transactions may name it only if searchers saw it or a block contains it.
	const isPublic: IsPublic = (hash) => {
		const record = records.get(hash)?.record;
		return record !== undefined && (record.shared || isMined(record.stage));
	};
	return {
		status: statusReport,
		unknown: unknownStatus,
		events: (record) => eventsReport(record, isPublic),
		history: (record) => eventHistory(record, isPublic),
		news: (record, event) => eventMessage(record, event, isPublic),
	};
}
