// Nobody learns that a private transaction exists. Bids and cancels by a stranger are tried in
// every way on hashes of every kind of transaction and on an unknown hash; answers, notifications
// and calls to the node are the same for all. How long answers take is in
// hiddenTransactions.nightly.ts, and rate limits in bidRateLimit.test.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import { AuctionFixture } from "../../support/bidder.ts";
import {
	BiddingFixture,
	backrunBy,
	EMITTER,
	prepareBidding,
	REASON,
	REVERTER,
	signedBy,
} from "../../support/biddingFixture.ts";
import { postText, RawConnection, WsClient } from "../../support/clients.ts";
import { gate } from "../../support/contracts.ts";
import { FeedClient } from "../../support/feeds.ts";
import { metricsOf, type WireAnswer } from "../../support/relayClient.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import {
	bundleHashOf,
	holdSecrets,
	inBatches,
	overHttp,
	type Probe,
	probesNow,
	SECRET_BUILDERS,
	SECRET_ENV,
	type Secrets,
	simulationsOf,
	UNKNOWN,
} from "../../support/secretFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const LIFE_BLOCKS = 5;
const WATCH_BLOCKS = 64;
const BUMPED = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const USER = "198.51.100.1";
const STRANGER = "198.51.100.2";
const STRANGER_KEY = `0x${"b2".repeat(32)}`;
const METHOD = "eth_cancelTransaction";
const NOT_PENDING = {
	code: -32_000,
	message:
		"transaction not found or no longer pending; if you sent it from another network or a web page, sign the request with the sender's key",
};
const NOT_FOUND = {
	code: -32_000,
	message: "target transaction not found",
	data: { reason: "TARGET_NOT_FOUND" },
};
/** The bidder of all probes, who has sent nothing else. */
const PROBER = 40;
/** Calls to the node that depend on a transaction or on its sender. */
const STATE_CALLS = [
	...["eth_simulateV1", "debug_traceCall", "eth_getProof", "eth_getCode"],
	...["eth_getTransactionCount", "eth_getTransactionReceipt"],
];

let system: TestSystem;
let users: AuctionFixture;
let fixture: BiddingFixture;
let searcher: FeedClient;
let secrets: Secrets;
const guesses: string[] = [];
/** Transactions of every kind; {@link USER} submitted all of them. */
const held = new Map<string, Signed>();
/** Those that may still be mined. */
const alive: { readonly what: string; readonly tx: Signed; readonly actor: Actor }[] = [];

before(async () => {
	const env = { ...SECRET_ENV, TX_TTL_BLOCKS: String(LIFE_BLOCKS) };
	system = await startSystem({ builders: SECRET_BUILDERS, proxied: true, env });
	await prepareBidding(system);
	users = new AuctionFixture(system);
	fixture = new BiddingFixture(system);
	await users.passBlock();
	await archive();
	await endAll();
	await beginAll();
});
after(() => system.stop());

/** Numbers of calls to the node so far. */
function stateCalls(): readonly number[] {
	return STATE_CALLS.map((method) => system.node?.calls(method).length ?? Number.NaN);
}

/**
 * The text of an answer to a call by HTTP, with its status and headers; hash, date and the
 * request's id are left out.
 */
async function ask(
	hash: string,
	headers: Readonly<Record<string, string>> = {},
	path = "/",
): Promise<string> {
	const connection = await RawConnection.open(system.relay.port);
	connection.write(postText(path, callOf(hash), { "X-Forwarded-For": STRANGER, ...headers }));
	const { status, headers: answered, body } = await connection.answer();
	connection.destroy();
	const { date: _, "x-request-id": __, ...rest } = answered;
	return JSON.stringify([status, rest, body]).replaceAll(hash.slice(2), "HASH");
}

const callOf = (hash: string, id = 1) => ({ jsonrpc: "2.0", id, method: METHOD, params: [hash] });

async function submit(path: string, tx: Signed): Promise<void> {
	const connection = await RawConnection.open(system.relay.port);
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
	const [mined, cancelled] = [(await users.actor()).sign(), (await users.actor()).sign()];
	await submit("/fast", mined);
	await submit("/fast", cancelled);
	await cancelOwn(cancelled);
	await users.waitUntilSent(mined);
	await system.nextBlock();
	await users.reaches(mined, "INCLUDED");
	held.set("archived, mined", mined).set("archived, cancelled", cancelled);
	const { chain } = users.system;
	await chain.rpc("anvil_mine", [`0x${WATCH_BLOCKS.toString(16)}`, `0x${chain.slotSeconds.toString(16)}`]);
	await users.passBlock();
	await until("they are archived", async () => {
		const text = await metricsOf(system.core.url);
		return /^relay_transaction_records 0$/m.test(text);
	});
}

/** One of each that has ended. */
async function endAll(): Promise<void> {
	const expired = (await users.actor()).sign();
	await submit("/nochecks", expired);
	for (let i = 0; i < LIFE_BLOCKS; i++) await users.passBlock();
	await users.reaches(expired, "EXPIRED");
	const [dropping, soft, replacing] = [await users.actor(), await users.actor(), await users.actor()];
	const [dropped, taken, replaced] = [dropping.sign(), soft.sign(), replacing.sign({ to: EMITTER })];
	await submit("/fullprivacy", dropped);
	const mined = (await users.actor()).sign();
	await submit("/fullprivacy", mined);
	await users.publish(mined);
	await users.publish(dropping.sign({ value: 1n }));
	await users.passBlock();
	await users.reaches(mined, "INCLUDED");
	await users.reaches(dropped, "DROPPED");
	await submit("/fullprivacy?softCancellations=true", taken);
	const taking = soft.sign({ to: soft.address });
	await submit("/fast", taking);
	await submit("/maxbackruns", replaced);
	await submit("/nochecks", replacing.sign({ ...BUMPED, nonce: 0 }));
	const cancelled = (await users.actor()).sign();
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
		const actor = await users.actor();
		const tx = actor.sign(options);
		await submit(path, tx);
		await users.reaches(tx, stage);
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
		const connection = await RawConnection.open(system.relay.port);
		connection.write(postText("/", batch, { "X-Forwarded-For": STRANGER }));
		const lists = [JSON.parse((await connection.answer()).body) as WireAnswer[]];
		connection.destroy();
		const page = { headers: { "X-Forwarded-For": USER }, origin: "https://app.example" };
		for (const options of [{ headers: { "X-Forwarded-For": STRANGER } }, page]) {
			const ws = await WsClient.open(`ws://127.0.0.1:${system.relay.port}/`, options);
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

	it("needs nothing of the node: it comes while the node answers nothing, and the node is not asked", async () => {
		const before = stateCalls();
		const release = system.node?.hold() ?? (() => {});
		try {
			for (const { hash } of held.values()) assert.match(await ask(hash), /-32000.*no longer pending/);
		} finally {
			release();
		}
		assert.deepEqual(stateCalls(), before);
	});

	it("while its write is under way", async () => {
		// Asked for from the moment on that it is sent until it is answered.
		const tx = (await users.actor()).sign();
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
		assert.notEqual((await users.status(tx)).stage, "CANCELLED");
		await cancelOwn(tx);
	});
});

describe("the effect", () => {
	it("none: all that was pending is unchanged, and is mined or cancelled by its user", async () => {
		for (const { what, tx, actor } of alive) {
			assert.notEqual((await users.status(tx)).stage, "CANCELLED", what);
			for (const builder of system.builders) assert.deepEqual(users.cancels(builder, tx), [], what);
			const key = actor.account.keyHex;
			if (what === "queued" || what === "failing") {
				const signature = createBodySigner(key).sign(JSON.stringify(callOf(tx.hash)));
				assert.match(await ask(tx.hash, { "X-Flashbots-Signature": signature }), /result\\":true/, what);
			}
		}
		await system.nextBlock();
		for (const { what, tx } of alive) {
			if (what !== "queued" && what !== "failing") await users.reaches(tx, "INCLUDED");
		}
	});
});

describe("a searcher who asks for a private transaction", () => {
	before(async () => {
		searcher = await FeedClient.open(`ws://127.0.0.1:${system.relay.port}/`);
		await searcher.subscribe("service_partialPendingTransactions");
		await searcher.subscribe("newHeads");
		secrets = await holdSecrets(fixture, 0);
		const { hash } = backrunBy(PROBER, 5_000n);
		for (const target of Object.values(secrets.hashes))
			guesses.push(await searcher.subscribe("service_bundleStatus", bundleHashOf(target, hash)));
	});
	after(() => searcher.close());

	it("any bid on a secret transaction gets the same bytes as one on an unknown hash", async () => {
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

	it("the same in batches, over HTTP and a websocket", async () => {
		const expected = await inBatches(fixture, UNKNOWN, await probesNow(fixture, UNKNOWN, PROBER));
		assert.equal(expected.length, 2);
		for (const text of expected) assert.ok(text.split(NOT_FOUND.message).length > 20);
		await eachIsLike(expected, (hash, probes) => inBatches(fixture, hash, probes));
	});

	it("eth_callMany of a secret transaction is answered as for an unknown hash", async () => {
		const ask = async (hash: string) =>
			overHttp(fixture, hash, simulationsOf(hash, PROBER, await fixture.head()));
		const expected = await ask(UNKNOWN);
		for (const answer of expected) assert.ok(answer.includes(NOT_FOUND.message), answer);
		for (const { hash } of secrets.unheard) assert.deepEqual(await ask(hash), expected);
	});

	it("the status of a guessed bundle equals that of an unknown one", async () => {
		const { hash } = backrunBy(PROBER, 5_000n);
		const expected = await fixture.bundle(bundleHashOf(UNKNOWN, hash));
		assert.equal(expected.status, 404);
		for (const target of Object.values(secrets.hashes)) {
			assert.deepEqual(await fixture.bundle(bundleHashOf(target, hash)), expected);
		}
		for (const id of guesses) assert.deepEqual(searcher.received(id), []);
	});

	it("a bid on a secret transaction needs nothing of the node: it is refused while the node answers nothing", async () => {
		const target = await fixture.target(20);
		const shared = stateCalls();
		await fixture.ask("eth_sendBundle", [{ txs: [target, backrunBy(41, 0n).raw] }]);
		const before = stateCalls();
		assert.ok((before[0] ?? 0) > (shared[0] ?? 0), "a bid on a disclosed one is simulated");
		const release = system.node?.hold() ?? (() => {});
		try {
			for (const hash of Object.values(secrets.hashes)) {
				const bids = (await probesNow(fixture, hash, 42)).filter(({ asksForTarget }) => asksForTarget);
				for (const answer of await overHttp(fixture, hash, bids))
					assert.ok(answer.includes(NOT_FOUND.message), answer);
				await inBatches(fixture, hash, bids);
			}
		} finally {
			release();
		}
		assert.deepEqual(stateCalls(), before);
	});

	it("a shared one behind a private one takes bids once that is mined, and not before", async () => {
		const { hidden, shared } = secrets.link;
		const backrun = backrunBy(43, 9_000n);
		const bid = () => fixture.ask("eth_sendBundle", [{ txs: [shared.hash, backrun.raw] }]);
		assert.deepEqual((await bid()).error, NOT_FOUND);
		await system.chain.rpc("eth_sendRawTransaction", [hidden.raw]);
		const head = (await system.chain.rpc("eth_getBlockByNumber", ["latest", false])) as {
			timestamp: string;
		};
		await system.chain.rpc("evm_mine", [{ timestamp: Number(head.timestamp) + system.chain.slotSeconds }]);
		await until("it is mined", async () => (await system.client.stage(hidden.hash)) === "INCLUDED");
		const { result, error } = await bid();
		assert.equal(error, undefined);
		assert.equal(result, bundleHashOf(shared.hash, backrun.hash));
		await system.builder.waitForRequest(({ params }) => JSON.stringify(params).includes(backrun.raw));
		assert.deepEqual(await fixture.stages(String(result)), ["ACCEPTED"]);
	});

	it("no status of a shared transaction names the private one that replaced it or came before it", async () => {
		const { client } = system;
		const fees = (gwei: bigint) => ({
			maxFeePerGas: gwei * 10n ** 9n,
			maxPriorityFeePerGas: gwei * 10n ** 8n,
		});
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

	it("the status of a shared transaction after a private one reveals neither that one nor its effects", async () => {
		const { client, chain } = system;
		const place = `0x${"b7".repeat(20)}`;
		const reason = `0x${Buffer.from(REASON).toString("hex")}`;
		await chain.rpc("anvil_setCode", [place, gate(reason)]);
		// Each private link sets the gate that its shared one goes through: open for the one, shut for
		// the other.
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

	it("searchers never receive anything that names a secret transaction", async () => {
		await fixture.target(21);
		await system.nextBlock();
		const last = await fixture.target(22);
		await until("the feed has come so far", () => searcher.texts.some((text) => text.includes(last)));
		for (const { hash } of secrets.unheard) {
			for (const text of searcher.texts) assert.ok(!text.includes(hash.slice(2)), text);
		}
		for (const id of guesses) assert.deepEqual(searcher.received(id), []);
	});
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
