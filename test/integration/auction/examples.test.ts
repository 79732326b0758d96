// The examples in TypeScript of docs/examples, and the payer's contract with its bytecode in
// docs/searchers.md, on a real system. Those in Python are in test/python/examples.test.ts.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { type BiddingFixture, bidder, startBidding } from "../../support/biddingFixture.ts";
import { snippet, snippets } from "../../support/documents.ts";
import { EXAMPLES, PAYER_ADDRESS, payer, type RunExample, runBid, runSend } from "../../support/examples.ts";
import { sized } from "../../support/length.ts";
import { launchRelay, withTestLoader } from "../../support/processes.ts";
import { until } from "../../support/until.ts";

let fixture: BiddingFixture;
before(async () => {
	fixture = await startBidding({ chain: { slotSeconds: 12 } });
});
after(() => fixture.stop());

const RUN_MS = 60_000;

/**
 * The command of docs/searchers.md, with its own loader at length only. The settings before it are
 * those of the test.
 */
function example(file: string): RunExample {
	const [command = ""] =
		snippet("docs/searchers.md", "RELAY_WS_URL=").match(new RegExp(`node .* docs/examples/${file}`)) ?? [];
	assert.notEqual(command, "", `no command for ${file}`);
	const line = `exec ${sized(withTestLoader(command), command)}`;
	return (env) => launchRelay({ line, env }).ended(RUN_MS);
}

test("the payer's bytecode in the document is what its source compiles to, and what it is sent goes to the coinbase", async () => {
	const text = snippet("docs/searchers.md", "PAYER_CODE=");
	assert.ok(text.startsWith(`PAYER_CODE=${payer().code}\n`), payer().code);
	const [source] = snippets("docs/searchers.md", "solidity");
	assert.equal(source, readFileSync(`${EXAMPLES}/Payer.sol`, "utf8"));
	const { keyHex, address } = bidder(1);
	const line = text
		.replace("http://127.0.0.1:8080", fixture.system.client.url)
		.replace("$PRIVATE_KEY", keyHex);
	const deploying = launchRelay({ line, env: {} });
	let ended = false;
	void deploying.exited.then(() => {
		ended = true;
	});
	await until("it is deployed", async () => {
		if (!ended && fixture.system.builder.requests().length > 0) await fixture.system.nextBlock();
		return ended;
	});
	const { code, stdout, stderr } = await deploying.ended();
	assert.equal(code, 0, stderr);
	const [, contract = ""] = /contractAddress\s+(0x\w{40})/.exec(stdout) ?? [];
	const { chain } = fixture.system;
	assert.equal(await chain.rpc("eth_getCode", [contract, "latest"]), payer().runtime);
	const call = { from: address, to: contract, value: "0x5" };
	await chain.rpc("eth_call", [call, "latest"]);
	// A coinbase that takes no Ether.
	const { miner } = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as { miner: string };
	await assert.rejects(chain.rpc("eth_call", [call, "latest", { [miner]: { code: "0x5f5ffd" } }]), /revert/);
});

test("bid.ts sees a transaction, bids on it, and tells that it landed behind it", async () => {
	const { code, stdout, stderr, target, block } = await runBid(fixture, example("bid.ts"), [2, 3]);
	assert.equal(code, 0, stderr);
	const at = block.transactions.findIndex(({ hash }) => hash === target);
	const backrun = block.transactions[at + 1];
	assert.deepEqual([backrun?.to, BigInt(backrun?.value ?? 0)], [PAYER_ADDRESS, 10n ** 12n]);
	assert.match(stdout, new RegExp(`bid 1000000000000 wei on ${target}: bundle 0x\\w{64}\n`));
	assert.match(
		stdout,
		/bundle 0x\w{64} in block \d+: ACCEPTED\n(?:.*\n)*bundle 0x\w{64} in block \d+: INCLUDED\n$/,
	);
});

test("without its settings an example says which are missing, and ends", async () => {
	const files = [
		["bid.ts", /set PRIVATE_KEY, and PAYER to the contract's address/],
		["send.ts", /set PRIVATE_KEY/],
	] as const;
	for (const [file, missing] of files.slice(0, sized(1, 2))) {
		const { code, stderr } = await example(file)({});
		assert.deepEqual([code, missing.test(stderr)], [1, true], stderr);
	}
});

test("send.ts sends a private transaction, and tells its life up to its block", async () => {
	const { code, stdout, stderr, block } = await runSend(fixture, example("send.ts"), 4);
	assert.equal(code, 0, stderr);
	const [, hash] = /^sent (0x\w{64})\n/.exec(stdout) ?? [];
	assert.ok(block.transactions.some((one) => one.hash === hash));
	for (const type of ["received", "simulated", "broadcast", "delivered", "included"])
		assert.match(stdout, new RegExp(`^${type} \\(block \\d+\\)$`, "m"));
});
