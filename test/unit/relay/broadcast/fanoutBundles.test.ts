// Tests the fan-out of bundles on real servers: who gets one, under which identifier, that only the newest of a name
// is sent, and who hears the answers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256, verifyMessage } from "ethers";
import { BUILDER_CONNECTIONS } from "../../../../relay/broadcast/builderClient.ts";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";
import { until } from "../../../support/until.ts";
import { type FakeBuilder, startFakeBuilder } from "./fakeBuilder.ts";
import { bid, bidRaw, listener, nonces, quiet, REFUND, TARGET } from "./fanoutBids.ts";
import { dispatch, fanoutFixtures, SIGNER, seen, UUID_V4, uuidIn } from "./fanoutFixture.ts";

const { startBuilder, fixture, busy } = fanoutFixtures();

test("a bundle with a refund goes to builders that pay refunds alone, each as its row takes it", async () => {
	const fakes = [await startBuilder(), await startBuilder(), await startBuilder(), await startBuilder()];
	const [pays, little, never, nothing] = fakes as [FakeBuilder, FakeBuilder, FakeBuilder, FakeBuilder];
	const { fanout } = fixture([
		pays.row("pays", { dropping: true }),
		little.row("little", { dialect: "mev-share", maxRefundPercent: 40 }),
		never.row("never", { refund: false }),
		nothing.row("nothing", { maxRefundPercent: 0 }),
	]);
	assert.deepEqual(fanout.names(), ["pays", "little", "never", "nothing"]);
	const all = [...fanout.names(), "nobody"];
	assert.deepEqual(fanout.sendBundle(bid("one"), all, quiet), ["pays", "little"]);
	assert.deepEqual(fanout.sendBundle(bid("two"), ["never", "nobody"], quiet), []);
	assert.deepEqual(fanout.sendBundle(bid("three", { refund: null }), all, quiet), fanout.names());
	await Promise.all([seen(pays, 2), seen(little, 2), seen(never, 1), seen(nothing, 1)]);
	const param = (builder: FakeBuilder) => builder.seen[0]?.call.params[0] as Record<string, unknown>;
	assert.equal(param(pays).refundPercent, 90);
	assert.equal(param(pays).refundRecipient, REFUND.recipient);
	assert.equal((param(pays).droppingTxHashes as unknown[]).length, 1);
	assert.deepEqual((param(little).validity as { refund: unknown }).refund, [{ bodyIdx: 0, percent: 40 }]);
	for (const builder of [never, nothing]) assert.equal(param(builder).refundPercent, undefined);
	assert.deepEqual(
		fakes.map((builder) => builder.seen.length),
		[2, 2, 1, 1],
	);
});

test("every request is signed over the very bytes that arrive", async () => {
	const [one, two] = [await startBuilder(), await startBuilder()];
	const { fanout } = fixture([one.row("one"), two.row("two", { maxRefundPercent: 80 })]);
	fanout.sendBundle(bid("a"), ["one", "two"], quiet);
	fanout.cancelBundle("a", 101, ["one", "two"], quiet);
	for (const builder of [one, two]) {
		for (const request of await seen(builder, 3)) {
			const [address, signature] = request.signature.split(":");
			assert.equal(address, SIGNER);
			assert.equal(verifyMessage(keccak256(request.body), signature ?? "").toLowerCase(), SIGNER);
		}
	}
});

test("the caller and the listener are told of every answer, and no transaction gets an event", async () => {
	const [good, bad, gone] = [await startBuilder(), await startBuilder(), await startFakeBuilder()];
	bad.answerWith({ status: 200, text: '{"error":"a builder\'s own words"}' });
	await gone.close();
	const { fanout, events, noted } = fixture([good.row("good"), bad.row("bad"), gone.row("gone")]);
	const sent = listener();
	fanout.sendBundle(bid("a"), fanout.names(), sent.answered);
	await until("three answers", () => sent.told.length === 3);
	assert.deepEqual(sent.told.sort(), ["bad bundle rejected", "gone bundle failed", "good bundle accepted"]);
	assert.deepEqual([...noted].sort(), [
		"bad backrun rejected",
		"gone backrun failed",
		"good backrun accepted",
	]);
	const cancelled = listener();
	fanout.cancelBundle("a", 101, ["good"], cancelled.answered);
	await until("both cancels", () => cancelled.told.length === 2);
	assert.deepEqual(cancelled.told, ["good cancel accepted", "good cancel accepted"]);
	assert.deepEqual(noted.slice(3), ["good cancel accepted", "good cancel accepted"]);
	assert.deepEqual(events, []);
});

test("a name has one identifier: of its own, the same after a restart, and never a target's", async () => {
	const builder = await startBuilder();
	const { fanout } = fixture([builder.row("b")]);
	// One at a time, so that none takes another's place before it is out.
	let count = 0;
	const arrived = () => seen(builder, ++count);
	fanout.sendBundle(bid("a"), ["b"], quiet);
	await arrived();
	fanout.sendBundle(bid("a", { nonce: 1, block: 102 }), ["b"], quiet);
	await arrived();
	fanout.cancelBundle("a", 102, ["b"], quiet);
	await arrived();
	await arrived();
	fixture([builder.row("b")]).fanout.sendBundle(bid("a"), ["b"], quiet);
	await arrived();
	const uuid = String(uuidIn(builder, 0));
	assert.match(uuid, UUID_V4);
	for (const i of [1, 2, 3, 4]) assert.equal(uuidIn(builder, i), uuid, `request ${i}`);
	fanout.sendBundle(bid("b"), ["b"], quiet);
	await arrived();
	fanout.send(dispatch(TARGET), ["b"]);
	await arrived();
	// Not even a bundle that is named like a target's own takes its place.
	fanout.sendBundle(bid(`target ${TARGET.tx.hash}`), ["b"], quiet);
	await arrived();
	const other = fixture([builder.row("b")], { key: testAccount(43).keyHex });
	other.fanout.sendBundle(bid("a"), ["b"], quiet);
	await arrived();
	const others = [5, 6, 7, 8].map((i) => String(uuidIn(builder, i)));
	for (const one of others) assert.match(one, UUID_V4);
	assert.equal(new Set([uuid, ...others]).size, 5);
});

test("a searcher's words never leave", async () => {
	const builder = await startBuilder();
	const { fanout } = fixture([builder.row("b"), builder.row("c", { dialect: "mev-share" })]);
	fanout.sendBundle(bid("s3cret-uuid"), ["b", "c"], quiet);
	fanout.cancelBundle("s3cret-uuid", 101, ["b", "c"], quiet);
	for (const { body } of await seen(builder, 6)) assert.ok(!body.toString().includes("s3cret"));
});

test("of what waits under one name only the newest goes out; what it replaced is told as unsent", async () => {
	const { fanout, builder, finish } = await busy();
	const { told, answered } = listener();
	for (const nonce of [0, 1, 2, 3]) fanout.sendBundle(bid("a", { nonce }), ["b"], answered);
	fanout.sendBundle(bid("other", { nonce: 4 }), ["b"], quiet);
	assert.deepEqual(told, ["b bundle unsent", "b bundle unsent", "b bundle unsent"]);
	assert.equal(fanout.depth, BUILDER_CONNECTIONS + 2);
	await finish();
	assert.deepEqual(nonces(builder, 5), [3, 4]);
	assert.equal(told.at(-1), "b bundle accepted");
	assert.equal(told.length, 4);
});

test("a newer one waits until the one under way is answered, so that they arrive in order", async () => {
	const builder = await startBuilder();
	builder.answerWith(null);
	const { fanout } = fixture([builder.row("b")]);
	const { told, answered } = listener();
	fanout.sendBundle(bid("a", { nonce: 0 }), ["b"], answered);
	await until("the first", () => builder.held === 1);
	for (const nonce of [1, 2]) fanout.sendBundle(bid("a", { nonce }), ["b"], answered);
	assert.deepEqual(told, ["b bundle unsent"]);
	builder.release();
	await until("all answers", () => told.length === 3);
	assert.deepEqual(nonces(builder, 3), [0, 2]);
});

test("a full or closed lane answers at once, and a newer bid takes its elder's place in a full one", async () => {
	const { fanout, builder, finish } = await busy(2);
	const { told, answered } = listener();
	fanout.sendBundle(bid("a", { nonce: 0, client: "one" }), ["b"], answered);
	fanout.sendBundle(bid("c", { nonce: 1, client: "two" }), ["b"], quiet);
	assert.deepEqual(fanout.sendBundle(bid("d", { nonce: 2, client: "three" }), ["b"], answered), ["b"]);
	assert.deepEqual(told, ["b bundle unsent"]);
	fanout.sendBundle(bid("a", { nonce: 3, client: "one" }), ["b"], answered);
	await finish();
	assert.deepEqual(nonces(builder, 4).sort(), [1, 3]);
	assert.deepEqual(told, ["b bundle unsent", "b bundle unsent", "b bundle accepted"]);
	await fanout.close();
	fanout.sendBundle(bid("e"), ["b"], answered);
	assert.equal(told.at(-1), "b bundle unsent");
	assert.equal(told.length, 4);
});

test("the terms of the builders", async () => {
	const builder = await startBuilder();
	const { fanout } = fixture([
		builder.row("a", { maxRefundPercent: 80, refundGas: 21_000 }),
		builder.row("b", { refund: false }),
	]);
	assert.deepEqual(fanout.terms("a", 90), { percent: 80, refundGas: 21_000 });
	assert.deepEqual(fanout.terms("a", 70), { percent: 70, refundGas: 21_000 });
	assert.equal(fanout.terms("b", 90), null);
	assert.equal(fanout.terms("nobody", 90), null);
});

test("a transaction and a backrun behind its target go before thousands of plain bundles, which are fair by client", async () => {
	const { fanout, builder, finish } = await busy(100_000);
	for (let i = 0; i < 2_000; i += 1) {
		fanout.sendBundle(
			bid(`plain ${i}`, { nonce: i === 1_999 ? 2 : 1, client: "crowd", isPlain: true, refund: null }),
			["b"],
			quiet,
		);
	}
	fanout.sendBundle(
		bid("plain", { nonce: 3, client: "one more", isPlain: true, refund: null }),
		["b"],
		quiet,
	);
	fanout.sendBundle(bid("backrun", { nonce: 4, client: "bidder" }), ["b"], quiet);
	const transaction = privateTransaction({ by: testAccount(50), nonce: 5, origin: "2001:db8::1" });
	fanout.send(dispatch(transaction), ["b"]);
	await finish();
	const next = builder.seen.slice(BUILDER_CONNECTIONS);
	const raw = transaction.tx.raw.toString("hex");
	const places = [bidRaw(4), raw, bidRaw(3), bidRaw(2)].map((one) =>
		next.findIndex(({ body }) => body.includes(one)),
	);
	const [backrun = -1, user = -1, other = -1, last = -1] = places;
	assert.ok(backrun >= 0 && backrun < 2 && user >= 0 && user < 2, String(places));
	assert.ok(other >= 2 && other < 12, String(places));
	assert.equal(last, next.length - 1);
});

test("a client's eighth of a lane is counted by its network, and apart for what it sends as a searcher", async () => {
	const { fanout, finish } = await busy(16);
	const { told, answered } = listener();
	for (let i = 1; i <= 3; i += 1) {
		const origin = `2001:db8::${i}`;
		fanout.send(dispatch(privateTransaction({ by: testAccount(50 + i), origin })), ["b"]);
		fanout.sendBundle(
			bid(`plain ${i}`, { nonce: i, isPlain: true, client: "2001:db8::/56" }),
			["b"],
			answered,
		);
		fanout.sendBundle(bid(`backrun ${i}`, { nonce: i, client: "bidder" }), ["b"], answered);
	}
	assert.deepEqual(told, ["b bundle unsent", "b bundle unsent"]);
	assert.equal(fanout.depth, BUILDER_CONNECTIONS + 6);
	await finish();
});
