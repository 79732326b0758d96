// Flashbots' own MEV-Share client against a running relay, unchanged but for the URL: bundles of its own and bids on
// shared transactions, into blocks.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import MevShare from "@flashbots/mev-share-client";
import { Wallet } from "ethers";
import {
	type BiddingFixture,
	backrunBy,
	bidder,
	signedBy,
	startBidding,
} from "../../support/biddingFixture.ts";
import { until } from "../../support/until.ts";

const KEY = `0x${"c3".repeat(32)}`;

let fixture: BiddingFixture;
let client: MevShareClient;
before(async () => {
	fixture = await startBidding();
	client = clientOf(KEY);
});
after(() => fixture.stop());

type MevShareClient = InstanceType<typeof MevShare.default>;

function clientOf(key: string): MevShareClient {
	const { url } = fixture.system.client;
	const network = { name: "dev", chainId: 31_337, streamUrl: url, apiUrl: url };
	// The package is CommonJS and wants ethers' types as such; it is the same wallet.
	return new MevShare.default(new Wallet(key) as never, network);
}

/** Hashes of the block's transactions in their order. */
async function hashesOf(block: number): Promise<readonly string[]> {
	const found = await fixture.system.chain.rpc("eth_getBlockByNumber", [`0x${block.toString(16)}`, false]);
	return (found as { transactions: string[] }).transactions;
}

/** Waits until the builder has a bundle with this transaction. */
async function delivered(raw: string): Promise<void> {
	await until("the builder has it", () =>
		JSON.stringify(fixture.system.builder.requests("eth_sendBundle")).includes(raw),
	);
}

/** The stage of the bundle in `block`, for the client that signed. */
async function stageIn(hash: string, block: number): Promise<string | undefined> {
	const { body } = await fixture.bundle(hash, { key: KEY });
	const { blocks } = body as { blocks: { blockNumber: number; status: string }[] };
	return blocks.find(({ blockNumber }) => blockNumber === block)?.status;
}

test("a plain bundle over a range of blocks is in the first one, in its order", async () => {
	const [first, second] = [signedBy(1, { value: 5n }), backrunBy(2, 7_000n)];
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
	assert.deepEqual((await hashesOf(block)).slice(0, 2), [first.hash, second.hash]);
	await until("it is told", async () => (await stageIn(bundleHash, block)) === "INCLUDED");
});

test("a bid with the target's hash first is behind it in the block", async () => {
	const target = await fixture.target(3);
	const backrun = backrunBy(4, 9_000n);
	const block = (await fixture.head()) + 1;
	const { bundleHash } = await client.sendBundle({
		inclusion: { block },
		body: [{ hash: target }, { tx: backrun.raw, canRevert: false }],
	});
	assert.equal(await stageIn(bundleHash, block), "BEST");
	await delivered(backrun.raw);
	await fixture.system.nextBlock();
	const hashes = await hashesOf(block);
	assert.equal(hashes[hashes.indexOf(target) + 1], backrun.hash);
	await until("it is told", async () => (await stageIn(bundleHash, block)) === "INCLUDED");
});

test("a bundle with refund settings goes to the builder with them", async () => {
	const [first, second] = [signedBy(5, { value: 5n }), backrunBy(6, 8_000n)];
	const block = (await fixture.head()) + 1;
	const address = bidder(7).address;
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
	const body = [{ hash: `0x${"ab".repeat(32)}` }, { tx: backrunBy(8, 1n).raw, canRevert: false }];
	await assert.rejects(client.sendBundle({ inclusion: { block }, body }), /target transaction not found/);
	const bundle = { inclusion: { block }, body: body.slice(1) };
	const nested = { inclusion: { block }, body: [{ bundle }] };
	await assert.rejects(client.sendBundle(nested as never), /nested bundles are not taken/);
	const picky = { inclusion: { block }, body: body.slice(1), privacy: { builders: ["flashbots"] } };
	await assert.rejects(client.sendBundle(picky as never), /name of a builder of this relay/);
});
