// The dev network beside its blocks: who may cancel an order, what others see of a build on the
// watched chain, and a chain that ends with the process that started it and reverts to snapshots as
// the protocol would.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { id, Wallet, ZeroHash } from "ethers";
import WebSocket from "ws";
import { type DevChain, devAccounts, startDevChain } from "../../devnet/devChain.ts";
import { CONTRACTS, type DevnetFixture, sample, startFixture, walletOf } from "../../devnet/devnetFixture.ts";
import { forkOf, startForkChain } from "../../devnet/forkChain.ts";
import { SKIP_GETH } from "../../devnet/gethChain.ts";
import { slotSecondsOf, slotSetting, timestamps } from "../../devnet/slots.ts";
import { until } from "../../support/until.ts";

const UUID = "8f6d2f5c-3c7a-4d3e-9b0a-1c2d3e4f5a6b";
const EMPTY_HASH = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";

interface Head {
	readonly number: string;
	readonly hash: string;
	readonly parentHash: string;
}

let net: DevnetFixture;
let socket: WebSocket;
const heads: Head[] = [];
/** Called at each head. */
let woken = (): void => {};

before(async () => {
	net = await startFixture({ chain: { accounts: 30 } });
	socket = new WebSocket(net.chain.wsUrl);
	await new Promise((resolve) => socket.once("open", resolve));
	const subscribed = new Promise((resolve) => socket.once("message", resolve));
	socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] }));
	await subscribed;
	socket.on("message", (data) => {
		const { params } = JSON.parse(String(data)) as { params?: { result: Head } };
		if (params !== undefined) heads.push(params.result);
		woken();
	});
});
after(async () => {
	socket.terminate();
	await net.stop();
});

test("the accounts are those that the node funds, few or many, and their keys are known", async () => {
	const { accounts } = net.chain;
	const funded = (await net.chain.rpc("eth_accounts")) as readonly string[];
	assert.deepEqual(
		accounts.map(({ address }) => address.toLowerCase()),
		funded.map((address) => address.toLowerCase()),
	);
	assert.deepEqual(devAccounts(10), accounts.slice(0, 10));
	for (const { address, privateKey } of devAccounts(10))
		assert.equal(new Wallet(privateKey).address, address);
});

test("each build is one new head on its parent, however much was tried", async () => {
	const built = [await net.build()];
	// Bids that exclude each other, fail, are refunded and dropped: many trials.
	for (let round = 0; round < 3; round++) {
		await net.chain.rpc("anvil_setStorageAt", [CONTRACTS.once, "0x0", ZeroHash]);
		const target = await net.from(0);
		for (let bidder = 1; bidder <= 4; bidder++) {
			const value = BigInt(bidder) * 10n ** 15n;
			const backrun = await net.from(bidder, { to: CONTRACTS.once, value, tip: 0n });
			await net.bundle([target, backrun], { refundPercent: 90 });
		}
		const failing = await net.from(5, { to: CONTRACTS.refuser });
		await net.bundle([await net.from(6), failing], { droppingTxHashes: [failing.hash] });
		await net.bundle([failing]);
		const block = await net.build();
		assert.deepEqual(
			block.orders.map((order) => order.hashes.length),
			[2, 1],
		);
		built.push(block);
	}
	await headsUntil(built.at(-1)?.hash);
	assert.deepEqual(
		heads.map(({ hash }) => hash),
		built.map(({ hash }) => hash),
	);
	assert.deepEqual(
		heads.map(({ number }) => Number(number)),
		built.map((_, i) => i + 1),
	);
	for (const [i, head] of heads.slice(1).entries()) assert.equal(head.parentHash, heads[i]?.hash);
});

test("outside a burst nothing private is in the pool, and a burst waits", async () => {
	const transactions = [];
	for (let account = 0; account < 25; account++) {
		const tx = await net.from(account);
		await net.bundle([tx]);
		transactions.push(tx.hash);
	}
	const count = net.builder.burstCount;
	let building: Promise<unknown> = Promise.resolve();
	await net.builder.outsideBurst(async () => {
		building = net.builder.buildBlock();
		for (let look = 0; look < 10; look++) {
			assert.equal(net.builder.burst, false);
			assert.deepEqual(await net.chain.rpc("txpool_status"), { pending: "0x0", queued: "0x0" });
		}
		assert.equal(net.builder.burstCount, count);
	});
	const looking = net.builder.outsideBurst(() => net.chain.rpc("txpool_status"));
	await building;
	assert.deepEqual(await looking, { pending: "0x0", queued: "0x0" });
	assert.equal(net.builder.burstCount, count + 1);
	assert.deepEqual(new Set(net.builder.blocks().at(-1)?.transactions), new Set(transactions));
});

test("orders in a removed block are built into a block again", async () => {
	const snapshot = await net.chain.snapshot();
	const priv = await net.from(7);
	const bundle = await net.from(8);
	await net.priv(priv);
	await net.bundle([bundle]);
	const first = await net.build();
	assert.deepEqual(new Set(first.transactions), new Set([priv.hash, bundle.hash]));
	await net.chain.revert(snapshot);
	const again = await net.build();
	assert.deepEqual(new Set(again.transactions), new Set([priv.hash, bundle.hash]));
	assert.equal(again.number, first.number);
	assert.equal(net.builder.orders().at(-1)?.landed?.hash, again.hash);
	assert.deepEqual((await net.build()).transactions, []);
});

test("eth_cancelBundle cancels a bundle and returns 200, also for an unknown one", async () => {
	await net.bundle([await net.from(0)], { replacementUuid: UUID });
	assert.equal(await net.client.call("eth_cancelBundle", { replacementUuid: UUID }), 200);
	assert.deepEqual((await net.build()).transactions, []);
	assert.equal(net.builder.bundles().at(-1)?.state, "cancelled");
	assert.equal(await net.client.call("eth_cancelBundle", { replacementUuid: UUID }), 200);
	assert.deepEqual(net.builder.requests("eth_cancelBundle").at(-1)?.effects, []);
});

test("an empty bundle with the uuid cancels it", async () => {
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

test("a request is accepted only with a signature over exactly its body", async () => {
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
		// Signatures of another body, for another address, and over the 32 bytes instead of their text.
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

test("the chain ends when its starter is killed", async () => {
	const script = `import { startDevChain } from "./test/devnet/devChain.ts";
		const chain = await startDevChain();
		process.stdout.write(chain.port + "\\n");
		setInterval(() => {}, 1000);`;
	const starter = spawn(process.execPath, [...process.execArgv, "--input-type=module", "-e", script], {
		cwd: new URL("../../..", import.meta.url),
		stdio: ["ignore", "pipe", "inherit"],
	});
	const [line] = await once(starter.stdout, "data");
	const port = Number(String(line));
	// Anvil's end is seen as the end of a connection that it has taken.
	const witness = connect(port, "127.0.0.1");
	await once(witness, "connect");
	const gone = once(witness, "close", { signal: AbortSignal.timeout(10_000) }).catch((thrown) => {
		// That is an end, too, by which `once` rejects.
		if (thrown.code !== "ECONNRESET") throw thrown;
	});
	starter.kill("SIGKILL");
	await gone;
	// A process that is killed does not close all it has in one moment.
	await until("nobody listens", async () => !(await listens(port)));
});

test("revert restores state and base fee", async () => {
	const chain = await startDevChain();
	after(() => chain.stop());
	const snapshot = await chain.snapshot();
	const { raw } = await sample(chain.wallet(0));
	const before = await nextBaseFee(chain);
	await chain.rpc("eth_sendRawTransaction", [raw]);
	await chain.rpc("evm_mine");
	await chain.rpc("evm_mine");
	assert.equal(await chain.rpc("eth_blockNumber"), "0x2");
	await chain.revert(snapshot);
	assert.equal(await chain.rpc("eth_blockNumber"), "0x0");
	// The child of an empty genesis block at 1 gwei; anvil itself starts with a second block at 1
	// gwei.
	assert.equal(before, 1_000_000_000n);
	assert.equal(await nextBaseFee(chain), 875_000_000n);
	await chain.rpc("evm_mine");
	const block = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	assert.equal(BigInt(block.baseFeePerGas ?? 0), 875_000_000n);
	await assert.rejects(chain.revert("0x77"), /does not know that snapshot/);
});

/** Resolves once the head with `hash` was announced. */
function headsUntil(hash: string | undefined): Promise<void> {
	return new Promise((resolve) => {
		woken = () => {
			if (heads.at(-1)?.hash === hash) resolve();
		};
		woken();
	});
}

async function nextBaseFee(chain: DevChain): Promise<bigint> {
	const block = (await chain.rpc("eth_getBlockByNumber", ["pending", false])) as Record<string, string>;
	return BigInt(block.baseFeePerGas ?? 0);
}

function listens(port: number): Promise<boolean> {
	return new Promise((resolve) => {
		const socket = connect(port, "127.0.0.1");
		socket.once("connect", () => {
			socket.destroy();
			resolve(true);
		});
		socket.once("error", () => resolve(false));
	});
}

const SLOTS: readonly (readonly [Readonly<Record<string, string>>, number | RegExp])[] = [
	[{}, 2],
	[{ SLOT_MS: "", SLOT_SECONDS: " " }, 2],
	[{ SLOT_SECONDS: "12" }, 12],
	[{ SLOT_MS: "450" }, 0.45],
	[{ SLOT_MS: "12000", SLOT_SECONDS: "12" }, 12],
	[{ SLOT_MS: "450", SLOT_SECONDS: "12" }, /^SLOT_MS is 450 beside SLOT_SECONDS=12: set one of them$/],
	[
		{ SLOT_MS: "249" },
		/^SLOT_MS is not valid: expected milliseconds, 250 to 60000, for example SLOT_MS=450$/,
	],
	[
		{ SLOT_SECONDS: "1.5" },
		/^SLOT_SECONDS is not valid: expected seconds, 1 to 60, for example SLOT_SECONDS=2$/,
	],
];

test("its slots are as long as SLOT_MS or SLOT_SECONDS say", () => {
	for (const [env, expected] of SLOTS) {
		if (typeof expected === "number") assert.equal(slotSecondsOf(env), expected);
		else assert.throws(() => slotSecondsOf(env), { message: expected });
	}
	assert.deepEqual(
		[slotSetting(12), slotSetting(0.45)].map((one) => one.join("=")),
		["SLOT_SECONDS=12", "SLOT_MS=450"],
	);
});

test("its blocks have the whole seconds of their times, and go on from whatever head there is", () => {
	for (const [seconds, expected] of [
		[0.45, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]],
		[1.5, [1, 3, 4, 6, 7, 9, 10, 12, 13, 15]],
		[12, [12, 24, 36, 48, 60, 72, 84, 96, 108, 120]],
	] as const) {
		const next = timestamps(seconds, true);
		for (const [number, timestamp] of [
			[7, 1_000],
			[3, 5_000],
		] as const) {
			let head: { readonly number: number; readonly timestamp: number } = { number, timestamp };
			const rises = expected.map(() => {
				head = {
					number: head.number + 1,
					timestamp: next({ ...head, hash: "", nextBaseFee: 0n, nextGasLimit: 0n }),
				};
				return head.timestamp - timestamp;
			});
			assert.deepEqual(rises, expected);
		}
	}
});

for (const name of ["Prague", "Osaka", "Amsterdam"]) {
	const skip = name === "Amsterdam" && SKIP_GETH;
	test(`FORK names the rules of the chain: ${name}`, { skip }, async () => {
		const fork = forkOf({ FORK: ` ${name.toLowerCase()} ` });
		const chain = await startForkChain({ port: 0, slotSeconds: 1, fork });
		try {
			const block = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as object;
			const info = chain.rpc("anvil_nodeInfo").catch(() => ({ hardFork: "slotNumber" in block && name }));
			assert.equal(((await info) as { hardFork: string }).hardFork, name);
		} finally {
			await chain.stop();
		}
	});
}
