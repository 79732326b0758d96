// Whole systems for tests: a real chain, real builders, and a relay in this process or relays that are processes, all on
// free ports. Blocks are built when the test says so.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readRelayConfig } from "../../relay/config.ts";
import type { BuilderInput } from "../../relay/domain/builder.ts";
import { createRelay } from "../../relay/relay.ts";
import type { Server } from "../../shared/lifecycle.ts";
import { type Logger, silentLogger } from "../../shared/log.ts";
import { type DevBuilder, type DevBuilderOptions, startDevBuilder } from "../devnet/devBuilder.ts";
import { type DevChain, type DevChainOptions, startDevChain } from "../devnet/devChain.ts";
import { type NodeProxy, startNodeProxy } from "./nodes.ts";
import {
	type LaunchedRelay,
	launchRelay,
	type RelayProcess,
	readyStatus,
	startRelayProcess,
} from "./processes.ts";
import { METRICS_TOKEN, metricsOf, RelayClient } from "./relayClient.ts";
import { openBoth } from "./storeEngines.ts";
import { until } from "./until.ts";

export interface SystemOptions extends SurroundingsOptions {
	readonly log?: Logger;
	/** The relay reaches its node through a proxy that can fail it: {@link TestSystem.node}. */
	readonly proxied?: boolean;
}

export interface TestSystem extends Omit<Surroundings, "folder"> {
	/** What stands between relay and node, where that was asked for. */
	readonly node: NodeProxy | null;
	readonly client: RelayClient;
	readonly relay: Server;
	/** Stops the relay and starts another one on the same store and port. */
	restart(): Promise<void>;
	/** Has the next block built and waits until the relay has worked it off. */
	nextBlock(): Promise<number>;
	stop(): Promise<void>;
}

/** Starts everything; the caller stops it. */
export async function startSystem(options: SystemOptions = {}): Promise<TestSystem> {
	let node: NodeProxy | null = null;
	const { end, chain, builders, builder, env } = await startSurroundings(options, async (url) => {
		if (options.proxied === true) node = await startNodeProxy(url);
		return node?.url ?? url;
	});
	const start = async (port: number): Promise<Server> => {
		const config = readRelayConfig({ ...env, PORT: String(port) });
		const relay = createRelay(config, {
			log: options.log ?? silentLogger,
			...{ version: "0.0.0", drainMs: 0, openStore: openBoth },
		});
		await relay.start();
		await until("the relay is ready", async () => (await readyStatus(urlOf(relay.port))) === 200);
		return relay;
	};
	let relay = await start(Number(env.PORT));
	const { port } = relay;
	const client = new RelayClient(urlOf(port));
	return {
		chain,
		builders,
		builder,
		node,
		client,
		env,
		get relay() {
			return relay;
		},
		async restart() {
			await relay.stop();
			relay = await start(port);
		},
		async nextBlock() {
			const { number } = await builder.buildBlock();
			await seesHead(client, number);
			return number;
		},
		async stop() {
			await relay.stop();
			await node?.stop();
			await end();
		},
	};
}

/** What a system is made of beside its relays. */
interface SurroundingsOptions {
	readonly chain?: DevChainOptions;
	/** One dev builder each; the first one builds the blocks, the others record and answer. */
	readonly builders?: readonly (Partial<BuilderInput> & { readonly name: string })[];
	readonly builder?: Partial<DevBuilderOptions>;
	/** Every relay's environment beside what joins it to the others. */
	readonly env?: Readonly<Record<string, string>>;
}

/** A chain and its builders, which a relay may join. */
interface Surroundings {
	readonly chain: DevChain;
	readonly builders: readonly DevBuilder[];
	/** The one that builds. */
	readonly builder: DevBuilder;
	/** The data folder. */
	readonly folder: string;
	/** What a relay is started with. */
	readonly env: Readonly<Record<string, string>>;
}

/** Starts them; `nodeFor` puts something between the relay and the node at a URL. `end` stops it all. */
async function startSurroundings(
	options: SurroundingsOptions,
	nodeFor: (url: string) => Promise<string> = async (url) => url,
): Promise<Surroundings & { end(): Promise<void> }> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	const chain = await startDevChain(options.chain ?? {});
	const rows = options.builders ?? [{ name: "dev" }];
	const builders: DevBuilder[] = [];
	for (const [i, { name }] of rows.entries()) {
		builders.push(await startDevBuilder({ chain, name, manual: true, builds: i === 0, ...options.builder }));
	}
	const [builder] = builders;
	if (builder === undefined) throw new Error("a system needs a builder");
	const env = {
		PORT: "0",
		HOST: "127.0.0.1",
		ETH_RPC_URL: await nodeFor(chain.url),
		HEAD_POLL_MS: "20",
		SLOT_SECONDS: String(chain.slotSeconds),
		BUILDERS: JSON.stringify(rows.map((row, i) => ({ url: builders[i]?.url, ...row }))),
		DATA_DIR: folder,
		RATE_LIMIT_RPS: "0",
		METRICS_TOKEN,
		MAX_HEAD_AGE_S: "86400",
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

const DELIVERED_MS = 10_000;

/** Starts chain and builders; the caller starts relays, and stops it all. */
export async function startProcessSystem(options: SurroundingsOptions = {}) {
	const { end, ...surroundings } = await startSurroundings({
		...options,
		env: { LOG_LEVEL: "info", ...options.env },
	});
	const { builder, env } = surroundings;
	const relays: LaunchedRelay[] = [];
	return {
		...surroundings,
		/** Starts a relay, with `env` over the usual one; it ends with the system at the latest. */
		async start(over: Readonly<Record<string, string>> = {}): Promise<RelayProcess> {
			const relay = await startRelayProcess({ env: { ...env, ...over } });
			relays.push(relay);
			return relay;
		},
		/** The same, waiting for nothing. */
		launch(over: Readonly<Record<string, string>> = {}): LaunchedRelay {
			const relay = launchRelay({ env: { ...env, ...over } });
			relays.push(relay);
			return relay;
		},
		/** Waits until the building builder has taken each raw transaction (0x hex) in a request behind number `after`. */
		async delivered(raws: readonly string[], after = 0): Promise<void> {
			for (const raw of raws) {
				await builder.waitForRequest(
					({ seq, params }) => seq > after && JSON.stringify(params).includes(raw),
					DELIVERED_MS,
				);
			}
		},
		/** The number of the last request that the building builder got. */
		lastRequest: (): number => builder.requests().at(-1)?.seq ?? 0,
		/** Has the next block built and waits until `relay` has worked it off; its number. */
		async nextBlock({ client }: RelayProcess): Promise<number> {
			const { number } = await builder.buildBlock();
			await seesHead(client, number);
			return number;
		},
		async stop(): Promise<void> {
			for (const relay of relays) await relay.kill();
			await end();
		},
	};
}

function urlOf(port: number): string {
	return `http://127.0.0.1:${port}`;
}

/** Waits until the relay has taken up a head of at least this number. */
export async function seesHead(client: RelayClient, number: number): Promise<void> {
	await until(`the relay sees block ${number}`, async () => (await headOf(client)) >= number);
}

/** The head that the relay has worked off, as its metrics tell. */
export async function headOf(client: RelayClient): Promise<number> {
	const text = await metricsOf(client.url);
	return Number(/^relay_head_number (\d+)$/m.exec(text)?.[1] ?? -1);
}
