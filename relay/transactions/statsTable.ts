// The public statistics by day. Only final records count, in the commit that archives them. So no
// figure depends on a transaction that is pending or may still leave the chain, and nothing has to
// be undone.

import { dayOf } from "../../shared/days.ts";
import type { DamagedEntries } from "../../shared/kv/damagedEntries.ts";
import { type Change, type KeyValueStore, prefixRange } from "../../shared/kv/port.ts";
import type { Broadcaster } from "../broadcast/fanout.ts";
import { type DayStats, NO_STATS, plusRecord } from "../domain/dayStats.ts";
import type { TransactionRecord } from "../domain/record.ts";
import { inclusionOf } from "../domain/refundRow.ts";
import { STATS_DAY, STATS_SINCE } from "../domain/storeKeys.ts";
import type { FinalTable } from "./recordKeeper.ts";
import type { RefundTable, Sums } from "./refundTable.ts";

/** The known part of a day. Null: it was not counted, or not from the day's start. */
export interface PublicDay {
	/** Days since the epoch, UTC. */
	readonly day: number;
	readonly totals: Sums | null;
	readonly stats: DayStats | null;
}

interface StatsTableDependencies {
	readonly kv: KeyValueStore;
	readonly damaged: DamagedEntries;
	readonly refunds: Pick<RefundTable, "finalDay" | "since">;
	readonly broadcaster: Pick<Broadcaster, "builtBy">;
}

/** A day as JSON; wei as decimal text. */
type StoredDay = Omit<DayStats, "brought"> & { readonly brought: string };

const DIGITS = 7;
/** Days on disk and in memory. */
const KEPT_DAYS = 100;

/** Counts final records by the day on which the relay saw their block. */
export class StatsTable implements FinalTable {
	readonly #dependencies: StatsTableDependencies;
	/** Null: the entry is damaged, so the day is not known. */
	readonly #days = new Map<number, DayStats | null>();
	#since = 0;

	constructor(dependencies: StatsTableDependencies) {
		this.#dependencies = dependencies;
	}

	/**
	 * Reads the days; call once, before anything is archived. Returns the changes for the first
	 * write: when the count began. That is `now` (ms) if nothing was counted.
	 */
	async load(now: number): Promise<readonly Change[]> {
		const { kv, damaged } = this.#dependencies;
		for await (const [key, bytes] of kv.range(...prefixRange(STATS_DAY))) {
			const stats = damaged.tried(key, () => {
				const { brought, ...rest } = JSON.parse(bytes.toString("utf8")) as StoredDay;
				return { ...rest, brought: BigInt(brought) };
			});
			this.#days.set(Number(key.slice(STATS_DAY.length)), stats ?? null);
		}
		const since = await kv.get(STATS_SINCE);
		this.#since = since === null ? now : Number(since.toString("utf8"));
		return since === null ? [{ key: STATS_SINCE, value: Buffer.from(String(now)) }] : [];
	}

	settling(records: readonly TransactionRecord[]) {
		const { broadcaster } = this.#dependencies;
		const days = new Map<number, DayStats>();
		for (const record of records) {
			const included = inclusionOf(record);
			if (included === null) continue;
			const day = dayOf(included.at);
			const before = days.get(day) ?? this.#of(day);
			if (before === null) continue;
			days.set(
				day,
				plusRecord(before, record, (coinbase) => broadcaster.builtBy(coinbase)),
			);
		}
		const all = [...new Set([...this.#days.keys(), ...days.keys()])].sort((a, b) => a - b);
		const old = all.slice(0, Math.max(0, all.length - KEPT_DAYS));
		const changes: readonly Change[] = [
			...[...days].map(([day, stats]) => ({ key: keyOf(day), value: stored(stats) })),
			...old.map((day) => ({ key: keyOf(day), value: null })),
		];
		const done = (): void => {
			for (const [day, stats] of days) this.#days.set(day, stats);
			for (const day of old) this.#days.delete(day);
		};
		return { changes, done };
	}

	/** A day as it is on disk; null if its entry is damaged. */
	#of(day: number): DayStats | null {
		const known = this.#days.get(day);
		return known === undefined ? NO_STATS : known;
	}

	/** The days from `first` to `last`. */
	days(first: number, last: number): readonly PublicDay[] {
		const { refunds } = this.#dependencies;
		return Array.from({ length: last - first + 1 }, (_, i) => {
			const day = first + i;
			return {
				day,
				totals: isWhole(day, refunds.since) ? refunds.finalDay(day) : null,
				stats: isWhole(day, this.#since) ? this.#of(day) : null,
			};
		});
	}
}

/** Whether the whole day was counted by a count that began at `since`, in ms. */
function isWhole(day: number, since: number): boolean {
	return day > dayOf(since - 1);
}

function keyOf(day: number): string {
	return `${STATS_DAY}${String(day).padStart(DIGITS, "0")}`;
}

function stored({ brought, ...rest }: DayStats): Buffer {
	const row: StoredDay = { ...rest, brought: String(brought) };
	return Buffer.from(JSON.stringify(row));
}
