// Durable submissions: a relay process takes signed transactions on /nochecks, and beside it the parts of that work
// are measured alone in the same run. CPU time counts: what one core could do, whatever else the machine does.

import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import type { TestAccount } from "../support/txFactory.ts";
import { MeasuredProcess, procfileFlags } from "./childProcess.ts";
import { load } from "./load.ts";
import { benchAccounts, benchTransaction } from "./transactions.ts";

const CONNECTIONS = 64;
const SENDERS = 2_000;
const PER_SENDER = 9;
/** The pool takes 64 of each sender. */
const PENDING_SENDERS = 850;
const PENDING_PER_SENDER = 59;

/** A figure and what it is. */
export interface Figure {
	readonly name: string;
	readonly value: string;
}

interface Relay {
	readonly process: MeasuredProcess;
	readonly url: string;
	stop(): Promise<void>;
}

/** Runs it; takes about half a minute. */
export async function benchSubmissions(): Promise<readonly Figure[]> {
	const chain = await startDevChain();
	const sink = await startSink();
	try {
		// Before and behind the relay: the machine's speed drifts.
		const early = await measureParts(sink.url);
		const relay = await startRelay(chain, sink.url);
		const accounts = benchAccounts(SENDERS);
		await fund(chain, accounts);
		// The first ones find the code warm and the accounts known.
		await send(relay, accounts, 0, PER_SENDER / 3);
		await delivered(relay);
		const before = relay.process.cpuMicros();
		const { seconds, count } = await send(relay, accounts, PER_SENDER / 3, PER_SENDER);
		// Signing and posting to the builder go on behind the answers, and count.
		await delivered(relay);
		const micros = (relay.process.cpuMicros() - before) / count;
		await relay.stop();
		const late = await measureParts(sink.url);
		const parts = Object.fromEntries(
			Object.entries(early).map(([name, value]) => [name, (value + (late[name] ?? value)) / 2]),
		);
		const sum = Object.values(parts).reduce((a, b) => a + b, 0);
		const perPending = await measureMemory(chain, sink.url);
		return [
			{ name: "durable submissions a second of one core's time", value: rate(micros) },
			{ name: "  the sum of its parts alone", value: rate(sum) },
			{ name: "  share of that sum reached (goal: 60 % at least)", value: percent(sum / micros) },
			...Object.entries(parts).map(([name, value]) => ({
				name: `  ${name.replace("Micros", "")}`,
				value: `${value.toFixed(0)} µs`,
			})),
			{ name: "  a submission in all", value: `${micros.toFixed(0)} µs` },
			{ name: "durable submissions a second by the clock", value: (count / seconds).toFixed(0) },
			{
				name: "resident memory per pending transaction, at 50,000",
				value: `${(perPending / 1024).toFixed(1)} KiB`,
			},
		];
	} finally {
		await sink.stop();
		await chain.stop();
	}
}

async function measureParts(sinkUrl: string): Promise<Readonly<Record<string, number>>> {
	const echo = MeasuredProcess.node("test/bench/echoServer.ts");
	const [, port] = await echo.printed(/port (\d+)/);
	const [account] = benchAccounts(1);
	const body = bodyOf(benchTransaction(account, 0));
	const bodies = new Array<string>(5_000).fill(body);
	await load(`http://127.0.0.1:${port}/`, bodies, CONNECTIONS);
	const before = echo.cpuMicros();
	await load(`http://127.0.0.1:${port}/`, bodies, CONNECTIONS);
	const httpMicros = (echo.cpuMicros() - before) / bodies.length;
	await echo.stop();
	const alone = MeasuredProcess.node("test/bench/parts.ts", [], { SINK_URL: sinkUrl });
	const [, text] = await alone.printed(/parts (.*)\n/);
	return { httpMicros, ...(JSON.parse(text ?? "{}") as Record<string, number>) };
}

async function startRelay(chain: DevChain, sinkUrl: string): Promise<Relay> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-bench-"));
	const process = MeasuredProcess.node("relay/main.ts", procfileFlags("relay"), {
		PORT: "0",
		HOST: "127.0.0.1",
		ETH_RPC_URL: chain.url,
		BUILDERS: JSON.stringify([{ name: "sink", url: sinkUrl }]),
		DATA_DIR: folder,
		RATE_LIMIT_RPS: "0",
		LOG_LEVEL: "info",
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

async function fund(chain: DevChain, accounts: readonly TestAccount[]): Promise<void> {
	for (const { address } of accounts) await chain.rpc("anvil_setBalance", [address, "0x56bc75e2d63100000"]);
}

async function send(
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
async function delivered(relay: Relay): Promise<void> {
	for (;;) {
		const text = await (await fetch(`${relay.url}/metrics`)).text();
		if (/^relay_lane_depth 0$/m.test(text)) return;
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
}

/** Growth of the relay's resident memory over 50,000 pending transactions, for each of them, in bytes. */
async function measureMemory(chain: DevChain, sinkUrl: string): Promise<number> {
	const relay = await startRelay(chain, sinkUrl);
	const accounts = benchAccounts(PENDING_SENDERS);
	await fund(chain, accounts);
	await send(relay, accounts, 0, 1);
	await delivered(relay);
	const before = relay.process.residentBytes();
	const { count } = await send(relay, accounts, 1, PENDING_PER_SENDER + 1);
	await delivered(relay);
	const bytes = (relay.process.residentBytes() - before) / count;
	await relay.stop();
	return bytes;
}

/** A builder that takes everything: its own speed must not be measured. */
async function startSink(): Promise<{ url: string; stop(): Promise<void> }> {
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

function bodyOf(raw: string): string {
	return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] });
}

function rate(micros: number): string {
	return (1_000_000 / micros).toFixed(0);
}

function percent(share: number): string {
	return `${(share * 100).toFixed(0)} %`;
}
