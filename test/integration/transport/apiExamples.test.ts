// The requests of docs/api.md and docs/searchers.md, sent to a running relay as they stand, and the
// examples of docs/api.md, held against what it and boost really answer: the same keys with the
// same JSON types. And the tables of metrics in docs/operators.md, against the real pages.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { PublicStatus } from "../../../boost-proxy/ingress/operators.ts";
import { BOOST_HEADERS } from "../../../boost-proxy/ingress/routingHeaders.ts";
import { METHODS } from "../../../relay/ingress/methods/index.ts";
import { openRpc } from "../../../shared/jsonrpc/method.ts";
import { VERSION } from "../../../shared/version.ts";
import { AuctionFixture, type Bidder } from "../../support/bidder.ts";
import { EMITTER, MISER, prepareBidding, REASONER } from "../../support/biddingFixture.ts";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { EventStreamReader } from "../../support/clients.ts";
import { documents, examplesOf, filled, ROOT, snippet } from "../../support/documents.ts";
import { isEdge } from "../../support/engine.ts";
import type { FeedClient } from "../../support/feeds.ts";
import { askReceipt } from "../../support/receipts.ts";
import { askRefunds } from "../../support/refunds.ts";
import { metricsOf } from "../../support/relayClient.ts";
import { until } from "../../support/until.ts";

const UNKNOWN = `0x${"ab".repeat(32)}`;
const api = readFileSync(join(ROOT, "docs/api.md"), "utf8");
const examples = examplesOf(api);
/** Real answers, by the name of their example. */
const real: Record<string, unknown> = {};

let fixture: BoostFixture;
let auction: AuctionFixture;
let bidder: Bidder;
let feed: FeedClient;
before(async () => {
	fixture = await startBoostFixture({ system: { env: { TRUST_PROXY: "1" } } });
	await prepareBidding(fixture.system);
	auction = new AuctionFixture(fixture.system);
	bidder = await auction.bidder();
	feed = await bidder.connect();
});
after(async () => {
	feed?.close();
	await fixture?.stop();
});

/** One call at the relay; the whole answer. */
function ask(method: string, params: readonly unknown[], path = "/fast") {
	return fixture.system.client.ask(method, params, path);
}

/** The whole answer to a request as it stands. */
async function post(body: string): Promise<unknown> {
	const headers = { "content-type": "application/json" };
	return (await fetch(`${fixture.system.client.url}/fast`, { method: "POST", headers, body })).json();
}

/** The JSON of one of the relay's pages, as the bidder gets it. */
async function page(path: string): Promise<unknown> {
	const headers = { "x-forwarded-for": bidder.from };
	return (await fetch(`${fixture.system.client.url}${path}`, { headers })).json();
}

/** The newest whole notification of a subscription for which `is` holds. */
function notification(id: string, is: (result: Record<string, unknown>) => boolean = () => true) {
	return until(`a notification of ${id}`, () => {
		const frames = feed.texts.map((text) => JSON.parse(text));
		return frames.findLast(({ params }) => params?.subscription === id && is(params.result));
	});
}

/** The keys and types of a JSON value; of a list those of its elements, each once. */
function shapeOf(value: unknown): unknown {
	if (Array.isArray(value)) {
		return [...new Set(value.map((one) => JSON.stringify(shapeOf(one))))].sort();
	}
	if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value;
	const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
	// Events and deliveries of one type are alike, and those of different types are not.
	return Object.fromEntries(fields.map(([key, one]) => [key, key === "type" ? one : shapeOf(one)]));
}

function agree(...names: readonly string[]): void {
	for (const name of names) {
		assert.ok(examples.has(name), `${name}: ${JSON.stringify(real[name], null, "\t")}`);
		const told = `${name} is really ${JSON.stringify(real[name])}`;
		assert.deepEqual(shapeOf(examples.get(name)), shapeOf(real[name]), told);
	}
}

test("a transaction with a bid on it, from its submission to its block", async () => {
	const user = await auction.actor();
	const tx = user.sign({ to: EMITTER, type: 2 });
	const subscribed = await feed.say(snippet("docs/searchers.md", '{"jsonrpc":"2.0","id":1,'));
	const [feedId, headsId] = [String(subscribed.result), await feed.subscribe("newHeads")];
	real.subscribe = await feed.ask("eth_subscribe", ["service_transactionStatus", tx.hash]);
	const statusId = (real.subscribe as { result: string }).result;
	const submission = snippet("docs/api.md", '{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction"');
	real.sendRawTransaction = await post(filled(submission, ["0x<signed>", tx.raw]));
	await auction.open(tx);
	real.partialPendingTransaction = await notification(feedId);
	real.statusPending = await auction.status(tx);
	real.getTransactionByHash = await ask("eth_getTransactionByHash", [tx.hash]);

	const backrun = bidder.backrun(10n ** 16n);
	const own = (await auction.actor()).sign();
	const block = `0x${((await auction.head()) + 1).toString(16)}`;
	const [simulation = "", calls = ""] = snippet("docs/searchers.md", '{"jsonrpc":"2.0","id":3,').split("\n");
	real.callMany = await post(
		filled(simulation, ["0x<signed>", own.raw], ["0x<hash of a shared one>", tx.hash], ["0x11", block]),
	);
	const bundleAsked = snippet("docs/searchers.md", '{"jsonrpc":"2.0","id":5,');
	real.callBundle = await post(
		filled(bundleAsked, ["0x<hash of a shared one>", tx.hash], ["0x<signed>", backrun.raw], ["0x11", block]),
	);
	const simAsked = snippet("docs/searchers.md", '{"jsonrpc":"2.0","id":8,');
	real.simBundle = await post(
		filled(simAsked, ["0x<hash of a shared one>", tx.hash], ["0x<signed>", backrun.raw], ["0x11", block]),
	);
	const bid = filled(
		snippet("docs/searchers.md", '{"jsonrpc":"2.0","id":2,'),
		["0x<target hash>", tx.hash],
		["0x<signed backrun>", backrun.raw],
		["0x10", block],
	);
	real.sendBundle = await feed.say(bid);
	const bundle = (real.sendBundle as { result: string }).result;
	const bundleId = await feed.subscribe("service_bundleStatus", bundle);
	real.cancelBundle = await feed.ask("eth_cancelBundle", [{ replacementUuid: "other" }]);
	const plain = { version: "v0.1", inclusion: { block }, body: [{ tx: own.raw, canRevert: false }] };
	real.mevSendBundle = await ask("mev_sendBundle", [plain]);
	// A bid of the same client and sender, so that it has no slot.
	const { raw: cheaper } = bidder.backrun(10n ** 15n);
	await feed.ask("eth_sendBundle", [{ txs: [tx.hash, cheaper] }]);

	await fixture.system.nextBlock();
	await auction.event(tx, "refunded");
	real.bundleStatus = await notification(bundleId, ({ paid }) => paid !== null);
	real.statusIncluded = await auction.status(tx);
	real.eventsIncluded = await page(`/tx/${tx.hash}/events`);
	real.bundle = await page(`/bundle/${bundle}`);
	const [listAsked = "", figuresAsked = ""] = snippet("docs/searchers.md", '{"jsonrpc":"2.0","id":6,').split(
		"\n",
	);
	real.bundles = await feed.say(listAsked);
	real.searcherStats = await feed.say(figuresAsked);
	real.bundleStatsV2 = await feed.ask("flashbots_getBundleStatsV2", [
		{ bundleHash: bundle, blockNumber: block },
	]);
	real.userStatsV2 = await feed.ask("flashbots_getUserStatsV2", [{ blockNumber: block }]);
	const { account } = user;
	real.refunds = await (await askRefunds(fixture.system.client.url, account)).json();
	real.totals = await page("/totals");
	real.receipt = await askReceipt(fixture.system.client.url, tx, account);
	real.history = await page("/mev-share/api/v1/history");
	real.historyInfo = await page("/mev-share/api/v1/history/info");
	real.transactionStatus = await notification(statusId, ({ status }) => status === "INCLUDED");
	real.newHeads = await notification(headsId);
	real.transactionStatuses = await ask("service_transactionStatuses", [[tx.hash, UNKNOWN]]);
	real.callManyCalls = await ask("eth_callMany", [
		[{ transactions: [EMITTER, REASONER].map((to) => ({ from: user.address, to, data: "0x" })) }],
		{ blockNumber: "latest", transactionIndex: 0 },
	]);
	const call = filled(calls, ["0x…", user.address], ["0x…", EMITTER], ["0x…", "0x"], ["0x10", block]);
	assert.deepEqual(await post(call), { jsonrpc: "2.0", id: 4, result: [[{ value: "" }]] });
	const late = user.sign({ nonce: 0, value: 1n });
	real.errorRejected = await ask("eth_sendRawTransaction", [late.raw]);
	agree("subscribe", "sendRawTransaction", "partialPendingTransaction", "statusPending");
	agree(
		"getTransactionByHash",
		"callMany",
		"callBundle",
		"sendBundle",
		"bundleStatus",
		"cancelBundle",
		"mevSendBundle",
	);
	agree("bundles", "searcherStats", "bundleStatsV2", "userStatsV2");
	agree("refunds", "totals", "receipt");
	agree("statusIncluded", "eventsIncluded", "bundle", "transactionStatus", "newHeads");
	agree("transactionStatuses", "callManyCalls", "errorRejected");
	agree("simBundle", "history", "historyInfo");
});

test("the event stream of the feed, as its example in the document", async () => {
	const stream = await EventStreamReader.open(`${fixture.system.client.url}/mev-share`);
	const tx = (await auction.actor()).sign({ to: EMITTER, data: "0x12345678" });
	await fixture.system.client.send(tx.raw, "/maxbackruns");
	const { data } = await stream.message("the event", ({ hash }) => hash === tx.hash);
	stream.leave();
	const told = snippet("docs/api.md", "data: ").replace("data: ", "");
	assert.deepEqual(shapeOf(JSON.parse(told)), shapeOf(data));
});

/** The calls of the searchers' table, by the names of their examples. */
const ANSWERS: Readonly<Record<string, string>> = {
	eth_subscribe: "subscribe",
	eth_sendBundle: "sendBundle",
	mev_sendBundle: "mevSendBundle",
	eth_cancelBundle: "cancelBundle",
	eth_callMany: "callMany",
	mev_simBundle: "simBundle",
	"GET /mev-share/api/v1/history/info": "historyInfo",
};

test("what each call answers in the searchers' table is what it answered here", () => {
	const [, section = ""] = (documents().get("docs/searchers.md") ?? "").split("## Responses by call\n");
	const rows = (section.split("\n## ")[0] ?? "").matchAll(/^\| `([^`]+)` \|.*\| `([^`]+)` \|$/gm);
	const named = [...rows].map(([, call = "", example = ""]) => {
		const answer = real[ANSWERS[call] ?? ""] as Record<string, unknown> | undefined;
		const result = call.startsWith("GET ") ? answer : answer?.result;
		assert.deepEqual(shapeOf(JSON.parse(example)), shapeOf(result), call);
		return call;
	});
	assert.deepEqual(named.sort(), Object.keys(ANSWERS).sort());
});

test("transactions that fail or are cancelled, and refusals", async (t) => {
	const failing = (await auction.actor()).sign({ to: REASONER });
	await auction.submit("/noreverts", failing);
	await auction.reaches(failing, "SIMULATION_FAILED");
	real.statusFailed = await auction.status(failing);

	const tx = (await auction.actor()).sign();
	await auction.submit("/fullprivacy", tx);
	await auction.waitUntilSent(tx);
	await auction.event(tx, "delivered");
	const stream = await EventStreamReader.open(`${fixture.system.client.url}/tx/${tx.hash}/events`);
	t.after(() => stream.leave());
	const cancel = snippet("docs/api.md", '{"jsonrpc":"2.0","id":1,"method":"eth_cancelTransaction"');
	real.cancelTransaction = await post(filled(cancel, ["0x<hash>", tx.hash]));
	const shown = await stream.message("its end", ({ type }) => type === "cancelled");
	const [id = "", data = ""] = snippet("docs/api.md", "id: ").split("\n");
	assert.deepEqual(
		[id, data].map((line) => line.split(": ")[0]),
		["id", "data"],
	);
	assert.equal(Date.parse(String(shown.data.at)), Number(shown.id));
	const told = JSON.parse(data.replace("data: ", ""));
	assert.equal(Date.parse(told.at), Number(id.replace("id: ", "")));
	assert.deepEqual(shapeOf(told), shapeOf(shown.data));
	await auction.event(tx, "delivered", ({ kind, answer }) => kind === "cancel" && answer === "accepted");
	real.eventsCancelled = await page(`/tx/${tx.hash}/events`);
	real.errorCancel = await ask("eth_cancelTransaction", [UNKNOWN]);
	real.errorParams = await ask("eth_sendRawTransaction", ["0x1"]);

	const target = await auction.target();
	const free = bidder.actor.sign({ nonce: 1, to: MISER, value: 1n });
	real.errorBid = await feed.ask("eth_sendBundle", [{ txs: [target.hash, free.raw] }]);
	const waiting = (await auction.actor()).sign();
	real.errorTimedOut = await ask("eth_sendRawTransactionSync", [waiting.raw, 50]);
	agree("statusFailed", "cancelTransaction", "eventsCancelled", "errorCancel", "errorParams");
	agree("errorBid", "errorTimedOut");
});

test("pages, and the client's address and signer", async () => {
	real.client = await ask("service_client", []);
	// The documents show a relay alone, which has no term.
	const alone = (json: unknown) => (isEdge ? { ...(json as object), term: null } : json);
	real.info = alone(await page("/info"));
	real.livez = await page("/livez");
	real.readyz = alone(await page("/readyz"));
	agree("client", "info", "livez", "readyz");
	const { result } = await ask("rpc.discover", []);
	const document = JSON.parse(JSON.stringify(openRpc(METHODS, { title: "Leeward relay", version: VERSION })));
	// The document itself is test/docs.test.ts's.
	assert.ok(
		isDeepStrictEqual(result, document),
		"rpc.discover answers another document than openRpc() makes",
	);
});

test("the metrics", async () => {
	const operators = documents().get("docs/operators.md") ?? "";
	for (const url of [fixture.system.client.url, fixture.boost.url]) {
		const names = [...(await metricsOf(url)).matchAll(/^# HELP ((?:relay|boost)_\w+)/gm)].map(
			([, name]) => name,
		);
		assert.ok(names.length > 5, url);
		for (const name of names) assert.ok(operators.includes(`\`${name}\``), name);
	}
});

test("boost: its status, its headers, and its answers while no upstream answers", async () => {
	const { boost } = fixture;
	const tx = (await auction.actor()).sign({ to: EMITTER });
	const { status, headers } = await boost.call("eth_sendRawTransaction", [tx.raw]);
	const [first = "", ...lines] = snippet("docs/api.md", "HTTP/1.1 ").trimEnd().split("\n");
	assert.equal(first, `HTTP/1.1 ${status} ${STATUS_CODES[status]}`);
	for (const [name = "", value] of lines.map((line) => line.split(": "))) {
		assert.equal(headers[name.toLowerCase()], value, name);
	}
	real.boostStatus = await until("no probe under way", async () => {
		const status = await boost.status();
		return status.relay.nextProbeAt !== null && status.fallback?.nextProbeAt !== null && status;
	});
	real.boostPublicStatus = await until("no probe under way for others", async () => {
		const status = (await boost.get("/status")).json as PublicStatus;
		return status.relay.nextProbeAt !== null && status.fallback?.nextProbeAt !== null && status;
	});
	await fixture.wires.fallback.set({ kind: "refuse" });
	await fixture.fails();
	real.statusHeld = (await boost.get(`/tx/${tx.hash}`)).json;
	real.journal = (await boost.get(`/tx/${tx.hash}/journal`)).json;
	const other = (await auction.actor()).sign();
	real.errorUnavailable = (await boost.call("eth_sendRawTransaction", [other.raw])).json;
	agree("boostStatus", "boostPublicStatus", "statusHeld", "journal", "errorUnavailable");
	for (const name of BOOST_HEADERS) assert.ok(api.includes(`\`${name}\``), name);
});

test("every example is covered by one of these tests", () => {
	for (const name of examples.keys()) assert.ok(name in real, name);
});
