// Live rows by their senders, and each client's use of the limits in number and bytes.

import { clientOf } from "../../shared/client.ts";
import { type Fullness, fullest, type OverShare, Shares } from "../../shared/shares/shares.ts";
import type { NewRow, Row } from "../domain/row.ts";

export interface LiveLimits {
	/** The maximum number of live rows; one client may have a sixteenth. */
	readonly maxLive: number;
	/**
	 * The maximum bytes of live transactions, each counted with 512 more; one client may have a
	 * sixteenth.
	 */
	readonly maxBytes: number;
}

/** Approximate bytes of a row in addition to its transaction. */
const ROW_BYTES = 512;
/** One client's share of the limits. */
const CLIENT_PART = 1 / 16;
/** The largest transaction without blobs that execution clients accept. */
const LARGEST_BYTES = 128 * 1024;
const NONE: readonly Row[] = Object.freeze([]);

export class LiveRows {
	readonly #limits: LiveLimits;
	/** In the order of nonce and arrival. Lists are replaced, never changed. */
	readonly #bySender = new Map<string, readonly Row[]>();
	/** A sender whose rows change many at a time, and its rows; null: none. */
	#bulk: { readonly from: string; readonly rows: Set<Row> } | null = null;
	readonly #counts: Shares;
	readonly #bytes: Shares;

	constructor(limits: LiveLimits) {
		this.#limits = limits;
		const { maxLive, maxBytes } = limits;
		this.#counts = new Shares({ total: maxLive, perClient: Math.ceil(maxLive * CLIENT_PART) });
		this.#bytes = new Shares({ total: maxBytes, perClient: Math.ceil(maxBytes * CLIENT_PART) });
	}

	get count(): number {
		return this.#counts.taken;
	}

	/** Whether there is no room for a large transaction of any client. */
	get isFull(): boolean {
		const { maxLive, maxBytes } = this.#limits;
		return this.#counts.taken >= maxLive || this.#bytes.taken + LARGEST_BYTES + ROW_BYTES > maxBytes;
	}

	/** How full it is by rows or bytes, whichever is fuller. */
	get fullness(): Fullness {
		return fullest([this.#counts.fullness, this.#bytes.fullness]);
	}

	/** The limit that leaves no room for one more row; null if there is room. */
	exceeded({ address, raw }: Pick<NewRow, "address" | "raw">): OverShare | null {
		const client = clientOf(address);
		return this.#counts.exceeded(client, 1) ?? this.#bytes.exceeded(client, raw.length + ROW_BYTES);
	}

	/**
	 * The rows of a sender, optionally of one nonce, in the order of nonce and arrival. The list
	 * never changes.
	 */
	of(from: string, nonce?: bigint): readonly Row[] {
		const rows = this.#bySender.get(from) ?? NONE;
		return nonce === undefined ? rows : ofNonce(rows, nonce);
	}

	/**
	 * All rows, those of a sender by nonce. Rows that are replaced or removed in between are left
	 * out.
	 */
	*all(): Generator<Row> {
		for (const rows of this.#bySender.values()) {
			// A list that is still in place has only current rows.
			for (const row of rows)
				if (this.of(row.from) === rows || this.of(row.from, row.nonce).includes(row)) yield row;
		}
	}

	/**
	 * Runs `work`, which replaces many rows of a sender. Its list changes once, at the end: a new
	 * list for each of thousands of rows would block the event loop.
	 */
	inBulk(from: string, work: () => void): void {
		const rows = new Set(this.of(from));
		this.#bulk = { from, rows };
		try {
			work();
		} finally {
			this.#bulk = null;
			const sorted = [...rows].sort(byNonce);
			if (sorted.length > 0) this.#bySender.set(from, sorted);
			else this.#bySender.delete(from);
		}
	}

	/** Replaces `before` by `row`; null: none. */
	replace(before: Row | null, row: Row | null): void {
		if (this.#bulk !== null && this.#bulk.from === (row ?? before)?.from) {
			const { rows } = this.#bulk;
			if (before !== null) {
				rows.delete(before);
				this.#release(before);
			}
			if (row !== null) {
				rows.add(row);
				this.#take(row);
			}
			return;
		}
		if (before !== null && row !== null && hasSamePlace(before, row)) {
			const rows = this.of(row.from);
			this.#bySender.set(row.from, rows.with(rows.lastIndexOf(before), row));
			return;
		}
		if (before !== null) this.#takeOut(before);
		if (row !== null) this.#put(row);
	}

	#put(row: Row): void {
		const rows = this.of(row.from);
		// From the end, since most arrive in order.
		const at = rows.findLastIndex((one) => byNonce(one, row) <= 0) + 1;
		this.#bySender.set(row.from, rows.toSpliced(at, 0, row));
		this.#take(row);
	}

	#takeOut(row: Row): void {
		const rows = this.of(row.from).filter((one) => one !== row);
		if (rows.length > 0) this.#bySender.set(row.from, rows);
		else this.#bySender.delete(row.from);
		this.#release(row);
	}

	#take({ address, bytes }: Row): void {
		this.#counts.takeAnyway(clientOf(address), 1);
		this.#bytes.takeAnyway(clientOf(address), bytes + ROW_BYTES);
	}

	#release({ address, bytes }: Row): void {
		this.#counts.release(clientOf(address), 1);
		this.#bytes.release(clientOf(address), bytes + ROW_BYTES);
	}
}

/** Whether its position and its client's share stay the same. */
function hasSamePlace(before: Row, row: Row): boolean {
	return before.address === row.address && before.bytes === row.bytes && before.receivedAt === row.receivedAt;
}

/**
 * The rows of one nonce among rows sorted by nonce. Binary search: a sender may have many, and each
 * submission needs this.
 */
function ofNonce(rows: readonly Row[], nonce: bigint): readonly Row[] {
	let [low, high] = [0, rows.length];
	while (low < high) {
		const middle = (low + high) >>> 1;
		if ((rows[middle] as Row).nonce < nonce) low = middle + 1;
		else high = middle;
	}
	while (rows[high]?.nonce === nonce) high += 1;
	return low === high ? NONE : rows.slice(low, high);
}

/** Orders an account's rows by nonce, and those of one nonce by arrival. */
export function byNonce(one: Row, other: Row): number {
	if (one.nonce === other.nonce) return one.receivedAt - other.receivedAt;
	return one.nonce < other.nonce ? -1 : 1;
}
