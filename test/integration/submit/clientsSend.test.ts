// The clients that wallets are built on send a transaction by the relay and see it mined, on a
// chain whose blocks come by real time. Nothing is set in them for us: the relay looks like any
// node to them. The README's own lines for cast, ethers and viem are run by
// test/integration/deploy/start.test.ts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { parseEther, Wallet, WebSocketProvider } from "ethers";
import { createWalletClient, publicActions, TransactionReceiptNotFoundError, webSocket } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { Web3 } from "web3";
import type { RelayProcess } from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const RECEIVER = "0x000000000000000000000000000000000000dEaD";

let system: ProcessSystem;
let relay: RelayProcess;
before(async () => {
	system = await startProcessSystem({
		chain: { slotSeconds: 1 },
		builder: { manual: false },
		env: { HEAD_POLL_MS: "50" },
	});
	relay = await system.start();
});
after(() => system.stop());

test("web3.js: sendSignedTransaction", async () => {
	const web3 = new Web3(`${relay.url}/fast`);
	const account = web3.eth.accounts.privateKeyToAccount(keyOf(3));
	const signed = await account.signTransaction({
		type: 2,
		chainId: 31337,
		nonce: Number(await web3.eth.getTransactionCount(account.address)),
		to: RECEIVER,
		value: parseEther("1"),
		gas: 21_000,
		maxFeePerGas: 20_000_000_000,
		maxPriorityFeePerGas: 1_000_000_000,
	});
	const receipt = await web3.eth.sendSignedTransaction(signed.rawTransaction);
	assert.equal(receipt.status, 1n);
	await assertBuilt(String(receipt.transactionHash), Number(receipt.blockNumber));
});

test("ethers over a websocket on /fast: sendTransaction and its receipt", async (t) => {
	const provider = new WebSocketProvider(`${relay.url.replace("http", "ws")}/fast`);
	t.after(() => provider.destroy());
	const wallet = new Wallet(keyOf(4), provider);
	const sent = await wallet.sendTransaction({ to: RECEIVER, value: parseEther("1") });
	// Its wait() needs a subscription to new heads.
	const receipt = await until(
		"its receipt",
		async () => (await provider.getTransactionReceipt(sent.hash)) ?? undefined,
	);
	assert.equal(receipt.status, 1);
	await assertBuilt(sent.hash, receipt.blockNumber);
});

test("viem over a websocket on /fast: sendRawTransaction and its receipt", async (t) => {
	const transport = webSocket(`${relay.url.replace("http", "ws")}/fast`, { reconnect: false });
	const account = privateKeyToAccount(keyOf(5));
	const client = createWalletClient({ account, chain: foundry, transport }).extend(publicActions);
	t.after(async () => (await client.transport.getRpcClient()).close());
	const request = await client.prepareTransactionRequest({ to: RECEIVER, value: parseEther("1") });
	const serializedTransaction = await client.signTransaction(request);
	const hash = await client.sendRawTransaction({ serializedTransaction });
	const receipt = await until("its receipt", () =>
		client.getTransactionReceipt({ hash }).catch((thrown: unknown) => {
			if (thrown instanceof TransactionReceiptNotFoundError) return undefined;
			throw thrown;
		}),
	);
	assert.equal(receipt.status, "success");
	await assertBuilt(hash, Number(receipt.blockNumber));
});

/**
 * Asserts that the dev builder built it, from the relay's delivery, in the block that the client
 * received.
 */
async function assertBuilt(hash: string | undefined, number: number | undefined): Promise<void> {
	// The chain shows the block a moment before the builder has written down what it built.
	const block = await until("the builder's record of the block", () =>
		system.builder.blocks().find((one) => one.number === number),
	);
	assert.ok(block.transactions.includes(hash ?? ""), `${hash} is not in block ${number} of the builder`);
	assert.ok(!block.publicTransactions.includes(hash ?? ""));
	await until("its stage", async () => (await relay.client.stage(hash ?? "")) === "INCLUDED");
}

function keyOf(account: number): `0x${string}` {
	return system.chain.accounts[account]?.privateKey as `0x${string}`;
}
