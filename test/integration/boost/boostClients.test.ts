// ethers, viem and cast with boost as their only URL: they send and see it mined while all is well, through an outage of
// the relay and after it, with nothing set in them for us. The relay is killed and comes back.

import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { JsonRpcProvider, parseEther, Wallet } from "ethers";
import { createWalletClient, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { statusOf } from "../../faults/boostHere.ts";
import { type CellParts, startCellParts } from "../../faults/cellParts.ts";
import { startWorld, type World } from "../../faults/world.ts";
import { cast } from "../../support/processes.ts";
import { until } from "../../support/until.ts";

const RECEIVER = "0x000000000000000000000000000000000000dEaD";

let world: World;
let parts: CellParts;
before(async () => {
	world = await startWorld({ blockMs: 500, accounts: 6 });
	parts = await startCellParts(world, "clients", { processes: ["relay"] });
});
after(async () => {
	await parts.stop();
	await world.stop();
});

/** Sends one transaction on `path` and waits for its receipt; the hash. */
type Send = () => Promise<string>;

/** Each client on each path, with a key of its own; they live through all that follows. */
function sends(t: TestContext): readonly Send[] {
	return ["/fast", "/noreverts"].flatMap((path) => {
		const [one, two, three] = world.accounts(3);
		if (one === undefined || two === undefined || three === undefined) throw new Error("no accounts");
		const url = parts.boost.url + path;
		return [byEthers(t, url, one.keyHex), byViem(url, two.keyHex), byCast(url, three.keyHex)];
	});
}

function byEthers(t: TestContext, url: string, key: string): Send {
	const provider = new JsonRpcProvider(url);
	t.after(() => provider.destroy());
	const wallet = new Wallet(key, provider);
	return async () => {
		const sent = await wallet.sendTransaction({ to: RECEIVER, value: parseEther("1") });
		const receipt = await sent.wait();
		assert.equal(receipt?.status, 1);
		return sent.hash;
	};
}

function byViem(url: string, key: string): Send {
	const account = privateKeyToAccount(key as `0x${string}`);
	const client = createWalletClient({ account, chain: foundry, transport: http(url) }).extend(publicActions);
	return async () => {
		const hash = await client.sendTransaction({ to: RECEIVER, value: parseEther("1") });
		const receipt = await client.waitForTransactionReceipt({ hash });
		assert.equal(receipt.status, "success");
		return hash;
	};
}

function byCast(url: string, key: string): Send {
	return async () => {
		const args = ["send", "--rpc-url", url, "--private-key", key, "--value", "1ether", "--json", RECEIVER];
		const run = await cast(...args);
		assert.equal(run.code, 0, run.stderr);
		const receipt = JSON.parse(run.stdout) as Record<string, string>;
		assert.equal(receipt.status, "0x1");
		return receipt.transactionHash ?? "";
	};
}

test("each client sends and sees it mined when an outage begins, during it and after it", async (t) => {
	const all = sends(t);
	const assertMined = async (what: string, hashes: readonly string[]): Promise<void> => {
		assert.equal(new Set(hashes).size, all.length, what);
		for (const hash of hashes) {
			const answer = await fetch(`${parts.boost.url}/tx/${hash}`);
			assert.equal(((await answer.json()) as { status: string }).status, "INCLUDED", `${what}: ${hash}`);
			assert.ok(!world.publicHashes.has(hash), `${what}: ${hash} was public`);
		}
	};
	const round = () => Promise.all(all.map((send) => send()));

	// Some are on their way, others not sent yet, when the relay dies: their senders see nothing of it.
	const midway = round();
	const underWay = async () => (await statusOf(parts.boost.url)).journal.depth > 0;
	await Promise.race([until("some are on their way", underWay), midway]);
	await parts.processes.relay?.kill();
	await assertMined("when it began", await midway);

	await until("it is open", async () => (await statusOf(parts.boost.url)).relay.state !== "closed");
	await assertMined("during it", await round());

	await parts.processes.relay?.restart();
	await until("it is closed", async () => (await statusOf(parts.boost.url)).relay.state === "closed");
	await assertMined("after it", await round());
});
