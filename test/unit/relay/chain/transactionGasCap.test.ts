// The limit of a transaction's gas, by the fork that the node tells or by the chain's name.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { transactionGasCap } from "../../../../relay/chain/transactionGasCap.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { MAX_TX_GAS } from "../../../../shared/ethereum/intrinsicGas.ts";
import { JsonRpcClient } from "../../../../shared/jsonrpc/client.ts";
import { type DevChain, startDevChain } from "../../../devnet/devChain.ts";
import { type NodeProxy, startNodeProxy } from "../../../support/nodeProxy.ts";

for (const [hardfork, cap] of [
	["prague", null],
	["osaka", MAX_TX_GAS],
] as const) {
	describe(`transactionGasCap on ${hardfork}`, () => {
		let chain: DevChain;
		let proxy: NodeProxy;
		let client: JsonRpcClient;

		before(async () => {
			chain = await startDevChain({ hardfork });
			proxy = await startNodeProxy(chain.url);
			client = new JsonRpcClient({ url: proxy.url, timeoutMs: 5_000 }, { clock: systemClock });
		});
		after(async () => {
			await client.close();
			await proxy.stop();
			await chain.stop();
		});

		test("is what the node's fork says, whatever the chain is called", async () => {
			assert.equal(await transactionGasCap(client, 31_337n), cap);
			assert.equal(await transactionGasCap(client, 1n), cap);
		});

		test("goes by the chain's name where the node does not tell its fork", async () => {
			for (const fault of [
				{ kind: "error", code: -32601, message: "no" },
				{ kind: "result", result: null },
				{ kind: "result", result: { current: null } },
				{ kind: "result", result: { current: {} } },
			] as const) {
				proxy.setFault(fault);
				assert.equal(await transactionGasCap(client, 1n), MAX_TX_GAS);
				assert.equal(await transactionGasCap(client, 31_337n), null);
			}
			proxy.setFault(null);
		});
	});
}
