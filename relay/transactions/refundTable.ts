// The refunds of each address, and the totals of all. Refunds that may still leave the chain are
// computed from the records in memory, so that a refund goes with its block. Final refunds are on
// disk, written in the commit that archives their record. There is a row for each address that a
// refund concerns, and sums by the hour. Both are kept for ever.

import type { DamagedEntries } from "../../shared/kv/damagedEntries.ts";
import type { Change, KeyValueStore } from "../../shared/kv/port.ts";
import { prefixRange, StoreFormatError } from "../../shared/kv/port.ts";
import type { TransactionRecord } from "../domain/record.ts";
import { type Counted, countedOf, partiesOf, type RefundRow, refundRowOf } from "../domain/refundRow.ts";
import { REFUND, REFUND_HOUR, REFUNDS_SINCE } from "../domain/storeKeys.ts";
import type { FinalTable } from "./recordKeeper.ts";
import type { TransactionRecords } from "./records.ts";

/** A part of an address's refunds. */
export interface RefundPage {
	/** Latest first; blocks are whole. */
	readonly rows: readonly RefundRow[];
	/** The last block of the next part; null: there is none. */
	readonly nextToBlock: number | null;
}

/** Sums over the counted transactions. */
export interface Sums {
	readonly transactions: number;
	/** Wei. */
	readonly refunded: bigint;
}

/** All sums, and those of the last 24 hours, from the full hour on. */
export interface Totals extends Sums {
	/** Start of the count, in ms since the epoch. */
	readonly since: number;
	readonly lastDay: Sums;
}

interface RefundTableDependencies {
	readonly kv: KeyValueStore;
	readonly damaged: DamagedEntries;
	readonly records: Pick<TransactionRecords, "mined" | "isSettled">;
}

/** Above every block number. */
const LAST_BLOCK = 999_999_999_999;
const DIGITS = 12;
const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;
/** Refunds in one part, unless its last block has more. */
export const PAGE_ROWS = 1_000;
const NOTHING: Sums = { transactions: 0, refunded: 0n };

/** Returns the refunds of an address, and the totals of all refunds. */
export class RefundTable implements FinalTable {
	readonly #dependencies: RefundTableDependencies;
	/** Final sums, by the number of their hour. */
	readonly #hours = new Map<number, Sums>();
	#since = 0;

	constructor(dependencies: RefundTableDependencies) {
		this.#dependencies = dependencies;
	}

	/**
	 * Reads the final sums; call once, before anything is archived. Returns the changes for the
	 * first write: when the relay began to keep refunds. That is `now` (ms) if none were kept.
	 */
	async load(now: number): Promise<readonly Change[]> {
		const { kv, damaged } = this.#dependencies;
		for await (const [key, bytes] of kv.range(REFUND_HOUR, `${REFUND_HOUR}\u{7f}`)) {
			damaged.tried(key, () => {
				const { transactions, refunded } = parsed<{ transactions: number; refunded: string }>(key, bytes);
				const hour = Number(key.slice(REFUND_HOUR.length));
				this.#hours.set(hour, { transactions, refunded: BigInt(refunded) });
			});
		}
		const since = await kv.get(REFUNDS_SINCE);
		this.#since = since === null ? now : Number(since.toString("utf8"));
		return since === null ? [{ key: REFUNDS_SINCE, value: Buffer.from(String(now)) }] : [];
	}

	/** When the relay began to keep refunds, in ms since the epoch. */
	get since(): number {
		return this.#since;
	}

	settling(records: readonly TransactionRecord[]): ReturnType<FinalTable["settling"]> {
		const hours = new Map<number, Sums>();
		for (const record of records) {
			const counted = countedOf(record);
			if (counted === null) continue;
			const hour = hourOf(counted.at);
			hours.set(hour, plus(hours.get(hour) ?? this.#hours.get(hour), counted));
		}
		const changes = [
			...records.flatMap((record) => rowChanges(refundRowOf(record))),
			...[...hours].map(([hour, { transactions, refunded }]) => ({
				key: `${REFUND_HOUR}${String(hour).padStart(DIGITS, "0")}`,
				value: Buffer.from(JSON.stringify({ transactions, refunded: String(refunded) })),
			})),
		];
		const done = (): void => {
			for (const [hour, sums] of hours) this.#hours.set(hour, sums);
		};
		return { changes, done };
	}

	/**
	 * The refunds of transactions that `address` sent, and those that were paid to it, in blocks
	 * from `fromBlock` to `toBlock`. `address` in lower case.
	 */
	async refundsOf(address: string, fromBlock = 0, toBlock = LAST_BLOCK): Promise<RefundPage> {
		const found = new Map<string, RefundRow>();
		// Before the disk is read: a record that is archived meanwhile is found twice, and not
		// missed.
		for (const record of this.#dependencies.records.mined()) {
			const row = refundRowOf(record);
			if (row === null || row.block < fromBlock || row.block > toBlock) continue;
			if (partiesOf(row).includes(address)) found.set(row.hash, row);
		}
		let read = 0;
		let last = 0;
		const [start, end] = [`${rowKey(address, toBlock)}/`, `${rowKey(address, fromBlock)}/\u{7f}`];
		for await (const [key, bytes] of this.#dependencies.kv.range(start, end)) {
			const row = parsed<RefundRow>(key, bytes);
			const isEnough = read >= PAGE_ROWS && row.block !== last;
			found.set(row.hash, row);
			// One row more than needed shows that there are more.
			if (isEnough) break;
			read += 1;
			last = row.block;
		}
		const rows = [...found.values()].sort(
			(one, other) => other.block - one.block || (one.hash < other.hash ? -1 : 1),
		);
		const block = rows[PAGE_ROWS - 1]?.block ?? -1;
		const isOver = (row: RefundRow): boolean => row.block < block;
		const cut = rows.findIndex(isOver);
		if (cut < 0) return { rows, nextToBlock: null };
		return { rows: rows.slice(0, cut), nextToBlock: rows[cut]?.block ?? null };
	}

	/**
	 * All refunds, each once, with its place in their order: by recipient, and for each recipient the
	 * latest first. `from`: the place of the first one.
	 */
	async *all(from = ""): AsyncIterable<readonly [place: string, row: RefundRow]> {
		// Before the disk is read, as in refundsOf.
		const live = [...this.#dependencies.records.mined()]
			.flatMap((record) => refundRowOf(record) ?? [])
			.map((row) => [placeOf(row.recipient, row), row] as const)
			.filter(([place]) => place >= from)
			.sort(([one], [other]) => (one < other ? -1 : 1));
		let next = 0;
		const [, end] = prefixRange(REFUND);
		for await (const [key, bytes] of this.#dependencies.kv.range(`${REFUND}${from}`, end)) {
			const place = key.slice(REFUND.length);
			for (let one = live[next]; one !== undefined && one[0] <= place; one = live[next]) {
				next += 1;
				// The same one may have been archived meanwhile.
				if (one[0] !== place) yield one;
			}
			const row = parsed<RefundRow>(key, bytes);
			// Its sender has the same row.
			if (place.startsWith(row.recipient)) yield [place, row];
		}
		yield* live.slice(next);
	}

	/** The final sums of a day, in days since the epoch, UTC. */
	finalDay(day: number): Sums {
		const hours = Array.from({ length: DAY_HOURS }, (_, i) => this.#hours.get(day * DAY_HOURS + i));
		return hours.reduce<Sums>((sums, hour) => (hour === undefined ? sums : plus(sums, hour)), NOTHING);
	}

	/** The totals up to `now`, in ms since the epoch. */
	totals(now: number): Totals {
		const last = hourOf(now);
		const first = last - DAY_HOURS;
		let [all, lastDay] = [NOTHING, NOTHING];
		const add = (hour: number, sums: Sums): void => {
			all = plus(all, sums);
			// A clock that ran ahead counts into later hours. They enter the day once they have
			// come.
			if (hour >= first && hour <= last) lastDay = plus(lastDay, sums);
		};
		for (const [hour, sums] of this.#hours) add(hour, sums);
		const { records } = this.#dependencies;
		for (const record of records.mined()) {
			const counted = records.isSettled(record) ? null : countedOf(record);
			if (counted !== null) add(hourOf(counted.at), counted);
		}
		return { since: this.#since, ...all, lastDay };
	}
}

function hourOf(ms: number): number {
	return Math.floor(ms / HOUR_MS);
}

function plus(sums: Sums = NOTHING, { transactions, refunded }: Sums | Counted): Sums {
	return { transactions: sums.transactions + transactions, refunded: sums.refunded + refunded };
}

/** Inverts the number, so that the last block comes first. */
function rowKey(address: string, block: number): string {
	return `${REFUND}${address}/${String(LAST_BLOCK - block).padStart(DIGITS, "0")}`;
}

/** The key of a refund of an address, behind the prefix. */
function placeOf(address: string, { block, hash }: RefundRow): string {
	return `${rowKey(address, block)}/${hash}`.slice(REFUND.length);
}

function rowChanges(row: RefundRow | null): readonly Change[] {
	if (row === null) return [];
	const value = Buffer.from(JSON.stringify(row));
	return partiesOf(row).map((address) => ({ key: `${REFUND}${placeOf(address, row)}`, value }));
}

function parsed<T>(key: string, bytes: Buffer): T {
	try {
		return JSON.parse(bytes.toString("utf8")) as T;
	} catch {
		throw new StoreFormatError(key);
	}
}
