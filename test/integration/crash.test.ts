// SIGKILL in the middle of submissions: what was answered is held, goes out again and is mined. The relay is a real
// process; the submissions' clients see their connections break, as wallets would.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Pool } from "undici";
import { keccak256 } from "../../shared/ethereum/keccak.ts";
import { type PlainBuilder, startPlainBuilder } from "../support/plainBuilder.ts";
import { headOf, type ProcessSystem, startProcessSystem } from "../support/processSystem.ts";
import type { WireAnswer, WireStatus } from "../support/relayClient.ts";
import { rawTransaction, testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

const SENDERS = 100;
const NONCES = 20;
const ROUNDS = [
	{ killAt: 20, path: "/fast" },
	{ killAt: 900, path: "/nochecks" },
	{ killAt: 1_700, path: "/fast" },
];
/** Of one batch to the relay (its limit) and of one to anvil, which mixes up longer ones. */
const RELAY_BATCH = 100;
const CHAIN_BATCH = 16;

let system: ProcessSystem;
let builder: PlainBuilder;
before(async () => {
	// The dev builder tries each bundle by itself: 2,000 would take it ten seconds a round.
	builder = await startPlainBuilder();
	system = await startProcessSystem({ builders: [{ name: "plain", url: builder.url }] });
});
after(async () => {
	await system.stop();
	await builder.stop();
});

for (const [round, { killAt, path }] of ROUNDS.entries()) {
	test(`SIGKILL after ${killAt} of 2,000 answers on ${path}: all that was answered is held and mined`, async () => {
		const submissions = await prepare(round);
		const all = [...submissions.keys()];
		// A folder of its own: what earlier rounds left behind would be read again at each start.
		const env = { DATA_DIR: join(system.folder, `round${round}`) };
		const killed = await system.start(env);
		const answered = await submitAll(killed.url, path, submissions, (count) => {
			if (count === killAt) killed.signal("SIGKILL");
		});
		assert.equal((await killed.ended()).signal, "SIGKILL");
		assert.ok(answered.size >= killAt, `${answered.size} were answered`);
		assert.ok(answered.size < all.length, "all were answered before it was killed");

		builder.reset();
		const relay = await system.start(env);
		await assertHeld(relay.url, [...answered]);

		// The others' senders never heard of theirs: they send them again, as wallets do.
		const again = await submitAll(relay.url, path, submissions, () => {});
		assert.equal(again.size, all.length);
		const raws = [...submissions.values()];
		const allSent = (): boolean => {
			const sent = builder.raws();
			return raws.every((raw) => sent.has(raw));
		};
		await until("all were sent to the builder after the restart", allSent, 20_000);

		const head = await mine(raws);
		await until("the relay sees the block", async () => (await headOf(relay.client)) >= head, 20_000);
		const statuses = await statusesOf(relay.url, all);
		assert.deepEqual(
			statuses.filter(({ status }) => status !== "INCLUDED"),
			[],
		);
		await relay.kill();
	});
}

/** Raw transactions by hash, of accounts of this round's own. */
async function prepare(round: number): Promise<Map<string, string>> {
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
async function submitAll(
	url: string,
	path: string,
	submissions: ReadonlyMap<string, string>,
	onAnswer: (count: number) => void,
): Promise<Set<string>> {
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
		assert.deepEqual(answer, { jsonrpc: "2.0", id: 1, result: hash });
		answered.add(hash);
		onAnswer(answered.size);
	};
	await Promise.all([...submissions].map(([hash, raw]) => send(hash, raw)));
	await pool.destroy();
	return answered;
}

async function assertHeld(url: string, hashes: readonly string[]): Promise<void> {
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

async function statusesOf(url: string, hashes: readonly string[]): Promise<WireStatus[]> {
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

/** Mines what the builder was sent, in one block; the head behind it. */
async function mine(raws: readonly string[]): Promise<number> {
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
