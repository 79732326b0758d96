// The builders' conduct as the operator reads it: the sums as JSON, and the days as CSV.

import { dayText } from "../../shared/days.ts";
import { addConduct, CONDUCT_COUNTS, type Conduct, type ConductCount, noConduct } from "../domain/conduct.ts";
import { type Finding, findingsOf } from "../domain/conductFindings.ts";

/** A builder's conduct on one day, or in all, as JSON. */
export interface ConductView extends Readonly<Record<ConductCount, number>> {
	/** As `2026-01-31`, UTC: when the transactions arrived. */
	readonly day: string;
	readonly builder: string;
	/** Wei, as decimal strings. */
	readonly owedWei: string;
	readonly paidWei: string;
}

/** The sum of a builder's last days, with the findings about it. */
export interface ConductSum extends Omit<ConductView, "day"> {
	readonly findings: readonly Finding[];
}

/** Days that a sum is about. */
export const SUM_DAYS = 30;

export function conductView({ day, builder, owed, paid, ...counts }: Conduct): ConductView {
	return { day: dayText(day), builder, ...counts, owedWei: `${owed}`, paidWei: `${paid}` };
}

/** The sums of the 30 days up to the last one with a transaction, by builder. */
export function conductSums(rows: readonly Conduct[]): readonly ConductSum[] {
	const last = Math.max(0, ...rows.map(({ day }) => day));
	return sumsOf(rows.filter(({ day }) => day > last - SUM_DAYS)).map((sum) => {
		const { day, ...view } = conductView(sum);
		return { ...view, findings: findingsOf(sum) };
	});
}

/** A sum for each builder, with the day of its first row. */
function sumsOf(rows: readonly Conduct[]): readonly Conduct[] {
	const sums = new Map<string, Conduct>();
	for (const row of rows) {
		const sum = sums.get(row.builder) ?? noConduct(row.day, row.builder);
		addConduct(sum, row);
		sums.set(row.builder, sum);
	}
	return [...sums.values()];
}

/** A builder's public shares, each from 0 to 1; null if there is nothing to divide. */
export interface ConductShares {
	readonly builder: string;
	/** Its part of the transactions in the blocks of known builders. */
	readonly mined: number | null;
	/** Transactions with a backrun of ours, of those that should have one. */
	readonly backrun: number | null;
	/** Refunds paid, of those owed. */
	readonly refunded: number | null;
}

/** The shares by builder. For the public, the rows must be final. */
export function conductShares(rows: readonly Conduct[]): readonly ConductShares[] {
	const sums = sumsOf(rows);
	const minedInAll = sums.reduce((sum, { mined }) => sum + mined, 0);
	return sums.map(({ builder, mined, backrun, otherBackrun, noBackrun, owed, paid }) => ({
		builder,
		mined: partOf(mined, minedInAll),
		backrun: partOf(backrun, backrun + otherBackrun + noBackrun),
		// More than owed is no more than all.
		refunded: owed === 0n ? null : Math.min(1, Number((paid * 10_000n) / owed) / 10_000),
	}));
}

function partOf(part: number, whole: number): number | null {
	return whole === 0 ? null : part / whole;
}

const COLUMNS = ["day", "builder", ...CONDUCT_COUNTS, "owedWei", "paidWei"] as const;

/** The lines of builders.csv, the header first. */
export function conductRows(rows: readonly ConductView[]): readonly (readonly string[])[] {
	return [COLUMNS, ...rows.map((row) => COLUMNS.map((name) => String(row[name])))];
}
