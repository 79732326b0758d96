// Prepares a folder for LMDB. If it is unusable, tells the operator in one line what to change.
// LMDB itself ends the process silently if its files can't be made. It writes to its lock file
// through memory, and its errors overrun the heap.

import {
	accessSync,
	chmodSync,
	closeSync,
	constants,
	existsSync,
	fstatSync,
	fsyncSync,
	mkdirSync,
	openSync,
	readSync,
	rmSync,
	type StatsFs,
	statfsSync,
	statSync,
	writeSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type Logger, safeError } from "../log.ts";

export const DATA_FILE = "data.mdb";
/** Options that must be the same at every place that opens the file with LMDB. */
export const LMDB_FORMAT = { encoding: "binary", keyEncoding: "ordered-binary", noSubdir: false } as const;
const LOCK_FILE = "lock.mdb";
/** More than the size of LMDB's table of readers. */
const LOCK_BYTES = 16 * 1024;
/** Free bytes required besides those of a write, since LMDB copies pages before it changes them. */
export const MIN_FREE_BYTES = 16 * 1024 * 1024;
const MIB = 1024 * 1024;
/** Minimum disk space of a new store. */
const NEW_STORE_BYTES = 64 * 1024;
/**
 * LMDB's two first pages, without which nothing was ever committed, and the number that identifies
 * the first one.
 */
export const META_BYTES = 8_192;
export const MAGIC = 0xbeef_c0de;
export const MAGIC_OFFSET = 24;

/** The folder of DATA_DIR can't be used. The message is for the operator. */
export class DataFolderError extends Error {
	readonly code = "DATA_FOLDER";
	constructor(what: string, expected: string) {
		super(`DATA_DIR can't be used: ${what}: expected ${expected}`);
		this.name = "DataFolderError";
	}
}

/**
 * Makes `folder`, accessible only to its owner if the file system has owners. Throws {@link
 * DataFolderError}.
 */
export function makeFolder(folder: string, log: Logger): void {
	try {
		mkdirSync(folder, { recursive: true, mode: 0o700 });
		accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
		for (const file of [DATA_FILE, LOCK_FILE].map((name) => join(folder, name))) {
			if (existsSync(file)) accessSync(file, constants.R_OK | constants.W_OK);
		}
	} catch (thrown) {
		throw folderError(folder, thrown);
	}
	// The folder holds signed transactions and a key.
	closeToOthers(folder, 0o700, "DATA_DIR", log);
}

/**
 * Closes LMDB's files in `folder` to other users. LMDB makes them readable to all, and a backup of
 * them keeps their mode.
 */
export function closeFiles(folder: string, log: Logger): void {
	for (const name of [DATA_FILE, LOCK_FILE]) closeToOthers(join(folder, name), 0o600, name, log);
}

function closeToOthers(path: string, mode: number, name: string, log: Logger): void {
	try {
		chmodSync(path, mode);
	} catch (thrown) {
		// Volumes of Kubernetes, NFS and SMB may be writable for a process that does not own them.
		if ((statSync(path).mode & 0o077) === 0) return;
		log.warn(`could not close ${name} to other users of this machine`, { fault: safeError(thrown) });
	}
}

/**
 * Allocates the blocks of LMDB's files in `folder` that LMDB writes to before it can report a full
 * disk. No process may have the store open. Throws {@link DataFolderError} or the system's error.
 */
export function allocateFiles(folder: string): void {
	if (isNewStore(folder)) {
		if (volumeOf(folder).free < MIN_FREE_BYTES) throw folderError(folder, { code: "ENOSPC" });
		const trial = join(folder, "trial");
		try {
			allocate(trial, NEW_STORE_BYTES);
		} finally {
			rmSync(trial, { force: true });
		}
	}
	allocate(join(folder, LOCK_FILE), LOCK_BYTES);
}

/**
 * The bytes of the volume of a folder. If a file system does not report its size, we assume that it
 * has enough space.
 */
export interface Volume {
	readonly size: number;
	readonly free: number;
}

type Blocks = Pick<StatsFs, "bavail" | "bsize" | "blocks">;

export function volumeIn({ bavail, bsize, blocks }: Blocks): Volume {
	return blocks > 0
		? { size: blocks * bsize, free: bavail * bsize }
		: { size: 0, free: Number.POSITIVE_INFINITY };
}

function volumeOf(folder: string): Volume {
	return volumeIn(statfsSync(folder));
}

/** For the operator: "a volume of 20 MiB, of which 3.5 MiB are free". */
export function volumeText({ size, free }: Volume): string {
	return `a volume of ${mebibytes(size)}, of which ${mebibytes(free)} are free`;
}

function mebibytes(bytes: number): string {
	return `${Math.floor((bytes / MIB) * 10) / 10} MiB`;
}

/** Required free space, as text for the operator. */
export const MIN_FREE = mebibytes(MIN_FREE_BYTES);

/**
 * Whether no store was ever committed in `folder`. Removes the file of a start that was interrupted
 * before its first commit. Throws {@link DataFolderError} for any other file.
 */
function isNewStore(folder: string): boolean {
	const path = join(folder, DATA_FILE);
	if (!existsSync(path)) return true;
	const file = openSync(path, "r");
	try {
		const head = Buffer.alloc(MAGIC_OFFSET + 4);
		readSync(file, head, 0, head.length, 0);
		if (fstatSync(file).size >= META_BYTES) {
			if (head.readUInt32LE(MAGIC_OFFSET) === MAGIC) return false;
			throw new DataFolderError(`${path} is damaged, or of another program`, "another folder, or a backup");
		}
	} finally {
		closeSync(file);
	}
	rmSync(path);
	return true;
}

/**
 * Allocates the blocks of the first `bytes` bytes of the file without changing its content. A full
 * disk, a quota or a limit is then an error here.
 */
function allocate(path: string, bytes: number): void {
	const file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
	try {
		const { size, blocks } = fstatSync(file);
		if (size >= bytes && blocks * 512 >= bytes) return;
		const content = Buffer.alloc(bytes);
		readSync(file, content, 0, bytes, 0);
		for (let at = 0; at < bytes; ) at += writeSync(file, content, at, bytes - at, at);
		fsyncSync(file);
	} finally {
		closeSync(file);
	}
}

/** The error for a fault that the system or LMDB (whose codes are numbers) reports for `folder`. */
export function folderError(folder: string, thrown: unknown): DataFolderError {
	const { code: given, path: at = folder } = thrown as { readonly code?: unknown; readonly path?: string };
	const path = resolve(at);
	const root = dirname(resolve(folder));
	const found = existing(path);
	// Node reports this code for nested folders that can't be made.
	const code = given === "ENOENT" && found !== null ? (writeError(found.path) ?? given) : given;
	switch (code) {
		case "EACCES":
		case "EPERM": {
			const user = process.getuid?.() ?? "of this process";
			const owner = found === null ? "" : ` (${found.path} belongs to user ${found.uid})`;
			const make = existsSync(root) ? "" : `mkdir -p ${quoted(root)} && `;
			return new DataFolderError(
				`user ${user} may not write ${path}${owner}`,
				`a folder or volume of that user, for example by ${make}chown -R ${user} ${quoted(root)}`,
			);
		}
		case "EROFS":
			return new DataFolderError(
				`${path} is on a read-only file system`,
				`a folder that can be written, for example on a volume at ${root}`,
			);
		case "ENOSPC":
		case "EDQUOT":
		case "EFBIG":
			return new DataFolderError(
				`the disk of ${path} is full${code === "ENOSPC" ? roomAt(found?.path) : ", or its user may not write more"}`,
				`${MIN_FREE} of free space, for example on a bigger volume`,
			);
		case "ENOTDIR":
		case "EEXIST":
			return new DataFolderError(`${path} is or is below a file`, "a folder, for example DATA_DIR=./data");
		default:
			return new DataFolderError(
				`${path} can't be made, opened or written (${typeof code === "number" ? `LMDB's code ${code}` : String(code)})`,
				"a folder, for example DATA_DIR=./data",
			);
	}
}

function roomAt(path: string | undefined): string {
	const volume = path === undefined ? null : volumeOf(path);
	return volume === null || volume.size === 0 ? "" : ` (${volumeText(volume)})`;
}

/** The part of `path` that exists and is accessible, and its owner. */
function existing(path: string): { readonly path: string; readonly uid: number } | null {
	for (let at = path; ; at = dirname(at)) {
		try {
			return { path: at, uid: statSync(at).uid };
		} catch {
			if (at === dirname(at)) return null;
		}
	}
}

/** The system's code if `path` is not writable. */
function writeError(path: string): string | undefined {
	try {
		accessSync(path, constants.W_OK);
		return undefined;
	} catch (thrown) {
		return (thrown as NodeJS.ErrnoException).code;
	}
}

/** For a shell. */
function quoted(path: string): string {
	return /^[\w/.-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
