// The relay is killed with SIGKILL. That revives nothing that its user ended, at the relay or by
// boost. All that the relay still held goes to the fallback and is mined there, and nothing of the
// rest is ever at the fallback. And ethers, viem and cast, with boost as their only URL and no
// settings for us, send and see it mined all the time.

import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { JsonRpcProvider, parseEther, Wallet } from "ethers";
import { createWalletClient, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { type PlainBuilder, startPlainBuilder } from "../support/plainBuilder.ts";
import { cast } from "../support/processes.ts";
import { RelayClient } from "../support/relayClient.ts";
import { signedTransaction, type TestAccount, type TxOptions } from "../support/txFactory.ts";
import { until } from "../support/until.ts";
import { statusOf } from "./boostHere.ts";
import { type CellParts, startCellParts } from "./cellParts.ts";
import { startWorld, type World } from "./world.ts";

const GWEI = 1_000_000_000n;
const RECEIVER = "0x000000000000000000000000000000000000dEaD";
/** More than ten percent more. */
const DEARER = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI };

interface Signed {
	readonly raw: string;
	readonly hash: string;
}

let world: World;
let builder: PlainBuilder;
let parts: CellParts;
let boost: RelayClient;
let relay: RelayClient;
let accounts: TestAccount[];
before(async () => {
	world = await startWorld({ blockMs: 300, accounts: 26, builder: "plain" });
	// Nothing that the relay sends is ever mined: what is mined has come by the fallback.
	builder = await startPlainBuilder();
	parts = await startCellParts(world, "ended", {
		...{ processes: ["relay"], builderUrl: builder.url },
		// That something is mined boost believes the chain or the relay, never the fallback.
		boost: { ETH_RPC_URL: world.chain.url },
	});
	boost = new RelayClient(parts.boost.url);
	relay = new RelayClient(parts.relay.url);
	accounts = [...world.accounts(20)];
});
after(async () => {
	await parts.stop();
	await builder.stop();
	await world.stop();
});

test("cancelled, replaced and soft-cancelled transactions stay ended when the relay is killed", async () => {
	const kept: Signed[] = [];
	const ended: Signed[] = [];
	const unknown: Signed[] = [];

	// Three that stay, two of them in a chain.
	kept.push(await send(boost, "/fast", account()), await send(boost, "/noreverts", account()));
	const chained = account();
	kept.push(await send(boost, "/fast", chained), await send(boost, "/fast", chained, { nonce: 1 }));

	for (const by of [relay, boost]) {
		const cancelled = await send(boost, "/fast", account());
		assert.equal(await by.call("eth_cancelTransaction", [cancelled.hash], "/fast"), true);
		ended.push(cancelled);
	}

	const replacing = account();
	ended.push(await send(boost, "/fast", replacing));
	kept.push(await send(boost, "/fast", replacing, DEARER));
	const elsewhere = account();
	ended.push(await send(boost, "/fast", elsewhere));
	await send(relay, "/fast", elsewhere, DEARER);

	for (const by of [relay, boost]) {
		const owner = account();
		ended.push(await send(boost, "/noreverts?softCancellations=true", owner));
		const cancelling = await send(by, "/noreverts", owner, { to: owner.address, value: 0 });
		// Once the relay is dead, boost can say nothing about a transaction that it never received.
		(by === boost ? ended : unknown).push(cancelling);
	}

	await until("boost holds what stays, and nothing else", async () => {
		return (await statusOf(parts.boost.url)).journal.depth === kept.length;
	});
	await parts.processes.relay?.kill();

	for (const { hash } of kept) {
		await until(`${hash} is mined`, async () => {
			return (await world.chain.rpc("eth_getTransactionReceipt", [hash])) !== null;
		});
	}
	await until("the journal is empty", async () => (await statusOf(parts.boost.url)).journal.depth === 0);
	const atFallback = parts.fallbackWire
		.requests()
		.flatMap(({ calls }) => calls.filter(({ method }) => method === "eth_sendRawTransaction"))
		.map(({ params }) => String(params[0]));
	assert.deepEqual(new Set(atFallback), new Set(kept.map(({ raw }) => raw)));
	for (const { hash } of unknown) assert.ok(!world.mined.has(hash), hash);
	for (const { hash } of ended) {
		assert.equal(await world.chain.rpc("eth_getTransactionReceipt", [hash]), null, hash);
		assert.equal((await boost.status(hash)).status, "FAILED", hash);
	}
	assert.ok(
		kept.every(({ hash }) => !world.publicHashes.has(hash)),
		"nothing was public",
	);
});

test("what was ended is not revived by its own bytes while the relay is down", async () => {
	const before = parts.fallbackWire.requests().length;
	const owner = account();
	// Its fees are too low for a block, so that it is pending however long this takes.
	const low = { maxFeePerGas: 1, maxPriorityFeePerGas: 1 };
	const held = await send(boost, "/noreverts?softCancellations=true", owner, low);
	assert.equal(await boost.call("eth_cancelTransaction", [held.hash], "/noreverts"), true);
	assert.equal(await boost.send(held.raw, "/noreverts"), held.hash);
	const sent = parts.fallbackWire.requests().slice(before);
	const submissions = sent.flatMap(({ calls }) => calls.filter(({ params }) => params[0] === held.raw));
	assert.equal(submissions.length, 1, "sent to the fallback once, before it was cancelled");
});

test("each client sends and sees it mined when an outage begins, during it and after it", async (t) => {
	const parts = await startCellParts(world, "clients", { processes: ["relay"] });
	t.after(() => parts.stop());
	const all = sends(t, parts.boost.url);
	const assertMined = async (what: string, hashes: readonly string[]): Promise<void> => {
		assert.equal(new Set(hashes).size, all.length, what);
		for (const hash of hashes) {
			// The node may return a receipt a moment before the relay has processed its block.
			await until(`${what}: ${hash} is included`, async () => {
				const answer = await fetch(`${parts.boost.url}/tx/${hash}`);
				return ((await answer.json()) as { status: string }).status === "INCLUDED";
			});
			assert.ok(!world.publicHashes.has(hash), `${what}: ${hash} was public`);
		}
	};
	const round = () => Promise.all(all.map((send) => send()));

	// Some are on their way, others not sent yet, when the relay dies: their senders see nothing of
	// it.
	const midway = round();
	const underWay = async () => (await statusOf(parts.boost.url)).journal.depth > 0;
	await Promise.race([until("some are on their way", underWay), midway]);
	await parts.processes.relay?.kill();
	await assertMined("when it began", await midway);

	await until("it is open", async () => (await statusOf(parts.boost.url)).relay.state !== "closed");
	await assertMined("during it", await round());

	await parts.processes.relay?.restart();
	await until("it is closed", async () => (await statusOf(parts.boost.url)).relay.state === "closed");
	await assertMined("after it", await round());
});

/** One that nobody has used. */
function account(): TestAccount {
	const next = accounts.pop();
	if (next === undefined) throw new Error("no more accounts");
	return next;
}

async function send(
	to: RelayClient,
	path: string,
	by: TestAccount,
	options: TxOptions = {},
): Promise<Signed> {
	const { raw, hash } = signedTransaction({ gasLimit: 21_000, value: 1, ...options, by });
	const hex = `0x${Buffer.from(raw).toString("hex")}`;
	assert.equal(await to.send(hex, path), hash);
	return { raw: hex, hash };
}

/** Sends one transaction on `path` and waits for its receipt; the hash. */
type Send = () => Promise<string>;

/** Each client on each path, with a key of its own; they live through all that follows. */
function sends(t: TestContext, boostUrl: string): readonly Send[] {
	return ["/fast", "/noreverts"].flatMap((path) => {
		const [one, two, three] = world.accounts(3);
		if (one === undefined || two === undefined || three === undefined) throw new Error("no accounts");
		const url = boostUrl + path;
		return [byEthers(t, url, one.keyHex), byViem(url, two.keyHex), byCast(url, three.keyHex)];
	});
}

function byEthers(t: TestContext, url: string, key: string): Send {
	const provider = new JsonRpcProvider(url);
	t.after(() => provider.destroy());
	const wallet = new Wallet(key, provider);
	return async () => {
		const sent = await wallet.sendTransaction({ to: RECEIVER, value: parseEther("1") });
		const receipt = await sent.wait();
		assert.equal(receipt?.status, 1);
		return sent.hash;
	};
}

function byViem(url: string, key: string): Send {
	const account = privateKeyToAccount(key as `0x${string}`);
	const client = createWalletClient({ account, chain: foundry, transport: http(url) }).extend(publicActions);
	return async () => {
		const hash = await client.sendTransaction({ to: RECEIVER, value: parseEther("1") });
		const receipt = await client.waitForTransactionReceipt({ hash });
		assert.equal(receipt.status, "success");
		return hash;
	};
}

function byCast(url: string, key: string): Send {
	return async () => {
		const args = ["send", "--rpc-url", url, "--private-key", key, "--value", "1ether", "--json", RECEIVER];
		const run = await cast(...args);
		assert.equal(run.code, 0, run.stderr);
		const receipt = JSON.parse(run.stdout) as Record<string, string>;
		assert.equal(receipt.status, "0x1");
		return receipt.transactionHash ?? "";
	};
}
