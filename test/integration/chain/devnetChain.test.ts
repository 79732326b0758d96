// The dev chain: it mines nothing unasked, stands alone, ends when it is told and when its starter dies, and goes
// back to a snapshot as the protocol would have it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import { sample } from "../../devnet/devnetFixture.ts";
import { until } from "../../support/until.ts";

let chain: DevChain;
before(async () => {
	chain = await startDevChain();
});
after(() => chain.stop());

test("accounts are funded and a sent transaction stays in the pool", async () => {
	assert.equal(chain.accounts.length, 10);
	assert.equal(chain.chainId, 31337);
	assert.equal(await chain.rpc("eth_chainId"), "0x7a69");
	for (const { address } of chain.accounts) {
		assert.equal(await chain.rpc("eth_getBalance", [address, "latest"]), "0x21e19e0c9bab2400000");
	}
	assert.equal(chain.wallet(3).address, chain.accounts[3]?.address);
	assert.throws(() => chain.wallet(10), RangeError);
	const { raw, hash } = await sample(chain.wallet(0));
	assert.equal(await chain.rpc("eth_sendRawTransaction", [raw]), hash);
	assert.deepEqual(await chain.rpc("txpool_status"), { pending: "0x1", queued: "0x0" });
	assert.equal(await chain.rpc("eth_blockNumber"), "0x0");
	await chain.rpc("anvil_dropAllTransactions");
});

test("the node's refusals are errors with code, in a batch they are values", async () => {
	await assert.rejects(chain.rpc("eth_sendRawTransaction", ["0x00"]), { name: "ChainRpcError" });
	const outcomes = await chain.batch([
		{ method: "eth_blockNumber", params: [] },
		{ method: "eth_sendRawTransaction", params: ["0x00"] },
	]);
	assert.deepEqual(
		outcomes.map(({ ok }) => ok),
		[true, false],
	);
});

test("options are followed, and two chains do not meet", async () => {
	const other = await startDevChain({
		hardfork: "prague",
		accounts: 12,
		gasLimit: 45_000_000,
		chainId: 1234,
		genesisTimestamp: 1_800_000_000,
	});
	try {
		assert.notEqual(other.port, chain.port);
		assert.equal(other.accounts.length, 12);
		const block = (await other.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
		assert.equal(Number(block.gasLimit), 45_000_000);
		assert.equal(Number(block.timestamp), 1_800_000_000);
		assert.equal(await other.rpc("eth_chainId"), "0x4d2");
		const info = (await other.rpc("anvil_nodeInfo")) as { hardFork: string };
		assert.equal(info.hardFork, "Prague");
	} finally {
		await other.stop();
	}
});

test("a taken port is refused, with anvil's reason", async () => {
	await assert.rejects(startDevChain({ port: chain.port }), /anvil ended at its start/);
});

test("stop waits until it is gone, and may be called again", async () => {
	const other = await startDevChain();
	await other.stop();
	assert.equal(await listens(other.port), false);
	await other.stop();
});

test("the chain ends when its starter is killed", async () => {
	const script = `import { startDevChain } from "./test/devnet/devChain.ts";
		const chain = await startDevChain();
		process.stdout.write(chain.port + "\\n");
		setInterval(() => {}, 1000);`;
	const starter = spawn(process.execPath, [...process.execArgv, "--input-type=module", "-e", script], {
		cwd: new URL("../../..", import.meta.url),
		stdio: ["ignore", "pipe", "inherit"],
	});
	const [line] = await once(starter.stdout, "data");
	const port = Number(String(line));
	// Anvil's end is seen as the end of a connection that it has taken.
	const witness = connect(port, "127.0.0.1");
	await once(witness, "connect");
	witness.on("error", () => {});
	const gone = once(witness, "close", { signal: AbortSignal.timeout(10_000) });
	starter.kill("SIGKILL");
	await gone;
	// A process that is killed does not close all it has in one moment.
	await until("nobody listens", async () => !(await listens(port)));
});

test("revert brings back state and base fee", async () => {
	const snapshot = await chain.snapshot();
	const { raw } = await sample(chain.wallet(0));
	const before = await nextBaseFee();
	await chain.rpc("eth_sendRawTransaction", [raw]);
	await chain.rpc("evm_mine");
	await chain.rpc("evm_mine");
	assert.equal(await chain.rpc("eth_blockNumber"), "0x2");
	await chain.revert(snapshot);
	assert.equal(await chain.rpc("eth_blockNumber"), "0x0");
	// The child of an empty genesis block at 1 gwei; anvil itself starts with a second block at 1 gwei.
	assert.equal(before, 1_000_000_000n);
	assert.equal(await nextBaseFee(), 875_000_000n);
	await chain.rpc("evm_mine");
	const block = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	assert.equal(BigInt(block.baseFeePerGas ?? 0), 875_000_000n);
	await assert.rejects(chain.revert("0x77"), /does not know that snapshot/);
});

async function nextBaseFee(): Promise<bigint> {
	const block = (await chain.rpc("eth_getBlockByNumber", ["pending", false])) as Record<string, string>;
	return BigInt(block.baseFeePerGas ?? 0);
}

function listens(port: number): Promise<boolean> {
	return new Promise((resolve) => {
		const socket = connect(port, "127.0.0.1");
		socket.once("connect", () => {
			socket.destroy();
			resolve(true);
		});
		socket.once("error", () => resolve(false));
	});
}
