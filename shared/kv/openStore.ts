// A process's store, by its settings: the folder or the database comes in, the store goes out once this process has it. It
// waits for a database that does not answer yet, and for another process to let go of the store.

import { type Clock, pause } from "../clock.ts";
import { type Logger, safeError } from "../log.ts";
import { refuseIfMarked, type StoreName } from "./copy/marks.ts";
import { dataFolder } from "./dataFolder.ts";
import { openLmdb } from "./lmdb.ts";
import type { SharedStore } from "./port.ts";
import { DatabaseDownError, refusedError } from "./postgres/errors.ts";
import { openPostgres } from "./postgres/postgres.ts";

/** Where it lies: in PostgreSQL where there is a URL, else in a folder. */
export interface StoreSettings {
	readonly DATA_DIR: string;
	readonly DATABASE_URL: string | undefined;
	readonly DATABASE_VERIFY: boolean;
}

export interface OpenStoreDependencies {
	readonly clock: Clock;
	readonly log: Logger;
	/** Another process has taken the store over: this one must end. */
	readonly onLost: () => void;
	/** Called, and waited for, where another process has the store and this one waits for its end. */
	readonly onWait: () => Promise<void>;
	/** Ends the wait. */
	readonly stopped: AbortSignal;
}

/** How a process's store is opened: see {@link openStore}. */
export type OpenStore = typeof openStore;

/** How long a start waits for a database that does not answer, in ms: hosts start both at the same time. */
const START_MS = 30_000;
const RETRY_MS = 500;

/**
 * Opens the store of `process`. Throws DataFolderError, FolderInUseError, DatabaseUrlError, DatabaseDownError,
 * DatabaseRefusedError or LaterVersionError; StoreMovedError or StoreHalfCopiedError where it goes on elsewhere, or is not
 * whole; StoreInUseError where it was stopped meanwhile.
 */
export async function openStore(
	process: StoreName,
	settings: StoreSettings,
	dependencies: OpenStoreDependencies,
): Promise<SharedStore> {
	const url = settings.DATABASE_URL;
	const kv =
		url === undefined
			? await openLmdb(dataFolder(settings.DATA_DIR, process))
			: await openShared(process, { url, verify: settings.DATABASE_VERIFY }, dependencies);
	try {
		await refuseIfMarked(kv, process);
		return kv;
	} catch (thrown) {
		await kv.close();
		throw thrown;
	}
}

async function openShared(
	process: StoreName,
	{ url, verify }: { readonly url: string; readonly verify: boolean },
	{ clock, log, onLost, onWait, stopped }: OpenStoreDependencies,
): Promise<SharedStore> {
	const patience = {
		signal: stopped,
		onWait() {
			log.warn("another process has the store: waiting for its end", { store: process });
			return onWait();
		},
	};
	const until = clock.monotonic() + START_MS;
	for (;;) {
		try {
			return await openPostgres({ url, verify, store: process, patience }, { clock, log, onLost });
		} catch (thrown) {
			const isOut = thrown instanceof DatabaseDownError;
			if (!isOut || stopped.aborted || clock.monotonic() > until) throw refusedError(thrown) ?? thrown;
			log.warn("the database does not answer yet", { fault: safeError(thrown) });
			await pause(clock, RETRY_MS, stopped);
		}
	}
}
