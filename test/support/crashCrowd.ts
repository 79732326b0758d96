// Sends a thousand submissions at once, for tests that kill the relay meanwhile, and checks what was answered, kept
// and mined. The builder only records.

import assert from "node:assert/strict";
import { Pool } from "undici";
import { keccak256 } from "../../shared/ethereum/signatures.ts";
import type { DevChain } from "../devnet/devChain.ts";
import type { PlainBuilder } from "./plainBuilder.ts";
import type { RelayClient, WireAnswer, WireStatus } from "./relayClient.ts";
import { type ProcessSystem, seesHead } from "./systems.ts";
import { accountOf, rawTransaction, signedTransaction, type TxOptions, testAccount } from "./txFactory.ts";
import { until } from "./until.ts";

/** Raw transactions (0x hex) by hash. */
export type Submissions = ReadonlyMap<string, string>;

export interface SubmitOptions {
	readonly onAnswer?: (count: number, hash: string) => void;
	/** Whether the store may be out: what is refused for that counts as not answered. */
	readonly mayFail?: boolean;
}

/** How many send, in turns: one nonce of each, then the next. */
export const SENDERS = 100;
const NONCES = 10;
/** Of one batch to the relay (its limit) and of one to anvil, which mixes up longer ones. */
const RELAY_BATCH = 100;
const CHAIN_BATCH = 16;

/** Raw transactions by hash, of accounts of this round's own. */
export async function prepareCrowd(system: ProcessSystem, round: number): Promise<Submissions> {
	const accounts = Array.from({ length: SENDERS }, (_, i) => testAccount(10_000 + round * SENDERS + i));
	const ether = `0x${(10n ** 19n).toString(16)}`;
	const funded = await system.chain.batch(
		accounts.map(({ address }) => ({ method: "anvil_setBalance", params: [address, ether] })),
	);
	assert.ok(funded.every(({ ok }) => ok));
	const submissions = new Map<string, string>();
	for (let nonce = 0; nonce < NONCES; nonce++) {
		for (const by of accounts) {
			const raw = rawTransaction({ by, nonce, gasLimit: 21_000, value: 1 });
			submissions.set(`0x${keccak256(raw).toString("hex")}`, `0x${raw.toString("hex")}`);
		}
	}
	return submissions;
}

/** Sends all at once; the hashes that were answered. Broken connections are part of the game, refusals are not. */
export async function submitCrowd(
	url: string,
	path: string,
	submissions: Submissions,
	{ onAnswer = () => {}, mayFail = false }: SubmitOptions = {},
): Promise<Set<string>> {
	// Its own connections: what else the test asks does not wait behind a thousand.
	const pool = new Pool(url, { connections: 200 });
	const answered = new Set<string>();
	const send = async (hash: string, raw: string): Promise<void> => {
		const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] });
		const headers = { "content-type": "application/json" };
		let answer: WireAnswer;
		try {
			const response = await pool.request({ method: "POST", path, headers, body });
			answer = (await response.body.json()) as WireAnswer;
		} catch {
			return;
		}
		if (mayFail && answer.error?.code === -32_603) return;
		assert.deepEqual(answer, { jsonrpc: "2.0", id: 1, result: hash });
		answered.add(hash);
		onAnswer(answered.size, hash);
	};
	await Promise.all([...submissions].map(([hash, raw]) => send(hash, raw)));
	await pool.destroy();
	return answered;
}

/** Each of `hashes` is held: told so by its page, and by the relay as its own pending transaction. */
export async function assertHeld(url: string, hashes: readonly string[]): Promise<void> {
	const held = new Set(["PENDING", "QUEUED", "SIMULATION_FAILED", "BROADCAST"]);
	const statuses = await statusesOf(url, hashes);
	assert.deepEqual(
		statuses.filter(({ stage }) => !held.has(stage ?? "")),
		[],
	);
	for (const part of parts(hashes, RELAY_BATCH)) {
		const calls = part.map((hash, id) => ({
			jsonrpc: "2.0",
			id,
			method: "eth_getTransactionByHash",
			params: [hash],
		}));
		const headers = { "content-type": "application/json" };
		const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(calls) });
		const found = ((await response.json()) as { result: { hash: string } | null }[]).map(
			({ result }) => result?.hash,
		);
		assert.deepEqual(found, part);
	}
}

/** The page of each. */
async function statusesOf(url: string, hashes: readonly string[]): Promise<WireStatus[]> {
	// One client may have 256 connections, and a crowd is about to need most of them.
	const pool = new Pool(url, { connections: 50 });
	const statuses = await Promise.all(
		hashes.map(async (hash) => {
			const response = await pool.request({ method: "GET", path: `/tx/${hash}` });
			return (await response.body.json()) as WireStatus;
		}),
	);
	await pool.destroy();
	return statuses;
}

/** Waits until the builder was sent each of `raws`. */
export async function allSent(builder: PlainBuilder, raws: readonly string[]): Promise<void> {
	await until("all were sent to the builder", () => raws.every((raw) => builder.raws().has(raw)), 20_000);
}

/** Mines `submissions` in one block; the relay then tells that each is in it. */
export async function assertMined(
	system: ProcessSystem,
	relay: { readonly url: string; readonly client: RelayClient },
	submissions: Submissions,
): Promise<void> {
	await seesHead(relay.client, await mine(system, [...submissions.values()]));
	const statuses = await statusesOf(relay.url, [...submissions.keys()]);
	assert.deepEqual(
		statuses.filter(({ status }) => status !== "INCLUDED"),
		[],
	);
}

/** The head behind them. */
async function mine(system: ProcessSystem, raws: readonly string[]): Promise<number> {
	for (const part of parts(raws, CHAIN_BATCH)) {
		await system.chain.batch(part.map((raw) => ({ method: "eth_sendRawTransaction", params: [raw] })));
	}
	await system.chain.rpc("evm_mine");
	const block = (await system.chain.rpc("eth_getBlockByNumber", ["latest", false])) as {
		number: string;
		transactions: string[];
	};
	assert.equal(block.transactions.length, raws.length);
	return Number(block.number);
}

function parts<T>(list: readonly T[], size: number): T[][] {
	return Array.from({ length: Math.ceil(list.length / size) }, (_, i) =>
		list.slice(i * size, (i + 1) * size),
	);
}

/** Hash and raw bytes as 0x hex. */
export interface Signed {
	readonly hash: string;
	readonly raw: string;
}

/** A transaction of the chain's account with this index. */
export function signedOn(chain: DevChain, account: number, options: TxOptions = {}): Signed {
	const key = chain.accounts[account]?.privateKey ?? "";
	const { hash, raw } = signedTransaction({ by: accountOf(key), ...options });
	return { hash, raw: `0x${raw.toString("hex")}` };
}

/** Whether a builder was given `raw` in these parameters. */
export function holds(params: readonly unknown[], raw: string): boolean {
	return JSON.stringify(params).includes(raw);
}
