// A pending private transaction of every type as the clients read it by its hash, and the same once it is mined: all
// of them take an object whose signature is hidden, and see no block in it before there is one.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { JsonRpcProvider, WebSocketProvider } from "ethers";
import { createPublicClient, http, webSocket } from "viem";
import { foundry } from "viem/chains";
import { Web3 } from "web3";
import type { TransactionType } from "../../../shared/ethereum/rlp.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import { cast } from "../../support/castCommand.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/processSystem.ts";
import type { RelayProcess } from "../../support/relayProcess.ts";
import { accountOf, rawTransaction, signedTransaction, type TxOptions } from "../../support/txFactory.ts";

const TYPES: readonly TransactionType[] = [0, 1, 2, 3, 4];
const VIEM_TYPES = ["legacy", "eip2930", "eip1559", "eip4844", "eip7702"] as const;
const TO = "0x00000000000000000000000000000000000be11e";
const ACCESS = [{ address: TO, storageKeys: [`0x${"01".repeat(32)}`] }];

let system: ProcessSystem;
let relay: RelayProcess;
before(async () => {
	system = await startProcessSystem();
	relay = await system.start();
});
after(() => system.stop());

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

/** By each client, over HTTP and where it can over a websocket; `block` null while it is pending. */
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

function optionsOf(type: TransactionType): TxOptions {
	const by = accountOf(system.chain.accounts[type]?.privateKey ?? "");
	const base = { type, by, to: TO, data: "0x1234", value: 5n, gasLimit: 150_000 };
	if (type === 0) return base;
	if (type !== 4) return { ...base, accessList: ACCESS };
	const authority = accountOf(system.chain.accounts[9]?.privateKey ?? "");
	return { ...base, accessList: ACCESS, authorizations: [{ by: authority, address: TO }] };
}
