// Reads the rows of an account or a hash from the records of other parts.

import { archivedKey, hashIn } from "../../shared/kv/archive.ts";
import type { PartRecord } from "../../shared/kv/port.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { ElsewhereRow } from "../domain/ports.ts";
import { isLive, type Row } from "../domain/row.ts";
import { RowReader } from "../journal/readRows.ts";
import { decodeArchived } from "../journal/records.ts";

/** The rows of an account or a hash in other parts. */
export interface Seen {
	readonly live: readonly (ElsewhereRow & { readonly part: string })[];
	/** Archived, or with work left. */
	readonly ended: readonly ElsewhereRow[];
}
export const NOTHING: Seen = { live: [], ended: [] };

export function rowsOf(found: readonly ElsewhereRow[]): readonly Row[] {
	return found.map(({ row }) => row).sort(byNonce);
}

function byNonce(one: Row, other: Row): number {
	if (one.nonce === other.nonce) return one.receivedAt - other.receivedAt;
	return one.nonce < other.nonce ? -1 : 1;
}

export function sorted(records: readonly PartRecord[]): readonly PartRecord[] {
	return [...records].sort((one, other) => (one.key < other.key ? -1 : 1));
}

/** The rows of records, which may come from several parts. */
export function seenIn(records: readonly PartRecord[], log: Logger): Seen {
	if (records.length === 0) return NOTHING;
	const readers = new Map<string, RowReader>();
	const live: Seen["live"][number][] = [];
	const ended: ElsewhereRow[] = [];
	for (const { part, key, value } of sorted(records)) {
		if (key.startsWith(archivedKey(""))) {
			try {
				ended.push({ row: decodeArchived(hashIn(key), value), raw: null });
			} catch (thrown) {
				log.error("could not read a journal record", {
					hash: hashIn(key),
					fault: safeError(thrown),
				});
			}
			continue;
		}
		const reader = readers.get(part) ?? new RowReader(log, true);
		readers.set(part, reader);
		reader.take(key, value);
	}
	for (const [part, reader] of readers) {
		for (const row of reader.rows()) {
			const raw = reader.rawOf(row);
			if (isLive(row)) live.push({ part, row, raw });
			else ended.push({ row, raw });
		}
	}
	return { live, ended };
}
