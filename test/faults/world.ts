// What all cells of the fault matrix share: a real chain, a real builder whose blocks come by themselves, and a second
// relay that is everybody's fallback. Accounts with money go out; the node's public mempool is looked at all the time.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readRelayConfig } from "../../relay/config.ts";
import { createRelay, type Relay } from "../../relay/relay.ts";
import { pause, systemClock } from "../../shared/clock.ts";
import { silentLogger } from "../../shared/log.ts";
import { startDevBuilder } from "../devnet/devBuilder.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import { type TestAccount, testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";
import { startPlainMiner } from "./plainMiner.ts";

/** What the cells need of a builder. */
export interface BuilderPart {
	readonly url: string;
	buildBlock(): Promise<unknown>;
	/** Runs `look` while nothing private is in the node's pool. */
	outsideBurst<T>(look: () => Promise<T>): Promise<T>;
	/** All calls that it got. */
	calls(): readonly { readonly method: string; readonly params: readonly unknown[] }[];
	stop(): Promise<void>;
}

export interface World {
	readonly chain: DevChain;
	readonly builder: BuilderPart;
	/** The second relay's URL, and that of the chain behind it. */
	readonly fallbackUrl: string;
	/** A folder for the data of a process, removed at the end. */
	readonly folder: (name: string) => string;
	/** What a relay is told of this world, beside its port and folder. */
	readonly relayEnv: Readonly<Record<string, string>>;
	/** `count` accounts that nobody else has; 1,000 Ether each, at nonce 0. */
	accounts(count: number): Promise<readonly TestAccount[]>;
	/** Blocks that were built since its start. */
	readonly blocks: number;
	/** Hashes that were in the node's pool when no block was being built. */
	publicHashes(): ReadonlySet<string>;
	/** How often the pool was looked at. */
	readonly looks: number;
	stop(): Promise<void>;
}

export interface WorldOptions {
	/** Between two blocks, in ms of real time. The chain's slots are of one second whatever it is. */
	readonly blockMs: number;
	/** `dev` unless said; `plain` leaves the machine to what is measured. */
	readonly builder?: "dev" | "plain";
}

/** Chain time between blocks; also what relays and boosts are told. */
export const SLOT_SECONDS = 1;
const LOOK_MS = 25;
const READY_MS = 20_000;
/** anvil mixes up longer batches. */
const CHAIN_BATCH = 16;
const BALANCE = `0x${(10n ** 21n).toString(16)}`;
const FIRST_ACCOUNT = 1_000_000;

/** Starts it all; the caller stops it. */
export async function startWorld(options: WorldOptions): Promise<World> {
	const root = mkdtempSync(join(tmpdir(), "leeward-faults-"));
	const chain = await startDevChain({ slotSeconds: SLOT_SECONDS });
	const builder = options.builder === "plain" ? await startPlainMiner(chain) : await startDev(chain);
	const relayEnv = {
		HOST: "127.0.0.1",
		ETH_RPC_URL: chain.url,
		HEAD_POLL_MS: "50",
		SLOT_SECONDS: String(SLOT_SECONDS),
		BUILDERS: JSON.stringify([{ name: "dev", url: builder.url }]),
		RATE_LIMIT_RPS: "0",
		MAX_HEAD_AGE_S: "86400",
		TX_TTL_BLOCKS: "1000",
	};
	const fallback = await startRelayHere({ ...relayEnv, DATA_DIR: join(root, "fallback") });
	const seen = new Set<string>();
	let [blocks, looks, next] = [0, 0, FIRST_ACCOUNT];
	let over = false;
	const building = (async () => {
		while (!over) {
			await builder.buildBlock();
			blocks += 1;
			await pause(systemClock, options.blockMs);
		}
	})();
	const looking = (async () => {
		while (!over) {
			for (const hash of await builder.outsideBurst(() => poolHashes(chain))) seen.add(hash);
			looks += 1;
			await pause(systemClock, LOOK_MS);
		}
	})();
	return {
		chain,
		builder,
		fallbackUrl: `http://127.0.0.1:${fallback.port}`,
		folder: (name) => join(root, name),
		relayEnv,
		async accounts(count) {
			const made = Array.from({ length: count }, (_, i) => testAccount(next + i));
			next += count;
			for (let i = 0; i < count; i += CHAIN_BATCH) {
				const calls = made.slice(i, i + CHAIN_BATCH).map(({ address }) => ({
					method: "anvil_setBalance",
					params: [address, BALANCE],
				}));
				const failed = (await chain.batch(calls)).find(({ ok }) => !ok);
				if (failed !== undefined) throw new Error("the chain gives no money");
			}
			return made;
		},
		get blocks() {
			return blocks;
		},
		publicHashes: () => seen,
		get looks() {
			return looks;
		},
		async stop() {
			over = true;
			await Promise.all([building, looking]);
			await fallback.stop();
			await builder.stop();
			await chain.stop();
			rmSync(root, { recursive: true, force: true });
		},
	};
}

async function startDev(chain: DevChain): Promise<BuilderPart> {
	const dev = await startDevBuilder({ chain, manual: true, recordLimit: 500_000 });
	return {
		url: dev.url,
		buildBlock: () => dev.buildBlock(),
		outsideBurst: (look) => dev.outsideBurst(look),
		calls: () => dev.requests(),
		stop: () => dev.stop(),
	};
}

/** A relay in this process that is ready. */
export async function startRelayHere(env: Readonly<Record<string, string>>): Promise<Relay> {
	const config = readRelayConfig({ PORT: "0", ...env });
	const relay = createRelay(config, { log: silentLogger, version: "0.0.0", drainMs: 0 });
	await relay.start();
	await until("the relay is ready", () => isReady(`http://127.0.0.1:${relay.port}`), READY_MS);
	return relay;
}

/** Whether /readyz is 200; false where nothing answers. */
export async function isReady(url: string): Promise<boolean> {
	try {
		const answer = await fetch(`${url}/readyz`);
		await answer.arrayBuffer();
		return answer.ok;
	} catch {
		return false;
	}
}

async function poolHashes(chain: DevChain): Promise<string[]> {
	const pool = (await chain.rpc("txpool_content")) as Record<
		string,
		Record<string, Record<string, { hash: string }>>
	>;
	return Object.values(pool).flatMap((part) =>
		Object.values(part).flatMap((byNonce) => Object.values(byNonce).map(({ hash }) => hash)),
	);
}
