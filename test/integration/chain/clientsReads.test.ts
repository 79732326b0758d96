// The clients that wallets are built on read through the relay just what the node tells them
// directly: balances, blocks, logs, fees, receipts, calls; batched too. And a private transaction
// of every type, pending and mined: all of them take an object whose signature is hidden, and see
// no block in it before there is one.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { JsonRpcProvider, WebSocketProvider } from "ethers";
import { createPublicClient, http, type PublicClient, webSocket } from "viem";
import { foundry } from "viem/chains";
import { Web3 } from "web3";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { TransactionType } from "../../../shared/ethereum/transactionFields.ts";
import { sized } from "../../support/length.ts";
import { cast, type RelayProcess } from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { accountOf, rawTransaction, signedTransaction, type TxOptions } from "../../support/txFactory.ts";

/** Answers its call data, and logs it under the topic 0x…2a. */
const ECHO = "0x00000000000000000000000000000000000ec400";
// CALLDATACOPY(0, 0, size) LOG1(0, size, 42) RETURN(0, size)
const ECHO_CODE = "0x365f5f37602a365fa1365ff3";
const TOPIC = `0x${"2a".padStart(64, "0")}` as const;

/**
 * Blobs cost the chain and the relay ten seconds of CPU time; blobs.test.ts has what clients are
 * shown of them.
 */
const TYPES = sized<readonly TransactionType[]>([0, 2, 4], [0, 1, 2, 3, 4]);
const VIEM_TYPES = ["legacy", "eip2930", "eip1559", "eip4844", "eip7702"] as const;
const TO = "0x00000000000000000000000000000000000be11e";
const ACCESS = [{ address: TO, storageKeys: [`0x${"01".repeat(32)}`] }];

let system: ProcessSystem;
let relay: RelayProcess;
let holder: `0x${string}`;
let hash: `0x${string}`;
before(async () => {
	system = await startProcessSystem();
	await system.chain.rpc("anvil_setCode", [ECHO, ECHO_CODE]);
	relay = await system.start();
	holder = system.chain.accounts[8]?.address as `0x${string}`;
	const by = accountOf(system.chain.accounts[8]?.privateKey ?? "");
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
		["block", "1", "--json"],
		["receipt", hash, "--json"],
		["call", ECHO, "0xbeef"],
		["logs", "--from-block", "0", "--address", ECHO, "--json"],
		["chain-id"],
		["block-number"],
		["balance", holder],
		["nonce", holder],
		["gas-price"],
		["code", ECHO],
	];
	for (const question of questions.slice(0, sized(4, questions.length))) {
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

for (const type of TYPES) {
	test(`type ${type}: pending and mined, by ethers, viem, web3.js and cast`, async (t) => {
		const options = optionsOf(type);
		const tx = signedTransaction(options);
		const raw = `0x${rawTransaction(options).toString("hex")}`;
		await relay.client.send(raw);
		await system.delivered([raw]);
		for (let i = 0; i < 3; i++) {
			const answer = await relay.client.ask("eth_getTransactionReceipt", [tx.hash]);
			assert.deepEqual([answer.result, "error" in answer], [null, false]);
		}
		await assertSeen(t, tx, null);
		const number = await system.nextBlock(relay);
		await assertSeen(t, tx, number);
		const receipt = await relay.client.call("eth_getTransactionReceipt", [tx.hash]);
		assert.equal(Number((receipt as { blockNumber: string }).blockNumber), number);
	});
}

/**
 * By each client, over HTTP and where it can over a websocket; `block` null while it is pending.
 */
async function assertSeen(
	t: { after(fn: () => void): void },
	tx: DecodedTransaction,
	block: number | null,
): Promise<void> {
	const socketUrl = `${relay.url.replace("http", "ws")}/fast`;
	const providers = [new JsonRpcProvider(`${relay.url}/fast`), new WebSocketProvider(socketUrl)];
	for (const provider of providers) {
		t.after(() => void provider.destroy());
		const seen = await provider.getTransaction(tx.hash);
		assert.ok(seen !== null);
		assert.equal(seen.isMined(), block !== null);
		assert.deepEqual(
			[seen.hash, seen.type, seen.blockNumber, seen.blockHash === null, seen.from.toLowerCase()],
			[tx.hash, tx.type, block, block === null, tx.from],
		);
		assert.deepEqual(
			[seen.to?.toLowerCase(), seen.nonce, seen.value, seen.gasLimit, seen.data, seen.chainId],
			[TO, Number(tx.nonce), tx.value, tx.gasLimit, "0x1234", 31337n],
		);
		if (tx.type >= 2) {
			assert.deepEqual(
				[seen.maxFeePerGas, seen.maxPriorityFeePerGas],
				[tx.maxFeePerGas, tx.maxPriorityFeePerGas],
			);
		}
		assert.deepEqual([BigInt(seen.signature.r), BigInt(seen.signature.s)], [0n, 0n]);
		if (tx.type === 4) {
			const list = seen.authorizationList?.map(({ chainId, address, nonce, signature }) => {
				return { chainId, address: address.toLowerCase(), nonce, isSigned: BigInt(signature.r) !== 0n };
			});
			assert.deepEqual(list, authorizationsOf(tx, block));
		}
	}
	const sockets = webSocket(socketUrl, { reconnect: false });
	const viemSocket = createPublicClient({ chain: foundry, transport: sockets });
	t.after(async () => (await viemSocket.transport.getRpcClient()).close());
	for (const client of [createPublicClient({ chain: foundry, transport: http(relay.url) }), viemSocket]) {
		const seen = await client.getTransaction({ hash: tx.hash as `0x${string}` });
		assert.equal(seen.type, VIEM_TYPES[tx.type]);
		assert.deepEqual(
			[seen.hash, seen.blockNumber, seen.blockHash === null, seen.transactionIndex === null],
			[tx.hash, block === null ? null : BigInt(block), block === null, block === null],
		);
		assert.deepEqual(
			[seen.from, seen.to, seen.nonce, seen.value, seen.gas, seen.input],
			[tx.from, TO, Number(tx.nonce), tx.value, tx.gasLimit, "0x1234"],
		);
		assert.deepEqual([BigInt(seen.r), BigInt(seen.s)], [0n, 0n]);
		if (seen.type === "eip7702") {
			const list = seen.authorizationList.map(({ chainId, address, nonce, r }) => {
				return { chainId: BigInt(chainId), address, nonce: BigInt(nonce), isSigned: BigInt(r) !== 0n };
			});
			assert.deepEqual(list, authorizationsOf(tx, block));
		}
	}
	const web3 = await new Web3(relay.url).eth.getTransaction(tx.hash);
	assert.equal(web3.hash, tx.hash);
	assert.equal(web3.blockNumber ?? null, block === null ? null : BigInt(block));
	const run = await cast("tx", tx.hash, "--json", "--rpc-url", relay.url);
	assert.equal(run.code, 0, run.stderr);
	const printed = JSON.parse(run.stdout) as Record<string, string | null>;
	assert.deepEqual(
		[printed.hash, printed.from, printed.blockNumber],
		[tx.hash, tx.from, block === null ? null : `0x${block.toString(16)}`],
	);
}

/** The authorizations of `tx`, whose signatures are public once they are in a block. */
function authorizationsOf(tx: DecodedTransaction, block: number | null): readonly object[] {
	return tx.authorizationList.map(({ chainId, address, nonce }) => ({
		...{ chainId, address, nonce, isSigned: block !== null },
	}));
}

function optionsOf(type: TransactionType): TxOptions {
	const by = accountOf(system.chain.accounts[type]?.privateKey ?? "");
	const base = { type, by, to: TO, data: "0x1234", value: 5n, gasLimit: 150_000 };
	if (type === 0) return base;
	if (type !== 4) return { ...base, accessList: ACCESS };
	const authority = accountOf(system.chain.accounts[9]?.privateKey ?? "");
	return { ...base, accessList: ACCESS, authorizations: [{ by: authority, address: TO }] };
}
