// Runs a relay or a boost as a process that can be killed and restarted on the same port and folder, behind one
// handle.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { freePort } from "../devnet/freePort.ts";
import type { RelayProcess } from "../support/relayProcess.ts";

export interface Killable {
	/** The same for all its lives. */
	readonly url: string;
	/** SIGKILL; it is gone when this resolves. */
	kill(): Promise<void>;
	/** Starts it again; it is ready when this resolves. */
	restart(): Promise<void>;
	/**
	 * What is written to files beyond `bytes` from their beginning fails from now on, as on a full disk; null: it goes
	 * through again. (RLIMIT_FSIZE, set from outside by util-linux's prlimit.)
	 */
	limitFiles(bytes: number | null): Promise<void>;
	stop(): Promise<void>;
}

type Start = (options: { readonly env: Readonly<Record<string, string>> }) => Promise<RelayProcess>;

/** Starts it by `start` on a port of its own. */
export async function startKillable(start: Start, env: Readonly<Record<string, string>>): Promise<Killable> {
	const port = await freePort();
	const own = { env: { LOG_LEVEL: "warn", ...env, PORT: String(port) } };
	let running = await start(own);
	return {
		url: `http://127.0.0.1:${port}`,
		async kill() {
			await running.kill();
		},
		async restart() {
			running = await start(own);
		},
		async limitFiles(bytes) {
			const limit = bytes === null ? "unlimited" : `${bytes}:unlimited`;
			await promisify(execFile)("prlimit", ["--pid", String(running.pid), `--fsize=${limit}`]);
		},
		async stop() {
			await running.kill();
		},
	};
}
