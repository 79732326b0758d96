// A whole system for a test whose relay is a process of its own: a real chain and real builders in this process, and
// relays that are started, killed and started again on one data folder. Blocks come when the test says so, or by a
// slot timer where it asks for one.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BuilderInput } from "../../relay/domain/builder.ts";
import { type DevBuilder, type DevBuilderOptions, startDevBuilder } from "../devnet/devBuilder.ts";
import { type DevChain, type DevChainOptions, startDevChain } from "../devnet/devChain.ts";
import { METRICS_TOKEN, metricsOf } from "./metricsPage.ts";
import type { RelayClient } from "./relayClient.ts";
import { type LaunchedRelay, launchRelay, type RelayProcess, startRelayProcess } from "./relayProcess.ts";
import { until } from "./until.ts";

/** What a system is made of beside its relays. */
export interface SurroundingsOptions {
	readonly chain?: DevChainOptions;
	/** One dev builder each; the first one builds the blocks, the others record and answer. */
	readonly builders?: readonly (Partial<BuilderInput> & { readonly name: string })[];
	readonly builder?: Partial<DevBuilderOptions>;
	/** Every relay's environment beside what joins it to the others. */
	readonly env?: Readonly<Record<string, string>>;
}

/** A chain and its builders, which a relay may join. */
export interface Surroundings {
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
export async function startSurroundings(
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

export interface ProcessSystem extends Surroundings {
	/** Starts a relay, with `env` over {@link ProcessSystem.env}; it ends with the system at the latest. */
	start(env?: Readonly<Record<string, string>>): Promise<RelayProcess>;
	/** The same, waiting for nothing. */
	launch(env?: Readonly<Record<string, string>>): LaunchedRelay;
	/** Waits until the building builder has taken each raw transaction (0x hex) in a request behind number `after`. */
	delivered(raws: readonly string[], after?: number): Promise<void>;
	/** The number of the last request that the building builder got. */
	lastRequest(): number;
	/** Has the next block built and waits until `relay` has worked it off; its number. */
	nextBlock(relay: RelayProcess): Promise<number>;
	stop(): Promise<void>;
}

const DELIVERED_MS = 10_000;

/** Starts chain and builders; the caller starts relays, and stops it all. */
export async function startProcessSystem(options: SurroundingsOptions = {}): Promise<ProcessSystem> {
	const { end, ...surroundings } = await startSurroundings({
		...options,
		env: { LOG_LEVEL: "info", ...options.env },
	});
	const { builder, env } = surroundings;
	const relays: LaunchedRelay[] = [];
	return {
		...surroundings,
		async start(over = {}) {
			const relay = await startRelayProcess({ env: { ...env, ...over } });
			relays.push(relay);
			return relay;
		},
		launch(over = {}) {
			const relay = launchRelay({ env: { ...env, ...over } });
			relays.push(relay);
			return relay;
		},
		async delivered(raws, after = 0) {
			for (const raw of raws) {
				await builder.waitForRequest(
					({ seq, params }) => seq > after && JSON.stringify(params).includes(raw),
					DELIVERED_MS,
				);
			}
		},
		lastRequest: () => builder.requests().at(-1)?.seq ?? 0,
		async nextBlock({ client }) {
			const { number } = await builder.buildBlock();
			await until(`the relay sees block ${number}`, async () => (await headOf(client)) >= number);
			return number;
		},
		async stop() {
			for (const relay of relays) await relay.kill();
			await end();
		},
	};
}

/** The head that the relay has worked off, as its metrics tell. */
export async function headOf(client: RelayClient): Promise<number> {
	const text = await metricsOf(client.url);
	return Number(/^relay_head_number (\d+)$/m.exec(text)?.[1] ?? -1);
}
