// Whole systems for tests: a real chain, dev builders, and a relay in this process or relays in
// processes of their own, all on free ports. A block is built when the test asks for it. With
// RELAY_AS=edge the relay in this process is an edge, and its core another process: the same tests
// then say what a client of an edge sees.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import type { LookupFunction } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readRelayConfig } from "../../relay/config.ts";
import type { BuilderInput } from "../../relay/domain/builder.ts";
import { createRelay } from "../../relay/relay.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Server } from "../../shared/lifecycle.ts";
import { type Logger, silentLogger } from "../../shared/log.ts";
import { Metrics } from "../../shared/metrics.ts";
import {
	DEV_COINBASE_ALLOC,
	type DevBuilder,
	type DevBuilderOptions,
	startDevBuilder,
} from "../devnet/devBuilder.ts";
import { type DevChain, type DevChainOptions, startDevChain } from "../devnet/devChain.ts";
import { builderRow } from "../devnet/devSystem.ts";
import { freePort } from "../devnet/freePort.ts";
import { type GethOptions, startGeth } from "../devnet/gethChain.ts";
import { slotSetting } from "../devnet/slots.ts";
import { databaseOf, isEdge } from "./engine.ts";
import { type NodeProxy, startNodeProxy } from "./nodes.ts";
import {
	type LaunchedRelay,
	launchRelay,
	type RelayProcess,
	readyStatus,
	startRelayProcess,
} from "./processes.ts";
import { ADMIN_TOKEN, figureOf, METRICS_TOKEN, RelayClient } from "./relayClient.ts";
import { openTestStore } from "./storeEngines.ts";
import { PATIENCE_MS, until } from "./until.ts";

/** The gauge of the last block that a relay has processed. */
const HEAD = "relay_head_number";
/** Between two looks at a relay in this process, in ms. */
const LOOK_MS = 10;

export interface SystemOptions extends SurroundingsOptions {
	readonly log?: Logger;
	/** Whether the relay reaches its node through a faulty proxy, {@link TestSystem.node}. */
	readonly proxied?: boolean;
	/** The relay's clock. */
	readonly clock?: Clock;
	/** Finds the addresses of node and builders, instead of the system's name servers. */
	readonly lookup?: LookupFunction;
}

export interface TestSystem extends Omit<Surroundings, "folder"> {
	/** The proxy between relay and node; null unless `proxied`. */
	readonly node: NodeProxy | null;
	readonly client: RelayClient;
	/** The relay that decides, for its metrics; `client`, unless that is an edge. */
	readonly core: RelayClient;
	readonly relay: Pick<Server, "port" | "stop">;
	/** Stops the relay and starts another one on the same store and port. */
	/** Stops the relay and starts another on its store; `between` runs while there is none. */
	restart(between?: () => Promise<void>): Promise<void>;
	/** Has the next block built, waits until the relay has handled it, and returns its number. */
	nextBlock(): Promise<number>;
	/** Waits until the relay has handled a head of at least this number. */
	seesHead(number: number): Promise<void>;
	stop(): Promise<void>;
}

/** Starts everything; the caller stops it. */
export async function startSystem(options: SystemOptions = {}): Promise<TestSystem> {
	let node: NodeProxy | null = null;
	const { end, chain, builders, builder, env } = await startSurroundings(options, async (url) => {
		if (options.proxied === true) node = await startNodeProxy(url);
		return node?.url ?? url;
	});
	let metrics: HeadMetrics;
	const start = async (port: number): Promise<Server> => {
		metrics = new HeadMetrics();
		const config = readRelayConfig({ ...env, ...(await core?.start()), PORT: String(port) });
		const relay = createRelay(config, {
			log: options.log ?? silentLogger,
			...{ metrics, drainMs: 0, openStore: openTestStore },
			...(options.clock === undefined ? {} : { clock: options.clock }),
			...(options.lookup === undefined ? {} : { lookup: options.lookup }),
		});
		await relay.start();
		await until("the relay is ready", async () => (await readyStatus(urlOf(relay.port))) === 200);
		if (isEdge) await assertEdge(urlOf(relay.port));
		return relay;
	};
	const core = isEdge ? new CoreBehind(env) : null;
	let relay = await start(Number(env.PORT));
	const { port } = relay;
	const client = new RelayClient(urlOf(port));
	const seesHeads = async (number: number): Promise<void> => {
		await until(`block ${number} is processed`, () => metrics.head() >= number, PATIENCE_MS, LOOK_MS);
		if (core?.client !== undefined) await seesHead(core.client, number);
	};
	const stopRelay = async (): Promise<void> => {
		await relay.stop();
		await core?.stop();
	};
	return {
		chain,
		builders,
		builder,
		node,
		client,
		get core() {
			return core?.client ?? client;
		},
		env,
		relay: { port, stop: stopRelay },
		async restart(between) {
			await stopRelay();
			await between?.();
			relay = await start(port);
		},
		async nextBlock() {
			const { number } = await builder.buildBlock();
			await seesHeads(number);
			return number;
		},
		seesHead: seesHeads,
		async stop() {
			await relay.stop();
			await core?.kill();
			await node?.stop();
			await end();
		},
	};
}

/**
 * The metrics of a relay in this process. Its head is read without a scrape, which takes
 * milliseconds.
 */
class HeadMetrics extends Metrics {
	/** Like {@link headOf}. */
	head = (): number => -1;

	override gauge(name: string, help: string, read: () => number): void {
		if (name === HEAD) this.head = read;
		super.gauge(name, help, read);
	}
}

/** The core of an edge, as a process on a database of its own. */
class CoreBehind {
	readonly #env: Readonly<Record<string, string>>;
	#process: RelayProcess | null = null;

	/** `env`: the edge's settings. */
	constructor(env: Readonly<Record<string, string>>) {
		this.#env = env;
	}

	/** Its client, while it runs. */
	get client(): RelayClient | undefined {
		return this.#process?.client;
	}

	/** Starts it, and returns what the edge's settings need besides. */
	async start(): Promise<Readonly<Record<string, string>>> {
		const database = { DATABASE_URL: await databaseOf(this.#env.DATA_DIR ?? "") };
		const port = await freePort();
		this.#process = await startRelayProcess({
			env: { ...this.#env, ...database, PORT: String(port), INTERNAL_URL: urlOf(port), LOG_LEVEL: "warn" },
		});
		return database;
	}

	/** Ends it as a host does, if it runs. */
	async stop(): Promise<void> {
		await this.#process?.kill("SIGTERM");
		this.#process = null;
	}

	async kill(): Promise<void> {
		await this.#process?.kill();
	}
}

async function assertEdge(url: string): Promise<void> {
	const { role } = (await (await fetch(`${url}/info`)).json()) as { role: unknown };
	assert.equal(role, "edge", "the relay is an edge, as RELAY_AS says");
}

/** Options of a system without its relays. */
interface SurroundingsOptions {
	readonly chain?: DevChainOptions;
	/**
	 * A chain of go-ethereum instead, which GETH must name. The dev builder's coinbase has one ether
	 * there.
	 */
	readonly geth?: GethOptions;
	/** The dev builders. The first one builds the blocks; the others only record and answer. */
	readonly builders?: readonly (Partial<BuilderInput> & { readonly name: string })[];
	readonly builder?: Partial<DevBuilderOptions> | ((name: string) => Partial<DevBuilderOptions>);
	/** Settings of every relay besides those that connect it to chain and builders. */
	readonly env?: Readonly<Record<string, string>>;
}

/** A chain and its builders, to which relays can be added. */
interface Surroundings {
	readonly chain: DevChain;
	readonly builders: readonly DevBuilder[];
	/** The builder that builds the blocks. */
	readonly builder: DevBuilder;
	/** The data folder. */
	readonly folder: string;
	/** The settings of a relay. */
	readonly env: Readonly<Record<string, string>>;
}

/**
 * Starts chain and builders; `nodeFor` may put a proxy in front of the node at a URL. `end` stops
 * everything.
 */
async function startSurroundings(
	options: SurroundingsOptions,
	nodeFor: (url: string) => Promise<string> = async (url) => url,
): Promise<Surroundings & { end(): Promise<void> }> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	const { geth } = options;
	const chain =
		geth === undefined
			? await startDevChain(options.chain ?? {})
			: await startGeth({ ...geth, alloc: { ...geth.alloc, ...DEV_COINBASE_ALLOC } });
	const rows = options.builders ?? [{ name: "dev" }];
	const builders: DevBuilder[] = [];
	for (const [i, { name }] of rows.entries()) {
		const own = typeof options.builder === "function" ? options.builder(name) : options.builder;
		builders.push(await startDevBuilder({ chain, name, manual: true, builds: i === 0, ...own }));
	}
	const [builder] = builders;
	if (builder === undefined) throw new Error("a system needs a builder");
	const env = {
		PORT: "0",
		HOST: "127.0.0.1",
		ETH_RPC_URL: await nodeFor(chain.url),
		HEAD_POLL_MS: "150",
		ACCOUNT_TIMEOUT_MS: "20000",
		...Object.fromEntries([slotSetting(chain.slotSeconds)]),
		BUILDERS: JSON.stringify(rows.map((row, i) => ({ ...(builders[i] && builderRow(builders[i])), ...row }))),
		DATA_DIR: folder,
		RATE_LIMIT_RPS: "0",
		METRICS_TOKEN,
		ADMIN_TOKEN,
		MAX_HEAD_AGE_S: "86400",
		// Another test is about a core that is given up.
		...(isEdge ? { CORE_TIMEOUT_MS: "20000" } : {}),
		// One thread for each of hundreds of relays takes longer than what it does.
		SIGNATURE_THREAD: "false",
		...options.env,
	};
	const end = async (): Promise<void> => {
		for (const one of builders) await one.stop();
		await chain.stop();
		rmSync(folder, { recursive: true, force: true });
	};
	return { chain, builders, builder, folder, env, end };
}

export type ProcessSystem = Awaited<ReturnType<typeof startProcessSystem>>;

/** Starts chain and builders; the caller starts relays, and stops everything. */
export async function startProcessSystem(options: SurroundingsOptions = {}) {
	const { end, ...surroundings } = await startSurroundings({
		...options,
		env: { LOG_LEVEL: "info", SIGNATURE_THREAD: "true", ...options.env },
	});
	const { builder, env } = surroundings;
	const relays: LaunchedRelay[] = [];
	const cores: CoreBehind[] = [];
	return {
		...surroundings,
		/** Starts a relay; `over` overrides settings. It is stopped with the system at the latest. */
		async start(over: Readonly<Record<string, string>> = {}): Promise<RelayProcess> {
			const core = isEdge ? new CoreBehind({ ...env, ...over }) : null;
			if (core !== null) cores.push(core);
			const relay = await startRelayProcess({ env: { ...env, ...over, ...(await core?.start()) } });
			relays.push(relay);
			if (isEdge) await assertEdge(relay.url);
			return relay;
		},
		/** Like `start`, without waiting until it is ready. */
		launch(over: Readonly<Record<string, string>> = {}): LaunchedRelay {
			const relay = launchRelay({ env: { ...env, ...over } });
			relays.push(relay);
			return relay;
		},
		/**
		 * Waits until the block builder has received each raw transaction (0x hex) in a request after
		 * number `after`.
		 */
		async delivered(raws: readonly string[], after = 0): Promise<void> {
			for (const raw of raws) {
				await builder.waitForRequest(
					({ seq, params }) => seq > after && JSON.stringify(params).includes(raw),
				);
			}
		},
		/** The number of the last request that has been sent to the block builder. */
		async lastRequest(): Promise<number> {
			await builder.catchUp();
			return builder.requests().at(-1)?.seq ?? 0;
		},
		/** Has the next block built, waits until `relay` has handled it, and returns its number. */
		async nextBlock({ client }: RelayProcess): Promise<number> {
			const { number } = await builder.buildBlock();
			for (const one of [client, ...cores.flatMap((core) => core.client ?? [])]) await seesHead(one, number);
			return number;
		},
		async stop(): Promise<void> {
			for (const one of [...relays, ...cores]) await one.kill();
			await end();
		},
	};
}

function urlOf(port: number): string {
	return `http://127.0.0.1:${port}`;
}

/**
 * Submits `raw`, a blob transaction, until the relay has verified its blobs: the library takes
 * seconds to load, and longer than a submission waits on a busy machine.
 */
export async function verifiesBlobs(client: RelayClient, raw: string): Promise<void> {
	await until("the relay verifies blobs", async () => {
		const { error } = await client.ask("eth_sendRawTransaction", [raw]);
		return !/too many blobs are being verified/.test(error?.message ?? "");
	});
}

/** Waits until the relay has handled a head of at least this number. */
export async function seesHead(client: RelayClient, number: number): Promise<void> {
	await until(`the relay sees block ${number}`, async () => (await headOf(client)) >= number);
}

/**
 * The number of the head that the relay has handled, from its metrics; NaN or -1 before the first.
 */
export async function headOf(client: RelayClient): Promise<number> {
	return figureOf(client.url, HEAD);
}

/** How long {@link mineAll} waits for a transaction before it builds a block without one, in ms. */
const MISSED_SLOT_MS = 20_000;

/**
 * Builds blocks, each as soon as it can hold one of `txs`, until all of them are mined. A
 * transaction whose simulation took too long on a busy machine is sent again for the next block, so
 * the chain goes on without it after {@link MISSED_SLOT_MS}.
 */
export async function mineAll(
	{ chain, builder }: Pick<Surroundings, "chain" | "builder">,
	txs: readonly { readonly hash: string }[],
	ms?: number,
): Promise<void> {
	const isMined = async (hash: string) => (await chain.rpc("eth_getTransactionReceipt", [hash])) !== null;
	const isPublic = async (hash: string) => (await chain.rpc("eth_getTransactionByHash", [hash])) !== null;
	let open = txs.map(({ hash }) => hash);
	let builtAt = Date.now();
	const mine = async (): Promise<boolean> => {
		const mined = await Promise.all(open.map(isMined));
		open = open.filter((_, i) => !mined[i]);
		const block = Number(await chain.rpc("eth_blockNumber")) + 1;
		const isHeld = (hash: string) =>
			builder.liveOrders(hash).some(({ firstBlock, lastBlock }) => firstBlock <= block && block <= lastBlock);
		const ready = await Promise.all(open.map((hash) => isHeld(hash) || isPublic(hash)));
		if (ready.includes(true) || Date.now() - builtAt > MISSED_SLOT_MS) {
			await builder.buildBlock();
			builtAt = Date.now();
		}
		return open.length === 0;
	};
	await until("all are mined", mine, ms);
}
