// The embedded engine: LMDB in one folder. What comes in are changes, what goes out is the promise that they are on
// disk. A second process on the same folder is refused.

import { chmodSync, mkdirSync } from "node:fs";
import { open } from "lmdb";
import { systemClock } from "../clock.ts";
import { DiskRoom } from "./diskRoom.ts";
import { GroupCommit } from "./groupCommit.ts";
import type { SharedStore } from "./port.ts";
import { lockFolder } from "./processLock.ts";

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
	const room = new DiskRoom(folder, DATA_FILE, systemClock);
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
			await group.settled();
			await db.close();
			await unlock();
		},
	};
}
