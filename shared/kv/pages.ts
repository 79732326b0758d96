// Reads the pages of LMDB's file one by one, to find out whether they belong to one commit. If a
// process wrote to the file while it was copied, the copy has pages of later commits, since LMDB
// reuses the pages of earlier ones. Nothing else shows that.

import { fstatSync, readSync } from "node:fs";

// Offsets in a page, in the two pages that describe the file, and in a node: MDB_page_header,
// MDB_meta, MDB_node and MDB_ovpage of mdb.c. Offsets of nodes within a page count from the end of
// its header.
const PAGE = { number: 0, commit: 8, flags: 18, lower: 20, bytes: 24 } as const;
const META = { pageSize: 48, freeRoot: 88, mainRoot: 136, commit: 152, bytes: 160 } as const;
const NODE = { low: 0, high: 2, flags: 4, keySize: 6, key: 8 } as const;
const VALUE = { first: 0, count: 16 } as const;
/** Kinds of pages, and the flag of a node whose value has pages of its own. */
const [BRANCH, LEAF, HAS_PAGES] = [1, 2, 1];
/**
 * Pages of a value after its first one have no header, so their bytes may look like a commit. Only
 * commits less than this far ahead count.
 */
const SOON = 2n ** 32n;

/**
 * Whether every page that the latest commit in `file` (open for reading) leads to was written by
 * that commit or an earlier one.
 */
export function isOfOneCommit(file: number): boolean {
	const read = (offset: number, length: number): Buffer => {
		const bytes = Buffer.alloc(length);
		readSync(file, bytes, 0, length, offset);
		return bytes;
	};
	const first = read(0, META.bytes);
	const pageSize = first.readUInt32LE(META.pageSize);
	const second = read(pageSize, META.bytes);
	const [one, other] = [first, second].map((meta) => meta.readBigUInt64LE(META.commit)) as [bigint, bigint];
	const [meta, commit] = one > other ? [first, one] : [second, other];
	const pages = fstatSync(file).size / pageSize;
	const isLater = (number: bigint, offset: number): boolean => {
		const header = read(offset, PAGE.bytes);
		const written = header.readBigUInt64LE(PAGE.commit);
		return header.readBigUInt64LE(PAGE.number) === number && written > commit && written < commit + SOON;
	};
	/** Page number of a tree without entries. */
	const NONE = 2n ** 64n - 1n;
	const open = [META.freeRoot, META.mainRoot].map((offset) => meta.readBigUInt64LE(offset));
	for (let number = open.pop(); number !== undefined; number = open.pop()) {
		if (number === NONE) continue;
		if (number >= pages) return false;
		const page = read(Number(number) * pageSize, pageSize);
		if (page.readBigUInt64LE(PAGE.number) !== number || page.readBigUInt64LE(PAGE.commit) > commit)
			return false;
		const flags = page.readUInt16LE(PAGE.flags);
		if ((flags & (BRANCH | LEAF)) === 0) continue;
		for (let at = 0; at < page.readUInt16LE(PAGE.lower); at += 2) {
			const node = page.subarray(PAGE.bytes + page.readUInt16LE(PAGE.bytes + at));
			const [low, high] = [node.readUInt16LE(NODE.low), node.readUInt16LE(NODE.high)];
			const nodeFlags = node.readUInt16LE(NODE.flags);
			if ((flags & BRANCH) !== 0) open.push(BigInt(low + high * 2 ** 16 + nodeFlags * 2 ** 32));
			else if ((nodeFlags & HAS_PAGES) !== 0) {
				const value = node.subarray(NODE.key + node.readUInt16LE(NODE.keySize));
				const start = value.readBigUInt64LE(VALUE.first);
				open.push(start);
				for (let i = value.readBigUInt64LE(VALUE.count) - 1n; i > 0n; i -= 1n)
					if (isLater(start + i, Number(start + i) * pageSize)) return false;
			}
		}
	}
	return true;
}
