// `npm start`: the whole system on this machine. What comes in is the environment, what goes out are a dev chain, a
// dev builder that builds its blocks for real, and the relay as a process of its own; with ETH_RPC_URL set, the
// relay alone against that node.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Wallet } from "ethers";
import { type DevBuilder, startDevBuilder } from "./devBuilder.ts";
import { type DevChain, startDevChain } from "./devChain.ts";

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const CHAIN_PORT = 8545;
const BUILDER_PORT = 8083;
/** Short, so that a first transaction is mined while one looks on. */
const DEV_SLOT_SECONDS = "2";
/** How long the relay may take to become ready, in ms. */
const READY_MS = 30_000;

interface DevSystem {
	readonly chain: DevChain;
	readonly builder: DevBuilder;
	readonly folder: string;
}

async function main(): Promise<void> {
	const own = (process.env.ETH_RPC_URL ?? "") === "";
	const slotSeconds = process.env.SLOT_SECONDS ?? DEV_SLOT_SECONDS;
	const system = own ? await startSystem(Number(slotSeconds)) : null;
	const port = process.env.PORT ?? "8080";
	const relay = spawn(process.execPath, ["--import", "tsx", "relay/main.ts"], {
		cwd: ROOT,
		stdio: "inherit",
		env: { ...process.env, ...(system === null ? {} : settingsFor(system, slotSeconds)), PORT: port },
	});
	let stopping = false;
	const stop = async (code: number): Promise<void> => {
		if (stopping) return;
		stopping = true;
		await ended(relay);
		await system?.builder.stop();
		await system?.chain.stop();
		if (system !== null) rmSync(system.folder, { recursive: true, force: true });
		process.exit(code);
	};
	relay.on("exit", (code) => void stop(code ?? 1));
	process.on("SIGINT", () => void stop(0));
	process.on("SIGTERM", () => void stop(0));
	const url = `http://127.0.0.1:${port}`;
	if (await ready(url, relay)) print(system === null ? `relay ${url}` : welcome(system, url));
}

async function startSystem(slotSeconds: number): Promise<DevSystem> {
	if (!(slotSeconds >= 1 && slotSeconds <= 60)) {
		throw new Error("SLOT_SECONDS is not valid: expected seconds, 1 to 60, for example SLOT_SECONDS=2");
	}
	const chain = await startDevChain({ port: CHAIN_PORT, slotSeconds });
	const builder = await startDevBuilder({ chain, port: BUILDER_PORT, slotSeconds });
	return { chain, builder, folder: mkdtempSync(join(tmpdir(), "leeward-")) };
}

/** What the relay is told of the dev system; a setting that is set already stays as it is. */
function settingsFor({ chain, builder, folder }: DevSystem, slotSeconds: string): NodeJS.ProcessEnv {
	const settings: NodeJS.ProcessEnv = {
		ETH_RPC_URL: chain.url,
		ETH_WS_URL: chain.wsUrl,
		BUILDERS: JSON.stringify([{ name: builder.name, url: builder.url }]),
		FEE_RECIPIENT: builder.coinbase,
		SIGNING_KEY: Wallet.createRandom().privateKey,
		SLOT_SECONDS: slotSeconds,
		HOST: "127.0.0.1",
		RATE_LIMIT_RPS: "0",
		LOG_LEVEL: "warn",
	};
	const kept = Object.entries(settings).filter(([name]) => (process.env[name] ?? "") === "");
	// Always a fresh folder: the chain is a new one at each start.
	return { ...Object.fromEntries(kept), DATA_DIR: folder };
}

async function ready(url: string, relay: ChildProcess): Promise<boolean> {
	const until = Date.now() + READY_MS;
	while (Date.now() < until && relay.exitCode === null) {
		const answer = await fetch(`${url}/readyz`).catch(() => null);
		if (answer?.status === 200) return true;
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
	if (relay.exitCode === null) print(`the relay is not ready yet: see ${url}/readyz`);
	return false;
}

function welcome({ chain, builder }: DevSystem, url: string): string {
	const account = chain.accounts[0];
	return `
Leeward is running.

  relay        ${url}          POST /fast /noreverts /fullprivacy /maxbackruns /nochecks
  status       ${url}/tx/<hash>, ${url}/tx/<hash>/events
  dev chain    ${chain.url}          chain id ${chain.chainId}, a block every ${chain.slotSeconds} s
  dev builder  ${builder.url}

Send a first transaction, privately:

  npx cast send --rpc-url ${url}/fast \\
    --private-key ${account?.privateKey} \\
    --value 1ether 0x000000000000000000000000000000000000dEaD

The key is one of anvil's well-known ones (${account?.address}); the chain is gone when
this ends. Stop with Ctrl-C.
`;
}

function ended(child: ChildProcess): Promise<void> {
	if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
	return new Promise((resolve) => {
		child.once("exit", () => resolve());
		child.kill("SIGTERM");
	});
}

function print(text: string): void {
	process.stdout.write(`${text}\n`);
}

main().catch((thrown: unknown) => {
	process.stderr.write(`npm start: ${thrown instanceof Error ? thrown.message : "can't start"}\n`);
	process.exit(1);
});
