// No secret leaves the relay. Transactions, bids, keys and credentials that resemble no other text
// go through every path and every end, while builders and the node fail and quote them. Then each
// output, with the log at its most verbose, is compared with a table of the secrets that it is
// documented to show.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { prepareBidding } from "../../support/biddingFixture.ts";
import { WsClient } from "../../support/clients.ts";
import { LeakWatch, type Secret, signatureOf } from "../../support/leakWatch.ts";
import { type NodeProxy, startNodeProxy } from "../../support/nodes.ts";
import { type PlainAnswer, type PlainBuilder, startPlainBuilder } from "../../support/plainBuilder.ts";
import { type Exit, type RelayProcess, readyStatus } from "../../support/processes.ts";
import { ADMIN_TOKEN, AUTHORIZED } from "../../support/relayClient.ts";
import { RelayFixture } from "../../support/relayFixture.ts";
import { type ProcessSystem, seesHead, startProcessSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";
import {
	BACKRUNS,
	BID_CALLDATA,
	BidCanaries,
	LOSING,
	REFUSED,
	SEARCHER_KEY,
	SENT,
	targets,
	WINNING,
} from "./bidCanaries.ts";
import { refusedBodies, refusedBundles } from "./refusedBodies.ts";
import { CALLDATA, LIFE_BLOCKS, UserCanaries } from "./userCanaries.ts";

const SIGNING_KEY = `0x${"5ec7e75e".repeat(8)}`;
const CANARY_KEY = `0x${"ca4a4e5e".repeat(8)}`;
const BOOST_SECRET = "boost-secret-canary";
const NODE_LOGIN = "node-user-canary:node-password-canary";
const NODE_KEY = "node-key-canary";
const BUILDER_KEY = "builder-key-canary";
const BUILDER_WORDS = "words-of-the-builder";
/** The node proxy's own error page has this text too. */
const NODE_WORDS = "secret-of-the-node";

type Failure = (body: string) => PlainAnswer;
const rpc = (outcome: object): PlainAnswer => ({
	status: 200,
	body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...outcome }),
});
/** How builders fail: each in all its ways, in turn. */
const FAILURES: Readonly<Record<string, readonly Failure[]>> = {
	breaking: [
		() => "destroy",
		() => ({ status: 502, body: `<html>${BUILDER_WORDS}</html>`, contentType: "text/html" }),
	],
	quoting: [
		(body) => rpc({ error: { code: -32000, message: body, data: body } }),
		(body) => rpc({ result: body }),
		(body) => ({ status: 400, body, contentType: "text/plain" }),
		(body) => ({ status: 200, body: `{"jsonrpc":"2.0","id":1,"result":"${body.slice(0, 900)}` }),
	],
};

type Column =
	| "raw transaction"
	| "signature"
	| "call data"
	| "bid's call data"
	| "key or signature of a user"
	| "key of the relay"
	| "node's credentials"
	| "builder's credentials"
	| "upstream's text"
	| "losing bid"
	| "winning bid";

/**
 * Each output, and the secrets that it is documented to show. It shows none of the other columns.
 */
const TABLE: Readonly<Record<string, readonly Column[]>> = {
	"answers to submissions": [],
	"answers to waits": [],
	"answers to cancels": [],
	eth_getTransactionByHash: ["call data"],
	eth_getRawTransactionByHash: [],
	status: [],
	"status of the failing one": ["call data"],
	events: [],
	"events of the failing one": ["call data"],
	"event stream": [],
	"event stream of the failing one": ["call data"],
	"status subscription": [],
	"error answers": [],
	"error answers over a websocket": [],
	"error pages": [],
	"/metrics": [],
	"/readyz": [],
	"/livez": [],
	"/info": [],
	"/admin/state": [],
	"/operator/refunds.csv": [],
	receipts: [],
	"receipts for a stranger": [],
	"/operator/builders.csv": [],
	"/operator/builders.json": [],
	"/admin/history": [],
	"answers while the node fails": [],
	"answers while the node is down": [],
	"own answers": ["losing bid", "winning bid"],
	"own bundles": ["winning bid"],
	"own feed": ["losing bid", "winning bid"],
	"rival's answers": [],
	"rival's feed": ["call data"],
	"rival's pages": [],
	"rival's answers, later": [],
	"rival's feed, later": ["call data", "winning bid"],
	"rival's pages, later": ["winning bid"],
	log: [],
	stderr: [],
	"requests to the node": ["call data", "bid's call data", "node's credentials", "losing bid", "winning bid"],
	"requests to builders": [
		...(["raw transaction", "signature", "call data", "bid's call data", "builder's credentials"] as const),
		...(["losing bid", "winning bid"] as const),
	],
};

const watch = new LeakWatch();
const plain: Record<string, PlainBuilder> = {};
let system: ProcessSystem;
let node: NodeProxy;
let relay: RelayProcess;
let fixture: RelayFixture;
let users: UserCanaries;
let searchers: BidCanaries;
let errorsBefore: readonly string[];
let exit: Exit;

before(async () => {
	for (const [name, ways] of Object.entries(FAILURES)) {
		const builder = await startPlainBuilder();
		let asked = 0;
		// The first request of the first one is never answered.
		builder.answerWith((body) => {
			asked += 1;
			if (name === "breaking" && asked === 1) return "hang";
			return ways[asked % ways.length]?.(body) ?? "destroy";
		});
		plain[name] = builder;
	}
	const rows = Object.entries(plain).map(([name, { url }]) => ({ name, url: `${url}/${BUILDER_KEY}` }));
	system = await startProcessSystem({
		builders: [{ name: "vault", fullPrivacy: true }, ...rows],
		env: { TRUST_PROXY: "1", ACCOUNT_TIMEOUT_MS: "1000", TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
	});
	await prepareBidding(system);
	node = await startNodeProxy(system.chain.url);
	relay = await system.start({
		LOG_LEVEL: "trace",
		...{ SIGNING_KEY, BOOST_SECRET, CANARY_KEY, CANARY_PER_DAY: "1440" },
		ETH_RPC_URL: `${node.url.replace("//", `//${NODE_LOGIN}@`)}/v2/${NODE_KEY}?key=${NODE_KEY}`,
		ETH_WS_URL: `ws://${NODE_LOGIN}@127.0.0.1:1/v2/${NODE_KEY}`,
	});
	fixture = new RelayFixture({
		...system,
		...{ node, relay: { port: relay.port, stop: () => system.stop() } },
		...{ client: relay.client, core: relay.client, restart: () => Promise.reject(new Error("not here")) },
		nextBlock: () => system.nextBlock(relay),
		seesHead: (number) => seesHead(relay.client, number),
	});
	users = new UserCanaries(fixture, watch);
	searchers = await BidCanaries.open(relay.client, watch);
	await scenario();
});
after(async () => {
	await system.stop();
	await node.stop();
	for (const builder of Object.values(plain)) await builder.stop();
});

describe("the outputs of the relay", () => {
	for (const [sink, shown] of Object.entries(TABLE)) {
		it(`${sink}: ${shown.length === 0 ? "no secret" : `no secret but ${shown.join(", ")}`}`, () => {
			watch.assertShows(sink, columns(), shown);
		});
	}

	it("are all in the table", () => {
		assert.deepEqual([...watch.places].sort(), Object.keys(TABLE).sort());
	});

	it("show a pending transaction by its hash with v, r, s, yParity and gasPrice 0x0", () => {
		assert.equal(users.pending.length, 6);
		for (const { v, r, s, yParity, gasPrice, blockHash } of users.pending)
			assert.deepEqual({ v, r, s, yParity, gasPrice, blockHash }, { ...ZEROES, blockHash: null });
	});
});

describe("the secrets that are searched for", () => {
	it("are those of transactions whose receipts have shown their ends", () => {
		assert.deepEqual([...users.receipts].sort(), users.all.map(({ tx }) => tx.hash).sort());
	});

	it("reached builders: every transaction and every valid bid, and no refused one", () => {
		const raws = [...users.all.map(({ tx }) => tx), ...targets, ...SENT].filter(isForBuilders);
		assert.ok(raws.length > 40, `only ${raws.length}`);
		const secrets = raws.map(({ raw, hash }) => ({ name: hash, value: raw }));
		assert.equal(watch.foundAt("requests to builders", secrets).length, secrets.length);
		const refused = REFUSED.map(({ raw, hash }) => ({ name: hash, value: raw }));
		assert.deepEqual(watch.foundAt("requests to builders", refused), []);
	});

	it("reached each failing builder in each of its ways to fail", () => {
		for (const [name, ways] of Object.entries(FAILURES)) {
			const bodies = plain[name]?.bodies ?? [];
			assert.ok(bodies.length > 10 * ways.length, `${name} received only ${bodies.length} requests`);
		}
	});

	it("are those of transactions that ended in every way", () => {
		assert.deepEqual(users.ends(), {
			mined: "INCLUDED",
			failing: "EXPIRED",
			cancelled: "CANCELLED",
			"cancelled by signature": "CANCELLED",
			"cancelled softly": "CANCELLED",
			replaced: "REPLACED",
			replacement: "INCLUDED",
			"cancelled and mined": "INCLUDED",
			dropped: "DROPPED",
			expired: "EXPIRED",
		});
	});
});

describe("the relay process", () => {
	it("logged no error before its node failed", () => {
		assert.deepEqual(errorsBefore, []);
	});

	it("shut down in order, and printed nothing but its log", () => {
		assert.deepEqual([exit.code, exit.stderr], [0, ""]);
		const lines = exit.stdout.trimEnd().split("\n");
		assert.ok(lines.length > 20);
		const levels = lines.map((line) => (JSON.parse(line) as { level: number }).level);
		assert.ok(levels.includes(20), "the log is at its most verbose");
	});
});

const ZEROES = { v: "0x0", r: "0x0", s: "0x0", yParity: "0x0", gasPrice: "0x0" };

/** Whether a builder that fails may receive it. */
function isForBuilders(tx: { readonly hash: string }): boolean {
	const canary = users.all.find((one) => one.tx.hash === tx.hash);
	return canary?.what !== "failing";
}

function columns(): Readonly<Record<Column, readonly Secret[]>> {
	const txs = [...users.all.map(({ tx }) => tx), ...targets, ...BACKRUNS];
	const named = (name: string, values: readonly string[]) => values.map((value) => ({ name, value }));
	const [user = "", password = ""] = NODE_LOGIN.split(":");
	return {
		"raw transaction": txs.map(({ raw, hash }) => ({ name: hash, value: raw })),
		signature: txs.flatMap(({ raw, hash }) => signatureOf(raw, hash)),
		"call data": named("call data", [CALLDATA]),
		"bid's call data": named("bid's call data", [BID_CALLDATA]),
		"key or signature of a user": [
			...named(
				"user's key",
				users.all.map(({ actor }) => actor.account.keyHex),
			),
			...named("searcher's key", [SEARCHER_KEY]),
			...named("request's signature", [...users.signatures, ...searchers.signatures]),
		],
		"key of the relay": named("setting", [SIGNING_KEY, BOOST_SECRET, CANARY_KEY]),
		"node's credentials": named("node", [user, password, NODE_LOGIN, NODE_KEY]),
		"builder's credentials": named("builder", [BUILDER_KEY]),
		"upstream's text": named("text", [NODE_WORDS, BUILDER_WORDS]),
		"losing bid": LOSING,
		"winning bid": WINNING,
	};
}

async function scenario(): Promise<void> {
	await users.connect();
	await fixture.passBlock();
	const mined = await users.mineSome();
	await users.failOne();
	await users.readPending();
	await sendRefused(users.of("mined")[0]?.tx.raw ?? "");
	await users.cancelSome();
	await users.replaceSome();
	await searchers.bid((await fixture.head()) + 1, (raws) =>
		Object.values(plain).every((builder) => raws.every((raw) => builder.raws().has(raw))),
	);
	await lookAround();
	await fixture.system.nextBlock();
	await mined();
	await users.reach("replacement", "INCLUDED");
	await searchers.lookLater();
	await lookAround();

	// Their users cancel the first ones when blocks hold them; others with their nonces are mined
	// instead of the second ones.
	for (const { tx } of await users.onAllPaths("cancelled and mined")) await users.cancel(tx);
	await users.onAllPaths("dropped");
	await users.onAllPaths("expired");
	await mineElsewhere();
	await users.reach("dropped", "DROPPED");
	const release = node.hold();
	await system.chain.rpc("anvil_reorg", [1, []]).finally(release);
	await users.reach("cancelled and mined", "CANCELLED");
	await lookAround();
	await mineElsewhere();
	for (let i = 0; i < LIFE_BLOCKS; i++) await fixture.passBlock();
	await users.reach("cancelled and mined", "INCLUDED");
	for (const [what, stage] of [
		["dropped", "DROPPED"],
		["expired", "EXPIRED"],
		["failing", "EXPIRED"],
	] as const)
		await users.reach(what, stage);
	for (const { tx } of users.all) {
		await users.cancelAsStranger(tx);
		await users.submit(`${tx.raw}00`);
	}
	await lookAround();
	await users.leave();
	errorsBefore = relay
		.logs()
		.filter(({ level }) => level >= 50)
		.map(({ msg }) => msg);
	await failNode();
	exit = await relay.kill("SIGTERM", 25_000);
	watch.saw("log", exit.stdout);
	watch.saw("stderr", exit.stderr);
	watch.saw("requests to the node", [...node.credentials, JSON.stringify(node.calls())].join("\n"));
	for (const { bodies, paths } of Object.values(plain))
		watch.saw("requests to builders", [...paths, ...bodies].join("\n"));
	watch.saw("requests to builders", JSON.stringify(system.builder.requests()));
}

/** A block with what users had cancelled, and with others in the place of what is dropped. */
async function mineElsewhere(): Promise<void> {
	for (const { tx } of users.of("cancelled and mined")) await fixture.publish(tx);
	for (const { actor } of users.of("dropped")) await fixture.publish(actor.sign({ value: 1n }));
	await fixture.passBlock();
}

/** Sends `raw` in requests that are refused, over HTTP, as paths of pages, and over a websocket. */
async function sendRefused(raw: string): Promise<void> {
	const bodies = [...refusedBodies(raw), ...refusedBundles(raw)];
	const headers = { "content-type": "application/json" };
	for (const body of bodies)
		await watch.fetched("error answers", `${relay.url}/fast`, { method: "POST", headers, body });
	for (const path of [`/tx/${raw}`, `/fast/${raw}`, `/tx/${raw}/events`])
		await watch.fetched("error pages", `${relay.url}${path}`);
	const ws = await WsClient.open(`${relay.url.replace("http", "ws")}/fast`);
	for (const body of bodies) ws.send(body);
	for (const _ of bodies) watch.saw("error answers over a websocket", JSON.stringify(await ws.next()));
	ws.terminate();
}

/** The node fails in several ways, and quotes its address; then it is gone. */
async function failNode(): Promise<void> {
	const message = `no answer from https://${NODE_LOGIN}@node.example/v3/${NODE_KEY}`;
	for (const fault of [
		{ kind: "error", code: -32603, message } as const,
		{ kind: "error", code: -32002, message, status: 500 } as const,
		{ kind: "html", status: 500 } as const,
		{ kind: "truncated" } as const,
	]) {
		node.setFault(fault);
		await askTheNode("answers while the node fails");
	}
	await node.stop();
	await askTheNode("answers while the node is down");
	await until("it is not ready", async () => (await readyStatus(relay.url)) === 503);
	await lookAround();
}

/** Reads and a submission that need the node. */
async function askTheNode(place: string): Promise<void> {
	const fresh = users.of("expired")[0]?.actor.sign({ data: CALLDATA, gasLimit: 60_000, value: 9n });
	const calls: readonly (readonly [string, readonly unknown[]])[] = [
		["eth_gasPrice", []],
		["eth_getTransactionCount", [`0x${"11".repeat(20)}`, "pending"]],
		["eth_getTransactionReceipt", [users.of("mined")[0]?.tx.hash]],
		["eth_getBalance", [`0x${"12".repeat(20)}`, "latest"]],
		["eth_sendRawTransaction", [fresh?.raw]],
	];
	const answers = await Promise.all(calls.map(([method, params]) => relay.client.ask(method, params)));
	watch.saw(place, JSON.stringify(answers));
}

/** The operator's tables and how each begins. */
const OPERATOR_TABLES = {
	"/operator/refunds.csv": /month,recipient/,
	"/operator/builders.csv": /^day,builder,sent/,
	"/operator/builders.json": /"findings"/,
};

/** Reads the pages about the relay and about each transaction. */
async function lookAround(): Promise<void> {
	for (const page of ["/metrics", "/readyz", "/livez", "/info"])
		await watch.fetched(page, `${relay.url}${page}`, { headers: AUTHORIZED });
	const operator = { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
	assert.match(await watch.fetched("/admin/state", `${relay.url}/admin/state`, operator), /"pool"/);
	for (const [csv, head] of Object.entries(OPERATOR_TABLES))
		assert.match(await watch.fetched(csv, `${relay.url}${csv}`, operator), head);
	assert.match(await watch.fetched("/admin/history", `${relay.url}/admin/history`, operator), /"hour"/);
	await users.look();
}
