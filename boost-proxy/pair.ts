// The process for hosts with one port. PROCESS selects relay, boost, or both. With both, boost has
// the port. The relay then listens on loopback only and is restarted when it ends.

import { type ChildProcess, fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createServer } from "node:net";
import { fileURLToPath, pathToFileURL } from "node:url";
import { systemClock } from "../shared/clock.ts";
import { readSettings, SERVER_ROWS, type Settings } from "../shared/config.ts";
import { createLogger } from "../shared/log.ts";
import { STARTED, SUPERVISED } from "../shared/process.ts";
import { type Child, type ChildExit, pairEnvironments, runPair } from "./supervisor.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const RELAY = fileURLToPath(new URL("../relay/main.ts", import.meta.url));
const BOOST = fileURLToPath(new URL("./main.ts", import.meta.url));
/** Values of PROCESS that run in this very process, so that it receives the signals itself. */
const ALONE = new Map([
	["relay", RELAY],
	["boost", BOOST],
]);
/** The relay's V8 flag, as in the script `relay` of package.json. */
const YOUNG = "--max-semi-space-size";
const RELAY_FLAGS = [`${YOUNG}=32`];
/** Below the ephemeral ports, so that no connection occupies the port when the relay restarts. */
const FIRST_PORT = 12_000;
const PORTS = 18_000;
const PORT_TRIES = 100;
/** Settings of boost that also apply to the pair. */
const OWN_SETTINGS = { DRAIN_SECONDS: SERVER_ROWS.DRAIN_SECONDS, LOG_LEVEL: SERVER_ROWS.LOG_LEVEL };

async function main(args: readonly string[], env: Environment): Promise<number> {
	const environments = pairEnvironments(env, {
		relayPort: await freePort(),
		secret: randomBytes(32).toString("hex"),
	});
	if (args.length > 0) return printBoth(args, environments);
	const { LOG_LEVEL, DRAIN_SECONDS: drainSeconds } = ownSettings(env);
	const log = createLogger(LOG_LEVEL, "pair");
	for (const setting of environments.unused) log.warn("setting has no effect behind one port", { setting });
	const stop = new AbortController();
	for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop.abort());
	const code = await runPair(
		{
			relay: () => start(RELAY, environments.relay, RELAY_FLAGS),
			boost: () => start(BOOST, environments.boost, []),
		},
		{ clock: systemClock, log, drainSeconds, stop: stop.signal },
	);
	log.info("stopped", { code });
	return code;
}

/** Runs `--help` and the like for both, one after the other. */
async function printBoth(
	args: readonly string[],
	environments: { readonly relay: Environment; readonly boost: Environment },
): Promise<number> {
	const codes: number[] = [];
	for (const [file, env] of [
		[BOOST, environments.boost],
		[RELAY, environments.relay],
	] as const) {
		const child = fork(file, args, { env, stdio: ["ignore", "inherit", "inherit", "ipc"] });
		codes.push((await ending(child)).code ?? 1);
	}
	return Math.max(...codes);
}

function start(file: string, env: Environment, flags: readonly string[]): Child {
	const child = fork(file, [SUPERVISED], {
		env,
		execArgv: [...flags, ...process.execArgv.filter((flag) => !flag.startsWith(YOUNG))],
		stdio: ["ignore", "inherit", "inherit", "ipc"],
	});
	return {
		started: new Promise((resolve) => {
			child.on("message", (message) => {
				if (message === STARTED) resolve();
			});
		}),
		exited: ending(child),
		stop() {
			if (child.connected) child.disconnect();
		},
		kill: () => void child.kill("SIGKILL"),
	};
}

function ending(child: ChildProcess): Promise<ChildExit> {
	return new Promise((resolve) => {
		child.once("exit", (code, signal) => resolve({ code, signal }));
		// It could not be started.
		child.once("error", () => {
			if (child.pid === undefined) resolve({ code: 1, signal: null });
		});
	});
}

/** Boost reports invalid settings, so the pair falls back to the defaults. */
function ownSettings(env: Environment): Settings<typeof OWN_SETTINGS> {
	try {
		return readSettings(OWN_SETTINGS, env);
	} catch {
		return readSettings(OWN_SETTINGS, {});
	}
}

/** A port that no process listens on. */
async function freePort(): Promise<number> {
	for (let i = 0; i < PORT_TRIES; i++) {
		const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
		const server = createServer();
		const isFree = await new Promise<boolean>((resolve) => {
			server.once("error", () => resolve(false));
			server.listen(port, "127.0.0.1", () => resolve(true));
		});
		await new Promise((resolve) => server.close(resolve));
		if (isFree) return port;
	}
	throw new Error("no port is free");
}

const named = process.env.PROCESS || "pair";
const alone = ALONE.get(named);
if (alone !== undefined) await import(pathToFileURL(alone).href);
else if (named === "pair") process.exit(await main(process.argv.slice(2), process.env));
else {
	process.stderr.write("PROCESS is not valid: expected relay, boost or pair, for example PROCESS=pair\n");
	process.exit(1);
}
