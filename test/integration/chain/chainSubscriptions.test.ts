// Logs and blocks as clients follow them: by filters that they poll, over the websocket, and by the
// libraries that wallets and bots are built on, unchanged; each once and in order, and
// reorganisations as they happen.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, it } from "node:test";
import { Contract, WebSocketProvider } from "ethers";
import { createPublicClient, webSocket } from "viem";
import { foundry } from "viem/chains";
import { postText, RawConnection, WsClient } from "../../support/clients.ts";
import { FeedClient } from "../../support/feeds.ts";
import { metricsOf, type WireAnswer } from "../../support/relayClient.ts";
import { type Actor, RelayFixture } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

/**
 * Emits one event with the first word of its input as its topic. PUSH0 CALLDATALOAD PUSH0 PUSH0
 * LOG1 STOP
 */
const EMITS_TOPIC = "0x5f355f5fa100";

type Log = Readonly<Record<string, unknown>>;

let system: TestSystem;
let fixture: RelayFixture;
let actor: Actor;
let contract: string;
let nonce = 0;
let url: string;

before(async () => {
	system = await startSystem();
	fixture = new RelayFixture(system);
	url = `${system.client.url.replace("http", "ws")}/ws`;
	actor = await fixture.actor();
	contract = await fixture.placeCode(EMITS_TOPIC);
	await fixture.passBlock();
});
after(() => system.stop());

function topic(digit: string): string {
	return `0x${digit.repeat(64)}`;
}

/** Has an event with each topic mined, all in one block, which is not waited for unless `seen`. */
async function emit(topics: readonly string[], seen = true): Promise<void> {
	for (const data of topics) {
		const { raw } = actor.sign({ nonce, to: contract, data, gasLimit: 100_000n });
		nonce += 1;
		await system.chain.rpc("eth_sendRawTransaction", [raw]);
	}
	if (seen) await fixture.passBlock();
	else await fixture.mineUnseen();
}

function call(method: string, ...params: readonly unknown[]): Promise<unknown> {
	return system.client.call(method, params);
}

async function topicsOf(changes: Promise<unknown>): Promise<readonly unknown[]> {
	return ((await changes) as Log[]).map(({ topics }) => (topics as unknown[])[0]);
}

it("a log filter returns the new logs since the last call, exactly as the node does", async () => {
	const all = await call("eth_newFilter", { address: contract });
	const some = await call("eth_newFilter", { address: [contract], topics: [[topic("a"), topic("b")]] });
	const none = await call("eth_newFilter", { address: `0x${"9".repeat(40)}` });
	assert.deepEqual(await call("eth_getFilterChanges", all), []);
	await emit([topic("a"), topic("c")]);
	await emit([topic("b")]);
	const told = (await call("eth_getFilterChanges", all)) as Log[];
	const node = (await system.chain.rpc("eth_getLogs", [{ address: contract, fromBlock: "0x1" }])) as Log[];
	assert.deepEqual(
		told,
		node.map((log) => ({ ...log, removed: false })),
	);
	assert.equal(told.length, 3);
	assert.deepEqual(await topicsOf(call("eth_getFilterChanges", some)), [topic("a"), topic("b")]);
	for (const filter of [all, some, none]) assert.deepEqual(await call("eth_getFilterChanges", filter), []);
	const query = { address: contract, topics: [topic("c")], fromBlock: "0x1", toBlock: "latest" };
	assert.deepEqual(await topicsOf(call("eth_getFilterLogs", await call("eth_newFilter", query))), [
		topic("c"),
	]);
	const past = await call("eth_newFilter", { address: contract, toBlock: "0x1" });
	await emit([topic("d")]);
	assert.deepEqual(await call("eth_getFilterChanges", past), []);
});

it("a block filter returns hashes", async () => {
	const filter = await call("eth_newBlockFilter");
	const numbers = [await fixture.passBlock(), await fixture.passBlock()];
	const hashes = [];
	for (const number of numbers) {
		const block = await system.chain.rpc("eth_getBlockByNumber", [`0x${number.toString(16)}`, false]);
		hashes.push((block as Log).hash);
	}
	assert.deepEqual(await call("eth_getFilterChanges", filter), hashes);
	assert.deepEqual(await call("eth_getFilterChanges", filter), []);
	await assert.rejects(call("eth_getFilterLogs", filter), /filter not found/);
});

it("a filter is known by its id from any address, over HTTP and websockets, until it is uninstalled", async () => {
	const port = Number(new URL(system.client.url).port);
	const mobile = await RawConnection.open(port, "127.0.0.2");
	const socket = await WsClient.open(url, { localAddress: "127.0.0.3" });
	const ask = async (method: string, filter: unknown) => {
		const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [filter] });
		mobile.write(postText("/", text));
		const overHttp = JSON.parse((await mobile.answer()).body) as WireAnswer;
		socket.socket.send(text);
		return [overHttp, (await socket.next()) as WireAnswer].map(({ result, error }) => error ?? result);
	};
	const unknown = { code: -32000, message: "filter not found" };
	const blocks = await call("eth_newBlockFilter");
	const logs = await call("eth_newFilter", { address: contract });
	await emit([topic("a")]);
	const [hashes, later] = await ask("eth_getFilterChanges", blocks);
	assert.deepEqual([(hashes as unknown[]).length, later], [1, []]);
	assert.deepEqual(await topicsOf(Promise.resolve((await ask("eth_getFilterChanges", logs))[0])), [
		topic("a"),
	]);
	for (const answer of await ask("eth_getFilterLogs", await call("eth_newFilter", { address: contract }))) {
		assert.ok(Array.isArray(answer), JSON.stringify(answer));
	}
	assert.deepEqual(await ask("eth_uninstallFilter", blocks), [true, false]);
	assert.deepEqual(await ask("eth_getFilterChanges", blocks), [unknown, unknown]);
	assert.deepEqual(await ask("eth_getFilterLogs", blocks), [unknown, unknown]);
	mobile.destroy();
	socket.terminate();
});

it("a client with 64 filters gets no more, even if another one uninstalls some", async () => {
	const port = Number(new URL(system.client.url).port);
	const [owner, other] = [
		await RawConnection.open(port, "127.0.0.4"),
		await RawConnection.open(port, "127.0.0.5"),
	];
	const ask = async (connection: RawConnection, method: string, ...params: readonly unknown[]) => {
		connection.write(postText("/", JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })));
		const { result, error } = JSON.parse((await connection.answer()).body) as WireAnswer;
		return error?.message ?? result;
	};
	const ids: unknown[] = [];
	for (let i = 0; i < 64; i += 1) ids.push(await ask(owner, "eth_newBlockFilter"));
	assert.equal(await ask(owner, "eth_newBlockFilter"), "limit exceeded: 64 filters per client");
	assert.equal(await ask(other, "eth_uninstallFilter", ids[0]), true);
	assert.match(String(await ask(owner, "eth_newBlockFilter")), /^0x/);
	for (const connection of [owner, other]) connection.destroy();
});

it("unsupported filters are refused, and the error says so", async () => {
	const rows: [string, readonly unknown[], RegExp][] = [
		["eth_newFilter", [{ address: "0x12" }], /filter\.address: expected an address of 20 bytes as 0x hex/],
		["eth_newFilter", [{ topics: ["0x12"] }], /filter\.topics\[0\]: expected a topic of 32 bytes as 0x hex/],
		["eth_newFilter", [{ topic: [] }], /filter\.topic: unknown key: did you mean topics\?/],
		[
			"eth_newFilter",
			[{ blockHash: `0x${"7".repeat(64)}` }],
			/filter\.blockHash: expected none: eth_getLogs has the logs of one block/,
		],
		["eth_newFilter", [{ fromBlock: 1 }], /filter\.fromBlock: expected a block number/],
		[
			"eth_newFilter",
			[{ topics: Array(5).fill(null) }],
			/filter\.topics: expected a list of 4 topics at most/,
		],
		["eth_getFilterChanges", ["0x1"], /filter not found/],
	];
	for (const [method, params, message] of rows)
		await assert.rejects(call(method, ...params), message, method);
	assert.deepEqual(await call("eth_accounts"), []);
});

it("a subscription sends logs when they are mined, and as removed after a reorganisation", async () => {
	const feed = await FeedClient.open(url);
	const all = await feed.subscribe("logs", {});
	const some = await feed.subscribe("logs", { address: contract, topics: [topic("e")] });
	const snapshot = await system.chain.snapshot();
	const before = nonce;
	await emit([topic("e"), topic("f")]);
	await until("both logs", () => feed.received(all).length === 2);
	const [first] = (await system.chain.rpc("eth_getLogs", [
		{ address: contract, topics: [topic("e")] },
	])) as Log[];
	assert.deepEqual(feed.received(some), [{ ...first, removed: false }]);
	await system.chain.revert(snapshot);
	nonce = before;
	await system.chain.rpc("anvil_setCoinbase", [`0x${"78".repeat(20)}`]);
	await emit([topic("f")], false);
	await fixture.mineUnseen();
	await until("what was taken back, and the new one", () => feed.received(all).length === 5);
	assert.deepEqual(
		feed.received(all).map(({ removed, topics }) => [removed, (topics as unknown[])[0]]),
		[
			[false, topic("e")],
			[false, topic("f")],
			[true, topic("e")],
			[true, topic("f")],
			[false, topic("f")],
		],
	);
	assert.deepEqual(feed.received(some).at(-1), { ...first, removed: true });
	feed.close();
});

/**
 * Programs as people write them, each of which ends when it has heard an event. Their libraries
 * never let go by themselves.
 */
const PROGRAMS: Readonly<Record<string, string>> = {
	"ethers over HTTP": `
		const { Contract, JsonRpcProvider } = require("ethers");
		const provider = new JsonRpcProvider(url, undefined, { staticNetwork: true, pollingInterval: 20 });
		new Contract(address, ["event Ping()"], provider).on("Ping", () => process.exit(0));`,
	"ethers over a websocket": `
		const { Contract, WebSocketProvider } = require("ethers");
		new Contract(address, ["event Ping()"], new WebSocketProvider(wsUrl)).on("Ping", () => process.exit(0));`,
	"viem's watchEvent": `
		const { createPublicClient, http, parseAbiItem } = require("viem");
		const client = createPublicClient({ transport: http(url), pollingInterval: 20 });
		const event = parseAbiItem("event Ping()");
		client.watchEvent({ event, address, onLogs: () => process.exit(0), onError: () => process.exit(1) });`,
	"web3.js over a websocket": `
		const { Web3 } = require("web3");
		const { eth } = new Web3(wsUrl);
		eth.subscribe("logs", { address }).then((logs) => logs.on("data", () => process.exit(0)));`,
};
const ARGUMENTS = "const [url, wsUrl, address] = process.argv.slice(1);";

for (const [name, program] of Object.entries(PROGRAMS)) {
	it(`${name} receives an event`, async () => {
		const args = ["-e", ARGUMENTS + program, "--", system.client.url, url, contract];
		const child = spawn(process.execPath, args, { stdio: "inherit" });
		const ping = new Contract(contract, ["event Ping()"]).interface.getEvent("Ping")?.topicHash ?? "";
		// ethers throws where it reads an event together with the answers before it, which tell it the
		// chain.
		if (program.includes("wsUrl")) await subscribed(1);
		await until("the end of the program", async () => {
			await emit([ping]);
			return child.exitCode !== null || child.signalCode !== null;
		});
		assert.equal(child.exitCode, 0);
	});
}

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

it("new heads are the node's headers, each once and in order", async () => {
	const client = await FeedClient.open(url);
	const heads = await client.subscribe("newHeads");
	const numbers: number[] = [];
	for (let i = 0; i < 3; i++) numbers.push(await fixture.passBlock());
	numbers.push(await system.nextBlock());
	await until("four heads", () => client.received(heads).length === 4);
	assert.deepEqual(
		client.received(heads).map(({ number }) => Number(number)),
		numbers,
	);
	for (const head of client.received(heads)) assert.deepEqual(head, await nodeHeader(head.hash));
	client.close();
	await subscribed(0);
});

it("new heads by viem's watchBlocks and watchBlockNumber", async () => {
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

it('new heads by ethers\' provider.on("block")', async () => {
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

it("a reorganisation sends the heads of the new blocks", async () => {
	const client = await FeedClient.open(url);
	const heads = await client.subscribe("newHeads");
	const snapshot = await system.chain.snapshot();
	const first = await fixture.passBlock();
	await until("the first", () => client.received(heads).length === 1);
	await system.chain.revert(snapshot);
	// Another block in its place: one that pays somebody else.
	await system.chain.rpc("anvil_setCoinbase", [`0x${"77".repeat(20)}`]);
	await fixture.mineUnseen();
	await fixture.mineUnseen();
	await until("three heads", () => client.received(heads).length >= 3);
	const told = client.received(heads);
	assert.deepEqual(
		told.map(({ number }) => Number(number)),
		[first, first, first + 1],
	);
	assert.notEqual(told[0]?.hash, told[1]?.hash);
	assert.equal(told[2]?.parentHash, told[1]?.hash);
	client.close();
});
