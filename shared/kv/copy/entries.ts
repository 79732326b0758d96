// All entries of a store: a store comes in, its entries in key order and a digest over them go out, without what a copy
// has marked it with. It reads in pages, so that what is read may be written to in between, and no page is large.

import { createHash } from "node:crypto";
import { type KeyValueStore, prefixRange } from "../port.ts";
import { isMark } from "./marks.ts";

export type Entry = readonly [key: string, value: Buffer];

/** What a store holds. */
export interface Digest {
	readonly count: number;
	/** SHA-256 in hex over each entry: length of its key and of its value (4 bytes each, big endian), key, value. */
	readonly sha256: string;
}

/** Entries of a page at most; a database must answer one in time. */
const PAGE = 200;
/** A page is to have about so many bytes, by the size of what came before it. */
const PAGE_BYTES = 1024 * 1024;
/** Of the first page. */
const FIRST_PAGE = 16;

/** Entries in key order; what is handed out stays as it is, whatever is written meanwhile. */
export async function* entriesOf(kv: KeyValueStore): AsyncGenerator<Entry, undefined> {
	const [first, end] = prefixRange("");
	let from = first;
	let limit = FIRST_PAGE;
	for (;;) {
		const page: Entry[] = [];
		let bytes = 0;
		for await (const [key, value] of kv.range(from, end, limit)) {
			// A copy: the engine's buffer may be its own memory.
			page.push([key, Buffer.from(value)]);
			bytes += value.byteLength;
		}
		for (const entry of page) if (!isMark(entry[0])) yield entry;
		const last = page.at(-1);
		if (last === undefined || page.length < limit) return;
		// The next key that there can be.
		from = `${last[0]}\u{0001}`;
		limit = Math.max(1, Math.min(PAGE, Math.floor((PAGE_BYTES * page.length) / Math.max(1, bytes))));
	}
}

/** Whether it holds no entry; marks are none. */
export async function isEmpty(kv: KeyValueStore): Promise<boolean> {
	for await (const _ of entriesOf(kv)) return false;
	return true;
}

/** Reads all of it. */
export async function digestOf(kv: KeyValueStore): Promise<Digest> {
	const hash = createHash("sha256");
	const lengths = Buffer.alloc(8);
	let count = 0;
	for await (const [key, value] of entriesOf(kv)) {
		lengths.writeUInt32BE(Buffer.byteLength(key), 0);
		lengths.writeUInt32BE(value.byteLength, 4);
		hash.update(lengths).update(key, "utf8").update(value);
		count += 1;
	}
	return { count, sha256: hash.digest("hex") };
}
