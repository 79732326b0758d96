// A core and its edges as processes on one database, whose event loops are measured: a real chain,
// a builder that accepts everything, and clients at any addresses. The others reach each relay by a
// line of its own, which may be slow, and whose bytes are counted.

import { startSink } from "../bench/load.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import { freePort } from "../devnet/freePort.ts";
import { newDatabase } from "./engine.ts";
import { metered } from "./eventLoopTime.ts";
import { type LaunchedRelay, launchRelay, readyStatus } from "./processes.ts";
import { METRICS_TOKEN, RelayClient } from "./relayClient.ts";
import { FAST_LINE, type LineOptions, type SlowLine, startSlowLine } from "./slowLine.ts";
import { type TestAccount, testAccount } from "./txFactory.ts";
import { until } from "./until.ts";

interface RelayOptions {
	/** Settings besides those of every relay here. */
	readonly env?: Readonly<Record<string, string>>;
	/** The line by which the others reach it. Default: as fast as this machine. */
	readonly line?: LineOptions;
}

/** A relay that may not be ready yet. */
export type LineRelay = LaunchedRelay & {
	/** http://127.0.0.1:port */
	readonly url: string;
	readonly line: SlowLine;
};

export type EdgeWorld = Awaited<ReturnType<typeof startEdgeWorld>>;

/** Messages in the log of an edge: its connection begins, and ends. */
export const CONNECTED = "connected to the core";
export const CONNECTION_ENDED = "connection to the core ended, looking for the next core";

let accounts = 0;

/** Starts everything but the relays. */
export async function startEdgeWorld() {
	const chain: DevChain = await startDevChain();
	const sink = await startSink();
	const database = await newDatabase();
	const started: LineRelay[] = [];
	const launch = async ({ env = {}, line = FAST_LINE }: RelayOptions = {}): Promise<LineRelay> => {
		const port = await freePort();
		const between = await startSlowLine(port, line);
		const launched = launchRelay({
			...metered("relay/main.ts"),
			env: {
				...{ PORT: String(port), HOST: "127.0.0.1", DATABASE_URL: database, TRUST_PROXY: "1" },
				INTERNAL_URL: `http://127.0.0.1:${between.port}`,
				...{ ETH_RPC_URL: chain.url, MAX_HEAD_AGE_S: "86400", ACCOUNT_TIMEOUT_MS: "20000" },
				BUILDERS: JSON.stringify([{ name: "sink", url: sink.url }]),
				...{ METRICS_TOKEN, LOG_LEVEL: "info", ...env },
			},
		});
		const relay = Object.assign(launched, { url: `http://127.0.0.1:${port}`, line: between });
		started.push(relay);
		return relay;
	};
	return {
		chain,
		/** The requests to the builder so far. */
		sent: sink.count,
		/** The URL of the relays' database. */
		database,
		/** Starts a relay without waiting until it is ready. */
		launch,
		/** Starts a relay, which is ready. The first one is the core. */
		async start(options?: RelayOptions): Promise<LineRelay> {
			const relay = await launch(options);
			await until("it is ready", async () => (await readyStatus(relay.url)) === 200);
			return relay;
		},
		/** So many accounts with money that have sent nothing. */
		async accounts(count: number): Promise<readonly TestAccount[]> {
			const made = Array.from({ length: count }, (_, i) => testAccount(8_000_000 + accounts + i));
			accounts += count;
			await chain.fund(made);
			return made;
		},
		async stop(): Promise<void> {
			for (const one of started) await one.kill();
			for (const { line } of started) await line.stop();
			await sink.stop();
			await chain.stop();
		},
	};
}

/** The client of `relay` at a network address. */
export function clientAt({ url }: { readonly url: string }, address: string): RelayClient {
	return new RelayClient(url, { "x-forwarded-for": address });
}
