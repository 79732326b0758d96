// Where a store of relay or boost lies in each engine: settings come in, an open store goes out, or null where there is
// none to be copied. It knows nothing of what is in one.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import { row, type Settings, type SettingTable, text } from "../../config.ts";
import { silentLogger } from "../../log.ts";
import { databaseUrl, databaseUrlRow, SERVER_ROWS } from "../../serverSettings.ts";
import { dataFolder } from "../dataFolder.ts";
import { openLmdb } from "../lmdb.ts";
import { openPostgres } from "../postgres/postgres.ts";
import type { Place } from "./copyStore.ts";
import type { EngineName, StoreName } from "./marks.ts";

const { DATABASE_VERIFY } = SERVER_ROWS;
const { optional: _, ...needed } = databaseUrlRow("the embedded stores");

/** What is needed of PostgreSQL. */
export const DATABASE_SETTINGS = {
	DATABASE_URL: { ...needed, parse: databaseUrl },
	DATABASE_VERIFY,
} satisfies SettingTable;

/** What is needed of both engines. */
export const COPY_SETTINGS = {
	DATA_DIR: row(
		"folder of the embedded stores (in it: relay/ and boost/)",
		"a folder",
		"./data",
		text,
		"./data",
	),
	...DATABASE_SETTINGS,
} satisfies SettingTable;

export type CopySettings = Settings<typeof COPY_SETTINGS>;

/** Opens `store` where it is to be copied from; null where its folder is not there, which is then not made. */
export async function openSource(
	engine: EngineName,
	store: StoreName,
	settings: CopySettings,
	clock: Clock,
): Promise<Place | null> {
	if (engine === "lmdb" && !existsSync(join(settings.DATA_DIR, store))) return null;
	return openPlace(engine, store, settings, clock);
}

/** Opens `store`, and takes it for this process. Throws FolderInUseError, StoreInUseError, or what keeps it from that. */
export async function openPlace(
	engine: EngineName,
	store: StoreName,
	settings: CopySettings,
	clock: Clock,
): Promise<Place> {
	if (engine === "lmdb") return { engine, kv: await openLmdb(dataFolder(settings.DATA_DIR, store)) };
	const { DATABASE_URL, DATABASE_VERIFY } = settings;
	const options = { url: DATABASE_URL, verify: DATABASE_VERIFY, store };
	return { engine, kv: await openPostgres(options, { clock, log: silentLogger }) };
}
