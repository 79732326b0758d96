// The headers by which boost says who answered, how the relay's breaker stood and how many requests were sent for it:
// exact values for every source, while the relay is well, while it is out and while it comes back.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
	type BoostClient,
	type BoostFixture,
	type Reply,
	startBoostFixture,
} from "../../support/boostFixture.ts";

const UNKNOWN = `0x${"ab".repeat(32)}`;

let fixture: BoostFixture;
let boost: BoostClient;
before(async () => {
	fixture = await startBoostFixture();
	boost = fixture.boost;
});
after(() => fixture?.stop());

const one = (id: unknown, method: string, ...params: unknown[]) => ({ jsonrpc: "2.0", id, method, params });

/** Upstream, breaker and attempts as an answer's headers tell them. */
function routing({ headers }: Reply): string {
	return ["upstream", "breaker", "attempts"].map((name) => headers[`x-boost-${name}`]).join(" | ");
}

test("the headers say who answered while the relay is well", async () => {
	const actor = await fixture.users.actor();
	const [first, second] = [actor.sign(), actor.sign({ nonce: 1 })];
	const done = (await fixture.users.actor()).sign();
	const { raw: mined, hash } = done;
	await boost.result("eth_sendRawTransaction", [mined]);
	await fixture.users.sent(done);
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
		["its cancel again", await boost.call("eth_cancelTransaction", [second.hash]), "journal | closed | 0"],
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

test("the headers say who answered while the relay is out, and while it comes back", async () => {
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
		["a status", await boost.get(`/tx/${third.hash}`), "journal | open | 0"],
		["another path", await boost.call("eth_chainId", [], { path: "/nochecks" }), "boost | open | 0"],
		["a method of the relay's alone", await boost.call("eth_sendBundle", [{}]), "boost | open | 0"],
	];
	await fixture.wires.fallback.set({ kind: "refuse" });
	await boost.reaches("both are out", ({ fallback }) => fallback?.state !== "closed");
	const none: readonly Reply[] = [
		await boost.call("eth_chainId"),
		await boost.call("eth_sendRawTransaction", [actor.sign({ nonce: 3 }).raw]),
		await boost.call("eth_cancelTransaction", [third.hash]),
		await boost.get(`/tx/${UNKNOWN}`),
	];
	await fixture.recovers();
	assert.match(tried.headers["x-boost-upstream"] ?? "", /^fallback$/);
	assert.match(tried.headers["x-boost-attempts"] ?? "", /^[12]$/);
	// The probe may be at its first success: then it is half open.
	for (const [what, reply, wanted] of expected) assert.equal(routing(reply), wanted, what);
	for (const reply of none) {
		assert.deepEqual([reply.status, reply.headers["x-boost-upstream"]], [503, "boost"], reply.body);
		assert.match(reply.headers["retry-after"] ?? "", /^[1-9]\d*$/, reply.body);
		assert.match(reply.body, /no relay available: /);
	}
});

test("half open is while the probe's successes are counted", async () => {
	const slow = await fixture.startBoost({ env: { PROBE_SUCCESSES: "100", PROBE_INTERVAL_MS: "20" } });
	await fixture.fails(undefined, slow);
	await fixture.wires.relay.set(null);
	await slow.reaches("half open", ({ relay }) => relay.state === "half-open");
	assert.equal(routing(await slow.call("eth_chainId")), "fallback | half-open | 1");
	await boost.isWell();
});
