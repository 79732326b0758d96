// The relay as a child process whose log is read instead of shown: settings go in, its address comes out, or what it
// warned of.

import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { pause, systemClock } from "../../shared/clock.ts";
import { ended, isReady, startQuietRelay } from "./devSystem.ts";

/** A relay that may not serve yet. */
export interface QuietRelay {
	readonly pid: number;
	/** Waits until it would serve well; http://127.0.0.1:port. Rejects with what it warned of where it never does. */
	ready(): Promise<string>;
	/** Ends it and waits until it is gone. May be called again. */
	stop(): Promise<void>;
}

const LISTENING_MS = 20_000;
const WARN = 40;
const KEPT_WARNINGS = 1_000;

/** Starts a relay on a free port, and waits for nothing. It sees the settings, PATH, HOME and TMPDIR alone. */
export function launchQuietRelay(settings: Readonly<Record<string, string>>): QuietRelay {
	const { PATH = "", HOME = "", TMPDIR = "/tmp" } = process.env;
	const child = startQuietRelay({ PATH, HOME, TMPDIR, ...settings, PORT: "0", LOG_LEVEL: "info" });
	const warnings: string[] = [];
	const warn = (line: string): void => {
		if (warnings.length < KEPT_WARNINGS) warnings.push(line);
	};
	let port = 0;
	createInterface({ input: child.stderr }).on("line", warn);
	createInterface({ input: child.stdout }).on("line", (line) => {
		const logged = parse(line);
		if (logged === null || Number(logged.level) >= WARN) warn(line);
		else if (logged.msg === "listening" && logged.task === "http") port = Number(logged.port);
	});
	return {
		pid: child.pid ?? 0,
		stop: () => ended(child),
		ready: async () => {
			if (await listens(child, () => port > 0)) {
				const url = `http://127.0.0.1:${port}`;
				if (await isReady(url, child)) return url;
			}
			throw new Error(["the relay does not become ready", ...warnings].join("\n"));
		},
	};
}

async function listens(child: ChildProcess, has: () => boolean): Promise<boolean> {
	const until = systemClock.monotonic() + LISTENING_MS;
	while (!has() && child.exitCode === null && systemClock.monotonic() < until) await pause(systemClock, 20);
	return has();
}

function parse(line: string): Readonly<Record<string, unknown>> | null {
	try {
		return JSON.parse(line) as Record<string, unknown>;
	} catch {
		return null;
	}
}
