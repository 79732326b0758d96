// Opens the table of rows as it was left in a key-value store.

import type { Clock } from "../../shared/clock.ts";
import type { KeyValueStore } from "../../shared/kv/port.ts";
import type { Logger } from "../../shared/log.ts";
import type { Rows } from "../domain/ports.ts";
import { type BindTo, identify } from "../journal/chain.ts";
import { DiskJournal } from "../journal/diskJournal.ts";
import { type RowLimits, RowTable } from "./rows.ts";

export interface OpenRowsOptions extends RowLimits {
	/** Bytes of transactions kept in memory beside the disk (64 MiB). */
	readonly rawCacheBytes?: number;
}

export interface OpenRowsDependencies {
	readonly kv: KeyValueStore;
	readonly clock: Clock;
	readonly log: Logger;
	/** Called for each write that failed. */
	readonly onFault?: () => void;
}

/** The rows with what they lie on. */
export interface OpenedRows {
	readonly rows: Rows;
	readonly bindTo: BindTo;
	/** Tries once more what could not be written and waits for the disk. The store is its opener's to close. */
	close(): Promise<void>;
}

/** Reads everything, then answers. Throws JournalFormatError, or the store's fault. */
export async function openRows(
	{ rawCacheBytes, ...limits }: OpenRowsOptions,
	{ kv, clock, log, onFault }: OpenRowsDependencies,
): Promise<OpenedRows> {
	const bindTo = await identify(kv);
	const journal = new DiskJournal({ cacheBytes: rawCacheBytes }, { kv, clock, log, onFault });
	const rows = new RowTable(limits, await journal.read(), {
		...{ journal, clock },
		onEnded: ({ hash, path, receivedAt }, stage) =>
			log.info("transaction ended", { hash, path, stage, ms: clock.now() - receivedAt }),
	});
	return {
		rows,
		bindTo,
		async close() {
			rows.close();
			await journal.close();
		},
	};
}
