// Reads rows from their records: at the start the whole journal, later rows of another part.
// Unreadable records are logged and left out, since one bad record must not block the others.

import { type Logger, safeError } from "../../shared/log.ts";
import { isLive, isSettled, keepsBytes, type Row } from "../domain/row.ts";
import {
	BIRTH,
	decodeBirth,
	decodeState,
	keyOf,
	type RowKey,
	rawOfBirth,
	readKey,
	STATE,
} from "./records.ts";

/** The rows of one journal, from its records. Birth records come before state records. */
export class RowReader {
	readonly #log: Logger;
	readonly #withBytes: boolean;
	/** By id and hash. A hash that came again while an earlier record was unreadable has two rows. */
	readonly #rows = new Map<string, Row>();
	readonly #lengths = new Map<string, number>();
	readonly #raws = new Map<string, Buffer>();
	#lastId = 0;
	#bad = 0;

	/** `withBytes`: whether it keeps the transactions' bytes for {@link rawOf}. */
	constructor(log: Logger, withBytes = false) {
		this.#log = log;
		this.#withBytes = withBytes;
	}

	/** The highest id of any record. */
	get lastId(): number {
		return this.#lastId;
	}

	/**
	 * Adds a record. The state record of a transaction overrides its birth record, if it is readable.
	 */
	take(text: string, value: Buffer): void {
		const prefix = text.startsWith(BIRTH) ? BIRTH : text.startsWith(STATE) ? STATE : null;
		if (prefix === null) return;
		const key = readKey(prefix, text);
		const place = text.slice(prefix.length);
		this.#lastId = Math.max(this.#lastId, key.id);
		try {
			this.#rows.set(
				place,
				prefix === BIRTH ? this.#birth(place, key, value) : this.#state(place, key, value),
			);
		} catch (thrown) {
			this.#leaveOut("can't be read", key.hash, { fault: safeError(thrown) });
		}
	}

	#birth(place: string, key: RowKey, value: Buffer): Row {
		// Even if the rest is malformed, the state record may be whole.
		const raw = rawOfBirth(value);
		this.#lengths.set(place, raw.length);
		const row = decodeBirth(key, value);
		if (this.#withBytes) this.#raws.set(place, raw);
		return row;
	}

	#state(place: string, key: RowKey, value: Buffer): Row {
		return decodeState(key, value, this.#lengths.get(place) ?? 0);
	}

	/** All rows that are whole. */
	rows(): readonly Row[] {
		const whole: Row[] = [];
		for (const row of this.#rows.values()) {
			if (isLive(row) ? keepsBytes(row) : !isSettled(row)) whole.push(row);
			else this.#leaveOut("has no bytes", row.hash);
		}
		if (this.#bad > 0) this.#log.error("journal records skipped", { count: this.#bad });
		return whole;
	}

	/** The bytes of a row's transaction; null if they are not kept. */
	rawOf(row: RowKey): Buffer | null {
		return this.#raws.get(keyOf("", row)) ?? null;
	}

	#leaveOut(why: string, hash: string, fault?: object): void {
		this.#bad += 1;
		this.#log.error(`journal record skipped: it ${why}`, { hash, ...fault });
	}
}
