// Tests the fan-out against real servers: recipients, signers, identifiers, who receives the
// answers, who delays whom, and what is cancelled.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BUILDER_CONNECTIONS } from "../../../../relay/broadcast/builderClient.ts";
import type { BundleDelivery } from "../../../../relay/domain/bundleStatus.ts";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";
import { until } from "../../../support/until.ts";
import {
	bid,
	dispatch,
	type FakeBuilder,
	fanoutFixtures,
	methods,
	nonces,
	REFUND,
	seen,
	TARGET,
	UUID_V4,
	uuidIn,
} from "./fanoutFixture.ts";

const { startBuilder, fixture, busy } = fanoutFixtures();

/** Ignores all answers. */
const quiet = () => {};

/** Keeps the answers that it receives, as `builder kind answer`. */
function listener() {
	const told: string[] = [];
	const answered = ({ builder, kind, answer, ms, at }: BundleDelivery) => {
		assert.ok(Number.isInteger(ms) && ms >= 0 && at > 0);
		told.push(`${builder} ${kind} ${answer}`);
	};
	return { told, answered };
}

test("a bundle with a refund goes to builders that pay refunds alone, on their terms", async () => {
	const fakes = [await startBuilder(), await startBuilder(), await startBuilder(), await startBuilder()];
	const [pays, little, never, nothing] = fakes as [FakeBuilder, FakeBuilder, FakeBuilder, FakeBuilder];
	const { fanout } = fixture([
		pays.row("pays"),
		little.row("little", { maxRefundPercent: 40 }),
		never.row("never", { refund: false }),
		nothing.row("nothing", { maxRefundPercent: 0 }),
	]);
	const all = [...fanout.names(), "nobody"];
	assert.deepEqual(fanout.sendBundle(bid("one"), all, quiet), ["pays", "little"]);
	assert.deepEqual(fanout.sendBundle(bid("two"), ["never", "nobody"], quiet), []);
	assert.deepEqual(fanout.sendBundle(bid("three", { refund: null }), all, quiet), fanout.names());
	await Promise.all([seen(pays, 2), seen(little, 2), seen(never, 1), seen(nothing, 1)]);
	const asked = fakes.map(({ seen: [first] }) => {
		const [param] = (first?.call.params ?? []) as { refundPercent?: number; refundRecipient?: string }[];
		return [param?.refundPercent, param?.refundRecipient];
	});
	const none = [undefined, undefined];
	assert.deepEqual(asked, [[90, REFUND.recipient], [40, REFUND.recipient], none, none]);
	assert.deepEqual(
		all.map((name) => fanout.terms(name, 90)?.percent ?? null),
		[90, 40, null, null, null],
	);
});

test("a name has one UUIDv4, the same after a restart: another's, another key's and a target's differ", async () => {
	const builder = await startBuilder();
	const rows = [builder.row("b", { cancel: "endpoint" })];
	const { fanout } = fixture(rows);
	let count = 0;
	/** Sends one at a time, so that none replaces another before it is sent. */
	const uuidOf = async (send: () => unknown): Promise<string> => {
		send();
		await seen(builder, ++count);
		return String(uuidIn(builder, count - 1));
	};
	const restarted = fixture(rows).fanout;
	const other = fixture(rows, { key: testAccount(43).keyHex }).fanout;
	const target = await uuidOf(() => fanout.send(dispatch(TARGET), ["b"]));
	for (const again of [
		() => fanout.send(dispatch(TARGET, 102), ["b"]),
		() => fanout.cancel(TARGET, ["b"], 102),
		() => restarted.send(dispatch(TARGET), ["b"]),
	]) {
		assert.equal(await uuidOf(again), target);
	}
	const bundle = await uuidOf(() => fanout.sendBundle(bid("a"), ["b"], quiet));
	for (const again of [
		() => fanout.sendBundle(bid("a", { nonce: 1, block: 102 }), ["b"], quiet),
		() => fanout.cancelBundle(bid("a"), 102, ["b"], quiet),
		() => restarted.sendBundle(bid("a"), ["b"], quiet),
	]) {
		assert.equal(await uuidOf(again), bundle);
	}
	const others = [
		await uuidOf(() => fanout.send(dispatch(privateTransaction({ nonce: 1 })), ["b"])),
		await uuidOf(() => other.send(dispatch(TARGET), ["b"])),
		await uuidOf(() => fanout.sendBundle(bid("b"), ["b"], quiet)),
		await uuidOf(() => other.sendBundle(bid("a"), ["b"], quiet)),
		// Not even a bundle that is named like a target's own takes its place.
		await uuidOf(() => fanout.sendBundle(bid(`target ${TARGET.tx.hash}`), ["b"], quiet)),
	];
	for (const uuid of [target, bundle, ...others]) assert.match(uuid, UUID_V4);
	assert.equal(new Set([target, bundle, ...others]).size, 7);
	assert.ok(!TARGET.tx.hash.includes(target.slice(0, 8)));
});

for (const path of ["fast", "nochecks"] as const) {
	test(`what waits when it is cancelled is never sent behind its cancel, on /${path}`, async () => {
		const { fanout, finish } = await busy();
		const transaction = privateTransaction({ nonce: 1, path });
		const raw = transaction.tx.raw.toString("hex");
		fanout.send(dispatch(transaction), ["b"]);
		assert.equal(fanout.isOut(transaction.tx.hash), false);
		fanout.cancel(transaction, fanout.takeBack(transaction), 101);
		assert.ok((await finish()).every((body) => !body.includes(raw)));
		// The same one, sent again afterwards, is not cancelled.
		fanout.send(dispatch(transaction), ["b"]);
		assert.ok((await finish()).some((body) => body.includes(raw)));
	});
}

test("only the newest waiting bundle of a name is sent, and none that is cancelled or stale", async () => {
	const { fanout, finish, noted } = await busy();
	const { told, answered } = listener();
	const left: string[] = [];
	const send = (name: string, nonce: number, block = 101) =>
		fanout.sendBundle(bid(name, { nonce, block }), ["b"], answered, () => left.push(`${name} ${nonce}`));
	for (const nonce of [0, 1, 2]) send("a", nonce);
	send("c", 3);
	fanout.cancelBundle(bid("c"), 101, ["b"], answered);
	send("d", 4, 100);
	fanout.send(dispatch(privateTransaction({ nonce: 1 }), 100), ["b"]);
	fanout.setHead(100);
	assert.deepEqual(told, Array(4).fill("b bundle unsent"));
	// A bundle that comes under a cancelled name afterwards is not cancelled. Nothing was sent yet.
	send("c", 5);
	assert.deepEqual([left, fanout.depth], [[], BUILDER_CONNECTIONS + 2]);
	const bodies = await finish();
	assert.deepEqual([nonces(bodies), bodies.length, left], [[2, 5], 2, ["a 2", "c 5"]]);
	assert.deepEqual(told.slice(4), ["b bundle accepted", "b bundle accepted"]);
	assert.equal(noted.filter((line) => line === "b bundle unsent").length, 1);
});

test("a builder gets one cancel, in its own form, and only for what was sent to it; a bundle may be sent and cancelled again", async () => {
	const [one, two, silent] = [await startBuilder(), await startBuilder(), await startBuilder()];
	const { fanout, noted } = fixture([
		one.row("one"),
		two.row("two"),
		silent.row("silent", { cancel: "none" }),
	]);
	fanout.sendBundle(bid("a"), ["one"], quiet);
	await seen(one, 1);
	for (const name of ["a", "a", "never"]) fanout.cancelBundle(bid(name), 101, fanout.names(), quiet);
	await until("the first answers", () => noted.length === 3);
	fanout.sendBundle(bid("a", { nonce: 1 }), fanout.names(), quiet);
	await Promise.all([seen(one, 4), seen(two, 1), seen(silent, 1)]);
	fanout.cancelBundle(bid("a"), 101, [...fanout.names(), "nobody"], quiet);
	await until("all answers", () => noted.length === 10);
	await fanout.close();
	const life = ["eth_sendBundle", "eth_cancelBundle", "eth_sendBundle"];
	assert.deepEqual([one, two, silent].map(methods), [[...life, ...life], life, ["eth_sendBundle"]]);
	assert.deepEqual(one.seen[2]?.call.params, [
		{ txs: [], blockNumber: "0x65", replacementUuid: uuidIn(one, 0) },
	]);
});
