// SIGKILL in the middle of submissions: what was answered is held, goes out again and is mined. The relay is a real
// process; the submissions' clients see their connections break, as wallets would.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Pool } from "undici";
import type { RecordedRequest } from "../devnet/builderRecord.ts";
import { type ProcessSystem, startProcessSystem } from "../support/processSystem.ts";
import type { RelayClient, WireAnswer } from "../support/relayClient.ts";
import type { RelayProcess } from "../support/relayProcess.ts";
import { rawTransaction, testAccount } from "../support/txFactory.ts";
import { keccak256 } from "../../shared/ethereum/keccak.ts";
import { until } from "../support/until.ts";

const SENDERS = 100;
const NONCES = 20;
const ROUNDS = [
	{ killAt: 20, path: "/fast" },
	{ killAt: 900, path: "/nochecks" },
	{ killAt: 1_700, path: "/fast" },
];

let system: ProcessSystem;
before(async () => {
	system = await startProcessSystem({ env: { SIGNING_KEY: `0x${"5e".repeat(32)}`, LOG_LEVEL: "warn" } });
});
after(() => system.stop());

for (const [round, { killAt, path }] of ROUNDS.entries()) {
	test(`SIGKILL after ${killAt} of 2,000 answers on ${path}: every hash that was answered is held and mined`, async () => {
		const submissions = await prepare(round);
		const killed = await system.start({ PORT: "0", LOG_LEVEL: "info" });
		const answered = await submitAll(killed, path, submissions, (count) => {
			if (count === killAt) killed.signal("SIGKILL");
		});
		assert.equal((await killed.ended()).signal, "SIGKILL");
		assert.ok(answered.size >= killAt, `${answered.size} were answered`);
		assert.ok(answered.size < submissions.size, "all were answered before it was killed");

		const mark = system.builder.requests().at(-1)?.seq ?? 0;
		const relay = await system.start({ LOG_LEVEL: "info" });
		await assertHeld(relay.client, [...answered]);

		// The others' senders never heard of theirs: they send them again, as wallets do.
		const again = await submitAll(relay, path, submissions, () => {});
		assert.equal(again.size, submissions.size);
		await until(
			"all were sent to the builder after the restart",
			() => {
				const sent = sentSince(mark);
				return [...submissions.values()].every((raw) => sent.has(raw));
			},
			20_000,
		);
		await system.nextBlock(relay);
		await assertMined(relay.client, [...submissions.keys()]);
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
	relay: RelayProcess,
	path: string,
	submissions: ReadonlyMap<string, string>,
	onAnswer: (count: number) => void,
): Promise<Set<string>> {
	const pool = new Pool(relay.url, { connections: 200 });
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

async function assertHeld(client: RelayClient, hashes: readonly string[]): Promise<void> {
	for (const part of parts(hashes, 100)) {
		const [statuses, transactions] = await Promise.all([
			Promise.all(part.map((hash) => client.status(hash))),
			batch(client, "eth_getTransactionByHash", part),
		]);
		part.forEach((hash, i) => {
			assert.ok(["PENDING", "QUEUED", "BROADCAST"].includes(statuses[i]?.stage ?? "none"), `${hash} is lost`);
			assert.equal((transactions[i] as { hash?: string } | null)?.hash, hash);
		});
	}
}

async function assertMined(client: RelayClient, hashes: readonly string[]): Promise<void> {
	for (const part of parts(hashes, 100)) {
		const [statuses, receipts] = await Promise.all([
			Promise.all(part.map((hash) => client.status(hash))),
			batch(client, "eth_getTransactionReceipt", part),
		]);
		part.forEach((_, i) => {
			assert.equal(statuses[i]?.status, "INCLUDED");
			assert.equal((receipts[i] as { status?: string } | null)?.status, "0x1");
		});
	}
}

async function batch(client: RelayClient, method: string, hashes: readonly string[]): Promise<unknown[]> {
	const calls = hashes.map((hash, id) => ({ jsonrpc: "2.0", id, method, params: [hash] }));
	const response = await fetch(client.url, {
		method: "POST",
		headers: { "content-type": "application/json" },
		body: JSON.stringify(calls),
	});
	return ((await response.json()) as WireAnswer[]).map(({ result }) => result);
}

/** Raw transactions that the builder was sent behind the request `mark`. */
function sentSince(mark: number): Set<string> {
	const requests = system.builder.requests(({ seq }) => seq > mark);
	return new Set(requests.flatMap(rawsOf));
}

function rawsOf({ params }: RecordedRequest): string[] {
	const [first] = params;
	if (typeof first === "string") return [first];
	return (first as { txs?: string[] } | undefined)?.txs ?? [];
}

function parts<T>(list: readonly T[], size: number): T[][] {
	return Array.from({ length: Math.ceil(list.length / size) }, (_, i) =>
		list.slice(i * size, (i + 1) * size),
	);
}
