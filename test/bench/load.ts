// The traffic of the benchmarks, and its targets: signed transfers (200 bytes each), over a fixed
// number of connections whose answers are counted; a relay process on a chain, and a builder that
// accepts everything. Loopback addresses only.

import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, Pool } from "undici";
import type { DevChain } from "../devnet/devChain.ts";
import { METRICS_TOKEN, metricsOf } from "../support/relayClient.ts";
import { rawTransaction, type TestAccount, testAccount } from "../support/txFactory.ts";
import { MeasuredProcess, procfileFlags } from "./childProcess.ts";

/** A figure and what it is. */
export interface Figure {
	readonly name: string;
	/** A number, and its unit behind a space: "12 ms". */
	readonly value: string;
	/** For a figure that is measured at several sizes: its chart of plot.ts, and the size. */
	readonly growth?: { readonly chart: string; readonly at: number };
	/** For a figure beside those of others: its chart of plot.ts, and whose it is. */
	readonly bar?: { readonly chart: string; readonly of: string };
}

/** The value in the middle; NaN if there is none. */
export function median(values: readonly number[]): number {
	return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

interface LoadResult {
	readonly seconds: number;
	readonly answers: readonly string[];
}

/** Posts every body once, `connections` at a time, to `url` (http://127.0.0.1:port/path). */
export async function load(url: string, bodies: readonly string[], connections: number): Promise<LoadResult> {
	const { origin, pathname, hostname } = new URL(url);
	if (hostname !== "127.0.0.1") throw new Error("load goes to loopback addresses only");
	let opened = 0;
	const pool = new Pool(origin, {
		connections,
		// Each connection is a client of its own, since what one client may hold is bounded.
		factory: (to, options) => {
			opened += 1;
			return new Client(to, { ...options, localAddress: `127.0.0.${1 + (opened % 250)}` });
		},
	});
	const answers: string[] = [];
	let next = 0;
	const begun = performance.now();
	const work = async (): Promise<void> => {
		for (let i = next++; i < bodies.length; i = next++) {
			const answer = await pool.request({
				method: "POST",
				path: pathname,
				headers: { "content-type": "application/json" },
				body: bodies[i] ?? "",
			});
			answers[i] = await answer.body.text();
		}
	};
	await Promise.all(Array.from({ length: connections }, work));
	const seconds = (performance.now() - begun) / 1000;
	await pool.close();
	return { seconds, answers };
}

/** Makes the whole transaction 200 bytes long. */
const CALLDATA = Buffer.alloc(86, 7);

/** `count` accounts. */
export function benchAccounts(count: number): readonly TestAccount[] {
	return Array.from({ length: count }, (_, i) => testAccount(i));
}

/** A signed transfer with calldata as 0x hex: 200 bytes. */
export function benchTransaction(by: TestAccount | undefined, nonce: number): string {
	if (by === undefined) throw new Error("no such account");
	const raw = rawTransaction({ by, nonce, gasLimit: 30_000, value: 1, data: CALLDATA });
	return `0x${raw.toString("hex")}`;
}

/** Clients at a time. */
export const CONNECTIONS = 64;

/** A relay that is measured. */
export type Relay = Awaited<ReturnType<typeof startRelay>>;

/** Starts one on a folder of its own, or on the database of `more`. */
export async function startRelay(
	chain: Pick<DevChain, "url">,
	sinkUrl: string,
	more: Readonly<Record<string, string>> = {},
) {
	const folder = mkdtempSync(join(tmpdir(), "leeward-bench-"));
	const process = MeasuredProcess.node("relay/main.ts", procfileFlags("relay"), {
		PORT: "0",
		HOST: "127.0.0.1",
		ETH_RPC_URL: chain.url,
		BUILDERS: JSON.stringify([{ name: "sink", url: sinkUrl }]),
		DATA_DIR: folder,
		RATE_LIMIT_RPS: "0",
		LOG_LEVEL: "info",
		METRICS_TOKEN,
		...more,
	});
	return {
		process,
		url: await process.url(),
		async stop(): Promise<void> {
			await process.stop();
			rmSync(folder, { recursive: true, force: true });
		},
	};
}

/** Gives each of them money. */
export async function fund(chain: DevChain, accounts: readonly TestAccount[]): Promise<void> {
	await chain.fund(accounts, 10n ** 20n);
}

/** Submits for each of `accounts` its nonces `from` up to `to`. Throws where one is refused. */
export async function send(
	relay: Relay,
	accounts: readonly TestAccount[],
	from: number,
	to: number,
): Promise<{ seconds: number; count: number }> {
	const bodies: string[] = [];
	for (let nonce = from; nonce < to; nonce++) {
		for (const account of accounts) bodies.push(submissionOf(benchTransaction(account, nonce)));
	}
	const { seconds, answers } = await load(`${relay.url}/nochecks`, bodies, CONNECTIONS);
	const refused = answers.find((answer) => !answer.includes('"result"'));
	if (refused !== undefined) throw new Error(`a submission was refused: ${refused}`);
	return { seconds, count: bodies.length };
}

/** An empty block. */
export async function nextHead(chain: DevChain): Promise<void> {
	const head = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as { timestamp: string };
	await chain.rpc("evm_mine", [{ timestamp: Number(head.timestamp) + chain.slotSeconds }]);
}

const LOOK_MS = 200;

/** Resolves when nothing waits for the builder any more. */
export async function delivered(relay: Relay): Promise<void> {
	for (;;) {
		const text = await metricsOf(relay.url);
		if (/^relay_lane_depth 0$/m.test(text)) return;
		// The metrics take milliseconds, which are no part of a submission.
		await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
	}
}

/** A builder that takes everything: its own speed must not be measured. */
export async function startSink() {
	let count = 0;
	const answer = JSON.stringify({ jsonrpc: "2.0", id: 1, result: null });
	const server = createServer((request, response) => {
		request.resume().on("end", () => {
			count += 1;
			response.end(answer);
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		/** Requests so far. */
		count: () => count,
		stop: (): Promise<void> => {
			server.closeAllConnections();
			return new Promise((resolve) => server.close(() => resolve()));
		},
	};
}

/** The body of a call with one parameter. */
export function callOf(method: string, param: unknown): string {
	return JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [param] });
}

/** A submission as it is posted. */
export function submissionOf(raw: string): string {
	return callOf("eth_sendRawTransaction", raw);
}
