// The searcher's bot and its contracts on a real chain with a fake relay: which targets it bids on,
// that its backrun earns what it says behind its target and nowhere else, and that it bids again on
// each head.

import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { Transaction, type Wallet } from "ethers";
import { type WebSocket, WebSocketServer } from "ws";
import { systemClock } from "../../../shared/clock.ts";
import { type Contracts, compileContracts } from "../../devnet/compileContracts.ts";
import { deployMarket, type Market, POOL, SEARCHER_WETH } from "../../devnet/deployMarket.ts";
import { type DevnetFixture, type Sample, startFixture } from "../../devnet/devnetFixture.ts";
import { afterSwap, type Reserves } from "../../devnet/searcher/pools.ts";
import type { SearcherNews } from "../../devnet/searcher/searcher.ts";
import { type RunningSearcher, type SearcherSettings, startSearcher } from "../../devnet/searcher.ts";
import { until } from "../../support/until.ts";

const ETHER = 10n ** 18n;
const [DEPLOYER, SEARCHER, USER, STRANGER] = [0, 1, 2, 3] as const;

interface Request {
	readonly id: number;
	readonly method: string;
	readonly params: readonly unknown[];
}
type Wallets = [Wallet, Wallet, Wallet];
type Refusal = { readonly data?: unknown };
type Bundle = {
	readonly txs: [string, string];
	readonly blockNumber: string;
	readonly replacementUuid: string;
};

let net: DevnetFixture;
let contracts: Contracts;
let market: Market;
let relay: WebSocketServer;
let snapshot: string;
before(async () => {
	net = await startFixture();
	contracts = compileContracts();
	const [deployer, searcher, user] = [DEPLOYER, SEARCHER, USER].map((i) => net.chain.wallet(i)) as Wallets;
	let done = false;
	const deploying = deployMarket(net.chain.url, contracts, { deployer, searcher, user }).finally(() => {
		done = true;
	});
	await until("the market is there", async () => {
		if (!done) await net.build();
		return done;
	});
	market = await deploying;
	relay = new WebSocketServer({ port: 0, host: "127.0.0.1" });
	await once(relay, "listening");
	relay.on("connection", (socket) => {
		socket.on("message", (data) => onRequest(socket, JSON.parse(data.toString()) as Request));
	});
});
after(async () => {
	relay.close();
	await net.stop();
});

/** The requests to the relay, and its answer to bids, in the running test. */
let requests: Request[];
let refusal: string | null;
let news: SearcherNews[];
let searcher: RunningSearcher;
beforeEach(async () => {
	snapshot = await net.chain.snapshot();
	requests = [];
	refusal = null;
	news = [];
	searcher = await startSearcher(settings(), { clock: systemClock, tell: (one) => news.push(one) });
});
afterEach(async () => {
	await searcher.stop();
	await net.chain.revert(snapshot);
	net.builder.reset();
});

function settings(): SearcherSettings {
	return {
		relayWsUrl: `ws://127.0.0.1:${(relay.address() as AddressInfo).port}`,
		nodeUrl: net.chain.url,
		privateKey: net.chain.wallet(SEARCHER).privateKey,
		arbitrage: market.arbitrage,
		pairs: market.pairs,
	};
}

function onRequest(socket: WebSocket, request: Request): void {
	requests.push(request);
	const { id, method, params } = request;
	const say = (message: object): void => socket.send(JSON.stringify({ jsonrpc: "2.0", ...message }));
	const refused = method === "eth_sendBundle" && refusal !== null;
	// Subscriptions are named by what they are to, so that tests can speak to them.
	const result = method === "eth_subscribe" ? params.join(" ") : `0x${id}`;
	say(refused ? { id, error: { code: -32000, message: refusal } } : { id, result });
}

/** Tells the searcher something on one of his subscriptions. */
function notify(subscription: string, result: unknown): void {
	const message = { jsonrpc: "2.0", method: "eth_subscription", params: { subscription, result } };
	for (const socket of relay.clients) socket.send(JSON.stringify(message));
}

function show({ raw }: Sample): void {
	const { hash, to, data, from } = Transaction.from(raw);
	notify("service_partialPendingTransactions", { hash, to: to?.toLowerCase() ?? null, data, from });
}

function bids(): readonly Bundle[] {
	const sent = requests.filter(({ method }) => method === "eth_sendBundle");
	return sent.map(({ params }) => params[0] as Bundle);
}

function received<K extends SearcherNews["kind"]>(kind: K): Extract<SearcherNews, { kind: K }>[] {
	return news.filter((one): one is Extract<SearcherNews, { kind: K }> => one.kind === kind);
}

function swap(pool: 0 | 1, amountIn: bigint, tokenIn: string = market.weth, account = USER): Promise<Sample> {
	const data = contracts.Pair.abi.encodeFunctionData("swap", [tokenIn, amountIn, 0n]);
	return net.from(account, { to: market.pairs[pool], data, value: 0n, gasLimit: 300_000n });
}

async function reservesOf(pool: 0 | 1): Promise<Reserves> {
	const [weth, token] = await read("Pair", market.pairs[pool], "reserves", []);
	return { weth: BigInt(weth), token: BigInt(token) };
}

async function read(name: keyof Contracts, to: string, method: string, values: readonly unknown[]) {
	const { abi } = contracts[name];
	const data = abi.encodeFunctionData(method, values);
	return abi.decodeFunctionResult(method, String(await net.chain.rpc("eth_call", [{ to, data }, "latest"])));
}

async function wethOf(address: string): Promise<bigint> {
	return BigInt((await read("Token", market.weth, "balanceOf", [address]))[0]);
}

function errorOf(name: string): string {
	return contracts.Arbitrage.abi.getError(name)?.selector ?? "no such error";
}

for (const pool of [0, 1] as const) {
	test(`pool ${pool}: after the swap the backrun gains and pays what it says; before it, it reverts`, async () => {
		const target = await swap(pool, 10n * ETHER);
		const expected = afterSwap(await reservesOf(pool), { sells: "weth", amountIn: 10n * ETHER });
		show(target);
		await until("a bid was taken", () => received("bid").length === 1);
		const [bid] = received("bid");
		const [bundle] = bids();
		assert.ok(bid !== undefined && bundle !== undefined);
		assert.deepEqual(bundle, {
			txs: [target.hash, bundle.txs[1]],
			blockNumber: await net.blockAfter(1),
			replacementUuid: target.hash,
		});
		const raw = bundle.txs[1];
		const { from, to, data } = Transaction.from(raw);
		await assert.rejects(net.chain.rpc("eth_call", [{ from, to, data }, "latest"]), (thrown: Refusal) =>
			String(thrown.data).startsWith(errorOf("NotProfitable")),
		);
		const coinbase = await net.balance(net.builder.coinbase);
		await net.client.call("eth_sendBundle", { txs: [target.raw, raw] });
		const block = await net.build();
		assert.deepEqual(block.transactions, [target.hash, bid.backrun.hash]);
		assert.deepEqual(await net.statuses(block), { [target.hash]: true, [bid.backrun.hash]: true });
		assert.equal(await wethOf(market.arbitrage), SEARCHER_WETH + bid.backrun.gain - bid.backrun.bid);
		assert.ok((await net.balance(net.builder.coinbase)) - coinbase > bid.backrun.bid);
		// The remainder pays for the searcher's gas.
		const receipt = await net.chain.rpc("eth_getTransactionReceipt", [bid.backrun.hash]);
		const { gasUsed, effectiveGasPrice } = receipt as { gasUsed: string; effectiveGasPrice: string };
		const gas = BigInt(gasUsed) * BigInt(effectiveGasPrice);
		assert.ok(bid.backrun.gain - bid.backrun.bid > gas);
		// The contract swaps as the arithmetic says: the user's pool was where the searcher thought it
		// would be.
		const sold = await reservesOf(pool);
		assert.ok(sold.weth < expected.weth && sold.token > expected.token);
	});
}

test("a swap in the other direction is bid on in the other direction", async () => {
	const first = await swap(0, 10n * ETHER);
	await net.bundle([first]);
	await net.build();
	const arbitraged = await swap(1, 10n * ETHER);
	await net.bundle([arbitraged]);
	await net.build();
	const approve = contracts.Token.abi.encodeFunctionData("approve", [market.pairs[0], 10n ** 30n]);
	await net.bundle([await net.from(USER, { to: market.token, data: approve, value: 0n })]);
	await net.build();
	const target = await swap(0, 20_000n * ETHER, market.token);
	show(target);
	await until("a bid was taken", () => received("bid").length === 1);
	const [bid] = received("bid");
	assert.deepEqual([bid?.backrun.buyAt, bid?.backrun.sellAt], market.pairs);
	await net.client.call("eth_sendBundle", { txs: [target.raw, bids()[0]?.txs[1]] });
	const block = await net.build();
	assert.deepEqual(await net.statuses(block), {
		[target.hash]: true,
		[bid?.backrun.hash ?? ""]: true,
	});
});

test("what is no swap, and what would leave nothing after gas, is not bid on", async () => {
	show(await net.from(STRANGER));
	show(await net.from(STRANGER, { to: market.weth, data: "0xd0e30db0" }));
	const small = await swap(0, ETHER / 10n);
	show(small);
	await until("the small one was looked at", () => received("noGain").length === 1);
	assert.deepEqual(
		received("seen").map(({ target }) => target),
		[small.hash],
	);
	assert.deepEqual(bids(), []);
});

test("each head brings a new bid, for the next block, until the target is mined", async () => {
	const target = await swap(0, 10n * ETHER);
	show(target);
	await until("the first bid", () => received("bid").length === 1);
	for (const count of [2, 3]) {
		await net.build();
		notify("newHeads", { number: "0x0" });
		await until(`bid ${count}`, () => received("bid").length === count);
		const bid = bids().at(-1);
		assert.equal(bid?.blockNumber, await net.blockAfter(1));
		assert.equal(bid?.replacementUuid, target.hash);
	}
	// The base fee has moved, so these are different backruns of one nonce.
	assert.equal(new Set(bids().map(({ txs }) => txs[1])).size, 3);
	assert.equal(new Set(bids().map(({ txs }) => Transaction.from(txs[1]).nonce)).size, 1);
	await net.bundle([target]);
	const { number } = await net.build();
	notify("newHeads", {});
	await until("it is settled", () => received("settled").length === 1);
	assert.deepEqual(received("settled"), [{ kind: "settled", target: target.hash, block: number }]);
	await net.build();
	notify("newHeads", {});
	const other = await swap(0, 10n * ETHER);
	show(other);
	await until("another target is bid on", () => received("bid").length === 4);
	assert.equal(bids().at(-1)?.txs[0], other.hash);
});

test("a refusal is reported, and the next head brings a new bid", async () => {
	refusal = "target transaction not found";
	show(await swap(0, 10n * ETHER));
	await until("it is refused", () => received("refused").length === 1);
	assert.match(received("refused")[0]?.why ?? "", /target transaction not found/);
	refusal = null;
	await net.build();
	notify("newHeads", {});
	await until("it is taken", () => received("bid").length === 1);
});

test("only the owner may trade with the contract, and nobody else gets anything out of it", async () => {
	const { abi } = contracts.Arbitrage;
	const [a, b] = market.pairs;
	for (const data of [
		abi.encodeFunctionData("backrun", [a, b, ETHER, 0n]),
		abi.encodeFunctionData("withdraw", [ETHER]),
	]) {
		const from = net.chain.wallet(STRANGER).address;
		const call = net.chain.rpc("eth_call", [{ from, to: market.arbitrage, data }, "latest"]);
		await assert.rejects(call, (thrown: Refusal) => thrown.data === errorOf("NotTheOwner"));
	}
	assert.deepEqual(await reservesOf(0), { weth: POOL.weth, token: POOL.token });
});
