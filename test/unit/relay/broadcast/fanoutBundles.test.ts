// The fan-out of bundles against real servers: who gets one, under which identifier, that only the newest of a name
// goes out, how it is cancelled, and who is told of the answers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256, verifyMessage } from "ethers";
import { BUILDER_CONNECTIONS } from "../../../../relay/broadcast/builderClient.ts";
import type { BuilderRow } from "../../../../relay/domain/builder.ts";
import type { OutgoingBundle } from "../../../../relay/domain/bundle.ts";
import type { BundleDelivery } from "../../../../relay/domain/bundleStatus.ts";
import { privateTransaction, signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { until } from "../../../support/until.ts";
import { type FakeBuilder, startFakeBuilder } from "./fakeBuilder.ts";
import { dispatch, fanoutScenes, SIGNER, seen, UUID_V4, uuidIn } from "./fanoutScene.ts";

const { startBuilder, scene } = fanoutScenes();

const TARGET = privateTransaction();
const REFUND = { percent: 90, recipient: testAccount(9).address, bodyIdx: 0, of: null };

/** A bid on TARGET; `nonce` tells one backrun from another. */
function bid(name: string, options: { nonce?: number; block?: number; refund?: null } = {}): OutgoingBundle {
	const backrun = signedTransaction({ by: testAccount(8), nonce: options.nonce ?? 0 });
	return {
		name,
		transactions: [
			{ tx: TARGET.tx, mayRevert: true, mayDrop: false },
			{ tx: backrun, mayRevert: false, mayDrop: true },
		],
		block: options.block ?? 101,
		refund: options.refund === undefined ? REFUND : options.refund,
	};
}

/** Keeps what it is told, as `builder kind answer`. */
function listener() {
	const told: string[] = [];
	const answered = ({ builder, kind, answer, ms, at }: BundleDelivery) => {
		assert.ok(Number.isInteger(ms) && ms >= 0 && at > 0);
		told.push(`${builder} ${kind} ${answer}`);
	};
	return { told, answered };
}

const quiet = () => {};

/** The raw backruns that the builder has seen, by the nonces that {@link bid} was given. */
function nonces(builder: FakeBuilder, upTo: number): number[] {
	const raws = Array.from({ length: upTo }, (_, nonce) =>
		signedTransaction({ by: testAccount(8), nonce }).raw.toString("hex"),
	);
	return builder.seen.flatMap(({ body }) => {
		const text = body.toString();
		const found = raws.findIndex((raw) => text.includes(raw));
		return found < 0 ? [] : [found];
	});
}

test("a bundle with a refund goes to builders that pay refunds alone, each as its row takes it", async () => {
	const fakes = [await startBuilder(), await startBuilder(), await startBuilder(), await startBuilder()];
	const [pays, little, never, nothing] = fakes as [FakeBuilder, FakeBuilder, FakeBuilder, FakeBuilder];
	const { fanout } = scene([
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
	const { fanout } = scene([one.row("one"), two.row("two", { maxRefundPercent: 80 })]);
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
	const { fanout, events, noted } = scene([good.row("good"), bad.row("bad"), gone.row("gone")]);
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
	const { fanout } = scene([builder.row("b")]);
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
	scene([builder.row("b")]).fanout.sendBundle(bid("a"), ["b"], quiet);
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
	const other = scene([builder.row("b")], { key: testAccount(43).keyHex });
	other.fanout.sendBundle(bid("a"), ["b"], quiet);
	await arrived();
	const others = [5, 6, 7, 8].map((i) => String(uuidIn(builder, i)));
	for (const one of others) assert.match(one, UUID_V4);
	assert.equal(new Set([uuid, ...others]).size, 5);
});

test("a searcher's words never leave", async () => {
	const builder = await startBuilder();
	const { fanout } = scene([builder.row("b"), builder.row("c", { dialect: "mev-share" })]);
	fanout.sendBundle(bid("s3cret-uuid"), ["b", "c"], quiet);
	fanout.cancelBundle("s3cret-uuid", 101, ["b", "c"], quiet);
	for (const { body } of await seen(builder, 6)) assert.ok(!body.toString().includes("s3cret"));
});

const WAYS = {
	endpoint: ["eth_cancelBundle"],
	empty: ["eth_sendBundle"],
	both: ["eth_cancelBundle", "eth_sendBundle"],
	none: [],
} as const satisfies Record<BuilderRow["cancel"], readonly string[]>;

for (const [cancel, methods] of Object.entries(WAYS)) {
	test(`a bundle is cancelled where the row says cancel ${cancel}`, async () => {
		const builder = await startBuilder();
		const { fanout, noted } = scene([builder.row("b", { cancel: cancel as BuilderRow["cancel"] })]);
		const { told, answered } = listener();
		fanout.cancelBundle("a", 257, ["b", "nobody"], answered);
		// A bundle behind it shows that nothing more came.
		fanout.sendBundle(bid("a", { block: 257 }), ["b"], quiet);
		await until("all answers", () => noted.length === methods.length + 1);
		const calls = builder.seen.map(({ call }) => call);
		assert.deepEqual(
			calls.slice(0, -1).map(({ method }) => method),
			methods,
		);
		for (const [i, { method, params }] of calls.slice(0, -1).entries()) {
			const uuid = uuidIn(builder, i);
			const empty = { txs: [], blockNumber: "0x101", replacementUuid: uuid };
			assert.deepEqual(params, [method === "eth_sendBundle" ? empty : { replacementUuid: uuid }]);
			assert.equal(uuid, uuidIn(builder, calls.length - 1));
		}
		assert.deepEqual(
			told,
			methods.map(() => "b cancel accepted"),
		);
	});
}

/** A builder whose connections are all taken by other senders' transactions. */
async function busy(capacity = 100) {
	const builder = await startBuilder();
	builder.answerWith(null);
	const { fanout } = scene([builder.row("b")], { capacity });
	for (let i = 0; i < BUILDER_CONNECTIONS; i += 1) {
		fanout.send(dispatch(privateTransaction({ by: testAccount(20 + i) })), ["b"]);
	}
	await until("all its connections", () => builder.held === BUILDER_CONNECTIONS);
	const finish = async (): Promise<void> => {
		builder.release();
		await until("an empty lane", () => fanout.depth === 0);
	};
	return { fanout, builder, finish };
}

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
	const { fanout } = scene([builder.row("b")]);
	const { told, answered } = listener();
	fanout.sendBundle(bid("a", { nonce: 0 }), ["b"], answered);
	await until("the first", () => builder.held === 1);
	for (const nonce of [1, 2]) fanout.sendBundle(bid("a", { nonce }), ["b"], answered);
	assert.deepEqual(told, ["b bundle unsent"]);
	builder.release();
	await until("all answers", () => told.length === 3);
	assert.deepEqual(nonces(builder, 3), [0, 2]);
});

test("what waits when it is cancelled is never sent; what comes under the name afterwards is", async () => {
	const { fanout, builder, finish } = await busy();
	const { told, answered } = listener();
	fanout.sendBundle(bid("a", { nonce: 0 }), ["b"], answered);
	fanout.sendBundle(bid("other", { nonce: 1 }), ["b"], quiet);
	fanout.cancelBundle("a", 101, ["b"], quiet);
	assert.deepEqual(told, ["b bundle unsent"]);
	fanout.sendBundle(bid("a", { nonce: 2 }), ["b"], answered);
	await finish();
	assert.deepEqual(nonces(builder, 3).sort(), [1, 2]);
	const calls = builder.seen.slice(BUILDER_CONNECTIONS).map(({ call }) => call);
	assert.equal(calls[0]?.method, "eth_cancelBundle", "it is urgent");
	const cancelledLast = calls.findLastIndex(({ params }) => JSON.stringify(params).includes('"txs":[]'));
	const raw = signedTransaction({ by: testAccount(8), nonce: 2 }).raw.toString("hex");
	const sentAgain = calls.findIndex(({ params }) => JSON.stringify(params).includes(raw));
	assert.ok(cancelledLast >= 0 && cancelledLast < sentAgain, "and goes before what came afterwards");
});

test("what waits for a block that is there is not sent, its cancel is", async () => {
	const { fanout, builder, finish } = await busy();
	const { told, answered } = listener();
	fanout.sendBundle(bid("a", { nonce: 0, block: 101 }), ["b"], answered);
	fanout.sendBundle(bid("c", { nonce: 1, block: 102 }), ["b"], quiet);
	fanout.cancelBundle("d", 101, ["b"], quiet);
	fanout.setHead(101);
	assert.deepEqual(told, ["b bundle unsent"]);
	await finish();
	assert.deepEqual(nonces(builder, 2), [1]);
	assert.equal(builder.seen.filter(({ call }) => call.method === "eth_cancelBundle").length, 1);
});

test("a full or closed lane answers at once, and a newer bid takes its elder's place in a full one", async () => {
	const { fanout, builder, finish } = await busy(2);
	const { told, answered } = listener();
	fanout.sendBundle(bid("a", { nonce: 0 }), ["b"], answered);
	fanout.sendBundle(bid("c", { nonce: 1 }), ["b"], quiet);
	assert.deepEqual(fanout.sendBundle(bid("d", { nonce: 2 }), ["b"], answered), ["b"]);
	assert.deepEqual(told, ["b bundle unsent"]);
	fanout.sendBundle(bid("a", { nonce: 3 }), ["b"], answered);
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
	const { fanout } = scene([
		builder.row("a", { maxRefundPercent: 80, refundGas: 21_000 }),
		builder.row("b", { refund: false }),
	]);
	assert.deepEqual(fanout.terms("a", 90), { percent: 80, refundGas: 21_000 });
	assert.deepEqual(fanout.terms("a", 70), { percent: 70, refundGas: 21_000 });
	assert.equal(fanout.terms("b", 90), null);
	assert.equal(fanout.terms("nobody", 90), null);
});
