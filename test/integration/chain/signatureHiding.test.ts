// SIGNATURE_HIDING=pending: what is mined or was never private is shown as the node shows it, so
// that clients can verify it; what is private and pending is not.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { JsonRpcProvider, Transaction } from "ethers";
import { cast } from "../../support/processes.ts";
import { RelayFixture } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";

let system: TestSystem;
let fixture: RelayFixture;
before(async () => {
	system = await startSystem({ env: { SIGNATURE_HIDING: "pending" } });
	fixture = new RelayFixture(system);
});
after(() => system.stop());

it("a private transaction has no signature until it is mined, then the node's, which ethers and cast verify", async () => {
	const actor = await fixture.actor();
	await fixture.passBlock();
	const tx = actor.sign();
	await fixture.submit("/fast", tx);
	const seen = () => system.client.call("eth_getTransactionByHash", [tx.hash]);
	const pending = (await seen()) as Record<string, unknown>;
	for (const name of ["gasPrice", "v", "r", "s", "yParity"]) assert.equal(pending[name], "0x0", name);
	await fixture.waitUntilSent(tx);
	await system.nextBlock();
	await fixture.reaches(tx, "INCLUDED");
	assert.deepEqual(await seen(), await system.chain.rpc("eth_getTransactionByHash", [tx.hash]));
	const provider = new JsonRpcProvider(system.client.url, undefined, { staticNetwork: true });
	const found = await provider.getTransaction(tx.hash);
	assert.equal(found && Transaction.from(found).hash, tx.hash);
	assert.equal(found?.from.toLowerCase(), actor.address.toLowerCase());
	provider.destroy();
	const { stdout } = await cast("tx", "--rpc-url", system.client.url, tx.hash);
	assert.match(stdout, new RegExp(`^transactionHash\\s+${tx.hash}$|^hash\\s+${tx.hash}$`, "m"));
	assert.doesNotMatch(stdout, /^r\s+0x0+$/m);
});

it("transactions in the public mempool are returned as the node returns them", async () => {
	const actor = await fixture.actor();
	await fixture.passBlock();
	const tx = actor.sign();
	await system.chain.rpc("eth_sendRawTransaction", [tx.raw]);
	const shown = await system.client.call("eth_getTransactionByHash", [tx.hash]);
	assert.deepEqual(shown, await system.chain.rpc("eth_getTransactionByHash", [tx.hash]));
});
