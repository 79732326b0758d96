// The embedded engine: LMDB in one folder. What comes in are changes, what goes out is the promise that they are on
// disk. A second process on the same folder is refused.

import { chmodSync, mkdirSync } from "node:fs";
import { open } from "lmdb";
import type { KeyValueStore } from "./port.ts";
import { lockFolder } from "./processLock.ts";

const MAX_KEY_BYTES = 500;

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
		// Commits begin at once and take what has come meanwhile; with it, a failed one rejects promises of its own.
		eventTurnBatching: false,
		commitDelay: 0,
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
			// Checked first: what is put before a key that LMDB refuses would stay.
			const bad = changes.find(({ key }) => key === "" || Buffer.byteLength(key) > MAX_KEY_BYTES);
			if (bad !== undefined) return Promise.reject(new RangeError("a key has 1 to 500 bytes"));
			const puts: Promise<boolean>[] = [];
			const written = db.batch(() => {
				for (const { key, value } of changes) {
					puts.push(value === null ? db.remove(key) : db.put(key, value as Buffer));
				}
			});
			// When a commit fails (a full disk) each of these rejects too, and would end the process if nobody held it.
			for (const put of puts) put.catch(() => {});
			last = written.catch((thrown: { commitError?: Promise<unknown> }) =>
				thrown?.commitError?.catch(() => {}),
			);
			return written.then(() => {});
		},
		async close() {
			await last;
			await db.close();
			await unlock();
		},
	};
}
