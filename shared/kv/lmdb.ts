// The embedded engine: LMDB in one folder. What comes in are changes, what goes out is the promise that they are on
// disk. A second process on the same folder is refused.

import { chmodSync, mkdirSync } from "node:fs";
import { open } from "lmdb";
import type { KeyValueStore } from "./port.ts";
import { lockFolder } from "./processLock.ts";

/**
 * Opens (and makes, where absent) the store in `folder`. Throws FolderInUseError when another process has it.
 *
 * `overlappingSync` is off: with it a put resolves before it is flushed to disk. Writes of one turn of the event
 * loop, and those that come while a commit is under way, share the next commit.
 */
export async function openLmdb(folder: string): Promise<KeyValueStore> {
	// Signed transactions and a key lie in here: the folder is its owner's alone.
	mkdirSync(folder, { recursive: true, mode: 0o700 });
	chmodSync(folder, 0o700);
	const unlock = await lockFolder(folder);
	const db = open<Buffer, string>({
		path: folder,
		encoding: "binary",
		keyEncoding: "ordered-binary",
		overlappingSync: false,
		noSubdir: false,
	});
	let last: Promise<unknown> = Promise.resolve();
	return {
		get: async (key) => db.get(key) ?? null,
		async *range(start, end, limit) {
			for (const { key, value } of db.getRange({ start, end, ...(limit === undefined ? {} : { limit }) })) {
				yield [key, value] as const;
			}
		},
		write(changes) {
			if (changes.length === 0) return Promise.resolve();
			const written = db.batch(() => {
				for (const { key, value } of changes) {
					if (value === null) void db.remove(key);
					else void db.put(key, value as Buffer);
				}
			});
			last = written.catch(() => {});
			return written.then(() => {});
		},
		async close() {
			await last;
			await db.close();
			await unlock();
		},
	};
}
