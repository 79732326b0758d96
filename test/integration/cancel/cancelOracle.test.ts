// A stranger sends cancels for hashes of every kind, in every possible way. The answers and their timing must reveal
// nothing about a hash, and no cancel of his may have an effect.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { EMITTER, REVERTER } from "../../support/biddingFixture.ts";
import { postText, RawConnection, WsClient } from "../../support/clients.ts";
import { metricsOf, type WireAnswer } from "../../support/relayClient.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { assertSameTime, NODE_DELAY_MS, UNKNOWN } from "../../support/secretFixture.ts";
import { until } from "../../support/until.ts";

const BUILDERS = [{ name: "vault", fullPrivacy: true }, { name: "plain" }];
const LIFE_BLOCKS = 2;
const WATCH_BLOCKS = 64;
const BUMPED = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const USER = "198.51.100.1";
const STRANGER = "198.51.100.2";
const STRANGER_KEY = `0x${"b2".repeat(32)}`;
const METHOD = "eth_cancelTransaction";
const NOT_PENDING = { code: -32_000, message: "transaction not found or no longer pending" };

let fixture: AuctionFixture;
/** Of every kind; all were submitted by {@link USER}. */
const held = new Map<string, Signed>();
/** Those that may still be mined, and what their lives were before any stranger asked. */
const alive: { readonly what: string; readonly tx: Signed; readonly actor: Actor }[] = [];

before(async () => {
	const env = { TX_TTL_BLOCKS: String(LIFE_BLOCKS) };
	fixture = await startAuction({ builders: BUILDERS, proxied: true, env });
	await fixture.passBlock();
	await archive();
	await endAll();
	await beginAll();
});
after(() => fixture.system.stop());

/** The text of an answer to a call by HTTP, with its status and headers; hash, date and the request's id are left out. */
async function ask(
	hash: string,
	headers: Readonly<Record<string, string>> = {},
	path = "/",
): Promise<string> {
	const connection = await RawConnection.open(fixture.system.relay.port);
	connection.write(postText(path, callOf(hash), { "X-Forwarded-For": STRANGER, ...headers }));
	const { status, headers: answered, body } = await connection.answer();
	connection.destroy();
	const { date: _, "x-request-id": __, ...rest } = answered;
	return JSON.stringify([status, rest, body]).replaceAll(hash.slice(2), "HASH");
}

const callOf = (hash: string, id = 1) => ({ jsonrpc: "2.0", id, method: METHOD, params: [hash] });

async function submit(path: string, tx: Signed): Promise<void> {
	const connection = await RawConnection.open(fixture.system.relay.port);
	const call = { jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [tx.raw] };
	connection.write(postText(path, call, { "X-Forwarded-For": USER }));
	const { result } = JSON.parse((await connection.answer()).body) as WireAnswer;
	connection.destroy();
	assert.equal(result, tx.hash);
}

async function cancelOwn(tx: Signed): Promise<void> {
	const answer = await ask(tx.hash, { "X-Forwarded-For": USER });
	assert.match(answer, /result\\":true/);
}

/** Mined, and cancelled, so long ago that it is archived. */
async function archive(): Promise<void> {
	const [mined, cancelled] = [(await fixture.actor()).sign(), (await fixture.actor()).sign()];
	await submit("/fast", mined);
	await submit("/fast", cancelled);
	await cancelOwn(cancelled);
	await fixture.waitUntilSent(mined);
	await fixture.system.nextBlock();
	await fixture.reaches(mined, "INCLUDED");
	held.set("archived, mined", mined).set("archived, cancelled", cancelled);
	const { chain } = fixture.system;
	await chain.rpc("anvil_mine", [`0x${WATCH_BLOCKS.toString(16)}`, `0x${chain.slotSeconds.toString(16)}`]);
	await fixture.passBlock();
	await until("they are archived", async () => {
		const text = await metricsOf(fixture.system.core.url);
		return /^relay_transaction_records 0$/m.test(text);
	});
}

/** One of each that has ended. */
async function endAll(): Promise<void> {
	const expired = (await fixture.actor()).sign();
	await submit("/nochecks", expired);
	for (let i = 0; i < LIFE_BLOCKS; i++) await fixture.passBlock();
	await fixture.reaches(expired, "EXPIRED");
	const [dropping, soft, replacing] = [await fixture.actor(), await fixture.actor(), await fixture.actor()];
	const [dropped, taken, replaced] = [dropping.sign(), soft.sign(), replacing.sign({ to: EMITTER })];
	await submit("/fullprivacy", dropped);
	const mined = (await fixture.actor()).sign();
	await submit("/fullprivacy", mined);
	await fixture.publish(mined);
	await fixture.publish(dropping.sign({ value: 1n }));
	await fixture.passBlock();
	await fixture.reaches(mined, "INCLUDED");
	await fixture.reaches(dropped, "DROPPED");
	await submit("/fullprivacy?softCancellations=true", taken);
	const taking = soft.sign({ to: soft.address });
	await submit("/fast", taking);
	await submit("/maxbackruns", replaced);
	await submit("/nochecks", replacing.sign({ ...BUMPED, nonce: 0 }));
	const cancelled = (await fixture.actor()).sign();
	await submit("/fast", cancelled);
	await cancelOwn(cancelled);
	held.set("expired", expired).set("dropped", dropped).set("mined", mined).set("cancelled", cancelled);
	held.set("cancelled softly", taken).set("a soft cancel", taking).set("replaced", replaced);
}

/** One of each that is pending. */
async function beginAll(): Promise<void> {
	const kinds: readonly (readonly [string, string, object, string])[] = [
		["shared", "/maxbackruns", { to: EMITTER }, "BROADCAST"],
		["on /fast", "/fast", {}, "BROADCAST"],
		["on /noreverts", "/noreverts", { to: EMITTER }, "BROADCAST"],
		["on /fullprivacy", "/fullprivacy", {}, "BROADCAST"],
		["on /nochecks", "/nochecks", {}, "BROADCAST"],
		["queued", "/fullprivacy", { nonce: 2 }, "QUEUED"],
		["failing", "/fullprivacy", { to: REVERTER }, "SIMULATION_FAILED"],
	];
	for (const [what, path, options, stage] of kinds) {
		const actor = await fixture.actor();
		const tx = actor.sign(options);
		await submit(path, tx);
		await fixture.reaches(tx, stage);
		held.set(what, tx);
		alive.push({ what, tx, actor });
	}
}

/** Every way to ask for `hash` over HTTP that must come to nothing. */
const WAYS: Readonly<Record<string, (hash: string) => Promise<string>>> = {
	plainly: (hash) => ask(hash),
	"on another path": (hash) => ask(hash, {}, "/fullprivacy"),
	"in upper case": (hash) => ask(`0x${hash.slice(2).toUpperCase()}`),
	"signed by another key": (hash) => {
		const signature = createBodySigner(STRANGER_KEY).sign(JSON.stringify(callOf(hash)));
		return ask(hash, { "X-Flashbots-Signature": signature });
	},
	"from a page": (hash) => ask(hash, { "X-Forwarded-For": USER, Origin: "https://app.example" }),
	"from a page without encryption": (hash) =>
		ask(hash, { "X-Forwarded-For": USER, Origin: "http://10.0.0.1" }),
	"from a page that hides where it is from": (hash) => ask(hash, { "X-Forwarded-For": USER, Origin: "null" }),
	"from a page with a key of its own": (hash) => {
		const signature = createBodySigner(STRANGER_KEY).sign(JSON.stringify(callOf(hash)));
		const page = { "X-Forwarded-For": USER, Origin: "https://app.example" };
		return ask(hash, { ...page, "X-Flashbots-Signature": signature });
	},
	"from an extension elsewhere": (hash) =>
		ask(hash, { Origin: "chrome-extension://nkbihfbeogaeaoehlefnkodb" }),
	"behind an address of his own making": (hash) =>
		ask(hash, { "X-Forwarded-For": `${USER}, ${STRANGER}`, Forwarded: `for=${USER}`, "X-Real-IP": USER }),
	"with a secret that he guesses": (hash) => ask(hash, { "X-Boost-Auth": "guess" }),
	"with a signature that is none": (hash) => ask(hash, { "X-Flashbots-Signature": "0x12:0x34" }),
};

describe("the answer to a stranger who cancels", () => {
	for (const [way, of] of Object.entries(WAYS)) {
		it(`${way}: the same bytes for every hash`, async () => {
			const expected = await of(UNKNOWN);
			const bad = way === "with a signature that is none";
			assert.match(expected, bad ? /-32600.*X-Flashbots-Signature/ : /-32000.*no longer pending/);
			for (const [what, { hash }] of held) assert.equal(await of(hash), expected, what);
		});
	}

	it("in batches and over a websocket, from his address and from a page at the user's", async () => {
		const hashes = [UNKNOWN, ...[...held.values()].map(({ hash }) => hash)];
		const batch = hashes.map((hash, id) => callOf(hash, id));
		const connection = await RawConnection.open(fixture.system.relay.port);
		connection.write(postText("/", batch, { "X-Forwarded-For": STRANGER }));
		const lists = [JSON.parse((await connection.answer()).body) as WireAnswer[]];
		connection.destroy();
		const page = { headers: { "X-Forwarded-For": USER }, origin: "https://app.example" };
		for (const options of [{ headers: { "X-Forwarded-For": STRANGER } }, page]) {
			const ws = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`, options);
			ws.send(batch);
			lists.push((await ws.next()) as unknown as WireAnswer[]);
			ws.terminate();
		}
		for (const list of lists) {
			assert.deepEqual(
				list,
				hashes.map((_, id) => ({ jsonrpc: "2.0", id, error: NOT_PENDING })),
			);
		}
	});

	it("while its write is under way", async () => {
		// Asked for from the moment on that it is sent until it is answered.
		const tx = (await fixture.actor()).sign();
		const expected = await ask(UNKNOWN);
		let written = false;
		const sending = submit("/fullprivacy", tx).finally(() => {
			written = true;
		});
		let asked = 0;
		while (!written) {
			assert.equal(await ask(tx.hash), expected);
			asked += 1;
		}
		await sending;
		assert.ok(asked > 0, "nobody asked meanwhile");
		assert.notEqual((await fixture.status(tx)).stage, "CANCELLED");
		await cancelOwn(tx);
	});
});

describe("how long it takes", () => {
	it("reveals nothing, and no call goes to the node, while the node takes 100 ms", async () => {
		const { node } = fixture.system;
		assert.ok(node !== null, "the node is behind a proxy");
		const ws = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`, {
			headers: { "X-Forwarded-For": STRANGER },
		});
		const time = async (hash: string): Promise<number> => {
			const begun = performance.now();
			ws.send(callOf(hash));
			const { error } = await ws.next();
			const took = performance.now() - begun;
			assert.deepEqual(error, NOT_PENDING);
			return took;
		};
		node.setDelay(NODE_DELAY_MS);
		for (let i = 0; i < 100; i++) await time(UNKNOWN);
		const asked = ["eth_getTransactionCount", "eth_getTransactionReceipt", "eth_getProof", "eth_simulateV1"];
		const calls = () => asked.map((method) => node.calls(method).length);
		const before = calls();
		// Archived ones are read from the disk, which takes longer; what became of them is told to anybody.
		for (const what of ["on /fullprivacy", "on /nochecks", "queued"]) {
			await assertSameTime(what, held.get(what)?.hash ?? "", time);
		}
		assert.deepEqual(calls(), before, "the node was asked");
		node.setDelay(0);
		ws.terminate();
	});
});

describe("the effect", () => {
	it("none: all that was pending is unchanged, and is mined or cancelled by its user", async () => {
		for (const { what, tx, actor } of alive) {
			assert.notEqual((await fixture.status(tx)).stage, "CANCELLED", what);
			for (const builder of fixture.system.builders) assert.deepEqual(fixture.cancels(builder, tx), [], what);
			const key = actor.account.keyHex;
			if (what === "queued" || what === "failing") {
				const signature = createBodySigner(key).sign(JSON.stringify(callOf(tx.hash)));
				assert.match(await ask(tx.hash, { "X-Flashbots-Signature": signature }), /result\\":true/, what);
			}
		}
		await fixture.system.nextBlock();
		for (const { what, tx } of alive) {
			if (what !== "queued" && what !== "failing") await fixture.reaches(tx, "INCLUDED");
		}
	});
});
