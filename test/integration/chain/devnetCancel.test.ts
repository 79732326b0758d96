// Who may take an order back, and how: every cancel of the wire, replacement by uuid, and signatures.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { id } from "ethers";
import { type DevnetFixture, sample, startFixture, walletOf } from "../../devnet/devnetFixture.ts";

const UUID = "8f6d2f5c-3c7a-4d3e-9b0a-1c2d3e4f5a6b";
const EMPTY_HASH = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";

let net: DevnetFixture;
before(async () => {
	net = await startFixture();
});
after(() => net.stop());

test("eth_cancelBundle takes a bundle back and answers 200, also for an unknown one", async () => {
	await net.bundle([await net.from(0)], { replacementUuid: UUID });
	assert.equal(await net.client.call("eth_cancelBundle", { replacementUuid: UUID }), 200);
	assert.deepEqual((await net.build()).transactions, []);
	assert.equal(net.builder.bundles().at(-1)?.state, "cancelled");
	assert.equal(await net.client.call("eth_cancelBundle", { replacementUuid: UUID }), 200);
	assert.deepEqual(net.builder.requests("eth_cancelBundle").at(-1)?.effects, []);
});

test("an empty bundle with the uuid takes it back", async () => {
	await net.bundle([await net.from(0)], { replacementUuid: UUID });
	assert.deepEqual(await net.bundle([], { replacementUuid: UUID }), { bundleHash: EMPTY_HASH });
	assert.deepEqual((await net.build()).transactions, []);
	await assert.rejects(net.bundle([]), /-32602 empty bundle without replacementUuid/);
});

test("a new bundle replaces the one with its uuid, by either name, whatever its block", async () => {
	const first = await net.from(0);
	const second = await net.from(1);
	await net.bundle([first], { replacementUuid: UUID });
	await net.bundle([second], { uuid: UUID, blockNumber: await net.blockAfter(2) });
	assert.deepEqual(net.builder.requests().at(-1)?.effects.slice(1), [
		`order ${net.builder.bundles().at(-2)?.id} replaced`,
	]);
	assert.deepEqual((await net.build()).transactions, []);
	assert.deepEqual((await net.build()).transactions, [second.hash]);
});

test("mev_sendBundle and eth_sendBundle share their uuids", async () => {
	const first = await net.from(0);
	const second = await net.from(1);
	await net.bundle([first], { replacementUuid: UUID });
	await net.client.call("mev_sendBundle", {
		version: "v0.1",
		inclusion: { block: await net.blockAfter(1) },
		body: [{ tx: second.raw, canRevert: false }],
		replacementUuid: UUID,
	});
	assert.deepEqual((await net.build()).transactions, [second.hash]);
});

test("a foreign signer can neither cancel nor replace", async () => {
	const stranger = net.clientOf(walletOf("stranger"));
	const own = await net.from(0);
	await net.bundle([own], { replacementUuid: UUID });
	assert.equal(await stranger.call("eth_cancelBundle", { replacementUuid: UUID }), 200);
	await stranger.call("eth_sendBundle", { txs: [], replacementUuid: UUID });
	const foreign = await net.from(1);
	await stranger.call("eth_sendBundle", { txs: [foreign.raw], replacementUuid: UUID });
	assert.deepEqual(new Set((await net.build()).transactions), new Set([own.hash, foreign.hash]));
});

test("eth_cancelPrivateTransaction needs the signer that sent it", async () => {
	const stranger = net.clientOf(walletOf("stranger"));
	const kept = await net.from(0);
	const cancelled = await net.from(1);
	await net.client.call("eth_sendPrivateTransaction", { tx: kept.raw });
	await net.client.call("eth_sendRawTransaction", cancelled.raw);
	assert.equal(await stranger.call("eth_cancelPrivateTransaction", { txHash: kept.hash }), false);
	assert.equal(await net.client.call("eth_cancelPrivateTransaction", { txHash: cancelled.hash }), true);
	assert.equal(await net.client.call("eth_cancelPrivateTransaction", { txHash: cancelled.hash }), false);
	assert.deepEqual((await net.build()).transactions, [kept.hash]);
});

test("one sender's cancel leaves the same transaction of another", async () => {
	const tx = await net.from(0);
	await net.priv(tx);
	await net.clientOf(walletOf("second relay")).call("eth_sendPrivateRawTransaction", tx.raw);
	await net.client.call("eth_cancelPrivateTransaction", { txHash: tx.hash });
	assert.deepEqual((await net.build()).transactions, [tx.hash]);
});

test("a private transaction lives 25 blocks, or until its maxBlockNumber", async () => {
	const gap = await sample(net.chain.wallet(0), {
		nonce: (await net.nonce(net.chain.wallet(0).address)) + 1,
	});
	const short = await sample(net.chain.wallet(1), {
		nonce: (await net.nonce(net.chain.wallet(1).address)) + 1,
	});
	await net.priv(gap);
	const maxBlockNumber = await net.blockAfter(2);
	await net.client.call("eth_sendPrivateTransaction", { tx: short.raw, maxBlockNumber });
	for (let block = 1; block <= 25; block++) {
		const { leftOut } = await net.build();
		const expected = block <= 2 ? [gap.hash, short.hash] : [gap.hash];
		assert.deepEqual(
			leftOut.map(({ at }) => at),
			expected,
		);
	}
	assert.deepEqual((await net.build()).leftOut, []);
	assert.equal(net.builder.orders().find(({ hash }) => hash === gap.hash)?.state, "expired");
});

test("a request is taken only with a signature over its very body", async () => {
	const body = (raw: string) =>
		JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] });
	const text = body((await net.from(0)).raw);
	const other = body((await net.from(1)).raw);
	const wallet = walletOf("relay");
	const bad = [
		null,
		"",
		"garbage",
		`${wallet.address}:0x${"11".repeat(65)}`,
		`${wallet.address}:0x${"00".repeat(65)}`,
		// Of another body; for another address; over the 32 bytes instead of their text.
		await net.client.sign(other),
		(await net.client.sign(text)).replace(wallet.address, walletOf("stranger").address),
		`${wallet.address}:${await wallet.signMessage(Buffer.from(id(text).slice(2), "hex"))}`,
	];
	for (const signature of bad) {
		const reply = await net.client.post(text, signature);
		const { error } = JSON.parse(reply.text) as { error: { code: number } };
		assert.deepEqual([reply.status, error.code], [400, -32600]);
		assert.equal(net.builder.requests().at(-1)?.signer, null);
	}
	assert.deepEqual((await net.build()).transactions, []);
	const header = (await net.client.sign(text)).toLowerCase();
	assert.equal((await net.client.post(text, header)).status, 200);
	assert.equal(net.builder.requests().at(-1)?.signer, wallet.address);
	assert.equal((await net.build()).transactions.length, 1);
});

test("what builders refuse is refused", async () => {
	const { raw, hash } = await net.from(0);
	const next = await net.blockAfter(1);
	const share = { version: "v0.1", inclusion: { block: next }, body: [{ tx: raw, canRevert: false }] };
	const refusals: readonly [string, ...unknown[]][] = [
		["eth_sendBundle"],
		["eth_sendBundle", { txs: [raw], blockNumber: 5 }],
		["eth_sendBundle", { txs: [raw], blockNumber: "0x05" }],
		["eth_sendBundle", { txs: ["0x1234"] }],
		["eth_sendBundle", { txs: [hash] }],
		["eth_sendBundle", { txs: [raw], replacementUuid: "mine" }],
		["eth_sendBundle", { txs: [raw], refundPercent: 100 }],
		["eth_sendBundle", { txs: [raw], refundPercent: 10, refundRecipient: "0x12" }],
		["eth_sendBundle", { txs: [raw], refundTxHashes: [EMPTY_HASH] }],
		["eth_sendBundle", { txs: [raw], revertingTxHashes: [EMPTY_HASH] }],
		["eth_sendBundle", { txs: [raw], minTimestamp: "0x1" }],
		["eth_cancelBundle", {}],
		["eth_cancelPrivateTransaction", { txHash: "0x12" }],
		["eth_sendPrivateTransaction", raw],
		["eth_sendPrivateRawTransaction", "0x"],
		["mev_sendBundle", { ...share, version: "v0.2" }],
		["mev_sendBundle", { ...share, body: [{ hash }] }],
		["mev_sendBundle", { ...share, inclusion: { block: next, maxBlock: "0xffff" } }],
		["mev_sendBundle", { ...share, validity: { refund: [{ bodyIdx: 1, percent: 1 }] } }],
	];
	for (const [method, ...params] of refusals) {
		await assert.rejects(
			net.client.call(method, ...params),
			/^Error: -32602 /,
			JSON.stringify([method, params]),
		);
	}
	await assert.rejects(net.client.call("eth_chainId"), /-32601 method not found/);
	const wrongChain = await walletOf("x").signTransaction({ type: 2, chainId: 1, to: walletOf("x").address });
	await assert.rejects(net.client.call("eth_sendRawTransaction", wrongChain), /wrong chain id/);
});
