// The builders' conduct by day. The part that may still change is computed from the records in
// memory, so that a reorganisation undoes it. The final part is on disk, with a row for each
// builder and day, written in the commit that archives the records.

import { type Clock, inSlices } from "../../shared/clock.ts";
import type { DamagedEntries } from "../../shared/kv/damagedEntries.ts";
import { type Change, type KeyValueStore, prefixRange } from "../../shared/kv/port.ts";
import {
	addConduct,
	CONDUCT_COUNTS,
	type Conduct,
	type ConductCount,
	type ConductTerms,
	conductOf,
	noConduct,
} from "../domain/conduct.ts";
import type { TransactionRecord } from "../domain/record.ts";
import { BUILDER_DAY } from "../domain/storeKeys.ts";
import type { FinalTable } from "./recordKeeper.ts";
import type { TransactionRecords } from "./records.ts";

interface ConductTableDependencies extends ConductTerms {
	readonly kv: KeyValueStore;
	readonly damaged: DamagedEntries;
	readonly records: Pick<TransactionRecords, "entries" | "isSettled">;
	readonly clock: Clock;
}

/** Days that are kept, up to the last one with a transaction. */
export const CONDUCT_DAYS = 400;
const DIGITS = 7;

/** Counts that are zero are not stored. */
type StoredRow = Partial<Record<ConductCount, number>> & { readonly owed: string; readonly paid: string };

/** Keeps the table. */
export class ConductTable implements FinalTable {
	readonly #dependencies: ConductTableDependencies;
	/** Final rows, by their keys. */
	readonly #rows = new Map<string, Conduct>();
	/** The last day of a final row. */
	#lastDay = 0;

	constructor(dependencies: ConductTableDependencies) {
		this.#dependencies = dependencies;
	}

	/** Reads the final rows; call once, before anything is archived. */
	async load(): Promise<void> {
		const { kv, damaged } = this.#dependencies;
		for await (const [key, bytes] of kv.range(...prefixRange(BUILDER_DAY))) {
			const at = BUILDER_DAY.length + DIGITS;
			damaged.tried(key, () => {
				const { owed, paid, ...counts } = JSON.parse(bytes.toString("utf8")) as StoredRow;
				const row = noConduct(Number(key.slice(BUILDER_DAY.length, at)), key.slice(at + 1));
				this.#lastDay = Math.max(this.#lastDay, row.day);
				this.#rows.set(key, { ...row, ...counts, owed: BigInt(owed), paid: BigInt(paid) });
			});
		}
	}

	settling(records: readonly TransactionRecord[]): ReturnType<FinalTable["settling"]> {
		const changed = new Map<string, Conduct>();
		for (const one of records.flatMap((record) => conductOf(record, this.#dependencies)))
			add(changed, one, this.#rows);
		const lastDay = Math.max(this.#lastDay, ...[...changed.values()].map(({ day }) => day));
		const over = lastDay > this.#lastDay ? this.#overBy(lastDay) : [];
		const changes = [
			...over.map((key): Change => ({ key, value: null })),
			...[...changed].map(([key, row]): Change => ({ key, value: stored(row) })),
		];
		const done = (): void => {
			for (const [key, row] of changed) this.#rows.set(key, row);
			for (const key of over) this.#rows.delete(key);
			this.#lastDay = lastDay;
		};
		return { changes, done };
	}

	/** The keys of the rows that are no longer kept once there is one of day `lastDay`. */
	#overBy(lastDay: number): readonly string[] {
		const over = [...this.#rows].filter(([, { day }]) => day + CONDUCT_DAYS <= lastDay);
		return over.map(([key]) => key);
	}

	/** The final rows, which no reorganisation changes any more, by day and builder. */
	final(): readonly Conduct[] {
		return [...this.#rows].sort(byKey).map(([, row]) => row);
	}

	/** All rows, by day and builder: the final ones with the records in memory. */
	async all(): Promise<readonly Conduct[]> {
		const { records, clock } = this.#dependencies;
		const open = new Map<string, Conduct>();
		// Counted as one state, since a record may become final meanwhile.
		const finalRows = new Map(this.#rows);
		const entries = [...records.entries()].filter(({ record }) => !records.isSettled(record));
		await inSlices(entries, clock, ({ record }) => {
			for (const one of conductOf(record, this.#dependencies)) add(open, one, finalRows);
		});
		return [...new Map([...finalRows, ...open])].sort(byKey).map(([, row]) => row);
	}
}

/** Adds `one` to its row in `rows`, which begins as it is in `before`. */
function add(rows: Map<string, Conduct>, one: Conduct, before: ReadonlyMap<string, Conduct>): void {
	const key = keyOf(one);
	const row = rows.get(key) ?? { ...(before.get(key) ?? noConduct(one.day, one.builder)) };
	addConduct(row, one);
	rows.set(key, row);
}

function keyOf({ day, builder }: Conduct): string {
	return `${BUILDER_DAY}${String(day).padStart(DIGITS, "0")}/${builder}`;
}

function byKey([one]: readonly [string, Conduct], [other]: readonly [string, Conduct]): number {
	return one < other ? -1 : 1;
}

function stored({ owed, paid, ...row }: Conduct): Buffer {
	const counts = CONDUCT_COUNTS.flatMap((name) => (row[name] === 0 ? [] : [[name, row[name]]]));
	const value: StoredRow = { ...Object.fromEntries(counts), owed: `${owed}`, paid: `${paid}` };
	return Buffer.from(JSON.stringify(value));
}
