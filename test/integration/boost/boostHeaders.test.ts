// The headers by which boost says who answered, how the relay's breaker stood and how many requests
// were sent for it: exact values for every source, while the relay is healthy, out, and coming
// back. Then batches: order, notifications, cancels between, many entries, an outage of both
// upstreams, and a fallback that takes no arrays.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
	type BoostClient,
	type BoostFixture,
	type Reply,
	startBoostFixture,
} from "../../support/boostFixture.ts";
import { sized } from "../../support/length.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import type { Actor, Signed } from "../../support/relayFixture.ts";
import { startRecordingFallback } from "../../support/upstreams.ts";

let fixture: BoostFixture;
let boost: BoostClient;
before(async () => {
	// Many submissions share it, one after another.
	fixture = await startBoostFixture({ boost: { REQUEST_BUDGET_MS: "25000" } });
	boost = fixture.boost;
});
after(() => fixture?.stop());

const one = (id: unknown, method: string, ...params: unknown[]) => ({ jsonrpc: "2.0", id, method, params });
const send = (id: unknown, { raw }: Signed) => one(id, "eth_sendRawTransaction", raw);
const pending = (id: unknown, { address }: Actor) => one(id, "eth_getTransactionCount", address, "pending");
const cancel = (id: unknown, { hash }: Signed) => one(id, "eth_cancelTransaction", hash);
const UNKNOWN = `0x${"ab".repeat(32)}`;
const byHash = (id: unknown, { hash }: Signed) => one(id, "eth_getTransactionByHash", hash);

/** `upstream | breaker | attempts` of an answer. */
function routing({ headers }: Reply): string {
	return ["upstream", "breaker", "attempts"].map((name) => headers[`x-boost-${name}`]).join(" | ");
}

/** The outcomes of a batch: results by value, errors by code, in their order. */
function outcomes({ json }: Reply): readonly unknown[] {
	return (json as readonly WireAnswer[]).map(({ id, result, error }) => [id, error?.code ?? result]);
}

/** An account and its first `count` transactions. */
async function sender(count: number): Promise<{ readonly actor: Actor; readonly txs: readonly Signed[] }> {
	const actor = await fixture.users.actor();
	return { actor, txs: Array.from({ length: count }, (_, nonce) => actor.sign({ nonce })) };
}

async function three(): Promise<readonly [Actor, Signed, Signed, Signed]> {
	const { actor, txs } = await sender(3);
	const [first, second, third] = txs;
	if (first === undefined || second === undefined || third === undefined) throw new Error("no three");
	return [actor, first, second, third];
}

test("the headers say who answered while the relay is healthy", async () => {
	const actor = await fixture.users.actor();
	const [first, second] = [actor.sign(), actor.sign({ nonce: 1 })];
	const done = (await fixture.users.actor()).sign();
	const { raw: mined, hash } = done;
	await boost.result("eth_sendRawTransaction", [mined]);
	await fixture.users.waitUntilSent(done);
	await fixture.system.nextBlock();
	await boost.reaches("the journal has heard that it is mined", ({ journal }) => journal.depth === 0);
	await boost.result("eth_sendRawTransaction", [second.raw]);
	await boost.result("eth_cancelTransaction", [second.hash]);
	const json = { "content-type": "text/plain" };
	const expected: readonly (readonly [what: string, reply: Reply, routing: string])[] = [
		["a read", await boost.call("eth_chainId"), "relay | closed | 1"],
		["a submission", await boost.call("eth_sendRawTransaction", [first.raw]), "relay | closed | 1"],
		["the same again", await boost.call("eth_sendRawTransaction", [first.raw]), "relay | closed | 1"],
		[
			"one that was mined, again",
			await boost.call("eth_sendRawTransaction", [mined]),
			"journal | closed | 0",
		],
		[
			"one that was cancelled",
			await boost.call("eth_sendRawTransaction", [second.raw]),
			"journal | closed | 0",
		],
		["its cancel again", await boost.call("eth_cancelTransaction", [second.hash]), "journal | closed | 1"],
		[
			"a pending nonce",
			await boost.call("eth_getTransactionCount", [actor.address, "pending"]),
			"relay | closed | 1",
		],
		["by hash", await boost.call("eth_getTransactionByHash", [first.hash]), "relay | closed | 1"],
		[
			"a verdict",
			await boost.call("eth_sendRawTransaction", [first.raw.replace("00", "01")]),
			"relay | closed | 1",
		],
		["a bad param", await boost.call("eth_sendRawTransaction", ["x"]), "boost | closed | 0"],
		["no transaction", await boost.call("eth_sendRawTransaction", ["0x02"]), "boost | closed | 0"],
		["an unknown method", await boost.call("nope"), "relay | closed | 1"],
		["no JSON", await boost.send({ path: "/fast", body: "{" }), "boost | closed | 0"],
		["another type", await boost.send({ path: "/fast", body: "{}", headers: json }), "boost | closed | 0"],
		["too long", await boost.send({ path: "/fast", body: "x".repeat(2 ** 21 + 1) }), "boost | closed | 0"],
		["an unknown path", await boost.send({ path: "/nope", body: "{}" }), "relay | closed | 1"],
		["another path", await boost.call("eth_chainId", [], { path: "/fullprivacy" }), "relay | closed | 1"],
		["a page of the relay's", await boost.get("/info"), "relay | closed | 1"],
		["a status", await boost.get(`/tx/${hash}`), "relay | closed | 1"],
		["a bad hash", await boost.get("/tx/0x"), "boost | closed | 0"],
		["boost's own page", await boost.get("/status"), "boost | closed | 0"],
		["no token", await boost.send({ path: "/admin/open" }), "boost | closed | 0"],
		[
			"a batch of two sources",
			await boost.post([one(1, "eth_sendRawTransaction", mined), one(2, "eth_chainId")]),
			"journal, relay | closed | 1",
		],
	];
	for (const [what, reply, wanted] of expected) assert.equal(routing(reply), wanted, what);
	const { headers } = await boost.send({ verb: "OPTIONS", path: "/fast" });
	assert.deepEqual(
		Object.keys(headers).filter((name) => name.startsWith("x-boost-")),
		[],
		"a preflight",
	);
});

test("the headers say who answered while the relay is down, and while it comes back", async () => {
	const actor = await fixture.users.actor();
	const [first, second, third] = [actor.sign(), actor.sign({ nonce: 1 }), actor.sign({ nonce: 2 })];
	await boost.result("eth_sendRawTransaction", [first.raw]);
	await fixture.wires.relay.set({ kind: "refuse" });
	const tried = await boost.call("eth_sendRawTransaction", [second.raw]);
	await fixture.fails();
	const expected: readonly (readonly [what: string, reply: Reply, routing: string])[] = [
		["a submission", await boost.call("eth_sendRawTransaction", [third.raw]), "fallback | open | 1"],
		["a read", await boost.call("eth_chainId"), "fallback | open | 1"],
		[
			"a pending nonce",
			await boost.call("eth_getTransactionCount", [actor.address, "pending"]),
			"fallback | open | 1",
		],
		// The fallback's page is asked what it knows.
		["a status", await boost.get(`/tx/${third.hash}`), "journal | open | 1"],
		["another path", await boost.call("eth_chainId", [], { path: "/nochecks" }), "boost | open | 0"],
		["a method of the relay's alone", await boost.call("eth_sendBundle", [{}]), "boost | open | 0"],
	];
	await fixture.wires.fallback.set({ kind: "refuse" });
	await boost.reaches("both are down", ({ fallback }) => fallback?.state !== "closed");
	const none: readonly (readonly [number, Reply])[] = [
		[200, await boost.call("eth_chainId")],
		[200, await boost.call("eth_sendRawTransaction", [actor.sign({ nonce: 3 }).raw])],
		[200, await boost.call("eth_cancelTransaction", [third.hash])],
		[503, await boost.get(`/tx/${UNKNOWN}`)],
	];
	await fixture.recovers();
	assert.match(tried.headers["x-boost-upstream"] ?? "", /^fallback$/);
	assert.match(tried.headers["x-boost-attempts"] ?? "", /^[12]$/);
	// The probe may be at its first success: then it is half open.
	for (const [what, reply, wanted] of expected) assert.equal(routing(reply), wanted, what);
	for (const [status, reply] of none) {
		assert.deepEqual([reply.status, reply.headers["x-boost-upstream"]], [status, "boost"], reply.body);
		assert.match(reply.headers["retry-after"] ?? "", /^[1-9]\d*$/, reply.body);
		assert.match(reply.body, /no relay available: /);
	}
});

test("the breaker is half open while it counts successful probes", async () => {
	const slow = await fixture.startBoost({ env: { PROBE_SUCCESSES: "100", PROBE_INTERVAL_MS: "20" } });
	await fixture.fails(undefined, slow);
	await fixture.wires.relay.set(null);
	await slow.reaches("half open", ({ relay }) => relay.state === "half-open");
	assert.equal(routing(await slow.call("eth_chainId")), "fallback | half-open | 1");
	await slow.stop();
	await boost.isWell();
});

test("a batch runs in order: its reads see the submissions and cancels before them", async () => {
	const [actor, first, second, third] = await three();
	const sent = await boost.post([
		send(1, first),
		send(2, second),
		send(3, third),
		pending("all", actor),
		byHash("there", third),
		one("read", "eth_chainId"),
	]);
	const results = outcomes(sent) as [unknown, { hash: string; gasPrice: string }][];
	const [, there] = results[4] ?? [];
	assert.deepEqual([sent.status, there?.hash, there?.gasPrice], [200, third.hash, "0x0"]);
	assert.deepEqual(
		results.filter((_, i) => i !== 4),
		[
			...[
				[1, first.hash],
				[2, second.hash],
				[3, third.hash],
			],
			...[
				["all", "0x3"],
				["read", "0x7a69"],
			],
		],
	);
	assert.match(routing(sent), /^relay \| closed \| [5-9]$/);
	const [fourth, fifth] = [actor.sign({ nonce: 3 }), actor.sign({ nonce: 4 })];
	const mixed = await boost.post([
		send(1, fourth),
		send(2, fifth),
		cancel("taken back", fifth),
		cancel("and another", third),
		send("not revived", third),
		pending("two are left in a row", actor),
		byHash("gone", fifth),
	]);
	assert.deepEqual(outcomes(mixed), [
		...[
			[1, fourth.hash],
			[2, fifth.hash],
			["taken back", true],
			["and another", true],
		],
		...[
			["not revived", third.hash],
			["two are left in a row", "0x2"],
			["gone", null],
		],
	]);
	assert.match(routing(mixed), /^relay, journal \| closed \| \d$/);
	assert.equal(await fixture.system.client.stage(third.hash), "CANCELLED");
});

test("a submission as a notification is executed and not answered, alone and in a batch", async () => {
	const [actor, first, second, third] = await three();
	const silent = ({ raw }: Signed) => ({ jsonrpc: "2.0", method: "eth_sendRawTransaction", params: [raw] });
	const alone = await boost.post(silent(first));
	assert.deepEqual([alone.status, alone.body, routing(alone)], [204, "", "relay | closed | 1"]);
	const both = await boost.post([silent(second), silent(third)]);
	assert.deepEqual([both.status, both.body], [204, ""]);
	const some = await boost.post([pending(1, actor), silent(third), one("x", "nope")]);
	assert.deepEqual(outcomes(some), [
		[1, "0x3"],
		["x", -32601],
	]);
	assert.equal(await fixture.users.pendingNonce(actor), 3, "the relay has them all");
});

/** Submissions of each sender in a batch. */
const EACH = sized(4, 10);
test("a batch of many submissions of ten senders is accepted completely", async () => {
	const senders = await Promise.all(Array.from({ length: 10 }, () => sender(EACH)));
	const txs = senders.flatMap((one) => one.txs);
	const reply = await boost.post(txs.map((tx, i) => send(i, tx)));
	assert.deepEqual(
		outcomes(reply),
		txs.map(({ hash }, i) => [i, hash]),
	);
	assert.equal(routing(reply), `relay | closed | ${txs.length}`);
	const tooMany = await boost.post(Array.from({ length: 1_001 }, (_, i) => send(i, txs[0] as Signed)));
	assert.deepEqual(tooMany.json, {
		...{ jsonrpc: "2.0", id: null },
		error: { code: -32600, message: "invalid request: a batch has at most 1000 entries" },
	});
	for (const { actor } of senders) assert.equal(await fixture.users.pendingNonce(actor), EACH);
});

test("a batch of a hundred reads is one request to the relay, answered in its order", async () => {
	const before = fixture.wires.relay.requests().length;
	const reply = await boost.post(
		Array.from({ length: 100 }, (_, i) => one(i, i % 2 ? "eth_chainId" : "net_version")),
	);
	assert.deepEqual(
		outcomes(reply),
		Array.from({ length: 100 }, (_, i) => [i, i % 2 ? "0x7a69" : "31337"]),
	);
	assert.equal(routing(reply), "relay | closed | 1");
	const sent = fixture.wires.relay.requests().slice(before);
	assert.deepEqual(
		sent
			.filter(({ target, calls }) => target === "/fast" && calls.length > 1)
			.map(({ calls }) => calls.length),
		[100],
	);
});

test("during an outage each entry of a batch is handled on its own, and the headers say so", async () => {
	const [actor, first, second, third] = await three();
	await boost.result("eth_sendRawTransaction", [first.raw]);
	await fixture.goesOut();
	const reply = await boost.post([
		send(1, second),
		send(2, third),
		cancel(4, third),
		pending(5, actor),
		one(6, "eth_chainId"),
		one(7, "eth_sendBundle", {}),
		one(8, "nope"),
		send(9, third),
	]);
	await fixture.comesBack();
	assert.equal(reply.status, 200);
	assert.deepEqual(outcomes(reply), [
		...[
			[1, second.hash],
			[2, third.hash],
			[4, true],
			[5, "0x2"],
			[6, "0x7a69"],
		],
		...[
			[7, -32603],
			[8, -32601],
			[9, third.hash],
		],
	]);
	assert.match(routing(reply), /^fallback, journal \| open \| \d+$/);
});

test("a batch that failed whole says when to retry, one with any answer does not", async () => {
	const [actor, first] = await three();
	const done = (await fixture.users.actor()).sign();
	await boost.result("eth_sendRawTransaction", [done.raw]);
	await boost.result("eth_cancelTransaction", [done.hash]);
	await fixture.goesOut("fallback");
	await fixture.goesOut();
	const failed = await boost.post([send(1, first), one(2, "eth_chainId"), pending(3, actor)]);
	const silent = await boost.post([send(undefined, first), one(2, "eth_chainId")]);
	const some = await boost.post([send(1, first), send(2, done), one(3, "eth_chainId"), one(4, "nope")]);
	await fixture.comesBack();
	assert.deepEqual(outcomes(failed), [
		[1, -32603],
		[2, -32603],
		[3, -32603],
	]);
	assert.deepEqual([failed.status, silent.status, some.status], [200, 200, 200]);
	for (const { headers } of [failed, silent]) assert.match(headers["retry-after"] ?? "", /^[1-9]\d*$/);
	assert.equal(some.headers["retry-after"], undefined);
	assert.deepEqual(outcomes(some), [
		[1, -32603],
		[2, done.hash],
		[3, -32603],
		[4, -32601],
	]);
	// Nobody had it, so it is as if it had never been sent.
	assert.equal((await boost.get(`/tx/${first.hash}`)).status, 200);
	assert.equal((await boost.result("eth_getTransactionCount", [actor.address, "pending"])) as string, "0x0");
});

test("a fallback without batches gets the calls one by one, in its own paths and parameters", async (t) => {
	const [actor, first, second, third] = await three();
	const recorder = await startRecordingFallback();
	t.after(() => recorder.stop());
	const ETH_RPC_URL = fixture.system.chain.url;
	const env = { FALLBACK_URL: recorder.url, FALLBACK_DIALECT: "flashbots", ETH_RPC_URL };
	const protect = await fixture.startBoost({ env });
	await protect.force("open");
	recorder.reset();
	const query = `refundRecipient=${actor.address}&referrer=me&softCancellations=true&x=1`;
	const reply = await protect.post(
		[
			send(1, first),
			send(2, second),
			one(3, "eth_gasPrice"),
			one(4, "eth_chainId"),
			pending(5, actor),
			one(6, "nope"),
		],
		{ path: `/noreverts?${query}` },
	);
	const onFast = await protect.post([send(1, third)], { path: "/fast?softcancel=0" });
	await protect.stop();
	assert.equal(reply.status, 200);
	assert.deepEqual(outcomes(reply), [
		[1, first.hash],
		[2, second.hash],
		[3, -32601],
		[4, "0x7a69"],
		[5, "0x2"],
		[6, -32601],
	]);
	assert.deepEqual(outcomes(onFast), [[1, third.hash]]);
	assert.ok(recorder.posts.length > 3, `${recorder.posts.length}`);
	for (const { body } of recorder.posts) assert.ok(!body.startsWith("["), "no array is sent");
	const sent = recorder.posts.filter(({ body }) => body.includes("eth_sendRawTransaction"));
	const refund = `refund=${actor.address}%3A90&originId=me`;
	assert.deepEqual(
		sent.map(({ target, calls: [call] }) => [target, call?.params]),
		[
			[`/?${refund}`, [first.raw]],
			[`/?${refund}`, [second.raw]],
			["/fast", [third.raw]],
		],
	);
	assert.equal(reply.headers["x-boost-dropped-params"], "softCancellations, x");
	assert.equal(onFast.headers["x-boost-dropped-params"], "softcancel");
	assert.equal(reply.headers["x-boost-upstream"]?.startsWith("fallback"), true);
});
