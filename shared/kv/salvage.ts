// The command that keeps the readable entries of a damaged LMDB file: `--salvage`.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { pause, systemClock } from "../clock.ts";
import { salvage } from "./damage.ts";
import { DATA_FILE } from "./dataFolder.ts";
import { markFormat } from "./format.ts";
import { FolderInUseError, lockFolder, openLmdb } from "./lmdb.ts";
import { type Change, type KeyValueStore, prefixRange } from "./port.ts";

/**
 * An entry whose key begins with `first` may only be used together with the entry whose key begins
 * with `second` instead.
 */
export interface EntryPair {
	readonly first: string;
	readonly second: string;
	/** The prefix for an entry that has lost the other one. */
	readonly aside: string;
}

/**
 * Number of further attempts for a lock that another process has, and the pause before each, in ms.
 */
const [LOCK_TRIES, LOCK_PAUSE_MS] = [50, 100];
/** Entries in one commit. */
const BATCH = 1_000;

/**
 * Salvages the store in `folder`, and returns a report in one line. Throws DataFolderError or
 * FolderInUseError.
 */
export async function salvageStore(folder: string, pair: EntryPair | null, now: Date): Promise<string> {
	if (!existsSync(join(folder, DATA_FILE))) return `there is no store in ${folder}: nothing is changed`;
	const unlock = await lock(folder);
	let aside = 0;
	// A process that waits for the lock must not find these entries.
	const prepare = async (copy: string): Promise<void> => {
		const kv = await openLmdb(copy);
		try {
			await markFormat(kv);
			if (pair !== null) aside = await setAside(kv, pair);
		} finally {
			await kv.close();
		}
	};
	const { damaged, read, of } = await salvage(folder, now, prepare).finally(unlock);
	if (damaged === null) return `the store in ${folder} is whole: ${read} entries, nothing is changed`;
	const lost = of === null ? "an unknown number is lost" : `${Math.max(0, of - read)} are lost`;
	return `${read} entries are kept, ${lost}, and ${aside} are set aside, since their outcomes can't be read; the damaged file is ${damaged}`;
}

/**
 * Retries, since a process that waits for the salvage locks the folder while it looks at the file.
 */
async function lock(folder: string): ReturnType<typeof lockFolder> {
	for (let tries = LOCK_TRIES; ; tries--) {
		try {
			return await lockFolder(folder);
		} catch (thrown) {
			if (tries === 0 || !(thrown instanceof FolderInUseError)) throw thrown;
			await pause(systemClock, LOCK_PAUSE_MS);
		}
	}
}

/** Sets transactions aside if their state is lost, since their users may have cancelled them. */
async function setAside(kv: KeyValueStore, { first, second, aside }: EntryPair): Promise<number> {
	let count = 0;
	let changes: Change[] = [];
	for await (const [key, value] of kv.range(...prefixRange(first))) {
		if ((await kv.get(second + key.slice(first.length))) !== null) continue;
		count += 1;
		changes.push({ key, value: null }, { key: aside + key, value: Buffer.from(value) });
		if (changes.length < BATCH) continue;
		await kv.write(changes);
		changes = [];
	}
	await kv.write(changes);
	return count;
}
