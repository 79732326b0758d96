// What boost's observers share: what they look at, when an answer about a row still counts, and what follows from one that more
// than one of them can get.

import type { Clock } from "../../shared/clock.ts";
import type { Logger } from "../../shared/log.ts";
import type { ChainReads, Upstreams } from "../domain/ports.ts";
import type { UpstreamName } from "../domain/request.ts";
import { type Ending, holdersOf, isHolder, lost, type Notes, notHeld, type Row } from "../domain/row.ts";
import type { Rows } from "../rows/rows.ts";

/** What observers look at. */
export interface Observed {
	readonly rows: Rows;
	readonly upstreams: Upstreams;
	readonly chain: ChainReads;
	readonly clock: Clock;
	readonly log: Logger;
	readonly slotMs: number;
	/** Aborted when nothing more is to be asked. */
	readonly stopping: AbortSignal;
}

/** Of one question, in ms. It bounds the stop. */
export const QUESTION_MS = 2_000;
/** So often in a row an upstream must have no record of a row; doubling each time that it got it again. */
const UNKNOWNS = 2;
const MAX_DOUBLINGS = 5;
/** A delivery that brought no verdict may still arrive for so long, in ms. */
const LATE_MS = 15_000;
const ENDING_STAGES: ReadonlyMap<unknown, Ending> = new Map<unknown, Ending>([
	["CANCELLED", "cancelled"],
	["REPLACED", "replaced"],
	["INCLUDED", "mined"],
	["REVERTED", "mined"],
	["EXPIRED", "expired"],
	["DROPPED", "dropped"],
]);

/** How a row with this stage at a relay has ended; undefined where it has not. */
export function endingOf(stage: unknown): Ending | undefined {
	return ENDING_STAGES.get(stage);
}

/** The live row that was asked about, as it is now; null where it is in another life, or a request sees to it. */
export function current({ rows }: Observed, asked: Row): Row | null {
	const row = rows.live(asked.hash);
	return row !== null && row.notes === asked.notes && row.requests === 0 ? row : null;
}

/** Its user ended it at `by`: whoever else has it must hear of that. */
export function endedByUser({ rows }: Observed, row: Row, ending: Ending, by: UpstreamName): void {
	const others = holdersOf(row).filter((name) => name !== by);
	rows.end(row, ending, others);
}

/** Whether one more answer of `by` that it has no record of it would be believed. */
export function isBelieved({ unknown, losses }: Notes, by: UpstreamName): boolean {
	return unknown[by] + 1 >= UNKNOWNS * 2 ** Math.min(losses[by], MAX_DOUBLINGS);
}

/** `by` has no record of a row. Once may be a question that overtook the delivery's answer. */
export function noRecord({ rows, clock }: Observed, row: Row, by: UpstreamName): void {
	const { hash, notes, acknowledged, receivedAt } = row;
	const isLoss = isBelieved(notes, by);
	notes.unknown[by] += 1;
	if (!isLoss) return;
	if (acknowledged) {
		notes.unknown[by] = 0;
		notes.losses[by] += 1;
		rows.change(hash, (one) => lost(one, by));
	} else if (clock.now() - receivedAt >= LATE_MS) {
		rows.change(hash, (one) => notHeld(one, by));
	}
}

/** Up to `limit` mined rows that were not asked for in half a slot, and for which the relay `speaks`, or does not. */
export function dueMined(
	{ rows, clock, slotMs }: Observed,
	limit: number,
	speaks: (row: Row) => boolean,
): Row[] {
	const now = clock.monotonic();
	const taken: Row[] = [];
	for (const row of rows.mined()) {
		if (taken.length >= limit) break;
		if (!speaks(row) || now - row.notes.chainAt < slotMs / 2) continue;
		row.notes.chainAt = now;
		taken.push(row);
	}
	return taken;
}

/** Whether the relay has a record of a mined row, so that it can tell of a reorganisation. */
export function isInRelaysBlock({ notes, at }: Row): boolean {
	return !notes.byChain && isHolder(at.relay);
}

/** The block of a mined row was taken back. */
export function reopen({ rows, log }: Observed, { hash }: Row): void {
	log.info("a mined transaction is open again", { hash });
	rows.reopen(hash);
}
