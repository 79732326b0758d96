// The common parts of all cells of the fault matrix: a real chain with funded accounts, a builder
// that builds blocks by itself, a second relay as the fallback, and a constant watch on the node's
// public mempool.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readRelayConfig } from "../../relay/config.ts";
import { createRelay } from "../../relay/relay.ts";
import { pause, systemClock } from "../../shared/clock.ts";
import type { Server } from "../../shared/lifecycle.ts";
import { silentLogger } from "../../shared/log.ts";
import { startDevBuilder } from "../devnet/devBuilder.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import { startPlainBuilder } from "../support/plainBuilder.ts";
import { readyStatus } from "../support/processes.ts";
import { openTestStore } from "../support/storeEngines.ts";
import { type TestAccount, testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

/** A call to a builder. */
export interface BuilderCall {
	readonly method: string;
	readonly params: readonly unknown[];
}

/** The parts of a builder that the cells need. */
export interface BuilderPart {
	readonly url: string;
	buildBlock(): Promise<unknown>;
	/** Runs `look` while nothing private is in the node's pool. */
	outsideBurst<T>(look: () => Promise<T>): Promise<T>;
	/** The calls that it got but for the first `count`. */
	calls(count: number): readonly BuilderCall[];
	stop(): Promise<void>;
}

export interface World {
	readonly chain: DevChain;
	readonly builder: BuilderPart;
	/** The second relay's URL, and that of the chain behind it. */
	readonly fallbackUrl: string;
	/** A folder for the data of a process, removed at the end. */
	readonly folder: (name: string) => string;
	/** A relay's settings for this world, beside its port and folder. */
	readonly relayEnv: Readonly<Record<string, string>>;
	/**
	 * One that nobody else has, with 1,000 Ether and at nonce 0; undefined where there are no more.
	 */
	nextAccount(): TestAccount | undefined;
	/** As many as that. Throws where there are not enough. */
	accounts(count: number): readonly TestAccount[];
	/** One that nobody else has, without money. */
	poorAccount(): TestAccount;
	/** Blocks that were built since its start. */
	readonly blocks: number;
	/** Hashes of what is in a block. */
	readonly mined: ReadonlySet<string>;
	/**
	 * Hashes that were in the node's pool when no block was being built. It is read before each block
	 * at least.
	 */
	readonly publicHashes: ReadonlySet<string>;
	/**
	 * Transactions that builders were allowed to revert: hashes of bundles' transactions, and others
	 * as raw bytes (0x hex).
	 */
	readonly mayRevert: ReadonlySet<string>;
	stop(): Promise<void>;
}

export interface WorldOptions {
	/** Between two blocks, in ms of real time. The chain's slots are of one second whatever it is. */
	readonly blockMs: number;
	/**
	 * How many accounts there are to be had. They get their money before any relay is started: one
	 * that is a block behind the chain would not see it.
	 */
	readonly accounts: number;
	/** `dev` unless said; `plain` leaves the machine to what is measured. */
	readonly builder?: "dev" | "plain";
}

/** Chain time between blocks; also the setting of relays and boosts. */
export const SLOT_SECONDS = 1;
/** anvil mixes up longer batches. */
const CHAIN_BATCH = 16;
const BALANCE = `0x${(10n ** 21n).toString(16)}`;
const FIRST_ACCOUNT = 1_000_000;
const FIRST_POOR = 2_000_000;

/** Starts it all; the caller stops it. */
export async function startWorld(options: WorldOptions): Promise<World> {
	const root = mkdtempSync(join(tmpdir(), "leeward-faults-"));
	const chain = await startDevChain({ slotSeconds: SLOT_SECONDS });
	const rich = await fundedAccounts(chain, options.accounts);
	await chain.rpc("evm_mine", []);
	const builder = options.builder === "plain" ? await startPlainMiner(chain) : await startDev(chain);
	const relayEnv = {
		HOST: "127.0.0.1",
		ETH_RPC_URL: chain.url,
		HEAD_POLL_MS: "150",
		ACCOUNT_TIMEOUT_MS: "20000",
		SLOT_SECONDS: String(SLOT_SECONDS),
		BUILDERS: JSON.stringify([{ name: "dev", url: builder.url }]),
		RATE_LIMIT_RPS: "0",
		MAX_HEAD_AGE_S: "86400",
		TX_TTL_BLOCKS: "1000",
	};
	const fallback = await startRelayHere({ ...relayEnv, DATA_DIR: join(root, "fallback") });
	const watch = new ChainWatch(chain, builder);
	let [blocks, poor] = [0, 0];
	let over = false;
	const building = (async () => {
		while (!over) {
			await watch.look();
			await builder.buildBlock();
			await watch.readBlock();
			blocks += 1;
			await pause(systemClock, options.blockMs / 2);
			await watch.look();
			await pause(systemClock, options.blockMs / 2);
		}
	})();
	return {
		chain,
		builder,
		fallbackUrl: `http://127.0.0.1:${fallback.port}`,
		folder: (name) => join(root, name),
		relayEnv,
		nextAccount: () => rich.pop(),
		accounts(count) {
			if (count > rich.length) throw new Error("this world has no more accounts");
			return rich.splice(0, count);
		},
		poorAccount() {
			poor += 1;
			return testAccount(FIRST_POOR + poor);
		},
		get blocks() {
			return blocks;
		},
		mined: watch.mined,
		publicHashes: watch.publicHashes,
		mayRevert: watch.mayRevert,
		async stop() {
			over = true;
			await building;
			await fallback.stop();
			await builder.stop();
			await chain.stop();
			rmSync(root, { recursive: true, force: true });
		},
	};
}

async function fundedAccounts(chain: DevChain, count: number): Promise<TestAccount[]> {
	const made = Array.from({ length: count }, (_, i) => testAccount(FIRST_ACCOUNT + i));
	for (let i = 0; i < count; i += CHAIN_BATCH) {
		const part = made.slice(i, i + CHAIN_BATCH);
		const calls = part.map(({ address }) => ({ method: "anvil_setBalance", params: [address, BALANCE] }));
		const outcomes = await chain.batch(calls);
		if (outcomes.some(({ ok }) => !ok)) throw new Error("the chain gives no money");
	}
	return made;
}

async function startDev(chain: DevChain): Promise<BuilderPart> {
	const dev = await startDevBuilder({ chain, manual: true, recordLimit: 500_000 });
	return {
		url: dev.url,
		buildBlock: () => dev.buildBlock(),
		outsideBurst: (look) => dev.outsideBurst(look),
		calls: (count) => dev.requests(({ seq }) => seq > count),
		stop: () => dev.stop(),
	};
}

/**
 * A cheap builder: mines what it is sent as it is, in one burst, without trials, so that the
 * machine is left to what is measured. The dev builder is the real one.
 */
async function startPlainMiner(chain: DevChain): Promise<BuilderPart> {
	const builder = await startPlainBuilder();
	const mined = new Set<string>();
	const calls: BuilderCall[] = [];
	let burst: Promise<unknown> = Promise.resolve();
	const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
		const done = burst.then(work);
		burst = done.catch(() => {});
		return done;
	};
	const mine = async (): Promise<void> => {
		const raws = [...builder.raws()].filter((raw) => !mined.has(raw));
		for (const body of builder.bodies) calls.push(...callsOf(body));
		builder.reset();
		for (let i = 0; i < raws.length; i += CHAIN_BATCH) {
			const part = raws.slice(i, i + CHAIN_BATCH);
			// One that is refused now (its nonce is not due) is sent again by its relay with the next
			// head.
			const taken = await chain.batch(
				part.map((raw) => ({ method: "eth_sendRawTransaction", params: [raw] })),
			);
			for (const [at, raw] of part.entries()) if (taken[at]?.ok === true) mined.add(raw);
		}
		await chain.rpc("evm_mine", []);
	};
	return {
		url: builder.url,
		buildBlock: () => inTurn(mine),
		outsideBurst: (look) => inTurn(look),
		calls: (count) => calls.slice(count),
		stop: () => builder.stop(),
	};
}

function callsOf(body: string): readonly BuilderCall[] {
	const json = JSON.parse(body) as BuilderCall | BuilderCall[];
	return Array.isArray(json) ? json : [json];
}

/** A relay in this process that is ready. */
export async function startRelayHere(env: Readonly<Record<string, string>>): Promise<Server> {
	const config = readRelayConfig({ PORT: "0", ...env });
	const relay = createRelay(config, {
		log: silentLogger,
		...{ drainMs: 0, openStore: openTestStore },
	});
	await relay.start();
	await until(
		"the relay is ready",
		async () => (await readyStatus(`http://127.0.0.1:${relay.port}`)) === 200,
	);
	return relay;
}

/** The transactions that the chain and its builder show, collected as it goes on. */
class ChainWatch {
	readonly mined = new Set<string>();
	readonly publicHashes = new Set<string>();
	readonly mayRevert = new Set<string>();
	readonly #chain: DevChain;
	readonly #builder: BuilderPart;
	#calls = 0;

	constructor(chain: DevChain, builder: BuilderPart) {
		this.#chain = chain;
		this.#builder = builder;
	}

	/** Looks into the node's pool, where nothing private is now. */
	async look(): Promise<void> {
		const content = await this.#builder.outsideBurst(() => this.#chain.rpc("txpool_content"));
		for (const part of Object.values(
			content as Record<string, Record<string, Record<string, { hash: string }>>>,
		)) {
			for (const byNonce of Object.values(part)) {
				for (const { hash } of Object.values(byNonce)) this.publicHashes.add(hash);
			}
		}
	}

	async readBlock(): Promise<void> {
		const block = await this.#chain.rpc("eth_getBlockByNumber", ["latest", false]);
		for (const hash of (block as { transactions: string[] }).transactions) this.mined.add(hash);
		const calls = this.#builder.calls(this.#calls);
		this.#calls += calls.length;
		for (const { method, params } of calls) {
			const { revertingTxHashes, tx } = (params[0] ?? {}) as Record<string, unknown>;
			if (Array.isArray(revertingTxHashes))
				for (const hash of revertingTxHashes) this.mayRevert.add(String(hash));
			if (/^eth_sendPrivate/.test(method)) this.mayRevert.add(String(tx ?? params[0]));
		}
	}
}
