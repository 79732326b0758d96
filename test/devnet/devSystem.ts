// Starts a dev chain with a dev builder, makes the settings for a relay and boost on it, and runs
// these as child processes.

import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { pause, systemClock } from "../../shared/clock.ts";
import type { Fork } from "../../shared/ethereum/forks.ts";
import { type DevBuilder, startDevBuilder } from "./devBuilder.ts";
import type { DevChain } from "./devChain.ts";
import { startForkChain } from "./forkChain.ts";
import type { Misconduct } from "./misconduct.ts";
import { slotSetting } from "./slots.ts";

/** Ports, slot length and fork. */
interface DevSystemOptions {
	/** 0: a free one. */
	readonly chainPort: number;
	/** 0: a free one. */
	readonly builderPort: number;
	/** Seconds, whole or not. */
	readonly slotSeconds: number;
	/** Undefined: anvil's newest. */
	readonly fork?: Fork | undefined;
	/** The promise that the builder breaks. Undefined: none. */
	readonly misconduct?: Misconduct | undefined;
}

/** The programs that can be started: relay and boost. */
export type ServerName = "relay" | "boost";

/** A chain whose blocks a builder builds, and a fresh folder for data. */
export interface DevSystem {
	readonly chain: DevChain;
	readonly builder: DevBuilder;
	readonly folder: string;
	/** As the options have it. */
	readonly fork: Fork | undefined;
	/** Stops both and removes the folder. Processes with data in it must have ended before. */
	stop(): Promise<void>;
}

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const ENTRIES: Readonly<Record<ServerName, string>> = {
	relay: "relay/main.ts",
	boost: "boost-proxy/main.ts",
};
/** The longest time until a process is ready. */
const READY_MS = 30_000;
const ASK_AGAIN_MS = 100;

/** Starts chain and builder. Throws if a port is taken. */
export async function startDevSystem(options: DevSystemOptions): Promise<DevSystem> {
	const { chainPort, builderPort, slotSeconds, fork, misconduct } = options;
	const chain = await startForkChain({ port: chainPort, slotSeconds, fork });
	const builder = await startDevBuilder({ chain, port: builderPort, slotSeconds, misconduct }).catch(
		async (thrown: unknown) => {
			await chain.stop();
			throw thrown;
		},
	);
	const folder = mkdtempSync(join(tmpdir(), "leeward-"));
	const stop = async (): Promise<void> => {
		await builder.stop();
		await chain.stop();
		rmSync(folder, { recursive: true, force: true });
	};
	return { chain, builder, folder, fork, stop };
}

/** The builder's row for a relay. */
export function builderRow({ name, url, coinbase }: DevBuilder): object {
	return { name, url, feeRecipients: [coinbase], requestsPerSecond: 1_000 };
}

/** A relay's settings in this system, without PORT. */
export function relaySettings({ chain, builder, folder }: DevSystem): Readonly<Record<string, string>> {
	return {
		ETH_RPC_URL: chain.url,
		ETH_WS_URL: chain.wsUrl,
		BUILDERS: JSON.stringify([builderRow(builder)]),
		FEE_RECIPIENT: builder.coinbase,
		SIGNING_KEY: `0x${randomBytes(32).toString("hex")}`,
		...Object.fromEntries([slotSetting(chain.slotSeconds)]),
		HOST: "127.0.0.1",
		RATE_LIMIT_RPS: "0",
		DATA_DIR: folder,
	};
}

/**
 * The fallback's settings, without PORT: another identity at the same builder, and its own data. It
 * shares no secret with boost, like a third party's relay.
 */
export function fallbackSettings(system: DevSystem): Readonly<Record<string, string>> {
	return { ...relaySettings(system), DATA_DIR: join(system.folder, "fallback") };
}

/** Settings, without PORT, of a boost instance in front of two such relays. */
export function boostSettings(
	{ chain, folder }: DevSystem,
	urls: { readonly relay: string; readonly fallback: string },
): Readonly<Record<string, string>> {
	return {
		RELAY_URL: urls.relay,
		FALLBACK_URL: urls.fallback,
		FALLBACK_DIALECT: "mevblocker",
		ETH_RPC_URL: chain.url,
		...Object.fromEntries([slotSetting(chain.slotSeconds)]),
		HOST: "127.0.0.1",
		RATE_LIMIT_RPS: "0",
		DATA_DIR: folder,
	};
}

/** Starts a process that prints to our own output. */
export function startServer(name: ServerName, env: NodeJS.ProcessEnv): ChildProcess {
	return spawn(process.execPath, [...process.execArgv, ENTRIES[name]], { cwd: ROOT, stdio: "inherit", env });
}

/** Starts a process whose output we read. */
export function startQuietServer(
	name: ServerName,
	env: NodeJS.ProcessEnv,
): ChildProcessByStdio<null, Readable, Readable> {
	const args = [...process.execArgv, ENTRIES[name]];
	return spawn(process.execPath, args, { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"], env });
}

/**
 * Waits until the process at `url` is ready, and returns true; false if it ends, or is not ready
 * within `ms` (30,000).
 */
export async function isReady(url: string, server: ChildProcess, ms = READY_MS): Promise<boolean> {
	const until = systemClock.monotonic() + ms;
	while (systemClock.monotonic() < until && !isGone(server)) {
		const answer = await fetch(`${url}/readyz`).catch(() => null);
		await answer?.arrayBuffer();
		if (answer?.status === 200) return true;
		await pause(systemClock, ASK_AGAIN_MS);
	}
	return false;
}

/** Asks the process to end, or with SIGKILL ends it, and waits until it is gone. */
export function ended(child: ChildProcess, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
	if (isGone(child)) return Promise.resolve();
	return new Promise((resolve) => {
		child.once("exit", () => resolve());
		child.kill(signal);
	});
}

/** Whether the process has ended. */
export function isGone(child: ChildProcess): boolean {
	return child.exitCode !== null || child.signalCode !== null;
}

/** `work`, for whose end the process waits. */
export async function staysUp<T>(work: Promise<T>): Promise<T> {
	const { port1, port2 } = new MessageChannel();
	port1.ref();
	try {
		return await work;
	} finally {
		port1.close();
		port2.close();
	}
}
