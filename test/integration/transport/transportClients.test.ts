// Tests what the transport knows of its clients, and what it lets each of them do: identity,
// limits, readiness, CORS, and the batches of a real client library.

import assert from "node:assert/strict";
import { test } from "node:test";
import { JsonRpcProvider, Network } from "ethers";
import { addressReader } from "../../../shared/client.ts";
import { systemClock } from "../../../shared/clock.ts";
import { createHttpServer } from "../../../shared/http/server.ts";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import { silentLogger } from "../../../shared/log.ts";
import { RawConnection, requestText, WsClient } from "../../support/clients.ts";
import { ManualClock } from "../../support/manualClock.ts";
import { CANARY } from "../../support/rpcMethods.ts";
import { FAKE_DIGEST, withTransport } from "../../support/transportServer.ts";

const SIGNER = `0x${"ab".repeat(20)}`;
const DIGEST = `0x${"d2".repeat(32)}`;

function entry(method: string, params: readonly unknown[] = [], id: unknown = 1) {
	return { jsonrpc: "2.0", id, method, params };
}

async function post(url: string, body: unknown, headers: Record<string, string> = {}) {
	const answer = await fetch(url, {
		method: "POST",
		headers: { "content-type": "application/json", ...headers },
		body: JSON.stringify(body),
	});
	const text = await answer.text();
	return { status: answer.status, headers: answer.headers, json: text === "" ? null : JSON.parse(text) };
}

test("a method gets the path, client and origin of the request", () =>
	withTransport({ trustProxy: 1, boostSecret: "s3cret" }, async ({ url }) => {
		const who = entry("test_who");
		const length = JSON.stringify(who).length;
		const plain = { transport: "http", path: "/", query: {}, client: null, origin: null };
		const client = { address: "127.0.0.1", signer: null, vouched: false };
		const vouched = { "x-forwarded-for": "9.9.9.9, 192.0.2.5", "x-boost-auth": "s3cret" };
		const named = (signer: string | null, digest?: string) => ({
			...plain,
			client: { address: "9.9.9.9", signer, vouched: true, ...(digest === undefined ? {} : { digest }) },
		});
		const rows: [string, Record<string, string>, object][] = [
			["", {}, { ...plain, client }],
			["/fast/?a=%31&b", {}, { ...plain, path: "/fast", query: { a: "1", b: "" }, client }],
			["//noreverts//?a=//b", {}, { ...plain, path: "/noreverts", query: { a: "//b" }, client }],
			[
				"/noreverts",
				{ origin: "https://app.test" },
				{
					...{ ...plain, path: "/noreverts", origin: "https://app.test" },
					client: { ...client, address: "web 127.0.0.1" },
				},
			],
			[
				"",
				{ "x-forwarded-for": "9.9.9.9, 192.0.2.5" },
				{ ...plain, client: { ...client, address: "192.0.2.5" } },
			],
			["", vouched, named(null)],
			[
				"",
				{ "x-flashbots-signature": `0xab:${length}` },
				{ ...plain, client: { ...client, signer: "0xab", digest: FAKE_DIGEST } },
			],
			["", { ...vouched, "x-boost-signer": SIGNER.toUpperCase().replace("X", "x") }, named(SIGNER)],
			["", { ...vouched, "x-boost-signer": "0xab" }, named(null)],
			["", { ...vouched, "x-boost-digest": DIGEST }, named(null)],
			["", { ...vouched, "x-boost-signer": SIGNER, "x-boost-digest": DIGEST }, named(SIGNER, DIGEST)],
			["", { ...vouched, "x-boost-signer": SIGNER, "x-boost-digest": "0x12" }, named(SIGNER)],
			[
				"",
				{ ...vouched, "x-boost-signer": SIGNER, "x-flashbots-signature": `0xab:${length}` },
				named("0xab", FAKE_DIGEST),
			],
			["", { "x-boost-signer": SIGNER, "x-boost-digest": DIGEST }, { ...plain, client }],
			["", { "x-boost-signer": SIGNER, "x-boost-auth": "s3creT" }, { ...plain, client }],
			[
				"",
				{ ...vouched, "x-boost-signer": SIGNER, "x-boost-auth": "guess" },
				{ ...plain, client: { ...client, address: "192.0.2.5", unbelieved: "BOOST_SECRET", isProxy: true } },
			],
			[
				"",
				{ ...vouched, "x-forwarded-for": "9.9.9.9, 9.9.9.8, 192.0.2.5" },
				{ ...plain, client: { ...client, address: "192.0.2.5", unbelieved: "TRUST_PROXY", isProxy: true } },
			],
		];
		for (const [path, headers, expected] of rows) {
			assert.deepEqual((await post(`${url}${path}`, who, headers)).json.result, expected);
		}
	}));

test("only a trusted proxy gives hash and sender of a transaction, and only for a single call", () =>
	withTransport({ boostSecret: "s3cret" }, async ({ url }) => {
		const [hash, from] = [`0x${"ab".repeat(32)}`, `0x${"cd".repeat(20)}`];
		const boost = { "x-boost-auth": "s3cret", "x-forwarded-for": "9.9.9.9" };
		const who = entry("test_who");
		for (const [headers, value, body, expected] of [
			[boost, `${hash} ${from}`, who, { hash, from }],
			[boost, `${hash} ${from}`, [who], undefined],
			[boost, `${hash}`, who, undefined],
			[boost, `${hash} ${hash}`, who, undefined],
			[boost, `${hash.toUpperCase()} ${from}`, who, undefined],
			[{ ...boost, "x-boost-auth": "guess" }, `${hash} ${from}`, who, undefined],
			[{}, `${hash} ${from}`, who, undefined],
		] as const) {
			const { json } = await post(url, body, { ...headers, "x-boost-transaction": value });
			const [answer] = [json].flat();
			assert.deepEqual(answer.result.recovered, expected, JSON.stringify([headers, value, body]));
		}
	}));

test("only a trusted proxy names the transaction that its client's request ends", () =>
	withTransport({ boostSecret: "s3cret" }, async ({ url }) => {
		const [hash, from, to] = [`0x${"ab".repeat(32)}`, `0x${"cd".repeat(20)}`, `0x${"ef".repeat(20)}`];
		const carried = { hash, from, nonce: "7", to, gas: "21000", value: "0" };
		const boost = { "x-boost-auth": "s3cret", "x-forwarded-for": "9.9.9.9" };
		const cancels = `cancels ${hash} ${from} 7 ${to} 21000 0`;
		for (const [headers, value, expected] of [
			[boost, cancels, { how: "cancels", carried: [carried] }],
			[boost, cancels.replace("cancels", "replaces"), { how: "replaces", carried: [carried] }],
			[boost, cancels.replace(to, "-"), { how: "cancels", carried: [{ ...carried, to: "" }] }],
			[
				boost,
				`${cancels}, ${cancels.slice("cancels ".length)}`,
				{ how: "cancels", carried: [carried, carried] },
			],
			[boost, `${cancels}, ${hash}`, undefined],
			[boost, cancels.replace("cancels", "mines"), undefined],
			[boost, cancels.replace(" 0", ""), undefined],
			[boost, cancels.replace(" 7", " -7"), undefined],
			[boost, cancels.replace(from, from.toUpperCase()), undefined],
			[boost, cancels.replace(/0$/, "9".repeat(79)), undefined],
			[{ ...boost, "x-boost-auth": "guess" }, cancels, undefined],
			[{}, cancels, undefined],
		] as const) {
			const { json } = await post(url, entry("test_who"), { ...headers, "x-boost-ends": value });
			assert.deepEqual(json.result.client.ends, expected, value);
		}
	}));

test("a large body above its client's rate limit is refused unread", () =>
	withTransport({ rps: 1, maxBodyBytes: 300_000, clock: new ManualClock() }, async ({ port, url }) => {
		const head = { "Content-Type": "application/json", "Content-Length": "200000" };
		const echo = entry("test_echo", ["x"]);
		assert.equal((await post(url, echo)).status, 200);
		const connection = await RawConnection.open(port);
		connection.write(requestText("POST", "/", head));
		const { status, body } = await connection.answer();
		assert.equal(status, 429);
		assert.equal(JSON.parse(body).error.code, -32005);
		connection.destroy();
	}));

test("over the rate limit: 429, -32005 and Retry-After, until there is allowance again", async () => {
	const clock = new ManualClock();
	await withTransport({ rps: 1, clock, trustProxy: 1 }, async ({ url }) => {
		const echo = entry("test_echo", ["x"]);
		for (let i = 0; i < 10; i++) assert.equal((await post(url, echo)).status, 200);
		const limited = await post(url, echo);
		assert.equal(limited.status, 429);
		assert.equal(limited.headers.get("retry-after"), "1");
		assert.deepEqual(limited.json, {
			jsonrpc: "2.0",
			id: 1,
			error: { code: -32005, message: "limit exceeded: try again in 1 s" },
		});
		assert.equal((await post(url, entry("test_heavy"))).headers.get("retry-after"), "10");
		const batch = await post(url, [echo, echo]);
		assert.equal(batch.status, 429);
		assert.equal(batch.json.length, 2);
		const route = await fetch(`${url}/weighed`);
		assert.equal(route.status, 429);
		assert.equal(route.headers.get("retry-after"), "1");
		assert.deepEqual(await route.json(), { error: "limit exceeded: try again in 1 s" });
		assert.equal((await fetch(`${url}/livez`)).status, 200, "balancers are always answered");
		assert.equal(
			(await post(url, echo, { "x-forwarded-for": "192.0.2.9" })).status,
			200,
			"nobody else is limited",
		);
		const signature = { "x-flashbots-signature": `0xab:${JSON.stringify(echo).length}` };
		assert.equal((await post(url, echo, signature)).status, 429, "a key earns no allowance of its own");
		await clock.advance(1_000);
		const part = await post(url, [echo, echo]);
		assert.equal(part.status, 200);
		assert.deepEqual(
			part.json.map((one: { result?: string; error?: { code: number } }) => one.result ?? one.error?.code),
			["x", -32005],
		);
		await clock.advance(1_000);
		assert.equal((await fetch(`${url}/weighed`)).status, 200);
	});
});

test("a websocket shares its address's rate limit, and gets the error as an answer", async () => {
	const clock = new ManualClock();
	await withTransport({ rps: 1, clock }, async ({ port }) => {
		const client = await WsClient.open(`ws://127.0.0.1:${port}/`);
		for (let id = 0; id < 11; id++) client.send(entry("test_echo", [id], id));
		const answers = [];
		for (let id = 0; id < 11; id++) answers.push(await client.next());
		assert.deepEqual(
			answers.map(({ error, result }) => error?.code ?? result),
			[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -32005],
		);
		client.terminate();
	});
});

test("while it can't serve, each entry of a batch gets an error, and all of it says when to retry", async () => {
	let ready = false;
	const refusal = new RpcError("unavailable", "internal error: not ready", { reason: "node unavailable" });
	await withTransport({ unavailable: () => (ready ? null : refusal) }, async ({ url }) => {
		const single = await post(url, entry("test_echo", [1], "a"));
		assert.equal(single.status, 200);
		assert.equal(single.headers.get("retry-after"), "1");
		const error = {
			code: -32603,
			message: "internal error: not ready",
			data: { reason: "node unavailable" },
		};
		assert.deepEqual(single.json, { jsonrpc: "2.0", id: "a", error });
		const batch = await post(url, [entry("test_echo", [1]), entry("nope")]);
		assert.deepEqual([batch.status, batch.headers.get("retry-after")], [200, "1"]);
		ready = true;
		const served = await post(url, entry("test_echo", [1]));
		assert.deepEqual([served.status, served.headers.get("retry-after")], [200, null]);
	});
});

for (const exposedHeaders of [["X-One", "X-Two"], undefined]) {
	const exposed = exposedHeaders?.join(", ") ?? "Retry-After, X-Request-Id";
	test(`web pages may read every answer, and the exposed headers: ${exposed}`, () =>
		withTransport(exposedHeaders === undefined ? {} : { exposedHeaders }, async ({ url }) => {
			for (const [path, method] of [
				["/livez", "GET"],
				["/fast", "POST"],
				["/nope", "GET"],
				["/fast", "OPTIONS"],
			]) {
				const { headers } = await fetch(`${url}${path}`, { method: method ?? "" });
				assert.equal(headers.get("access-control-allow-origin"), "*");
				assert.equal(headers.get("access-control-expose-headers"), exposed);
			}
		}));
}

test("no details of an internal error are sent, over either transport", () =>
	withTransport({}, async ({ url, port }) => {
		const client = await WsClient.open(`ws://127.0.0.1:${port}/fast`);
		for (const method of ["test_fault", "test_lateFault", "node_down", "test_bigint"]) {
			const error = { code: -32603, message: "internal error" };
			const answer = await post(url, entry(method));
			assert.deepEqual(answer.json.error, error);
			assert.ok(!JSON.stringify([...answer.headers]).includes(CANARY));
			client.send(entry(method));
			assert.deepEqual((await client.next()).error, error);
		}
		client.terminate();
		const page = await fetch(`${url}/fault`);
		assert.deepEqual([page.status, await page.json()], [500, { error: "internal error" }]);
	}));

test("ethers' batches work: one request, results and errors each to its own call", async () => {
	let posts = 0;
	const unavailable = () => {
		posts++;
		return null;
	};
	await withTransport({ maxBatch: 100, maxBodyBytes: 100_000, unavailable }, async ({ url }) => {
		const network = Network.from(1);
		const provider = new JsonRpcProvider(`${url}/fast`, network, { staticNetwork: network });
		const results = await Promise.allSettled([
			...Array.from({ length: 50 }, (_, i) => provider.send("test_echo", [`0x${i}`])),
			provider.send("test_reject", []),
			provider.send("nope", []),
		]);
		assert.equal(posts, 1);
		for (let i = 0; i < 50; i++) assert.deepEqual(results[i], { status: "fulfilled", value: `0x${i}` });
		const [rejected, unknown] = results.slice(50) as PromiseRejectedResult[];
		assert.equal(rejected?.reason.error.message, "nonce too low: next nonce 5, tx nonce 3");
		assert.equal(unknown?.reason.code, "UNSUPPORTED_OPERATION");
		provider.destroy();
	});
});

test("websockets can have a port of their own", () =>
	withTransport({}, async ({ websocket, script, url }) => {
		assert.equal((await fetch(`${url}/ws`)).status, 404, "the websocket's path takes nothing else");
		const own = createHttpServer(
			{ name: "own", host: "127.0.0.1", port: 0, rpcPaths: [], routes: [], maxBodyBytes: 1 },
			{ websocket, readAddress: addressReader({ trustProxy: 0 }), log: silentLogger, clock: systemClock },
		);
		await own.start();
		const client = await WsClient.open(`ws://127.0.0.1:${own.port}/ws`);
		client.send(entry("test_note", ["here"]));
		assert.equal((await client.next()).result, null);
		assert.deepEqual(script.log, ["note here"]);
		assert.equal((await post(`http://127.0.0.1:${own.port}/`, entry("test_note", ["no"]))).status, 404);
		await own.stop();
		assert.equal((await client.closed()).code, 1012);
	}));

/**
 * Requests that are no calls, with their status. `always`: they get it over the rate limit, too.
 */
const COSTLY: readonly (readonly [verb: string, path: string, status: number, always: boolean])[] = [
	["GET", "/weighed", 200, false],
	["HEAD", "/weighed", 200, false],
	["GET", "/livez", 200, true],
	["GET", "/readyz", 200, true],
	["GET", "/nowhere", 404, false],
	["DELETE", "/weighed", 405, false],
	["OPTIONS", "/weighed", 204, true],
	["OPTIONS", "/fast", 204, true],
	["PUT", "/fast", 405, false],
];
for (const [verb, path, status, always] of COSTLY) {
	test(`${verb} ${path} has a cost, pipelined or not`, () =>
		withTransport({ rps: 1, clock: new ManualClock() }, async ({ port, url }) => {
			const connection = await RawConnection.open(port);
			const answer = async () => (await connection.answer(verb === "HEAD")).status;
			const request = requestText(verb, path);
			const call = async () => (await post(url, entry("test_echo", ["x"]))).status;
			connection.write(Buffer.concat(Array(5).fill(request)));
			for (let i = 0; i < 5; i += 1) assert.equal(await answer(), status, `${i}`);
			for (let i = 5; i < 10; i += 1) {
				connection.write(request);
				assert.equal(await answer(), status, `${i}`);
			}
			assert.equal(await call(), always ? 200 : 429);
			// Those that are always answered have as much for themselves.
			for (let i = 0; i < 10; i += 1) {
				connection.write(request);
				assert.equal(await answer(), always ? status : 429, `${i} later`);
			}
			assert.equal(await call(), 429, "nor is a call free now");
			connection.destroy();
		}));
}
