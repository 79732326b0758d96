// What a relay knows after SIGKILL is what it knew before: replacements, parameters, life, its key. And what a data
// folder is good for: one process, one chain.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Wallet } from "ethers";
import { startDevChain } from "../devnet/devChain.ts";
import { type ProcessSystem, startProcessSystem } from "../support/processSystem.ts";
import { type RelayProcess, runRelay } from "../support/relayProcess.ts";
import { accountOf, rawTransaction, signedTransaction, type TxOptions } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

const GWEI = 1_000_000_000;

let system: ProcessSystem;
before(async () => {
	system = await startProcessSystem();
});
after(() => system.stop());

test("a replaced transaction stays replaced, and its bytes are never sent again", async () => {
	const folder = folderOf("replaced");
	const killed = await system.start(folder);
	const old = signed(0, { maxFeePerGas: 20 * GWEI, maxPriorityFeePerGas: GWEI });
	const fresh = signed(0, { maxFeePerGas: 22 * GWEI, maxPriorityFeePerGas: 1.1 * GWEI });
	await killed.client.send(old.raw);
	await killed.client.send(fresh.raw);
	await killed.kill();

	const mark = lastRequest();
	const { client, ...relay } = await restarted(folder);
	assert.equal(await client.stage(old.hash), "REPLACED");
	assert.equal(await client.call("eth_getTransactionByHash", [old.hash]), null);
	assert.equal(await client.send(old.raw), old.hash);
	await until("the new one is out again", () => wasSent(fresh.raw, mark));
	await system.nextBlock({ client, ...relay } as RelayProcess);
	assert.equal(await client.stage(fresh.hash), "INCLUDED");
	assert.equal(await client.stage(old.hash), "REPLACED");
	assert.equal(wasSent(old.raw, mark), false);
});
