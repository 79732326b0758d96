// Runs a process and measures its CPU time and memory as the system counts them. Linux only, for it
// reads /proc.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** A child of the benchmark. */
export class MeasuredProcess {
	readonly #child: ChildProcess;

	/** `flags` are node's own; `file` is of this repository. */
	static node(
		file: string,
		flags: readonly string[] = [],
		env: Readonly<Record<string, string>> = {},
		args: readonly string[] = [],
	): MeasuredProcess {
		return new MeasuredProcess(process.execPath, [...flags, "--import", "tsx", file, ...args], env);
	}

	constructor(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
		this.#child = spawn(command, args, {
			cwd: ROOT,
			env: { PATH: process.env.PATH, ...env },
			stdio: ["ignore", "pipe", "inherit"],
		});
		// A benchmark that fails leaves nothing running.
		const kill = () => this.#child.kill("SIGKILL");
		process.once("exit", kill);
		this.#child.once("exit", () => process.off("exit", kill));
	}

	/** One of parts.ts; what it measures or where it listens is in what it prints. */
	static part(name: string, env: Readonly<Record<string, string>> = {}, flags: readonly string[] = []) {
		return MeasuredProcess.node("test/bench/parts.ts", flags, env, [name]);
	}

	/** Resolves with the first match of `pattern` in what it prints. */
	printed(pattern: RegExp): Promise<RegExpExecArray> {
		let text = "";
		return new Promise((resolve, reject) => {
			const read = (chunk: Buffer): void => {
				text += chunk.toString("utf8");
				const match = pattern.exec(text);
				if (match === null) return;
				resolve(match);
				// Further output is read but not searched: the search would be measured with it.
				this.#child.stdout?.off("data", read).resume();
			};
			this.#child.stdout?.on("data", read);
			this.#child.once("exit", (code) => reject(new Error(`it ended with ${code}`)));
		});
	}

	/** Calls `listener` with each line that it prints from now on. */
	onLine(listener: (line: string) => void): void {
		if (this.#child.stdout !== null) createInterface(this.#child.stdout).on("line", listener);
	}

	/** http://127.0.0.1:port, once it says where it listens. */
	async url(): Promise<string> {
		const [, port] = await this.printed(/port"?[: ](\d+)/);
		return `http://127.0.0.1:${port}`;
	}

	/** The CPU times that it has measured, in µs by name. */
	async times(): Promise<Readonly<Record<string, number>>> {
		const [, text = ""] = await this.printed(/parts (.*)\n/);
		return JSON.parse(text) as Record<string, number>;
	}

	/** CPU time of all its threads so far, in µs. */
	cpuMicros(): number {
		return cpuMicrosOf(this.#child.pid ?? 0);
	}

	/** CPU time of the thread with its event loop so far, in µs. */
	mainThreadMicros(): number {
		return microsIn(`/proc/${this.#child.pid}/task/${this.#child.pid}/stat`);
	}

	/** Resident memory in bytes, files that are mapped included. */
	residentBytes(): number {
		return this.#status("VmRSS");
	}

	/**
	 * Resident memory in bytes: its own, and pages of files that are mapped, which the system takes
	 * back where it needs them.
	 */
	memory(): { readonly own: number; readonly mapped: number } {
		return { own: this.#status("RssAnon"), mapped: this.#status("RssFile") };
	}

	#status(name: string): number {
		const status = readFileSync(`/proc/${this.#child.pid}/status`, "utf8");
		return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1024;
	}

	/** Ends it and waits for that. */
	async stop(): Promise<void> {
		if (this.#child.exitCode !== null) return;
		const ended = new Promise<void>((resolve) => this.#child.once("exit", () => resolve()));
		this.#child.kill("SIGTERM");
		await ended;
	}
}

/** CPU time of all threads of a process so far, in µs. */
export function cpuMicrosOf(pid: number): number {
	return microsIn(`/proc/${pid}/stat`);
}

function microsIn(path: string): number {
	const stat = readFileSync(path, "utf8");
	const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
	const ticks = Number(fields[11]) + Number(fields[12]);
	return (ticks / ticksPerSecond()) * 1_000_000;
}

function ticksPerSecond(): number {
	return Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }).trim());
}

/** The flags that node has for this process in the Procfile. */
export function procfileFlags(name: "relay" | "boost"): readonly string[] {
	const flags = new RegExp(`^${name}: exec node (.*) --import`, "m").exec(
		readFileSync(`${ROOT}/Procfile`, "utf8"),
	);
	return flags?.[1]?.split(" ") ?? [];
}
