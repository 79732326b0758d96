// Identifying the node, and waiting for it at the start: half a minute at most, and never for another chain.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { awaitNode, probeNode, WrongNodeError } from "../../../../relay/chain/node.ts";
import { type Clock, systemClock } from "../../../../shared/clock.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";
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
	const logged: string[] = [];
	const note = (message: string) => logged.push(message);
	const log: Logger = { ...silentLogger, info: note, warn: note };
	/** Pauses are over at once, and counted as if they had taken their time. */
	const fastClock = (): Clock => {
		let now = 0;
		return {
			...systemClock,
			monotonic: () => now,
			after(ms, fn) {
				// Deadlines are longer than pauses, and none is met here.
				if (ms > 4_000) return systemClock.after(ms, fn);
				now += ms;
				return systemClock.after(0, fn);
			},
		};
	};

	test("waits for a node that comes up a little later", async () => {
		proxy.setFault({ kind: "html", status: 503 }, { times: 9 });
		const found = await awaitNode(client, { chainId: 31_337n, clock: fastClock(), log });
		assert.equal(found.chainId, 31_337n);
		assert.equal(logged.at(-1), "node found");
	});

	test("refuses another chain at once, naming both", async () => {
		await assert.rejects(awaitNode(client, { chainId: 1n, clock: systemClock, log }), {
			name: "WrongNodeError",
			message: "ETH_RPC_URL is on chain 31337: expected CHAIN_ID 1",
		});
	});

	test("gives up after half a minute", async () => {
		logged.length = 0;
		proxy.setFault({ kind: "html", status: 503 });
		await assert.rejects(awaitNode(client, { chainId: undefined, clock: fastClock(), log }), WrongNodeError);
		// After 0.5, 1, 2 and then each 4 seconds.
		assert.equal(logged.length, 10);
	});
});
