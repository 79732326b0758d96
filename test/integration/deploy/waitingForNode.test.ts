// A relay whose node is down at its start. Its ports are open and say why it is not ready. It goes
// on by itself on the same ports and connections when the node comes, and only a wrong chain or a
// taken port ends it.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { startDevChain } from "../../devnet/devChain.ts";
import { freePort } from "../../devnet/freePort.ts";
import { postText, RawConnection } from "../../support/clients.ts";
import { startNodeProxy } from "../../support/nodes.ts";
import { type LaunchedRelay, readyStatus } from "../../support/processes.ts";
import { AUTHORIZED, RelayClient } from "../../support/relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { rawTransaction, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const NO_NODE = "http://127.0.0.1:1";
const WAITS = "waiting for the node of ETH_RPC_URL";
const NOT_READY = { code: -32603, message: "internal error: not ready yet, try again" };

let system: ProcessSystem;
before(async () => {
	system = await startProcessSystem();
});
after(() => system.stop());

interface Waiting {
	readonly relay: LaunchedRelay;
	readonly port: number;
	readonly url: string;
}

/** A relay that waits for its node. */
async function waiting(name: string, env: Readonly<Record<string, string>> = {}): Promise<Waiting> {
	const port = await freePort();
	const relay = system.launch({
		...{ DATA_DIR: join(system.folder, name), ETH_RPC_URL: NO_NODE, PORT: String(port) },
		...env,
	});
	await relay.logged(WAITS);
	return { relay, port, url: `http://127.0.0.1:${port}` };
}

/** Answers of its port: verb and path, status, the pattern of the body, and request headers. */
const ANSWERS: readonly (readonly [string, number, RegExp, Readonly<Record<string, string>>?])[] = [
	["GET /livez", 200, /^\{"live":true\}$/],
	[
		"GET /readyz",
		503,
		/^\{"ready":false,"draining":false,"checks":\{"node":\{"ok":false,"reason":"the node gives no JSON-RPC answer: nothing listens there: is it up, and is the port of ETH_RPC_URL right\?"\}\}\}$/,
	],
	["GET /", 200, /"ready":false/],
	["GET /", 200, /<!doctype html>/i, { accept: "text/html" }],
	["GET /metrics", 200, /^process_cpu_seconds_total /m, AUTHORIZED],
	["GET /metrics", 404, /unknown path/],
	["GET /info", 503, /"error":"not ready yet, try again"/],
	["GET /info", 503, /<h1>Not available now<\/h1>/, { accept: "text/html" }],
	["GET /pages/wallet.css", 200, /^\.top \{$/m],
	[`GET /tx/0x${"12".repeat(32)}`, 503, /"error":"not ready yet, try again"/],
	["OPTIONS /fast", 204, /^$/],
];

test("its port says what is wrong to operators and that it is not ready to everybody else", async () => {
	const { relay, port, url } = await waiting("answers");
	for (const [line, status, body, headers] of ANSWERS) {
		const [method = "", path] = line.split(" ");
		const answer = await fetch(`${url}${path}`, { method, headers: headers ?? {} });
		assert.equal(answer.status, status, line);
		assert.match(await answer.text(), body, line);
	}
	for (const path of ["/", "/fast", "/fullprivacy"]) {
		const answer = await posted(
			`${url}${path}`,
			'{"jsonrpc":"2.0","id":90071992547409931,"method":"eth_chainId"}',
		);
		assert.deepEqual([answer.status, answer.headers.get("retry-after")], [200, "1"]);
		assert.equal(
			await answer.text(),
			`{"jsonrpc":"2.0","id":90071992547409931,"error":${JSON.stringify(NOT_READY)}}`,
		);
	}
	const batch = await posted(
		url,
		'[{"jsonrpc":"2.0","id":"a","method":"x"},{"jsonrpc":"2.0","method":"y"},{"jsonrpc":"2.0","id":null,"method":"z"}]',
	);
	assert.deepEqual(
		(await batch.json()) as unknown,
		["a", null].map((id) => ({ jsonrpc: "2.0", id, error: NOT_READY })),
	);
	assert.equal(await upgradeStatus(`ws://127.0.0.1:${port}/fast`), 503);
	await relay.kill();
});

test("it goes on by itself when the node comes: on its ports and open connections, and nothing sent meanwhile is lost", async () => {
	const nodePort = await freePort();
	const [searchers, metrics] = [await freePort(), await freePort()];
	const { relay, port, url } = await waiting("goes on", {
		ETH_RPC_URL: `http://127.0.0.1:${nodePort}`,
		SEARCHER_PORT: String(searchers),
		METRICS_PORT: String(metrics),
	});
	assert.equal((await fetch(`http://127.0.0.1:${metrics}/metrics`)).status, 200);
	assert.equal(await upgradeStatus(`ws://127.0.0.1:${searchers}/`), 503);
	const [open, half] = [await RawConnection.open(port), await RawConnection.open(port)];
	const call = '{"jsonrpc":"2.0","id":7,"method":"eth_chainId"}';
	open.write(postText("/", call));
	assert.match((await open.answer()).body, /not ready yet/);
	const text = String(postText("/", call));
	half.write(text.slice(0, -10));
	const chain = await startDevChain({ port: nodePort });
	const by = testAccount(70_000);
	await chain.fund([by]);
	await until("it is ready", async () => (await readyStatus(url)) === 200);
	open.write(postText("/", call));
	assert.match((await open.answer()).body, /"id":7,"result":"0x7a69"/);
	// A request whose head was read before is answered as it was then.
	half.write(text.slice(-10));
	assert.match((await half.answer()).body, /not ready yet/);
	half.write(postText("/", call));
	assert.match((await half.answer()).body, /"id":7,"result":"0x7a69"/);
	assert.equal(await upgradeStatus(`ws://127.0.0.1:${searchers}/`), 101);
	assert.match(await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text(), /^relay_head_number \d+$/m);
	// The answers that the node gives once at the start are known.
	const client = new RelayClient(url);
	const raw = `0x${rawTransaction({ by, nonce: 0 }).toString("hex")}`;
	assert.match(await client.send(raw), /^0x[0-9a-f]{64}$/);
	const info = (await (await fetch(`${url}/info`)).json()) as Record<string, unknown>;
	assert.equal(info.bidding, true);
	assert.equal((await relay.kill("SIGTERM")).code, 0);
	for (const connection of [open, half]) connection.destroy();
	await chain.stop();
});

test("what is wrong is in the log and /readyz, in the operator's words, and without what the node says", async () => {
	const node = await startNodeProxy(system.chain.url);
	node.setFault({ kind: "html", status: 401 });
	const ETH_RPC_URL = node.url.replace("//", "//user:secretsecret@");
	const { relay, url } = await waiting("401", { ETH_RPC_URL });
	const reason =
		"the node gives no JSON-RPC answer: HTTP 401: it expects other credentials: check the key or password in ETH_RPC_URL";
	assert.equal((await relay.logged(WAITS)).reason, reason);
	const { checks } = (await (await fetch(`${url}/readyz`)).json()) as { checks: object };
	assert.deepEqual(checks, { node: { ok: false, reason } });
	node.setFault(null);
	await until("it is ready", async () => (await readyStatus(url)) === 200);
	assert.doesNotMatch((await relay.kill()).stdout, /secretsecret/);
	await node.stop();
});

test("a node that turns out to be of another chain ends it with one line", async () => {
	const nodePort = await freePort();
	const { relay, url } = await waiting("other chain", {
		ETH_RPC_URL: `http://127.0.0.1:${nodePort}`,
		CHAIN_ID: "1",
	});
	assert.equal(await readyStatus(url), 503);
	const chain = await startDevChain({ port: nodePort });
	const { code, stderr } = await relay.ended();
	assert.deepEqual([code, stderr], [1, "relay: ETH_RPC_URL is on chain 31337: expected CHAIN_ID 1\n"]);
	await chain.stop();
});

test("a port that is taken ends it with one line, though there is no node", async () => {
	const { port } = system.chain;
	const env = { DATA_DIR: join(system.folder, "wants it"), ETH_RPC_URL: NO_NODE, PORT: String(port) };
	const relay = system.launch(env);
	const { code, stderr } = await relay.ended();
	assert.equal(code, 1);
	assert.match(stderr, new RegExp(`^relay: PORT ${port} is taken: [^\\n]+\\n$`));
});

function posted(url: string, body: string): Promise<Response> {
	return fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
}

/** The status of the answer to a websocket's upgrade: 101 if it is open. */
function upgradeStatus(url: string): Promise<number> {
	return new Promise((resolve, reject) => {
		const socket = new WebSocket(url);
		socket.once("open", () => {
			socket.terminate();
			resolve(101);
		});
		socket.once("unexpected-response", (request, { statusCode = 0 }) => {
			request.destroy();
			resolve(statusCode);
		});
		socket.on("error", reject);
	});
}
