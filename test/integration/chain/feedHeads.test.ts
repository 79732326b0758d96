// New heads over a websocket, for the clients that wallets and bots are built on, unchanged: each block is told once,
// in order, as the node has it; and reorganisations as they happen.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { WebSocketProvider } from "ethers";
import { createPublicClient, webSocket } from "viem";
import { foundry } from "viem/chains";
import { FeedClient } from "../../support/feeds.ts";
import { metricsOf } from "../../support/relayClient.ts";
import { RelayFixture } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

let system: TestSystem;
let fixture: RelayFixture;
let url: string;

before(async () => {
	system = await startSystem({ proxied: true });
	fixture = new RelayFixture(system);
	url = `${system.client.url.replace("http", "ws")}/ws`;
});
after(() => system.stop());

/** Waits until the relay has this many subscriptions: a client's own has arrived. */
async function subscribed(count: number): Promise<void> {
	await until(`${count} subscriptions`, async () => {
		const text = await metricsOf(system.client.url);
		return Number(/^relay_subscriptions (\d+)$/m.exec(text)?.[1]) === count;
	});
}

async function nodeHeader(block: unknown): Promise<Record<string, unknown>> {
	const whole = (await system.chain.rpc("eth_getBlockByHash", [block, false])) as Record<string, unknown>;
	const { transactions: _t, uncles: _u, withdrawals: _w, size: _s, totalDifficulty: _d, ...header } = whole;
	return header;
}

it("are the node's headers, each once and in order", async () => {
	const client = await FeedClient.open(url);
	const heads = await client.subscribe("newHeads");
	const numbers: number[] = [];
	for (let i = 0; i < 3; i++) numbers.push(await fixture.passBlock());
	numbers.push(await system.nextBlock());
	await until("four heads", () => client.told(heads).length === 4);
	assert.deepEqual(
		client.told(heads).map(({ number }) => Number(number)),
		numbers,
	);
	for (const head of client.told(heads)) assert.deepEqual(head, await nodeHeader(head.hash));
	client.close();
	await subscribed(0);
});

it("viem's watchBlocks and watchBlockNumber", async () => {
	const client = createPublicClient({ chain: foundry, transport: webSocket(url, { reconnect: false }) });
	const blocks: unknown[] = [];
	const numbers: bigint[] = [];
	const faults: Error[] = [];
	const onError = (error: Error) => void faults.push(error);
	const stops = [
		client.watchBlocks({ onBlock: (block) => void blocks.push([block.number, block.hash]), onError }),
		client.watchBlockNumber({ onBlockNumber: (number) => void numbers.push(number), onError }),
	];
	await subscribed(2);
	const expected: [bigint, unknown][] = [];
	for (let i = 0; i < 3; i++) {
		const number = await fixture.passBlock();
		const block = (await system.chain.rpc("eth_getBlockByNumber", [`0x${number.toString(16)}`, false])) as {
			hash: string;
		};
		expected.push([BigInt(number), block.hash]);
		await until(`block ${number}`, () => blocks.length === i + 1 && numbers.length === i + 1);
	}
	assert.deepEqual(blocks, expected);
	assert.deepEqual(
		numbers,
		expected.map(([number]) => number),
	);
	for (const stop of stops) stop();
	await subscribed(0);
	assert.deepEqual(faults, []);
	(await client.transport.getRpcClient()).close();
});

it('ethers\' provider.on("block")', async () => {
	const provider = new WebSocketProvider(url, undefined, { staticNetwork: true });
	const seen: number[] = [];
	await provider.on("block", (number: number) => void seen.push(number));
	await subscribed(1);
	const numbers = [await fixture.passBlock(), await fixture.passBlock(), await fixture.passBlock()];
	await until("three blocks", () => seen.length === 3);
	assert.deepEqual(seen, numbers);
	await provider.off("block");
	await subscribed(0);
	await provider.destroy();
});

it("a reorganisation tells the blocks that took the others' place", async () => {
	const client = await FeedClient.open(url);
	const heads = await client.subscribe("newHeads");
	const snapshot = await system.chain.snapshot();
	const first = await fixture.passBlock();
	await until("the first", () => client.told(heads).length === 1);
	await system.chain.revert(snapshot);
	// Another block in its place: one that pays somebody else.
	await system.chain.rpc("anvil_setCoinbase", [`0x${"77".repeat(20)}`]);
	await fixture.mineUnseen();
	await fixture.mineUnseen();
	await until("three heads", () => client.told(heads).length >= 3);
	const told = client.told(heads);
	assert.deepEqual(
		told.map(({ number }) => Number(number)),
		[first, first, first + 1],
	);
	assert.notEqual(told[0]?.hash, told[1]?.hash);
	assert.equal(told[2]?.parentHash, told[1]?.hash);
	client.close();
});
