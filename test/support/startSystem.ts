// Starts a whole system for a test: a real chain, real builders and a relay in this process, all on free ports.
// Blocks are built when the test says so.

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
import { openBoth } from "./bothEngines.ts";
import { METRICS_TOKEN, metricsOf } from "./metricsPage.ts";
import { type NodeProxy, startNodeProxy } from "./nodeProxy.ts";
import { RelayClient } from "./relayClient.ts";

export interface SystemOptions {
	readonly chain?: DevChainOptions;
	/** One dev builder each; the first one builds the blocks, the others record and answer. */
	readonly builders?: readonly (Partial<BuilderInput> & { readonly name: string })[];
	readonly builder?: Partial<DevBuilderOptions>;
	/** The relay's environment beside what joins it to the others. */
	readonly env?: Readonly<Record<string, string>>;
	readonly log?: Logger;
	/** The relay reaches its node through a proxy that can fail it: {@link TestSystem.node}. */
	readonly proxied?: boolean;
}

export interface TestSystem {
	readonly chain: DevChain;
	readonly builders: readonly DevBuilder[];
	/** The one that builds. */
	readonly builder: DevBuilder;
	/** What stands between relay and node, where that was asked for. */
	readonly node: NodeProxy | null;
	readonly client: RelayClient;
	readonly relay: Server;
	/** The relay's settings, for one that is started as a process. */
	readonly env: Readonly<Record<string, string>>;
	/** Stops the relay and starts another one on the same store and port. */
	restart(): Promise<void>;
	/** Has the next block built and waits until the relay has worked it off. */
	nextBlock(): Promise<number>;
	stop(): Promise<void>;
}

/** Starts everything; the caller stops it. */
export async function startSystem(options: SystemOptions = {}): Promise<TestSystem> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	const chain = await startDevChain(options.chain ?? {});
	const rows = options.builders ?? [{ name: "dev" }];
	const builders: DevBuilder[] = [];
	for (const [i, { name }] of rows.entries()) {
		builders.push(await startDevBuilder({ chain, name, manual: true, builds: i === 0, ...options.builder }));
	}
	const [builder] = builders;
	if (builder === undefined) throw new Error("a system needs a builder");
	const node = options.proxied === true ? await startNodeProxy(chain.url) : null;
	const env = {
		PORT: "0",
		HOST: "127.0.0.1",
		ETH_RPC_URL: node?.url ?? chain.url,
		HEAD_POLL_MS: "20",
		SLOT_SECONDS: String(chain.slotSeconds),
		BUILDERS: JSON.stringify(rows.map((row, i) => ({ url: builders[i]?.url, ...row }))),
		DATA_DIR: folder,
		RATE_LIMIT_RPS: "0",
		METRICS_TOKEN,
		MAX_HEAD_AGE_S: "86400",
		...options.env,
	};
	const start = async (port: number): Promise<Server> => {
		const config = readRelayConfig({ ...env, PORT: String(port) });
		const relay = createRelay(config, {
			log: options.log ?? silentLogger,
			...{ version: "0.0.0", drainMs: 0, openStore: openBoth },
		});
		await relay.start();
		await ready(relay.port);
		return relay;
	};
	let relay = await start(Number(env.PORT));
	const { port } = relay;
	const client = new RelayClient(`http://127.0.0.1:${port}`);
	const seesHead = async (block: number): Promise<void> => {
		const end = Date.now() + 30_000;
		while ((await headOf(client)) < block) {
			if (Date.now() > end) throw new Error(`the relay has not seen block ${block} within 30 s`);
			await new Promise((resolve) => setTimeout(resolve, 5));
		}
	};
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
			await seesHead(number);
			return number;
		},
		async stop() {
			await relay.stop();
			for (const one of builders) await one.stop();
			await node?.stop();
			await chain.stop();
			rmSync(folder, { recursive: true, force: true });
		},
	};
}

/** The head that the relay has worked off, as its metrics tell. */
async function headOf(client: RelayClient): Promise<number> {
	const text = await metricsOf(client.url);
	return Number(/^relay_head_number (\d+)$/m.exec(text)?.[1] ?? -1);
}

async function ready(port: number): Promise<void> {
	const end = Date.now() + 30_000;
	for (;;) {
		const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
		const text = await answer.text();
		if (answer.ok) return;
		if (Date.now() > end) throw new Error(`the relay is not ready: ${text}`);
		await new Promise((resolve) => setTimeout(resolve, 5));
	}
}
