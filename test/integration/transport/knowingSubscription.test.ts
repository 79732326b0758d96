// Following a transaction over the websocket on a whole relay: each notification is the record of
// `GET /tx/{hash}`, how it stands first and then each change of it, none twice and none left out,
// whatever happens to the transaction.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { REVERTS } from "../../support/contracts.ts";
import { FeedClient, type Told } from "../../support/feeds.ts";
import { metricsOf } from "../../support/relayClient.ts";
import { GWEI, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";

const NAME = "service_transactionStatus";
const LIFE_BLOCKS = 3;
const WATCH_BLOCKS = 64;
const BUMPED = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };

let fixture: AuctionFixture;
let client: FeedClient;
before(async () => {
	fixture = await startAuction({
		proxied: true,
		builders: [{ name: "dev", refundGas: 21_000 }],
		builder: { refundGas: 21_000n },
		env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
	});
	await fixture.passBlock();
	client = await FeedClient.open(`${fixture.system.client.url.replace("http", "ws")}/ws`);
});
after(async () => {
	client.close();
	await fixture.system.stop();
});

/**
 * Waits until the subscription has received what the status page says now, and checks that it has
 * received nothing twice.
 */
async function level(id: string, tx: Signed): Promise<readonly Told[]> {
	await until("the last notification is what the page says", async () => {
		const now = await fixture.status(tx);
		return JSON.stringify(client.received(id).at(-1)) === JSON.stringify(now);
	});
	const told = client.received(id);
	for (const [i, one] of told.entries()) {
		if (i > 0) assert.notDeepEqual(one, told[i - 1], "received twice");
		assert.equal(one.hash, tx.hash);
	}
	return told;
}

const stages = (told: readonly Told[]) => told.map(({ stage }) => stage);

async function reaches(id: string, stage: string): Promise<void> {
	await until(`notified of ${stage}; so far ${stages(client.received(id)).join()}`, () =>
		client.received(id).some((one) => one.stage === stage),
	);
}

describe("a subscription to a transaction's status", () => {
	it("sends nothing for an unknown transaction until it arrives, and then each status", async () => {
		const tx = (await fixture.actor()).sign();
		const id = await client.subscribe(NAME, tx.hash);
		const stranger = await client.subscribe(NAME, `0x${"00".repeat(32)}`);
		await fixture.submit("/fast", tx);
		await reaches(id, "BROADCAST");
		await fixture.waitUntilSent(tx);
		await fixture.system.nextBlock();
		await reaches(id, "INCLUDED");
		assert.deepEqual(stages(await level(id, tx)), ["PENDING", "BROADCAST", "INCLUDED"]);
		assert.deepEqual(client.received(stranger), []);
		const { answer, first } = client.order(id);
		assert.ok(answer >= 0 && answer < first, "the id comes first");
		// It ends like any other.
		assert.equal(await client.call("eth_unsubscribe", [id]), true);
		assert.equal(await client.call("eth_unsubscribe", [stranger]), true);
	});

	it("sends the current status of a live one at once, in any spelling of the hash", async () => {
		const tx = (await fixture.actor()).sign();
		await fixture.submit("/fast", tx);
		await fixture.reaches(tx, "BROADCAST");
		const id = await client.subscribe(NAME, `0X${tx.hash.slice(2).toUpperCase()}`);
		await reaches(id, "BROADCAST");
		assert.deepEqual(client.received(id), [await fixture.status(tx)]);
		assert.equal(await fixture.system.client.call("eth_cancelTransaction", [tx.hash]), true);
		await reaches(id, "CANCELLED");
		assert.deepEqual(stages(await level(id, tx)), ["BROADCAST", "CANCELLED"]);
	});

	it("sends a failing simulation once with its error while it stays the same, and the end", async () => {
		const reverter = await fixture.placeCode(REVERTS);
		const tx = (await fixture.actor()).sign({ to: reverter });
		const id = await client.subscribe(NAME, tx.hash);
		await fixture.submit("/noreverts", tx);
		await reaches(id, "SIMULATION_FAILED");
		for (let i = 0; i < LIFE_BLOCKS + 1; i++) await fixture.passBlock();
		await reaches(id, "EXPIRED");
		const told = await level(id, tx);
		assert.deepEqual(stages(told), ["PENDING", "SIMULATION_FAILED", "EXPIRED"]);
		const error = told[1]?.simulationError as { code: string } | null;
		assert.deepEqual([told[1]?.status, error?.code], ["FAILED", "EXECUTION_REVERTED"]);
		// The same bytes bring it back, and the subscription is still there.
		await fixture.submit("/noreverts", tx);
		await until("it is back", () => client.received(id).length >= 5);
		assert.deepEqual(stages(await level(id, tx)).slice(3), ["PENDING", "SIMULATION_FAILED"]);
	});

	it("sends that it is shared, mined with a backrun, refunded, and reorganised away", async () => {
		const target = await fixture.target();
		const id = await client.subscribe(NAME, target.hash);
		const bidder = await fixture.bidder();
		const backrun = bidder.backrun(12_345_678_901_234_567n);
		await bidder.bid(target, backrun);
		await fixture.out(target, backrun);
		await fixture.system.nextBlock();
		await until("the refund is reported", () => client.received(id).some(({ refund }) => Number(refund) > 0));
		const told = await level(id, target);
		assert.deepEqual(
			told.map(({ stage, shared, backruns, refund }) => [stage, shared, backruns, Number(refund) > 0]),
			[
				["BROADCAST", true, 0, false],
				["INCLUDED", true, 1, false],
				["INCLUDED", true, 1, true],
			],
		);
		const release = fixture.system.node?.hold();
		await fixture.system.chain.rpc("anvil_reorg", [1, []]).finally(release);
		await until("it is reported", () => client.received(id).length >= 6);
		const again = (await level(id, target)).slice(3);
		assert.deepEqual(
			again.map(({ stage, status, refund }) => [stage, status, refund]),
			[
				["PENDING", "UNKNOWN", 0],
				// That it was seen in a block that is gone.
				["PENDING", "UNKNOWN", 0],
				["BROADCAST", "UNKNOWN", 0],
			],
		);
	});

	it("sends that it is shared if only that changes, and that it was replaced", async () => {
		const user = await fixture.actor();
		const tx = user.sign({ nonce: 1 });
		const id = await client.subscribe(NAME, tx.hash);
		await fixture.submit("/maxbackruns", tx);
		await reaches(id, "QUEUED");
		const bumped = user.sign({ nonce: 1, ...BUMPED });
		await fixture.submit("/fast", bumped);
		await reaches(id, "REPLACED");
		const told = await level(id, tx);
		assert.deepEqual(
			told.map(({ stage, shared }) => [stage, shared]),
			[
				["PENDING", false],
				["SHARED", true],
				["QUEUED", true],
				["REPLACED", true],
			],
		);
	});

	it("sends the final status of an archived one, and nothing more", async () => {
		const tx = (await fixture.actor()).sign();
		await fixture.submit("/fast", tx);
		await fixture.waitUntilSent(tx);
		await fixture.system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		// One more: it is archived while the relay processes the last of them.
		for (let i = 0; i <= WATCH_BLOCKS; i++) await fixture.passBlock();
		const id = await client.subscribe(NAME, tx.hash);
		await reaches(id, "INCLUDED");
		await fixture.passBlock();
		assert.deepEqual(client.received(id), [await fixture.status(tx)]);
	});

	it("is refused without a hash of 32 bytes, with an error that says so", async () => {
		for (const params of [[], ["0x12"], [7], [`0x${"zz".repeat(32)}`]]) {
			const { error } = await client.ask("eth_subscribe", [NAME, ...params]);
			assert.deepEqual(error, {
				code: -32602,
				message: "invalid params: hash: expected a hash of 32 bytes as 0x hex",
			});
		}
	});

	it("a client that goes leaves nothing behind", async () => {
		const count = async () =>
			Number(/^relay_subscriptions (\d+)$/m.exec(await metricsOf(fixture.system.client.url))?.[1]);
		const before = await count();
		const other = await FeedClient.open(`${fixture.system.client.url.replace("http", "ws")}/ws`);
		const hashes = Array.from({ length: 16 }, (_, i) => `0x${(i + 1).toString(16).padStart(64, "0")}`);
		for (const hash of hashes) await other.subscribe(NAME, hash);
		assert.equal(await count(), before + 16);
		other.close();
		await until("they are forgotten", async () => (await count()) === before);
	});
});
