// Programs that ask for the hashes of pending transactions, as they would of a node: by the
// libraries that wallets and bots are built on, from relay and boost. None of them ends by it, and
// each can read what to do instead.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, test } from "node:test";
import { createPublicClient, http, webSocket } from "viem";
import { Web3 } from "web3";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { WsClient } from "../../support/clients.ts";
import { until } from "../../support/until.ts";

const WHAT_TO_DO = /searchers subscribe to service_partialPendingTransactions/;
/** The id of all such subscriptions and filters: "pending". */
const ID = "0x70656e64696e67";

let fixture: BoostFixture;
before(async () => {
	fixture = await startBoostFixture();
});
after(() => fixture.stop());

/**
 * A program of ethers' as anybody writes it, on each provider: an end by an unhandled rejection is
 * exit code 1.
 */
const PROGRAM = (providers: Readonly<Record<string, string>>) => `
import { JsonRpcProvider, WebSocketProvider } from "ethers";
const use = async (name, provider) => {
	provider.on("error", (error) => console.log(name, "told:", error.message));
	const heads = new Promise((resolve) => provider.on("block", resolve));
	const listener = (hash) => console.log(name, "hash:", hash);
	await provider.on("pending", listener);
	console.log(name, "listens");
	await heads;
	await provider.off("pending", listener);
	console.log(name, "read on:", await provider.send("eth_chainId", []));
	await provider.destroy();
};
await Promise.all([
${Object.entries(providers)
	.map(([name, made]) => `	use(${JSON.stringify(name)}, ${made}),`)
	.join("\n")}
]);
`;

/** Runs the program until each of its providers has seen a block. */
async function run(
	providers: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly out: string }> {
	const child = spawn(process.execPath, ["--input-type=module", "-e", PROGRAM(providers)]);
	let out = "";
	let code: number | null | undefined;
	for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (out += text));
	child.on("close", (ended) => (code = ended));
	const listen = () => Object.keys(providers).every((name) => out.includes(`${name} listens`));
	await until("all listen, or it has ended", () => listen() || code !== undefined);
	await until("it has ended", async () => {
		if (code !== undefined) return true;
		await fixture.users.passBlock();
		return false;
	});
	return { code: code ?? null, out };
}

const PLACES = ["relay", "boost"] as const;
const urlOf = (place: (typeof PLACES)[number]) =>
	place === "boost" ? fixture.boost.url : fixture.system.client.url;
const socketOf = (place: (typeof PLACES)[number]) => `${urlOf(place).replace("http", "ws")}/ws`;

for (const place of PLACES) {
	test(`ethers on ${place}: on("pending") ends nothing; over a websocket its error event says what to do, over HTTP its log`, async () => {
		const { code, out } = await run({
			websocket: `new WebSocketProvider("${socketOf(place)}")`,
			HTTP: `new JsonRpcProvider("${urlOf(place)}", undefined, { pollingInterval: 50 })`,
		});
		assert.equal(code, 0, out);
		for (const name of ["websocket", "HTTP"]) assert.match(out, new RegExp(`^${name} read on: 0x7a69$`, "m"));
		const told = out.split("\n").find((line) => line.startsWith("websocket told: ")) ?? "";
		assert.match(told, /received result for unknown id/);
		assert.match(told, WHAT_TO_DO);
		assert.match(out, new RegExp(`^@TODO Error: .*${WHAT_TO_DO.source}`, "m"));
	});

	test(`viem on ${place}: watchPendingTransactions reports what to do, and goes on over a websocket`, async (t) => {
		const errors: Error[] = [];
		const client = createPublicClient({ transport: http(urlOf(place), { retryCount: 0 }) });
		const onError = (error: Error) => errors.push(error);
		t.after(client.watchPendingTransactions({ onTransactions() {}, onError, pollingInterval: 20 }));
		const reported = await until("an error is reported", () => errors[0]);
		assert.match(reported.message, WHAT_TO_DO);
		const transport = webSocket(socketOf(place), { reconnect: false });
		const socket = createPublicClient({ transport });
		const unwatch = socket.watchPendingTransactions({ onTransactions() {}, onError });
		assert.equal(await socket.getChainId(), 31_337);
		unwatch();
		(await socket.transport.getRpcClient()).close();
	});

	test(`web3.js on ${place}: a subscription to pending transactions ends nothing`, async () => {
		const web3 = new Web3(socketOf(place));
		const subscription = await web3.eth.subscribe("pendingTransactions");
		assert.equal(await web3.eth.getChainId(), 31_337n);
		await subscription.unsubscribe();
		web3.provider?.disconnect();
	});
}

async function subscribes(): Promise<void> {
	for (const params of [["newPendingTransactions"], ["newPendingTransactions", true]]) {
		const client = await WsClient.open(socketOf("boost"));
		client.socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params }));
		assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 1, result: ID });
		const { id, error } = (await client.next()) as { id: unknown; error: { code: number; message: string } };
		assert.deepEqual([id, error.code], [null, -32601]);
		assert.match(error.message, WHAT_TO_DO);
		client.socket.send(JSON.stringify({ jsonrpc: "2.0", id: 2, method: "eth_unsubscribe", params: [ID] }));
		assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 2, result: true });
		client.terminate();
	}
}

test("the refusal comes behind the answer, and while the relay is down too", async () => {
	await subscribes();
	await fixture.fails();
	await subscribes();
	await fixture.recovers();
});

test("who polls such a filter is refused, who uninstalls it is not", async () => {
	for (const method of ["eth_getFilterChanges", "eth_getFilterLogs"]) {
		const { json } = await fixture.boost.call(method, [ID]);
		const { code, message } = (json as { error: { code: number; message: string } }).error;
		assert.equal(code, -32601);
		assert.match(message, WHAT_TO_DO);
	}
	for (const params of [[], [true], [false], [null]])
		assert.equal(await fixture.boost.result("eth_newPendingTransactionFilter", params), ID);
	assert.equal(await fixture.boost.result("eth_uninstallFilter", [ID]), true);
});
