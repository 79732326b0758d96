// The examples of docs/api.md, held against what a running relay and boost really answer: the same keys with the same JSON
// types. And the tables of metrics in docs/operators.md, against the real pages.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { BOOST_HEADERS } from "../../../boost-proxy/ingress/routingHeaders.ts";
import { METHODS } from "../../../relay/ingress/methods/index.ts";
import { openRpc } from "../../../shared/jsonrpc/method.ts";
import { AuctionFixture, type Bidder } from "../../support/bidder.ts";
import { EMITTER, MISER, prepareBidding, REASONER } from "../../support/biddingFixture.ts";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { documents, examplesOf, ROOT } from "../../support/documents.ts";
import type { FeedClient } from "../../support/feedClient.ts";
import { metricsOf } from "../../support/metricsPage.ts";
import { until } from "../../support/until.ts";

const UNKNOWN = `0x${"ab".repeat(32)}`;
const api = readFileSync(join(ROOT, "docs/api.md"), "utf8");
const examples = examplesOf(api);
/** What was really answered, by the name of its example. */
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
	const [feedId, headsId] = [
		await feed.subscribe("service_partialPendingTransactions"),
		await feed.subscribe("newHeads"),
	];
	real.subscribe = await feed.ask("eth_subscribe", ["service_transactionStatus", tx.hash]);
	const statusId = (real.subscribe as { result: string }).result;
	real.sendRawTransaction = await ask("eth_sendRawTransaction", [tx.raw]);
	await auction.open(tx);
	real.partialPendingTransaction = await notification(feedId);
	real.statusPending = await auction.status(tx);
	real.getTransactionByHash = await ask("eth_getTransactionByHash", [tx.hash]);

	const backrun = bidder.backrun(10n ** 16n);
	const block = `0x${((await auction.head()) + 1).toString(16)}`;
	const simulation = { txs: [tx.hash, backrun.raw], blockNumber: block, stateBlockNumber: "latest" };
	real.callMany = await ask("eth_callMany", [simulation]);
	real.callBundle = await ask("eth_callBundle", [simulation]);
	const bid = { txs: [tx.hash, backrun.raw], blockNumber: block, replacementUuid: "mine" };
	real.sendBundle = await feed.ask("eth_sendBundle", [bid]);
	const bundle = (real.sendBundle as { result: string }).result;
	const bundleId = await feed.subscribe("service_bundleStatus", bundle);
	real.bundleStatus = await notification(bundleId, ({ builders }) => (builders as unknown[]).length > 0);
	real.cancelBundle = await feed.ask("eth_cancelBundle", [{ replacementUuid: "other" }]);
	const own = (await auction.actor()).sign();
	const plain = { version: "v0.1", inclusion: { block }, body: [{ tx: own.raw, canRevert: false }] };
	real.mevSendBundle = await ask("mev_sendBundle", [plain]);

	await fixture.system.nextBlock();
	await auction.event(tx, "refunded");
	await until("what it paid", async () => (await bidder.blocks(bundle)).some(({ paid }) => paid !== null));
	real.statusIncluded = await auction.status(tx);
	real.eventsIncluded = await page(`/tx/${tx.hash}/events`);
	real.bundle = await page(`/bundle/${bundle}`);
	real.transactionStatus = await notification(statusId, ({ status }) => status === "INCLUDED");
	real.newHeads = await notification(headsId);
	real.transactionStatuses = await ask("service_transactionStatuses", [[tx.hash, UNKNOWN]]);
	real.callManyCalls = await ask("eth_callMany", [
		[{ transactions: [EMITTER, REASONER].map((to) => ({ from: user.address, to, data: "0x" })) }],
		{ blockNumber: "latest", transactionIndex: 0 },
	]);
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
	agree("statusIncluded", "eventsIncluded", "bundle", "transactionStatus", "newHeads");
	agree("transactionStatuses", "callManyCalls", "errorRejected");
});

test("transactions that fail or are cancelled, and refusals", async () => {
	const failing = (await auction.actor()).sign({ to: REASONER });
	await auction.submit("/noreverts", failing);
	await auction.reaches(failing, "SIMULATION_FAILED");
	real.statusFailed = await auction.status(failing);

	const tx = (await auction.actor()).sign();
	await auction.submit("/fullprivacy", tx);
	await auction.sent(tx);
	await auction.event(tx, "delivered");
	real.cancelTransaction = await ask("eth_cancelTransaction", [tx.hash]);
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

test("pages, and who the client is", async () => {
	real.client = await ask("service_client", []);
	real.info = await page("/info");
	real.livez = await page("/livez");
	real.readyz = await page("/readyz");
	agree("client", "info", "livez", "readyz");
	const { result } = await ask("rpc.discover", []);
	assert.deepEqual(
		result,
		JSON.parse(JSON.stringify(openRpc(METHODS, { title: "Leeward relay", version: "0.0.0" }))),
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

test("boost: its status, its headers, and what it says while nobody else answers", async () => {
	const { boost } = fixture;
	const tx = (await auction.actor()).sign({ to: EMITTER });
	const { headers } = await boost.call("eth_sendRawTransaction", [tx.raw]);
	for (const name of ["X-Boost-Upstream", "X-Boost-Breaker", "X-Boost-Attempts"]) {
		assert.ok(headers[name.toLowerCase()] !== undefined, name);
	}
	real.boostStatus = await until("no probe under way", async () => {
		const status = await boost.status();
		return status.relay.nextProbeAt !== null && status.fallback?.nextProbeAt !== null && status;
	});
	await fixture.wires.fallback.set({ kind: "refuse" });
	await fixture.fails();
	real.statusHeld = (await boost.get(`/tx/${tx.hash}`)).json;
	const other = (await auction.actor()).sign();
	real.errorUnavailable = (await boost.call("eth_sendRawTransaction", [other.raw])).json;
	agree("boostStatus", "statusHeld", "errorUnavailable");
	for (const name of BOOST_HEADERS) assert.ok(api.includes(`\`${name}\``), name);
});

test("every example is held by one of these tests", () => {
	for (const name of examples.keys()) assert.ok(name in real, name);
});
