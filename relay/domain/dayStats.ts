// A day of the public statistics: the part that is not in the totals of refunds. Pure.

import type { TransactionRecord } from "./record.ts";
import { countedOf, inclusionOf, refundOf } from "./refundRow.ts";

/**
 * Blocks until a transaction was mined: at most so many in each class, and more in the last one. A
 * transaction in the first block that could contain it took 1.
 */
export const WAIT_CLASSES = [1, 2, 3, 5, 10, 25, Number.POSITIVE_INFINITY] as const;

/** A day of final blocks. It counts the transactions that count in the totals, see countedOf. */
export interface DayStats {
	/** How many transactions took at most as many blocks as the class of {@link WAIT_CLASSES}. */
	readonly waits: readonly number[];
	/** Wei that mined bids brought to the coinbases. */
	readonly brought: bigint;
	/** Transactions by the name of the builder that made their block. */
	readonly builders: Readonly<Record<string, number>>;
	/** Transactions in blocks of a coinbase that is no builder's. */
	readonly others: number;
	/** Transactions in blocks whose coinbase is not known. */
	readonly unknown: number;
}

export const NO_STATS: DayStats = {
	waits: WAIT_CLASSES.map(() => 0),
	brought: 0n,
	builders: {},
	others: 0,
	unknown: 0,
};

/**
 * The day with the part of one record. `builtBy` returns the builders of a coinbase: those that
 * share one count together.
 */
export function plusRecord(
	day: DayStats,
	record: TransactionRecord,
	builtBy: (coinbase: string) => readonly string[],
): DayStats {
	const brought = day.brought + BigInt(refundOf(record)?.brought ?? 0);
	const included = inclusionOf(record);
	if (included === null || countedOf(record)?.transactions !== 1) return { ...day, brought };
	const { block, coinbase } = included;
	const wait = Math.max(1, block - (record.firstBlock ?? block) + 1);
	const waitClass = WAIT_CLASSES.findIndex((most) => wait <= most);
	const waits = day.waits.map((count, i) => (i === waitClass ? count + 1 : count));
	const counted = { ...day, brought, waits };
	if (coinbase === undefined) return { ...counted, unknown: day.unknown + 1 };
	const name = builtBy(coinbase).join(", ");
	if (name === "") return { ...counted, others: day.others + 1 };
	return { ...counted, builders: { ...day.builders, [name]: (day.builders[name] ?? 0) + 1 } };
}
