// Runs a node as a process on loopback that ends with the test process: anvil, from the binary of
// its npm package, or go-ethereum.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock, withDeadline } from "../../shared/clock.ts";

interface NodeProcess {
	readonly port: number;
	/** http://127.0.0.1:port */
	readonly url: string;
	readonly pid: number;
	/** Resolves when it has ended, for whatever reason. */
	readonly gone: Promise<void>;
	/** Ends it and waits for the end. May be called again. */
	stop(): Promise<void>;
}

interface NodeProgram {
	/** For errors. */
	readonly name: string;
	readonly binary: string;
	/** The node's folder, removed when it has ended. */
	readonly folder: string;
	readonly args: readonly string[];
	/** Matches its port in its output, as the first group. */
	readonly listening: RegExp;
}

const START_MS = 20_000;

/**
 * The shell becomes the node by exec, with the same pid, so signals reach it. A background reader
 * of our pipe kills the node when the pipe closes without a line, as happens when we die, even by
 * SIGKILL; it then removes the node's folder.
 */
const SUPERVISED = `folder=$1; shift; exec 3<&0
{ read -r _ <&3 || kill -9 $$; rm -rf "$folder"; } >/dev/null 2>&1 &
exec "$0" "$@" 3<&- </dev/null`;

/** A folder for a node called `name`. */
export function nodeFolder(name: string): string {
	return mkdtempSync(join(tmpdir(), `leeward-${name}-`));
}

/** Starts a node and waits until it listens. Throws with its output if it ends instead. */
export async function startNode(program: NodeProgram): Promise<NodeProcess> {
	const child = launch(program);
	const gone = new Promise<void>((resolve) => {
		child.once("error", () => resolve());
		child.once("exit", () => {
			// A word, so that the reader of the pipe ends without killing: the pid may be another's by
			// now.
			child.stdin.end("\n");
			resolve();
		});
	});
	child.stdin.on("error", () => {});
	const stop = async (): Promise<void> => {
		child.ref();
		// Its data is thrown away, so there is nothing to flush.
		child.kill("SIGKILL");
		await gone;
	};
	try {
		const port = await withDeadline(systemClock, `start of ${program.name}`, START_MS, () =>
			portOf(program, child, gone),
		);
		// From here on it shall not keep us alive: a test that failed before its stop() could never
		// end.
		for (const handle of [child, child.stdin, child.stdout, child.stderr]) unref(handle);
		return { port, url: `http://127.0.0.1:${port}`, pid: child.pid ?? 0, gone, stop };
	} catch (thrown) {
		await stop();
		throw thrown;
	}
}

type Child = ChildProcessWithoutNullStreams;

function launch({ binary, folder, args }: NodeProgram): Child {
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

/** Reads its port from its output, which is the only way with port 0. */
function portOf({ name, listening }: NodeProgram, child: Child, gone: Promise<void>): Promise<number> {
	return new Promise((resolve, reject) => {
		let said = "";
		const onText = (text: string) => {
			if (said.length > 100_000) return;
			said += text;
			const found = listening.exec(said)?.[1];
			if (found !== undefined) resolve(Number(found));
		};
		for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", onText);
		gone.then(
			() => reject(new Error(`${name} ended at its start: ${said.trim().slice(-400)}`)),
			() => {},
		);
		child.once("error", (error) => reject(new Error(`${name} cannot be run: ${error.message}`)));
	});
}

/** A running anvil. */
export type AnvilProcess = NodeProcess;

/**
 * Starts anvil with `args` and waits until it listens; `port` 0 takes a free one.
 * Throws with its output if it ends instead (a port in use, an unknown option).
 */
export function startAnvil(port: number, args: readonly string[]): Promise<AnvilProcess> {
	const folder = nodeFolder("anvil");
	return startNode({
		name: "anvil",
		binary: anvilBinary(),
		folder,
		args: ["--host", "127.0.0.1", "--port", String(port), "--cache-path", folder, ...args],
		listening: /Listening on [\d.]+:(\d+)/,
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
