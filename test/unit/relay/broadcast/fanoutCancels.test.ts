// How bundles are taken back, against real servers: in which words, from whom, in which order, and that nobody is told to
// forget what he never had.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BUILDER_CONNECTIONS } from "../../../../relay/broadcast/builderClient.ts";
import type { BuilderRow } from "../../../../relay/domain/builder.ts";
import { until } from "../../../support/until.ts";
import type { FakeBuilder } from "./fakeBuilder.ts";
import { bid, listener, nonces, quiet } from "./fanoutBids.ts";
import { fanoutFixtures, seen, uuidIn } from "./fanoutFixture.ts";

const { startBuilder, fixture, busy } = fanoutFixtures();

const WAYS = {
	endpoint: ["eth_cancelBundle"],
	empty: ["eth_sendBundle"],
	both: ["eth_cancelBundle", "eth_sendBundle"],
	none: [],
} as const satisfies Record<BuilderRow["cancel"], readonly string[]>;

for (const [cancel, methods] of Object.entries(WAYS)) {
	test(`a bundle is cancelled where the row says cancel ${cancel}`, async () => {
		const builder = await startBuilder();
		const { fanout, noted } = fixture([builder.row("b", { cancel: cancel as BuilderRow["cancel"] })]);
		const { told, answered } = listener();
		const bundle = bid("a", { block: 257 });
		fanout.sendBundle(bundle, ["b"], quiet);
		fanout.cancelBundle("a", 257, ["b", "nobody"], answered);
		// A bundle behind it shows that nothing more came.
		fanout.sendBundle(bundle, ["b"], quiet);
		await until("all answers", () => noted.length === methods.length + 2);
		const calls = builder.seen.slice(1).map(({ call }) => call);
		assert.deepEqual(
			calls.slice(0, -1).map(({ method }) => method),
			methods,
		);
		for (const [i, { method, params }] of calls.slice(0, -1).entries()) {
			const uuid = uuidIn(builder, i + 1);
			const empty = { txs: [], blockNumber: "0x101", replacementUuid: uuid };
			assert.deepEqual(params, [method === "eth_sendBundle" ? empty : { replacementUuid: uuid }]);
			assert.equal(uuid, uuidIn(builder, 0));
		}
		assert.deepEqual(
			told,
			methods.map(() => "b cancel accepted"),
		);
	});
}

test("what waits when it is cancelled is never sent, nor a cancel of it; what comes under the name afterwards is", async () => {
	const { fanout, builder, finish } = await busy();
	const { told, answered } = listener();
	fanout.sendBundle(bid("a", { nonce: 0 }), ["b"], answered);
	fanout.sendBundle(bid("other", { nonce: 1 }), ["b"], quiet);
	fanout.cancelBundle("a", 101, ["b"], quiet);
	assert.deepEqual(told, ["b bundle unsent"]);
	fanout.sendBundle(bid("a", { nonce: 2 }), ["b"], answered);
	await finish();
	assert.deepEqual(nonces(builder, 3).sort(), [1, 2]);
	assert.equal(builder.seen.length, BUILDER_CONNECTIONS + 2);
});

test("a cancel of what is under way goes before what came under the name afterwards, and before what others wait for", async () => {
	const builder = await startBuilder();
	builder.answerWith(null);
	const { fanout, noted } = fixture([builder.row("b", { cancel: "endpoint" })]);
	fanout.sendBundle(bid("a", { nonce: 0 }), ["b"], quiet);
	await until("the first", () => builder.held === 1);
	fanout.sendBundle(bid("a", { nonce: 1 }), ["b"], quiet);
	fanout.cancelBundle("a", 101, ["b"], quiet);
	fanout.sendBundle(bid("a", { nonce: 2 }), ["b"], quiet);
	builder.release();
	await until("all answers", () => noted.length === 4);
	assert.deepEqual(
		builder.seen.map(({ call }) => call.method),
		["eth_sendBundle", "eth_cancelBundle", "eth_sendBundle"],
	);
	assert.deepEqual(nonces(builder, 3), [0, 2]);
});

test("what waits for a block that is there is not sent; the cancel of what left before is", async () => {
	const builder = await startBuilder();
	builder.answerWith(null);
	const { fanout, noted } = fixture([builder.row("b", { cancel: "endpoint" })]);
	const { told, answered } = listener();
	fanout.sendBundle(bid("a", { nonce: 0, block: 102 }), ["b"], quiet);
	await until("the first", () => builder.held === 1);
	fanout.sendBundle(bid("a", { nonce: 1, block: 101 }), ["b"], answered);
	fanout.setHead(101);
	assert.deepEqual(told, ["b bundle unsent"]);
	fanout.cancelBundle("a", 102, ["b"], quiet);
	builder.release();
	await until("all answers", () => noted.length === 3);
	assert.deepEqual(
		builder.seen.map(({ call }) => call.method),
		["eth_sendBundle", "eth_cancelBundle"],
	);
});

test("a builder is told to forget only what has left for it, once; it may leave and be cancelled again", async () => {
	const [one, two] = [await startBuilder(), await startBuilder()];
	const { fanout, noted } = fixture([one.row("one"), two.row("two")]);
	const both = ["one", "two"];
	fanout.sendBundle(bid("a"), ["one"], quiet);
	fanout.cancelBundle("a", 101, both, quiet);
	fanout.cancelBundle("a", 101, both, quiet);
	fanout.cancelBundle("never", 101, both, quiet);
	await until("the first answers", () => noted.length === 3);
	fanout.sendBundle(bid("a", { nonce: 1 }), both, quiet);
	fanout.cancelBundle("a", 101, both, quiet);
	await until("all answers", () => noted.length === 9);
	await fanout.close();
	const methods = ({ seen }: FakeBuilder) => seen.map(({ call }) => call.method);
	const life = ["eth_sendBundle", "eth_cancelBundle", "eth_sendBundle"];
	assert.deepEqual([methods(one), methods(two)], [[...life, ...life], life]);
});

test("what has left is told of before it does, to each builder by itself, and never for what does not leave", async () => {
	const { fanout, builder, finish } = await busy();
	const left: string[] = [];
	const leaves = (what: string) => () => void left.push(what);
	fanout.sendBundle(bid("a", { nonce: 0 }), ["b"], quiet, leaves("replaced"));
	fanout.sendBundle(bid("a", { nonce: 1 }), ["b"], quiet, leaves("newest"));
	fanout.sendBundle(bid("c", { nonce: 2 }), ["b"], quiet, leaves("cancelled"));
	fanout.cancelBundle("c", 101, ["b"], quiet);
	fanout.sendBundle(bid("d", { nonce: 3, block: 100 }), ["b"], quiet, leaves("stale"));
	fanout.setHead(100);
	assert.deepEqual(left, []);
	await finish();
	assert.deepEqual([left, nonces(builder, 4)], [["newest"], [1]]);
	const other = await startBuilder();
	const two = fixture([builder.row("b"), other.row("c"), other.row("d", { refund: false })]).fanout;
	two.sendBundle(bid("a"), two.names(), quiet, leaves("each"));
	assert.deepEqual(left, ["newest", "each", "each"]);
	await seen(other, 1);
});

test("what has left stays to be cancelled until its block is there, also when other heads come for the one before", async () => {
	const builder = await startBuilder();
	const { fanout, noted } = fixture([builder.row("b", { cancel: "endpoint" })]);
	fanout.sendBundle(bid("a", { nonce: 0, block: 102 }), ["b"], quiet);
	fanout.sendBundle(bid("c", { nonce: 1, block: 102 }), ["b"], quiet);
	await until("both answers", () => noted.length === 2);
	// Another block of the same height: what is out is still for the next one.
	for (const head of [101, 101]) fanout.setHead(head);
	fanout.cancelBundle("a", 102, ["b"], quiet);
	await until("the cancel's answer", () => noted.length === 3);
	assert.equal(builder.seen[2]?.call.method, "eth_cancelBundle");
	fanout.setHead(102);
	fanout.cancelBundle("c", 102, ["b"], quiet);
	// Out for a later block too: that one is to come.
	fanout.sendBundle(bid("c", { nonce: 1, block: 103 }), ["b"], quiet);
	await until("its answer", () => noted.length === 4);
	fanout.setHead(102);
	fanout.cancelBundle("c", 103, ["b"], quiet);
	await until("its cancel's answer", () => noted.length === 5);
	assert.deepEqual(
		builder.seen.map(({ call }) => call.method),
		["eth_sendBundle", "eth_sendBundle", "eth_cancelBundle", "eth_sendBundle", "eth_cancelBundle"],
	);
	assert.deepEqual([uuidIn(builder, 2), uuidIn(builder, 4)], [uuidIn(builder, 0), uuidIn(builder, 1)]);
});
