// Two boosts on one database, in front of the same relay and fallback: what a wallet asks of one it
// may ask of the other, and what it has ended by one is not sent by the other.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import type { BoostState } from "../../../boost-proxy/ingress/operators.ts";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { newDatabase } from "../../support/engine.ts";
import { ADMIN_TOKEN, type WireAnswer, type WireStatus } from "../../support/relayClient.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { mineAll } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const DEARER = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI };

let fixture: BoostFixture;
let one: BoostClient;
let other: BoostClient;
before(async () => {
	fixture = await startBoostFixture({
		system: { env: { CANCEL_POLICY: "origin" } },
		boost: {
			DATABASE_URL: await newDatabase(),
			BREAKER_HOLD_MAX_MS: "100",
			// A lower nonce goes first if it gets its answer in a quarter of the request's time, which a
			// busy machine may take.
			REQUEST_BUDGET_MS: "40000",
		},
	});
	one = fixture.boost;
	const ETH_RPC_URL = fixture.system.chain.url;
	other = await fixture.startBoost({ env: { ETH_RPC_URL } });
});
after(() => fixture?.stop());
afterEach(async () => {
	await fixture.recovers();
	await other.isWell();
});

const send = (boost: BoostClient, { raw }: Signed, path = "/fast") =>
	boost.result("eth_sendRawTransaction", [raw], { path });
const cancel = async (boost: BoostClient, { hash }: Signed) =>
	(await boost.call("eth_cancelTransaction", [hash])).json as WireAnswer;
const status = async (boost: BoostClient, { hash }: Signed) =>
	(await boost.get(`/tx/${hash}`)).json as WireStatus;
const pending = (boost: BoostClient, { address }: Actor) =>
	boost.result("eth_getTransactionCount", [address, "pending"]);
const depths = async () => [(await one.status()).journal.depth, (await other.status()).journal.depth];
/** How often the fallback was sent it. */
const sentToFallback = ({ raw }: Signed) =>
	fixture.wires.fallback
		.requests()
		.flatMap(({ calls }) => calls)
		.filter(({ method, params }) => method === "eth_sendRawTransaction" && params[0] === raw).length;

/** Relay and fallback refuse connections, and both boosts know. */
async function bothAreOut(): Promise<void> {
	await fixture.wires.fallback.set({ kind: "refuse" });
	await relayIsOut();
	for (const boost of [one, other])
		await boost.reaches("the fallback is down", ({ fallback }) => fallback?.state !== "closed");
}

async function relayIsOut(): Promise<void> {
	await fixture.wires.relay.set({ kind: "refuse" });
	for (const boost of [one, other])
		await boost.reaches("the relay is down", ({ relay }) => relay.state !== "closed");
}

async function actor(): Promise<Actor> {
	const made = await fixture.users.actor();
	await fixture.users.passBlock();
	return made;
}

describe("what one boost instance has, the other one", () => {
	it("reports: status, pending nonce and the transaction by its hash", async () => {
		const by = await actor();
		const tx = by.sign();
		await send(one, tx);
		await bothAreOut();
		// The other one may still take it over, if it was the last to lose the relay.
		await until("to be asked moves nothing", async () => {
			const had = await depths();
			assert.equal((await status(other, tx)).stage, "HELD");
			assert.equal(await pending(other, by), "0x1");
			const found = (await other.result("eth_getTransactionByHash", [tx.hash])) as Record<string, unknown>;
			assert.deepEqual([found.hash, found.blockHash, found.r], [tx.hash, null, "0x0"]);
			return (await depths()).join() === had.join();
		});
		await fixture.recovers();
		await mineAll(fixture.system, [tx]);
	});

	it("cancels while nobody can be reached, and neither of them sends it when that is over", async () => {
		const by = await actor();
		const tx = by.sign();
		await send(one, tx);
		await bothAreOut();
		for (const boost of [other, one])
			assert.match((await cancel(boost, tx)).error?.message ?? "", /cancels it there as soon as possible/);
		for (const boost of [one, other]) assert.equal((await status(boost, tx)).stage, "CANCELLED");
		assert.equal(await send(one, tx), tx.hash, "the same bytes change nothing");
		await fixture.recovers();
		await until("the relay knows", async () => (await fixture.users.status(tx)).stage === "CANCELLED");
		assert.equal(sentToFallback(tx), 0);
		await until("both have ended it", async () => (await depths()).join() === "0,0");
		for (const boost of [one, other]) assert.equal(await send(boost, tx), tx.hash);
		assert.deepEqual(await depths(), [0, 0], "nor do they when it is archived");
	});

	it("replaces: the later one alone is mined, though the relay had only the earlier one when it went out", async () => {
		const by = await actor();
		const [first, second] = [by.sign(), by.sign({ ...DEARER, value: 2 })];
		await send(one, first);
		await relayIsOut();
		await send(other, second);
		// The one that lost the relay last may have taken it over.
		await until("one of them has it", async () => (await depths()).sort().join() === "0,1");
		assert.equal((await status(one, first)).stage, "REPLACED");
		assert.equal((await status(one, second)).stage, "HELD");
		await fixture.recovers();
		await until(
			"the relay has given up the first",
			async () => (await fixture.users.status(first)).status === "FAILED",
		);
		await mineAll(fixture.system, [second]);
		await until("both know", async () => (await depths()).join() === "0,0");
	});

	it("cancels softly by a self-transfer, which is sent to nobody who has nothing of it", async () => {
		const by = await actor();
		const path = "/noreverts?softCancellations=true";
		const tx = by.sign();
		await send(one, tx, path);
		const soft = by.sign({ to: by.address, value: 0 });
		await send(other, soft, path);
		await until("the relay knows", async () => (await fixture.users.status(tx)).stage === "CANCELLED");
		for (const boost of [one, other]) {
			assert.equal((await status(boost, tx)).stage, "CANCELLED");
			assert.equal((await status(boost, soft)).stage, "CANCELLED");
		}
		assert.equal(sentToFallback(soft), 0);
		assert.deepEqual(await depths(), [0, 0]);
	});

	it("continues: nonces that come in turn by both go to the fallback in their order", async () => {
		const by = await actor();
		const chain = Array.from({ length: 8 }, (_, nonce) => by.sign({ nonce }));
		for (const [i, tx] of chain.slice(0, 4).entries()) await send(i % 2 === 0 ? one : other, tx);
		await until(
			"the account is in one place",
			async () => (await depths()).filter((n) => n > 0).length === 1,
		);
		await relayIsOut();
		for (const [i, tx] of chain.slice(4).entries()) await send(i % 2 === 0 ? one : other, tx);
		const arrived = fixture.wires.fallback
			.requests()
			.flatMap(({ calls }) => calls)
			.map(({ params }) => chain.findIndex(({ raw }) => raw === params?.[0]))
			.filter((nonce) => nonce >= 0);
		assert.deepEqual([...new Set(arrived)], [0, 1, 2, 3, 4, 5, 6, 7]);
		await mineAll(fixture.system, chain);
		await until("both know", async () => (await depths()).join() === "0,0");
	});
});

it("another boost instance takes over all of one that ends: open ones are mined, cancelled ones stay so", async () => {
	const third = await fixture.startBoost();
	const [open, ended] = [(await actor()).sign(), (await actor()).sign()];
	for (const tx of [open, ended]) await send(third, tx);
	assert.equal((await cancel(third, ended)).result, true);
	assert.equal((await third.status()).journal.instances?.count, 3);
	const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
	for (const boost of [one, other, third]) {
		const { json } = await boost.send({ verb: "GET", path: "/admin/state", headers });
		const { instances } = json as BoostState;
		assert.deepEqual([instances?.length, instances?.every(({ reaches }) => reaches)], [3, true]);
		assert.ok(instances?.every(({ upSeconds, secondsAgo }) => upSeconds >= 0 && secondsAgo < 5));
	}
	const takenOver = async () => {
		const both = [await one.status(), await other.status()];
		return both.reduce((sum, { journal }) => sum + (journal.instances?.takenOver ?? 0), 0);
	};
	const before = await takenOver();
	await third.stop();
	await until("one has taken it over", async () => (await takenOver()) > before);
	assert.deepEqual((await depths()).sort(), [0, 1]);
	for (const boost of [one, other]) {
		assert.equal((await status(boost, ended)).stage, "CANCELLED");
		assert.equal(await send(boost, ended), ended.hash);
	}
	assert.deepEqual((await depths()).sort(), [0, 1], "the cancelled one is not taken again");
	await mineAll(fixture.system, [open]);
	await until("both know", async () => (await depths()).join() === "0,0");
});

it("the same bytes sent to both at once become one row", async () => {
	const by = await actor();
	const txs = Array.from({ length: 10 }, (_, nonce) => by.sign({ nonce }));
	for (const tx of txs) {
		const [a, b] = await Promise.all([send(one, tx), send(other, tx)]);
		assert.deepEqual([a, b], [tx.hash, tx.hash]);
	}
	await until("all are in one place, once", async () => {
		const sizes = await depths();
		return sizes.includes(0) && sizes.includes(txs.length);
	});
	await mineAll(fixture.system, txs);
	await until("both know", async () => (await depths()).join() === "0,0");
});
