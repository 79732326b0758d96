// A bot as MEV Blocker's documentation for searchers makes it, with its messages to the letter:
// what works here as it is, and what differs, which docs/searchers.md says.
// https://docs.cow.fi/mevblocker/searchers/bidding-on-transactions

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import {
	type BiddingFixture,
	backrunBy,
	EMITTER,
	signedBy,
	startBidding,
} from "../../support/biddingFixture.ts";
import { until } from "../../support/until.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The bot: no library, one websocket for all, subscribed without an id. */
class MevBlockerBot {
	readonly #socket: WebSocket;
	readonly answers: Fields[] = [];
	readonly pending: Fields[] = [];

	constructor(url: string) {
		this.#socket = new WebSocket(url);
		this.#socket.on("open", () => {
			this.#socket.send('{"method":"eth_subscribe","params": ["mevblocker_partialPendingTransactions"]}');
		});
		this.#socket.on("message", (data) => {
			const message = JSON.parse(String(data)) as Fields;
			if (message.method !== "eth_subscription") this.answers.push(message);
			else this.pending.push((message.params as { result: Fields }).result);
		});
	}

	/** Sends a bundle, and returns its answer. */
	async bundle(bundle: Fields): Promise<Fields> {
		const before = this.answers.length;
		this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendBundle", params: [bundle] }));
		return until("the answer", () => this.answers[before]);
	}

	close(): void {
		this.#socket.terminate();
	}
}

let fixture: BiddingFixture;
let bot: MevBlockerBot;
let accounts = 0;
before(async () => {
	fixture = await startBidding({ chain: { slotSeconds: 12 } });
	bot = new MevBlockerBot(`ws://127.0.0.1:${fixture.system.relay.port}`);
	await until("the bot has its subscription", () => bot.answers.length === 1);
});
after(async () => {
	bot.close();
	await fixture.stop();
});

/** A swap that the bot sees on its feed. */
async function seen(): Promise<Fields> {
	accounts += 1;
	const { raw, hash } = signedBy(accounts, { to: EMITTER });
	await fixture.system.client.send(raw, "/fast");
	return until("it on the feed", () => bot.pending.find((one) => one.hash === hash));
}

function backrun(value: bigint, options = {}) {
	accounts += 1;
	return backrunBy(accounts, value, options);
}

/** As in the documentation's example, which has a time in it. */
async function documented(target: Fields, raw: string, more: Fields = {}): Promise<Fields> {
	const blockNumber = `0x${((await fixture.head()) + 1).toString(16)}`;
	return { txs: [target.hash, raw], blockNumber, minTimestamp: 0, ...more };
}

test("it subscribes without id and jsonrpc, and sees a swap with every field of its documentation", async () => {
	assert.match(String(bot.answers[0]?.result), /^0x[0-9a-f]+$/);
	const target = await seen();
	const fields = [
		...["chainId", "to", "value", "data", "accessList", "nonce", "maxPriorityFeePerGas", "maxFeePerGas"],
		...["gas", "type", "hash", "from"],
	];
	assert.deepEqual(Object.keys(target), fields);
});

test("a bid that pays by transfer is taken, replaced by its uuid, and lands behind its target", async () => {
	const target = await seen();
	const [first, second] = [backrun(4_000n), backrun(5_000n)];
	for (const { raw } of [first, second]) {
		const { result, error } = await bot.bundle(
			await documented(target, raw, { maxTimestamp: 0, replacementUuid: "mine" }),
		);
		assert.match(String(result), /^0x[0-9a-f]{64}$/, JSON.stringify(error));
	}
	await until("the builder has it", () =>
		JSON.stringify(fixture.system.builder.requests("eth_sendBundle")).includes(second.raw),
	);
	await fixture.system.nextBlock();
	const block = await fixture.system.chain.rpc("eth_getBlockByNumber", ["latest", false]);
	const { transactions } = block as { transactions: string[] };
	assert.equal(transactions[transactions.indexOf(String(target.hash)) + 1], second.hash);
	assert.ok(!transactions.includes(first.hash));
});

test("what differs: a bid by priority fees alone pays nothing", async () => {
	const target = await seen();
	accounts += 1;
	const generous = signedBy(accounts, { to: EMITTER, maxPriorityFeePerGas: 15_000_000_000n });
	const { error } = await bot.bundle(await documented(target, generous.raw));
	const { code, message } = error as { code: number; message: string };
	assert.equal(code, -32000);
	assert.match(message, /^backrun pays nothing to the fee recipient/);
});

test("a bid is for blocks within its times, which the builder receives; the documentation's example is in the past", async () => {
	const target = await seen();
	const { raw, hash } = backrun(4_000n);
	const { error } = await bot.bundle(await documented(target, raw, { maxTimestamp: 1_615_920_932 }));
	assert.deepEqual(error, {
		...{ code: -32000, message: "bundle maxTimestamp 1615920932 is in the past" },
		data: { reason: "BLOCK_PAST" },
	});
	const { timestamp } = (await fixture.system.chain.rpc("eth_getBlockByNumber", ["latest", false])) as Fields;
	const next = Number(timestamp) + 12;
	const late = String((await bot.bundle(await documented(target, raw, { minTimestamp: next + 1 }))).result);
	const { body } = await fixture.bundle(late);
	assert.deepEqual(
		(body as { blocks: Fields[] }).blocks.map(({ stage, reason }) => [stage, reason]),
		[["ACCEPTED", null]],
	);
	const times = { minTimestamp: next, maxTimestamp: next };
	assert.equal((await bot.bundle(await documented(target, raw, times))).result, late);
	const sent = await until("the builder has it", () =>
		fixture.system.builder.requests("eth_sendBundle").find((one) => JSON.stringify(one).includes(raw)),
	);
	const { minTimestamp, maxTimestamp } = sent.params[0] as Fields;
	assert.deepEqual({ minTimestamp, maxTimestamp }, times);
	await fixture.system.nextBlock();
	const block = await fixture.system.chain.rpc("eth_getBlockByNumber", ["latest", false]);
	assert.ok((block as { transactions: string[] }).transactions.includes(hash));
});

test("what differs: a bid is for one block; the same bot bids again for the next one", async () => {
	const target = await seen();
	const { raw } = backrun(4_000n);
	const { blockNumber, ...bid } = await documented(target, raw);
	const hash = String((await bot.bundle(bid)).result);
	// A block of others: the target is not in it.
	await fixture.system.chain.rpc("evm_mine");
	await fixture.system.seesHead(await fixture.head());
	await until("its block has come", async () => (await fixture.stages(hash)).includes("TARGET_NOT_MINED"));
	assert.equal((await bot.bundle(bid)).result, hash);
	assert.deepEqual(await fixture.stages(hash), ["TARGET_NOT_MINED", "ACCEPTED"]);
});
