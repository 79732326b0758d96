// Looks up what a record already has, so that repeated news is ignored.

import type { TxEvent } from "../domain/events.ts";
import { canBeSeen, type TransactionRecord } from "../domain/record.ts";
import type { SimulationError, SimulationErrorCode } from "../domain/simulation.ts";

/** An event of this type. */
export type Of<T extends TxEvent["type"]> = Extract<TxEvent, { type: T }>;

/**
 * Errors that may last for many blocks: recorded once, although the message changes with the fee.
 */
const WAITS_LONG: ReadonlySet<SimulationErrorCode> = new Set([
	"FEE_CAP_TOO_LOW",
	"BLOB_FEE_CAP_TOO_LOW",
	"FORK_RULES",
]);

/** Whether the record already shows that the transaction failed with `error`. */
export function isHeldFor(record: TransactionRecord, error: SimulationError, block: number): boolean {
	const last = record.stage === "SIMULATION_FAILED" ? record.simulationError : null;
	if (last?.code !== error.code) return false;
	if (WAITS_LONG.has(error.code)) return true;
	return record.block === block && last.message === error.message;
}

/** The last event of this type, if there is one. */
export function lastOf<T extends TxEvent["type"]>({ events }: TransactionRecord, type: T): Of<T> | undefined {
	return events.findLast((event): event is Extract<typeof event, Of<T>> => event.type === type);
}

/**
 * The event of a sighting in the public mempool at head `block`, without its time; null if that is
 * no news. `queued`: the builders whose queue has sent it.
 */
export function sightingOf(
	record: TransactionRecord,
	block: number,
	queued: readonly string[],
): Omit<Of<"seenInPublic">, "at"> | null {
	if (!canBeSeen(record)) return null;
	const { deliveries, events } = record;
	const answered = deliveries.filter(({ kind, answer }) => kind !== "cancel" && answer !== "unsent");
	const bundled = events.flatMap((event) => (event.type === "bundled" ? event.builders : []));
	const holders = new Set([...queued, ...answered.map(({ builder }) => builder), ...bundled]);
	const [alone] = holders;
	return { type: "seenInPublic", block, ...(alone === undefined || holders.size > 1 ? {} : { alone }) };
}
