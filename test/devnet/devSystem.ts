// What comes in: ports and the length of a slot. What goes out: a dev chain, a dev builder on it, and what a relay must
// be told of both; and the relay as a child process. It knows no transaction.

import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { Wallet } from "ethers";
import { pause, systemClock } from "../../shared/clock.ts";
import { type DevBuilder, startDevBuilder } from "./devBuilder.ts";
import { type DevChain, startDevChain } from "./devChain.ts";

/** Where a system listens and how fast it is. */
export interface DevSystemOptions {
	/** 0: a free one. */
	readonly chainPort: number;
	/** 0: a free one. */
	readonly builderPort: number;
	/** Seconds, 1 to 60. */
	readonly slotSeconds: number;
}

/** A chain whose blocks a builder builds, and a fresh folder for a relay's data. */
export interface DevSystem {
	readonly chain: DevChain;
	readonly builder: DevBuilder;
	readonly folder: string;
	/** Stops both and removes the folder. Relays must have ended before. */
	stop(): Promise<void>;
}

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const RELAY = ["--import", "tsx", "relay/main.ts"];
/** How long the relay may take to become ready. */
const READY_MS = 30_000;
const ASK_AGAIN_MS = 100;

/** Starts chain and builder. Throws where a port is taken or the slot's length is none. */
export async function startDevSystem(options: DevSystemOptions): Promise<DevSystem> {
	const { chainPort, builderPort, slotSeconds } = options;
	if (!(slotSeconds >= 1 && slotSeconds <= 60)) {
		throw new Error("SLOT_SECONDS is not valid: expected seconds, 1 to 60, for example SLOT_SECONDS=2");
	}
	const chain = await startDevChain({ port: chainPort, slotSeconds });
	const builder = await startDevBuilder({ chain, port: builderPort, slotSeconds }).catch(
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
	return { chain, builder, folder, stop };
}

/** What a relay is told of the system: its environment beside PORT. */
export function relaySettings({ chain, builder, folder }: DevSystem): Readonly<Record<string, string>> {
	return {
		ETH_RPC_URL: chain.url,
		ETH_WS_URL: chain.wsUrl,
		BUILDERS: JSON.stringify([{ name: builder.name, url: builder.url }]),
		FEE_RECIPIENT: builder.coinbase,
		SIGNING_KEY: Wallet.createRandom().privateKey,
		SLOT_SECONDS: String(chain.slotSeconds),
		HOST: "127.0.0.1",
		RATE_LIMIT_RPS: "0",
		DATA_DIR: folder,
	};
}

/** Starts a relay that prints to our own output. */
export function startRelay(env: NodeJS.ProcessEnv): ChildProcess {
	return spawn(process.execPath, RELAY, { cwd: ROOT, stdio: "inherit", env });
}

/** Starts a relay whose log is ours to read. */
export function startQuietRelay(env: NodeJS.ProcessEnv): ChildProcessByStdio<null, Readable, Readable> {
	return spawn(process.execPath, RELAY, { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"], env });
}

/** True as soon as the relay at `url` would serve well; false where it ends, or is not ready within 30 s. */
export async function isReady(url: string, relay: ChildProcess): Promise<boolean> {
	const until = systemClock.monotonic() + READY_MS;
	while (systemClock.monotonic() < until && relay.exitCode === null) {
		const answer = await fetch(`${url}/readyz`).catch(() => null);
		await answer?.arrayBuffer();
		if (answer?.status === 200) return true;
		await pause(systemClock, ASK_AGAIN_MS);
	}
	return false;
}

/** Asks the process to end, and waits until it has. */
export function ended(child: ChildProcess): Promise<void> {
	if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
	return new Promise((resolve) => {
		child.once("exit", () => resolve());
		child.kill("SIGTERM");
	});
}
