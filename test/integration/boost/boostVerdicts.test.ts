// Tests answers of nodes and providers to reads, through boost and relay, one by one, in a batch
// and over a websocket. Their errors are verdicts, for which boost asks nobody else and blames
// nobody. Only a fallback's rate limit is its fault.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { FeedClient } from "../../support/feeds.ts";
import type { NodeProxy } from "../../support/nodes.ts";
import { ASK_FOR_LESS, type ProviderError, VERDICTS } from "../../support/providerErrors.ts";
import { METRICS_TOKEN } from "../../support/relayClient.ts";
import { httpText, startRecordingFallback } from "../../support/upstreams.ts";

let fixture: BoostFixture;
let node: NodeProxy;
before(async () => {
	fixture = await startBoostFixture({ system: { proxied: true } });
	node = fixture.system.node as NodeProxy;
});
after(() => fixture?.stop());

const HOLDER = `0x${"5a".repeat(20)}`;
const call = (method: string, id: number) => ({ jsonrpc: "2.0", id, method, params: [HOLDER, "0x0"] });

/** The series of boost's attempts at reads that match and are not 0. */
async function attempts({ url }: BoostClient, which: RegExp): Promise<readonly string[]> {
	const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
	const text = await (await fetch(`${url}/metrics`, { headers })).text();
	return text
		.split("\n")
		.filter((line) => line.startsWith("boost_attempts_total") && /kind="read"/.test(line))
		.filter((line) => which.test(line) && !line.endsWith(" 0"));
}

function expected({ error }: ProviderError): object {
	const isLikeOurs = error.code === -32603 && error.message.startsWith("internal error");
	return isLikeOurs ? { ...error, message: `node: ${error.message}` } : error;
}

test("a node's error to a read is passed on, boost asks no fallback and counts no fault", async () => {
	const feed = await FeedClient.open(`ws://127.0.0.1:${fixture.boost.port}/fast`);
	for (const given of [...ASK_FOR_LESS, ...VERDICTS]) {
		const { by, method, error, status } = given;
		node.setFault(
			{ kind: "error", ...error, ...(status === undefined ? {} : { status }) },
			{ methods: [method] },
		);
		const single = await fixture.boost.post(call(method, 7));
		assert.deepEqual(single.json, { jsonrpc: "2.0", id: 7, error: expected(given) }, by);
		assert.deepEqual(
			[single.status, single.headers["x-boost-upstream"], single.headers["x-boost-attempts"]],
			[200, "relay", "1"],
			by,
		);
		const batch = await fixture.boost.post([call(method, 1), call("eth_chainId", 2)]);
		assert.deepEqual(
			(batch.json as readonly object[])[0],
			{ jsonrpc: "2.0", id: 1, error: expected(given) },
			by,
		);
		assert.equal(batch.headers["x-boost-attempts"], "1", by);
		const told = await feed.ask(method, [HOLDER, "0x0"]);
		assert.deepEqual(told.error, expected(given), by);
	}
	node.setFault(null);
	feed.close();
	// On a busy machine a question of boost's own may be answered too late.
	assert.deepEqual(await attempts(fixture.boost, /outcome="(?!answered|cut|timeout)/), []);
	assert.equal((await fixture.boost.status()).relay.state, "closed");
});

test("a node that gives no answer is the relay's fault: the fallback is asked", async () => {
	node.setFault({ kind: "html", status: 502 }, { methods: ["eth_getCode"] });
	const { headers, json } = await fixture.boost.post(call("eth_getCode", 7));
	// Both relays have the same node here.
	assert.match(JSON.stringify(json), /node unavailable/);
	assert.equal(headers["x-boost-attempts"], "2");
	node.setFault(null);
});

test("the URL of a fallback, with its key, is cut out of its errors", async (t) => {
	const fallback = await startRecordingFallback();
	t.after(() => fallback.stop());
	const url = `${fallback.url}/v3/topsecret77`;
	const boost = await fixture.startBoost({ env: { FALLBACK_URL: url, FALLBACK_DIALECT: "plain" } });
	await boost.force("open");
	const error = {
		code: -32000,
		message: `no state for project topsecret77 at ${url}`,
		data: { at: url, block: "0x1" },
	};
	fallback.answerWith(({ calls }) => {
		const [first] = calls;
		if (first?.method !== "eth_getBalance") return undefined;
		return httpText(JSON.stringify({ jsonrpc: "2.0", id: first.id, error }), "200 OK", [
			"content-type: application/json",
		]);
	});
	const { json, body } = await boost.post(call("eth_getBalance", 7));
	const expected = {
		code: -32000,
		message: "no state for project [key] at [url]",
		data: { at: "[url]", block: "0x1" },
	};
	assert.deepEqual(json, { jsonrpc: "2.0", id: 7, error: expected }, body);
});

const RATES = [
	"daily request count exceeded, request rate limited",
	"project ID request rate exceeded",
	"Too Many Requests",
	"Your app has exceeded its compute units per second capacity",
	"limit exceeded",
];

test("of a fallback a limit of the read is a verdict, and one of boost's own requests is not", async (t) => {
	const fallback = await startRecordingFallback();
	t.after(() => fallback.stop());
	const boost = await fixture.startBoost({ env: { FALLBACK_URL: fallback.url, BREAKER_FAULTS: "100" } });
	await boost.force("open");
	const ask = async (error: object, status = "200 OK") => {
		fallback.answerWith(({ calls }) =>
			calls[0]?.method === "eth_getLogs"
				? httpText(JSON.stringify({ jsonrpc: "2.0", id: calls[0].id, error }), status, [
						"content-type: application/json",
					])
				: undefined,
		);
		return boost.post({ jsonrpc: "2.0", id: 7, method: "eth_getLogs", params: [{}] });
	};
	for (const { by, error } of ASK_FOR_LESS) {
		assert.deepEqual((await ask(error)).json, { jsonrpc: "2.0", id: 7, error }, by);
	}
	const limited = async () => Number((await attempts(boost, /outcome="limited"/)).join().split(" ")[1] ?? 0);
	assert.equal(await limited(), 0);
	for (const message of RATES) await ask({ code: -32005, message });
	await ask({ code: 429, message: "Your app has exceeded its compute units per second capacity." });
	const [less] = ASK_FOR_LESS;
	await ask(less?.error ?? {}, "429 Too Many Requests");
	assert.equal(await limited(), RATES.length + 2);
});
