// What a data folder is good for: one process, one chain, and the key that its relay signs with. Each test has a folder
// of its own.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type DevChainOptions, startDevChain } from "../../devnet/devChain.ts";
import { holds, type Signed, signedOn } from "../../support/chainTransaction.ts";
import { IN_FOLDER } from "../../support/engine.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/processSystem.ts";
import { runRelay } from "../../support/relayProcess.ts";
import type { TxOptions } from "../../support/txFactory.ts";

let system: ProcessSystem;
before(async () => {
	system = await startProcessSystem();
});
after(() => system.stop());

test("without SIGNING_KEY one is made, kept, and warned of", async () => {
	const env = folder("key");
	const other = folder("another key");
	const signers: string[] = [];
	for (const [account, at] of [
		[5, env],
		[6, env],
		[7, other],
	] as const) {
		const relay = await system.start(at);
		const tx = signed(account);
		const mark = system.lastRequest();
		await relay.client.send(tx.raw);
		const sent = await system.builder.waitForRequest(
			({ seq, params }) => seq > mark && holds(params, tx.raw),
		);
		signers.push(sent.signer ?? "none");
		const warned = relay.logs().filter(({ level, msg }) => level === 40 && msg.includes("SIGNING_KEY"));
		assert.equal(warned.length, 1);
		await relay.kill();
	}
	assert.match(signers[0] ?? "", /^0x/);
	assert.equal(signers[1], signers[0]);
	assert.notEqual(signers[2], signers[0]);
});

test("a second process on the same data folder is refused, and the first one is none the worse", async () => {
	const env = { ...folder("two processes"), ...IN_FOLDER };
	const first = await system.start(env);
	const second = await runRelay({ env: { ...system.env, ...env } });
	assert.equal(second.code, 1);
	assert.match(second.stderr, /^relay: another process uses the data folder .*DATA_DIR.*\n$/);
	const tx = signed(8);
	await first.client.send(tx.raw);
	await system.delivered([tx.raw]);
	await first.kill();
	// The lock ends with the process that had it.
	const third = await system.start(env);
	assert.equal(await third.client.call("eth_chainId", []), "0x7a69");
	await third.kill();
});

test("a data folder of another chain is refused, and not taken over", async (t) => {
	const env = folder("chain");
	const first = await system.start(env);
	await first.kill();
	const others: readonly DevChainOptions[] = [
		{ chainId: 31_338 },
		// The chain id is the same here, the genesis is not.
		{ genesisTimestamp: 1_600_000_000 },
	];
	for (const options of others) {
		const chain = await startDevChain(options);
		t.after(() => chain.stop());
		const refused = await runRelay({ env: { ...system.env, ...env, ETH_RPC_URL: chain.url } });
		assert.equal(refused.code, 1);
		assert.match(refused.stderr, /^relay: the store belongs to another chain .*DATA_DIR.*\n$/);
	}
	const again = await system.start(env);
	await again.kill();
});

/** A transaction of one of the chain's accounts; each test has an account of its own. */
function signed(account: number, options: TxOptions = {}): Signed {
	return signedOn(system.chain, account, options);
}

function folder(name: string): { DATA_DIR: string } {
	return { DATA_DIR: join(system.folder, name) };
}
