// No secret leaves boost. Transactions, keys and credentials that resemble no other text go through
// it while both its upstreams and its node fail in every way and quote them. Then each output, with
// the log at its most verbose, is compared with a table of the secrets that it is documented to
// show.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { WireFault } from "../../faults/wireFaults.ts";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { LeakWatch, type Secret, signatureOf } from "../../support/leakWatch.ts";
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
import { refusedBodies } from "./refusedBodies.ts";

const CALLDATA = `0x${"c0ffee5ca1ab1e".repeat(5)}`;
const BOOST_SECRET = "boost-secret-canary";
const ADMIN_TOKEN = "admin-token-canary";
/** In URLs, as user, password and path. */
const RELAY_LOGIN = "relay-user-canary:relay-password-canary";
const FALLBACK_LOGIN = "fallback-user-canary:fallback-password-canary";
const FALLBACK_KEY = "fallback-key-canary";
const NODE_LOGIN = "node-user-canary:node-password-canary";
const NODE_KEY = "node-key-canary";
/** Texts of upstreams that fail. */
const WORDS = { relay: "words-of-the-relay", fallback: "words-of-the-fallback", node: "words-of-the-node" };

type Column =
	| "raw transaction"
	| "signature"
	| "call data"
	| "boost's secret"
	| "operator's token"
	| "relay's credentials"
	| "fallback's credentials"
	| "node's credentials"
	| "relay's text"
	| "fallback's or node's text";

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

/**
 * Each output, and the secrets that it is documented to show. It shows none of the other columns.
 */
const TABLE: Readonly<Record<string, readonly Column[]>> = {
	"answers while all is healthy": [],
	"answers to bad requests": [],
	"pages of bad paths": [],
	"answers of the operator's pages": [],
	"answers while the relay fails": [],
	// Boost streams the relay's own page, whatever it holds.
	"pages while the relay fails": ["relay's text"],
	...Object.fromEntries(
		Object.keys(FALLBACK_FAULTS).map((what) => [`answers while the fallback answers ${what}`, []]),
	),
	"reads while both fail": [],
	"answers in an outage": [],
	"reads while the node fails": [],
	eth_getTransactionByHash: ["call data"],
	status: [],
	"/metrics": [],
	"/status": [],
	"/readyz": [],
	"/livez": [],
	log: [],
	stderr: [],
	"requests to the relay": [
		...(["raw transaction", "signature", "call data", "boost's secret", "relay's credentials"] as const),
	],
	"requests to the fallback": ["raw transaction", "signature", "call data", "fallback's credentials"],
	"requests to the node": ["node's credentials"],
};

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

describe("the outputs of boost", () => {
	for (const [sink, shown] of Object.entries(TABLE)) {
		it(`${sink}: ${shown.length === 0 ? "no secret" : `no secret but ${shown.join(", ")}`}`, () => {
			watch.assertShows(sink, columns(), shown);
		});
	}

	it("are all in the table", () => {
		assert.deepEqual([...watch.places].sort(), Object.keys(TABLE).sort());
	});

	it("show a pending transaction by its hash with v, r, s, yParity and gasPrice 0x0, from any upstream", () => {
		const zero = { v: "0x0", r: "0x0", s: "0x0", yParity: "0x0", gasPrice: "0x0" };
		assert.ok(shown.length >= 4, `${shown.length}`);
		for (const { v, r, s, yParity, gasPrice } of shown)
			assert.deepEqual({ v, r, s, yParity, gasPrice }, zero);
	});
});

describe("the secrets that are searched for", () => {
	it("reached the fallback in at least ten transactions", () => {
		const raws = sent.map(({ raw, hash }) => ({ name: hash, value: raw }));
		assert.ok(watch.foundAt("requests to the fallback", raws).length >= 10);
	});

	it("reached each upstream in its logins", () => {
		const login = (text: string) => ({ name: text, value: `Basic ${Buffer.from(text).toString("base64")}` });
		for (const [place, text] of [
			["requests to the relay", RELAY_LOGIN],
			["requests to the fallback", FALLBACK_LOGIN],
			["requests to the node", NODE_LOGIN],
		] as const) {
			const logins = [RELAY_LOGIN, FALLBACK_LOGIN, NODE_LOGIN].map(login);
			assert.deepEqual(watch.foundAt(place, logins), [text], place);
		}
	});
});

it("boost shut down in order, and printed nothing but its log", () => {
	assert.deepEqual([exit.code, exit.stderr], [0, ""]);
	const lines = exit.stdout.trimEnd().split("\n");
	assert.ok(lines.length > 4, `${lines.length}`);
	for (const line of lines) assert.equal(typeof JSON.parse(line), "object");
});

function columns(): Readonly<Record<Column, readonly Secret[]>> {
	const named = (values: readonly string[]) => values.map((value) => ({ name: value, value }));
	const login = (text: string) => [text, ...text.split(":")];
	return {
		"raw transaction": sent.map(({ raw, hash }) => ({ name: hash, value: raw })),
		signature: sent.flatMap(({ raw, hash }) => signatureOf(raw, hash)),
		"call data": named([CALLDATA]),
		"boost's secret": named([BOOST_SECRET]),
		"operator's token": named([ADMIN_TOKEN]),
		"relay's credentials": named(login(RELAY_LOGIN)),
		"fallback's credentials": named([FALLBACK_KEY, ...login(FALLBACK_LOGIN)]),
		"node's credentials": named([NODE_KEY, ...login(NODE_LOGIN)]),
		"relay's text": named([WORDS.relay]),
		"fallback's or node's text": named([WORDS.fallback, WORDS.node]),
	};
}

function withLogin(url: string, login: string): string {
	return url.replace("//", `//${login}@`);
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

/** Submits one, and ignores the outcome. */
async function submit(place: string, path = "/fast?referrer=someone"): Promise<Signed> {
	const tx = (await fixture.users.actor()).sign({ data: CALLDATA });
	sent.push(tx);
	await call(place, "eth_sendRawTransaction", [tx.raw], path);
	return tx;
}

async function scenario(): Promise<void> {
	const first = await submit("answers while all is healthy");
	await lookAround();
	for (const body of refusedBodies(first.raw)) await post("answers to bad requests", body);
	for (const path of [`/tx/${first.raw}`, `/fast/${first.raw}`, `/tx/${first.raw}/events`])
		await watch.fetched("pages of bad paths", `${boost.url}${path}`);
	const token = { authorization: `Bearer ${ADMIN_TOKEN}` };
	await post("answers of the operator's pages", "", "/admin/close", { authorization: "Bearer guessed" });
	await post("answers of the operator's pages", "", "/admin/close", token);
	for (const path of ["/admin/state", "/admin/history"])
		await watch.fetched("answers of the operator's pages", `${boost.url}${path}`, { headers: token });
	// Forced closed, each request finds out for itself.
	for (const fault of RELAY_FAULTS) {
		await fixture.wires.relay.set(fault, fault.kind === "late" ? "submissions" : undefined);
		await submit("answers while the relay fails");
		await call("answers while the relay fails", "eth_gasPrice", []);
		// A streamed answer is cut where the relay's answer is.
		await watch.fetched("pages while the relay fails", `${boost.url}/info`).catch(() => "cut");
		await lookAround();
	}
	await post("answers of the operator's pages", "", "/admin/open", token);
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
	watch.saw("requests to the relay", JSON.stringify(fixture.wires.relay.requests()));
	watch.saw("requests to the fallback", fallback.posts.map(({ text }) => text).join("\n"));
	watch.saw("requests to the node", [...node.credentials, JSON.stringify(node.calls())].join("\n"));
}

/** The answer for it; null if nobody has it. */
async function byHash({ hash }: Signed): Promise<unknown> {
	const text = await call("eth_getTransactionByHash", "eth_getTransactionByHash", [hash]);
	const { result } = JSON.parse(text) as { result?: Record<string, unknown> | null };
	if (result?.blockHash === null) shown.push(result);
	return result ?? null;
}

/** Reads all that reports something of itself, and what is reported of each transaction. */
async function lookAround(): Promise<void> {
	for (const page of ["/metrics", "/status", "/readyz", "/livez"])
		await watch.fetched(page, `${boost.url}${page}`, { headers: AUTHORIZED });
	for (const tx of sent.slice(-2)) {
		await watch.fetched("status", `${boost.url}/tx/${tx.hash}`);
		await byHash(tx);
	}
}
