// A bundle's status over the websocket, which only its own client is told: accepted, best or outbid, with the builders,
// and how it ended; by how much another bid was better only once the block is there.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { keccak256 } from "../../../shared/ethereum/signatures.ts";
import { type BiddingFixture, backrunBy, startBidding } from "../../support/biddingFixture.ts";
import { FeedClient, type Told } from "../../support/feeds.ts";
import { until } from "../../support/until.ts";

let fixture: BiddingFixture;
const searchers: FeedClient[] = [];
const GWEI = 10n ** 9n;

before(async () => {
	fixture = await startBidding({ env: { TRUST_PROXY: "1" } });
});
after(async () => {
	for (const one of searchers) one.close();
	await fixture.stop();
});

/** A searcher at an address of its own. */
async function searcher(address: string): Promise<FeedClient> {
	const url = `${fixture.system.client.url.replace("http", "ws")}/ws`;
	const client = await FeedClient.open(url, { headers: { "x-forwarded-for": address } });
	searchers.push(client);
	return client;
}

function bundleHash(target: string, backrun: string): string {
	const bytes = [target, backrun].map((hash) => Buffer.from(hash.slice(2), "hex"));
	return `0x${Buffer.from(keccak256(Buffer.concat(bytes))).toString("hex")}`;
}

const stages = (told: readonly Told[]) => told.map(({ status }) => status);
const ended = (client: FeedClient, id: string, stage: string) =>
	until(`${stage}; it is ${stages(client.told(id)).join()}`, () =>
		client.told(id).find(({ status }) => status === stage),
	);

it("follows two bids from the first word to the block, each told to its own client alone", async () => {
	const [low, high, stranger] = [
		await searcher("192.0.2.1"),
		await searcher("192.0.2.2"),
		await searcher("192.0.2.3"),
	];
	const target = await fixture.target(0);
	const lower = backrunBy(1, 1_000n * GWEI);
	const higher = backrunBy(2, 3_000n * GWEI);
	const lowHash = bundleHash(target, lower.hash);
	const highHash = bundleHash(target, higher.hash);
	// Before it is sent there is nothing to tell, and whoever else asks will never be told.
	const lowId = await low.subscribe("service_bundleStatus", lowHash);
	const spying = [
		await stranger.subscribe("service_bundleStatus", lowHash),
		await stranger.subscribe("service_bundleStatus", highHash),
		await high.subscribe("service_bundleStatus", lowHash),
	];
	assert.equal(await low.call("eth_sendBundle", [{ txs: [target, lower.raw] }]), lowHash);
	const best = await ended(low, lowId, "BEST");
	const block = (await fixture.head()) + 1;
	assert.deepEqual(
		[best.bundleHash, best.target, best.blockNumber, best.bid, best.outbidBy],
		[lowHash, target, block, String(1_000n * GWEI), null],
	);
	await until("the builder's answer", () =>
		low.told(lowId).some(({ builders }) => (builders as { answer: string }[])[0]?.answer === "accepted"),
	);

	assert.equal(await high.call("eth_sendBundle", [{ txs: [target, higher.raw] }]), highHash);
	const outbid = await ended(low, lowId, "OUTBID");
	assert.deepEqual(
		[outbid.outbidBy, outbid.blockHash],
		[null, null],
		"by how much is no news before the block",
	);
	// Who asks after the fact is told how it stands, at once.
	const highId = await high.subscribe("service_bundleStatus", highHash);
	const now = await until("the present state", () => high.told(highId)[0]);
	assert.deepEqual([now.bundleHash, now.status, now.bid], [highHash, "BEST", String(3_000n * GWEI)]);

	await until("the best one at the builder", () =>
		high.told(highId).some(({ builders }) => (builders as { answer: string }[])[0]?.answer === "accepted"),
	);
	await fixture.system.nextBlock();
	const included = await ended(high, highId, "INCLUDED");
	const { hash } = (await fixture.system.chain.rpc("eth_getBlockByNumber", ["latest", false])) as {
		hash: string;
	};
	assert.deepEqual([included.blockNumber, included.blockHash, included.outbidBy], [block, hash, null]);
	await ended(low, lowId, "NOT_INCLUDED");
	// By how much, and by whom, is told once the chain has told.
	const lost = await until("the winner", () => low.told(lowId).find(({ winner }) => winner !== null));
	assert.deepEqual([lost.reason, lost.outbidBy, lost.blockHash], ["outbid", String(2_000n * GWEI), null]);
	assert.deepEqual(lost.winner, { backrun: higher.hash, paid: String(3_000n * GWEI) });

	for (const client of [stranger, high]) {
		for (const id of spying) assert.deepEqual(client.told(id), []);
	}
	// The order was the life's own, without steps back.
	assert.deepEqual([...new Set(stages(low.told(lowId)))], ["BEST", "OUTBID", "NOT_INCLUDED"]);
});

it("holds no byte of a backrun or its signature", () => {
	for (const { texts } of searchers) {
		for (const text of texts) {
			for (const index of [1, 2]) {
				const { raw } = backrunBy(index, BigInt(index === 1 ? 1_000 : 3_000) * GWEI);
				assert.ok(!text.includes(raw.slice(-64)) && !text.includes(raw.slice(-130, -66)), text);
			}
		}
	}
});
