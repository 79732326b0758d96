// Reads rows from their records: at the start the whole journal, later single accounts.
// Unreadable records are logged and left out, since one bad record must not block the others.

import { type Logger, safeError } from "../../shared/log.ts";
import { isLive, isSettled, keepsBytes, type Row } from "../domain/row.ts";
import {
	BIRTH,
	decodeArchived,
	decodeBirth,
	decodeState,
	type RowKey,
	rawBytesIn,
	readKey,
	STATE,
} from "./records.ts";

/** The rows of one journal, from its records. Birth records come before state records. */
export class RowReader {
	readonly #log: Logger;
	/** By id and hash. A hash that came again while an earlier record was unreadable has two rows. */
	readonly #rows = new Map<string, Row>();
	readonly #lengths = new Map<string, number>();
	#lastId = 0;
	#bad = 0;

	constructor(log: Logger) {
		this.#log = log;
	}

	/** The highest id of any record. */
	get lastId(): number {
		return this.#lastId;
	}

	/**
	 * Adds a record, of which `value` may lack the transaction. `bytes`: the length of the whole
	 * value. The state record of a transaction overrides its birth record, if it is readable.
	 */
	take(text: string, value: Buffer, bytes = value.length): void {
		const prefix = text.startsWith(BIRTH) ? BIRTH : text.startsWith(STATE) ? STATE : null;
		if (prefix === null) return;
		const key = readKey(prefix, text);
		const place = text.slice(prefix.length);
		this.#lastId = Math.max(this.#lastId, key.id);
		try {
			this.#rows.set(
				place,
				prefix === BIRTH ? this.#birth(place, key, value, bytes) : this.#state(place, key, value),
			);
		} catch (thrown) {
			this.#leaveOut("can't be read", key.hash, { fault: safeError(thrown) });
		}
	}

	#birth(place: string, key: RowKey, value: Buffer, bytes: number): Row {
		// Even if the rest is malformed, the state record may be whole.
		this.#lengths.set(place, rawBytesIn(value, bytes));
		return decodeBirth(key, value, bytes);
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

	#leaveOut(why: string, hash: string, fault?: object): void {
		this.#bad += 1;
		this.#log.error(`journal record skipped: it ${why}`, { hash, ...fault });
	}
}

/** The settled row in an archived record; null if it is unreadable, which is logged. */
export function readArchived(hash: string, value: Buffer, log: Logger): Row | null {
	try {
		return decodeArchived(hash, value);
	} catch (thrown) {
		log.error("could not read a journal record", { hash, fault: safeError(thrown) });
		return null;
	}
}
