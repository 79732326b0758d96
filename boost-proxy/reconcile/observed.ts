// Common code of the observers: their dependencies, and the check whether an answer about a row is
// still valid. Also the effects of answers that several of them can get.

import type { Clock } from "../../shared/clock.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import type { Logger } from "../../shared/log.ts";
import { markLost, markNotHeld } from "../domain/deliveries.ts";
import type { ChainReads, Upstreams } from "../domain/ports.ts";
import type { UpstreamName } from "../domain/request.ts";
import { type Ending, isHolder, type Notes, otherHolders, type Row } from "../domain/row.ts";
import type { Rows } from "../rows/rows.ts";

/** The dependencies of every observer. */
export interface ObserverContext {
	readonly rows: Rows;
	readonly upstreams: Upstreams;
	/** Only the independent node and our relay: a fallback's answers about the chain end no row. */
	readonly chain: ChainReads;
	readonly clock: Clock;
	readonly log: Logger;
	readonly slot: SlotLength;
	/** Aborted at shutdown. */
	readonly stopping: AbortSignal;
}

/** Deadline of one request, in ms. It bounds the shutdown. */
export const QUESTION_MS = 2_000;
/**
 * A row counts as lost after this many "no record" answers of an upstream in a row. The number
 * doubles after each loss there.
 */
const NO_RECORDS_OF_LOSS = 2;
const MAX_DOUBLINGS = 5;
/** How long after its arrival a row may still reach an upstream that gave no verdict, in ms. */
const LATE_MS = 15_000;
const ENDING_STAGES: ReadonlyMap<unknown, Ending> = new Map<unknown, Ending>([
	["CANCELLED", "cancelled"],
	["REPLACED", "replaced"],
	["INCLUDED", "mined"],
	["REVERTED", "mined"],
	["EXPIRED", "expired"],
	["DROPPED", "dropped"],
]);

/** The ending that a relay's stage means; undefined if the transaction has not ended. */
export function endingOf(stage: unknown): Ending | undefined {
	return ENDING_STAGES.get(stage);
}

/**
 * The latest version of a live row that was `asked` about. Null if the answer no longer applies.
 * That is so if the row ended or was opened again since, or a client's request about it is in
 * progress.
 */
export function currentRow({ rows }: ObserverContext, asked: Row): Row | null {
	const row = rows.live(asked.hash);
	return row !== null && row.version === asked.version && row.requests === 0 ? row : null;
}

/** Its user ended it at `by`, so it must be cancelled at the other upstreams that have it. */
export function endByUser({ rows }: ObserverContext, row: Row, ending: Ending, by: UpstreamName): void {
	rows.end(row, ending, otherHolders(row, by));
}

/** Whether one more "no record" answer of `by` would suffice for a loss. */
export function wouldBelieveNoRecord({ unknown, losses }: Notes, by: UpstreamName): boolean {
	return unknown[by] + 1 >= NO_RECORDS_OF_LOSS * 2 ** Math.min(losses[by], MAX_DOUBLINGS);
}

/**
 * `by` has no record of a row. A single such answer proves nothing, since the request may have
 * overtaken the delivery. An unacknowledged row does not count as lost, only as not there.
 */
export function countNoRecord({ rows, clock }: ObserverContext, row: Row, by: UpstreamName): void {
	const { hash, notes, acknowledged } = row;
	const isLoss = wouldBelieveNoRecord(notes, by);
	notes.unknown[by] += 1;
	if (!isLoss) return;
	if (acknowledged) {
		notes.unknown[by] = 0;
		notes.losses[by] += 1;
		rows.change(hash, (one) => markLost(one, by));
	} else if (clock.monotonic() - notes.openedAt >= LATE_MS) {
		rows.change(hash, (one) => markNotHeld(one, by));
	}
}

/**
 * Up to `limit` rows that the chain ended, that match `isWanted` and were not checked for half a
 * slot. They now count as checked.
 */
export function takeDueEnded(
	{ rows, clock, slot }: ObserverContext,
	limit: number,
	isWanted: (row: Row) => boolean,
): Row[] {
	const now = clock.monotonic();
	const taken: Row[] = [];
	for (const row of rows.reopenable()) {
		if (taken.length >= limit) break;
		if (!isWanted(row) || now - row.notes.checkedAt < slot.ms / 2) continue;
		row.notes.checkedAt = now;
		taken.push(row);
	}
	return taken;
}

/**
 * Whether the relay has a record of a row that the chain ended, and so would report a
 * reorganisation.
 */
export function relayReportsReorg({ notes, at }: Row): boolean {
	return !notes.byChain && isHolder(at.relay);
}

/** The block that ended a row has left the chain, or was never in it. */
export function reopen({ rows, log }: ObserverContext, { hash, requestId }: Row): void {
	log.info("transaction reopened: the block that ended it left the chain", {
		hash,
		request: requestId ?? undefined,
	});
	rows.reopen(hash);
}
