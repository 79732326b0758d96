// What boost does not decide about, with a real relay behind it: other submission paths and events as they happen work as on
// the relay itself, on behalf of the client, and say so while the relay is out.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { EventStreamReader } from "../../support/clients.ts";
import { FeedClient } from "../../support/feeds.ts";
import { metricsOf, type WireAnswer } from "../../support/relayClient.ts";
import { until } from "../../support/until.ts";

let fixture: BoostFixture;
before(async () => {
	fixture = await startBoostFixture({
		unwired: true,
		boost: { TRUST_PROXY: "1" },
	});
});
after(() => fixture.stop());

test("a submission on a path that boost does not know is the relay's, and is mined", async () => {
	const tx = (await fixture.users.actor()).sign();
	const reply = await fixture.boost.call("eth_sendRawTransaction", [tx.raw], {
		path: "/fullprivacy?referrer=me",
	});
	assert.deepEqual(
		[reply.status, (reply.json as WireAnswer).result, reply.headers["x-boost-upstream"]],
		[200, tx.hash, "relay"],
	);
	const { journal } = await fixture.boost.status();
	assert.equal(journal.depth, 0, "boost does not answer for it");
	await fixture.users.sent(tx);
	await fixture.system.nextBlock();
	const { json } = await until("it is mined", async () => {
		const status = await fixture.boost.get(`/tx/${tx.hash}`);
		return (status.json as { status: string }).status === "INCLUDED" && status;
	});
	const { referrer, shared } = json as { referrer: string; shared: boolean };
	assert.deepEqual([referrer, shared], ["me", false]);
});

test("events of a transaction come as they happen, through boost", async () => {
	const tx = (await fixture.users.actor()).sign();
	await fixture.boost.result("eth_sendRawTransaction", [tx.raw], { path: "/noreverts" });
	const reader = await EventStreamReader.open(`${fixture.boost.url}/tx/${tx.hash}/events`);
	assert.deepEqual(
		[reader.status, reader.headers["content-type"], reader.headers["x-boost-upstream"]],
		[200, "text/event-stream; charset=utf-8", "relay"],
	);
	await reader.message("it is known", ({ type }) => type === "received");
	assert.equal(reader.ended, null);
	await fixture.users.sent(tx);
	await fixture.system.nextBlock();
	await reader.message("it is mined", ({ type }) => type === "included");
	reader.leave();
	await until("the relay has no stream left", async () => {
		const text = await metricsOf(fixture.system.client.url);
		return /^relay_event_streams 0$/m.test(text);
	});
});

test("while the relay is out all of that says so, and works again afterwards", async () => {
	await fixture.boost.force("open");
	const tx = (await fixture.users.actor()).sign();
	const refused = await fixture.boost.call("eth_sendRawTransaction", [tx.raw], { path: "/fullprivacy" });
	assert.deepEqual(
		[refused.status, (refused.json as WireAnswer).error, Number(refused.headers["retry-after"]) >= 1],
		[503, { code: -32603, message: "no relay available: the relay is out" }, true],
	);
	const events = await fixture.boost.get(`/tx/${tx.hash}/events`);
	assert.deepEqual([events.status, events.json], [503, { error: "no relay available: the relay is out" }]);
	assert.equal(await fixture.system.client.stage(tx.hash), undefined, "nothing of it went anywhere");
	await fixture.boost.force("auto");
	await fixture.boost.isWell();
	assert.equal(
		await fixture.boost.result("eth_sendRawTransaction", [tx.raw], { path: "/fullprivacy" }),
		tx.hash,
	);
});

test("a stop of boost ends streams and websockets, and does not wait for them", async () => {
	const other = await fixture.startBoost();
	const tx = (await fixture.users.actor()).sign();
	await other.result("eth_sendRawTransaction", [tx.raw], { path: "/noreverts" });
	const reader = await EventStreamReader.open(`${other.url}/tx/${tx.hash}/events`);
	const feed = await FeedClient.open(`ws://127.0.0.1:${other.port}/`);
	const begun = performance.now();
	await fixture.stop();
	assert.ok(performance.now() - begun < 6_000, "it waited");
	assert.equal(await reader.over(), "end");
	await feed.ws.closed();
});
