// Runs the relay, boost, both behind one port, lines of the Procfile, and cast as processes of
// their own, to test what only a process has: signals, exit codes and output. None outlives its
// test.

import { type ChildProcessWithoutNullStreams, execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { request } from "undici";
import { systemClock, withDeadline } from "../../shared/clock.ts";
import { onEngine } from "./engine.ts";
import { SUPERVISED } from "./postgresServer.ts";
import { keepLog } from "./processLogs.ts";
import { RelayClient } from "./relayClient.ts";
import { PATIENCE_MS, until } from "./until.ts";

interface RelayProcessOptions {
	/** Its whole environment, besides PATH, HOME and TMPDIR. */
	readonly env: Readonly<Record<string, string>>;
	readonly args?: readonly string[];
	/** The file that node runs. Default relay/main.ts. */
	readonly entry?: string;
	/** A command line for `sh -c`, from the Procfile, instead of the relay's own. */
	readonly line?: string;
	/** Commands of a shell before it, such as `ulimit`. */
	readonly under?: string;
	/** The user and group that it runs as; only root may run it as another. */
	readonly uid?: number;
}

/** How a process ended. */
export interface Exit {
	readonly code: number | null;
	readonly signal: NodeJS.Signals | null;
	readonly stdout: string;
	readonly stderr: string;
}

/** A parsed line of a process's log, which goes to standard output. */
type LogLine = Readonly<Record<string, unknown>> & { readonly msg: string; readonly level: number };

/** A process that has become ready. */
export type RelayProcess = LaunchedRelay & {
	readonly port: number;
	/** http://127.0.0.1:port */
	readonly url: string;
	readonly client: RelayClient;
};

/** As in the Procfile: it decides the memory. */
const YOUNG = "--max-semi-space-size=32";
const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** Maximum characters kept of a process's output. */
const MAX_OUTPUT = 64 * 1024 * 1024;

/** A process that may not be ready yet. */
export class LaunchedRelay {
	readonly #child: ChildProcessWithoutNullStreams;
	/** Its output so far. */
	stdout = "";
	stderr = "";
	/** Resolves when it has ended, for whatever reason. */
	readonly exited: Promise<Exit>;

	constructor(options: RelayProcessOptions) {
		const { PATH = "", HOME = "", TMPDIR = "/tmp" } = process.env;
		const { line, entry = "relay/main.ts", args = [], under, uid } = options;
		const own = [process.execPath, ...process.execArgv, YOUNG, entry, ...args];
		const command = line === undefined ? own : ["/bin/sh", "-c", line];
		const limited = under === undefined ? [] : ["bash", "-c", `${under}; exec "$@"`, "limited"];
		this.#child = spawn("/bin/sh", ["-c", SUPERVISED, ...limited, ...command], {
			cwd: ROOT,
			...(uid === undefined ? {} : { uid, gid: uid }),
			env: { PATH, HOME, TMPDIR, ...onEngine(options.env) },
			// With its own process group, so that a test can see whether a child of it is left.
			detached: true,
		});
		const child = this.#child;
		child.stdin.on("error", () => {});
		for (const name of ["stdout", "stderr"] as const) {
			child[name].setEncoding("utf8").on("data", (chunk: string) => {
				if (this[name].length < MAX_OUTPUT) this[name] += chunk;
			});
		}
		keepLog({
			name: [line ?? entry, ...args].join(" "),
			ended: () => child.exitCode !== null || child.signalCode !== null,
			output: () => `${this.stdout}${this.stderr}`,
		});
		this.exited = new Promise<Exit>((resolve, reject) => {
			child.once("error", reject);
			child.once("exit", () => child.stdin.end("\n"));
			child.once("close", (code, signal) => {
				resolve({ code, signal, stdout: this.stdout, stderr: this.stderr });
			});
		});
	}

	/** The id of the process and of its process group. */
	get pid(): number {
		return this.#child.pid ?? 0;
	}

	/**
	 * The complete lines of its log, from a character of its output on. Lines that are not JSON are
	 * other output.
	 */
	logs(from = 0): readonly LogLine[] {
		const lines = this.stdout.slice(from).split("\n");
		return lines.flatMap((line) => {
			try {
				return [JSON.parse(line) as LogLine];
			} catch {
				return [];
			}
		});
	}

	/**
	 * Asks by SIGUSR2 for what its log then tells under this message; see meteredMain.ts and
	 * countedMain.ts.
	 */
	async figures(message: string): Promise<LogLine> {
		const from = this.stdout.lastIndexOf("\n") + 1;
		this.signal("SIGUSR2");
		return until(`its log tells "${message}"`, () => this.logs(from).find(({ msg }) => msg === message));
	}

	/** Waits for a log line with this message, and returns the first. */
	logged(message: string): Promise<LogLine> {
		return until(`the log line "${message}"`, () => this.logs().find(({ msg }) => msg === message));
	}

	signal(signal: NodeJS.Signals): void {
		this.#child.kill(signal);
	}

	/** Sends `signal` and waits for the end. Default SIGKILL, to the whole group. */
	kill(signal: NodeJS.Signals = "SIGKILL", ms = PATIENCE_MS): Promise<Exit> {
		if (signal === "SIGKILL") this.#killGroup();
		else this.signal(signal);
		return this.ended(ms);
	}

	/** Waits for its end. After `ms` (two minutes) it kills the group and rejects. */
	async ended(ms = PATIENCE_MS): Promise<Exit> {
		try {
			return await withDeadline(systemClock, "end of the process", ms, () => this.exited);
		} catch (thrown) {
			this.#killGroup();
			throw thrown;
		}
	}

	#killGroup(): void {
		try {
			if (this.#child.pid !== undefined) process.kill(-this.#child.pid, "SIGKILL");
		} catch {
			// No process of the group is left.
		}
	}
}

/** Starts it without waiting. */
export function launchRelay(options: RelayProcessOptions): LaunchedRelay {
	return new LaunchedRelay(options);
}

/** Runs it until it ends by itself, which must happen within two minutes. */
export async function runRelay(options: RelayProcessOptions): Promise<Exit> {
	return launchRelay(options).ended();
}

/**
 * Starts it and waits until /readyz is 200; throws with its output if it ends instead. With PORT 0
 * the port is read from its log, which must then not be above `info`.
 */
export async function startRelayProcess(options: RelayProcessOptions): Promise<RelayProcess> {
	const launched = launchRelay(options);
	let gone: Exit | undefined;
	const noting = launched.exited.then((exit) => {
		gone = exit;
	});
	/** Asks `question`; throws if the process has ended. */
	const alive = <T>(question: () => Promise<T> | T) => {
		if (gone === undefined) return question();
		const { code, stdout, stderr } = gone;
		throw new Error(`it ended at its start with ${code}: ${stderr}${stdout.slice(-2000)}`);
	};
	try {
		const set = options.env.PORT ?? "0";
		const port = await until("the log tells the port", () => alive(() => portOf(launched, set)));
		const url = `http://127.0.0.1:${port}`;
		await until("it is ready", () => alive(async () => (await readyStatus(url)) === 200)).catch(
			async (thrown: Error) => {
				const said = await fetch(`${url}/readyz`).then(
					(answer) => answer.text(),
					(fault: Error) => String(fault.cause ?? fault),
				);
				throw new Error(`${thrown.message}; it says ${said}; its log: ${launched.stdout.slice(-2000)}`);
			},
		);
		return Object.assign(launched, { port, url, client: new RelayClient(url) });
	} catch (thrown) {
		await launched.kill();
		await noting;
		throw thrown;
	}
}

/** The status of /readyz, or 0 if nothing answers. */
export async function readyStatus(url: string): Promise<number> {
	try {
		const { statusCode, body } = await request(`${url}/readyz`);
		await body.dump();
		return statusCode;
	} catch {
		return 0;
	}
}

function portOf(launched: LaunchedRelay, set: string): number | undefined {
	if (set !== "0") return Number(set);
	const line = launched.logs().find(({ msg, task }) => msg === "listening" && task === "http");
	return typeof line?.port === "number" ? line.port : undefined;
}

export type BoostProcess = RelayProcess;
type BoostProcessOptions = Omit<RelayProcessOptions, "entry" | "line">;

const BOOST = "boost-proxy/main.ts";

/** Starts boost without waiting. */
export function launchBoost(options: BoostProcessOptions): LaunchedRelay {
	return launchRelay({ ...options, entry: BOOST });
}

/** Runs boost until it ends by itself, which must happen within two minutes. */
export function runBoost(options: BoostProcessOptions): Promise<Exit> {
	return launchBoost(options).ended();
}

/**
 * Starts boost and waits until an upstream of it would accept a transaction; throws with its output
 * if it ends.
 */
export function startBoostProcess(options: BoostProcessOptions): Promise<BoostProcess> {
	return startRelayProcess({ ...options, entry: BOOST });
}

/** Starts relay and boost behind one port, without waiting. */
export function launchPair(options: BoostProcessOptions): LaunchedRelay {
	return launchRelay({ ...options, entry: "boost-proxy/pair.ts" });
}

/** The Procfile's lines by their names. */
export const PROCFILE: ReadonlyMap<string, string> = new Map(
	readFileSync(new URL("../../Procfile", import.meta.url), "utf8")
		.trimEnd()
		.split("\n")
		.map((line) => /^(\w+): (.+)$/.exec(line)?.slice(1) as [string, string]),
);

/** The command of one line. Throws if there is no such line. */
export function lineOf(name: string): string {
	const line = PROCFILE.get(name);
	if (line === undefined) throw new Error(`the Procfile has no line ${name}`);
	return line;
}

/**
 * A command of the Procfile with the loader of the tests, which costs a second of CPU less than tsx
 * in each process.
 */
export function withTestLoader(line: string): string {
	return line.replace("--import tsx", "--import ./test/loader/register.mjs");
}

/**
 * Runs `nf start` with `names`: the first on `port`, each further one on a port 100 higher. `file`:
 * of which Procfile.
 */
export function runProcfile(
	names: readonly string[],
	port: number,
	env: Readonly<Record<string, string>>,
	file = "Procfile",
): LaunchedRelay {
	return launchRelay({
		line: `exec node node_modules/foreman/nf.js -p ${port} -j ${file} start -r ${names.join(",")}`,
		env,
	});
}

/** Waits until no process of the group is left. */
export async function groupGone(group: number): Promise<void> {
	await until("nothing of its process group is left", () => {
		try {
			process.kill(-group, 0);
			return false;
		} catch (thrown) {
			return (thrown as { code?: string }).code === "ESRCH";
		}
	});
}

const RUN_MS = 60_000;

/**
 * Runs `cast`; it fails after a minute. It gets no settings of the machine, such as ETH_RPC_URL.
 */
export function cast(
	...args: string[]
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
	const { PATH = "", HOME = "" } = process.env;
	const options = { timeout: RUN_MS, env: { PATH, HOME, NO_COLOR: "1" } };
	return new Promise((resolve) => {
		execFile(binary(), args, options, (error, stdout, stderr) => {
			resolve({ code: error === null ? 0 : 1, stdout, stderr });
		});
	});
}

/** The binary itself, since the package's launcher, which `npx cast` runs, always exits with 0. */
function binary(): string {
	const cpu = process.arch === "x64" ? "amd64" : process.arch;
	const name = `@foundry-rs/cast-${process.platform}-${cpu}`;
	const require = createRequire(import.meta.url);
	const fromCast = createRequire(require.resolve("@foundry-rs/cast/package.json"));
	const folder = dirname(fromCast.resolve(`${name}/package.json`));
	return join(folder, "bin", process.platform === "win32" ? "cast.exe" : "cast");
}
