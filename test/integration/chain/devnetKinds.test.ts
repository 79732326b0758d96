// Tests every kind of transaction through the dev builder: legacy, blobs of both kinds, delegations, creations; and
// full or large blocks.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { getCreateAddress, keccak256, type TransactionRequest, type Wallet } from "ethers";
import { blobSample } from "../../devnet/blobSample.ts";
import {
	CONTRACTS,
	type DevnetFixture,
	type Sample,
	sample,
	startFixture,
	walletOf,
} from "../../devnet/devnetFixture.ts";

const GWEI = 1_000_000_000n;
/** JUMPDEST PUSH0 JUMP: burns all the gas it is given. */
const BURNER_INIT = "0x5b5f56";

let net: DevnetFixture;
before(async () => {
	net = await startFixture({ chain: { accounts: 20 } });
});
after(() => net.stop());

test("types 0, 1 and 2", async () => {
	const fee = { gasPrice: 100n * GWEI };
	const legacy = await signed(net.chain.wallet(0), { type: 0, ...fee });
	const listed = await signed(net.chain.wallet(1), {
		type: 1,
		...fee,
		accessList: [{ address: CONTRACTS.payer, storageKeys: [] }],
	});
	const plain = await net.from(2);
	for (const tx of [legacy, listed, plain]) await net.bundle([tx]);
	const block = await net.build();
	assert.deepEqual(new Set(block.transactions), new Set([legacy.hash, listed.hash, plain.hash]));
});

test("a legacy transaction without a chain id", async () => {
	const tx = await signed(net.chain.wallet(0), { type: 0, gasPrice: 100n * GWEI, chainId: 0 });
	await net.bundle([tx]);
	assert.deepEqual((await net.build()).transactions, [tx.hash]);
});

test("blob transactions with either kind of sidecar, in a bundle and alone", async () => {
	const [a, b] = [net.chain.wallet(3), net.chain.wallet(4)];
	const proofs = blobSample(a, { nonce: 0, sidecar: 0 });
	const cells = blobSample(b, { nonce: 0, sidecar: 1, blobs: 2 });
	await net.bundle([proofs, await net.from(2)]);
	await net.priv(cells);
	const block = await net.build();
	assert.equal(block.transactions.length, 3);
	const raw = (await net.chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	assert.equal(Number(raw.blobGasUsed), 3 * 131_072);
	assert.equal((await net.statuses(block))[cells.hash], true);
});

test("a public blob transaction keeps its blobs over a burst", async () => {
	const wallet = net.chain.wallet(3);
	const later = blobSample(wallet, { nonce: 2 });
	await net.chain.rpc("eth_sendRawTransaction", [later.raw]);
	assert.deepEqual((await net.build()).transactions, []);
	const first = blobSample(wallet, { nonce: 1 });
	await net.bundle([first]);
	assert.deepEqual((await net.build()).transactions, [first.hash, later.hash]);
});

test("a blob transaction without its blobs is refused", async () => {
	const tx = blobSample(net.chain.wallet(3), { nonce: 3 });
	await assert.rejects(
		net.priv({ ...tx, raw: tx.bare }),
		/-32602 the transaction is not a signed transaction/,
	);
});

test("a delegation (EIP-7702)", async () => {
	const authority = walletOf("authority");
	const auth = await authority.authorize({ address: CONTRACTS.payer, nonce: 0, chainId: 31337 });
	const tx = await signed(net.chain.wallet(5), {
		type: 4,
		to: authority.address,
		authorizationList: [auth],
		...fees,
	});
	await net.bundle([tx]);
	assert.deepEqual((await net.build()).transactions, [tx.hash]);
	const code = await net.chain.rpc("eth_getCode", [authority.address, "latest"]);
	assert.equal(code, `0xef0100${CONTRACTS.payer.slice(2)}`);
});

test("a creation, with a payment to the coinbase by self-destruct", async () => {
	const wallet = net.chain.wallet(6);
	const nonce = await net.nonce(wallet.address);
	// PUSH4 code PUSH0 MSTORE; RETURN(28, 4)
	const creation = await sample(wallet, { nonce, to: null, value: 0n, data: "0x63345f55005f526004601cf3" });
	// COINBASE SELFDESTRUCT
	const paying = await sample(wallet, {
		nonce: nonce + 1,
		to: null,
		value: 777_777n,
		data: "0x41ff",
		tip: 0n,
	});
	await net.bundle([creation, paying]);
	const block = await net.build();
	assert.deepEqual(block.transactions, [creation.hash, paying.hash]);
	const created = getCreateAddress({ from: wallet.address, nonce });
	assert.equal(await net.chain.rpc("eth_getCode", [created, "latest"]), "0x345f5500");
	const tip = (await gasUsed(creation.hash)) * GWEI;
	assert.equal(block.orders[0]?.gain, tip + 777_777n);
});

test("what does not fit into a block waits for the next one, a smaller one goes before it", async () => {
	const big = [];
	for (let account = 7; account < 12; account++) {
		const tx = await net.from(account, {
			to: null,
			value: 0n,
			data: BURNER_INIT,
			gasLimit: 16_000_000n,
			tip: 2n * GWEI,
		});
		await net.priv(tx);
		big.push(tx.hash);
	}
	const small = await net.from(12);
	await net.priv(small);
	const first = await net.build();
	assert.deepEqual(first.transactions, [...big.slice(0, 3), small.hash]);
	assert.deepEqual(
		first.leftOut.map(({ reason, at }) => [reason, at]),
		big.slice(3).map((hash) => ["blockFull", hash]),
	);
	assert.deepEqual((await net.build()).transactions, big.slice(3));
});

test("300 senders in one block, in the order of what they pay", async () => {
	const wallets = Array.from({ length: 300 }, (_, i) => walletOf(`crowd ${i}`));
	await net.chain.batch(
		wallets.map(({ address }) => ({ method: "anvil_setBalance", params: [address, "0xde0b6b3a7640000"] })),
	);
	const sent: { tip: bigint; hash: string }[] = [];
	for (const [i, wallet] of wallets.entries()) {
		// All tips differ, and come in no order.
		const tip = GWEI + BigInt((i * 7919) % 300);
		const tx = await sample(wallet, { tip, gasLimit: 21_000n });
		sent.push({ tip, hash: tx.hash });
		await net.bundle([tx]);
	}
	sent.sort((a, b) => (a.tip < b.tip ? 1 : -1));
	const block = await net.build();
	assert.deepEqual(
		block.transactions,
		sent.map(({ hash }) => hash),
	);
});

const fees = { maxFeePerGas: 100n * GWEI, maxPriorityFeePerGas: GWEI };

async function signed(wallet: Wallet, fields: TransactionRequest): Promise<Sample> {
	const nonce = await net.nonce(wallet.address);
	const to = walletOf("stranger").address;
	const raw = await wallet.signTransaction({ chainId: 31337, to, gasLimit: 100_000n, nonce, ...fields });
	return { raw, hash: keccak256(raw), from: wallet.address };
}

async function gasUsed(hash: string): Promise<bigint> {
	const receipt = (await net.chain.rpc("eth_getTransactionReceipt", [hash])) as Record<string, string>;
	return BigInt(receipt.gasUsed ?? 0);
}
