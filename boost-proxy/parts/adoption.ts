// Adopts the part of a boost instance that is gone. Its rows become this instance's own, as if it
// had read them at its start. Each row moves in one transaction, so that a crash in between leaves
// every row in one part.

import { archivedKey, hashIn } from "../../shared/kv/archive.ts";
import { type KeyValueStore, type LeftPart, prefixRange } from "../../shared/kv/port.ts";
import type { Logger } from "../../shared/log.ts";
import type { Row } from "../domain/row.ts";
import { RowReader } from "../journal/readRows.ts";
import { BIRTH, BY_TIME, decodeArchived, keysOf, STATE } from "../journal/records.ts";
import type { Rows } from "../rows/rows.ts";

/** The number of rows per transaction. */
const AT_ONCE = 200;

export interface Adopted {
	/** Rows that still have work left. */
	readonly open: readonly Row[];
	/** Rows of the archive. */
	readonly archived: number;
}

/**
 * Moves everything from `left` into this instance's part and into `rows`. Rejects if the store
 * fails, or if another instance has the part by now.
 */
export async function adopt(
	left: LeftPart,
	{ rows, log }: { readonly rows: Rows; readonly log: Logger },
): Promise<Adopted> {
	const reader = new RowReader(log);
	for (const prefix of [BIRTH, STATE])
		for await (const [key, value] of left.range(...prefixRange(prefix))) reader.take(key, value);
	const open = reader.rows();
	for (let at = 0; at < open.length; at += AT_ONCE)
		await adoptSome(left, open.slice(at, at + AT_ONCE), { rows, log });
	let archived = 0;
	for (let from = ""; ; ) {
		const keys = await indexAfter(left, from);
		const last = keys.at(-1);
		if (last === undefined) return { open, archived };
		from = last;
		await adoptArchived(left, rows, keys);
		archived += keys.length;
	}
}

async function adoptSome(
	left: LeftPart,
	some: readonly Row[],
	{ rows, log }: { readonly rows: Rows; readonly log: Logger },
): Promise<void> {
	const fresh: Row[] = [];
	for (const row of some) {
		if (rows.has(row.hash) && (await rows.merge(row))) await discard(left, keysOf(row));
		else fresh.push(row);
	}
	const stuck = await move(left, fresh.flatMap(keysOf));
	const moved = fresh.filter((row) => !keysOf(row).some((key) => stuck.includes(key)));
	for (const { hash } of fresh) {
		if (moved.some((row) => row.hash === hash)) continue;
		log.error("record stays in another instance's part: this instance has a damaged one", {
			hash,
		});
	}
	await rows.takeIn(moved);
}

/** Moves settled rows, by their keys in the index by time. */
async function adoptArchived(left: LeftPart, rows: Rows, indexKeys: readonly string[]): Promise<void> {
	const fresh: string[] = [];
	for (const key of indexKeys) {
		const hash = hashIn(key);
		if (rows.has(hash)) {
			const row = await archivedRow(left, hash);
			if (row === null || (await rows.merge(row))) {
				await discard(left, [key, archivedKey(hash)]);
				continue;
			}
		}
		fresh.push(key);
	}
	const hashes = fresh.map(hashIn);
	await move(left, [...fresh, ...hashes.map(archivedKey)]);
	rows.takeInArchived(hashes);
}

/** Null if there is no readable one. */
async function archivedRow(kv: KeyValueStore, hash: string): Promise<Row | null> {
	const value = await kv.get(archivedKey(hash));
	try {
		return value === null ? null : decodeArchived(hash, value);
	} catch {
		return null;
	}
}

async function indexAfter(kv: KeyValueStore, from: string): Promise<readonly string[]> {
	const [start, end] = prefixRange(BY_TIME);
	const keys: string[] = [];
	for await (const [key] of kv.range(from === "" ? start : `${from}/`, end, AT_ONCE)) keys.push(key);
	return keys;
}

function discard(left: LeftPart, keys: readonly string[]): Promise<void> {
	return left.write(keys.map((key) => ({ key, value: null })));
}

/** Returns the keys that could not be moved. */
async function move(left: LeftPart, keys: readonly string[]): Promise<readonly string[]> {
	if (keys.length === 0) return [];
	const { left: stuck, isFenced } = await left.moveHere(keys);
	if (isFenced) throw new Error("the part belongs to another boost instance");
	return stuck;
}
