// Tests for leaks: sends transactions, keys and credentials that are like no other text, while builders and the node
// fail in every way, then searches everything the relay put out, with the log at its most verbose.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Transaction } from "ethers";
import { WebSocket } from "ws";
import { LeakWatch, type Secret } from "../../support/leakWatch.ts";
import { type NodeProxy, startNodeProxy } from "../../support/nodes.ts";
import { type PlainAnswer, type PlainBuilder, startPlainBuilder } from "../../support/plainBuilder.ts";
import { type Exit, type RelayProcess, readyStatus } from "../../support/processes.ts";
import { ADMIN_TOKEN, AUTHORIZED } from "../../support/relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { accountOf, rawTransaction, type TxOptions } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const PATHS = ["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"];
const CALLDATA = `0x${"c0ffee5ca1ab1e".repeat(5)}`;
const SIGNING_KEY = `0x${"5ec7e75e".repeat(8)}`;
/** What the proxy's own page of an error says as well. */
const NODE_WORDS = "secret-of-the-node";
const BUILDER_WORDS = "words-of-the-builder";
/** Reverts with its call data: the data of its failure is a canary too. */
const REVERTER = "0x00000000000000000000000000000000000badc0";
const REVERTER_CODE = "0x365f5f37365ffd";

const BUILDERS: Readonly<Record<string, (body: string) => PlainAnswer>> = {
	hangs: () => "hang",
	down: () => "destroy",
	html: () => ({ status: 502, body: `<html>${BUILDER_WORDS}</html>`, contentType: "text/html" }),
	truncated: (body) => ({ status: 200, body: `{"jsonrpc":"2.0","id":1,"result":"${body.slice(0, 900)}` }),
	echoesInError: (body) => ({
		status: 200,
		body: JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32000, message: body, data: body } }),
	}),
	echoesInResult: (body) => ({ status: 200, body: JSON.stringify({ jsonrpc: "2.0", id: 1, result: body }) }),
	echoesAsText: (body) => ({ status: 400, body, contentType: "text/plain" }),
};

const watch = new LeakWatch();
let system: ProcessSystem;
let proxy: NodeProxy;
let plain: PlainBuilder[];
let relay: RelayProcess;
let exit: Exit;
let raws: string[];
let hashes: string[];
let signatures: readonly Secret[];
const SECRETS: readonly Secret[] = [
	{ name: "signing key", value: SIGNING_KEY },
	{ name: "boost secret", value: "boost-secret-canary" },
	{ name: "node user", value: "node-user-canary" },
	{ name: "node password", value: "node-password-canary" },
	{ name: "node key", value: "node-key-canary" },
	{ name: "builder key", value: "builder-key-canary" },
	{ name: "node's words", value: NODE_WORDS },
	{ name: "builder's words", value: BUILDER_WORDS },
];

before(async () => {
	plain = [];
	for (const answer of Object.values(BUILDERS)) {
		const builder = await startPlainBuilder();
		builder.answerWith(answer);
		plain.push(builder);
	}
	const rows = Object.keys(BUILDERS).map((name, i) => ({ name, url: `${plain[i]?.url}/builder-key-canary` }));
	system = await startProcessSystem({ builders: [{ name: "dev" }, ...rows] });
	await system.chain.rpc("anvil_setCode", [REVERTER, REVERTER_CODE]);
	proxy = await startNodeProxy(system.chain.url);
	const credentials = "node-user-canary:node-password-canary";
	relay = await system.start({
		LOG_LEVEL: "trace",
		SIGNING_KEY,
		BOOST_SECRET: "boost-secret-canary",
		ETH_RPC_URL: `${proxy.url.replace("//", `//${credentials}@`)}/v2/node-key-canary?key=node-key-canary`,
		ETH_WS_URL: `ws://${credentials}@127.0.0.1:1/v2/node-key-canary`,
	});
	raws = [
		...PATHS.map((_, i) => rawOf(i, { data: CALLDATA, gasLimit: 60_000 })),
		rawOf(5, { data: CALLDATA, to: REVERTER }),
	];
	signatures = raws.flatMap((raw, i) => secretsOf(raw, i));
	await scenario();
});
after(async () => {
	await system.stop();
	await proxy.stop();
	for (const builder of plain) await builder.stop();
});

test("the builders received the secrets that the tests search for, and each failed in its own way", async () => {
	const control = new LeakWatch();
	for (const builder of plain) control.saw("builder", builder.bodies.join("\n"));
	// All but the failing one, and the one of /fullprivacy, which is the first builder's alone.
	const given = signatures.filter(({ name }) => !/^transaction [25]/.test(name));
	assert.deepEqual(
		control.found(signatures),
		given.map(({ name }) => `${name} at builder`),
	);
});

test("no output contains a raw transaction or a signature", () => {
	assert.ok(watch.places.length >= 12, watch.places.join(", "));
	assert.deepEqual(watch.found(signatures), []);
});

test("call data is only in the documented outputs: by hash, and in the revert data of a failure", () => {
	const calldata = [{ name: "call data", value: CALLDATA }];
	const allowed = ["eth_getTransactionByHash", "status of the failing one", "events of the failing one"];
	assert.deepEqual(watch.found(calldata, allowed), []);
});

test("no output contains a key, a credential or an upstream's text", () => {
	assert.deepEqual(watch.found(SECRETS), []);
});

test("a pending transaction by its hash has v, r, s, yParity and gasPrice 0x0", async () => {
	assert.equal(pendingShown.length, raws.length);
	for (const shown of pendingShown) {
		const { v, r, s, yParity, gasPrice, blockHash } = shown;
		assert.deepEqual({ v, r, s, yParity, gasPrice, blockHash }, { ...ZEROES, blockHash: null });
	}
});

test("it shuts down in order, and has printed nothing but its log", () => {
	assert.deepEqual([exit.code, exit.stderr], [0, ""]);
	const lines = exit.stdout.trimEnd().split("\n");
	assert.ok(lines.length > 20);
	for (const line of lines) assert.equal(typeof JSON.parse(line), "object");
});

const ZEROES = { v: "0x0", r: "0x0", s: "0x0", yParity: "0x0", gasPrice: "0x0" };
const pendingShown: Readonly<Record<string, unknown>>[] = [];

async function scenario(): Promise<void> {
	hashes = [];
	for (const [i, raw] of raws.entries()) {
		hashes.push(await relay.client.send(raw, `${PATHS[i] ?? "/fast"}?referrer=someone`));
	}
	for (const hash of hashes) {
		const answer = await relay.client.ask("eth_getTransactionByHash", [hash]);
		watch.saw("eth_getTransactionByHash", JSON.stringify(answer));
		pendingShown.push(answer.result as Record<string, unknown>);
		const raw = await relay.client.ask("eth_getRawTransactionByHash", [hash]);
		watch.saw("eth_getRawTransactionByHash", JSON.stringify(raw));
	}
	await until("every builder has answered or has not", allDelivered, 15_000);
	await lookAround();
	for (const body of badBodies()) {
		const headers = { "content-type": "application/json" };
		await watch.fetched("error answers", `${relay.url}/fast`, { method: "POST", headers, body });
	}
	for (const path of [`/tx/${raws[0]}`, `/fast/${raws[0]}`, `/tx/${raws[0]}/events`]) {
		await watch.fetched("error pages", `${relay.url}${path}`);
	}
	watch.saw("websocket", await overWebsocket(badBodies()));
	await system.nextBlock(relay);
	await lookAround();
	// The node fails in its own ways, and quotes its address; then it is gone.
	const quoting =
		"no answer from https://node-user-canary:node-password-canary@node.example/v3/node-key-canary";
	for (const fault of [
		{ kind: "error", code: -32603, message: quoting } as const,
		{ kind: "error", code: -32002, message: quoting, status: 500 } as const,
		{ kind: "html", status: 500 } as const,
		{ kind: "truncated" } as const,
	]) {
		proxy.setFault(fault);
		await askTheNode("answers while the node fails");
	}
	await proxy.stop();
	await askTheNode("answers while the node is down");
	await until("it says that it is not ready", async () => (await readyStatus(relay.url)) === 503, 20_000);
	await lookAround();
	exit = await relay.kill("SIGTERM", 25_000);
	watch.saw("log", exit.stdout);
	watch.saw("stderr", exit.stderr);
}

/** Reads and a submission that need the node. */
async function askTheNode(place: string): Promise<void> {
	const fresh = rawOf(6, { data: CALLDATA });
	const calls: readonly (readonly [string, readonly unknown[]])[] = [
		["eth_gasPrice", []],
		["eth_getTransactionCount", [`0x${"11".repeat(20)}`, "pending"]],
		["eth_getTransactionReceipt", [hashes[0]]],
		["eth_getBalance", [REVERTER, "latest"]],
		["eth_sendRawTransaction", [fresh]],
	];
	const answers = await Promise.all(calls.map(([method, params]) => relay.client.ask(method, params)));
	watch.saw(place, JSON.stringify(answers));
}

/** All that tells something of itself. */
async function lookAround(): Promise<void> {
	for (const page of ["/metrics", "/readyz", "/livez", "/info"])
		await watch.fetched(page, `${relay.url}${page}`, { headers: AUTHORIZED });
	const operator = { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
	assert.match(await watch.fetched("/admin/state", `${relay.url}/admin/state`, operator), /"pool"/);
	for (const [i, hash] of hashes.entries()) {
		const whose = i === hashes.length - 1 ? " of the failing one" : "";
		await watch.fetched(`status${whose}`, `${relay.url}/tx/${hash}`);
		await watch.fetched(`events${whose}`, `${relay.url}/tx/${hash}/events`);
	}
}

async function allDelivered(): Promise<boolean> {
	const events = await Promise.all(hashes.slice(0, 2).map((hash) => relay.client.events(hash)));
	return events.every((list) => {
		const told = new Set(list.filter(({ type }) => type === "delivered").map(({ builder }) => builder));
		return told.size === Object.keys(BUILDERS).length + 1;
	});
}

/** The raw transaction in bodies that are refused, each for another reason. */
function badBodies(): string[] {
	const [raw = ""] = raws;
	const call = (method: unknown, params: unknown, more: object = {}): string =>
		JSON.stringify({ jsonrpc: "2.0", id: 1, method, params, ...more });
	const flipped = `${raw.slice(0, -2)}${raw.endsWith("00") ? "01" : "00"}`;
	return [
		raw,
		`{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["${raw}"`,
		call("eth_sendRawTransaction", [raw, raw]),
		call("eth_sendRawTransaction", { raw }),
		call("eth_sendRawTransaction", [{ raw }]),
		call("eth_sendRawTransaction", [[raw]]),
		call("eth_sendRawTransaction", [raw.slice(2)]),
		call("eth_sendRawTransaction", [`${raw}0`]),
		call("eth_sendRawTransaction", [`${raw}00`]),
		call("eth_sendRawTransaction", [raw.slice(0, -10)]),
		call("eth_sendRawTransaction", [flipped]),
		call("eth_sendRawTransaction", raw),
		call("eth_sendPrivateTransaction", [{ tx: raw }]),
		call("eth_sendBundle", [{ txs: [raw] }]),
		call("eth_sendBundle", [{ txs: [raw, raw] }]),
		call("eth_sendBundle", [{ txs: [`0x${"77".repeat(32)}`, raw] }]),
		call("eth_sendBundle", [{ txs: [`0x${"77".repeat(32)}`, flipped] }]),
		call("eth_sendBundle", [{ txs: [], replacementUuid: raw.repeat(3) }]),
		call("eth_cancelBundle", [{ replacementUuid: [raw] }]),
		call("mev_sendBundle", [{ version: raw, body: [{ tx: raw }] }]),
		call("mev_sendBundle", [
			{ version: "v0.1", inclusion: { block: "0x1" }, body: [{ tx: raw, canRevert: raw }] },
		]),
		call("mev_sendBundle", [
			{ version: "v0.1", inclusion: { block: "0x1" }, body: [{ tx: raw.slice(0, -20) }] },
		]),
		call(raw, []),
		call("eth_getTransactionByHash", [raw]),
		call("eth_getTransactionCount", [raw, "pending"]),
		call("eth_sendRawTransaction", [raw], { jsonrpc: raw }),
		call("eth_sendRawTransaction", [raw], { id: { raw } }),
	];
}

async function overWebsocket(bodies: readonly string[]): Promise<string> {
	const socket = new WebSocket(`${relay.url.replace("http", "ws")}/fast`);
	const answers: string[] = [];
	socket.on("message", (data) => answers.push(String(data)));
	await new Promise((resolve) => socket.once("open", resolve));
	for (const body of bodies) socket.send(body);
	await until("all are answered", () => answers.length === bodies.length);
	socket.terminate();
	return answers.join("\n");
}

function rawOf(account: number, options: TxOptions): string {
	const by = accountOf(system.chain.accounts[account]?.privateKey ?? "");
	return `0x${rawTransaction({ by, nonce: 0, ...options }).toString("hex")}`;
}

/** Its end, which is the signature, and both halves of that. */
function secretsOf(raw: string, i: number): Secret[] {
	const { signature } = Transaction.from(raw);
	return [
		{ name: `transaction ${i}`, value: raw },
		{ name: `transaction ${i}'s r`, value: signature?.r ?? "" },
		{ name: `transaction ${i}'s s`, value: signature?.s ?? "" },
	];
}
