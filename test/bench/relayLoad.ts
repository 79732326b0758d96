// What the benchmarks of submissions share: a relay process on a chain and a builder that takes everything, and
// thousands of signed transactions on /nochecks for it. It measures nothing.

import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DevChain } from "../devnet/devChain.ts";
import { METRICS_TOKEN, metricsOf } from "../support/relayClient.ts";
import type { TestAccount } from "../support/txFactory.ts";
import { MeasuredProcess, procfileFlags } from "./childProcess.ts";
import { benchTransaction, load } from "./load.ts";

/** Clients at a time. */
export const CONNECTIONS = 64;

/** A relay that is measured. */
export interface Relay {
	readonly process: MeasuredProcess;
	readonly url: string;
	stop(): Promise<void>;
}

/** Starts one on a folder of its own, or on the database of `more`. */
export async function startRelay(
	chain: DevChain,
	sinkUrl: string,
	more: Readonly<Record<string, string>> = {},
): Promise<Relay> {
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
	const [, port] = await process.printed(/"port":(\d+)/);
	return {
		process,
		url: `http://127.0.0.1:${port}`,
		async stop() {
			await process.stop();
			rmSync(folder, { recursive: true, force: true });
		},
	};
}

/** Gives each of them money. */
export async function fund(chain: DevChain, accounts: readonly TestAccount[]): Promise<void> {
	for (const { address } of accounts) await chain.rpc("anvil_setBalance", [address, "0x56bc75e2d63100000"]);
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
		for (const account of accounts) bodies.push(bodyOf(benchTransaction(account, nonce)));
	}
	const { seconds, answers } = await load(`${relay.url}/nochecks`, bodies, CONNECTIONS);
	const refused = answers.find((answer) => !answer.includes('"result"'));
	if (refused !== undefined) throw new Error(`a submission was refused: ${refused}`);
	return { seconds, count: bodies.length };
}

/** Resolves when nothing waits for the builder any more. */
export async function delivered(relay: Relay): Promise<void> {
	for (;;) {
		const text = await metricsOf(relay.url);
		if (/^relay_lane_depth 0$/m.test(text)) return;
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
}

/** A builder that takes everything: its own speed must not be measured. */
export async function startSink(): Promise<{ url: string; stop(): Promise<void> }> {
	const answer = JSON.stringify({ jsonrpc: "2.0", id: 1, result: null });
	const server = createServer((request, response) => {
		request.resume();
		request.on("end", () => response.end(answer));
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		stop: () => {
			server.closeAllConnections();
			return new Promise((resolve) => server.close(() => resolve()));
		},
	};
}

/** A submission as it is posted. */
export function bodyOf(raw: string): string {
	return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] });
}
