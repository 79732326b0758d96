// The start's wait for the node: until it answers, not longer than half a minute, and never for another chain.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { awaitNode, WrongNodeError } from "../../../../relay/chain/node.ts";
import { type Clock, systemClock } from "../../../../shared/clock.ts";
import { JsonRpcClient } from "../../../../shared/jsonrpc/client.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";
import { type DevChain, startDevChain } from "../../../devnet/devChain.ts";
import { type NodeProxy, startNodeProxy } from "../../../support/nodes.ts";

describe("awaitNode", () => {
	let chain: DevChain;
	let proxy: NodeProxy;
	let client: JsonRpcClient;
	let logged: string[] = [];
	const log: Logger = {
		...silentLogger,
		info: (message) => logged.push(message),
		warn: (message) => logged.push(message),
	};
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

	before(async () => {
		chain = await startDevChain();
		proxy = await startNodeProxy(chain.url);
		client = new JsonRpcClient({ url: proxy.url, timeoutMs: 5_000 }, { clock: systemClock });
	});
	afterEach(() => {
		proxy.setFault(null);
		logged = [];
	});
	after(async () => {
		await client.close();
		await proxy.stop();
		await chain.stop();
	});

	test("tells the chain, whatever it is or the one that is expected", async () => {
		for (const chainId of [undefined, 31_337n]) {
			const found = await awaitNode(client, { chainId, clock: systemClock, log });
			assert.equal(found.chainId, 31_337n);
		}
		assert.deepEqual(logged, ["node found", "node found"]);
	});

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
		proxy.setFault({ kind: "html", status: 503 });
		await assert.rejects(awaitNode(client, { chainId: undefined, clock: fastClock(), log }), WrongNodeError);
		// After 0.5, 1, 2 and then each 4 seconds.
		assert.equal(logged.length, 10);
	});
});
