// Starts a whole system for a test: a real chain, real builders and a relay in this process, all on free ports.
// Blocks are built when the test says so.

import { readRelayConfig } from "../../relay/config.ts";
import { createRelay } from "../../relay/relay.ts";
import type { Server } from "../../shared/lifecycle.ts";
import { type Logger, silentLogger } from "../../shared/log.ts";
import { openBoth } from "./bothEngines.ts";
import { type NodeProxy, startNodeProxy } from "./nodeProxy.ts";
import { headOf, type Surroundings, type SurroundingsOptions, startSurroundings } from "./processSystem.ts";
import { RelayClient } from "./relayClient.ts";

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
		await ready(relay.port);
		return relay;
	};
	let relay = await start(Number(env.PORT));
	const { port } = relay;
	const client = new RelayClient(`http://127.0.0.1:${port}`);
	const seesHead = async (block: number): Promise<void> => {
		const deadline = Date.now() + 30_000;
		while ((await headOf(client)) < block) {
			if (Date.now() > deadline) throw new Error(`the relay has not seen block ${block} within 30 s`);
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
			await node?.stop();
			await end();
		},
	};
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
