// Tests what boost sends to the fallback, a third party, byte by byte: body and content type,
// nothing about the client, and nothing at all that it may not have.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import type { DialectName } from "../../../boost-proxy/domain/ports.ts";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import { VERSION } from "../../../shared/version.ts";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import type { Signed } from "../../support/relayFixture.ts";
import {
	httpText,
	type RecordedPost,
	type RecordingFallback,
	startRecordingFallback,
} from "../../support/upstreams.ts";

/** Every header that identifies somebody, or could. */
const TELLING: Readonly<Record<string, string>> = {
	"x-forwarded-for": "198.51.100.1",
	"x-forwarded-host": "wallet.example",
	"x-real-ip": "198.51.100.1",
	forwarded: "for=198.51.100.1",
	"x-flashbots-origin": "wallet.example",
	"x-boost-auth": "x",
	"x-boost-signer": "x",
	"x-request-id": "x",
	origin: "https://wallet.example",
	referer: "https://wallet.example/send",
	"user-agent": "Wallet/7.0 (somebody's phone)",
	accept: "application/json",
	"accept-language": "de-CH",
	cookie: "session=somebody",
	authorization: "Bearer somebody",
	traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	"content-type": "application/json; charset=utf-8",
};

const UNKNOWN = `0x${"77".repeat(32)}`;

let fixture: BoostFixture;
/** The recorder of the running test. */
let recorder: RecordingFallback;
let boosts: BoostClient[] = [];
before(async () => {
	fixture = await startBoostFixture();
});
after(() => fixture?.stop());
beforeEach(async () => {
	recorder = await startRecordingFallback();
});
afterEach(async () => {
	// Those of all tests would go on to probe.
	for (const boost of boosts) await boost.stop();
	boosts = [];
	await recorder.stop();
});

/** One whose fallback is the recorder. */
async function withFallback(env: Readonly<Record<string, string>> = {}): Promise<BoostClient> {
	await fixture.wires.relay.set(null);
	const boost = await fixture.startBoost({
		env: { FALLBACK_URL: recorder.url, TRUST_PROXY: "1", ...env },
	});
	boosts.push(boost);
	return boost;
}

/** And whose relay is down. */
async function inOutage(env: Readonly<Record<string, string>> = {}): Promise<BoostClient> {
	const boost = await withFallback(env);
	await boost.force("open");
	return boost;
}

/** The requests received, without boost's own questions about its pending transactions. */
function asked(
	pattern = /eth_sendRawTransaction|eth_cancelTransaction|eth_gasPrice/,
): readonly RecordedPost[] {
	return recorder.posts.filter(({ body }) => pattern.test(body));
}

/** Boost's own headers; its entry in `Via` is random. */
const OWN_HEADERS = [`user-agent: leeward/${VERSION}`, "accept-encoding: identity", "via: 1.1 boost-x"];

/** The bytes that came, with the same entry in `Via`. */
function bytesOf({ text }: RecordedPost): string {
	return text.replace(/\bboost-[0-9a-f]{16}\b/, "boost-x");
}

function headOf(target: string, body: string, more: readonly string[] = []): string {
	const host = recorder.url.slice("http://".length);
	const lines = [
		`POST ${target} HTTP/1.1`,
		`host: ${host}`,
		"connection: keep-alive",
		"content-type: application/json",
		...OWN_HEADERS,
	];
	return `${[...lines, ...more, `content-length: ${body.length}`].join("\r\n")}\r\n\r\n${body}`;
}

const submission = ({ raw }: Signed) =>
	`{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["${raw}"]}`;

/** All of it, and a signature of `body`. */
function signedHeaders(body: unknown, key: string): Readonly<Record<string, string>> {
	return { ...TELLING, "x-flashbots-signature": createBodySigner(key).sign(JSON.stringify(body)) };
}

const QUERY = `refundRecipient=0x${"ab".repeat(20)}&referrer=me`;
/**
 * Each dialect's target of a submission on `/noreverts` with that query, and of a read on `/fast`.
 */
const DIALECTS = {
	mevblocker: { sent: `/noreverts?${QUERY}`, read: "/fast", env: {} },
	flashbots: { sent: `/?refund=0x${"ab".repeat(20)}%3A90&originId=me`, read: "/fast", env: {} },
	plain: { sent: "/", read: "/", env: { FALLBACK_PRIVATE: "true", FALLBACK_REVERT_PROTECTED: "true" } },
} satisfies Readonly<Record<DialectName, Readonly<Record<"sent" | "read", string> & { env: object }>>>;

describe("about the client", () => {
	for (const [FALLBACK_DIALECT, { sent, read, env }] of Object.entries(DIALECTS)) {
		it(`${FALLBACK_DIALECT} gets nothing, byte for byte`, async () => {
			const boost = await inOutage({ FALLBACK_DIALECT, ...env });
			const { sign, account } = await fixture.users.actor();
			const tx = sign();
			const call = {
				jsonrpc: "2.0",
				id: "of the client",
				method: "eth_sendRawTransaction",
				params: [tx.raw],
			};
			const headers = signedHeaders(call, account.keyHex);
			const { json } = await boost.post(call, { path: `/noreverts?${QUERY}`, headers });
			assert.deepEqual(json, { jsonrpc: "2.0", id: "of the client", result: tx.hash });
			const question = { jsonrpc: "2.0", id: 7, method: "eth_gasPrice", params: [] };
			await boost.post(question, { headers: signedHeaders(question, account.keyHex) });
			const texts = asked().map(bytesOf);
			assert.equal(texts[0], headOf(sent, submission(tx)));
			assert.equal(texts[1], headOf(read, JSON.stringify(question)));
			assert.equal(texts.length, 2);
		});
	}

	it("a signed cancel, a batch and a status request reach it without the client's data", async () => {
		const boost = await inOutage();
		const { sign, account } = await fixture.users.actor();
		const tx = sign();
		await boost.result("eth_sendRawTransaction", [tx.raw], { headers: TELLING });
		recorder.answerWith(({ calls }) => {
			const [{ id, method } = { id: 1, method: "" }] = calls;
			return method === "eth_cancelTransaction"
				? httpText(`{"jsonrpc":"2.0","id":${id},"result":true}`)
				: undefined;
		});
		const cancel = { jsonrpc: "2.0", id: 5, method: "eth_cancelTransaction", params: [tx.hash] };
		await boost.post(cancel, { headers: signedHeaders(cancel, account.keyHex) });
		const reads = [1, 2].map((id) => ({ jsonrpc: "2.0", id, method: "eth_gasPrice", params: [] }));
		await boost.post(reads, { headers: TELLING });
		const page = `/tx/${UNKNOWN}`;
		await boost.send({ verb: "GET", path: page, headers: TELLING });
		const sent = recorder.posts.filter(({ body, target }) => target === page || /cancel|gasPrice/.test(body));
		const own = { jsonrpc: "2.0", id: 1, method: "eth_cancelTransaction", params: [tx.hash] };
		const host = recorder.url.slice("http://".length);
		assert.deepEqual(sent.map(bytesOf), [
			headOf("/fast", JSON.stringify(own)),
			headOf("/fast", JSON.stringify(reads)),
			`${[`GET ${page} HTTP/1.1`, `host: ${host}`, "connection: keep-alive", ...OWN_HEADERS].join("\r\n")}\r\n\r\n`,
		]);
	});

	it("credentials and path of its URL are sent as set", async () => {
		const url = `${recorder.url.replace("//", "//user:p%40ss@")}/v2/key?k=1`;
		const boost = await inOutage({ FALLBACK_URL: url });
		const tx = (await fixture.users.actor()).sign();
		await boost.result("eth_sendRawTransaction", [tx.raw], { path: `/fast?${QUERY}`, headers: TELLING });
		const login = `authorization: Basic ${Buffer.from("user:p@ss").toString("base64")}`;
		assert.deepEqual(asked().map(bytesOf), [headOf(`/v2/key/fast?k=1&${QUERY}`, submission(tx), [login])]);
	});

	it("while the relay is healthy the fallback gets nothing", async () => {
		const boost = await withFallback();
		const { sign, address } = await fixture.users.actor();
		const [first, second] = [sign(), sign({ nonce: 1 })];
		await boost.result("eth_sendRawTransaction", [first.raw]);
		await boost.result("eth_sendRawTransaction", [second.raw], { path: "/fullprivacy" });
		await boost.result("eth_getTransactionCount", [address, "pending"]);
		await boost.result("eth_getTransactionByHash", [first.hash]);
		await boost.call("eth_getTransactionByHash", [UNKNOWN]);
		await boost.result("eth_cancelTransaction", [first.hash]);
		await boost.call("nope");
		for (const hash of [first.hash, second.hash, UNKNOWN]) await boost.get(`/tx/${hash}`);
		assert.deepEqual(recorder.posts, []);
	});

	it("sends a transaction that fails over later as it would have been sent at first", async () => {
		const boost = await withFallback();
		const tx = (await fixture.users.actor()).sign();
		await boost.result("eth_sendRawTransaction", [tx.raw], { path: `/noreverts?${QUERY}`, headers: TELLING });
		await fixture.fails(undefined, boost);
		await boost.reaches("it is failed over", ({ journal }) => journal.held.fallback === 1);
		assert.deepEqual(asked().map(bytesOf), [headOf(`/noreverts?${QUERY}`, submission(tx))]);
	});
});

describe("what the fallback must not get", () => {
	/** Methods that only the relay has, or nobody. */
	const NEVER = [
		["eth_sendBundle", [{ txs: [] }]],
		["eth_cancelBundle", [{ replacementUuid: "x" }]],
		["mev_sendBundle", [{ version: "v0.1" }]],
		["eth_callMany", [{ txs: ["0x02"] }]],
		["eth_subscribe", ["newHeads"]],
		["service_transactionStatuses", [[]]],
		["rpc.discover", []],
		["eth_accounts", []],
		["eth_sendTransaction", [{}]],
		["eth_sign", ["0x", "0x"]],
		["debug_traceTransaction", ["0x"]],
		["txpool_content", []],
		["admin_peers", []],
		["nope", ["a secret of the client"]],
		["eth_sendPrivateTransaction", [{ tx: "0x02" }]],
		["eth_cancelPrivateTransaction", [{ txHash: "0x" }]],
		["eth_sendBundel", [{ txs: [] }]],
	] as const;

	it("bundles, simulations and unknown methods never reach it, alone or in a batch; reads do", async () => {
		const boost = await inOutage();
		const codes: (number | undefined)[] = [];
		for (const [method, params] of NEVER) {
			const { json } = await boost.call(method, params);
			codes.push((json as WireAnswer).error?.code);
		}
		const mixed = NEVER.map(([method, params], id) => ({ jsonrpc: "2.0", id, method, params }));
		const read = { jsonrpc: "2.0", id: "r", method: "eth_chainId", params: [] };
		const { json, status } = await boost.post([...mixed, { ...read, method: "eth_gasPrice" }, read]);
		assert.deepEqual(
			(json as WireAnswer[]).map(({ error }) => error?.code),
			[...codes, -32601, undefined],
		);
		assert.equal(status, 200);
		const OURS = 8;
		assert.deepEqual(codes, [...Array(OURS).fill(-32603), ...Array(NEVER.length - OURS).fill(-32601)]);
		assert.deepEqual(recorder.methods, ["eth_gasPrice"]);
		for (const path of ["/fullprivacy", "/maxbackruns", "/nochecks", "/ws"]) {
			const tx = (await fixture.users.actor()).sign();
			const reply = await boost.call("eth_sendRawTransaction", [tx.raw], { path });
			assert.equal(reply.status, 200, path);
			await boost.call("eth_gasPrice", [], { path });
		}
		assert.deepEqual(recorder.methods, ["eth_gasPrice"]);
	});

	it("a method that nobody serves is -32601 with ours in its place, as long as the relay is down and from the first call on", async () => {
		const boost = await withFallback();
		const rows = [
			["eth_cancelPrivateTransaction", "use eth_cancelTransaction [hash]"],
			[
				"eth_sendPrivateTransaction",
				"eth_sendRawTransaction never shares transactions in the public mempool, use it instead",
			],
			["eth_sendBundel", "did you mean eth_sendBundle?"],
			["eth_chianId", "did you mean eth_chainId?"],
		] as const;
		const check = async (when: string) => {
			for (const [method, hint] of rows) {
				const message = `the method ${method} does not exist/is not available: ${hint}`;
				const { json } = await boost.call(method, [{ txHash: "0x" }]);
				assert.deepEqual((json as WireAnswer).error, { code: -32601, message }, when);
			}
		};
		await check("the relay answers");
		await fixture.wires.relay.set({ kind: "refuse" });
		await check("before the breaker opens, and after");
		await fixture.fails(undefined, boost);
		await check("the relay is down");
	});

	it("what it refused is not sent again, and what is not a transaction is not sent at all", async () => {
		const boost = await inOutage();
		const tx = (await fixture.users.actor()).sign();
		const verdict = { code: -32000, message: "insufficient funds for gas * price + value: in its own words" };
		recorder.answerWith(({ calls }) =>
			httpText(JSON.stringify(calls.map(({ id }) => ({ id, error: verdict }))[0])),
		);
		const { json, status } = await boost.call("eth_sendRawTransaction", [tx.raw]);
		assert.deepEqual([status, (json as WireAnswer).error], [200, verdict]);
		await boost.call("eth_sendRawTransaction", [`${tx.raw}00`]);
		assert.equal((await boost.status()).journal.depth, 0);
		assert.deepEqual(recorder.methods, ["eth_sendRawTransaction"]);
	});

	const REFUSALS = [
		["plain", {}, "/fast", "the fallback is not private"],
		["plain", { FALLBACK_PRIVATE: "true" }, "/noreverts", "the fallback does not protect from reverts"],
		[
			"mevblocker",
			{ FALLBACK_REVERT_PROTECTED: "false" },
			"/noreverts",
			"the fallback does not protect from reverts",
		],
		["flashbots", { FALLBACK_PRIVATE: "false" }, "/", "the fallback is not private"],
		["mevblocker", {}, "/fast?hint=hash", "the fallback may show it to searchers"],
		["mevblocker", {}, "/fast?hint=calldata&builder=a", "the fallback may send it to other builders"],
		["flashbots", {}, "/fast?originId=w", "the fallback may show it to searchers"],
		["mevblocker", { FALLBACK_URL: "none" }, "/fast", "the relay is down, and there is no fallback"],
	] as const;
	for (const [FALLBACK_DIALECT, env, path, why] of REFUSALS) {
		it(`${FALLBACK_DIALECT} with ${JSON.stringify(env)} gets nothing of ${path}`, async () => {
			const boost = await inOutage({ FALLBACK_DIALECT, ...env });
			const actor = await fixture.users.actor();
			const tx = actor.sign();
			const reply = await boost.call("eth_sendRawTransaction", [tx.raw], { path });
			assert.equal(reply.status, 200);
			assert.deepEqual(reply.json, {
				...{ jsonrpc: "2.0", id: 1 },
				error: { code: -32603, message: `no relay available: ${why}` },
			});
			assert.match(reply.headers["retry-after"] ?? "", /^[1-9]\d*$/);
			assert.equal(reply.headers["x-boost-upstream"], "boost");
			assert.deepEqual(recorder.methods, []);
			assert.equal((await boost.status()).journal.depth, 0);
		});
	}

	it("what the relay holds and the fallback must not get waits for the relay", async () => {
		const boost = await withFallback({ FALLBACK_REVERT_PROTECTED: "false" });
		const actor = await fixture.users.actor();
		const [kept, given] = [(await fixture.users.actor()).sign(), actor.sign()];
		await boost.result("eth_sendRawTransaction", [kept.raw], { path: "/noreverts" });
		await boost.result("eth_sendRawTransaction", [given.raw], { path: "/fast" });
		await fixture.fails(undefined, boost);
		await boost.reaches("one is failed over", ({ journal }) => journal.held.fallback === 1);
		assert.deepEqual(
			asked().flatMap(({ calls }) => calls.map(({ params }) => params)),
			[[given.raw]],
		);
		const { stage } = (await boost.get(`/tx/${kept.hash}`)).json as { stage: string };
		assert.equal(stage, "HELD");
	});
});
