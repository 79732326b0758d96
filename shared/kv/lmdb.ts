// The embedded store: LMDB in a folder that only its owner can read. The folder is locked against a
// second process.

import { createHash } from "node:crypto";
import { once } from "node:events";
import { accessSync, constants, realpathSync, unlinkSync } from "node:fs";
import { open as openFile, stat, statfs, unlink } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open, type RootDatabase } from "lmdb";
import { systemClock } from "../clock.ts";
import { type Logger, safeError, silentLogger } from "../log.ts";
import { systemCode } from "../outgoing/advice.ts";
import { assertWhole } from "./damage.ts";
import {
	allocateFiles,
	closeFiles,
	DATA_FILE,
	DataFolderError,
	folderError,
	LMDB_FORMAT,
	MIN_FREE,
	MIN_FREE_BYTES,
	makeFolder,
	type Volume,
	volumeIn,
	volumeText,
} from "./dataFolder.ts";
import { GroupCommit } from "./groupCommit.ts";
import type { Change, SharedStore } from "./port.ts";

/**
 * Opens the store in `folder`, and creates it if needed. Throws DataFolderError, DamagedStoreError,
 * or FolderInUseError if another process uses it.
 *
 * `overlappingSync` is off because with it a put resolves before it is flushed to disk.
 */
export async function openLmdb(folder: string, log: Logger = silentLogger): Promise<SharedStore> {
	makeFolder(folder, log);
	const unlock = await lockFolder(folder);
	try {
		await assertWhole(folder);
	} catch (thrown) {
		await unlock();
		throw thrown;
	}
	const opened = openIn(folder);
	if (opened instanceof DataFolderError) {
		await unlock();
		throw opened;
	}
	let db = opened;
	closeFiles(folder, log);
	const usedBytes = () => {
		const { lastPageNumber, pageSize } = db.getStats() as { lastPageNumber: number; pageSize: number };
		return (lastPageNumber + 1) * pageSize;
	};
	const room = new DiskRoom(folder, usedBytes);
	let trouble: string | null = null;
	/**
	 * Whether LMDB has failed in a write. It may be unusable then, and the next write but one may
	 * never end.
	 */
	let hasFailed = false;
	const openAnew = async (): Promise<void> => {
		await db.close();
		const next = openIn(folder);
		if (next instanceof DataFolderError) throw next;
		db = next;
		hasFailed = false;
	};
	const commit = async (changes: readonly Change[]): Promise<void> => {
		const bytes = changes.reduce((sum, { value }) => sum + (value?.byteLength ?? 0), 0);
		await room.check(bytes);
		if (hasFailed) await openAnew();
		await room.reserve(COPIES * bytes + CHANGE_BYTES * changes.length);
		const puts: Promise<boolean>[] = [];
		const written = db.batch(() => {
			for (const { key, value } of changes) {
				puts.push(value === null ? db.remove(key) : db.put(key, value as Buffer));
			}
		});
		// If the commit fails, these reject too; an unhandled rejection would end the process.
		for (const put of puts) put.catch(() => {});
		try {
			await written;
		} catch (thrown) {
			room.failed();
			hasFailed = true;
			(thrown as { commitError?: Promise<unknown> } | null)?.commitError?.catch(() => {});
			throw thrown;
		}
	};
	const group = new GroupCommit(async (writes) => {
		try {
			await commit(writes.flatMap(({ changes }) => changes));
		} catch (thrown) {
			const { message: reason } = thrown instanceof DiskFullError ? thrown : new WriteError(thrown);
			if (trouble === null) {
				log.error("DATA_DIR can't be written", { reason: `${folder}: ${reason}`, fault: safeError(thrown) });
			}
			trouble = reason;
			throw thrown;
		}
		if (trouble !== null) log.info("DATA_DIR can be written again");
		trouble = null;
		return undefined;
	});
	return {
		// The folder's lock can't be lost while the process lives.
		isHeld: true,
		confirm: async () => {},
		get trouble() {
			return trouble;
		},
		term: null,
		bytes: async () => usedBytes(),
		get: async (key) => db.get(key) ?? null,
		async *range(start, end, limit) {
			for (const { key, value } of db.getRange({ start, end, ...(limit === undefined ? {} : { limit }) })) {
				yield [key, value] as const;
			}
		},
		write: (changes) => group.write({ changes }),
		async close() {
			await group.idle();
			await db.close();
			await unlock();
		},
	};
}

function openIn(folder: string): RootDatabase<Buffer, string> | DataFolderError {
	try {
		allocateFiles(folder);
		return open<Buffer, string>({
			path: folder,
			...LMDB_FORMAT,
			overlappingSync: false,
			// GroupCommit does the grouping. With LMDB's own, a failed commit causes unhandled
			// rejections.
			eventTurnBatching: false,
			commitDelay: 0,
		});
	} catch (thrown) {
		return thrown instanceof DataFolderError ? thrown : folderError(folder, thrown);
	}
}

export class FolderInUseError extends Error {
	readonly code = "FOLDER_IN_USE";
	constructor(folder: string) {
		super(`another process uses the data folder ${folder}: stop it, or set DATA_DIR to another folder`);
		this.name = "FolderInUseError";
	}
}

/**
 * Locks `folder`, which must exist, against other processes of this machine. The lock is a
 * listening local socket. The system removes it however the process dies, and a reused process id
 * can't be mistaken for it. Throws {@link FolderInUseError}.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
	const name = `leeward-${createHash("sha256").update(realpathSync(folder)).digest("hex").slice(0, 32)}`;
	// On Linux the socket has no file. Elsewhere a file may be left behind.
	const address = process.platform === "linux" ? `\0${name}` : join(tmpdir(), `${name}.sock`);
	const server = createServer((socket) => socket.destroy());
	if (!(await listens(server, address))) {
		if (process.platform === "linux" || (await answers(address))) throw new FolderInUseError(folder);
		unlinkSync(address);
		if (!(await listens(server, address))) throw new FolderInUseError(folder);
	}
	server.unref();
	return () => new Promise((resolve) => server.close(() => resolve()));
}

async function listens(server: Server, address: string): Promise<boolean> {
	try {
		server.listen(address);
		await once(server, "listening");
		return true;
	} catch (thrown) {
		if ((thrown as NodeJS.ErrnoException).code === "EADDRINUSE") return false;
		throw thrown;
	}
}

async function answers(address: string): Promise<boolean> {
	const socket = connect(address);
	try {
		await once(socket, "connect");
		return true;
	} catch {
		return false;
	} finally {
		socket.destroy();
	}
}

/** Its message, which is public, does not name the folder. */
class DiskFullError extends Error {
	readonly code = "DISK_FULL";
	constructor(volume: Volume) {
		super(
			`the disk of DATA_DIR is full (${volumeText(volume)}): expected ${MIN_FREE} of free space besides what is written`,
		);
		this.name = "DiskFullError";
	}
}

/** Any other failed write. */
class WriteError extends Error {
	constructor(thrown: unknown) {
		super(`DATA_DIR can't be written (${systemCode(thrown) ?? "no reason is known"})`);
	}
}

/** This multiple of a write must be free beside {@link MIN_FREE_BYTES}. */
const COPIES = 4;
/** Maximum bytes of pages that LMDB copies for one change, not counting the value. */
const CHANGE_BYTES = 8_192;
/** Minimum bytes that a longer file has beyond those that a write needs. */
const RESERVE_BYTES = 1024 * 1024;
const PAGE_BYTES = 4_096;
/**
 * Longer writes would get larger pages of the system's cache. All of such a page becomes memory of
 * this process once LMDB reads a byte of it.
 */
const ZEROS = Buffer.alloc(64 * 1024);
/** How long a check of the free space is valid. */
const CHECK_MS = 100;
const TRIAL_BYTES = 64 * 1024;
const TRIAL_FILE = "trial";

/**
 * Checks the free disk space before LMDB writes. Also allocates the blocks of the store's file that
 * LMDB is about to write, since another program may use up the space meanwhile. LMDB must not see a
 * write fail. Its error message then overruns the heap (mdb.c, mdb_page_flush prints two
 * uninitialised numbers into 100 bytes), and the process aborts sooner or later.
 */
export class DiskRoom {
	readonly #folder: string;
	#checkedAt = Number.NEGATIVE_INFINITY;
	/** Maximum disk space that writes have used since the last check. */
	#taken = 0;
	#hasFailed = false;
	readonly #usedBytes: () => number;
	/** Bytes of the file beyond those that LMDB may have used. */
	#spare = 0;

	/** `usedBytes`: the used length of LMDB's file. */
	constructor(folder: string, usedBytes: () => number) {
		this.#folder = folder;
		this.#usedBytes = usedBytes;
	}

	/**
	 * Resolves when the file has the blocks for a write of up to `bytes`. No other write may be
	 * running. Throws {@link DiskFullError} or the system's error.
	 */
	async reserve(bytes: number): Promise<void> {
		const path = join(this.#folder, DATA_FILE);
		// If the file system has become read-only, this fails before LMDB does.
		accessSync(path, constants.W_OK);
		this.#spare -= bytes;
		if (this.#spare >= 0) return;
		const needed = this.#usedBytes() + bytes;
		let { size } = await stat(path);
		if (size < needed) size = await this.#lengthen(path, size, needed);
		this.#spare = size - needed;
	}

	/**
	 * Makes the file `needed` bytes long, and somewhat longer if there is space. Returns its
	 * length.
	 */
	async #lengthen(path: string, size: number, needed: number): Promise<number> {
		const wanted = Math.ceil((needed + RESERVE_BYTES) / PAGE_BYTES) * PAGE_BYTES;
		let end = size;
		const file = await openFile(path, "r+");
		try {
			while (end < wanted) {
				const length = Math.min(ZEROS.length, wanted - end);
				end += (await file.write(ZEROS, 0, length, end)).bytesWritten;
			}
		} catch (thrown) {
			const isFull = (thrown as { code?: unknown }).code === "ENOSPC";
			if (end < needed) throw isFull ? new DiskFullError(volumeIn(await statfs(this.#folder))) : thrown;
		} finally {
			// On file systems that allocate blocks late, a full disk only shows here.
			await file.datasync().finally(() => file.close());
		}
		return end;
	}

	/**
	 * Resolves if a write of `bytes` may be tried. Throws {@link DiskFullError} or the system's
	 * error.
	 */
	async check(bytes = 0): Promise<void> {
		if (this.#hasFailed) await this.#try(bytes);
		const now = systemClock.monotonic();
		this.#taken += bytes * COPIES;
		if (now - this.#checkedAt < CHECK_MS && this.#taken < MIN_FREE_BYTES / 2) return;
		const volume = volumeIn(await statfs(this.#folder));
		if (volume.free < MIN_FREE_BYTES + bytes * COPIES) throw new DiskFullError(volume);
		this.#checkedAt = now;
		this.#taken = 0;
	}

	/** Must be called after a failed write. The next write is then first tried with a plain file. */
	failed(): void {
		this.#hasFailed = true;
		this.#checkedAt = Number.NEGATIVE_INFINITY;
	}

	/** Writes at the offset of the store's end, which also detects a limit on file sizes. */
	async #try(bytes: number): Promise<void> {
		const path = join(this.#folder, TRIAL_FILE);
		const { size } = await stat(join(this.#folder, DATA_FILE));
		const trial = await openFile(path, "w", 0o600);
		try {
			const length = TRIAL_BYTES + Math.min(bytes, MIN_FREE_BYTES);
			const { bytesWritten } = await trial.write(Buffer.alloc(length), 0, length, size);
			if (bytesWritten < length) throw new DiskFullError(volumeIn(await statfs(this.#folder)));
			await trial.sync();
			this.#hasFailed = false;
		} finally {
			await trial.close();
			await unlink(path);
		}
	}
}
