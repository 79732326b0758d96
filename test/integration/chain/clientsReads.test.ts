// The clients that wallets are built on read through the relay just what the node tells them directly: balances,
// blocks, logs, fees, receipts, calls; batched too. Each question is put to both, by the same client.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { JsonRpcProvider, WebSocketProvider } from "ethers";
import { createPublicClient, http, type PublicClient, webSocket } from "viem";
import { foundry } from "viem/chains";
import { Web3 } from "web3";
import { cast } from "../../support/castCommand.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/processSystem.ts";
import type { RelayProcess } from "../../support/relayProcess.ts";
import { accountOf, rawTransaction } from "../../support/txFactory.ts";

/** Answers its call data, and logs it under the topic 0x…2a. */
const ECHO = "0x00000000000000000000000000000000000ec400";
// CALLDATACOPY(0, 0, size) LOG1(0, size, 42) RETURN(0, size)
const ECHO_CODE = "0x365f5f37602a365fa1365ff3";
const TOPIC = `0x${"2a".padStart(64, "0")}` as const;

let system: ProcessSystem;
let relay: RelayProcess;
/** Of the chain's first account. */
let holder: `0x${string}`;
let hash: `0x${string}`;
before(async () => {
	system = await startProcessSystem();
	await system.chain.rpc("anvil_setCode", [ECHO, ECHO_CODE]);
	relay = await system.start();
	holder = system.chain.accounts[0]?.address as `0x${string}`;
	const by = accountOf(system.chain.accounts[0]?.privateKey ?? "");
	const raw = rawTransaction({ by, to: ECHO, data: "0x1234", nonce: 0 });
	hash = (await relay.client.send(`0x${raw.toString("hex")}`)) as `0x${string}`;
	await system.builder.waitForRequest("eth_sendBundle");
	await system.nextBlock(relay);
	await system.nextBlock(relay);
});
after(() => system.stop());

test("ethers sees what the node says, in batches of its own making", async (t) => {
	const batches: number[] = [];
	await compareEthers((url) => {
		const provider = new JsonRpcProvider(url);
		void provider.on("debug", ({ action, payload }: { action: string; payload?: unknown }) => {
			if (action === "sendRpcPayload" && Array.isArray(payload)) batches.push(payload.length);
		});
		t.after(() => provider.destroy());
		return provider;
	}, "");
	assert.ok(Math.max(...batches) > 5, "it sent no batch");
});

test("ethers over a websocket on /fast sees what the node says", async (t) => {
	await compareEthers((url) => {
		const provider = new WebSocketProvider(url.replace("http", "ws"));
		t.after(() => provider.destroy());
		return provider;
	}, "/fast");
});

test("viem sees what the node says", async () => {
	await compareViem((url) => createPublicClient({ chain: foundry, transport: http(url) }));
});

test("viem with batches sees what the node says", async () => {
	await compareViem((url) => createPublicClient({ chain: foundry, transport: http(url, { batch: true }) }));
});

test("viem over a websocket on /fast sees what the node says", async (t) => {
	await compareViem((url) => {
		const transport = webSocket(url.replace("http", "ws"), { reconnect: false });
		const client = createPublicClient({ chain: foundry, transport });
		t.after(async () => (await client.transport.getRpcClient()).close());
		return client;
	}, "/fast");
});

test("web3.js sees what the node says", async () => {
	const [seen, said] = await Promise.all(
		[relay.url, system.chain.url].map(async (url) => {
			const { eth } = new Web3(url);
			return Promise.all([
				eth.getChainId(),
				eth.getBlockNumber(),
				eth.getBalance(holder),
				eth.getBlock("latest"),
				eth.getBlock(1, true),
				eth.getPastLogs({ fromBlock: 0, address: ECHO }),
				eth.getTransactionReceipt(hash),
				eth.getTransactionCount(holder),
				eth.calculateFeeData(),
				eth.getGasPrice(),
				eth.getCode(ECHO),
				eth.getFeeHistory(2, "latest", [50]),
				eth.call({ to: ECHO, data: "0xbeef" }),
				eth.estimateGas({ from: holder, to: ECHO, data: "0xbeef" }),
			]);
		}),
	);
	assert.deepEqual(plain(seen), plain(said));
	assert.equal(seen?.[12], "0xbeef");
});

test("cast sees what the node says", async () => {
	const questions = [
		["chain-id"],
		["block-number"],
		["balance", holder],
		["nonce", holder],
		["block", "1", "--json"],
		["receipt", hash, "--json"],
		["gas-price"],
		["code", ECHO],
		["call", ECHO, "0xbeef"],
		["logs", "--from-block", "0", "--address", ECHO, "--json"],
	];
	for (const question of questions) {
		const [seen, said] = await Promise.all(
			[relay.url, system.chain.url].map((url) => cast(...question, "--rpc-url", url)),
		);
		assert.equal(seen?.code, 0, `${question.join(" ")}: ${seen?.stderr}`);
		assert.deepEqual(seen, said, question.join(" "));
	}
});

async function compareEthers(
	connect: (url: string) => JsonRpcProvider | WebSocketProvider,
	path: string,
): Promise<void> {
	const [seen, said] = await Promise.all(
		[connect(`${relay.url}${path}`), connect(system.chain.url)].map((provider) =>
			Promise.all([
				provider.getNetwork().then(({ chainId }) => chainId),
				provider.getBlockNumber(),
				provider.getBalance(holder),
				provider.getBalance(holder, 0),
				provider.getBlock("latest"),
				provider.getBlock(1, true).then((block) => block?.prefetchedTransactions),
				provider.getLogs({ fromBlock: 0, toBlock: "latest", topics: [TOPIC] }),
				provider.getTransactionReceipt(hash),
				provider.getTransactionCount(holder),
				provider.getFeeData(),
				provider.getCode(ECHO),
				provider.getStorage(ECHO, 0),
				provider.call({ to: ECHO, data: "0xbeef" }),
				provider.estimateGas({ from: holder, to: ECHO, data: "0xbeef" }),
				provider.getTransactionReceipt(`0x${"77".repeat(32)}`),
			]),
		),
	);
	assert.deepEqual(plain(seen), plain(said));
	assert.equal(seen?.[12], "0xbeef");
	assert.equal(seen?.[6].length, 1);
	assert.equal(seen?.[14], null);
}

async function compareViem(
	connect: (url: string) => Pick<PublicClient, keyof PublicClient>,
	path = "",
): Promise<void> {
	const [seen, said] = await Promise.all(
		[connect(`${relay.url}${path}`), connect(system.chain.url)].map((client) =>
			Promise.all([
				client.getChainId(),
				client.getBlockNumber(),
				client.getBalance({ address: holder }),
				client.getBlock(),
				client.getBlock({ blockNumber: 1n, includeTransactions: true }),
				client.getLogs({ address: ECHO, fromBlock: 0n }),
				client.getTransactionReceipt({ hash }),
				client.getTransactionCount({ address: holder }),
				client.estimateFeesPerGas(),
				client.getFeeHistory({ blockCount: 2, rewardPercentiles: [50] }),
				client.getCode({ address: ECHO }),
				client.getProof({ address: ECHO, storageKeys: [TOPIC] }),
				client.call({ to: ECHO, data: "0xbeef" }).then(({ data }) => data),
				client.estimateGas({ account: holder, to: ECHO, data: "0xbeef" }),
			]),
		),
	);
	assert.deepEqual(plain(seen), plain(said));
	assert.equal(seen?.[12], "0xbeef");
	assert.equal(seen?.[5].length, 1);
}

/** Objects of the clients' own hold their provider too: what they say as JSON is compared. */
function plain(value: unknown): unknown {
	return JSON.parse(JSON.stringify(value, (_, one) => (typeof one === "bigint" ? `${one}n` : one)));
}
