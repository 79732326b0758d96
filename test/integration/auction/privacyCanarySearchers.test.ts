// Leak test for bids: backruns with unmistakable names and amounts win, lose, are refused and are cancelled, while
// builders fail and quote what they are sent. Then everything a rival saw, and the log, is searched for them.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Transaction } from "ethers";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import {
	backrunBy,
	bidder,
	MISER,
	PAYER,
	prepareBidding,
	REVERTER,
	type Signed,
	signedBy,
} from "../../support/biddingFixture.ts";
import { FeedClient } from "../../support/feeds.ts";
import { LeakWatch, type Secret } from "../../support/leakWatch.ts";
import { type PlainAnswer, type PlainBuilder, startPlainBuilder } from "../../support/plainBuilder.ts";
import type { RelayProcess } from "../../support/processes.ts";
import { AUTHORIZED } from "../../support/relayClient.ts";
import { bundleHashOf } from "../../support/secretFixture.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const CALLDATA = `0x${"ba5eba11deadcafe".repeat(5)}`;
const KEY = `0x${"d4".repeat(32)}`;
const OWN = { "x-forwarded-for": "198.51.100.1" };
const RIVAL = { "x-forwarded-for": "198.51.100.2" };
const UUID = "uuid-of-the-searcher-canary";
/** Wei; each is found again as itself in decimal and hex. */
const BIDS = {
	early: 3_133_711_122_001n,
	winner: 3_133_755_566_003n,
	loser: 3_133_700_011_002n,
	share: 3_133_799_988_005n,
};

const BUILDERS: Readonly<Record<string, (body: string) => PlainAnswer>> = {
	echoesInError: (body) => ({
		status: 200,
		body: JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32000, message: body, data: body } }),
	}),
	echoesInResult: (body) => ({ status: 200, body: JSON.stringify({ jsonrpc: "2.0", id: 1, result: body }) }),
	echoesAsText: (body) => ({ status: 400, body, contentType: "text/plain" }),
	truncated: (body) => ({ status: 200, body: `{"jsonrpc":"2.0","id":1,"result":"${body.slice(0, 900)}` }),
};

const watch = new LeakWatch();
const early = canary(10, BIDS.early);
const winner = canary(11, BIDS.winner);
const loser = canary(12, BIDS.loser);
const share = canary(13, BIDS.share);
const withdrawn = canary(14, 3_133_777_777_006n);
const plain = [canary(15, 3_133_788_888_007n), canary(16, 3_133_788_888_008n)] as const;
const refused = [canary(17, 1n, REVERTER), canary(18, 1n, MISER)];
const everything = [early, winner, loser, share, withdrawn, ...plain, ...refused];
const targets = [signedBy(0, { value: 1n }), signedBy(1, { value: 1n })] as const;

let system: ProcessSystem;
let relay: RelayProcess;
let plainBuilders: PlainBuilder[];
let own: FeedClient;
let rival: FeedClient;
const guesses: string[] = [];

before(async () => {
	plainBuilders = [];
	for (const answer of Object.values(BUILDERS)) {
		const builder = await startPlainBuilder();
		builder.answerWith(answer);
		plainBuilders.push(builder);
	}
	const rows = Object.keys(BUILDERS).map((name, i) => ({ name, url: plainBuilders[i]?.url ?? "" }));
	system = await startProcessSystem({ builders: [{ name: "dev" }, ...rows], env: { TRUST_PROXY: "1" } });
	await prepareBidding(system);
	relay = await system.start({ LOG_LEVEL: "trace" });
	own = await FeedClient.open(relay.url.replace("http", "ws"), { headers: OWN });
	rival = await FeedClient.open(relay.url.replace("http", "ws"), { headers: RIVAL });
	await scenario();
});
after(async () => {
	await system.stop();
	for (const builder of plainBuilders) await builder.stop();
});

test("the builders received the secrets that the tests search for", () => {
	const control = new LeakWatch();
	for (const builder of plainBuilders) control.saw("builder", builder.bodies.join("\n"));
	const given = [early, winner, share, withdrawn, ...plain].map(({ raw }, i) => ({
		name: String(i),
		value: raw,
	}));
	assert.equal(control.found(given).length, given.length);
	// And what is not sent out is not even theirs.
	assert.deepEqual(control.found(refused.map(({ raw }) => ({ name: "refused", value: raw }))), []);
});

test("no raw backrun, signature or call data is in any page, feed, answer or log", () => {
	assert.ok(watch.places.length >= 12, watch.places.join(", "));
	assert.deepEqual(watch.found([...everything, ...targets].flatMap(bytesOf)), []);
});

test("no output contains a key or a signature of a request", () => {
	const secrets = [
		{ name: "key", value: KEY },
		...requestSignatures.map((header) => ({
			name: "request's signature",
			value: header.split(":")[1] ?? "",
		})),
	];
	assert.ok(requestSignatures.length >= 2);
	assert.deepEqual(watch.found(secrets), []);
});

test("while the targets are pending a rival gets nothing of others' bids: no hash, amount, uuid or sender", () => {
	const secrets = everything.flatMap(namesOf);
	assert.ok(secrets.length > 30);
	secrets.push({ name: "uuid", value: UUID }, { name: "the contract that pays", value: PAYER });
	assert.deepEqual(watch.found(secrets, OWN_PLACES.concat(LATER_PLACES)), []);
});

test("nor after the block, of bids that did not win", () => {
	const lost = [early, loser, withdrawn, ...refused].flatMap(namesOf);
	assert.deepEqual(watch.found([...lost, { name: "uuid", value: UUID }], OWN_PLACES), []);
});

test("guessing another's bundle reveals nothing of it", () => {
	for (const id of guesses) assert.deepEqual(rival.received(id), []);
});

/** What the bids' own sender is told, and the log, which is the operator's. */
const OWN_PLACES = ["own answers", "own feed", "own bundles", "log"];
const LATER_PLACES = ["rival's feed, later", "pages, later", "rival's answers, later"];
const requestSignatures: string[] = [];

async function scenario(): Promise<void> {
	await rival.subscribe("service_partialPendingTransactions");
	await rival.subscribe("newHeads");
	const [first, second] = [targets[0].hash, targets[1].hash];
	const bids = [early, winner, loser].map(({ hash }) => bundleHashOf(first, hash));
	const others = [withdrawn, share].map(({ hash }) => bundleHashOf(second, hash));
	for (const hash of [...bids, ...others]) guesses.push(await rival.subscribe("service_bundleStatus", hash));
	for (const { raw, hash } of targets) {
		await relay.client.send(raw, "/maxbackruns");
		await until("it is shared and out", async () => (await relay.client.stage(hash)) === "BROADCAST");
	}
	for (const { raw } of [early, winner, loser]) await ownBid({ txs: [first, raw] });
	await ownBid({ txs: [second, withdrawn.raw], replacementUuid: UUID });
	const cancelled = await own.ask("eth_cancelBundle", [{ replacementUuid: UUID }]);
	assert.equal(cancelled.result, 200);
	for (const { raw } of refused) await ownBid({ txs: [first, raw], replacementUuid: UUID }, true);
	const block = `0x${(Number(await system.chain.rpc("eth_blockNumber")) + 1).toString(16)}`;
	const bundle = { version: "v0.1", inclusion: { block }, replacementUuid: UUID };
	const bodyOf = (...list: readonly Signed[]) => list.map(({ raw }) => ({ tx: raw, canRevert: false }));
	await signedCall({ ...bundle, body: [{ hash: second }, ...bodyOf(share)] });
	await signedCall({ ...bundle, replacementUuid: `${UUID} 2`, body: bodyOf(...plain) });
	// One of the rival's own, so that he is told of losing to another.
	const rivals = await rival.ask("eth_sendBundle", [{ txs: [second, backrunBy(30, 5n).raw] }]);
	await rival.subscribe("service_bundleStatus", rivals.result);
	for (const body of badBodies(winner.raw, first)) {
		await watch.fetched("error answers", relay.url, { method: "POST", headers: jsonHeaders(OWN), body });
	}
	await until("the builders have all of it", () =>
		plainBuilders.every(({ bodies }) => {
			const all = bodies.join();
			return [winner, share, withdrawn, ...plain].every(({ raw }) => all.includes(raw));
		}),
	);
	await system.delivered([winner.raw, share.raw]);
	await lookAround("");
	watch.saw("rival's feed", rival.texts.join("\n"));
	await system.nextBlock(relay);
	await until("the winner is told", async () =>
		(await ownBundle(bundleHashOf(first, winner.hash))).includes("INCLUDED"),
	);
	await lookAround(", later");
	watch.saw("rival's feed, later", rival.texts.join("\n"));
	watch.saw("own feed", own.texts.join("\n"));
	const exit = await relay.kill("SIGTERM", 25_000);
	assert.match(exit.stdout, /"level":20/, "the log is at its most talkative");
	watch.saw("log", exit.stdout + exit.stderr);
}

/** All that a rival can look at who knows, or guesses, every hash there is. */
async function lookAround(when: string): Promise<void> {
	for (const page of ["/metrics", "/readyz", "/info"])
		await watch.fetched(page, `${relay.url}${page}`, { headers: AUTHORIZED });
	for (const { hash } of targets) {
		for (const path of [`/tx/${hash}`, `/tx/${hash}/events`]) {
			await watch.fetched(`pages${when}`, `${relay.url}${path}`, { headers: RIVAL });
		}
	}
	const ask = async (method: string, params: readonly unknown[]) => {
		const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
		const answer = await fetch(relay.url, { method: "POST", headers: jsonHeaders(RIVAL), body });
		watch.saw(`rival's answers${when}`, await answer.text());
	};
	if (when === "") for (const { hash } of targets) await ask("eth_getRawTransactionByHash", [hash]);
	for (const [i, { hash }] of everything.entries()) {
		for (const target of targets) {
			const bundle = bundleHashOf(target.hash, hash);
			const page = await fetch(`${relay.url}/bundle/${bundle}`, { headers: RIVAL });
			assert.equal(page.status, 404);
			watch.saw(`pages${when}`, await page.text());
		}
		await ask("eth_sendBundle", [{ txs: [hash, backrunBy(31, 5n).raw] }]);
		await ask("eth_callMany", [{ txs: [hash], blockNumber: "0x2", stateBlockNumber: "0x0" }]);
		const isMined = when !== "" && [winner, share, ...plain].some((one) => one.hash === hash);
		if (isMined) continue;
		await ask("eth_getRawTransactionByHash", [hash]);
		await ask("eth_getTransactionByHash", [hash]);
		const { address } = bidder(10 + i);
		assert.equal(await relay.client.call("eth_getTransactionCount", [address, "pending"]), "0x0");
		assert.equal((await relay.client.status(hash)).stage, undefined);
	}
}

async function ownBid(bundle: object, fails = false): Promise<void> {
	const answer = await own.ask("eth_sendBundle", [bundle]);
	assert.equal(answer.error !== undefined, fails, JSON.stringify(answer));
	watch.saw("own answers", JSON.stringify(answer));
	if (!fails) await own.subscribe("service_bundleStatus", answer.result);
}

async function ownBundle(hash: string): Promise<string> {
	return watch.fetched("own bundles", `${relay.url}/bundle/${hash}`, { headers: OWN });
}

/** `mev_sendBundle`, signed. */
async function signedCall(bundle: object): Promise<void> {
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "mev_sendBundle", params: [bundle] });
	const signature = createBodySigner(KEY).sign(body);
	requestSignatures.push(signature);
	const headers = { ...jsonHeaders(OWN), "x-flashbots-signature": signature };
	const text = await watch.fetched("own answers", relay.url, { method: "POST", headers, body });
	assert.ok(text.includes("bundleHash"), text);
}

function jsonHeaders(more: Readonly<Record<string, string>>): Record<string, string> {
	return { "content-type": "application/json", ...more };
}

function canary(index: number, value: bigint, to?: string): Signed {
	return backrunBy(index, value, { data: CALLDATA, ...(to === undefined ? {} : { to }) });
}

/** Raw bytes, both halves of the signature, and the call data. */
function bytesOf({ raw }: Signed, i: number): Secret[] {
	const { signature } = Transaction.from(raw);
	return [
		{ name: `backrun ${i}`, value: raw },
		{ name: `backrun ${i}'s r`, value: signature?.r ?? "" },
		{ name: `backrun ${i}'s s`, value: signature?.s ?? "" },
		{ name: `backrun ${i}'s call data`, value: CALLDATA },
	];
}

/** Its hash, those of its bundles, its sender, and the amount where that is like no other. */
function namesOf({ raw, hash }: Signed, i: number): Secret[] {
	const { value, from } = Transaction.from(raw);
	const amounts = value > 1n ? [String(value), value.toString(16)] : [];
	const bundles = targets.map((target) => bundleHashOf(target.hash, hash));
	return [hash, ...bundles, String(from).toLowerCase(), ...amounts].map((one) => ({
		name: `${i}: ${one}`,
		value: one,
	}));
}

/** A backrun in bodies that are refused, each for another reason. */
function badBodies(raw: string, target: string): string[] {
	const call = (method: string, params: unknown) => JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
	return [
		call("eth_sendBundle", [{ txs: [raw, target] }]),
		call("eth_sendBundle", [{ txs: [target, raw], blockNumber: raw }]),
		call("eth_sendBundle", [{ txs: [target, raw], replacementUuid: [raw] }]),
		call("eth_sendBundle", [{ txs: [target, `${raw}00`] }]),
		call("mev_sendBundle", [{ version: "v0.1", inclusion: { block: raw }, body: [{ tx: raw }] }]),
		call("mev_sendBundle", [
			{ version: "v0.1", inclusion: { block: "0x1" }, body: [{ tx: raw, bundle: { raw } }] },
		]),
		call("mev_sendBundle", [
			{ version: "v0.1", inclusion: { block: "0x1" }, body: [], privacy: { [raw]: raw } },
		]),
		call("eth_callMany", [{ txs: [`${raw}00`], blockNumber: "0x1", stateBlockNumber: raw }]),
		call("eth_callMany", [[{ transactions: [{ data: raw, input: "0x" }] }]]),
		call("eth_subscribe", [raw, raw]),
		call("eth_cancelBundle", [{ uuid: raw }]),
		`{"jsonrpc":"2.0","id":1,"method":"eth_sendBundle","params":[{"txs":["${target}","${raw}"`,
	];
}
