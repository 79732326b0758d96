// ethers, viem and cast with boost as their only URL: they send and see it mined while all is well, through an outage of
// the relay and after it, with nothing set in them for us. The relay is killed and comes back.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { JsonRpcProvider, parseEther, Wallet } from "ethers";
import { createWalletClient, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { statusOf } from "../faults/boostHere.ts";
import { type CellParts, startCellParts } from "../faults/cellParts.ts";
import { startWorld, type World } from "../faults/world.ts";
import { cast } from "../support/castCommand.ts";
import { until } from "../support/until.ts";

const RECEIVER = "0x000000000000000000000000000000000000dEaD";

let world: World;
let parts: CellParts;
before(async () => {
	world = await startWorld({ blockMs: 500 });
	parts = await startCellParts(world, "clients", { processes: ["relay"] });
});
after(async () => {
	await parts.stop();
	await world.stop();
});

/** Sends one transaction on `path` and waits for its receipt; the hash. */
interface Client {
	readonly name: string;
	send(path: string): Promise<string>;
	stop(): void;
}

/** Each with a key of its own; they live through all that follows. */
async function clients(): Promise<readonly Client[]> {
	const [one, two, three] = await world.accounts(3);
	if (one === undefined || two === undefined || three === undefined) throw new Error("no accounts");
	const providers = new Map(
		["/fast", "/noreverts"].map((path) => [path, new JsonRpcProvider(parts.boost.url + path)]),
	);
	return [
		{
			name: "ethers",
			async send(path) {
				const wallet = new Wallet(one.keyHex, providers.get(path) ?? null);
				const sent = await wallet.sendTransaction({ to: RECEIVER, value: parseEther("1") });
				const receipt = await sent.wait();
				assert.equal(receipt?.status, 1);
				return sent.hash;
			},
			stop() {
				for (const provider of providers.values()) provider.destroy();
			},
		},
		{
			name: "viem",
			async send(path) {
				const account = privateKeyToAccount(two.keyHex as `0x${string}`);
				const transport = http(parts.boost.url + path);
				const client = createWalletClient({ account, chain: foundry, transport }).extend(publicActions);
				const hash = await client.sendTransaction({ to: RECEIVER, value: parseEther("1") });
				const receipt = await client.waitForTransactionReceipt({ hash });
				assert.equal(receipt.status, "success");
				return hash;
			},
			stop() {},
		},
		{
			name: "cast",
			async send(path) {
				const args = ["--rpc-url", parts.boost.url + path, "--private-key", three.keyHex];
				const run = await cast("send", ...args, "--value", "1ether", "--json", RECEIVER);
				assert.equal(run.code, 0, run.stderr);
				const receipt = JSON.parse(run.stdout) as Record<string, string>;
				assert.equal(receipt.status, "0x1");
				return receipt.transactionHash ?? "";
			},
			stop() {},
		},
	];
}

test("each client sends and sees it mined before, during and after an outage", async (t) => {
	const all = await clients();
	t.after(() => {
		for (const client of all) client.stop();
	});
	const round = async (what: string): Promise<void> => {
		const hashes = await Promise.all(
			all.flatMap(async ({ name, send }) => {
				const paths = [await send("/fast"), await send("/noreverts")];
				assert.equal(new Set(paths).size, 2, `${name} ${what}`);
				return paths;
			}),
		);
		for (const hash of hashes.flat()) {
			const answer = await fetch(`${parts.boost.url}/tx/${hash}`);
			assert.equal(((await answer.json()) as { status: string }).status, "INCLUDED", `${what}: ${hash}`);
			assert.ok(!world.publicHashes.has(hash), `${what}: ${hash} was public`);
		}
	};
	await round("before");

	// What is on its way when the relay dies: its sender waits for it as if nothing had happened.
	const midway = Promise.all(all.map(({ send }) => send("/fast")));
	await parts.processes.relay?.kill();
	await midway;
	await until("it is open", async () => (await statusOf(parts.boost.url)).relay.state !== "closed");
	await round("during");

	await parts.processes.relay?.restart();
	await until("it is closed", async () => (await statusOf(parts.boost.url)).relay.state === "closed");
	await round("after");
});
