// What searchers must not learn: that a private transaction exists. Every way to ask after a hash is tried on hashes of
// private transactions and on one that nobody has seen; no answer or duration, and no page of a shared transaction, tells
// them apart. (What bids weigh in a rate limit is in bidRateLimit.test.ts.)

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
	type BiddingFixture,
	backrunBy,
	REASON,
	signedBy,
	startBidding,
} from "../../support/biddingFixture.ts";
import { WsClient } from "../../support/clients.ts";
import { gate } from "../../support/contracts.ts";
import { FeedClient } from "../../support/feeds.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import {
	assertSameTime,
	bundleHashOf,
	holdSecrets,
	inBatches,
	NODE_DELAY_MS,
	overHttp,
	type Probe,
	probesNow,
	SECRET_BUILDERS,
	SECRET_ENV,
	type Secrets,
	simulationsOf,
	UNKNOWN,
} from "../../support/secretFixture.ts";
import { until } from "../../support/until.ts";

/** What he is answered who cancels what is not his, whatever that is. */
const NOT_PENDING = { code: -32_000, message: "transaction not found or no longer pending" };
/** The bidder of all probes, who has sent nothing else. */
const PROBER = 40;
const NOT_FOUND = {
	code: -32_000,
	message: "target transaction not found",
	data: { reason: "TARGET_NOT_FOUND" },
};

let fixture: BiddingFixture;
let searcher: FeedClient;
let secrets: Secrets;
const guesses: string[] = [];

before(async () => {
	fixture = await startBidding({ builders: SECRET_BUILDERS, proxied: true, env: SECRET_ENV });
	await fixture.system.nextBlock();
	searcher = await FeedClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`);
	await searcher.subscribe("service_partialPendingTransactions");
	await searcher.subscribe("newHeads");
	secrets = await holdSecrets(fixture, 0);
	const { hash } = backrunBy(PROBER, 5_000n);
	for (const target of Object.values(secrets.hashes)) {
		guesses.push(await searcher.subscribe("service_bundleStatus", bundleHashOf(target, hash)));
	}
});
after(async () => {
	searcher.close();
	await fixture.stop();
});

test("any bid on a secret transaction gets the same bytes as one on an unknown hash", async () => {
	const unknown = await probesNow(fixture, UNKNOWN, PROBER);
	const expected = await overHttp(fixture, UNKNOWN, unknown);
	unknown.forEach(({ asksForTarget, name }, i) => {
		const [status, , body] = JSON.parse(expected[i] ?? "[]") as [number, unknown, string];
		assert.equal(status, 200);
		const { error } = JSON.parse(body) as WireAnswer;
		if (asksForTarget) assert.deepEqual(error, NOT_FOUND, name);
		else if (name === "eth_cancelTransaction") assert.deepEqual(error, NOT_PENDING);
		else assert.notDeepEqual(error, NOT_FOUND, name);
	});
	assert.ok(unknown.filter(({ asksForTarget }) => asksForTarget).length > 20);
	await eachIsLike(expected, (hash, probes) => overHttp(fixture, hash, probes));
});

test("the same in batches, over HTTP and a websocket", async () => {
	const expected = await inBatches(fixture, UNKNOWN, await probesNow(fixture, UNKNOWN, PROBER));
	assert.equal(expected.length, 2);
	for (const text of expected) assert.ok(text.split(NOT_FOUND.message).length > 20);
	await eachIsLike(expected, (hash, probes) => inBatches(fixture, hash, probes));
});

test("eth_callMany of a secret transaction is answered as for an unknown hash", async () => {
	const ask = async (hash: string) =>
		overHttp(fixture, hash, simulationsOf(hash, PROBER, await fixture.head()));
	const expected = await ask(UNKNOWN);
	for (const answer of expected) assert.ok(answer.includes(NOT_FOUND.message), answer);
	for (const { hash } of secrets.unheard) assert.deepEqual(await ask(hash), expected);
});

test("the status of a guessed bundle equals that of an unknown one", async () => {
	const { hash } = backrunBy(PROBER, 5_000n);
	const expected = await fixture.bundle(bundleHashOf(UNKNOWN, hash));
	assert.equal(expected.status, 404);
	for (const target of Object.values(secrets.hashes)) {
		assert.deepEqual(await fixture.bundle(bundleHashOf(target, hash)), expected);
	}
	for (const id of guesses) assert.deepEqual(searcher.received(id), []);
});

test("no bid on a secret transaction makes the relay call the node", async () => {
	const { node } = fixture.system;
	assert.ok(node !== null);
	const target = await fixture.target(20);
	const about = (method: string) => node.calls(method).length;
	const asked = () => ["eth_simulateV1", "debug_traceCall", "eth_getProof", "eth_getCode"].map(about);
	await fixture.ask("eth_sendBundle", [{ txs: [target, backrunBy(41, 0n).raw] }]);
	const before = asked();
	assert.ok((before[0] ?? 0) > 0, "a bid on a shared one is simulated");
	for (const hash of Object.values(secrets.hashes)) {
		const bids = (await probesNow(fixture, hash, 42)).filter(({ asksForTarget }) => asksForTarget);
		await overHttp(fixture, hash, bids);
		await inBatches(fixture, hash, bids);
	}
	assert.deepEqual(asked(), before);
});

test("a shared one behind a private one takes bids once that is mined, and not before", async () => {
	const { hidden, shared } = secrets.link;
	const backrun = backrunBy(43, 9_000n);
	const bid = () => fixture.ask("eth_sendBundle", [{ txs: [shared.hash, backrun.raw] }]);
	assert.deepEqual((await bid()).error, NOT_FOUND);
	await fixture.system.chain.rpc("eth_sendRawTransaction", [hidden.raw]);
	const head = (await fixture.system.chain.rpc("eth_getBlockByNumber", ["latest", false])) as {
		timestamp: string;
	};
	await fixture.system.chain.rpc("evm_mine", [
		{ timestamp: Number(head.timestamp) + fixture.system.chain.slotSeconds },
	]);
	await until("it is mined", async () => (await fixture.system.client.stage(hidden.hash)) === "INCLUDED");
	const { result, error } = await bid();
	assert.equal(error, undefined);
	assert.equal(result, bundleHashOf(shared.hash, backrun.hash));
	await until("it is out", async () => (await fixture.stages(String(result))).join() === "BEST");
});

test("no status of a shared transaction names the private one that replaced it or came before it", async () => {
	const { client } = fixture.system;
	const fees = (gwei: bigint) => ({ maxFeePerGas: gwei * 10n ** 9n, maxPriorityFeePerGas: gwei * 10n ** 8n });
	const [between, last] = [
		signedBy(23, { value: 2n, ...fees(30n) }),
		signedBy(23, { value: 3n, ...fees(50n) }),
	];
	const first = await fixture.target(23);
	await client.send(between.raw, "/fast");
	await client.send(last.raw, "/fullprivacy");
	const replaced = secrets.hashes["replaced by a private one"] ?? "";
	const successor = secrets.hashes["private, in place of a shared one"] ?? "";
	for (const [shared, hidden] of [
		[replaced, successor],
		[first, last.hash],
		[between.hash, last.hash],
	] as const) {
		for (const path of [`/tx/${shared}`, `/tx/${shared}/events`]) {
			const text = await (await fetch(`${client.url}${path}`)).text();
			assert.match(text, /REPLACED/);
			assert.ok(!text.includes(hidden), text);
		}
	}
});

test("the status of a shared transaction after a private one reveals neither that one nor its effects", async () => {
	const { client, chain } = fixture.system;
	const place = `0x${"b7".repeat(20)}`;
	const reason = `0x${Buffer.from(REASON).toString("hex")}`;
	await chain.rpc("anvil_setCode", [place, gate(reason)]);
	// Each private link sets the gate that its shared one goes through: open for the one, shut for the other.
	for (const [account, set, stage] of [
		[52, 1, "BROADCAST"],
		[57, 0, "SIMULATION_FAILED"],
	] as const) {
		const hidden = signedBy(account, { to: place, data: `0x${String(set).padStart(64, "0")}` });
		const shared = signedBy(account, { to: place, nonce: 1 });
		await client.send(hidden.raw, "/fullprivacy");
		await client.send(shared.raw, "/maxbackruns");
		await until(`it is ${stage}`, async () => (await client.stage(shared.hash)) === stage);
		const pages = [await client.events(shared.hash), await client.status(shared.hash)];
		const text = JSON.stringify(pages);
		assert.ok(!text.includes(hidden.hash), text);
		assert.ok(!text.includes(REASON) && !text.includes(reason.slice(2)), text);
		assert.doesNotMatch(text, /"gasUsed":\d|"data":"|not shared|private/);
	}
});

test("bids take equally long, without calls to the node, when the node takes 100 ms for an answer", async () => {
	const names = [
		"on /fullprivacy",
		"on /nochecks",
		"on /fullprivacy, failing",
		"private, in place of a shared one",
	];
	fixture.system.node?.setDelay(NODE_DELAY_MS);
	const ws = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`);
	let asked = 0;
	/** One bid by an account that has never been asked for, in ms. */
	const time = async (target: string): Promise<number> => {
		asked += 1;
		const txs = [target, backruns[asked % backruns.length]];
		const begun = performance.now();
		ws.send({ jsonrpc: "2.0", id: 1, method: "eth_sendBundle", params: [{ txs }] });
		const { error } = await ws.next();
		const took = performance.now() - begun;
		assert.equal(error?.message, "target transaction not found");
		return took;
	};
	const backruns = Array.from({ length: 40 }, (_, i) => backrunBy(i + 10, 7_000n).raw);
	// A bid that does ask the node is seen by the same measure.
	const shared = await fixture.target(50);
	const begun = performance.now();
	await fixture.call("eth_sendBundle", [{ txs: [shared, backrunBy(51, 7_000n).raw] }]);
	assert.ok(performance.now() - begun > NODE_DELAY_MS);
	for (let i = 0; i < 100; i++) await time(UNKNOWN);
	for (const name of names) {
		await assertSameTime(name, secrets.hashes[name] ?? "", time);
	}
	ws.terminate();
	fixture.system.node?.setDelay(0);
});

test("searchers never receive anything that names a secret transaction", async () => {
	await fixture.target(21);
	await fixture.system.nextBlock();
	const last = await fixture.target(22);
	await until("the feed has come so far", () => searcher.texts.some((text) => text.includes(last)));
	for (const { hash } of secrets.unheard) {
		for (const text of searcher.texts) assert.ok(!text.includes(hash.slice(2)), text);
	}
	for (const id of guesses) assert.deepEqual(searcher.received(id), []);
});

/** Asks after every secret, and expects what an unknown hash was answered. */
async function eachIsLike(
	expected: readonly string[],
	ask: (hash: string, probes: readonly Probe[]) => Promise<string[]>,
): Promise<void> {
	for (const [what, hash] of Object.entries(secrets.hashes)) {
		const probes = await probesNow(fixture, hash, PROBER);
		const answers = await ask(hash, probes);
		for (const [i, answer] of answers.entries()) {
			assert.equal(answer, expected[i], `${what}: ${probes[i]?.name}`);
		}
	}
}
