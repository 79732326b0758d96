// The fan-out against real servers: who gets what, signed by whom, under which identifier, and who holds up whom.

import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256, verifyMessage } from "ethers";
import { BUILDER_CONNECTIONS } from "../../../../relay/broadcast/builderClient.ts";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";
import { until } from "../../../support/until.ts";
import { startFakeBuilder } from "./fakeBuilder.ts";
import { dispatch, fanoutFixtures, SIGNER, seen, UUID_V4, uuidIn } from "./fanoutFixture.ts";

const { startBuilder, fixture } = fanoutFixtures();

test("every request is signed over the very bytes that arrive, as ethers verifies it", async () => {
	const [one, two, three] = [await startBuilder(), await startBuilder(), await startBuilder()];
	const rows = [one.row("one"), two.row("two", { dialect: "mev-share" }), three.row("three")];
	const { fanout } = fixture(rows);
	const transaction = privateTransaction();
	fanout.send(dispatch(transaction), ["one", "two", "three"]);
	fanout.cancel(transaction, ["one", "two", "three"], 101);
	for (const builder of [one, two, three]) {
		for (const request of await seen(builder, 3)) {
			const [address, signature] = request.signature.split(":");
			assert.equal(address, SIGNER);
			assert.equal(verifyMessage(keccak256(request.body), signature ?? "").toLowerCase(), SIGNER);
			assert.equal(request.contentType, "application/json");
			assert.deepEqual(Object.keys(request.call).sort(), ["id", "jsonrpc", "method", "params"]);
		}
	}
	// Builders of one dialect get the same bytes.
	assert.ok(one.seen[0]?.body.equals(three.seen[0]?.body ?? Buffer.alloc(0)));
	assert.equal(two.seen[0]?.call.method, "mev_sendBundle");
});

test("how each builder took it becomes an event, and is noted", async () => {
	const [good, bad, gone] = [await startBuilder(), await startBuilder(), await startFakeBuilder()];
	bad.answerWith({ status: 200, text: '{"error":"a builder\'s own words"}' });
	await gone.close();
	const { fanout, events, noted } = fixture([good.row("good"), bad.row("bad"), gone.row("gone")]);
	const transaction = privateTransaction();
	fanout.send(dispatch(transaction, 107), ["good", "bad", "gone"]);
	await until("three answers", () => events.length === 3);
	const told = events.map(([hash, event]) => {
		assert.equal(hash, transaction.tx.hash);
		assert.ok(event.type === "delivered" && Number.isInteger(event.ms) && event.ms >= 0 && event.at > 0);
		const { builder, kind, block, answer } = event;
		return [builder, kind, block, answer];
	});
	assert.deepEqual(told.sort(), [
		["bad", "bundle", 107, "rejected"],
		["gone", "bundle", 107, "failed"],
		["good", "bundle", 107, "accepted"],
	]);
	assert.deepEqual([...noted].sort(), ["bad bundle rejected", "gone bundle failed", "good bundle accepted"]);
	const text = JSON.stringify(events);
	assert.ok(!text.includes("own words") && !text.includes(transaction.tx.raw.toString("hex")));
});

test("private transactions and cancels are told as what they are", async () => {
	const builder = await startBuilder();
	const { fanout, noted } = fixture([builder.row("b")]);
	const transaction = privateTransaction({ path: "nochecks" });
	fanout.send(dispatch(transaction), ["b"]);
	await until("its answer", () => noted.length === 1);
	fanout.cancel(transaction, ["b"], 102);
	await until("its answer", () => noted.length === 2);
	assert.deepEqual(noted, ["b private accepted", "b cancel accepted"]);
	assert.ok(!JSON.stringify(builder.seen.map(({ call }) => call)).includes("replacementUuid"));
});

test("only the builders that are named get it; names of nobody are nobody", async () => {
	const [one, two] = [await startBuilder(), await startBuilder()];
	const { fanout, noted } = fixture([one.row("one"), two.row("two")]);
	fanout.send(dispatch(), ["two", "nobody"]);
	fanout.send(dispatch(), []);
	await until("the answer", () => noted.length === 1);
	fanout.cancel(privateTransaction(), ["one"], 101);
	await seen(one, 2);
	assert.deepEqual([one.seen.length, two.seen.length], [2, 1]);
	assert.ok(one.seen.every(({ call }) => !JSON.stringify(call).includes("0x02")));
});

test("a bundle's identifier is a UUIDv4 of the transaction and the key, the same after a restart", async () => {
	const builder = await startBuilder();
	const one = privateTransaction();
	const two = privateTransaction({ nonce: 1 });
	const first = fixture([builder.row("b")]).fanout;
	first.send(dispatch(one), ["b"]);
	await seen(builder, 1);
	first.send(dispatch(one, 102), ["b"]);
	await seen(builder, 2);
	first.cancel(one, ["b"], 102);
	await seen(builder, 4);
	fixture([builder.row("b")]).fanout.send(dispatch(one), ["b"]);
	await seen(builder, 5);
	const uuid = String(uuidIn(builder, 0));
	assert.match(uuid, UUID_V4);
	for (const i of [1, 2, 3, 4]) assert.equal(uuidIn(builder, i), uuid, `request ${i}`);
	first.send(dispatch(two), ["b"]);
	await seen(builder, 6);
	fixture([builder.row("b")], { key: testAccount(43).keyHex }).fanout.send(dispatch(one), ["b"]);
	await seen(builder, 7);
	const others = [String(uuidIn(builder, 5)), String(uuidIn(builder, 6))];
	for (const other of others) assert.match(other, UUID_V4);
	assert.equal(new Set([uuid, ...others]).size, 3);
	assert.ok(!one.tx.hash.includes(uuid.slice(0, 8)));
});

test("who may have a transaction by its path", async () => {
	const builder = await startBuilder();
	const rows = ["a", "b", "c"].map((name) => builder.row(name));
	const marked = [
		builder.row("a"),
		builder.row("b", { fullPrivacy: true }),
		builder.row("c", { fullPrivacy: true }),
	];
	for (const path of ["fast", "noreverts", "maxbackruns", "nochecks"] as const) {
		assert.deepEqual(fixture(marked).fanout.eligible(privateTransaction({ path })), ["a", "b", "c"], path);
	}
	const secret = privateTransaction({ path: "fullprivacy" });
	assert.deepEqual(fixture(marked).fanout.eligible(secret), ["b", "c"]);
	assert.deepEqual(fixture(rows).fanout.eligible(secret), ["a"], "none marked: the first row alone");
});

test("a builder that hangs holds up nobody, and its lane is bounded", async () => {
	const [slow, quick] = [await startBuilder(), await startBuilder()];
	slow.answerWith(null);
	const { fanout, noted } = fixture([slow.row("slow"), quick.row("quick")], { capacity: 10 });
	const count = BUILDER_CONNECTIONS + 20;
	for (let i = 0; i < count; i += 1) {
		fanout.send(dispatch(privateTransaction({ by: testAccount(i), origin: `10.0.0.${i}` })), [
			"slow",
			"quick",
		]);
	}
	const answered = (line: string) => noted.filter((one) => one === line).length;
	// The quick one's own lane is as short, so it had as many too many and nothing else.
	await until("the quick one", () => answered("quick bundle accepted") === BUILDER_CONNECTIONS + 10);
	assert.equal(answered("slow bundle accepted"), 0);
	assert.equal(answered("slow bundle unsent"), 10);
	await until("all its connections", () => slow.held === BUILDER_CONNECTIONS);
	assert.equal(fanout.depth, BUILDER_CONNECTIONS + 10);
	slow.release();
	await until("the slow one", () => answered("slow bundle accepted") === BUILDER_CONNECTIONS + 10);
	assert.equal(fanout.depth, 0);
});

/** A builder whose connections are all taken, by other clients. */
async function busy() {
	const builder = await startBuilder();
	builder.answerWith(null);
	const { fanout, noted } = fixture([builder.row("b")]);
	for (let i = 0; i < BUILDER_CONNECTIONS; i += 1) {
		fanout.send(dispatch(privateTransaction({ by: testAccount(1 + i), origin: `10.0.0.${i}` })), ["b"]);
	}
	await until("all its connections", () => builder.held === BUILDER_CONNECTIONS);
	const finish = async (): Promise<string[]> => {
		builder.release();
		await until("an empty lane", () => fanout.depth === 0);
		return builder.seen.slice(BUILDER_CONNECTIONS).map(({ call }) => JSON.stringify(call));
	};
	return { fanout, noted, finish };
}

test("what waits for a block that is there is not sent", async () => {
	const { fanout, finish } = await busy();
	fanout.send(dispatch(privateTransaction({ nonce: 1 }), 101), ["b"]);
	fanout.send(dispatch(privateTransaction({ nonce: 2 }), 102), ["b"]);
	fanout.setHead(101);
	const calls = await finish();
	assert.equal(calls.length, 1);
	assert.ok(calls[0]?.includes('"blockNumber":"0x66"'));
});

for (const path of ["fast", "nochecks"] as const) {
	test(`what waits when it is cancelled is never sent behind its cancel, on /${path}`, async () => {
		const { fanout, finish } = await busy();
		const transaction = privateTransaction({ nonce: 1, path });
		fanout.send(dispatch(transaction), ["b"]);
		fanout.cancel(transaction, ["b"], 101);
		const calls = await finish();
		const raw = transaction.tx.raw.toString("hex");
		assert.deepEqual(
			calls.filter((call) => call.includes(raw)),
			[],
		);
		// Another one, and the same one sent again afterwards, are no part of that.
		fanout.send(dispatch(transaction), ["b"]);
		assert.ok((await finish()).some((call) => call.includes(raw)));
	});
}

test("a chain of nonces arrives in order, and its cancel behind what it cancels", async () => {
	const builder = await startBuilder();
	const { fanout, noted } = fixture([builder.row("b")]);
	const chain = Array.from({ length: 12 }, (_, nonce) => privateTransaction({ nonce }));
	for (const transaction of chain) fanout.send(dispatch(transaction), ["b"]);
	await until("the first", () => builder.seen.length > 0);
	const [first] = chain;
	assert.ok(first !== undefined);
	fanout.cancel(first, ["b"], 101);
	await until("all answers", () => noted.length === 14);
	const raws = chain.map(({ tx }) => tx.raw.toString("hex"));
	const arrived = builder.seen.map(({ call }) => raws.findIndex((raw) => JSON.stringify(call).includes(raw)));
	assert.deepEqual(
		arrived.filter((index) => index >= 0),
		raws.map((_, index) => index),
	);
	assert.ok(arrived.indexOf(-1) > arrived.indexOf(0));
});

test("closing finishes what is under way and drops what waits", async () => {
	const builder = await startBuilder();
	builder.answerWith(null);
	const { fanout, noted } = fixture([builder.row("b")]);
	for (let i = 0; i < BUILDER_CONNECTIONS + 3; i += 1) {
		fanout.send(dispatch(privateTransaction({ by: testAccount(i), origin: `10.0.0.${i}` })), ["b"]);
	}
	await until("all its connections", () => builder.held === BUILDER_CONNECTIONS);
	const closing = fanout.close();
	builder.release();
	await closing;
	assert.equal(noted.filter((line) => line === "b bundle accepted").length, BUILDER_CONNECTIONS);
	assert.equal(noted.filter((line) => line === "b bundle unsent").length, 3);
	assert.equal(builder.seen.length, BUILDER_CONNECTIONS);
});
