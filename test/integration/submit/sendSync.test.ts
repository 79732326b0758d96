// eth_sendRawTransactionSync on a real chain with a real builder: what the sender is answered, and
// when, as the transaction's fate is decided; and how clients use it: viem, websockets, batches,
// and a relay that stops.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createWalletClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { WsClient } from "../../support/clients.ts";
import { errorString, REVERTS, revertingWith } from "../../support/contracts.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { type Actor, ETHER, GWEI } from "../../support/relayFixture.ts";
import type { TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";
import { SYNC, type SyncFixture, startSync } from "../../support/userFixtures.ts";

const DEAD = "0x000000000000000000000000000000000000dEaD";
const GAP = "due to a missing nonce: it is sent when the gap closes";
const BUMPED = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };

let system: TestSystem;
let fixture: SyncFixture;
before(async () => {
	fixture = await startSync();
	({ system } = fixture);
});
after(() => system.stop());

describe("mined", () => {
	for (const path of ["/", "/fullprivacy", "/nochecks"]) {
		test(`while its sender waits, on ${path}`, async () => {
			const tx = (await fixture.actor()).sign();
			const sending = await fixture.waiting(tx, path);
			await system.nextBlock();
			await fixture.assertMined(sending, tx);
		});
	}

	test("mined and reverted: the receipt says so", async () => {
		const to = await fixture.placeCode(REVERTS);
		const tx = (await fixture.actor()).sign({ to });
		const sending = await fixture.waiting(tx, "/nochecks");
		await system.nextBlock();
		await fixture.assertMined(sending, tx, "0x0");
	});

	test("already mined when it is sent again: answered at once", async () => {
		const tx = (await fixture.actor()).sign();
		await fixture.submit("/fast", tx);
		await fixture.waitUntilSent(tx);
		await system.nextBlock();
		await fixture.assertMined(fixture.sync(tx), tx);
	});

	test("the sender's next one, sent as soon as the receipt of the one before is there", async () => {
		const actor = await fixture.actor();
		for (const nonce of [0, 1, 2]) {
			const tx = actor.sign({ nonce });
			const sending = await fixture.waiting(tx);
			// Nobody waits for the relay but who has sent it.
			await system.builder.buildBlock();
			await fixture.assertMined(sending, tx);
		}
	});
});

describe("the time is up", () => {
	test("code 4 with the hash; it is still pending, is mined later, and is its receipt then", async () => {
		const tx = (await fixture.actor()).sign();
		const begun = performance.now();
		await fixture.assertFails(fixture.sync(tx, "/fast", 250), tx, 4, "in 0.25s.");
		assert.ok(performance.now() - begun >= 250, "not before");
		await fixture.waitUntilSent(tx);
		const again = fixture.sync(tx, "/fast", "0x4e20");
		await system.nextBlock();
		await fixture.assertMined(again, tx);
	});
});

describe("what can't be mined soon gets code 5 with the hash, at once", () => {
	test("behind a nonce gap, now and when it is sent again; once the gap closes it is mined", async () => {
		const actor = await fixture.actor();
		const [first, second] = [actor.sign(), actor.sign({ nonce: 1 })];
		await fixture.assertFails(fixture.sync(second), second, 5, GAP);
		await fixture.assertFails(fixture.sync(second), second, 5, GAP);
		const sending = await fixture.waiting(first);
		await fixture.waitUntilSent(second);
		const again = fixture.sync(second);
		await system.nextBlock();
		await fixture.assertMined(sending, first);
		await fixture.assertMined(again, second);
	});

	test("its simulation fails, now and when it is sent again; what stands behind it waits for it", async () => {
		const to = await fixture.placeCode(revertingWith(errorString("not today")));
		const actor = await fixture.actor();
		const [tx, behind] = [actor.sign({ to }), actor.sign({ nonce: 1 })];
		const why = "due to a failing simulation: execution reverted: not today";
		await fixture.assertFails(fixture.sync(tx), tx, 5, why);
		await fixture.assertFails(fixture.sync(tx), tx, 5, why);
		await fixture.assertFails(
			fixture.sync(behind),
			behind,
			5,
			"due to an earlier transaction that is not sent",
		);
		// Its sender's replacement frees the chain.
		const better = actor.sign(BUMPED);
		const sending = await fixture.waiting(better);
		const again = await fixture.waiting(behind);
		await system.nextBlock();
		await fixture.assertMined(sending, better);
		await fixture.assertMined(again, behind);
	});

	test("it is cancelled while its sender waits, and sent again then", async () => {
		const tx = (await fixture.actor()).sign();
		const sending = await fixture.waiting(tx);
		assert.equal(await fixture.cancel(tx), true);
		await fixture.assertFails(sending, tx, 5, "due to its cancellation");
		await fixture.assertFails(fixture.sync(tx), tx, 5, "due to its cancellation");
	});

	test("a soft cancel ends the wait, and is waited for by nobody itself", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign();
		const sending = await fixture.waiting(tx, "/noreverts?softCancellations=true");
		const cancel = actor.sign({ to: actor.address, gasLimit: 21_000 });
		const { answer } = fixture.sync(cancel);
		await fixture.assertFails(sending, tx, 5, "due to its cancellation");
		const { error } = await answer;
		assert.deepEqual([error?.code, error?.data], [5, cancel.hash]);
		assert.match(String(error?.message), /soft cancel/);
		const again = (await fixture.sync(cancel).answer).error;
		assert.deepEqual([again?.code, again?.data], [5, cancel.hash]);
	});

	test("it is replaced while its sender waits; the other one is mined", async () => {
		const actor = await fixture.actor();
		const [tx, other] = [actor.sign(), actor.sign(BUMPED)];
		const sending = await fixture.waiting(tx);
		const second = await fixture.waiting(other);
		await fixture.assertFails(sending, tx, 5, "due to its replacement");
		await system.nextBlock();
		await fixture.assertMined(second, other);
	});

	test("another one of its sender's uses its nonce", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign();
		const sending = await fixture.waiting(tx, "/fullprivacy");
		await fixture.publish(actor.sign({ value: 1n }));
		await fixture.passBlock();
		await fixture.assertFails(sending, tx, 5, "due to another transaction with its nonce");
	});
});

test("what is refused is refused as by eth_sendRawTransaction", async () => {
	const actor = await fixture.actor(ETHER / 1_000_000n);
	const tx = actor.sign();
	const { error } = await fixture.sync(tx).answer;
	const plain = await system.client.ask("eth_sendRawTransaction", [tx.raw]);
	assert.equal(error?.code, -32000);
	assert.deepEqual(error, plain.error);
});

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
	test("viem knows code 4: it reports the hash", async () => {
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
	await fixture.waitUntilSent(tx);
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
		for (const tx of txs) await fixture.waitUntilSent(tx);
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
		await fixture.waitUntilSent(tx);
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
	assert.equal((await client.closed()).code, 1012);
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

/**
 * Builds a block as soon as so many of its transactions are pending or mined, and the builder has
 * them.
 */
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
