// Logs and blocks as clients follow them: by filters that they poll, over the websocket, and by their own libraries.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { Contract, JsonRpcProvider, WebSocketProvider } from "ethers";
import { createPublicClient, http, parseAbiItem } from "viem";
import { foundry } from "viem/chains";
import { Web3 } from "web3";
import { FeedClient } from "../../support/feedClient.ts";
import { postText, RawConnection } from "../../support/rawHttp.ts";
import { type Actor, RelayFixture } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/startSystem.ts";
import { until } from "../../support/until.ts";

/** Emits one event with the first word of its input as its topic. PUSH0 CALLDATALOAD PUSH0 PUSH0 LOG1 STOP */
const EMITS_TOPIC = "0x5f355f5fa100";

type Log = Readonly<Record<string, unknown>>;

let system: TestSystem;
let fixture: RelayFixture;
let actor: Actor;
let contract: string;
let nonce = 0;

before(async () => {
	system = await startSystem();
	fixture = new RelayFixture(system);
	actor = await fixture.actor();
	contract = await fixture.place(EMITS_TOPIC);
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

it("a filter of logs tells what has come since it was asked last, in the node's own words", async () => {
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

it("a filter of blocks tells their hashes", async () => {
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

it("a filter is its client's own, and ends when it is told to", async () => {
	const filter = await call("eth_newBlockFilter");
	const stranger = await RawConnection.open(Number(new URL(system.client.url).port), "127.0.0.2");
	for (const [method, answer] of [
		["eth_getFilterChanges", /filter not found/],
		["eth_uninstallFilter", /"result":false/],
	] as const) {
		stranger.write(postText("/", JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [filter] })));
		assert.match((await stranger.answer()).body, answer, method);
	}
	stranger.destroy();
	assert.equal(await call("eth_uninstallFilter", filter), true);
	assert.equal(await call("eth_uninstallFilter", filter), false);
	await assert.rejects(call("eth_getFilterChanges", filter), /filter not found/);
});

it("what can't be filtered is refused, and said", async () => {
	const rows: [string, readonly unknown[], RegExp][] = [
		["eth_newFilter", [{ address: "0x12" }], /filter\.address: expected an address of 20 bytes as 0x hex/],
		["eth_newFilter", [{ topics: ["0x12"] }], /filter\.topics\[0\]: expected a topic of 32 bytes as 0x hex/],
		["eth_newFilter", [{ fromBlock: 1 }], /filter\.fromBlock: expected a block number/],
		[
			"eth_newFilter",
			[{ topics: Array(5).fill(null) }],
			/filter\.topics: expected a list of 4 topics at most/,
		],
		["eth_newPendingTransactionFilter", [], /pending transactions are private/],
		["eth_getFilterChanges", ["0x1"], /filter not found/],
	];
	for (const [method, params, message] of rows)
		await assert.rejects(call(method, ...params), message, method);
	assert.deepEqual(await call("eth_accounts"), []);
});

it("a subscription tells logs as they come, and as removed when a reorganisation takes them back", async () => {
	const feed = await FeedClient.open(`${system.client.url.replace("http", "ws")}/ws`);
	const all = await feed.subscribe("logs", {});
	const some = await feed.subscribe("logs", { address: contract, topics: [topic("e")] });
	const snapshot = await system.chain.snapshot();
	const before = nonce;
	await emit([topic("e"), topic("f")]);
	await until("both logs", () => feed.told(all).length === 2);
	const [first] = (await system.chain.rpc("eth_getLogs", [
		{ address: contract, topics: [topic("e")] },
	])) as Log[];
	assert.deepEqual(feed.told(some), [{ ...first, removed: false }]);
	await system.chain.revert(snapshot);
	nonce = before;
	await system.chain.rpc("anvil_setCoinbase", [`0x${"78".repeat(20)}`]);
	await emit([topic("f")], false);
	await fixture.mineUnseen();
	await until("what was taken back, and the new one", () => feed.told(all).length === 5);
	assert.deepEqual(
		feed.told(all).map(({ removed, topics }) => [removed, (topics as unknown[])[0]]),
		[
			[false, topic("e")],
			[false, topic("f")],
			[true, topic("e")],
			[true, topic("f")],
			[false, topic("f")],
		],
	);
	assert.deepEqual(feed.told(some).at(-1), { ...first, removed: true });
	feed.close();
});

const ABI = ["event Ping()"];

it("contract.on of ethers, over HTTP and over a websocket", async () => {
	const providers = [
		new JsonRpcProvider(system.client.url, undefined, { staticNetwork: true, pollingInterval: 20 }),
		new WebSocketProvider(`${system.client.url.replace("http", "ws")}/ws`, undefined, {
			staticNetwork: true,
		}),
	];
	for (const provider of providers) {
		const listened = new Contract(contract, ABI, provider);
		let heard = 0;
		await listened.on("Ping", () => {
			heard += 1;
		});
		const ping = listened.interface.getEvent("Ping")?.topicHash ?? "";
		await provider.getBlockNumber();
		await until("an event", async () => {
			await emit([ping]);
			return heard > 0;
		});
		await listened.off("Ping");
		await provider.destroy();
	}
});

it("viem's watchEvent, and web3.js's logs", async () => {
	const client = createPublicClient({
		chain: foundry,
		transport: http(system.client.url),
		pollingInterval: 20,
	});
	const event = parseAbiItem("event Ping()");
	const seen: unknown[] = [];
	const faults: Error[] = [];
	const stop = client.watchEvent({
		event,
		address: contract as `0x${string}`,
		onLogs: (logs) => void seen.push(...logs),
		onError: (fault) => void faults.push(fault),
	});
	const web3 = new Web3(`${system.client.url.replace("http", "ws")}/ws`);
	const subscription = await web3.eth.subscribe("logs", { address: contract });
	const told: unknown[] = [];
	subscription.on("data", (log) => void told.push(log));
	const ping = new Contract(contract, ABI).interface.getEvent("Ping")?.topicHash ?? "";
	await until("both have heard", async () => {
		await emit([ping]);
		return seen.length > 0 && told.length > 0;
	});
	stop();
	web3.provider?.disconnect();
	assert.deepEqual(faults, []);
});
