// Ownership of bundles on a running relay: a uuid, a cancel and a status belong to the client that
// sent the bundle, identified by signature or network address, whatever a client forges, spells
// otherwise or makes collide.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import {
	type BiddingFixture,
	backrunBy,
	type CallOptions,
	signedBy,
	startBidding,
} from "../../support/biddingFixture.ts";
import { WsClient } from "../../support/clients.ts";
import { FeedClient } from "../../support/feeds.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { until } from "../../support/until.ts";

const KEY_A = `0x${"a1".repeat(32)}`;
const KEY_B = `0x${"b2".repeat(32)}`;
const HERE = { from: "198.51.100.1" };
const THERE = { from: "198.51.100.2" };
const A: CallOptions = { ...HERE, key: KEY_A };
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

/** Posts `body` as it is, with this signature. */
async function post(body: string, signature: string): Promise<WireAnswer> {
	const headers = { "content-type": "application/json", "x-flashbots-signature": signature };
	const response = await fetch(`${fixture.system.client.url}/`, { method: "POST", headers, body });
	const answer = (await response.json()) as WireAnswer | readonly [WireAnswer];
	return "id" in answer ? answer : answer[0];
}

const cancelBody = (uuid: string, id = 1) =>
	JSON.stringify({ jsonrpc: "2.0", id, method: "eth_cancelBundle", params: [{ replacementUuid: uuid }] });
const cancel = (uuid: string, who: CallOptions) =>
	fixture.call("eth_cancelBundle", [{ replacementUuid: uuid }], who);
const empty = (uuid: string, who: CallOptions) =>
	fixture.call("eth_sendBundle", [{ txs: [], replacementUuid: uuid }], who);

/** Pairs of clients that must never meet, however alike they look. */
const STRANGERS: readonly (readonly [string, CallOptions, CallOptions])[] = [
	["two addresses", HERE, THERE],
	["two signers behind one address", A, { ...HERE, key: KEY_B }],
	["a signer and the unsigned behind one address", A, HERE],
	["the unsigned and a signer behind one address", HERE, A],
	["one who visits a web page, and the page", HERE, { ...HERE, origin: PAGE }],
	["one who visits a web page, and the page in a sandboxed frame", HERE, { ...HERE, origin: "null" }],
];

for (const [name, own, other] of STRANGERS) {
	test(`${name}: one uuid names a different bundle of each, whose status only its sender gets`, async () => {
		const target = await fixture.target(fresh());
		const mine = await bid(target, "shared uuid", own, 2_000n);
		const theirs = await bid(target, "shared uuid", other, 1_000n);
		assert.deepEqual(await fixture.stages(mine, own), ["ACCEPTED"]);
		assert.deepEqual(await fixture.stages(theirs, other), ["ACCEPTED"]);
		const { bundleHash, target: on } = (await fixture.bundle(mine, own)).body as Record<string, unknown>;
		assert.deepEqual([bundleHash, on], [mine, target]);
		const unknown = await fixture.bundle(`0x${"77".repeat(32)}`, other);
		assert.equal(unknown.status, 404);
		assert.deepEqual(await fixture.bundle(mine, other), unknown);
		assert.equal(await cancel("shared uuid", other), 200);
		assert.equal(await empty("shared uuid", other), NO_BUNDLE);
		assert.deepEqual(await fixture.stages(mine, own), ["ACCEPTED"]);
		assert.equal(await cancel("shared uuid", own), 200);
		assert.deepEqual(await fixture.stages(mine, own), ["CANCELLED"]);
	});
}

test("a signer is known by the key alone, in whatever case, whatever the address", async () => {
	const target = await fixture.target(fresh());
	const hash = await bid(target, "signed", A);
	assert.deepEqual(await fixture.stages(hash, { ...THERE, key: KEY_A }), ["ACCEPTED"]);
	assert.equal(await cancel("signed", { ...THERE, key: KEY_A, origin: PAGE }), 200);
	assert.deepEqual(await fixture.stages(hash, { ...THERE, key: KEY_A }), ["CANCELLED"]);
	const again = await bid(target, "cased", A);
	const [address = "", signature = ""] = createBodySigner(KEY_A).sign(cancelBody("cased")).split(":");
	const shouted = `0x${address.slice(2).toUpperCase()}:0x${signature.slice(2).toUpperCase()}`;
	assert.equal((await post(cancelBody("cased"), shouted)).result, 200);
	assert.deepEqual(await fixture.stages(again, A), ["CANCELLED"]);
});

test("unsigned clients behind one address share their uuids, over HTTP and websockets", async () => {
	const target = await fixture.target(fresh());
	const headers = { "x-forwarded-for": HERE.from };
	const client = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`, { headers });
	const { raw } = backrunBy(fresh(), 5n);
	client.send({ id: 1, method: "eth_sendBundle", params: [{ txs: [target, raw], replacementUuid: "both" }] });
	const hash = String((await client.next()).result);
	assert.deepEqual(await fixture.stages(hash, HERE), ["ACCEPTED"]);
	const better = await bid(target, "both", HERE, 4n);
	assert.deepEqual(
		[await fixture.stages(hash, HERE), await fixture.stages(better, HERE)],
		[["REPLACED"], ["ACCEPTED"]],
	);
	client.send({ id: 2, method: "eth_cancelBundle", params: [{ replacementUuid: "both" }] });
	assert.equal((await client.next()).result, 200);
	assert.deepEqual(await fixture.stages(better, HERE), ["CANCELLED"]);
	client.terminate();
});

test("a websocket that a web page has opened cancels nothing of its visitor's", async () => {
	const target = await fixture.target(fresh());
	const hash = await bid(target, "visited", HERE);
	const headers = { "x-forwarded-for": HERE.from };
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
	assert.deepEqual(await fixture.stages(hash, HERE), ["ACCEPTED"]);
	page.terminate();
	stranger.terminate();
});

test("an extension, and a client without an Origin header, may cancel", async () => {
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

test("a status asked for with a signature over anything but the hash is refused", async () => {
	const target = await fixture.target(fresh());
	const hash = await bid(target, null, A);
	for (const text of ["", hash.toUpperCase(), target]) {
		const headers = { "x-flashbots-signature": createBodySigner(KEY_A).sign(text) };
		const response = await fetch(`${fixture.system.client.url}/bundle/${hash}`, { headers });
		assert.equal(response.status, 400);
		assert.match(await response.text(), /X-Flashbots-Signature does not verify: mismatch/);
	}
});

test("a signature over another body cancels nothing, and is refused", async () => {
	const bundle = await bid(await fixture.target(fresh()), "replayed", A);
	const seen = createBodySigner(KEY_A).sign(cancelBody("another"));
	for (const body of [
		cancelBody("replayed"),
		cancelBody("another", 2),
		`${cancelBody("another")} `,
		`[${cancelBody("replayed")}]`,
	]) {
		const answer = await post(body, seen);
		assert.equal(answer.error?.code, -32_600, body);
		assert.equal(answer.result, undefined);
	}
	assert.deepEqual(await fixture.stages(bundle, A), ["ACCEPTED"]);
});

test("a signature header whose address is not the signer's, or without a signature, is refused", async () => {
	const bundle = await bid(await fixture.target(fresh()), "claimed", A);
	const body = cancelBody("claimed");
	const [a, b] = [createBodySigner(KEY_A), createBodySigner(KEY_B)];
	const [, signature = ""] = b.sign(body).split(":");
	const own = a.sign(body);
	const headers = [
		`${a.address}:${signature}`,
		`${a.address}:0x${"00".repeat(65)}`,
		`${a.address}:0x`,
		`${a.address}:`,
		a.address,
		`${own}00`,
		`${own},${own}`,
		` ${own} x`,
		highTwin(own),
		"",
	];
	for (const header of headers) {
		const { error } = await post(body, header);
		assert.equal(error?.code, -32_600, header);
	}
	assert.deepEqual(await fixture.stages(bundle, A), ["ACCEPTED"]);
	assert.equal((await post(body, own)).result, 200);
	assert.deepEqual(await fixture.stages(bundle, A), ["CANCELLED"]);
});

test("one IP address is one client however it is written, and nothing else is an address", async () => {
	const bundle = await bid(await fixture.target(fresh()), "mapped", HERE);
	const stage = (from: string) => fixture.bundle(bundle, { from }).then(({ status }) => status);
	for (const same of [
		"::ffff:198.51.100.1",
		"::FFFF:198.51.100.1",
		"::ffff:c633:6401",
		"[::ffff:c633:6401]:443",
		"64:ff9b::198.51.100.1",
		"198.51.100.1:80",
		" 198.51.100.1 ",
	]) {
		assert.equal(await stage(same), 200, same);
	}
	const others = [
		"198.51.100.10",
		"::198.51.100.1",
		"64:ff9b:1::198.51.100.1",
		"198.51.100.1, 203.0.113.9",
		"198.051.100.001",
		"web 198.51.100.1",
		"198.51.100.1\t198.51.100.1",
		"unknown",
		"",
	];
	for (const other of others) {
		assert.equal(await stage(other), 404, other);
		await cancel("mapped", { from: other });
	}
	// An invalid address counts as absent: the connection's own is used, whatever the header claims.
	assert.deepEqual(await fixture.stages(bundle, HERE), ["ACCEPTED"]);
	await cancel("mapped", { from: "::FFFF:198.51.100.1" });
	assert.deepEqual(await fixture.stages(bundle, HERE), ["CANCELLED"]);
});

test("an IPv6 address is a client, not its network", async () => {
	const [one, other] = [{ from: "2001:db8::1" }, { from: "2001:db8::2" }];
	const bundle = await bid(await fixture.target(fresh()), "six", one);
	await cancel("six", other);
	assert.equal((await fixture.bundle(bundle, other)).status, 404);
	assert.deepEqual(await fixture.stages(bundle, { from: "2001:0DB8:0:0::0001" }), ["ACCEPTED"]);
});

test("an address that looks like the key of a signer or web page counts as neither", async () => {
	const bundle = await bid(await fixture.target(fresh()), "impostor", A);
	const { address } = createBodySigner(KEY_A);
	const visited = await bid(await fixture.target(fresh()), "impostor", { ...HERE, origin: PAGE });
	for (const from of [address, address.toUpperCase(), `web ${HERE.from}`, `[${address}]`]) {
		await cancel("impostor", { from });
		assert.equal((await fixture.bundle(bundle, { from })).status, 404);
		assert.equal((await fixture.bundle(visited, { from })).status, 404);
	}
	assert.deepEqual(await fixture.stages(bundle, A), ["ACCEPTED"]);
});

test("a websocket belongs to its address: an upgrade with a signature is refused, not accepted unsigned", async () => {
	const bundle = await bid(await fixture.target(fresh()), "socket", A);
	const url = `ws://127.0.0.1:${fixture.system.relay.port}/`;
	for (const text of [cancelBody("socket"), bundle, ""]) {
		const headers = { "x-flashbots-signature": createBodySigner(KEY_A).sign(text) };
		assert.equal((await WsClient.refused(url, { headers })).status, 400);
	}
	const socket = await FeedClient.open(url, { headers: { "x-forwarded-for": HERE.from } });
	assert.equal(await socket.call("eth_cancelBundle", [{ replacementUuid: "socket" }]), 200);
	assert.equal(await socket.call("eth_sendBundle", [{ txs: [], replacementUuid: "socket" }]), NO_BUNDLE);
	const id = await socket.subscribe("service_bundleStatus", bundle);
	assert.equal(await socket.call("eth_unsubscribe", [id]), true);
	assert.deepEqual(socket.received(id), []);
	socket.close();
	assert.deepEqual(await fixture.stages(bundle, A), ["ACCEPTED"]);
});

test("uuids that look alike, or like keys of ours, are different ones", async () => {
	const target = await fixture.target(fresh());
	const words = `x|x |X|ｘ|é|e\u0301|\u0000|\u0000\u0000|\ufffd|\\ud800|\u200b|__proto__|constructor|toString|","x|x"]|null`;
	const keys = ['["198.51.100.1","x"]', "198.51.100.1 x"];
	const long = ["😀".repeat(256), `${"😀".repeat(255)}😁`, "a".repeat(256)];
	const uuids = [...words.split("|"), ...keys, ...long];
	const sent: string[] = [];
	for (const uuid of uuids) sent.push(await bid(target, uuid, HERE));
	for (const bundle of sent) assert.deepEqual(await fixture.stages(bundle, HERE), ["ACCEPTED"]);
	// Two of them could become one on their way through UTF-8.
	for (const half of ["\ud800", "x\udfff"]) await assert.rejects(bid(target, half, HERE), /-32602/);
	for (const [i, bundle] of sent.entries()) {
		const uuid = uuids[i] ?? "";
		const isEnded = async () => (await fixture.stages(bundle, HERE)).join() === "CANCELLED";
		await cancel(uuid, THERE);
		// A cancel of another uuid that was taken for this one would have ended it.
		assert.equal(await isEnded(), false, JSON.stringify(uuid.slice(0, 20)));
		await cancel(uuid, HERE);
		assert.equal(await isEnded(), true, JSON.stringify(uuid.slice(0, 20)));
	}
});

test("the same backrun from another client is a bundle of its own: neither ends the other's", async () => {
	const target = await fixture.target(fresh());
	const params = [{ txs: [target, backrunBy(fresh(), 1_000n).raw], replacementUuid: "twin" }];
	const bundle = String(await fixture.call("eth_sendBundle", params, HERE));
	assert.equal(await fixture.call("eth_sendBundle", params, THERE), bundle);
	const stages = async () => [await fixture.stages(bundle, HERE), await fixture.stages(bundle, THERE)];
	assert.deepEqual(await stages(), [["ACCEPTED"], ["ACCEPTED"]]);
	await cancel("twin", THERE);
	assert.deepEqual(await stages(), [["ACCEPTED"], ["CANCELLED"]]);
});

test("plain bundles under one uuid are each client's own, here and at the builder", async () => {
	const block = `0x${((await fixture.head()) + 1).toString(16)}`;
	const send = async (who: CallOptions) => {
		const tx = signedBy(fresh(), { value: 9n });
		const bundle = {
			version: "v0.1",
			inclusion: { block },
			body: [{ tx: tx.raw, canRevert: false }],
			replacementUuid: "plain",
		};
		const { bundleHash } = (await fixture.call("mev_sendBundle", [bundle], who)) as { bundleHash: string };
		return { ...tx, bundleHash };
	};
	const all = [await send(A), await send(HERE), await send(THERE), await send({ ...HERE, key: KEY_B })];
	const [a, here, there] = all;
	assert.ok(a !== undefined && here !== undefined && there !== undefined);
	const uuidOf = (raw: string) =>
		until("the builder has it", () =>
			fixture.system.builder
				.requests("eth_sendBundle")
				.map(({ params }) => params[0] as { txs: string[]; replacementUuid: string })
				.find(({ txs }) => txs.includes(raw)),
		).then(({ replacementUuid }) => replacementUuid);
	assert.equal(new Set(await Promise.all(all.map(({ raw }) => uuidOf(raw)))).size, 4);
	await cancel("plain", THERE);
	assert.deepEqual(await fixture.stages(there.bundleHash, THERE), ["CANCELLED"]);
	assert.deepEqual(await fixture.stages(here.bundleHash, HERE), ["SENT"]);
	assert.deepEqual(await fixture.stages(a.bundleHash, A), ["SENT"]);
	assert.equal((await fixture.bundle(a.bundleHash, THERE)).status, 404);
	assert.equal((await fixture.bundle(a.bundleHash, { ...HERE, key: KEY_B })).status, 404);
	await until("the cancel is with the builder", () =>
		fixture.system.builder
			.orders()
			.some(
				({ state, transactions }) => state !== "live" && transactions.some(({ hash }) => hash === there.hash),
			),
	);
	await fixture.system.nextBlock();
	const found = await Promise.all(
		all.map(({ hash }) => fixture.system.chain.rpc("eth_getTransactionReceipt", [hash])),
	);
	assert.deepEqual(
		found.map((receipt) => receipt !== null),
		[true, true, false, true],
	);
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

/**
 * The same signature with s in the other half of the curve's order, and the other parity: it
 * verifies elsewhere.
 */
function highTwin(header: string): string {
	const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
	const s = order - BigInt(`0x${header.slice(109, 173)}`);
	const v = header.endsWith("1b") ? "1c" : "1b";
	return `${header.slice(0, 109)}${s.toString(16).padStart(64, "0")}${v}`;
}
