// Reads the pages of LMDB's file one by one, to find out whether they belong to one commit. If a
// process wrote to the file while it was copied, the copy has pages of later commits, since LMDB
// reuses the pages of earlier ones. Nothing else shows that.

import { fstatSync, readSync } from "node:fs";

// Offsets in a page, in the two pages that describe the file, and in a node: MDB_page_header,
// MDB_meta, MDB_node and MDB_ovpage of mdb.c. Offsets of nodes within a page count from the end of
// its header.
const PAGE = { number: 0, commit: 8, flags: 18, lower: 20, bytes: 24 } as const;
const META = { pageSize: 48, freeRoot: 88, mainRoot: 136, commit: 152, bytes: 160 } as const;
const NODE = { low: 0, flags: 4, keySize: 6, key: 8 } as const;
const VALUE = { first: 0, count: 16 } as const;
/** Kinds of pages, and the flag of a node whose value has pages of its own. */
const [BRANCH, LEAF, HAS_PAGES] = [1, 2, 1];
/**
 * Pages of a value after its first one have no header, so their bytes may look like a commit. Only
 * commits less than this far ahead count.
 */
const SOON = 2 ** 32;
/** Page number of a tree without entries, as {@link numberAt} reads it. */
const NONE = 2 ** 64;

/**
 * Whether every page that the latest commit in `file` (open for reading) leads to was written by
 * that commit or an earlier one. False if a page can't be read or followed.
 */
export function isOfOneCommit(file: number): boolean {
	try {
		return new Pages(file).areOfOneCommit();
	} catch {
		// A damaged page leads anywhere.
		return false;
	}
}

/** The pages of a file. */
class Pages {
	readonly #file: number;
	readonly #pageSize: number;
	readonly #count: number;
	/** The latest commit, and the root pages of its trees. */
	readonly #commit: number;
	readonly #roots: readonly number[];
	/** Reused for all pages and headers: a file may have 100,000. */
	readonly #page: Buffer;
	readonly #header = Buffer.alloc(PAGE.bytes);

	constructor(file: number) {
		this.#file = file;
		const first = this.#read(Buffer.alloc(META.bytes), 0);
		this.#pageSize = first.readUInt32LE(META.pageSize);
		const second = this.#read(Buffer.alloc(META.bytes), this.#pageSize);
		const isFirst = numberAt(first, META.commit) > numberAt(second, META.commit);
		const meta = isFirst ? first : second;
		this.#commit = numberAt(meta, META.commit);
		this.#roots = [META.freeRoot, META.mainRoot].map((offset) => numberAt(meta, offset));
		this.#count = fstatSync(file).size / this.#pageSize;
		this.#page = Buffer.alloc(this.#pageSize);
	}

	areOfOneCommit(): boolean {
		const open = this.#roots.filter((number) => number !== NONE);
		/** Each page belongs to one place, so a whole file has no more. */
		let visited = 0;
		for (let number = open.pop(); number !== undefined; number = open.pop()) {
			visited += 1;
			if (number >= this.#count || visited > this.#count) return false;
			const page = this.#read(this.#page, number * this.#pageSize);
			if (numberAt(page, PAGE.number) !== number || numberAt(page, PAGE.commit) > this.#commit) return false;
			const flags = page.readUInt16LE(PAGE.flags);
			if ((flags & (BRANCH | LEAF)) === 0) continue;
			for (let at = 0; at < page.readUInt16LE(PAGE.lower); at += 2) {
				const node = PAGE.bytes + page.readUInt16LE(PAGE.bytes + at);
				const nodeFlags = page.readUInt16LE(node + NODE.flags);
				// In a branch the start of a page number, in a leaf the size of a value.
				const low = page.readUInt32LE(node + NODE.low);
				if ((flags & BRANCH) !== 0) {
					open.push(low + nodeFlags * 2 ** 32);
					continue;
				}
				const value = node + NODE.key + page.readUInt16LE(node + NODE.keySize);
				if ((nodeFlags & HAS_PAGES) === 0) {
					if (value + low > this.#pageSize) return false;
					continue;
				}
				const start = numberAt(page, value + VALUE.first);
				const count = numberAt(page, value + VALUE.count);
				visited += count - 1;
				if (PAGE.bytes + low > count * this.#pageSize) return false;
				if (start + count > this.#count || visited > this.#count) return false;
				open.push(start);
				for (let i = 1; i < count; i += 1) if (this.#isLater(start + i)) return false;
			}
		}
		return true;
	}

	/** Whether a page has the header of a later commit. */
	#isLater(number: number): boolean {
		const header = this.#read(this.#header, number * this.#pageSize);
		const written = numberAt(header, PAGE.commit);
		const isPage = numberAt(header, PAGE.number) === number;
		return isPage && written > this.#commit && written < this.#commit + SOON;
	}

	/** Fills `bytes` from the file; with zeros behind its end. */
	#read(bytes: Buffer, offset: number): Buffer {
		const length = readSync(this.#file, bytes, 0, bytes.length, offset);
		return length < bytes.length ? bytes.fill(0, length) : bytes;
	}
}

/** A number of eight bytes. Real ones are below 2^53; others come out rounded. */
function numberAt(bytes: Buffer, offset: number): number {
	return bytes.readUInt32LE(offset) + bytes.readUInt32LE(offset + 4) * 2 ** 32;
}
