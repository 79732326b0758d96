// What comes in: anvil's arguments. What goes out: one running anvil on loopback, the binary of its npm package
// itself, that cannot outlive us. It knows nothing of chains: devChain.ts and trialChain.ts ask it for that.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock, withDeadline } from "../../shared/clock.ts";

/** A running anvil. */
export interface AnvilProcess {
	readonly port: number;
	/** http://127.0.0.1:port */
	readonly url: string;
	readonly pid: number;
	/** Resolves when it is gone, however it ended. */
	readonly gone: Promise<void>;
	/** Ends it and waits until it is gone. May be called again. */
	stop(): Promise<void>;
}

const START_MS = 20_000;

/**
 * The shell becomes anvil (same pid, so signals reach it). What it leaves behind is a reader of our pipe: when the
 * pipe closes without a word, which is what happens when we die, by SIGKILL too, it kills anvil. In the end it removes
 * anvil's folder, which anvil leaves behind when it is killed.
 */
const SUPERVISED = `folder=$1; shift; exec 3<&0
{ read -r _ <&3 || kill -9 $$; rm -rf "$folder"; } >/dev/null 2>&1 &
exec "$0" "$@" 3<&- </dev/null`;

/**
 * Starts anvil with `args` and waits until it listens; `port` 0 takes a free one.
 * Throws when it ends instead, with what it said (a port in use, an unknown option).
 */
export async function startAnvil(port: number, args: readonly string[]): Promise<AnvilProcess> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-anvil-"));
	const all = ["--host", "127.0.0.1", "--port", String(port), "--cache-path", folder, ...args];
	const child = launch(anvilBinary(), folder, all);
	const gone = new Promise<void>((resolve) => {
		child.once("error", () => resolve());
		child.once("exit", () => {
			// A word, so that the reader of the pipe ends without killing: the pid may be another's by now.
			child.stdin.end("\n");
			resolve();
		});
	});
	child.stdin.on("error", () => {});
	const stop = async (): Promise<void> => {
		child.ref();
		// It keeps everything in memory: there is nothing to flush.
		child.kill("SIGKILL");
		await gone;
	};
	try {
		const listening = await withDeadline(systemClock, "start of anvil", START_MS, () => portOf(child, gone));
		// From here on it shall not keep us alive: a test that failed before its stop() could never end.
		for (const handle of [child, child.stdin, child.stdout, child.stderr]) unref(handle);
		const url = `http://127.0.0.1:${listening}`;
		return { port: listening, url, pid: child.pid ?? 0, gone, stop };
	} catch (thrown) {
		await stop();
		throw thrown;
	}
}

type Child = ChildProcessWithoutNullStreams;

function launch(binary: string, folder: string, args: readonly string[]): Child {
	if (process.platform !== "win32") {
		// A group of its own: Ctrl-C in a terminal is for us, and we stop it in our order.
		return spawn("/bin/sh", ["-c", SUPERVISED, binary, folder, ...args], { detached: true });
	}
	const child = spawn(binary, args, { windowsHide: true });
	process.once("exit", () => child.kill());
	child.once("exit", () => rmSync(folder, { recursive: true, force: true }));
	return child;
}

function unref(handle: object): void {
	if ("unref" in handle && typeof handle.unref === "function") handle.unref();
}

/** With port 0 only anvil's banner tells which port it has got. */
function portOf(child: Child, gone: Promise<void>): Promise<number> {
	return new Promise((resolve, reject) => {
		let said = "";
		child.stdout.setEncoding("utf8").on("data", (text: string) => {
			if (said.length > 100_000) return;
			said += text;
			const found = /Listening on [\d.]+:(\d+)/.exec(said)?.[1];
			if (found !== undefined) resolve(Number(found));
		});
		child.stderr.setEncoding("utf8").on("data", (text: string) => {
			if (said.length <= 100_000) said += text;
		});
		gone.then(
			() => reject(new Error(`anvil ended at its start: ${said.trim().slice(-400)}`)),
			() => {},
		);
		child.once("error", (error) => reject(new Error(`anvil cannot be run: ${error.message}`)));
	});
}

function anvilBinary(): string {
	const require = createRequire(import.meta.url);
	const cpu = process.arch === "x64" ? "amd64" : process.arch;
	const name = `@foundry-rs/anvil-${process.platform}-${cpu}`;
	// The platform's package is a dependency of anvil's, so it is looked for from there.
	const fromAnvil = createRequire(require.resolve("@foundry-rs/anvil/package.json"));
	let folder: string;
	try {
		folder = dirname(fromAnvil.resolve(`${name}/package.json`));
	} catch {
		throw new Error(`${name} is not installed: anvil has no binary for this platform, or npm left it out`);
	}
	return join(folder, "bin", process.platform === "win32" ? "anvil.exe" : "anvil");
}
