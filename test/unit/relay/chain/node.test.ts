// Identifying the node, and waiting for it at the start: without an end, in words for its operator,
// and never for another chain.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { awaitNode, probeNode } from "../../../../relay/chain/node.ts";
import { type LogFields, silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import type { FaultWhen, NodeFault } from "../../../support/nodes.ts";
import { PATIENCE_MS, until } from "../../../support/until.ts";
import { startProxiedChain } from "./nodeFixture.ts";

const { proxy, client } = await startProxiedChain();

describe("probeNode", () => {
	test("a node that does not name itself is unknown, odd names are made printable", async () => {
		const only = { methods: ["web3_clientVersion"] };
		proxy.setFault({ kind: "error", code: -32601, message: "no" }, only);
		assert.equal((await probeNode(client)).clientVersion, "unknown");
		proxy.setFault({ kind: "result", result: `Geth/\n\u202e${"x".repeat(200)}` }, only);
		assert.equal((await probeNode(client)).clientVersion, `Geth/??${"x".repeat(93)}`);
	});
});

describe("awaitNode", () => {
	interface Wait {
		readonly reasons: readonly string[];
		readonly logged: readonly string[];
		readonly clock: ManualClock;
		readonly stop: AbortController;
		readonly found: ReturnType<typeof awaitNode>;
	}

	function wait(chainId?: bigint): Wait {
		const [reasons, logged]: [string[], string[]] = [[], []];
		const clock = new ManualClock();
		const stop = new AbortController();
		const log = {
			...silentLogger,
			info: (message: string) => logged.push(message),
			warn: (message: string, fields?: LogFields) => logged.push(`${message}: ${fields?.reason}`),
		};
		const onWait = (reason: string) => void (reasons.at(-1) !== reason && reasons.push(reason));
		const found = awaitNode(client, { chainId, clock, log, onWait, stopped: stop.signal });
		found.catch(() => {});
		return { reasons, logged, clock, stop, found };
	}

	const NOT_AS_ONE = "the node gives no JSON-RPC answer";
	/** Faults of a node at a start, and the operator's sentence. */
	const FAULTS: readonly (readonly [NodeFault, FaultWhen, string])[] = [
		[{ kind: "destroy" }, {}, "the node does not answer (UND_ERR_SOCKET)"],
		[{ kind: "html", status: 503 }, {}, `${NOT_AS_ONE}: HTTP 503: it, or a proxy in front of it, has failed`],
		[
			{ kind: "html", status: 401 },
			{},
			`${NOT_AS_ONE}: HTTP 401: it expects other credentials: check the key or password in ETH_RPC_URL`,
		],
		[
			{ kind: "html", status: 200 },
			{},
			`${NOT_AS_ONE}: HTTP 200: a web page, not JSON-RPC: check host and path of ETH_RPC_URL`,
		],
		[
			{ kind: "error", code: -32601, message: "secretsecret" },
			{ methods: ["eth_chainId"] },
			"the node answers eth_chainId with the JSON-RPC error -32601",
		],
		[
			{ kind: "result", result: null },
			{ methods: ["eth_getBlockByNumber"] },
			"the node answers eth_getBlockByNumber of block 0 without a result of use",
		],
		[
			{ kind: "result", result: { currentBlock: "0x10", highestBlock: "0x100", startingBlock: "0x0" } },
			{ methods: ["eth_syncing"] },
			"the node is syncing: it is at block 16 of 256",
		],
	];

	for (const [fault, when, reason] of FAULTS) {
		test(`waits, and says: ${reason}`, async () => {
			proxy.setFault(fault, when);
			const { reasons, logged, clock, found } = wait();
			await until("it waits", () => reasons.length > 0);
			assert.deepEqual(logged, [`waiting for the node of ETH_RPC_URL: ${reason}`]);
			proxy.setFault(null);
			await until("it pauses", () => clock.timers > 0);
			await clock.advance(4_000);
			assert.equal((await found).chainId, 31_337n);
			assert.deepEqual([reasons, logged.at(-1)], [[reason], "node found"]);
		});
	}

	/** Answers to `eth_syncing` that are no reason to wait. */
	const FINE: readonly unknown[] = [
		false,
		{ currentBlock: "0x100", highestBlock: "0x140" },
		{ currentBlock: "0x100", highestBlock: "0x100", txIndexRemainingBlocks: "0x99999" },
		{ msgCount: 7 },
		"odd",
	];

	test("a node that indexes old blocks, is a few blocks behind, or has other words for it, is no reason to wait", async () => {
		for (const result of FINE) {
			proxy.setFault({ kind: "result", result }, { methods: ["eth_syncing"] });
			assert.equal((await wait().found).chainId, 31_337n);
		}
		proxy.setFault({ kind: "error", code: -32601, message: "no" }, { methods: ["eth_syncing"] });
		assert.equal((await wait().found).chainId, 31_337n);
	});

	test("tries each four seconds at the most, without an end; the log says it ever less often, and each new reason", async () => {
		proxy.setFault({ kind: "html", status: 503 });
		const { clock, logged, reasons, stop, found } = wait();
		for (let tries = 1; tries <= 300; tries += 1) {
			await until("it has failed again", () => clock.timers > 0, PATIENCE_MS, 1);
			await clock.advance(4_000);
		}
		assert.ok(logged.length > 5 && logged.length < 12, `${logged.length} lines`);
		const before = logged.length;
		proxy.setFault({ kind: "html", status: 401 });
		await until("it has the new reason", async () => {
			await clock.advance(4_000);
			return reasons.length > 1;
		});
		assert.equal(logged.length, before + 1);
		stop.abort();
		await assert.rejects(found, { code: "STOPPED" });
	});

	test("a stop ends it at once, even while the node hangs", async () => {
		proxy.setFault({ kind: "hang" });
		const { stop, found } = wait();
		await until("the node was asked", () => proxy.calls("eth_chainId").length > 0);
		stop.abort();
		await assert.rejects(found, { code: "STOPPED" });
	});

	test("refuses another chain at once, naming both", async () => {
		proxy.setFault(null);
		await assert.rejects(wait(1n).found, {
			name: "WrongNodeError",
			message: "ETH_RPC_URL is on chain 31337: expected CHAIN_ID 1",
		});
	});
});
