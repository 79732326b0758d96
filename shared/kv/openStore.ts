// Opens a process's store by its settings, in a folder or in a database. Waits for a database that does not answer yet, and for
// another process to release the store.

import { join } from "node:path";
import { type Clock, pause } from "../clock.ts";
import { type Logger, safeError } from "../log.ts";
import { openLmdb } from "./lmdb.ts";
import type { SharedStore } from "./port.ts";
import { databaseAddress } from "./postgres/database.ts";
import { downError, isDown, refusedError } from "./postgres/errors.ts";
import { openPostgres } from "./postgres/postgres.ts";

/** The name of the process, which names its folder or its rows. */
type StoreName = "relay" | "boost";

/** PostgreSQL if a URL is set, else a folder. */
interface StoreSettings {
	readonly DATA_DIR: string;
	readonly DATABASE_URL: string | undefined;
	readonly DATABASE_VERIFY: boolean;
}

export interface OpenStoreDependencies {
	readonly clock: Clock;
	readonly log: Logger;
	/** Called if another process has taken over the store; this one must then exit. */
	readonly onLost: () => void;
	/** Called and awaited if another process has the store, before this one waits for its end. */
	readonly onWait: () => Promise<void>;
	/** Ends the wait. */
	readonly stopped: AbortSignal;
}

export type OpenStore = typeof openStore;

/** How long a start waits for a database that does not answer, since hosts start both at the same time. */
const START_MS = 30_000;
const RETRY_MS = 500;

/**
 * Opens the store of `process`. Throws DataFolderError, FolderInUseError, DatabaseUrlError, DatabaseDownError,
 * DatabaseRefusedError or LaterVersionError; StoreInUseError if it was stopped meanwhile.
 */
export async function openStore(
	process: StoreName,
	settings: StoreSettings,
	{ clock, log, onLost, onWait, stopped }: OpenStoreDependencies,
): Promise<SharedStore> {
	const { DATABASE_URL: url, DATABASE_VERIFY: verify } = settings;
	if (url === undefined) return openLmdb(join(settings.DATA_DIR, process), log);
	if (databaseAddress(url, verify).isExposed) {
		log.warn("the database is spoken to in clear text, as sslmode=disable asks: keep its network private");
	}
	let until = clock.monotonic() + START_MS;
	const patience = {
		signal: stopped,
		onWait() {
			// Waits without limit from now on, even if the database fails meanwhile.
			until = Number.POSITIVE_INFINITY;
			log.warn("another process has the store: waiting for its end", { store: process });
			return onWait();
		},
	};
	for (;;) {
		try {
			return await openPostgres({ url, verify, store: process, patience }, { clock, log, onLost });
		} catch (thrown) {
			if (!isDown(thrown)) throw refusedError(thrown) ?? thrown;
			if (stopped.aborted || clock.monotonic() > until) throw downError(thrown);
			log.warn("the database does not answer yet", { fault: safeError(thrown) });
			await pause(clock, RETRY_MS, stopped);
		}
	}
}
