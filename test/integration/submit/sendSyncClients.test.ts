// eth_sendRawTransactionSync as clients use it: viem as it is, websockets, batches and notifications, and a relay that
// stops while they wait.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createWalletClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import type { WireAnswer } from "../../support/relayClient.ts";
import { type Actor, GWEI } from "../../support/relayFixture.ts";
import { REVERTS } from "../../support/simulationContracts.ts";
import type { TestSystem } from "../../support/startSystem.ts";
import { SYNC, type SyncFixture, startSync } from "../../support/syncFixture.ts";
import { until } from "../../support/until.ts";
import { WsClient } from "../../support/wsClient.ts";

const DEAD = "0x000000000000000000000000000000000000dEaD";

let system: TestSystem;
let fixture: SyncFixture;
before(async () => {
	fixture = await startSync();
	({ system } = fixture);
});
after(() => system.stop());

describe("viem", () => {
	test("viem's sendRawTransactionSync and sendTransactionSync", async () => {
		const { client, actor } = await viemClient();
		const request = { to: DEAD, value: 1n, gas: 21_000n } as const;
		const serializedTransaction = await client.signTransaction({
			...{ ...request, nonce: 0, type: "eip1559" },
			maxFeePerGas: 20n * GWEI,
			maxPriorityFeePerGas: GWEI,
		});
		const raw = client.sendRawTransactionSync({ serializedTransaction });
		await buildWhenPending(actor, 1);
		const first = await raw;
		assert.equal(first.status, "success");
		const whole = client.sendTransactionSync(request);
		await buildWhenPending(actor, 2);
		const second = await whole;
		assert.deepEqual([second.status, second.blockNumber > first.blockNumber], ["success", true]);
	});

	test("viem tells of a reverted one by its own error", async () => {
		const { client, actor } = await viemClient("/nochecks");
		const to = (await fixture.place(REVERTS)) as `0x${string}`;
		const sending = client.sendTransactionSync({ to, gas: 100_000n, throwOnReceiptRevert: true });
		const thrown = rejectsWith(
			sending,
			/^TransactionReceiptRevertedError: Transaction with hash "0x[0-9a-f]{64}" reverted/,
		);
		await buildWhenPending(actor, 1);
		await thrown;
	});
	test("viem knows code 4: it tells of the hash", async () => {
		const { client } = await viemClient();
		const sending = client.sendTransactionSync({ to: DEAD, gas: 21_000n, timeout: 200 });
		const timedOut = /^WaitForTransactionReceiptTimeoutError: Timed out .* with hash "0x[0-9a-f]{64}"/;
		await rejectsWith(sending, timedOut);
	});
});

test("over a websocket, where other calls go on meanwhile", async (t) => {
	const client = await WsClient.open(`${system.client.url.replace("http", "ws")}/fast`);
	t.after(() => client.terminate());
	const tx = (await fixture.actor()).sign();
	client.send({ jsonrpc: "2.0", id: "waits", method: SYNC, params: [tx.raw] });
	await fixture.reaches(tx, "BROADCAST");
	await fixture.sent(tx);
	client.send({ jsonrpc: "2.0", id: "goes on", method: "eth_chainId", params: [] });
	assert.equal((await client.next()).id, "goes on");
	await system.nextBlock();
	const { id, result } = await client.next();
	assert.deepEqual([id, result], ["waits", await fixture.nodeReceipt(tx)]);
});

describe("batches and notifications", () => {
	test("in a batch each is submitted in its turn, all wait together, and reads behind see them", async () => {
		const actor = await fixture.actor();
		const txs = [0, 1, 2].map((nonce) => actor.sign({ nonce }));
		const gap = actor.sign({ nonce: 9 });
		const posted = post([
			...txs.map(({ raw }) => call(SYNC, raw)),
			call(SYNC, gap.raw),
			call("eth_getTransactionCount", actor.address, "pending"),
		]);
		for (const tx of txs) await fixture.sent(tx);
		await system.nextBlock();
		const answers = (await (await posted).json()) as WireAnswer[];
		const receipts = await Promise.all(txs.map((tx) => fixture.nodeReceipt(tx)));
		assert.deepEqual(
			answers.slice(0, 3).map(({ result }) => result),
			receipts,
		);
		assert.equal(answers[3]?.error?.code, 5);
		assert.equal(answers[4]?.result, "0x3");
	});

	test("a notification is submitted, and nobody is made to wait for it", async () => {
		const tx = (await fixture.actor()).sign();
		const response = await post({ jsonrpc: "2.0", method: SYNC, params: [tx.raw, 25_000] });
		assert.equal(response.status, 204);
		await fixture.sent(tx);
	});
});

test("a relay that stops answers all that wait, at once; what they sent is mined behind the restart", async () => {
	const tx = (await fixture.actor()).sign();
	const client = await WsClient.open(system.client.url.replace("http", "ws"));
	const sending = await fixture.waiting(tx);
	client.send({ jsonrpc: "2.0", id: 1, method: SYNC, params: [tx.raw] });
	client.send(call("eth_chainId"));
	await client.next();
	await system.restart();
	const { error } = await sending.answer;
	assert.deepEqual([error?.code, error?.data], [4, tx.hash]);
	const pattern =
		/^The transaction was added to the mempool but wasn't processed in [\d.]+s: the relay is shutting/;
	assert.match(String(error?.message), pattern);
	assert.match(String((await client.next()).error?.message), pattern);
	assert.equal((await client.closed()).code, 1001);
	const again = await fixture.waiting(tx);
	await system.nextBlock();
	await fixture.assertMined(again, tx);
	await system.restart();
	await fixture.assertMined(fixture.sync(tx), tx);
});

function call(method: string, ...params: unknown[]) {
	return { jsonrpc: "2.0", id: 7, method, params };
}

function post(body: unknown): Promise<Response> {
	const headers = { "content-type": "application/json" };
	return fetch(`${system.client.url}/fast`, { method: "POST", headers, body: JSON.stringify(body) });
}

/** A wallet that knows nothing of relays. */
async function viemClient(path = "/fast") {
	const actor = await fixture.actor();
	const account = privateKeyToAccount(actor.account.keyHex as `0x${string}`);
	const transport = http(`${system.client.url}${path}`);
	return { actor, client: createWalletClient({ account, chain: foundry, transport }) };
}

/** It rejects, because of what has this name and text. */
function rejectsWith(sending: Promise<unknown>, cause: RegExp): Promise<void> {
	return assert.rejects(sending, (thrown: Error) => {
		assert.match(String(thrown.cause), cause);
		return true;
	});
}

/** Builds a block as soon as so many of its transactions are pending or mined, and the builder has them. */
async function buildWhenPending(actor: Actor, count: number): Promise<void> {
	await until("it is pending", async () => (await fixture.pendingNonce(actor)) === count);
	await until("the builder has it", () =>
		system.builder
			.orders()
			.some(
				({ state, transactions }) =>
					state === "live" && transactions.some(({ from }) => from.toLowerCase() === actor.address),
			),
	);
	await system.nextBlock();
}
