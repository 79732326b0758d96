// What the relay itself asks of the node: who it is, and reads for the relay's own methods.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nodeReads, probeNode } from "../../../../relay/chain/node.ts";
import { Passthrough } from "../../../../relay/chain/passthrough.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { caller, type NodeFault } from "../../../support/nodes.ts";
import { startProxiedChain } from "./nodeFixture.ts";

const { chain, proxy, client, mine, send } = await startProxiedChain();
await mine(2);

const passthrough = () => new Passthrough({}, { node: client, head: () => null, log: silentLogger });
const genesis = async () => (await chain.rpc("eth_getBlockByNumber", ["0x0", false])) as { hash: string };

describe("the relay's own reads", () => {
	test("counts and transactions by hash, asked each time", async () => {
		const reads = nodeReads(passthrough());
		const address = chain.wallet(7).address;
		assert.equal(await reads.pendingCount(address, caller()), 0n);
		const hash = await send(7, 0);
		assert.equal(await reads.pendingCount(address, caller()), 1n);
		assert.equal(await reads.transactionCount(address, "latest", caller()), "0x0");
		assert.equal(await reads.transactionCount(address, { blockNumber: "0x1" }, caller()), "0x0");
		assert.deepEqual(
			await reads.transactionByHash(hash, caller()),
			await chain.rpc("eth_getTransactionByHash", [hash]),
		);
		assert.equal(await reads.transactionByHash(`0x${"77".repeat(32)}`, caller()), null);
	});

	test("their errors are like those of any read", async () => {
		const reads = nodeReads(passthrough());
		await assert.rejects(reads.transactionCount("0x12", "latest", caller()), {
			name: "ForeignRpcError",
			code: -32602,
		});
		for (const fault of [
			{ kind: "html", status: 502 },
			{ kind: "result", result: null },
			{ kind: "result", result: 1 },
			{ kind: "result", result: "1" },
		] satisfies NodeFault[]) {
			proxy.setFault(fault);
			await assert.rejects(reads.pendingCount("0x12", caller()), {
				kind: "internal",
				message: "internal error",
				data: { reason: "node unavailable" },
			});
		}
	});
});

describe("probeNode", () => {
	test("tells chain, genesis and version", async () => {
		assert.deepEqual(await probeNode(client), {
			chainId: 31337n,
			genesisHash: (await genesis()).hash,
			clientVersion: "anvil/v1.7.1",
		});
	});

	test("a node that does not name itself is unknown, odd names are made printable", async () => {
		const only = { methods: ["web3_clientVersion"] };
		proxy.setFault({ kind: "error", code: -32601, message: "no" }, only);
		assert.equal((await probeNode(client)).clientVersion, "unknown");
		proxy.setFault({ kind: "result", result: `Geth/\n\u202e${"x".repeat(200)}` }, only);
		assert.equal((await probeNode(client)).clientVersion, `Geth/??${"x".repeat(93)}`);
	});

	for (const [name, fault] of [
		["HTML", { kind: "html", status: 404 }],
		["errors", { kind: "error", code: -32601, message: "no" }],
		["null", { kind: "result", result: null }],
		["a chain id alone", { kind: "result", result: "0x1" }],
		["a closed connection", { kind: "destroy" }],
	] satisfies [string, NodeFault][]) {
		test(`throws at ${name}`, async () => {
			proxy.setFault(fault);
			await assert.rejects(probeNode(client), UpstreamError);
		});
	}
});
