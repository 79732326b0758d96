// Opens a process's store by its settings, in a folder or in a database. Waits for a database that
// does not respond yet, and for another process to release the store. Boost instances share a
// database.

import { join } from "node:path";
import type { Clock } from "../clock.ts";
import type { Logger } from "../log.ts";
import { untilDone } from "../waiting.ts";
import { DamagedStoreError } from "./damage.ts";
import { FolderInUseError, openLmdb } from "./lmdb.ts";
import type { SharedStore } from "./port.ts";
import { openAccounts } from "./postgres/accounts.ts";
import { databaseAddress } from "./postgres/database.ts";
import {
	DatabaseDownError,
	DatabaseRefusedError,
	downError,
	isDown,
	refusedError,
} from "./postgres/errors.ts";
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
	/** Called if another process has taken over the store. This process must then exit. */
	readonly onLost: () => void;
	/**
	 * Called and awaited before this process waits for the database or for the end of another
	 * process. The reason is public.
	 */
	readonly onWait: (reason: string) => Promise<void>;
	/** Ends the wait. */
	readonly stopped: AbortSignal;
	/**
	 * The http URL at which processes that wait for the store reach this one, once it has the
	 * store. Default: none.
	 */
	readonly address?: string | undefined;
}

export type OpenStore = typeof openStore;

const BEING_SALVAGED = "the store is damaged, and another process works on it: this one waits for its end";
const IN_USE = "another process has the store: this one waits for it to end";

/** Must be called before anything connects to the database. Throws DatabaseUrlError. */
export function warnOfClearText(
	{ DATABASE_URL: url, DATABASE_VERIFY: verify }: StoreSettings,
	log: Logger,
): void {
	if (url === undefined || !databaseAddress(url, verify).isExposed) return;
	log.warn("connecting to the database in clear text (sslmode=disable): keep its network private");
}

/**
 * Opens the store of `process`, which boost shares on a database. Waits
 * without an end for a database that does not respond. Waits for a database that refuses it only if
 * it has waited for another process before. Waits while a folder's file is damaged, until it is
 * replaced. Throws DataFolderError, FolderInUseError, DatabaseUrlError, DatabaseRefusedError or
 * OtherFormatError; StoppedError if it was stopped meanwhile.
 */
export async function openStore(
	process: StoreName,
	settings: StoreSettings,
	{ clock, log, onLost, onWait, stopped, address }: OpenStoreDependencies,
): Promise<SharedStore> {
	const { DATABASE_URL: url, DATABASE_VERIFY: verify } = settings;
	if (url === undefined) return openFolder(process, settings, { clock, log, onWait, stopped });
	const { host } = databaseAddress(url, verify);
	/**
	 * The error of the caller's `onWait`, such as a port in use. No later attempt would change it.
	 */
	let ownFault: unknown;
	/**
	 * Whether it serves already while another process has the store. Then a refusal does not end
	 * it.
	 */
	let isServing = false;
	const patience = {
		signal: stopped,
		async onWait() {
			log.warn("another process has the store, waiting", { store: process });
			await onWait(IN_USE).catch((thrown: unknown) => {
				ownFault = thrown;
				throw thrown;
			});
			isServing = true;
		},
	};
	const open = async () => {
		try {
			return process === "boost"
				? await openAccounts({ url, verify, store: process }, { clock, log })
				: await openPostgres({ url, verify, store: process, address, patience }, { clock, log, onLost });
		} catch (thrown) {
			if (thrown === ownFault) throw thrown;
			throw isDown(thrown) ? downError(thrown, host) : (refusedError(thrown, host) ?? thrown);
		}
	};
	return untilDone(
		"the wait for the store",
		open,
		{
			clock,
			stopped,
			onFailure: onWait,
			reasonOf(thrown) {
				if (thrown instanceof DatabaseDownError) return thrown.message;
				if (isServing && thrown instanceof DatabaseRefusedError) return thrown.message;
				throw thrown;
			},
			tell: (failure) => log.warn("waiting for the database of DATABASE_URL", { store: process, ...failure }),
		},
		(late) => void late.close(),
	);
}

/** Waits while the file is damaged, so that /readyz tells the operator what to do. */
function openFolder(
	process: StoreName,
	{ DATA_DIR }: StoreSettings,
	{ clock, log, onWait, stopped }: Pick<OpenStoreDependencies, "clock" | "log" | "onWait" | "stopped">,
): Promise<SharedStore> {
	let isDamaged = false;
	return untilDone(
		"the wait for the store",
		() => openLmdb(join(DATA_DIR, process), log),
		{
			clock,
			stopped,
			onFailure: onWait,
			reasonOf(thrown) {
				if (thrown instanceof DamagedStoreError) {
					isDamaged = true;
					return thrown.message;
				}
				if (isDamaged && thrown instanceof FolderInUseError) return BEING_SALVAGED;
				throw thrown;
			},
			tell: (failure) => log.error("store damaged", { store: process, ...failure }),
		},
		(late) => void late.close(),
	);
}
