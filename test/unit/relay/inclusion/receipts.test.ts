// Tests reading where transactions were mined from a real chain. A node's failure never counts as
// "not mined".

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { receiptReader } from "../../../../relay/inclusion/receipts.ts";
import type { UpstreamFault } from "../../../../shared/jsonrpc/client.ts";
import type { NodeFault } from "../../../support/nodes.ts";
import { fails, startProxiedChain } from "../chain/nodeFixture.ts";

const NEVER = `0x${"77".repeat(32)}`;

const { proxy, reader, mine, send } = await startProxiedChain();
/**
 * `has`: whether we follow the block of a receipt; null: it is before the blocks that we remember.
 */
const inclusions = (hashes: readonly string[], maxBlock = 1_000, has: () => boolean | null = () => true) =>
	receiptReader({ node: reader(), chain: { has, coinbaseAt: () => `0x${"c0".repeat(20)}` } }).inclusions(
		hashes,
		maxBlock,
	);

describe("receiptReader", () => {
	test("many are asked for by the hundred, and answered in their order", async () => {
		const mined: string[] = [];
		for (let i = 0; i < 20; i++) mined.push(await send(1, i));
		await mine();
		proxy.reset();
		const asked = Array.from({ length: 1_050 }, (_, i) =>
			i % 50 === 7 ? (mined[Math.floor(i / 50)] ?? NEVER) : `0x${i.toString(16).padStart(64, "0")}`,
		);
		const found = await inclusions(asked);
		assert.deepEqual(
			found.map((one) => (one === "unfollowed" ? one : (one?.hash ?? null))),
			asked.map((hash) => (mined.includes(hash) ? hash : null)),
		);
		assert.equal(proxy.requests, 11);
		assert.ok(proxy.calls().every(({ batch }) => batch <= 100));
	});

	const receipt = {
		transactionHash: NEVER,
		blockNumber: "0x5",
		blockHash: `0x${"55".repeat(32)}`,
		transactionIndex: "0x2",
		status: "0x1",
	};
	const result = (value: unknown): NodeFault => ({ kind: "result", result: value });
	const faults: readonly [string, NodeFault, UpstreamFault][] = [
		["refuses (indexing)", { kind: "error", code: -32000, message: "indexing" }, "notJsonRpc"],
		["answers HTML", { kind: "html", status: 502 }, "httpStatus"],
		["closes connections", { kind: "destroy" }, "unreachable"],
		["answers another's receipt", result({ ...receipt, transactionHash: receipt.blockHash }), "notJsonRpc"],
		["leaves out the block", result({ ...receipt, blockNumber: undefined }), "notJsonRpc"],
		["numbers blocks by numbers", result({ ...receipt, blockNumber: 5 }), "notJsonRpc"],
		["shortens the block's hash", result({ ...receipt, blockHash: "0x55" }), "notJsonRpc"],
	];
	for (const [name, fault, code] of faults) {
		test(`a node that ${name}: an error, not "not mined"`, async () => {
			proxy.setFault(fault);
			await assert.rejects(inclusions([NEVER]), fails(code));
		});
	}

	test("a receipt of a pending transaction is none; one from before Byzantium has no status", async () => {
		proxy.setFault(result({ ...receipt, blockNumber: null, blockHash: null, transactionIndex: null }));
		assert.deepEqual(await inclusions([NEVER]), [null]);
		proxy.setFault(result({ ...receipt, status: undefined, root: receipt.blockHash }));
		const [found] = await inclusions([NEVER]);
		assert.deepEqual(found, {
			...{ hash: NEVER, block: 5, blockHash: receipt.blockHash, index: 2, reverted: false },
			coinbase: `0x${"c0".repeat(20)}`,
		});
	});

	test("one of a block that we don't follow counts as neither mined nor not mined", async () => {
		const mined = await send(2, 0);
		await mine();
		const [found] = await inclusions([mined]);
		assert.ok(found !== null && found !== "unfollowed");
		assert.deepEqual(await inclusions([mined], 1_000, () => false), ["unfollowed"]);
		assert.deepEqual(await inclusions([mined], found?.block ?? 0, () => false), ["unfollowed"]);
	});

	test("that of a block before those that we remember counts if the node has the same block at its number", async () => {
		const mined = [await send(3, 0), await send(3, 1)];
		await mine();
		const older = () => null;
		proxy.reset();
		const found = await inclusions(mined, 1_000, older);
		assert.deepEqual(found, await inclusions(mined));
		const asked = proxy.calls().filter(({ method }) => method === "eth_getBlockByNumber");
		assert.equal(asked.length, 1, "one for both");
		proxy.setFault(result({ ...receipt, blockNumber: "0x1" }), { times: 1 });
		assert.deepEqual(await inclusions([NEVER], 1_000, older), ["unfollowed"]);
		proxy.setFault(result(null), { methods: ["eth_getBlockByNumber"] });
		await assert.rejects(inclusions(mined, 1_000, older), fails("notJsonRpc"));
	});
});
