// Finds damage in LMDB's file before it is opened, and copies the readable entries of a damaged
// file. On a damaged page, LMDB ends the process that reads it, or silently omits everything after
// it. So separate processes do this.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, fsyncSync, openSync, readSync, renameSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { DATA_FILE, DataFolderError, LMDB_FORMAT, MAGIC, MAGIC_OFFSET, META_BYTES } from "./dataFolder.ts";
import { isOfOneCommit } from "./pages.ts";

/** The result of reading a file. */
interface Reading {
	/** Entries that were read. */
	readonly read: number;
	/** Entries that the file should have. Null if not even that can be read. */
	readonly of: number | null;
}

/** LMDB's file is damaged. The message, which is public, is for the operator. */
export class DamagedStoreError extends Error {
	readonly code = "DAMAGED_STORE";
	constructor(folder: string, { read, of }: Reading) {
		const process = basename(folder);
		const what =
			read === of
				? "some pages are missing, or not of its last commit, as in a copy made during a write"
				: `${read} of ${of ?? "its"} entries can be read`;
		super(
			`DATA_DIR/${process}/${DATA_FILE} is damaged: ${what}: expected a backup in its place, or npm run ${process} -- --salvage, which keeps what can be read`,
		);
		this.name = "DamagedStoreError";
	}
}

/** Offset of the size of a page in the first of the two pages that describe the file. */
const PAGE_SIZE_OFFSET = MAGIC_OFFSET + 24;

/**
 * Reads all keys of a store, or copies its entries to the folder `to` if that is given. Prints how
 * many entries there are, from time to time how many it has read, and `whole` at the end.
 */
const READER = `
	import { writeSync } from "node:fs";
	const [, lmdb, from, to, reverse] = process.argv;
	const { open } = await import(lmdb);
	// Written without flushes: what this process has copied when it ends must be there, and it ends
	// at the first damaged page.
	const store = (path, readOnly) => open({ path, readOnly, noSync: true, ...${JSON.stringify(LMDB_FORMAT)} });
	const say = (line) => writeSync(1, line + "\\n");
	const source = store(from, true);
	say("of " + source.getStats().entryCount);
	const copy = to === undefined ? null : store(to, false);
	let read = 0;
	const count = () => {
		read += 1;
		if (read % 64 === 0) say("read " + read);
	};
	// Values take three times as long.
	if (copy === null) for (const _key of source.getKeys()) count();
	else
		for (const { key, value } of source.getRange({ reverse: reverse === "reverse" })) {
			copy.putSync(key, Buffer.from(value));
			count();
		}
	await copy?.flushed;
	say("read " + read);
	say("whole");`;

/** Throws {@link DamagedStoreError} if the store in `folder` can't be read to its end. */
export async function assertWhole(folder: string): Promise<void> {
	const file = join(folder, DATA_FILE);
	if (!existsSync(file) || statSync(file).size <= META_BYTES) return;
	const { isWhole, ...reading } = await examined(folder);
	if (!isWhole) throw new DamagedStoreError(folder, reading);
}

/** Reads all of a store: its entries in a process, and meanwhile its pages here. */
async function examined(folder: string): Promise<Reading & { readonly isWhole: boolean }> {
	// Ends when both have ended: the folder is unlocked then.
	const [reading, pages] = await Promise.allSettled([readAll([folder]), arePagesWhole(folder)]);
	if (reading.status === "rejected") throw reading.reason;
	if (pages.status === "rejected") throw pages.reason;
	const { read, of } = reading.value;
	return { read, of, isWhole: pages.value === null || (pages.value && read === of) };
}

/**
 * Whether the pages of LMDB's file belong to one commit. Null if it is the file of another program,
 * which is refused when it is opened.
 */
async function arePagesWhole(folder: string): Promise<boolean | null> {
	const file = openSync(join(folder, DATA_FILE), "r");
	try {
		const numberAt = (offset: number) => {
			const bytes = Buffer.alloc(4);
			readSync(file, bytes, 0, bytes.length, offset);
			return bytes.readUInt32LE();
		};
		if (numberAt(MAGIC_OFFSET) !== MAGIC) return null;
		// Without its second description LMDB uses the first one, which lacks the last commit.
		const hasBoth = numberAt(numberAt(PAGE_SIZE_OFFSET) + MAGIC_OFFSET) === MAGIC;
		return hasBoth && isOfOneCommit(file);
	} finally {
		closeSync(file);
	}
}

/** The result of a salvage. */
export interface Salvage extends Reading {
	/** New path of the damaged file. Null if the file is whole, and nothing was changed. */
	readonly damaged: string | null;
}

/**
 * Replaces the store in `folder` by its readable entries, from before and after the damage. No
 * process may have the store open. `prepare` may change the copy before that. Throws
 * DataFolderError if nothing can be read.
 */
export async function salvage(
	folder: string,
	now: Date,
	prepare: (copy: string) => Promise<void>,
): Promise<Salvage> {
	const { isWhole, ...whole } = await examined(folder);
	if (isWhole) return { ...whole, damaged: null };
	const copy = join(folder, "salvaged");
	rmSync(copy, { recursive: true, force: true });
	for (const direction of ["forward", "reverse"]) await readAll([folder, copy, direction]);
	const copied = join(copy, DATA_FILE);
	const { read } = existsSync(copied) ? await readAll([copy]) : { read: 0 };
	if (read === 0) {
		rmSync(copy, { recursive: true, force: true });
		throw new DataFolderError(`nothing of ${join(folder, DATA_FILE)} can be read`, "a backup in its place");
	}
	await prepare(copy);
	flush(copied);
	const damaged = join(folder, `${DATA_FILE}.damaged-${now.toISOString().replaceAll(":", "")}`);
	renameSync(join(folder, DATA_FILE), damaged);
	renameSync(copied, join(folder, DATA_FILE));
	rmSync(copy, { recursive: true });
	return { read, of: whole.of, damaged };
}

/** Needed because the copy was written without flushes. */
function flush(path: string): void {
	const file = openSync(path, "r+");
	fsyncSync(file);
	closeSync(file);
}

async function readAll(args: readonly string[]): Promise<Reading> {
	const lmdb = createRequire(import.meta.url).resolve("lmdb");
	const child = spawn(process.execPath, ["--input-type=module", "--eval", READER, lmdb, ...args], {
		stdio: ["ignore", "pipe", "ignore"],
	});
	let output = "";
	child.stdout.setEncoding("utf8").on("data", (text: string) => {
		output += text;
		// Node may wait for its own threads for ever if a process ends by itself.
		if (output.endsWith("whole\n")) child.kill("SIGKILL");
	});
	await once(child, "close");
	const numbers = (word: string) =>
		[...output.matchAll(new RegExp(`^${word} (\\d+)$`, "gm"))].map(([, n]) => Number(n));
	return { read: numbers("read").at(-1) ?? 0, of: numbers("of")[0] ?? null };
}
