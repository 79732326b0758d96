// What a relay knows after SIGKILL: replacements, parameters, life; and what its data folder is good for: one process, one
// chain, and the key that it signs with. Each test has its own data folder and account.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type DevChainOptions, startDevChain } from "../../devnet/devChain.ts";
import { holds, type Signed, signedOn } from "../../support/crashCrowd.ts";
import { IN_FOLDER } from "../../support/engine.ts";
import { runRelay } from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import type { TxOptions } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const GWEI = 1_000_000_000;

let system: ProcessSystem;
before(async () => {
	system = await startProcessSystem();
});
after(() => system.stop());

test("a replaced transaction stays replaced, and its bytes never go out again", async () => {
	const env = folder("replaced");
	const killed = await system.start(env);
	const old = signed(0, { maxFeePerGas: 20 * GWEI, maxPriorityFeePerGas: GWEI });
	const fresh = signed(0, { maxFeePerGas: 22 * GWEI, maxPriorityFeePerGas: 1.1 * GWEI });
	await killed.client.send(old.raw);
	await killed.client.send(fresh.raw);
	await killed.kill();

	const mark = system.lastRequest();
	const relay = await system.start(env);
	assert.equal(await relay.client.stage(old.hash), "REPLACED");
	assert.equal(await relay.client.call("eth_getTransactionByHash", [old.hash]), null);
	assert.equal(await relay.client.send(old.raw), old.hash);
	await system.delivered([fresh.raw], mark);
	await system.nextBlock(relay);
	assert.equal(await relay.client.stage(fresh.hash), "INCLUDED");
	assert.equal(await relay.client.stage(old.hash), "REPLACED");
	assert.equal(wasSent(old.raw, mark), false);
	await relay.kill();
});

test("path and query parameters of a submission outlive SIGKILL", async () => {
	const env = folder("parameters");
	const killed = await system.start(env);
	const tx = signed(1);
	const query = "referrer=wallet%20x&refundRecipient=0x00000000000000000000000000000000000ABCDE";
	await killed.client.send(tx.raw, `/noreverts?${query}`);
	await killed.kill();

	const mark = system.lastRequest();
	const relay = await system.start(env);
	const sent = await system.builder.waitForRequest(({ seq, params }) => seq > mark && holds(params, tx.raw));
	// What may not revert is not listed: the path's own treatment.
	assert.deepEqual((sent.params[0] as { revertingTxHashes: unknown }).revertingTxHashes, []);
	await system.nextBlock(relay);
	const status = await relay.client.status(tx.hash);
	assert.equal(status.status, "INCLUDED");
	assert.equal(status.fastMode, false);
	assert.equal(status.referrer, "wallet x");
	assert.equal(status.refundRecipient, "0x00000000000000000000000000000000000abcde");
	await relay.kill();
});

test("a block that was built while the relay was dead is found at its start", async () => {
	const env = folder("mined");
	const killed = await system.start(env);
	const tx = signed(2);
	await killed.client.send(tx.raw);
	await system.delivered([tx.raw]);
	await killed.kill();
	const built = await system.builder.buildBlock();
	assert.deepEqual(built.transactions, [tx.hash]);

	const relay = await system.start(env);
	await until("it is included", async () => (await relay.client.stage(tx.hash)) === "INCLUDED");
	assert.equal(await relay.client.send(tx.raw), tx.hash);
	await relay.kill();
});

test("a life goes on where it was: SIGKILL does not start it anew", async () => {
	const env = { ...folder("life"), TX_TTL_BLOCKS: "4" };
	const killed = await system.start(env);
	// Never to be mined: it reverts.
	const to = `0x${"0e".repeat(20)}`;
	await system.chain.rpc("anvil_setCode", [to, "0x60006000fd"]);
	const tx = signed(3, { to });
	await killed.client.send(tx.raw);
	await until("it is held", async () => (await killed.client.stage(tx.hash)) === "SIMULATION_FAILED");
	await system.nextBlock(killed);
	// With the second block what was known at the first one is on disk.
	await system.nextBlock(killed);
	await killed.kill();

	const relay = await system.start(env);
	const status = await relay.client.status(tx.hash);
	assert.equal(status.stage, "SIMULATION_FAILED");
	assert.equal(status.simulationError?.code, "EXECUTION_REVERTED");
	await system.nextBlock(relay);
	assert.equal(await relay.client.stage(tx.hash), "SIMULATION_FAILED");
	await system.nextBlock(relay);
	assert.equal(await relay.client.stage(tx.hash), "EXPIRED");
	await relay.kill();
});

test("SIGKILL while it starts, again and again, loses nothing", async () => {
	const env = folder("starting");
	const first = await system.start(env);
	const sent = [0, 1, 2, 3].map((nonce) => signed(4, { nonce }));
	await Promise.all(sent.map(({ raw }) => first.client.send(raw)));
	await first.kill();
	for (const moment of ["node found", "pending transactions restored"]) {
		const starting = system.launch(env);
		await starting.logged(moment);
		await starting.kill();
	}
	const mark = system.lastRequest();
	const relay = await system.start(env);
	await system.delivered(
		sent.map(({ raw }) => raw),
		mark,
	);
	await system.nextBlock(relay);
	for (const { hash } of sent) assert.equal(await relay.client.stage(hash), "INCLUDED");
	await relay.kill();
});

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

function wasSent(raw: string, mark: number): boolean {
	return system.builder.requests(({ seq, params }) => seq > mark && holds(params, raw)).length > 0;
}
