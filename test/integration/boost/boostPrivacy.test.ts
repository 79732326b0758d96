// Canaries: transactions, signatures, keys and credentials that are like no other text go through boost while both its
// upstreams and its node fail in every way; then all that came out of it is searched. Its log is at its most talkative.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Transaction } from "ethers";
import type { WireFault } from "../../faults/wireFaults.ts";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { LeakWatch, type Secret } from "../../support/leakWatch.ts";
import { type NodeProxy, startNodeProxy } from "../../support/nodes.ts";
import { type BoostProcess, type Exit, startBoostProcess } from "../../support/processes.ts";
import { AUTHORIZED, METRICS_TOKEN } from "../../support/relayClient.ts";
import type { Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";
import {
	httpText,
	type RecordingFallback,
	type Script,
	startRecordingFallback,
} from "../../support/upstreams.ts";

const CALLDATA = `0x${"c0ffee5ca1ab1e".repeat(5)}`;
const BOOST_SECRET = "boost-secret-canary";
const ADMIN_TOKEN = "admin-token-canary";
/** In URLs, as user, password and path. */
const RELAY_LOGIN = "relay-user-canary:relay-password-canary";
const FALLBACK_LOGIN = "fallback-user-canary:fallback-password-canary";
const FALLBACK_KEY = "fallback-key-canary";
const NODE_LOGIN = "node-user-canary:node-password-canary";
const NODE_KEY = "node-key-canary";
/** What those say who fail. */
const WORDS = { relay: "words-of-the-relay", fallback: "words-of-the-fallback", node: "words-of-the-node" };
const SECRETS: readonly Secret[] = [
	...[BOOST_SECRET, ADMIN_TOKEN, FALLBACK_KEY, NODE_KEY, ...Object.values(WORDS)],
	...[RELAY_LOGIN, FALLBACK_LOGIN, NODE_LOGIN].flatMap((login) => [login, ...login.split(":")]),
].map((value) => ({ name: value, value }));

const PAGE = `<html>${WORDS.fallback}</html>`;
/** How the fallback fails; null is never answered. */
const FALLBACK_FAULTS: Readonly<Record<string, Script>> = {
	"a page with 500": () => httpText(PAGE, "500 Oops", ["content-type: text/html"]),
	"a page with 200": () => httpText(PAGE, "200 OK", ["content-type: text/html"]),
	"a redirect": () => httpText("", "302 Found", [`location: https://${WORDS.fallback}.example/`]),
	"half of an answer": ({ body }) => httpText(`{"jsonrpc":"2.0","id":1,"result":"${body.slice(0, 400)}`),
	"the request as a result": ({ body }) => httpText(JSON.stringify({ jsonrpc: "2.0", id: 1, result: body })),
	nothing: () => null,
};
const RELAY_FAULTS: readonly WireFault[] = [
	{ kind: "status", status: 502, body: `<html>${WORDS.relay}</html>` },
	{ kind: "status", status: 403, body: WORDS.relay },
	{ kind: "truncated" },
	{ kind: "resetMidway" },
	{ kind: "late", ms: 2_000 },
];

const watch = new LeakWatch();
let fixture: BoostFixture;
let node: NodeProxy;
let fallback: RecordingFallback;
let boost: BoostProcess;
let exit: Exit;
const sent: Signed[] = [];
const shown: Readonly<Record<string, unknown>>[] = [];

before(async () => {
	fixture = await startBoostFixture({ system: { env: { BOOST_SECRET } } });
	node = await startNodeProxy(fixture.system.chain.url);
	fallback = await startRecordingFallback();
	boost = await startBoostProcess({
		env: {
			METRICS_TOKEN,
			...{ PORT: "0", HOST: "127.0.0.1", LOG_LEVEL: "trace", DATA_DIR: fixture.folder, RATE_LIMIT_RPS: "0" },
			...{ BOOST_SECRET, ADMIN_TOKEN, REQUEST_BUDGET_MS: "1000", BREAKER_FAULTS: "100" },
			...{ PROBE_INTERVAL_MS: "50", BREAKER_HOLD_MS: "50", BREAKER_HOLD_MAX_MS: "100" },
			RELAY_URL: withLogin(fixture.wires.relay.url, RELAY_LOGIN),
			FALLBACK_URL: `${withLogin(fallback.url, FALLBACK_LOGIN)}/${FALLBACK_KEY}?key=${FALLBACK_KEY}`,
			FALLBACK_STATUS_URL: `${withLogin(fallback.url, FALLBACK_LOGIN)}/${FALLBACK_KEY}/tx/`,
			ETH_RPC_URL: `${withLogin(node.url, NODE_LOGIN)}/${NODE_KEY}?key=${NODE_KEY}`,
		},
	});
	await scenario();
});
after(async () => {
	await boost?.kill();
	await fallback?.stop();
	await node?.stop();
	await fixture?.stop();
});

test("the upstreams received the secrets that the tests search for", () => {
	const control = new LeakWatch();
	control.saw("the fallback", fallback.posts.map(({ text }) => text).join("\n"));
	control.saw("the relay", JSON.stringify(fixture.wires.relay.requests()));
	const raws = sent.slice(1).map(({ raw }, i) => ({ name: `${i}`, value: raw }));
	const login = (text: string) => ({ name: "login", value: `Basic ${Buffer.from(text).toString("base64")}` });
	assert.ok(
		control.found(raws).filter((place) => place.endsWith("fallback")).length >= 10,
		"raw transactions",
	);
	assert.deepEqual(control.found([login(FALLBACK_LOGIN)]), ["login at the fallback"]);
	assert.deepEqual(control.found([login(RELAY_LOGIN)]), ["login at the relay"]);
	assert.deepEqual(control.found([{ name: "secret", value: BOOST_SECRET }]), ["secret at the relay"]);
	assert.deepEqual(control.found([{ name: "key", value: FALLBACK_KEY }]), ["key at the fallback"]);
});

test("no output contains a raw transaction or a signature", () => {
	assert.ok(watch.places.length >= 12, watch.places.join(", "));
	assert.deepEqual(watch.found(sent.flatMap(secretsOf)), []);
});

test("call data is only in answers by hash", () => {
	assert.deepEqual(watch.found([{ name: "call data", value: CALLDATA }], ["by hash"]), []);
});

test("no output contains a secret, a credential or an upstream's text", () => {
	// What is streamed is the relay's own, whatever it is.
	assert.deepEqual(watch.found(SECRETS, ["pages while the relay fails"]), []);
});

test("a pending transaction by its hash has v, r, s, yParity and gasPrice 0x0, from any upstream", () => {
	const zero = { v: "0x0", r: "0x0", s: "0x0", yParity: "0x0", gasPrice: "0x0" };
	assert.ok(shown.length >= 4, `${shown.length}`);
	for (const { v, r, s, yParity, gasPrice } of shown) assert.deepEqual({ v, r, s, yParity, gasPrice }, zero);
});

test("it shuts down in order, and has printed nothing but its log", () => {
	assert.deepEqual([exit.code, exit.stderr], [0, ""]);
	const lines = exit.stdout.trimEnd().split("\n");
	assert.ok(lines.length > 4, `${lines.length}`);
	for (const line of lines) assert.equal(typeof JSON.parse(line), "object");
});

function withLogin(url: string, login: string): string {
	return url.replace("//", `//${login}@`);
}

function secretsOf({ raw }: Signed): readonly Secret[] {
	const { signature, hash } = Transaction.from(raw);
	return [
		{ name: `transaction ${hash}`, value: raw },
		{ name: `r of ${hash}`, value: signature?.r ?? "" },
		{ name: `s of ${hash}`, value: signature?.s ?? "" },
	];
}

function post(
	place: string,
	body: string,
	path = "/fast",
	headers: Record<string, string> = {},
): Promise<string> {
	const all = { "content-type": "application/json", ...headers };
	return watch.fetched(place, `${boost.url}${path}`, { method: "POST", headers: all, body });
}

function call(place: string, method: string, params: readonly unknown[], path = "/fast"): Promise<string> {
	return post(place, JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }), path);
}

/** Submits one, whatever becomes of it. */
async function submit(place: string, path = "/fast?referrer=someone"): Promise<Signed> {
	const tx = (await fixture.users.actor()).sign({ data: CALLDATA });
	sent.push(tx);
	await call(place, "eth_sendRawTransaction", [tx.raw], path);
	return tx;
}

async function scenario(): Promise<void> {
	const first = await submit("answers while all is well");
	await lookAround();
	for (const body of badBodies(first.raw)) await post("answers to bad requests", body);
	for (const path of [`/tx/${first.raw}`, `/fast/${first.raw}`, `/tx/${first.raw}/events`])
		await watch.fetched("pages of bad paths", `${boost.url}${path}`);
	const token = { authorization: `Bearer ${ADMIN_TOKEN}` };
	await post("admin", "", "/admin/close", { authorization: "Bearer guessed" });
	await post("admin", "", "/admin/close", token);
	// Forced closed, each request finds out for itself.
	for (const fault of RELAY_FAULTS) {
		await fixture.wires.relay.set(fault, fault.kind === "late" ? "submissions" : undefined);
		await submit("answers while the relay fails");
		await call("answers while the relay fails", "eth_gasPrice", []);
		// What is streamed is cut where the relay's answer is.
		await watch.fetched("pages while the relay fails", `${boost.url}/info`).catch(() => "cut");
		await lookAround();
	}
	await post("admin", "", "/admin/open", token);
	for (const [what, script] of Object.entries(FALLBACK_FAULTS)) {
		fallback.answerWith(script);
		await submit(`answers while the fallback answers ${what}`);
		if (script === FALLBACK_FAULTS.nothing) continue;
		await call("reads while both fail", "eth_gasPrice", []);
		await call("reads while both fail", "eth_getTransactionByHash", [`0x${"77".repeat(32)}`]);
		await lookAround();
	}
	fallback.answerWith(() => undefined);
	await until(
		"the fallback takes one",
		async () => (await byHash(await submit("answers in an outage"))) !== null,
	);
	await lookAround();
	for (const fault of [
		{ kind: "error", code: -32603, message: WORDS.node, status: 500 } as const,
		{ kind: "html", status: 500 } as const,
		{ kind: "truncated" } as const,
	]) {
		node.setFault(fault);
		await call("reads while the node fails", "eth_getTransactionCount", [`0x${"11".repeat(20)}`, "pending"]);
		await lookAround();
	}
	exit = await boost.kill("SIGTERM", 25_000);
	watch.saw("log", exit.stdout);
	watch.saw("stderr", exit.stderr);
}

/** What is shown of it; null where nobody has it. */
async function byHash({ hash }: Signed): Promise<unknown> {
	const text = await call("by hash", "eth_getTransactionByHash", [hash]);
	const { result } = JSON.parse(text) as { result?: Record<string, unknown> | null };
	if (result?.blockHash === null) shown.push(result);
	return result ?? null;
}

/** All that tells something of itself, and what is told of each transaction. */
async function lookAround(): Promise<void> {
	for (const page of ["/metrics", "/status", "/readyz", "/livez"])
		await watch.fetched(page, `${boost.url}${page}`, { headers: AUTHORIZED });
	for (const tx of sent.slice(-2)) {
		await watch.fetched("status", `${boost.url}/tx/${tx.hash}`);
		await byHash(tx);
	}
}

/** The raw transaction in bodies that are refused, each for another reason. */
function badBodies(raw: string): string[] {
	const one = (method: unknown, params: unknown, more: object = {}): string =>
		JSON.stringify({ jsonrpc: "2.0", id: 1, method, params, ...more });
	const flipped = `${raw.slice(0, -2)}${raw.endsWith("00") ? "01" : "00"}`;
	return [
		raw,
		`{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["${raw}"`,
		...[
			[raw, raw],
			{ raw },
			[{ raw }],
			[[raw]],
			[raw.slice(2)],
			[`${raw}0`],
			[`${raw}00`],
			[raw.slice(0, -10)],
		].map((params) => one("eth_sendRawTransaction", params)),
		one("eth_sendRawTransaction", [flipped]),
		one("eth_sendRawTransactionSync", [raw, raw]),
		one("eth_sendPrivateTransaction", [{ tx: raw }]),
		one("eth_sendBundle", [{ txs: [raw, raw] }]),
		one(raw, []),
		one("eth_getTransactionByHash", [raw]),
		one("eth_cancelTransaction", [raw]),
		one("eth_getTransactionCount", [raw, "pending"]),
		one("eth_sendRawTransaction", [raw], { jsonrpc: raw }),
		one("eth_sendRawTransaction", [raw], { id: { raw } }),
		`[${one("eth_sendRawTransaction", [flipped])},${one("nope", [raw])}]`,
	];
}
