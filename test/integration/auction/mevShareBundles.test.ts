// Flashbots' MEV-Share client, unmodified: its bundles and bids by mev_sendBundle, its simulations
// by mev_simBundle, and what it says of what is refused. Its event stream and history are in
// mevShareStream.test.ts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { FlashbotsBundleProvider } from "@flashbots/ethers-provider-bundle";
import { JsonRpcProvider, Wallet } from "ethers";
import {
	type BiddingFixture,
	backrunBy,
	bidder,
	MISER,
	REASON,
	REASONER,
	signedBy,
	startBidding,
} from "../../support/biddingFixture.ts";
import { MEV_SHARE_KEY, type MevShareClient, mevShareClient } from "../../support/mevShare.ts";
import { until } from "../../support/until.ts";

const UUID = "10000000-0000-4000-8000-000000000000";

let fixture: BiddingFixture;
let client: MevShareClient;
let accounts = 0;
before(async () => {
	fixture = await startBidding({ chain: { slotSeconds: 12 } });
	client = mevShareClient(fixture.system.client.url);
});
after(() => fixture.stop());

function fresh(): number {
	accounts += 1;
	return accounts;
}

async function blockHashes(): Promise<readonly string[]> {
	const block = await fixture.system.chain.rpc("eth_getBlockByNumber", ["latest", false]);
	return (block as { transactions: string[] }).transactions;
}

/** Waits until the builder has it in a bundle. */
async function delivered(raw: string): Promise<void> {
	await until("the builder has it", () =>
		JSON.stringify(fixture.system.builder.requests("eth_sendBundle")).includes(raw),
	);
}

/** The stage of the bundle in `block`, for the client that signed. */
async function stageIn(hash: string, block: number): Promise<string | undefined> {
	const { body } = await fixture.bundle(hash, { key: MEV_SHARE_KEY });
	const { blocks } = body as { blocks: { blockNumber: number; stage: string }[] };
	return blocks.find(({ blockNumber }) => blockNumber === block)?.stage;
}

test("a plain bundle over a range of blocks is in the first one, in its order", async () => {
	const [first, second] = [signedBy(fresh(), { value: 5n }), backrunBy(fresh(), 7_000n)];
	const block = (await fixture.head()) + 1;
	const { bundleHash } = await client.sendBundle({
		inclusion: { block, maxBlock: block + 5 },
		body: [
			{ tx: first.raw, canRevert: false },
			{ tx: second.raw, canRevert: true },
		],
		privacy: { hints: { txHash: true, calldata: true, logs: true }, builders: ["dev"] },
		metadata: { originId: "a test" },
	});
	await until("it is with the builder", async () => (await stageIn(bundleHash, block)) === "SENT");
	await delivered(second.raw);
	assert.equal(await fixture.system.nextBlock(), block);
	assert.deepEqual((await blockHashes()).slice(0, 2), [first.hash, second.hash]);
	await until("it is reported", async () => (await stageIn(bundleHash, block)) === "INCLUDED");
});

test("a bid with the target's hash first follows it in the block", async () => {
	const target = await fixture.target(fresh());
	const backrun = backrunBy(fresh(), 9_000n);
	const block = (await fixture.head()) + 1;
	const { bundleHash } = await client.sendBundle({
		inclusion: { block },
		body: [{ hash: target }, { tx: backrun.raw, canRevert: false }],
	});
	assert.equal(await stageIn(bundleHash, block), "ACCEPTED");
	await delivered(backrun.raw);
	await fixture.system.nextBlock();
	const hashes = await blockHashes();
	assert.equal(hashes[hashes.indexOf(target) + 1], backrun.hash);
	await until("it is reported", async () => (await stageIn(bundleHash, block)) === "INCLUDED");
});

test("a cancel, a bid and the same cancel again each count, though libraries sign equal bodies", async () => {
	const { url } = fixture.system.client;
	const node = new JsonRpcProvider(url);
	// Each counts its ids from 1.
	const cancel = async () => {
		const library = await FlashbotsBundleProvider.create(
			node as never,
			new Wallet(MEV_SHARE_KEY) as never,
			url,
			"any",
		);
		return library.cancelBundles(UUID);
	};
	assert.deepEqual(await cancel(), { bundleHashes: 200 });
	const target = await fixture.target(fresh());
	const block = (await fixture.head()) + 1;
	const bid = { txs: [target, backrunBy(fresh(), 4_000n).raw], replacementUuid: UUID };
	const { result } = await fixture.ask("eth_sendBundle", [bid], { key: MEV_SHARE_KEY });
	assert.equal(await stageIn(String(result), block), "ACCEPTED");
	assert.deepEqual(await cancel(), { bundleHashes: 200 });
	assert.equal(await stageIn(String(result), block), "CANCELLED");
	// The client's bids have the id 69 each.
	const body = [{ hash: target }, { tx: backrunBy(fresh(), 5_000n).raw, canRevert: false }] as const;
	const { bundleHash } = await client.sendBundle({ inclusion: { block }, body: [...body] });
	assert.deepEqual(await client.sendBundle({ inclusion: { block }, body: [...body] }), { bundleHash });
	assert.equal(await stageIn(bundleHash, block), "ACCEPTED");
	node.destroy();
});

test("a bundle with refund settings goes to the builder with them", async () => {
	const [first, second] = [signedBy(fresh(), { value: 5n }), backrunBy(fresh(), 8_000n)];
	const block = (await fixture.head()) + 1;
	const address = bidder(fresh()).address;
	await client.sendBundle({
		inclusion: { block },
		body: [
			{ tx: first.raw, canRevert: false },
			{ tx: second.raw, canRevert: false },
		],
		validity: { refund: [{ bodyIdx: 0, percent: 80 }], refundConfig: [{ address, percent: 50 }] },
	});
	const sent = await until("the builder has it", () =>
		fixture.system.builder
			.requests("eth_sendBundle")
			.map(({ params }) => (params as [Record<string, unknown>])[0])
			.find(({ txs }) => (txs as string[]).includes(second.raw)),
	);
	assert.deepEqual([sent.refundPercent, sent.refundRecipient], [40, address]);
});

test("its errors are the relay's, with their code", async () => {
	const block = (await fixture.head()) + 1;
	const body = [{ hash: `0x${"ab".repeat(32)}` }, { tx: backrunBy(fresh(), 1n).raw, canRevert: false }];
	await assert.rejects(client.sendBundle({ inclusion: { block }, body }), /target transaction not found/);
	const bundle = { inclusion: { block }, body: body.slice(1) };
	const nested = { inclusion: { block }, body: [{ bundle }] };
	await assert.rejects(client.sendBundle(nested as never), /nested bundles are not supported/);
	const picky = { inclusion: { block }, body: body.slice(1), privacy: { builders: ["flashbots"] } };
	await assert.rejects(client.sendBundle(picky as never), /name of a builder of this relay/);
});

test("sendTransaction is refused in words that name the method to use", async () => {
	const { raw, hash } = signedBy(fresh());
	await assert.rejects(client.sendTransaction(raw, { hints: { calldata: true } }), {
		name: "JsonRpcError: -32601",
		message:
			"the method eth_sendPrivateTransaction does not exist/is not available: eth_sendRawTransaction never shares transactions in the public mempool, use it instead",
	});
	assert.equal((await fixture.system.client.status(hash)).stage, undefined, "it was not taken");
});

/** The answer of eth_callBundle to the same transactions. */
async function called(txs: readonly string[]) {
	const blockNumber = `0x${((await fixture.head()) + 1).toString(16)}`;
	return (await fixture.call("eth_callBundle", [{ txs, blockNumber }])) as {
		coinbaseDiff: string;
		totalGasUsed: number;
		stateBlockNumber: number;
		results: { coinbaseDiff: string }[];
	};
}

test("simulateBundle tells what a bundle pays, as eth_callBundle does", async () => {
	const raws = [signedBy(fresh(), { value: 1n }).raw, backrunBy(fresh(), 7_000n).raw];
	const bundle = {
		inclusion: { block: (await fixture.head()) + 1 },
		body: raws.map((tx) => ({ tx, canRevert: false })),
	};
	const whole = await client.simulateBundle(bundle);
	const { coinbaseDiff, totalGasUsed, stateBlockNumber, results } = await called(raws);
	assert.deepEqual(whole, {
		success: true,
		error: undefined,
		stateBlock: stateBlockNumber,
		mevGasPrice: BigInt(coinbaseDiff) / BigInt(totalGasUsed),
		profit: BigInt(coinbaseDiff),
		refundableValue: BigInt(coinbaseDiff),
		gasUsed: BigInt(totalGasUsed),
		logs: undefined,
	});
	const refund = [{ bodyIdx: 0, percent: 90 }];
	const refunding = await client.simulateBundle({ ...bundle, validity: { refund, refundConfig: [] } });
	assert.deepEqual(
		[refunding.profit, refunding.refundableValue],
		[BigInt(coinbaseDiff), BigInt(results[1]?.coinbaseDiff ?? 0)],
	);
});

test("mev_simBundle with a target's hash first runs behind it at once; an unknown or hidden one is not found", async () => {
	const target = await fixture.target(fresh());
	const backrun = backrunBy(fresh(), 9_000n);
	const simulate = (hash: string) => {
		const body = [{ hash }, { tx: backrun.raw, canRevert: false }];
		return fixture.ask("mev_simBundle", [{ version: "v0.1", inclusion: { block: "0x1" }, body }]);
	};
	const { coinbaseDiff, results } = await called([target, backrun.raw]);
	const { success, profit, refundableValue } = (await simulate(target)).result as Record<string, unknown>;
	assert.deepEqual(
		[success, BigInt(String(profit)), BigInt(String(refundableValue))],
		[true, BigInt(coinbaseDiff), BigInt(results[1]?.coinbaseDiff ?? 0)],
	);
	const hidden = signedBy(fresh(), { value: 1n });
	await fixture.system.client.send(hidden.raw, "/fullprivacy");
	for (const hash of [hidden.hash, `0x${"ab".repeat(32)}`]) {
		assert.deepEqual((await simulate(hash)).error, { code: -32000, message: "target transaction not found" });
	}
});

test("simulateBundle with a target's hash waits until that is on the chain, and runs on the block before", async () => {
	const sender = fresh();
	const target = await fixture.target(sender);
	const backrun = backrunBy(fresh(), 5_000n);
	await delivered(signedBy(sender, { value: 1n }).raw);
	const block = await fixture.system.nextBlock();
	const provider = new JsonRpcProvider(fixture.system.chain.url, undefined, { staticNetwork: true });
	const patient = mevShareClient(fixture.system.client.url, new Wallet(MEV_SHARE_KEY, provider));
	const { success, stateBlock } = await patient.simulateBundle({
		inclusion: { block },
		body: [{ hash: target }, { tx: backrun.raw, canRevert: false }],
	});
	provider.destroy();
	assert.deepEqual([success, stateBlock], [true, block - 1]);
});

test("simulateBundle tells which transaction fails, unless that may revert", async () => {
	const failing = signedBy(fresh(), { to: REASONER }).raw;
	const bundle = (canRevert: boolean) => ({
		inclusion: { block: 1 },
		body: [
			{ tx: signedBy(accounts + 1, { to: MISER, value: 1n }).raw, canRevert: false },
			{ tx: failing, canRevert },
		],
	});
	const { success, error, gasUsed } = await client.simulateBundle(bundle(false));
	assert.deepEqual([success, error], [false, `execution reverted: ${REASON} (body[1])`]);
	assert.ok(gasUsed > 21_000n);
	assert.deepEqual((await client.simulateBundle(bundle(true))).success, true);
	fresh();
});

test("simulateBundle's options: the state's block, the block and its time; what can't be set is refused by name", async () => {
	const body = [{ tx: signedBy(fresh(), { value: 1n }).raw, canRevert: false }];
	const head = await fixture.head();
	const bundle = { inclusion: { block: head + 1 }, body };
	const sim = (options: Parameters<MevShareClient["simulateBundle"]>[1]) =>
		client.simulateBundle(bundle, options);
	assert.equal((await sim({ parentBlock: head - 1, blockNumber: head + 2 })).stateBlock, head - 1);
	assert.equal((await sim({ timestamp: 4_000_000_000 })).success, true);
	await assert.rejects(
		sim({ blockNumber: head + 40 }),
		/options\.blockNumber: expected 1 to 30 above the state/,
	);
	await assert.rejects(
		sim({ parentBlock: head + 9 }),
		/options\.parentBlock: expected a block that the node has/,
	);
	await assert.rejects(sim({ baseFee: 1n }), /options\.baseFee: expected none/);
	await assert.rejects(sim({ timeout: 5 }), /options\.timeout: expected none, or 0/);
	const broken = { ...bundle, body: [{ tx: "0x02c0", canRevert: false }] };
	await assert.rejects(client.simulateBundle(broken), /bundle\.body\[0\]\.tx: rlp/);
});
