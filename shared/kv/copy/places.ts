// Where a store of relay or boost lies in each engine: settings come in, an open store goes out, or null where there is
// none to be copied. It knows nothing of what is in one.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import { oneOf, row, type Settings, type SettingTable, text, url } from "../../config.ts";
import { silentLogger } from "../../log.ts";
import { dataFolder } from "../dataFolder.ts";
import { openLmdb } from "../lmdb.ts";
import { openPostgres } from "../postgres/postgres.ts";
import type { Place } from "./copyStore.ts";
import type { EngineName, StoreName } from "./marks.ts";

/** What is needed of PostgreSQL. */
export const DATABASE_SETTINGS = {
	DATABASE_URL: {
		...row(
			"PostgreSQL",
			"a postgres or postgresql URL",
			"postgres://user:password@127.0.0.1:5432/leeward",
			url("postgres:", "postgresql:"),
		),
		secret: true,
	},
	DATABASE_VERIFY: row(
		"whether the database's certificate must be valid, whatever sslmode says",
		"true or false",
		"true",
		oneOf(["true", "false"]),
		"false",
	),
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
	const options = { url: DATABASE_URL, verify: DATABASE_VERIFY === "true", store };
	return { engine, kv: await openPostgres(options, { clock, log: silentLogger }) };
}
