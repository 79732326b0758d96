// Tests whose bundle it is, on a running relay: a uuid, a cancel and a status belong to the client that sent the
// bundle, known by signature or network address, and to nobody else.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import {
	type BiddingFixture,
	backrunBy,
	type CallOptions,
	startBidding,
} from "../../support/biddingFixture.ts";
import { WsClient } from "../../support/clients.ts";
import { until } from "../../support/until.ts";

const KEY_A = `0x${"a1".repeat(32)}`;
const KEY_B = `0x${"b2".repeat(32)}`;
const HERE: CallOptions = { from: "198.51.100.1" };
const THERE: CallOptions = { from: "198.51.100.2" };
const PAGE = "https://app.example";
const NO_BUNDLE = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";

let fixture: BiddingFixture;
let accounts = 0;
before(async () => {
	fixture = await startBidding({ env: { TRUST_PROXY: "1" } });
});
after(() => fixture.stop());

/** An account that no other test has used. */
function fresh(): number {
	accounts += 1;
	return accounts;
}

/** A bid by `who` on `target`; the bundle's hash. */
async function bid(target: string, uuid: string | null, who: CallOptions, value = 1_000n): Promise<string> {
	const { raw } = backrunBy(fresh(), value);
	const replacementUuid = uuid === null ? {} : { replacementUuid: uuid };
	return (await fixture.call("eth_sendBundle", [{ txs: [target, raw], ...replacementUuid }], who)) as string;
}

const cancel = (uuid: string, who: CallOptions) =>
	fixture.call("eth_cancelBundle", [{ replacementUuid: uuid }], who);
const empty = (uuid: string, who: CallOptions) =>
	fixture.call("eth_sendBundle", [{ txs: [], replacementUuid: uuid }], who);

/** Pairs of clients that must never meet, however alike they look. */
const STRANGERS: readonly (readonly [string, CallOptions, CallOptions])[] = [
	["two addresses", HERE, THERE],
	["two signers behind one address", { ...HERE, key: KEY_A }, { ...HERE, key: KEY_B }],
	["a signer and the unsigned behind one address", { ...HERE, key: KEY_A }, HERE],
	["the unsigned and a signer behind one address", HERE, { ...HERE, key: KEY_A }],
	["one who visits a web page, and the page", HERE, { ...HERE, origin: PAGE }],
	["one who visits a web page, and the page in a sandboxed frame", HERE, { ...HERE, origin: "null" }],
];

for (const [name, own, other] of STRANGERS) {
	test(`${name}: one uuid names a bundle of each`, async () => {
		const target = await fixture.target(fresh());
		const mine = await bid(target, "shared uuid", own, 2_000n);
		const theirs = await bid(target, "shared uuid", other, 1_000n);
		assert.deepEqual(await fixture.stages(mine, own), ["BEST"]);
		assert.deepEqual(await fixture.stages(theirs, other), ["OUTBID"]);
		assert.equal(await cancel("shared uuid", other), 200);
		assert.equal(await empty("shared uuid", other), NO_BUNDLE);
		assert.deepEqual(await fixture.stages(mine, own), ["BEST"]);
		assert.equal(await cancel("shared uuid", own), 200);
		assert.deepEqual(await fixture.stages(mine, own), ["CANCELLED"]);
	});

	test(`${name}: the status is for the one that sent it`, async () => {
		const target = await fixture.target(fresh());
		const mine = await bid(target, null, own);
		const { status, body } = await fixture.bundle(mine, own);
		assert.equal(status, 200);
		assert.deepEqual(
			[(body as { bundleHash: string }).bundleHash, (body as { target: string }).target],
			[mine, target],
		);
		const unknown = await fixture.bundle(`0x${"77".repeat(32)}`, other);
		assert.equal(unknown.status, 404);
		assert.deepEqual(await fixture.bundle(mine, other), unknown);
	});
}

test("a signer is known by the key alone, whatever the address", async () => {
	const target = await fixture.target(fresh());
	const hash = await bid(target, "signed", { ...HERE, key: KEY_A });
	assert.deepEqual(await fixture.stages(hash, { ...THERE, key: KEY_A }), ["BEST"]);
	assert.equal(await cancel("signed", { ...THERE, key: KEY_A, origin: PAGE }), 200);
	assert.deepEqual(await fixture.stages(hash, { ...THERE, key: KEY_A }), ["CANCELLED"]);
});

test("the unsigned behind one address share their uuids, over HTTP and websockets", async () => {
	const target = await fixture.target(fresh());
	const headers = { "x-forwarded-for": HERE.from ?? "" };
	const client = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`, { headers });
	const { raw } = backrunBy(fresh(), 5n);
	client.send({ id: 1, method: "eth_sendBundle", params: [{ txs: [target, raw], replacementUuid: "both" }] });
	const hash = String((await client.next()).result);
	assert.deepEqual(await fixture.stages(hash, HERE), ["BEST"]);
	const better = await bid(target, "both", HERE, 4n);
	assert.deepEqual(
		[await fixture.stages(hash, HERE), await fixture.stages(better, HERE)],
		[["REPLACED"], ["BEST"]],
	);
	client.send({ id: 2, method: "eth_cancelBundle", params: [{ replacementUuid: "both" }] });
	assert.equal((await client.next()).result, 200);
	assert.deepEqual(await fixture.stages(better, HERE), ["CANCELLED"]);
	client.terminate();
});

test("a websocket that a web page has opened cancels nothing of its visitor's", async () => {
	const target = await fixture.target(fresh());
	const hash = await bid(target, "visited", HERE);
	const headers = { "x-forwarded-for": HERE.from ?? "" };
	const page = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`, { headers, origin: PAGE });
	const stranger = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`);
	for (const params of [[{ replacementUuid: "visited" }], [{ replacementUuid: "never there" }]]) {
		for (const client of [page, stranger]) {
			client.send({ id: 1, method: "eth_cancelBundle", params });
			assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 1, result: 200 });
			client.send({ id: 2, method: "eth_sendBundle", params: [{ txs: [], ...params[0] }] });
			assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 2, result: NO_BUNDLE });
		}
	}
	assert.deepEqual(await fixture.stages(hash, HERE), ["BEST"]);
	page.terminate();
	stranger.terminate();
});

test("an extension, and what sends no Origin, may cancel", async () => {
	for (const origin of [
		"chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn",
		"moz-extension://0",
		undefined,
	]) {
		const target = await fixture.target(fresh());
		const hash = await bid(target, "wallet", HERE);
		assert.equal(await empty("wallet", { ...HERE, ...(origin === undefined ? {} : { origin }) }), NO_BUNDLE);
		assert.deepEqual(await fixture.stages(hash, HERE), ["CANCELLED"]);
	}
});

test("a uuid names one bundle of its client, whatever its target", async () => {
	const [first, second] = [await fixture.target(fresh()), await fixture.target(fresh())];
	const old = await bid(first, "one", HERE);
	const fresher = await bid(second, "one", HERE);
	assert.deepEqual(await fixture.stages(old, HERE), ["REPLACED"]);
	assert.deepEqual(await fixture.stages(fresher, HERE), ["BEST"]);
});

test("a status asked for with a signature over anything but the hash is refused", async () => {
	const target = await fixture.target(fresh());
	const hash = await bid(target, null, { ...HERE, key: KEY_A });
	for (const text of ["", hash.toUpperCase(), target]) {
		const headers = { "x-flashbots-signature": createBodySigner(KEY_A).sign(text) };
		const response = await fetch(`${fixture.system.client.url}/bundle/${hash}`, { headers });
		assert.equal(response.status, 400);
		assert.match(await response.text(), /X-Flashbots-Signature does not verify: mismatch/);
	}
});

test("no client's uuid goes out to a builder", async () => {
	await until("a bundle of two delivered", () =>
		fixture.system.builder
			.requests("eth_sendBundle")
			.some(({ params }) => (params as [{ txs: unknown[] }])[0].txs.length === 2),
	);
	const sent = JSON.stringify(fixture.system.builder.requests());
	for (const uuid of ["shared uuid", "signed", "both", "visited", "wallet"])
		assert.ok(!sent.includes(`"${uuid}"`), uuid);
});
