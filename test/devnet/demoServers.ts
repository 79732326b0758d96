// Starts the demo's relay, its fallback, and boost in front of both, each as a process whose address and warnings are read
// from its log, and restarts the relay after it was killed.

import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { hexlify, randomBytes } from "ethers";
import { pause, systemClock } from "../../shared/clock.ts";
import { AlreadyStopping, type Scenario, type Stops } from "./demo/scenario.ts";
import {
	boostSettings,
	type DevSystem,
	ended,
	fallbackSettings,
	isGone,
	isReady,
	relaySettings,
	type ServerName,
	startQuietServer,
} from "./devSystem.ts";
import { freePort } from "./freePort.ts";

/** The relay, ready, and what may be had of the others. URLs are http. */
export interface DemoServers {
	readonly relayUrl: string;
	readonly relay: QuietServer;
	/** Starts fallback and boost, side by side, and tells where they are; boost's URL, once it is ready. */
	readonly startBoost: () => Promise<string>;
	/** Starts the relay again, on the same port and data; its pid, once it is ready. */
	readonly restart: () => Promise<number>;
	/** Keys that requests to the builder are signed with. */
	readonly keys: { readonly relay: string; readonly fallback: string };
}

/** Boost's own times are for production; one who looks on has less patience, and a busy machine is no outage. */
const IMPATIENT = {
	...{ PROBE_INTERVAL_MS: "100", BREAKER_HOLD_MS: "200", BREAKER_HOLD_MAX_MS: "1000" },
	PROBE_TIMEOUT_MS: "2000",
};

/** Starts the relay, and tells where it is. `percent`: its REFUND_PERCENT. */
export async function startServers({
	system,
	percent,
	stops,
	scenario,
}: {
	readonly system: DevSystem;
	readonly percent: string;
	readonly stops: Stops;
	readonly scenario: Scenario;
}): Promise<DemoServers> {
	const servers: QuietServer[] = [];
	stops.add(async () => {
		// At once: each goes on serving for a while.
		await Promise.all(servers.map((server) => server.stop()));
	});
	const launch = (...args: Parameters<typeof launchQuiet>): QuietServer => {
		if (stops.begun) throw new AlreadyStopping();
		const server = launchQuiet(...args);
		servers.push(server);
		return server;
	};
	const BOOST_SECRET = hexlify(randomBytes(32));
	const [relayPort, fallbackPort] = [await freePort(), await freePort()];
	const ours = relaySettings(system);
	const others = fallbackSettings(system);
	const settings = { ...ours, REFUND_PERCENT: percent, BOOST_SECRET };
	const urls = { relay: `http://127.0.0.1:${relayPort}`, fallback: `http://127.0.0.1:${fallbackPort}` };
	const relay = launch("relay", settings, relayPort);
	const relayUrl = await relay.ready();
	scenario.tell(`relay       ${relayUrl}, a process of its own (${relay.pid})`);
	return {
		...{ relayUrl, relay },
		async startBoost() {
			const fallback = launch("relay", others, fallbackPort);
			const boost = launch("boost", { ...boostSettings(system, urls), ...IMPATIENT, BOOST_SECRET });
			const [fallbackUrl, boostUrl] = await Promise.all([fallback.ready(), boost.ready()]);
			scenario.tell(`fallback    ${fallbackUrl}, another relay, which knows nothing of this one`);
			scenario.tell(`boost       ${boostUrl}, in front of both`);
			return boostUrl;
		},
		async restart() {
			const again = launch("relay", settings, relayPort);
			await again.ready();
			return again.pid;
		},
		keys: { relay: ours.SIGNING_KEY ?? "", fallback: others.SIGNING_KEY ?? "" },
	};
}

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
