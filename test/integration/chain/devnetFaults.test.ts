// The dev builder as a server: its record, its faults, its pages for other processes, batches, several builders on
// one chain, and the slot timer.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, afterEach, before, test } from "node:test";
import { request } from "undici";
import WebSocket from "ws";
import { BuilderClient } from "../../devnet/builderClient.ts";
import { startDevBuilder } from "../../devnet/devBuilder.ts";
import { type DevnetFixture, startFixture, walletOf } from "../../devnet/devnetFixture.ts";

let net: DevnetFixture;
before(async () => {
	net = await startFixture();
});
after(() => net.stop());
afterEach(() => net.builder.reset());

test("every call is recorded, with signer, headers, answer and time", async () => {
	const tx = await net.from(0);
	const started = Date.now();
	const waiting = net.builder.waitForRequest("eth_sendBundle");
	await net.bundle([tx], { refundPercent: 5 });
	const recorded = await waiting;
	assert.deepEqual(recorded.params, [{ txs: [tx.raw], refundPercent: 5 }]);
	assert.deepEqual(recorded.answer, { result: { bundleHash: net.builder.bundles()[0]?.hash } });
	assert.equal(recorded.signer, net.client.address);
	assert.ok(recorded.at >= started && recorded.at <= Date.now());
	assert.ok(recorded.headers["x-flashbots-signature"]?.startsWith(net.client.address));
	assert.deepEqual([recorded.fault, recorded.batchIndex, recorded.path, recorded.id], [null, null, "/", 1]);
	assert.deepEqual(net.builder.requests(), [recorded]);
	assert.deepEqual(net.builder.requests("eth_cancelBundle"), []);
	assert.ok(net.builder.signers().includes(net.client.address));
	assert.equal(await net.builder.waitForRequest(({ seq }) => seq === recorded.seq), recorded);
	await assert.rejects(net.builder.waitForRequest("eth_cancelBundle", 20), { code: "DEADLINE" });
});

test("batches are answered in order", async () => {
	const [a, b] = [await net.from(0), await net.from(1)];
	const calls = [
		{ jsonrpc: "2.0", id: "x", method: "eth_sendRawTransaction", params: [a.raw] },
		{ jsonrpc: "2.0", id: 7, method: "nonsense", params: [] },
		{ jsonrpc: "2.0", id: 8, method: "eth_sendPrivateRawTransaction", params: [b.raw, { fast: true }] },
	];
	const { text } = await net.client.post(JSON.stringify(calls));
	assert.deepEqual(JSON.parse(text), [
		{ jsonrpc: "2.0", id: "x", result: a.hash },
		{ jsonrpc: "2.0", id: 7, error: { code: -32601, message: "method not found" } },
		{ jsonrpc: "2.0", id: 8, result: b.hash },
	]);
	assert.deepEqual(
		net.builder.requests().map(({ batchIndex }) => batchIndex),
		[0, 1, 2],
	);
	assert.equal((await net.client.post("{")).status, 400);
});

test("slow: late, and in effect at once", async () => {
	net.builder.setFaults({ slow: 150 });
	const started = performance.now();
	const answering = net.bundle([await net.from(0)]);
	await net.builder.waitForRequest("eth_sendBundle");
	assert.equal(net.builder.orders().length, 1);
	await answering;
	assert.ok(performance.now() - started >= 150);
});

test("down: the connection ends without a word, nothing is recorded", async () => {
	net.builder.setFaults({ down: true });
	await assert.rejects(net.bundle([await net.from(0)]), { code: "UND_ERR_SOCKET" });
	assert.deepEqual([net.builder.requests(), net.builder.orders()], [[], []]);
});

test("hang: recorded, never answered, without effect", async () => {
	net.builder.setFaults({ hang: true });
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [] });
	const abort = new AbortController();
	const hanging = request(net.builder.url, { method: "POST", body, signal: abort.signal });
	const recorded = await net.builder.waitForRequest("eth_sendRawTransaction");
	assert.deepEqual([recorded.fault, recorded.answer], ["hang", null]);
	abort.abort();
	await assert.rejects(hanging, { name: "AbortError" });
	assert.deepEqual(net.builder.orders(), []);
});

test("answers that are no answers", async () => {
	const body = JSON.stringify({
		jsonrpc: "2.0",
		id: 9,
		method: "eth_sendRawTransaction",
		params: [(await net.from(0)).raw],
	});
	const expected: readonly [Parameters<typeof net.builder.setFaults>[0], number, RegExp, number][] = [
		[{ httpError: true }, 500, /^Internal Server Error$/, 0],
		[{ nonsense: "html" }, 200, /^<!doctype html>/, 0],
		[{ nonsense: "truncated" }, 200, /"res$/, 0],
		[{ reject: true }, 200, /^{"jsonrpc":"2.0","id":9,"error":{"code":-32000,"message":"rejected"}}$/, 0],
		[{ reject: { code: -32005, message: "rate" } }, 200, /"error":{"code":-32005,"message":"rate"}}$/, 0],
		[{ odd: "number" }, 200, /^{"result":200,"error":null}$/, 1],
		[{ odd: "null" }, 200, /^{"jsonrpc":"2.0","id":9,"result":null}$/, 1],
		[{ odd: "text" }, 200, /^OK$/, 1],
	];
	for (const [faults, status, text, orders] of expected) {
		net.builder.reset();
		net.builder.setFaults(faults);
		const reply = await net.client.post(body);
		assert.equal(reply.status, status);
		assert.match(reply.text, text);
		assert.equal(net.builder.orders().length, orders);
		assert.equal(net.builder.requests().at(-1)?.fault, Object.keys(faults)[0]);
	}
});

test("faults of some methods, for some requests", async () => {
	net.builder.setFaults({ reject: true, only: ["eth_sendBundle"], times: 2 });
	const tx = await net.from(0);
	assert.equal(await net.priv(tx), tx.hash);
	await assert.rejects(net.bundle([tx]), /-32000 rejected/);
	await assert.rejects(net.bundle([tx]), /-32000 rejected/);
	await net.bundle([tx]);
	assert.throws(() => net.builder.setFaults({ typo: true } as object), /no such fault: typo/);
});

test("another process can ask and switch over HTTP", async () => {
	const tx = await net.from(0);
	await net.priv(tx);
	const method = "eth_sendPrivateRawTransaction";
	assert.equal((await page<unknown[]>("GET", `/dev/requests?method=${method}`)).length, 1);
	assert.equal((await page<{ hash: string }[]>("GET", "/dev/orders"))[0]?.hash, tx.hash);
	const built = await page<Record<string, unknown>>("POST", "/dev/build");
	assert.deepEqual(built.transactions, [tx.hash]);
	assert.equal(built.gasUsed, "0x5208");
	const last = await page<{ hash: string }[]>("GET", `/dev/blocks?after=${Number(built.number) - 1}`);
	assert.deepEqual(
		last.map(({ hash }) => hash),
		[built.hash],
	);
	await page("POST", "/dev/faults", { httpError: true });
	assert.equal((await net.client.post("{}")).status, 500);
	const state = await page<Record<string, unknown>>("GET", "/dev/state");
	assert.deepEqual(
		[state.name, state.coinbase, state.burst, state.burstCount],
		["dev", net.builder.coinbase, false, net.builder.burstCount],
	);
	await page("POST", "/dev/reset");
	assert.deepEqual(await page("GET", "/dev/requests"), []);
	await assert.rejects(page("POST", "/dev/faults", { typo: 1 }), /400 .*no such fault/);
	await assert.rejects(page("GET", "/dev/else"), /404/);
});

test("a second builder on the chain records and answers, and builds nothing", async () => {
	const second = await startDevBuilder({
		chain: net.chain,
		name: "second",
		builds: false,
		requireSignature: false,
	});
	try {
		const tx = await net.from(0);
		const client = new BuilderClient({ url: second.url, wallet: walletOf("relay") });
		assert.equal(await client.call("eth_sendRawTransaction", tx.raw), tx.hash);
		const unsigned = JSON.stringify({ id: 1, method: "eth_sendRawTransaction", params: [tx.raw] });
		assert.equal(JSON.parse((await client.post(unsigned, null)).text).result, tx.hash);
		assert.equal((await client.post(unsigned, "wrong")).status, 400);
		assert.deepEqual(
			second.requests().map(({ signer }) => signer),
			[client.address, null, null],
		);
		await assert.rejects(second.buildBlock(), /builds nothing/);
		assert.deepEqual((await net.build()).transactions, []);
	} finally {
		await second.stop();
	}
	await assert.rejects(new BuilderClient({ url: second.url, wallet: walletOf("relay") }).call("x"));
});

test("without manual a block is built every slot", async () => {
	const other = await startFixture({ chain: { slotSeconds: 1 }, builder: { manual: false } });
	const socket = new WebSocket(other.chain.wsUrl);
	try {
		await once(socket, "open");
		socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] }));
		await once(socket, "message");
		const tx = await other.from(0);
		await other.priv(tx);
		const heads: Record<string, string>[] = [];
		while (heads.length < 2) {
			const [data] = await once(socket, "message");
			heads.push(JSON.parse(String(data)).params.result);
		}
		assert.equal(Number(heads[1]?.timestamp) - Number(heads[0]?.timestamp), 1);
		assert.equal(heads[1]?.parentHash, heads[0]?.hash);
		await other.builder.outsideBurst(async () => {});
		assert.equal(other.builder.orders()[0]?.state, "landed");
	} finally {
		socket.terminate();
		await other.stop();
	}
});

async function page<T>(method: "GET" | "POST", path: string, body?: object): Promise<T> {
	const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
	const answer = await request(`${net.builder.url}${path}`, init);
	const text = await answer.body.text();
	if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${text}`);
	return JSON.parse(text) as T;
}
