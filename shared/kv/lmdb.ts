// The embedded store: LMDB in a folder that is made for its owner alone and locked against a second process.

import { createHash } from "node:crypto";
import { once } from "node:events";
import { accessSync, chmodSync, constants, mkdirSync, realpathSync, unlinkSync } from "node:fs";
import { open as openFile, stat, statfs, unlink } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open } from "lmdb";
import { systemClock } from "../clock.ts";
import { GroupCommit } from "./groupCommit.ts";
import type { SharedStore } from "./port.ts";

/** As LMDB calls it. */
const DATA_FILE = "data.mdb";

/**
 * Opens (and makes, where absent) the store in `folder`. Throws FolderInUseError when another process has it.
 *
 * `overlappingSync` is off: with it a put resolves before it is flushed to disk.
 */
export async function openLmdb(folder: string): Promise<SharedStore> {
	// Signed transactions and a key lie in here: the folder is its owner's alone.
	mkdirSync(folder, { recursive: true, mode: 0o700 });
	chmodSync(folder, 0o700);
	const unlock = await lockFolder(folder);
	const db = open<Buffer, string>({
		path: folder,
		encoding: "binary",
		keyEncoding: "ordered-binary",
		overlappingSync: false,
		// The grouping is ours; with LMDB's own, a failed commit rejects promises that nobody holds.
		eventTurnBatching: false,
		commitDelay: 0,
		noSubdir: false,
	});
	const room = new DiskRoom(folder);
	const group = new GroupCommit(async (changes) => {
		await room.check(changes.reduce((sum, { value }) => sum + (value?.byteLength ?? 0), 0));
		const puts: Promise<boolean>[] = [];
		const written = db.batch(() => {
			for (const { key, value } of changes) {
				puts.push(value === null ? db.remove(key) : db.put(key, value as Buffer));
			}
		});
		// When a commit fails (a full disk) each of these rejects too, and would end the process if nobody held it.
		for (const put of puts) put.catch(() => {});
		try {
			await written;
		} catch (thrown) {
			room.failed();
			(thrown as { commitError?: Promise<unknown> } | null)?.commitError?.catch(() => {});
			throw thrown;
		}
	});
	return {
		// Its lock is the machine's, and ends with the process.
		isHeld: true,
		get: async (key) => db.get(key) ?? null,
		async *range(start, end, limit) {
			for (const { key, value } of db.getRange({ start, end, ...(limit === undefined ? {} : { limit }) })) {
				yield [key, value] as const;
			}
		},
		write: (changes) => group.write(changes),
		async close() {
			await group.idle();
			await db.close();
			await unlock();
		},
	};
}

/** DATA_DIR is of no use. */
class DataFolderError extends Error {
	readonly code = "DATA_FOLDER";
	constructor() {
		super("DATA_DIR can't be made or written: expected a folder, for example DATA_DIR=./data");
		this.name = "DataFolderError";
	}
}

/** `dataDir/process`, made where absent, its owner's alone. Throws {@link DataFolderError}. */
export function dataFolder(dataDir: string, process: string): string {
	const folder = join(dataDir, process);
	try {
		mkdirSync(folder, { recursive: true, mode: 0o700 });
		accessSync(folder, constants.W_OK);
	} catch {
		throw new DataFolderError();
	}
	return folder;
}

/** Another process has the folder. */
class FolderInUseError extends Error {
	readonly code = "FOLDER_IN_USE";
	constructor(folder: string) {
		super(`another process uses the data folder ${folder}: stop it, or set DATA_DIR to another folder`);
		this.name = "FolderInUseError";
	}
}

/**
 * Takes the lock of `folder`, which must exist, against other processes of this machine. A listening local socket is the lock: the system takes it away when
 * the process dies, however it dies, and no process id can be mistaken. Throws {@link FolderInUseError}.
 */
async function lockFolder(folder: string): Promise<() => Promise<void>> {
	const name = `leeward-${createHash("sha256").update(realpathSync(folder)).digest("hex").slice(0, 32)}`;
	// Linux has names without a file, which can't be left behind; elsewhere the file may be stale.
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

/** The disk has no room; what was to be written is not. */
class DiskFullError extends Error {
	readonly code = "DISK_FULL";
	constructor() {
		super("the disk of the data folder is full");
		this.name = "DiskFullError";
	}
}

/** Free bytes beside what is written: pages are copied before they are changed. */
const MIN_FREE_BYTES = 16 * 1024 * 1024;
/** So many times what is written must be free, too. */
const COPIES = 4;
/** For how long a look at the free space is good, in ms. */
const LOOK_MS = 100;
const TRIAL_BYTES = 64 * 1024;
const TRIAL_FILE = "trial";

/**
 * The room on the disk of one store, looked at before LMDB writes. LMDB must not see a write fail: its message of that
 * overruns the heap (mdb.c, mdb_page_flush prints two numbers that were never set into 100 bytes), and sooner or later
 * the process aborts.
 */
export class DiskRoom {
	readonly #folder: string;
	#lookedAt = Number.NEGATIVE_INFINITY;
	#hasFailed = false;

	constructor(folder: string) {
		this.#folder = folder;
	}

	/** Resolves where a write of `bytes` may be tried. Throws {@link DiskFullError}, or what the system says. */
	async check(bytes = 0): Promise<void> {
		if (this.#hasFailed) await this.#try(bytes);
		const now = systemClock.monotonic();
		if (now - this.#lookedAt < LOOK_MS && bytes * COPIES < MIN_FREE_BYTES / 2) return;
		const { bavail, bsize, blocks } = await statfs(this.#folder);
		// Some file systems tell nothing of their size.
		if (blocks > 0 && bavail * bsize < MIN_FREE_BYTES + bytes * COPIES) throw new DiskFullError();
		this.#lookedAt = now;
	}

	/** A write failed: the next one is tried with a plain file first. */
	failed(): void {
		this.#hasFailed = true;
		this.#lookedAt = Number.NEGATIVE_INFINITY;
	}

	/** As far as the store's file goes: a limit of a file's size is a full disk, too. */
	async #try(bytes: number): Promise<void> {
		const path = join(this.#folder, TRIAL_FILE);
		const { size } = await stat(join(this.#folder, DATA_FILE));
		const trial = await openFile(path, "w", 0o600);
		try {
			const length = TRIAL_BYTES + Math.min(bytes, MIN_FREE_BYTES);
			const { bytesWritten } = await trial.write(Buffer.alloc(length), 0, length, size);
			if (bytesWritten < length) throw new DiskFullError();
			await trial.sync();
			this.#hasFailed = false;
		} finally {
			await trial.close();
			await unlink(path);
		}
	}
}
