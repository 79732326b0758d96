// The keys and envelopes with which relay and boost store transactions. A new transaction is an
// envelope: its metadata as JSON, and its bytes. An ended one is a record by hash, with an entry in
// an index by time, which purges use.

import { type KeyValueStore, prefixRange } from "./port.ts";

const TIME_DIGITS = 15;
/** Sorts after every time, in ms. */
export const LATEST_MS = 10 ** TIME_DIGITS - 1;

/** The key of an ended transaction. */
export function archivedKey(hash: string): string {
	return `e/${hash}`;
}

/**
 * The key of `hash` in an order by time (ms since the epoch). Without a hash it is the start of
 * that time.
 */
export function timeKey(prefix: string, ms: number, hash = ""): string {
	const time = Math.min(Math.max(0, Math.floor(ms)), LATEST_MS).toString();
	return `${prefix}${time.padStart(TIME_DIGITS, "0")}/${hash}`;
}

/** The hash at the end of a key. */
export function hashIn(key: string): string {
	return key.slice(key.lastIndexOf("/") + 1);
}

/**
 * Up to `limit` keys of an order by time, oldest first, for times from `from` to before `until`. If
 * that is null, to the end.
 */
export async function keysByTime(
	kv: Pick<KeyValueStore, "range">,
	prefix: string,
	{ from = 0, until = null }: { readonly from?: number; readonly until?: number | null },
	limit: number,
): Promise<readonly string[]> {
	const [, last] = prefixRange(prefix);
	const end = until === null ? last : timeKey(prefix, until);
	const keys: string[] = [];
	for await (const [key] of kv.range(timeKey(prefix, from), end, limit)) keys.push(key);
	return keys;
}

/**
 * An envelope: the length of `known` as JSON (4 bytes, big endian), the JSON, the raw transaction.
 */
export function enveloped(known: object, raw: Buffer): Buffer {
	const json = JSON.stringify(known);
	const length = Buffer.byteLength(json);
	const bytes = Buffer.allocUnsafe(4 + length + raw.length);
	bytes.writeUInt32BE(length, 0);
	bytes.write(json, 4, "utf8");
	bytes.set(raw, 4 + length);
	return bytes;
}

/**
 * The metadata in an envelope, of which `bytes` may lack the transaction. Throws if it is damaged.
 */
export function knownIn(bytes: Buffer): unknown {
	return JSON.parse(bytes.toString("utf8", 4, 4 + bytes.readUInt32BE(0)));
}

/**
 * The start of the raw transaction in an envelope of `length` bytes. Throws if there is none.
 */
export function rawStart(bytes: Buffer, length = bytes.length): number {
	const start = 4 + bytes.readUInt32BE(0);
	if (start >= length) throw new RangeError("no bytes");
	return start;
}

/** The content of an envelope. `raw` is a view of `bytes`. Throws if the envelope is damaged. */
export function openEnvelope(bytes: Buffer): { readonly known: unknown; readonly raw: Buffer } {
	return { known: knownIn(bytes), raw: rawIn(bytes) };
}

/** A view of the raw transaction in an envelope. Throws if there is none. */
export function rawIn(bytes: Buffer): Buffer {
	return bytes.subarray(rawStart(bytes));
}
