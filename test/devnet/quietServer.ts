// Runs a relay or boost as a child process, and reads its address and warnings from its log.

import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { pause, systemClock } from "../../shared/clock.ts";
import { ended, isGone, isReady, type ServerName, startQuietServer } from "./devSystem.ts";

/** A process that may not serve yet. */
export interface QuietServer {
	readonly pid: number;
	/** Waits until it would serve well; http://127.0.0.1:port. Rejects with what it warned of where it never does. */
	ready(): Promise<string>;
	/** Ends it and waits until it is gone. May be called again. */
	stop(): Promise<void>;
	/** The same by SIGKILL: it gets no chance to write anything. */
	kill(): Promise<void>;
}

const LISTENING_MS = 20_000;
const WARN = 40;
const KEPT_WARNINGS = 1_000;

/**
 * Starts one on `port`, 0 for a free one, and waits for nothing. It sees the settings, PATH, HOME and TMPDIR alone.
 */
export function launchQuiet(
	name: ServerName,
	settings: Readonly<Record<string, string>>,
	port = 0,
): QuietServer {
	const { PATH = "", HOME = "", TMPDIR = "/tmp" } = process.env;
	const child = startQuietServer(name, {
		...{ PATH, HOME, TMPDIR, ...settings },
		...{ PORT: String(port), LOG_LEVEL: "info" },
	});
	const warnings: string[] = [];
	const warn = (line: string): void => {
		if (warnings.length < KEPT_WARNINGS) warnings.push(line);
	};
	let listening = 0;
	createInterface({ input: child.stderr }).on("line", warn);
	createInterface({ input: child.stdout }).on("line", (line) => {
		const logged = parse(line);
		if (logged === null || Number(logged.level) >= WARN) warn(line);
		else if (logged.msg === "listening" && logged.task === "http") listening = Number(logged.port);
	});
	return {
		pid: child.pid ?? 0,
		stop: () => ended(child),
		kill: () => ended(child, "SIGKILL"),
		ready: async () => {
			if (await listens(child, () => listening > 0)) {
				const url = `http://127.0.0.1:${listening}`;
				if (await isReady(url, child)) return url;
			}
			throw new Error([`${name} does not become ready`, ...warnings].join("\n"));
		},
	};
}

async function listens(child: ChildProcess, has: () => boolean): Promise<boolean> {
	const until = systemClock.monotonic() + LISTENING_MS;
	while (!has() && !isGone(child) && systemClock.monotonic() < until) await pause(systemClock, 20);
	return has();
}

function parse(line: string): Readonly<Record<string, unknown>> | null {
	try {
		return JSON.parse(line) as Record<string, unknown>;
	} catch {
		return null;
	}
}
