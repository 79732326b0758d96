// Tests client identity behind boost. The relay judges cancels and uuids by boost's clients, not by
// boost, whatever they claim of themselves. Boost keeps the same policy while the relay is down.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import {
	BOOST_SECRET,
	type BoostClient,
	type BoostFixture,
	type Reply,
	startBoostFixture,
} from "../../support/boostFixture.ts";
import { WsClient } from "../../support/clients.ts";
import { RelayClient, type WireAnswer } from "../../support/relayClient.ts";
import type { Actor, Signed } from "../../support/relayFixture.ts";
import { cancelSignature } from "../../support/typedSignatures.ts";
import { until } from "../../support/until.ts";

type Env = Readonly<Record<string, string>>;

const HERE: Env = { "x-forwarded-for": "198.51.100.1" };
const THERE: Env = { "x-forwarded-for": "198.51.100.2" };
const PAGE: Env = { origin: "https://app.example" };
const STRANGER = `0x${"b2".repeat(32)}`;
const UNKNOWN = `0x${"ee".repeat(32)}`;
const NOT_PENDING = {
	code: -32000,
	message:
		"transaction not found or no longer pending; if you sent it from another network or a web page, sign the request with the sender's key",
};

const WHILE_OUT = {
	code: -32000,
	message: `${NOT_PENDING.message}; the relay, which may know it, is down: cancel it again when the relay is back`,
};

let fixture: BoostFixture;
/** Behind one proxy, which names the client. */
let boost: BoostClient;
before(async () => {
	fixture = await startBoostFixture({ boost: { TRUST_PROXY: "1" } });
	boost = fixture.boost;
	const never = { hash: `0x${"0e".repeat(32)}` };
	await until("the relay judges", async () =>
		isDeepStrictEqual(outcome(await cancel(never, HERE)), NOT_PENDING),
	);
});
after(() => fixture?.stop());

/** Submitted from `HERE`. */
async function held(
	path = "/fast",
	by = boost,
): Promise<{ readonly actor: Actor; readonly tx: Signed; readonly key: string }> {
	const actor = await fixture.users.actor();
	const tx = actor.sign();
	await by.result("eth_sendRawTransaction", [tx.raw], { path, headers: HERE });
	return { actor, tx, key: actor.account.keyHex };
}

const cancelCall = ({ hash }: Pick<Signed, "hash">) => ({
	jsonrpc: "2.0",
	id: 1,
	method: "eth_cancelTransaction",
	params: [hash],
});

/** Signs `body` by `key` in its header. */
function signature(body: unknown, key: string): Env {
	return { "x-flashbots-signature": createBodySigner(key).sign(JSON.stringify(body)) };
}

function cancel(tx: Pick<Signed, "hash">, headers: Env, path = "/fast", by = boost): Promise<Reply> {
	return by.post(cancelCall(tx), { path, headers });
}

function outcome({ json }: Reply): unknown {
	const { result, error } = json as WireAnswer;
	return error ?? result;
}

/** Ways of asking, and whether they may. */
const WAYS: readonly (readonly [who: string, ask: (tx: Signed, key: string) => Env, may: boolean])[] = [
	["the address that submitted it", () => HERE, true],
	["that address written otherwise", () => ({ "x-forwarded-for": "::ffff:198.51.100.1" }), true],
	["an extension at that address", () => ({ ...HERE, origin: "chrome-extension://nkbihfbeogaeaoehl" }), true],
	[
		"the sender's signature from elsewhere",
		(tx, key) => ({ ...THERE, ...signature(cancelCall(tx), key) }),
		true,
	],
	[
		"the sender's signature from a web page",
		(tx, key) => ({ ...THERE, ...PAGE, ...signature(cancelCall(tx), key) }),
		true,
	],
	["another address", () => THERE, false],
	["nobody in particular", () => ({}), false],
	["a web page at that address", () => ({ ...HERE, ...PAGE }), false],
	["a sandboxed page there", () => ({ ...HERE, origin: "null" }), false],
	["a stranger's signature", (tx) => ({ ...THERE, ...signature(cancelCall(tx), STRANGER) }), false],
	["an address behind another one", () => ({ "x-forwarded-for": "198.51.100.1, 198.51.100.2" }), false],
	["a claim to be boost", () => ({ ...THERE, "x-boost-auth": "guessed" }), false],
	["the right secret", () => ({ ...THERE, "x-boost-auth": BOOST_SECRET }), false],
	[
		"who names himself the signer",
		() => ({ ...THERE, "x-boost-auth": BOOST_SECRET, "x-boost-signer": "FROM" }),
		false,
	],
	[
		"other names for a client",
		() => ({ ...THERE, forwarded: "for=198.51.100.1", "x-real-ip": "198.51.100.1" }),
		false,
	],
];

function asked(ask: (typeof WAYS)[number][1], tx: Signed, key: string): Env {
	return Object.fromEntries(
		Object.entries(ask(tx, key)).map(([name, value]) => [name, value.replace("FROM", tx.from)]),
	);
}

describe("while the relay is healthy", () => {
	for (const [who, ask, may] of WAYS) {
		it(`${who} ${may ? "may" : "may not"} cancel`, async () => {
			for (const path of ["/fast", "/fullprivacy"]) {
				const { tx, key } = await held(path);
				assert.deepEqual(outcome(await cancel(tx, asked(ask, tx, key))), may ? true : NOT_PENDING, path);
				const stage = await fixture.system.client.stage(tx.hash);
				assert.equal(stage === "CANCELLED", may, `${path}: ${stage}`);
			}
		});
	}

	it("direct submissions don't belong to boost's clients, and boost's don't belong to the relay's direct clients", async () => {
		const actor = await fixture.users.actor();
		const [own, other] = [actor.sign(), actor.sign({ nonce: 1 })];
		await fixture.users.submit("/fast", own);
		assert.deepEqual(outcome(await cancel(own, HERE)), NOT_PENDING);
		await boost.result("eth_sendRawTransaction", [other.raw], { headers: HERE });
		const { error } = await fixture.system.client.ask("eth_cancelTransaction", [other.hash]);
		assert.deepEqual(error, NOT_PENDING);
		assert.equal(await fixture.system.client.call("eth_cancelTransaction", [own.hash]), true);
		assert.deepEqual(outcome(await cancel(other, HERE)), true);
	});

	it("each call of a signed batch belongs to the signer, although boost rewrites it", async () => {
		const { actor, tx, key } = await held();
		const next = actor.sign({ nonce: 1 });
		const other = await held();
		const batch = [
			{ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [next.raw] },
			{ ...cancelCall(next), id: 2 },
			{ ...cancelCall(tx), id: 3 },
			{ ...cancelCall(other.tx), id: 4 },
		];
		const forged = await boost.post(batch.slice(2), { headers: { ...THERE, ...signature(batch, STRANGER) } });
		assert.deepEqual(
			(forged.json as WireAnswer[]).map(({ error }) => error?.code),
			[-32600, -32600],
			"a signature of another body",
		);
		const reply = await boost.post(batch, { headers: { ...THERE, ...signature(batch, key) } });
		assert.deepEqual(
			(reply.json as WireAnswer[]).map(({ result, error }) => error ?? result),
			[next.hash, true, true, NOT_PENDING],
		);
		await fixture.users.reaches(other.tx, "BROADCAST");
	});

	it("a parameter that the sender has signed is good from anywhere: by HTTP, in batches and over websockets", async () => {
		const call = async ({ tx, key }: Awaited<ReturnType<typeof held>>, id: number, by = key) => ({
			...cancelCall(tx),
			id,
			params: [tx.hash, await cancelSignature(by, tx.hash)],
		});
		const all = [await held(), await held("/fullprivacy"), await held(), await held("/noreverts")] as const;
		const [one, hidden, other, last] = all;
		for (const path of ["/fast", "/fullprivacy"]) {
			const strange = await boost.post(await call(one, 1, STRANGER), { path, headers: THERE });
			assert.deepEqual(outcome(strange), NOT_PENDING);
		}
		const bad = await boost.call("eth_cancelTransaction", [one.tx.hash, `0x${"00".repeat(65)}`]);
		assert.equal((outcome(bad) as { code: number }).code, -32602);
		assert.equal(outcome(await boost.post(await call(one, 1), { headers: THERE })), true);
		assert.equal(outcome(await boost.post(await call(one, 1), { headers: THERE })), true, "again");
		const batch = [await call(hidden, 1), await call(other, 2), await call(last, 3, STRANGER)];
		const reply = await boost.post(batch, { headers: { ...THERE, ...PAGE } });
		assert.deepEqual(
			(reply.json as WireAnswer[]).map(({ result, error }) => error ?? result),
			[true, true, NOT_PENDING],
		);
		const client = await WsClient.open(`${boost.url.replace("http", "ws")}/`, { headers: THERE });
		client.send(await call(last, 7));
		assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 7, result: true });
		client.terminate();
		for (const { tx } of all) assert.equal(await fixture.system.client.stage(tx.hash), "CANCELLED");
	});

	it("a signature that does not verify is refused as by the relay, before anything is done", async () => {
		const { tx } = await held();
		const { error } = (await cancel(tx, { ...HERE, "x-flashbots-signature": "0x" })).json as WireAnswer;
		assert.equal(error?.code, -32600);
		assert.equal(error?.message, "invalid request: X-Flashbots-Signature does not verify: malformed");
		assert.notEqual(await fixture.system.client.stage(tx.hash), "CANCELLED");
	});

	it("the relay gets one address and the secret, and no address headers of the client", async () => {
		const claims = {
			...{
				"x-forwarded-for": "203.0.113.9, 198.51.100.1",
				"x-boost-auth": "mine",
				"x-boost-signer": STRANGER,
			},
			...{ forwarded: "for=203.0.113.9", "x-real-ip": "203.0.113.9", "x-forwarded-host": "evil.example" },
		};
		const since = fixture.wires.relay.requests().length;
		const { tx, key } = await held();
		const signed = { ...claims, ...signature([cancelCall(tx)], key) };
		await boost.call("eth_sendRawTransaction", [tx.raw], { headers: claims });
		await boost.call("eth_chainId", [], { headers: claims });
		await boost.call("eth_chainId", [], { headers: claims, path: "/fullprivacy" });
		await boost.send({ verb: "GET", path: "/info", headers: claims });
		await boost.post([cancelCall(tx)], { headers: signed });
		// Boost asks questions of its own besides.
		const asked = ["eth_sendRawTransaction", "eth_chainId", "eth_cancelTransaction"];
		const sent = fixture.wires.relay
			.requests()
			.slice(since)
			.filter(({ target, headers, calls: [call] }) =>
				call === undefined
					? target === "/info"
					: asked.includes(call.method) && headers["x-forwarded-for"] !== undefined,
			);
		assert.equal(sent.length, 6);
		for (const { target, headers } of sent) {
			assert.equal(headers["x-forwarded-for"], "198.51.100.1", target);
			assert.equal(headers["x-boost-auth"], BOOST_SECRET, target);
			for (const name of ["forwarded", "x-real-ip", "x-forwarded-host"])
				assert.equal(headers[name], undefined);
		}
		const signers = sent.map(({ headers }) => headers["x-boost-signer"]);
		assert.deepEqual(signers.slice(0, 5), Array(5).fill(undefined));
		assert.equal(signers[5], tx.from, "of what was signed and is written anew");
	});

	it("reads of a status are charged to the client, not to boost", async () => {
		const { tx } = await held();
		const since = fixture.wires.relay.requests().length;
		await boost.send({ verb: "GET", path: `/tx/${tx.hash}`, headers: HERE });
		const [read] = fixture.wires.relay
			.requests()
			.slice(since)
			.filter(({ target }) => target === `/tx/${tx.hash}`);
		assert.equal(read?.headers["x-forwarded-for"], "198.51.100.1");
		assert.equal(read?.headers["x-boost-auth"], BOOST_SECRET);
	});

	it("a transaction that comes to the relay behind boost's cancel of it is never sent", async () => {
		const relay = (headers: Env) => new RelayClient(fixture.system.client.url, { ...HERE, ...headers });
		for (const [secret, ends] of [
			[BOOST_SECRET, true],
			["a guess", false],
		] as const) {
			const tx = (await fixture.users.actor()).sign();
			const carried = { "x-boost-ends": `cancels ${tx.hash} ${tx.from} 0 ${STRANGER.slice(0, 42)} 21000 0` };
			const auth = { "x-boost-auth": secret };
			const cancelled = await relay({ ...auth, ...carried }).ask("eth_cancelTransaction", [tx.hash]);
			if (ends) assert.equal(cancelled.result, true);
			else assert.deepEqual(cancelled.error, NOT_PENDING);
			assert.equal(await relay(auth).send(tx.raw), tx.hash);
			// When a later one is sent, all that was due before it has been sent too.
			const later = ends ? (await fixture.users.actor()).sign() : tx;
			if (ends) await relay(auth).send(later.raw);
			await fixture.users.waitUntilSent(later);
			if (!ends) continue;
			const { builders, client } = fixture.system;
			for (const builder of builders) assert.deepEqual(fixture.users.deliveries(builder, tx), []);
			assert.equal(await client.stage(tx.hash), "CANCELLED");
			assert.equal(await relay({ ...auth, ...carried }).call("eth_cancelTransaction", [tx.hash]), true);
		}
	});

	it("a bundle's uuid belongs to the client", async () => {
		const target = (await fixture.users.actor()).sign();
		await boost.result("eth_sendRawTransaction", [target.raw], { path: "/maxbackruns", headers: HERE });
		const pays = { to: null, data: "0x600034808080414af100", value: 5_000n };
		const raws = [(await fixture.users.actor()).sign(pays).raw, (await fixture.users.actor()).sign(pays).raw];
		const bid = (raw: string | undefined, headers: Env) =>
			boost.call("eth_sendBundle", [{ txs: [target.hash, raw], replacementUuid: "u" }], { headers });
		const hashes: unknown[] = [];
		for (const [i, headers] of [HERE, THERE].entries()) hashes.push(outcome(await bid(raws[i], headers)));
		for (const hash of hashes) assert.match(String(hash), /^0x[0-9a-f]{64}$/);
		const page = (hash: unknown, headers: Env) =>
			boost.send({ verb: "GET", path: `/bundle/${hash}`, headers });
		assert.deepEqual(
			[(await page(hashes[0], HERE)).status, (await page(hashes[0], THERE)).status],
			[200, 404],
		);
		assert.equal(
			outcome(await boost.call("eth_cancelBundle", [{ replacementUuid: "u" }], { headers: THERE })),
			200,
		);
		const [mine, theirs] = [await page(hashes[0], HERE), await page(hashes[1], THERE)];
		assert.match(theirs.body, /CANCELLED/);
		assert.doesNotMatch(mine.body, /CANCELLED/);
	});
});

describe("without a trusted proxy", () => {
	it("a client's own claims about its address are ignored", async () => {
		const bare = await fixture.startBoost({ env: { TRUST_PROXY: "0" } });
		const { tx } = await held("/fast", bare);
		assert.deepEqual(outcome(await cancel(tx, THERE, "/fast", bare)), true, "both come from this machine");
		const { tx: other } = await held();
		assert.deepEqual(outcome(await cancel(other, HERE, "/fast", bare)), NOT_PENDING);
		await bare.stop();
	});
});

describe("if the relay has another secret, and believes boost nothing about its clients", () => {
	it("strangers still may not cancel, and owners receive the reason", async () => {
		const unknown = await fixture.startBoost({ env: { BOOST_SECRET: "another one" } });
		const [first, second] = [await held("/fast", unknown), await held("/fast", unknown)];
		assert.deepEqual(
			outcome(await cancel(first.tx, THERE, "/fast", unknown)),
			outcome(await cancel({ hash: UNKNOWN }, THERE, "/fast", unknown)),
		);
		const signed = { ...THERE, ...signature(cancelCall(second.tx), second.key) };
		for (const [{ tx }, headers] of [
			[first, THERE],
			[first, HERE],
			[second, signed],
		] as const) {
			const { message } = outcome(await cancel(tx, headers, "/fast", unknown)) as { message: string };
			assert.match(message, /^no relay available: the relay does not trust boost's client addresses/);
			assert.notEqual(await fixture.system.client.stage(tx.hash), "CANCELLED");
		}
		await unknown.stop();
	});
});

describe("while the relay is down", () => {
	let txs: readonly { readonly tx: Signed; readonly key: string }[];
	let older: { readonly tx: Signed; readonly key: string };
	before(async () => {
		older = await held();
		await fixture.fails();
		txs = await Promise.all(WAYS.map(() => held()));
		await boost.reaches("the relay's transactions are failed over", ({ journal }) => {
			return journal.held.fallback >= WAYS.length + 1;
		});
	});
	after(() => fixture.recovers());

	for (const [i, [who, ask, may]] of WAYS.entries()) {
		it(`${who} ${may ? "may" : "may not"} cancel`, async () => {
			const { tx, key } = txs[i] ?? older;
			assert.deepEqual(outcome(await cancel(tx, asked(ask, tx, key))), may ? true : WHILE_OUT);
			const other = { ...tx, hash: UNKNOWN };
			const unknown = await cancel(other, asked(ask, other, key));
			assert.deepEqual(outcome(unknown), WHILE_OUT, "the same of a hash that nobody knows");
			const stage = await new RelayClient(fixture.fallbackUrl).stage(tx.hash);
			assert.equal(stage === "CANCELLED", may, stage);
		});
	}

	it("a parameter that the sender has signed is good, of a transaction that boost alone knows", async () => {
		const { tx, key } = await held();
		const cancelBy = async (by: string) => {
			const signed = await cancelSignature(by, tx.hash);
			return outcome(await boost.call("eth_cancelTransaction", [tx.hash, signed], { headers: THERE }));
		};
		assert.deepEqual(await cancelBy(STRANGER), WHILE_OUT);
		assert.equal(await cancelBy(key), true);
		assert.equal(await new RelayClient(fixture.fallbackUrl).stage(tx.hash), "CANCELLED");
	});

	it("only its own client cancels a failed-over transaction, which outlasts the outage", async () => {
		const { tx } = older;
		assert.deepEqual(outcome(await cancel(tx, THERE)), WHILE_OUT);
		// The relay has it too, and would send it on if only the line to it were down.
		for (let i = 0; i < 2; i += 1) {
			const { message } = outcome(await cancel(tx, HERE)) as { message: string };
			assert.match(message, /the upstream that has it does not answer; boost sends it to no other/);
		}
		assert.equal(await new RelayClient(fixture.fallbackUrl).stage(tx.hash), "CANCELLED");
		assert.notEqual(outcome(await cancel(tx, THERE)), true);
		await fixture.recovers();
		await fixture.users.reaches(tx, "CANCELLED");
		await until("boost knows it too", async () => outcome(await cancel(tx, HERE)) === true);
	});
});
