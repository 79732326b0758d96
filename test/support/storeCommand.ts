// `npm run store` as a process, on a PostgreSQL of its own and folders of its own: words come in, what it printed and what
// the stores hold goes out.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../shared/clock.ts";
import { openLmdb } from "../../shared/kv/lmdb.ts";
import type { KeyValueStore } from "../../shared/kv/port.ts";
import { openPostgres } from "../../shared/kv/postgres/postgres.ts";
import { silentLogger } from "../../shared/log.ts";
import { type PostgresServer, startPostgres } from "./postgresServer.ts";
import { type Exit, type LaunchedRelay, launchRelay } from "./relayProcess.ts";

/** Where stores may lie. */
export interface StorePlace {
	readonly dataDir: string;
	readonly url: string;
}

type EngineName = "lmdb" | "postgres";
type StoreName = "relay" | "boost";

const MAIN = "shared/kv/copy/main.ts";
const END_MS = 60_000;

/** What a test file's copies go between, to be ended after it. */
export class StoreCommands {
	readonly #folder = mkdtempSync(join(tmpdir(), "leeward-move-"));
	#places = 0;
	#server: Promise<PostgresServer> | null = null;

	/** The server of this file's databases. */
	server(): Promise<PostgresServer> {
		this.#server ??= startPostgres();
		return this.#server;
	}

	/** A folder that is not there, and an empty database. */
	async newPlace(): Promise<StorePlace> {
		return { dataDir: this.newFolder(), url: await (await this.server()).newDatabase() };
	}

	/** The path of a folder that is not there. */
	newFolder(): string {
		this.#places += 1;
		return join(this.#folder, String(this.#places));
	}

	/** Ends and removes all of it. */
	async remove(): Promise<void> {
		await (await this.#server)?.stop();
		rmSync(this.#folder, { recursive: true, force: true });
	}
}

/** Asks something of a store that nobody else has open. */
export async function inStore<T>(
	engine: EngineName,
	{ dataDir, url }: StorePlace,
	store: StoreName,
	ask: (kv: KeyValueStore) => Promise<T>,
): Promise<T> {
	const kv =
		engine === "lmdb"
			? await openLmdb(join(dataDir, store))
			: await openPostgres({ url, store, verify: false }, { clock: systemClock, log: silentLogger });
	try {
		return await ask(kv);
	} finally {
		await kv.close();
	}
}

/** Starts it and waits for nothing. */
export function launchCommand({ dataDir, url }: StorePlace, ...args: readonly string[]): LaunchedRelay {
	return launchRelay({ entry: MAIN, args, env: { DATA_DIR: dataDir, DATABASE_URL: url } });
}

/** The same where no file gets longer than `kilobytes`, which is a full disk. */
export function launchLimited(
	{ dataDir, url }: StorePlace,
	kilobytes: number,
	...args: readonly string[]
): LaunchedRelay {
	const command = [process.execPath, ...process.execArgv, MAIN, ...args].map((word) => `'${word}'`);
	return launchRelay({
		// A shell whose limits are in kilobytes; what is beyond them is then told by an error alone.
		line: `exec bash -c "trap '' XFSZ; ulimit -f ${kilobytes}; exec ${command.join(" ")}"`,
		env: { DATA_DIR: dataDir, DATABASE_URL: url },
	});
}

/** Runs it to its end. */
export function runCommand(place: StorePlace, ...args: readonly string[]): Promise<Exit> {
	return launchCommand(place, ...args).ended(END_MS);
}

/** Runs it to its end, which must be a good one; answers what it printed. */
export async function runWell(place: StorePlace, ...args: readonly string[]): Promise<string> {
	const { code, stdout, stderr } = await runCommand(place, ...args);
	assert.equal(code, 0, stderr + stdout);
	return stdout;
}
