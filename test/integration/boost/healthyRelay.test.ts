// Nothing that one client sends, in any form, makes boost take a healthy relay for down: it is the
// relay that is asked, its breaker stays as it was, and the fallback gets nothing. The control: a
// relay that really fails is left, by all of them.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { RELAY_ONLY } from "../../../boost-proxy/ingress/methods.ts";
import { READS } from "../../../shared/jsonrpc/reads.ts";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { WsClient } from "../../support/clients.ts";
import type { Actor, Signed } from "../../support/relayFixture.ts";
import { mineAll } from "../../support/systems.ts";
import { until } from "../../support/until.ts";
import { type RecordingFallback, startRecordingFallback } from "../../support/upstreams.ts";

let fixture: BoostFixture;
let recorder: RecordingFallback;
let boost: BoostClient;
let socket: WsClient;
let since: string;
/** Callbacks that wait for the websocket's next messages. */
const received: ((text: string) => void)[] = [];
before(async () => {
	recorder = await startRecordingFallback();
	fixture = await startBoostFixture({ boost: { TRUST_PROXY: "1" } });
	// On a busy machine a batch takes longer than usual, and what is late goes to the fallback.
	const env = { FALLBACK_URL: recorder.url, REQUEST_BUDGET_MS: "25000" };
	boost = await fixture.startBoost({ env });
	socket = await WsClient.open(boost.url);
	socket.socket.on("message", (bytes) => received.shift()?.(String(bytes)));
});
after(async () => {
	socket?.terminate();
	await fixture?.stop();
	await recorder?.stop();
});
beforeEach(async () => {
	recorder.reset();
	({ since } = (await boost.status()).relay);
});
afterEach(() => fixture.recovers(boost));

/** The relay counts as healthy and the fallback got nothing, whatever the client has sent. */
async function assertHealthy(what: string): Promise<void> {
	const { state, reason, since: now } = (await boost.status()).relay;
	assert.deepEqual([state, reason, now], ["closed", null, since], what);
	assert.deepEqual(
		recorder.posts.map(({ body }) => body),
		[],
		`the fallback got nothing: ${what}`,
	);
}

let signers: Actor[] = [];
let signed = 0;
/** The next transaction of the client's accounts. */
async function next(): Promise<Signed> {
	const nonce = signed % 50;
	if (nonce === 0) signers = [await fixture.users.actor(), ...signers];
	signed += 1;
	const [signer] = signers;
	assert.ok(signer);
	return signer.sign({ nonce });
}

async function post(path: string, body: string): Promise<string> {
	const headers = { "content-type": "application/json" };
	return (await fetch(`${boost.url}${path}`, { method: "POST", headers, body })).text();
}

type Send = (body: string) => Promise<string>;
/** Each way to send a body, with what comes back. */
const ways: readonly (readonly [name: string, send: Send])[] = [
	["HTTP", (body) => post("/fast", body)],
	["HTTP on /", (body) => post("/", body)],
	[
		"a websocket",
		(body) => {
			socket.send(body);
			return new Promise((resolve) => received.push(resolve));
		},
	],
];

const IDS = [
	...["null", "0", "-0", "-1", "1", "1.0", "1e2", "0.1", "9007199254740993", "1e400", '""', '"1"', '"null"'],
	...["12345678901234567890", '"\\u0000"', '"é😀"', '"\\u0069d"', `"${"x".repeat(200)}"`, "-1.5e-3"],
];
/** Bodies with the id and the parameter in their places, as clients may write them. */
const FORMS: readonly ((id: string, method: string, param: string) => string)[] = [
	(id, method, param) => `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":["${param}"]}`,
	(id, method, param) => ` {"params" : [ "${param}" ], "method":"${method}",\n"id":${id}}\t`,
	(id, method, param) => `{"id":7,"jsonrpc":"2.0","method":"${method}","params":["${param}"],"id":${id}}`,
	(id, method, param) =>
		`{"method":"eth_chainId","m\\u0065thod":"${method}","more":{"id":9},"params":["${param}"],"id":${id}}`,
];
const ENVELOPES = FORMS.flatMap((form) => IDS.map((id) => ({ form, id })));
assert.ok(ENVELOPES.length >= 75);

/** Whether `answer` is a success with this result, under this id. */
const succeeds = (answer: string, id: string, result: string) =>
	answer.includes(`"result":${result}`) && (answer.includes(`"id":${id}`) || id.includes("\\u"));

test("submissions and cancels in any envelope", async () => {
	for (const [i, { form, id }] of ENVELOPES.entries()) {
		const [way, send] = ways[i % ways.length] ?? assert.fail();
		const tx = await next();
		const submission = form(id, "eth_sendRawTransaction", tx.raw);
		assert.ok(succeeds(await send(submission), id, `"${tx.hash}"`), `${way}: ${submission}`);
		const cancel = form(id, "eth_cancelTransaction", tx.hash);
		// Every second stays, so that nonces have no gap for long.
		if (i % 2 === 0) assert.ok(succeeds(await send(cancel), id, "true"), `${way}: ${cancel}`);
	}
	await assertHealthy("single calls");
	for (const [way, send] of ways) {
		const txs: Signed[] = [];
		for (const _ of ENVELOPES) txs.push(await next());
		const entries = ENVELOPES.map(({ form, id }, i) => form(id, "eth_sendRawTransaction", txs[i]?.raw ?? ""));
		const answer = await send(`[${entries.join(",")}]`);
		for (const { hash } of txs) assert.ok(answer.includes(`"result":"${hash}"`), `${way}: ${answer}`);
		await assertHealthy(`a batch by ${way}`);
	}
});

test("every method, with parameters that are none", async () => {
	const methods = [...READS.keys(), ...RELAY_ONLY.keys(), "eth_nonsense", "", "eth_sendRawTransactionSync"];
	const params = [
		"[]",
		"null",
		"{}",
		'[""]',
		"[{}]",
		"[[]]",
		"[null]",
		'["0x"]',
		`["${"0x".padEnd(66, "f")}"]`,
	];
	const call = (method: string, i: number) =>
		`{"jsonrpc":"2.0","id":null,"method":"${method}","params":${params[i]}}`;
	const calls = methods.flatMap((method) => [...params.keys()].map((i) => call(method, i)));
	for (const [i, body] of calls.entries()) {
		const [way, send] = ways[i % ways.length] ?? assert.fail();
		assert.match(await send(body), /^\{"jsonrpc":"2.0"/, way);
	}
	await assertHealthy("single calls");
	for (const [way, send] of ways) {
		for (const i of params.keys()) {
			const body = `[${methods.map((method) => call(method, i)).join(",")}]`;
			assert.match(await send(body), /^\[\{"jsonrpc":"2.0"/, way);
		}
		await assertHealthy(way);
	}
});

for (const kind of ["alone", "in a batch", "over a websocket"] as const) {
	test(`a call that waits for its receipt, ${kind}: boost submits it, and waits itself`, async () => {
		const { users, wires } = fixture;
		const before = wires.relay.requests().length;
		const submit: Send =
			kind === "over a websocket" ? (ways[2]?.[1] ?? assert.fail()) : (ways[0]?.[1] ?? assert.fail());
		const actors = await Promise.all([0, 1, 2].map(() => users.actor()));
		const txs = actors.map((actor) => actor.sign());
		const one = ({ raw }: Signed, i: number) =>
			`{"jsonrpc":"2.0","id":${i},"method":"eth_sendRawTransactionSync","params":["${raw}",60000]}`;
		const bodies = kind === "in a batch" ? [`[${txs.map(one).join(",")}]`] : txs.map(one);
		const waiting = bodies.map((body) => submit(body));
		for (const tx of txs) await users.waitUntilSent(tx);
		await mineAll(users.system, txs);
		const answers = (await Promise.all(waiting)).join();
		for (const { hash } of txs) assert.match(answers, new RegExp(`"transactionHash":"${hash}"`));
		const asked = wires.relay
			.requests()
			.slice(before)
			.flatMap(({ calls }) => calls.map(({ method }) => method));
		const submissions = asked.filter((method) => method.startsWith("eth_sendRaw"));
		assert.deepEqual(submissions, Array(3).fill("eth_sendRawTransaction"), "nothing waits at the relay");
		await assertHealthy(kind);
	});
}

test("the control: where the relay answers submissions with what is none, they go to the fallback at once", async () => {
	await fixture.wires.relay.set({ kind: "status", status: 502 }, "submissions");
	const [first, second] = [await next(), await next()];
	assert.equal(await boost.result("eth_sendRawTransaction", [first.raw]), first.hash);
	await boost.reaches("the relay is down", ({ relay }) => relay.state !== "closed");
	assert.equal(await boost.result("eth_sendRawTransaction", [second.raw]), second.hash);
	const got = () => recorder.posts.flatMap(({ calls }) => calls.map(({ params }) => params[0]));
	await until("the fallback has both", () => got().includes(first.raw) && got().includes(second.raw));
});
