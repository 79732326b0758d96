// Tests simulation, queue to wire, before a real node and one that fails in every way: each fault becomes
// NODE_UNAVAILABLE, in time, and is over when the node is back.

import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, it } from "node:test";
import type { SimulationOutcome } from "../../../relay/domain/simulation.ts";
import { nodeAbilities } from "../../../relay/simulation/nodeAbilities.ts";
import { SimulationQueue } from "../../../relay/simulation/queue.ts";
import { createSimulator } from "../../../relay/simulation/simulator.ts";
import { systemClock } from "../../../shared/clock.ts";
import { JsonRpcClient } from "../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../shared/log.ts";
import { startDevChain } from "../../devnet/devChain.ts";
import { fakeRequest, fakeTransaction } from "../../support/simulationFakes.ts";
import { until } from "../../support/until.ts";

const TIMEOUT_MS = 300;
/** All that the question for the cap asks for. */
const MUCH = 1n << 49n;
const DOWN: SimulationOutcome = {
	ok: false,
	error: { code: "NODE_UNAVAILABLE", message: "the node gave no verdict" },
};

/** What the node does with a call: its id, and where to answer. */
type Behaviour = (id: number, response: ServerResponse, body: string) => void;

const reply = (response: ServerResponse, status: number, body: string, type = "application/json") =>
	response.writeHead(status, { "content-type": type }).end(body);
const rpcReply = (id: number, response: ServerResponse, answer: object) =>
	reply(response, 200, JSON.stringify({ jsonrpc: "2.0", id, ...answer }));

const passed = { status: "0x1", gasUsed: "0x5208", returnData: "0x", logs: [] };
const well: Behaviour = (id, response, body) => {
	if (body.startsWith("["))
		return reply(response, 200, JSON.stringify((JSON.parse(body) as Call[]).map(tracedCall)));
	if (!body.includes('"eth_simulateV1"'))
		return reply(response, 200, JSON.stringify(tracedCall(JSON.parse(body) as Call)));
	return rpcReply(id, response, { result: [{ calls: [passed] }, { calls: [passed] }] });
};

interface Call {
	readonly id: number;
	readonly params: readonly { readonly tracer?: string }[];
}
const tracedCall = ({ id, params }: Call): object => {
	const isDiff = params.at(-1)?.tracer === "prestateTracer";
	return { jsonrpc: "2.0", id, result: isDiff ? { pre: {}, post: {} } : { gasUsed: "0x5208" } };
};

const FAULTS: Readonly<Record<string, Behaviour>> = {
	"says nothing": () => {},
	"hangs up": (_, response) => response.destroy(),
	"stops in the middle of its answer": (_, response) => {
		response.writeHead(200, { "content-length": "1000" }).write('{"jsonrpc"');
	},
	"answers 500": (_, response) => reply(response, 500, "oops", "text/plain"),
	"answers 429 with a page": (_, response) => reply(response, 429, "<html>slow down</html>", "text/html"),
	"answers a page": (_, response) => reply(response, 200, "<html></html>", "text/html"),
	"answers nothing": (_, response) => reply(response, 200, ""),
	"answers another call": (id, response) => rpcReply(id + 1, response, { result: [{ calls: [passed] }] }),
	"answers without a result": (id, response) => rpcReply(id, response, {}),
	"answers null": (id, response) => rpcReply(id, response, { result: null }),
	"answers half of it": (id, response) => rpcReply(id, response, { result: [{ calls: [] }] }),
	"has an internal error": (id, response) =>
		rpcReply(id, response, { error: { code: -32603, message: "internal error" } }),
	"does not have the state": (id, response) =>
		rpcReply(id, response, { error: { code: -32000, message: "header not found" } }),
	"serves nothing of it": (id, response) =>
		rpcReply(id, response, { error: { code: -32601, message: "the method does not exist" } }),
};

describe("simulation before a node that fails", () => {
	let server: Server;
	let client: JsonRpcClient;
	let behaviour: Behaviour = well;
	let received = 0;

	before(async () => {
		server = createServer((request, response) => {
			void readBody(request).then((body) => {
				received += 1;
				behaviour((JSON.parse(body) as { id: number }).id, response, body);
			});
		});
		await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
		const { port } = server.address() as AddressInfo;
		client = new JsonRpcClient({ url: `http://127.0.0.1:${port}`, timeoutMs: 1_000 }, { clock: systemClock });
	});
	after(async () => {
		await client.close();
		server.closeAllConnections();
		await new Promise((resolve) => server.close(resolve));
	});
	beforeEach(() => {
		behaviour = well;
		received = 0;
	});

	function queueOf(simulates: boolean, concurrency = 4): SimulationQueue {
		const simulator = createSimulator(
			{ simulates, gasCap: MUCH, timeoutMs: TIMEOUT_MS },
			{ node: client, clock: systemClock, onRun() {} },
		);
		const metrics = { jobs() {}, waited() {}, ran() {} };
		return new SimulationQueue({ concurrency }, { simulator, clock: systemClock, metrics });
	}

	for (const [title, fault] of Object.entries(FAULTS)) {
		it(`that ${title}, and is back`, async () => {
			const queue = queueOf(true);
			behaviour = fault;
			const begun = performance.now();
			assert.deepEqual(await queue.simulate(fakeRequest()), [DOWN]);
			assert.ok(performance.now() - begun < TIMEOUT_MS + 2_000);
			behaviour = well;
			const outcomes = await queue.simulate(fakeRequest());
			assert.deepEqual(outcomes, [{ ok: true, gasUsed: 21_000n, emitsEvents: false, paid: null }]);
			await queue.stop();
		});
	}

	it("that fails in the middle of a chain: what passed before it has passed", async () => {
		const transactions = [0n, 1n, 2n].map((nonce) => fakeTransaction({ nonce }));
		for (const tracer of ["callTracer", "prestateTracer"]) {
			behaviour = (id, response, body) => {
				if (body.includes('"nonce":"0x1"') && body.includes(tracer)) return response.destroy();
				well(id, response, body);
			};
			const outcomes = await queueOf(false).simulate(fakeRequest({ transactions }));
			assert.deepEqual(outcomes, [{ ok: true, gasUsed: 21_000n, emitsEvents: false, paid: null }, DOWN]);
		}
	});

	it("that hangs: each place is free again in time, and nobody is asked twice", async () => {
		const queue = queueOf(true, 4);
		behaviour = () => {};
		const hanging = Array.from({ length: 4 }, () => queue.simulate(fakeRequest({ priority: "again" })));
		await until("two calls at the node", () => received === 2);
		assert.deepEqual([queue.running, queue.waiting], [2, 2]);
		assert.deepEqual((await Promise.all(hanging)).flat(), [DOWN, DOWN, DOWN, DOWN]);
		assert.equal(received, 4);
		await queue.stop();
	});

	it("that is not there at all", async () => {
		const nobody = createServer();
		await new Promise<void>((resolve) => nobody.listen(0, "127.0.0.1", resolve));
		const { port } = nobody.address() as AddressInfo;
		await new Promise((resolve) => nobody.close(resolve));
		const url = `http://127.0.0.1:${port}`;
		const node = new JsonRpcClient({ url, timeoutMs: 1_000 }, { clock: systemClock });
		const abilities = await nodeAbilities(node, "unknown", silentLogger);
		assert.deepEqual(abilities, { simulates: true, gasCap: 50_000_000n });
		const simulator = createSimulator(
			{ ...abilities, timeoutMs: TIMEOUT_MS },
			{ node, clock: systemClock, onRun() {} },
		);
		assert.deepEqual(await simulator.simulate(fakeRequest()), [DOWN]);
		await node.close();
	});
});

it("finds what anvil can do, also before its first block", async () => {
	const chain = await startDevChain();
	const node = new JsonRpcClient({ url: chain.url, timeoutMs: 5_000 }, { clock: systemClock });
	assert.deepEqual(await nodeAbilities(node, "anvil", silentLogger), { simulates: true, gasCap: MUCH });
	await chain.rpc("evm_mine");
	assert.deepEqual(await nodeAbilities(node, "anvil", silentLogger), { simulates: true, gasCap: MUCH });
	await node.close();
	await chain.stop();
});

async function readBody(request: IncomingMessage): Promise<string> {
	const chunks: Buffer[] = [];
	for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
	return Buffer.concat(chunks).toString("utf8");
}
