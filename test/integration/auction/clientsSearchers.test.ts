// Searchers' clients, unmodified but for the URL and the subscription's name: each receives a
// pending transaction, signs a backrun with its own library, bids, lands behind its target, and
// gets the result. Flashbots' MEV-Share client is in mevShareBundles.test.ts and
// mevShareStream.test.ts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { SocketSubscriber, Wallet, WebSocketProvider } from "ethers";
import { createPublicClient, webSocket } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { WebSocket } from "ws";
import { type BiddingFixture, bidder, PAYER, signedBy, startBidding } from "../../support/biddingFixture.ts";
import { cast } from "../../support/processes.ts";
import { bundleHashOf } from "../../support/secretFixture.ts";
import { until } from "../../support/until.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A searcher's program, by whatever it is built on. */
interface Bot {
	/** Subscribes; `onResult` is called with each notification's result. */
	subscribe(params: readonly unknown[], onResult: (result: Fields) => void): Promise<void>;
	call(method: string, params: readonly unknown[]): Promise<unknown>;
	/** A backrun by this key that pays so many wei, as 0x hex. */
	sign(key: `0x${string}`, value: bigint): Promise<string>;
	close(): Promise<void> | void;
}

/** The name that its users know. */
const ALIAS = "mevblocker_partialPendingTransactions";
const OWN_NAME = "service_partialPendingTransactions";
const NO_BUNDLE = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";
const TERMS = {
	to: PAYER as `0x${string}`,
	nonce: 0,
	chainId: 31_337,
	maxFeePerGas: 20_000_000_000n,
	maxPriorityFeePerGas: 1_000_000_000n,
} as const;

let fixture: BiddingFixture;
let accounts = 0;
before(async () => {
	fixture = await startBidding({ chain: { slotSeconds: 12 } });
});
after(() => fixture.stop());

function fresh(): number {
	accounts += 1;
	return accounts;
}

const url = (path = "/"): string => `ws://127.0.0.1:${fixture.system.relay.port}${path}`;
const keyOf = (index: number) => bidder(index).keyHex as `0x${string}`;
const withEthers = (key: string, value: bigint) =>
	new Wallet(key).signTransaction({ ...TERMS, type: 2, gasLimit: 100_000, value });

/** Nothing but JSON in text frames, without `jsonrpc`, as MEV Blocker's documentation shows it. */
async function rawBot(): Promise<Bot> {
	const socket = new WebSocket(url());
	await new Promise((resolve, reject) => {
		socket.once("open", resolve);
		socket.once("error", reject);
	});
	const waiting = new Map<unknown, (answer: Fields) => void>();
	const listeners = new Map<unknown, (result: Fields) => void>();
	socket.on("message", (data) => {
		const message = JSON.parse(String(data)) as Fields;
		const { subscription, result } = (message.params ?? {}) as Fields;
		if (message.method === "eth_subscription") listeners.get(subscription)?.(result as Fields);
		else waiting.get(message.id)?.(message);
	});
	let id = 0;
	const call = (method: string, params: readonly unknown[], onResult?: (result: Fields) => void) =>
		new Promise<unknown>((resolve, reject) => {
			id += 1;
			waiting.set(id, ({ result, error }) => {
				// Before the next message is read, which may be the subscription's first.
				if (onResult !== undefined) listeners.set(result, onResult);
				if (error === undefined) resolve(result);
				else reject(new Error(JSON.stringify(error)));
			});
			socket.send(JSON.stringify({ id, method, params }));
		});
	return {
		call,
		subscribe: async (params, onResult) => {
			await call("eth_subscribe", params, onResult);
		},
		sign: withEthers,
		close: () => socket.terminate(),
	};
}

/** By its transport, whose types know the names of nodes alone. */
async function viemBot(): Promise<Bot> {
	const transport = webSocket(url("/ws"), { reconnect: false });
	const client = createPublicClient({ chain: foundry, transport });
	return {
		subscribe: async (params, onResult) => {
			const onData = ({ result }: { result: Fields }) => onResult(result);
			await client.transport.subscribe({ params, onData } as never);
		},
		call: (method, params) => client.request({ method, params } as never),
		sign: (key, value) =>
			privateKeyToAccount(key).signTransaction({ ...TERMS, type: "eip1559", gas: 100_000n, value }),
		close: async () => (await client.transport.getRpcClient()).close(),
	};
}

/** `send`, and a subscriber of its own kind, which is how it is taught a new subscription. */
async function ethersBot(): Promise<Bot> {
	const provider = new WebSocketProvider(url());
	class Subscriber extends SocketSubscriber {
		onResult: (result: Fields) => void = () => {};
		override async _emit(_provider: unknown, result: Fields): Promise<void> {
			this.onResult(result);
		}
	}
	return {
		subscribe: async (params, onResult) => {
			const subscriber = new Subscriber(provider, [...params]);
			subscriber.onResult = onResult;
			subscriber.start();
		},
		call: (method, params) => provider.send(method, [...params]),
		sign: withEthers,
		close: () => provider.destroy(),
	};
}

/** `send("eth_subscribe")`, and notifications are registered by the id. */
async function ethersSendBot(): Promise<Bot> {
	const provider = new WebSocketProvider(url());
	return {
		subscribe: async (params, onResult) => {
			const id = await provider.send("eth_subscribe", [...params]);
			const subscriber = { _handleMessage: onResult, start() {}, stop() {}, pause() {}, resume() {} };
			provider._register(id, subscriber as unknown as SocketSubscriber);
		},
		call: (method, params) => provider.send(method, [...params]),
		sign: withEthers,
		close: () => provider.destroy(),
	};
}

const BOTS: readonly (readonly [string, string, () => Promise<Bot>])[] = [
	["a MEV Blocker style bot", ALIAS, rawBot],
	["viem's websocket transport", OWN_NAME, viemBot],
	["ethers' provider with a subscriber", OWN_NAME, ethersBot],
	["ethers' provider by send", ALIAS, ethersSendBot],
];

/** The notification that a bot receives after a user has sent a transaction to be backrun. */
async function received(bot: Bot, name: string): Promise<Fields> {
	const seen: Fields[] = [];
	await bot.subscribe([name], (result) => seen.push(result));
	// Subscribers of ethers ask without being waited for; on one connection answers come in order.
	await bot.call("eth_chainId", []);
	const { raw, hash } = signedBy(fresh(), { value: 1n });
	await fixture.system.client.send(raw, "/maxbackruns");
	return until("it on the feed", () => seen.find((one) => one.hash === hash));
}

async function blockHashes(): Promise<readonly string[]> {
	const block = await fixture.system.chain.rpc("eth_getBlockByNumber", ["latest", false]);
	return (block as { transactions: string[] }).transactions;
}

/** Waits until the builder holds both. */
async function delivered(raw: string): Promise<void> {
	await until("the builder has it", () =>
		JSON.stringify(fixture.system.builder.requests("eth_sendBundle")).includes(raw),
	);
}

for (const [what, name, open] of BOTS) {
	test(`${what}: sees the target, bids, wins and gets the status`, async (t) => {
		const bot = await open();
		t.after(() => bot.close());
		const target = String((await received(bot, name)).hash);
		const raw = await bot.sign(keyOf(fresh()), 4_000_000n);
		const bundle = { txs: [target, raw], replacementUuid: `my bundle ${what}` };
		const hash = String(await bot.call("eth_sendBundle", [bundle]));
		await delivered(raw);
		const told: Fields[] = [];
		await bot.subscribe(["service_bundleStatus", hash], (result) => told.push(result));
		const now = await until("the present state", () => told[0]);
		assert.deepEqual([now.bundleHash, now.target, now.stage, now.bid], [hash, target, "ACCEPTED", "4000000"]);
		const heads: Fields[] = [];
		await bot.subscribe(["newHeads"], (result) => heads.push(result));
		await bot.call("eth_chainId", []);
		const number = await fixture.system.nextBlock();
		const included = await until("the end", () => told.find(({ stage }) => stage === "INCLUDED"));
		assert.equal(included.blockNumber, number);
		const hashes = await blockHashes();
		const backrun = hashes[hashes.indexOf(target) + 1] ?? "";
		assert.equal(bundleHashOf(target, backrun), hash);
		const head = await until("the head", () => heads.find((one) => Number(one.number) === number));
		assert.equal(head.hash, included.blockHash);
	});

	test(`${what}: cancels its bid, by uuid and by an empty bundle`, async (t) => {
		const bot = await open();
		t.after(() => bot.close());
		const target = String((await received(bot, name)).hash);
		const told: Fields[] = [];
		const raws: string[] = [];
		for (const value of [7_000_000n, 8_000_000n]) {
			const raw = await bot.sign(keyOf(fresh()), value);
			raws.push(raw);
			const hash = await bot.call("eth_sendBundle", [{ txs: [target, raw], replacementUuid: "mine" }]);
			await bot.subscribe(["service_bundleStatus", hash], (result) => told.push(result));
			await until("it is accepted", () =>
				told.find((one) => one.bundleHash === hash && one.stage === "ACCEPTED"),
			);
			await delivered(raw);
			if (value === 7_000_000n) {
				assert.equal(await bot.call("eth_cancelBundle", [{ replacementUuid: "mine" }]), 200);
			} else {
				assert.equal(await bot.call("eth_sendBundle", [{ txs: [], replacementUuid: "mine" }]), NO_BUNDLE);
			}
			await until("it is reported", () =>
				told.find((one) => one.bundleHash === hash && one.stage === "CANCELLED"),
			);
		}
		await until("the builder has forgotten both", () =>
			fixture.system.builder
				.orders()
				.every(({ state, transactions }) => state !== "live" || transactions.length === 1),
		);
		await fixture.system.nextBlock();
		const hashes = await blockHashes();
		assert.ok(hashes.includes(target));
		assert.equal(hashes.length, 1, "neither backrun, nor a refund");
	});
}

test("the clients raise the relay's errors as their own", async (t) => {
	const bundle = { txs: [`0x${"ab".repeat(32)}`, signedBy(fresh(), { to: PAYER, value: 1n }).raw] };
	for (const open of [viemBot, ethersBot]) {
		const bot = await open();
		t.after(() => bot.close());
		await assert.rejects(bot.call("eth_sendBundle", [bundle]), /target transaction not found/);
		await assert.rejects(
			bot.call("eth_subscribe", ["alchemy_pendingTransactions"]),
			/service_partialPending/,
		);
	}
});

test("ethers and viem follow the blocks by their own subscriptions", async (t) => {
	const provider = new WebSocketProvider(url());
	const transport = webSocket(url(), { reconnect: false });
	const client = createPublicClient({ chain: foundry, transport });
	t.after(async () => {
		await provider.destroy();
		(await client.transport.getRpcClient()).close();
	});
	const seen: { ethers: number[]; viem: number[] } = { ethers: [], viem: [] };
	await provider.on("block", (number: number) => seen.ethers.push(number));
	client.watchBlockNumber({ onBlockNumber: (number) => seen.viem.push(Number(number)) });
	await until("both have subscribed", async () => {
		await fixture.system.nextBlock();
		return seen.ethers.length > 0 && seen.viem.length > 0;
	});
	const next = await fixture.system.nextBlock();
	await until("both are notified", () => seen.ethers.includes(next) && seen.viem.includes(next));
});

test("cast bids over a websocket", async () => {
	const target = await fixture.target(fresh());
	const raw = await withEthers(keyOf(fresh()), 5_000_000n);
	const id = await cast("rpc", "--rpc-url", url(), "eth_subscribe", OWN_NAME);
	assert.equal(id.code, 0, id.stderr);
	assert.match(id.stdout, /^"0x[0-9a-f]{32,64}"$/m);
	const run = await cast("rpc", "--rpc-url", url(), "eth_sendBundle", JSON.stringify({ txs: [target, raw] }));
	assert.equal(run.code, 0, run.stderr);
	const hash = JSON.parse(run.stdout) as string;
	await delivered(raw);
	assert.deepEqual(await fixture.stages(hash), ["ACCEPTED"]);
	const refused = await cast(
		"rpc",
		"--rpc-url",
		url(),
		"eth_sendBundle",
		JSON.stringify({ txs: [hash, raw] }),
	);
	assert.notEqual(refused.code, 0);
	assert.match(refused.stderr, /target transaction not found/);
});
