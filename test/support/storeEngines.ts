// The engines of a key-value store, for the contracts that each must keep: makes places for new stores, opens stores
// there, and runs processes that have one open.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { systemClock } from "../../shared/clock.ts";
import { openLmdb } from "../../shared/kv/lmdb.ts";
import type { KeyValueStore } from "../../shared/kv/port.ts";
import { openPostgres } from "../../shared/kv/postgres/postgres.ts";
import { silentLogger } from "../../shared/log.ts";
import { type PostgresServer, startPostgres } from "./postgresServer.ts";

/** One engine. */
export interface StoreEngine {
	readonly name: "lmdb" | "postgres";
	/** A place where nothing is yet: a folder, or a database. */
	newPlace(): Promise<string>;
	open(place: string): Promise<KeyValueStore>;
	/** Module code that defines `open` as above; `systemClock` and `silentLogger` are there. */
	readonly opener: string;
	/** Code of the error for who comes second, and what it tells him to do. */
	readonly inUse: { readonly code: string; readonly message: RegExp };
}

/** A process that has a store open. */
export interface StoreProcess {
	readonly child: ChildProcess;
	/** The next line that it says. */
	line(): Promise<string>;
	kill(): Promise<void>;
}

/** What a test file's engines have made, to be ended after it. */
export class StorePlaces {
	readonly #folders: string[] = [];
	readonly #children: ChildProcess[] = [];
	#server: Promise<PostgresServer> | null = null;

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
			newPlace: async () => (await this.server()).newDatabase(),
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

	/** The server of this file's databases. */
	server(): Promise<PostgresServer> {
		this.#server ??= startPostgres();
		return this.#server;
	}

	/** Runs `code`, which has `open` and `say`, in a process of its own; `wrap` is a command to run it by. */
	another(engine: StoreEngine, code: string, wrap: readonly string[] = []): StoreProcess {
		const whole = `${engine.opener}
			import { systemClock } from ${at("../../shared/clock.ts")};
			import { silentLogger } from ${at("../../shared/log.ts")};
			const say = (line) => process.stdout.write(line + "\\n");
			${code}`;
		const node = [process.execPath, ...process.execArgv, "--input-type=module", "--eval", whole];
		const [command = "", ...args] = [...wrap, ...node];
		const child = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"] });
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

	/** Ends and removes all of it. */
	async remove(): Promise<void> {
		for (const child of this.#children) child.kill("SIGKILL");
		for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true });
		await (await this.#server)?.stop();
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
