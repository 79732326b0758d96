// Stores for tests: each engine alone, for contract tests, and both engines at once with each read
// compared, for nightly runs.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import { type Clock, systemClock } from "../../shared/clock.ts";
import { openLmdb } from "../../shared/kv/lmdb.ts";
import { openStore } from "../../shared/kv/openStore.ts";
import type { Change, KeyValueStore, SharedStore } from "../../shared/kv/port.ts";
import { openPostgres } from "../../shared/kv/postgres/postgres.ts";
import { silentLogger } from "../../shared/log.ts";
import { databaseOf, isOnPostgres, newDatabase } from "./engine.ts";

/** LMDB or PostgreSQL. */
export interface StoreEngine {
	readonly name: "lmdb" | "postgres";
	/** A new empty place for a store: a folder, or a database. */
	newPlace(): Promise<string>;
	open(place: string): Promise<KeyValueStore>;
	/** Module code that defines `open` as above, and may use `systemClock` and `silentLogger`. */
	readonly opener: string;
	/** Code and message of the error when a second process opens the store. */
	readonly inUse: { readonly code: string; readonly message: RegExp };
}

/** A process that has a store open. */
interface StoreProcess {
	readonly child: ChildProcess;
	/** The next line of its output. */
	line(): Promise<string>;
	kill(): Promise<void>;
}

/** The engines of a test file; removes afterwards what they have made. */
export class StorePlaces {
	readonly #folders: string[] = [];
	readonly #children: ChildProcess[] = [];

	/** Every engine. */
	readonly engines: readonly StoreEngine[] = [
		{
			name: "lmdb",
			newPlace: async () => this.#newFolder(),
			open: openLmdb,
			opener: `import { openLmdb as open } from ${at("../../shared/kv/lmdb.ts")};`,
			inUse: {
				code: "FOLDER_IN_USE",
				message: /another process uses the data folder .*: stop it, or set DATA_DIR/,
			},
		},
		{
			name: "postgres",
			newPlace: newDatabase,
			open: (url) =>
				openPostgres({ url, store: "relay", verify: false }, { clock: systemClock, log: silentLogger }),
			opener: `
				import { openPostgres } from ${at("../../shared/kv/postgres/postgres.ts")};
				const open = (url) => openPostgres({ url, store: "relay", verify: false }, { clock: systemClock, log: silentLogger });`,
			inUse: {
				code: "STORE_IN_USE",
				message: /another process uses the relay's store .*: stop it, or set another DATABASE_URL/,
			},
		},
	];

	/**
	 * Runs `code`, which may use `open` and `say`, in another process; `wrap` is a command that runs
	 * it.
	 */
	another(engine: StoreEngine, code: string, wrap: readonly string[] = []): StoreProcess {
		const whole = `${engine.opener}
			import { systemClock } from ${at("../../shared/clock.ts")};
			import { silentLogger } from ${at("../../shared/log.ts")};
			const say = (line) => process.stdout.write(line + "\\n");
			${code}`;
		const node = [process.execPath, ...process.execArgv, "--input-type=module", "--eval", whole];
		const [command = "", ...args] = [...wrap, ...node];
		const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
		this.#children.push(child);
		const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
		return {
			child,
			line: async () => (await lines.next()).value ?? "it ended",
			async kill() {
				const gone = once(child, "exit");
				child.kill("SIGKILL");
				await gone;
			},
		};
	}

	/** Stops and removes everything but databases. */
	remove(): void {
		for (const child of this.#children) child.kill("SIGKILL");
		for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true });
	}

	#newFolder(): string {
		const folder = mkdtempSync(join(tmpdir(), "leeward-kv-"));
		this.#folders.push(folder);
		return folder;
	}
}

function at(path: string): string {
	return JSON.stringify(new URL(path, import.meta.url).href);
}

type Entry = readonly [string, Buffer];

/**
 * A clock for the database that ignores the test's clock and makes deadlines ten times as long: a
 * disk may stall for seconds on a busy machine, and other tests cover what a relay does then.
 */
const BEGUN = systemClock.now();
const PATIENT_CLOCK: Clock = {
	// As slow as the other one, since a lease counts both.
	now: () => BEGUN + (systemClock.now() - BEGUN) / 10,
	monotonic: () => systemClock.monotonic() / 10,
	after: (ms, fn) => systemClock.after(ms * 10, fn),
};

/**
 * {@link openStore} of relays and boosts in a test's own process. With TEST_STORES=postgres it
 * opens both engines, with a schema for each DATA_DIR, and PostgreSQL alone if there is a
 * DATABASE_URL.
 */
export const openTestStore: typeof openStore = async (process, settings, dependencies) => {
	if (!isOnPostgres || settings.DATABASE_URL !== undefined) return openStore(process, settings, dependencies);
	const lmdb = await openStore(process, settings, dependencies);
	const patient = { ...dependencies, clock: PATIENT_CLOCK };
	try {
		const DATABASE_URL = await databaseOf(settings.DATA_DIR);
		return new BothEngines(lmdb, await openStore(process, { ...settings, DATABASE_URL }, patient), endRun);
	} catch (thrown) {
		await lmdb.close();
		throw thrown;
	}
};

/** Throws in no caller's stack, so that nobody can catch the error. */
function endRun(fault: Error): void {
	setImmediate(() => {
		throw fault;
	});
}

/**
 * A store that writes to both engines and compares what it reads; reports to `onDifference` if they
 * differ.
 */
export class BothEngines implements SharedStore {
	readonly #lmdb: SharedStore;
	readonly #postgres: SharedStore;
	readonly #onDifference: (fault: Error) => void;
	readonly #writing = new Set<Promise<unknown>>();
	#writes = 0;
	/** As of LMDB: no other process can reach both. */
	readonly term = null;

	constructor(lmdb: SharedStore, postgres: SharedStore, onDifference: (fault: Error) => void) {
		this.#lmdb = lmdb;
		this.#postgres = postgres;
		this.#onDifference = onDifference;
	}

	get isHeld(): boolean {
		return this.#postgres.isHeld;
	}

	confirm(): Promise<void> {
		return this.#postgres.confirm();
	}

	get trouble(): string | null {
		return this.#lmdb.trouble ?? this.#postgres.trouble;
	}

	bytes(): Promise<number> {
		return this.#postgres.bytes();
	}

	get(key: string): Promise<Buffer | null> {
		return this.#same(key, async (kv) => {
			const value = await kv.get(key);
			// Copied, since the buffer may be the engine's own memory.
			return value === null ? null : Buffer.from(value);
		});
	}

	async *range(start: string, end: string, limit?: number): AsyncGenerator<Entry> {
		yield* await this.#same(`${start} to ${end}`, async (kv) => {
			const entries: Entry[] = [];
			for await (const [key, value] of kv.range(start, end, limit)) entries.push([key, Buffer.from(value)]);
			return entries;
		});
	}

	async write(changes: readonly Change[]): Promise<void> {
		this.#writes += 1;
		const both = Promise.all([this.#lmdb.write(changes), this.#postgres.write(changes)]);
		const settled = both.catch(() => {}).finally(() => this.#writing.delete(settled));
		this.#writing.add(settled);
		await both;
	}

	async close(): Promise<void> {
		await Promise.all([this.#lmdb.close(), this.#postgres.close()]);
	}

	/** Reads from both, again if something was written meanwhile and the results differ. */
	async #same<T>(what: string, read: (kv: SharedStore) => Promise<T>): Promise<T> {
		for (;;) {
			const writes = this.#writes;
			const isQuiet = this.#writing.size === 0;
			const [lmdb, postgres] = await Promise.all([read(this.#lmdb), read(this.#postgres)]);
			if (isDeepStrictEqual(lmdb, postgres)) return postgres;
			if (isQuiet && writes === this.#writes) {
				const fault = new Error(`LMDB and PostgreSQL do not hold the same: ${what}`);
				this.#onDifference(fault);
				throw fault;
			}
			await Promise.all(this.#writing);
		}
	}
}

export const SELF_SIGNED = {
	cert: `-----BEGIN CERTIFICATE-----
MIIBpzCCAU6gAwIBAgIUB1Qw3V4mCiApegKj3R0/rvRPAfwwCgYIKoZIzj0EAwIw
IDEeMBwGA1UEAwwVbGVld2FyZCB0ZXN0IGRhdGFiYXNlMCAXDTI2MTEyMjA0NDY1
N1oYDzIxMjYxMDI5MDQ0NjU3WjAgMR4wHAYDVQQDDBVsZWV3YXJkIHRlc3QgZGF0
YWJhc2UwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARN2b400ELGWSrWijg7hFTV
IznUMAn7GtppLZDJUMRq16aGHSpjckg/0LFW3J9rozcWhQKmGkeCyjV2ez5XoC84
o2QwYjAdBgNVHQ4EFgQUIvuTkrxwcat00DYPnkTgx48s8bkwHwYDVR0jBBgwFoAU
IvuTkrxwcat00DYPnkTgx48s8bkwDwYDVR0TAQH/BAUwAwEB/zAPBgNVHREECDAG
hwR/AAABMAoGCCqGSM49BAMCA0cAMEQCIC5F9PN7QP+Y2C47J3lVsiluzd32nsbQ
CHeIqSApADQnAiBNdYl0ul+kZZUoaY9HdgmhDv1QcRcTDDB+ZWYydyARQQ==
-----END CERTIFICATE-----
`,
	key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnOg+dDQsACDNOEBc
+xYlu1OS3JWb/o9MC+CtUdt50jOhRANCAARN2b400ELGWSrWijg7hFTVIznUMAn7
GtppLZDJUMRq16aGHSpjckg/0LFW3J9rozcWhQKmGkeCyjV2ez5XoC84
-----END PRIVATE KEY-----
`,
};
