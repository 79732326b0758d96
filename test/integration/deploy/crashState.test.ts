// Tests the state that a relay keeps after SIGKILL: replacements, parameters, life. Its data folder
// serves one process, one chain, and the key that it signs with. One relay is killed and started
// again on the same folder. Each test goes on with the running relay, and each transaction has an
// account of its own.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type DevChainOptions, startDevChain } from "../../devnet/devChain.ts";
import { holds, type Signed, signedOn } from "../../support/crashFixture.ts";
import { onEngine } from "../../support/engine.ts";
import { sized } from "../../support/length.ts";
import { type RelayProcess, runRelay } from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import type { TxOptions } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const GWEI = 1_000_000_000;

let system: ProcessSystem;
let env: Readonly<Record<string, string>>;
let relay: RelayProcess;
/** Signers of the requests that a builder gets, one for each relay that has sent something. */
const signers: string[] = [];
before(async () => {
	system = await startProcessSystem();
	env = { DATA_DIR: join(system.folder, "relay"), TX_TTL_BLOCKS: "4" };
	relay = await system.start(env);
});
after(() => system.stop());

/** Sends it, waits until the builder has it, and notes who signed. */
async function deliver(tx: Signed, path = "/fast"): Promise<void> {
	const mark = await system.lastRequest();
	await relay.client.send(tx.raw, path);
	signers.push((await sentBehind(mark, tx)).signer ?? "none");
}

function sentBehind(mark: number, tx: Signed) {
	return system.builder.waitForRequest(({ seq, params }) => seq > mark && holds(params, tx.raw));
}

test("a second process on the same data folder is refused, and the first is not disturbed", async () => {
	// On a database the second one waits instead: see rolling.nightly.ts.
	if (onEngine(env).DATABASE_URL !== undefined) return;
	const second = await runRelay({ env: { ...system.env, ...env } });
	assert.equal(second.code, 1);
	assert.match(second.stderr, /^relay: another process uses the data folder .*DATA_DIR.*\n$/);
	assert.equal(await relay.client.call("eth_chainId", []), "0x7a69");
});

test("a transaction's life continues after a crash, and a block built meanwhile is found at the start", async () => {
	// Never to be mined: it reverts.
	const to = `0x${"0e".repeat(20)}`;
	await system.chain.rpc("anvil_setCode", [to, "0x60006000fd"]);
	const failing = signed(3, { to });
	await relay.client.send(failing.raw);
	await until("it is held", async () => (await relay.client.stage(failing.hash)) === "SIMULATION_FAILED");
	await system.nextBlock(relay);
	// With the second block what was known at the first one is on disk.
	await system.nextBlock(relay);
	const mined = signed(2);
	await deliver(mined);
	await relay.kill();
	const built = await system.builder.buildBlock();
	assert.deepEqual(built.transactions, [mined.hash]);

	// The lock ends with the process that had it.
	relay = await system.start(env);
	await until("it is included", async () => (await relay.client.stage(mined.hash)) === "INCLUDED");
	assert.equal(await relay.client.send(mined.raw), mined.hash);
	const status = await relay.client.status(failing.hash);
	assert.equal(status.stage, "SIMULATION_FAILED");
	assert.equal(status.simulationError?.code, "EXECUTION_REVERTED");
	await system.nextBlock(relay);
	assert.equal(await relay.client.stage(failing.hash), "EXPIRED");
});

test("replacements, paths and parameters survive repeated SIGKILLs, also during the start", async () => {
	const old = signed(0, { maxFeePerGas: 20 * GWEI, maxPriorityFeePerGas: GWEI });
	const fresh = signed(0, { maxFeePerGas: 22 * GWEI, maxPriorityFeePerGas: 1.1 * GWEI });
	const named = signed(1);
	const chained = [0, 1, 2, 3].map((nonce) => signed(4, { nonce }));
	const query = "referrer=wallet%20x&refundRecipient=0x00000000000000000000000000000000000ABCDE";
	await deliver(signed(5));
	await relay.client.send(old.raw);
	await relay.client.send(fresh.raw);
	await relay.client.send(named.raw, `/noreverts?${query}`);
	await Promise.all(chained.map(({ raw }) => relay.client.send(raw)));
	await relay.kill();
	const dead = await system.lastRequest();
	const moments = ["pending transactions restored", ...sized([], ["node found"])];
	for (const moment of moments) {
		const starting = system.launch(env);
		await starting.logged(moment);
		await starting.kill();
	}
	const mark = await system.lastRequest();
	relay = await system.start(env);
	assert.equal(await relay.client.stage(old.hash), "REPLACED");
	assert.equal(await relay.client.call("eth_getTransactionByHash", [old.hash]), null);
	assert.equal(await relay.client.send(old.raw), old.hash);
	await system.delivered(
		[fresh, ...chained].map(({ raw }) => raw),
		mark,
	);
	// The path's own treatment: transactions that may not revert are not listed.
	const [bundle] = (await sentBehind(mark, named)).params;
	assert.deepEqual((bundle as { revertingTxHashes: unknown }).revertingTxHashes, []);
	await system.nextBlock(relay);
	for (const { hash } of [fresh, named, ...chained])
		assert.equal(await relay.client.stage(hash), "INCLUDED", hash);
	assert.equal(await relay.client.stage(old.hash), "REPLACED");
	assert.equal(system.builder.requests(({ seq, params }) => seq > dead && holds(params, old.raw)).length, 0);
	const { status, fastMode, referrer, refundRecipient } = await relay.client.status(named.hash);
	assert.deepEqual([status, fastMode, referrer], ["INCLUDED", false, "wallet x"]);
	assert.equal(refundRecipient, "0x00000000000000000000000000000000000abcde");
	await relay.kill();
});

test("a data folder of another chain is refused, and not taken over", async (t) => {
	const others: readonly DevChainOptions[] = [
		// The chain id is the same here, the genesis is not.
		{ genesisTimestamp: 1_600_000_000 },
		...sized([], [{ chainId: 31_338 }]),
	];
	for (const options of others) {
		const chain = await startDevChain(options);
		t.after(() => chain.stop());
		const refused = await runRelay({ env: { ...system.env, ...env, ETH_RPC_URL: chain.url } });
		assert.equal(refused.code, 1);
		assert.match(refused.stderr, /^relay: the store belongs to another chain .*DATA_DIR.*\n$/);
	}
	relay = await system.start(env);
	await deliver(signed(6));
});

test("without SIGNING_KEY a key is made and kept, with a warning", async () => {
	const warnings = () => relay.logs().filter(({ level, msg }) => level === 40 && msg.includes("SIGNING_KEY"));
	assert.equal(warnings().length, 1);
	await relay.kill();
	relay = await system.start({ DATA_DIR: join(system.folder, "another") });
	await deliver(signed(7));
	assert.equal(warnings().length, 1);
	const [first = "", second, third, another] = signers;
	assert.match(first, /^0x/);
	assert.deepEqual([second, third], [first, first]);
	assert.notEqual(another, first);
});

/** A transaction of one of the chain's accounts. */
function signed(account: number, options: TxOptions = {}): Signed {
	return signedOn(system.chain, account, options);
}
