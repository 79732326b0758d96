// A pending transaction is in no mempool, whatever its path, stage and age: the node's pool is
// watched throughout, and nothing that the relay asks of the node holds a signed transaction.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Transaction } from "ethers";
import { type NodeProxy, startNodeProxy } from "../../support/nodes.ts";
import type { RelayProcess } from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { accountOf, rawTransaction, type TxOptions } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const SLOTS = 8;
const PATHS = ["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"];
const REVERTER = "0x00000000000000000000000000000000000badc0";

let system: ProcessSystem;
let proxy: NodeProxy;
let relay: RelayProcess;
before(async () => {
	system = await startProcessSystem();
	await system.chain.rpc("anvil_setCode", [REVERTER, "0x5f5ffd"]);
	proxy = await startNodeProxy(system.chain.url);
	relay = await system.start({ ETH_RPC_URL: proxy.url });
});
after(async () => {
	await system.stop();
	await proxy.stop();
});

test("the checked mempool does show a public transaction", async () => {
	const raw = rawOf(9, { nonce: 0 });
	await system.chain.rpc("eth_sendRawTransaction", [raw]);
	assert.deepEqual(await poolHashes(), [Transaction.from(raw).hash]);
	await system.nextBlock(relay);
	assert.deepEqual(await poolHashes(), []);
});

test("in eight slots with transactions of all kinds, no private one is ever in the node's mempool", async () => {
	const sent: { raw: string; path: string; stage: string }[] = [
		...PATHS.map((path, i) => ({ raw: rawOf(i, { nonce: 0 }), path, stage: "INCLUDED" })),
		// Lives that do not end in these slots: held for its revert, for its fees, behind a gap.
		{ raw: rawOf(5, { to: REVERTER }), path: "/fast", stage: "SIMULATION_FAILED" },
		{
			// Far under the base fee, and not so far that it could never be mined.
			raw: rawOf(6, { maxFeePerGas: 100_000_000, maxPriorityFeePerGas: 1 }),
			path: "/noreverts",
			stage: "PENDING",
		},
		{ raw: rawOf(7, { nonce: 3 }), path: "/fast", stage: "QUEUED" },
		// Its builders reject it in every slot.
		{ raw: rawOf(8, { nonce: 0 }), path: "/nochecks", stage: "BROADCAST" },
	];
	let looks = 0;
	let over = false;
	const seen = new Set<string>();
	const watching = (async () => {
		while (!over) {
			for (const hash of await poolHashes()) seen.add(hash);
			looks += 1;
		}
	})();
	const rejected = sent.at(-1)?.raw ?? "";
	for (const { raw, path } of sent) {
		if (raw === rejected) {
			await system.delivered(sent.flatMap((one) => (one.stage === "INCLUDED" ? [one.raw] : [])));
			system.builder.setFaults({ reject: true, only: ["eth_sendPrivateRawTransaction"] });
		}
		const hash = await relay.client.send(raw, path);
		await until(`${path} has done what it can`, () => isOutOrHeld(hash));
	}
	for (let slot = 0; slot < SLOTS; slot++) {
		const before = looks;
		await system.nextBlock(relay);
		await until("the pool was looked at in this slot", () => looks >= before + 3);
	}
	over = true;
	await watching;
	assert.deepEqual([...seen], []);
	for (const { raw, path, stage } of sent) {
		assert.equal(await relay.client.stage(Transaction.from(raw).hash ?? ""), stage, path);
	}
	const ours = sent.map(({ raw }) => Transaction.from(raw).hash ?? "");
	for (const block of system.builder.blocks()) {
		assert.deepEqual(
			block.publicTransactions.filter((hash) => ours.includes(hash)),
			[],
		);
	}
});

test("the relay's requests to the node contain no signed transaction and no signature", () => {
	const asked = proxy.calls();
	assert.ok(asked.some(({ method }) => method === "eth_simulateV1"));
	assert.deepEqual(
		asked.filter(({ method }) => /^(eth_send|eth_sign|mev_|txpool_)/.test(method)),
		[],
	);
	const text = JSON.stringify(asked).toLowerCase();
	const sent = JSON.stringify(system.builder.requests()).match(/0x02f8[0-9a-f]+/g) ?? [];
	assert.ok(new Set(sent).size >= PATHS.length);
	for (const raw of new Set(sent)) {
		const { signature } = Transaction.from(raw);
		for (const secret of [raw, signature?.r ?? "", signature?.s ?? ""]) {
			assert.ok(!text.includes(secret.slice(2)), secret);
		}
	}
});

/** It went out, or is held: nothing more will happen before the next block. */
async function isOutOrHeld(hash: string): Promise<boolean> {
	const { stage = "", state = "" } = await relay.client.status(hash);
	return ["BROADCAST", "SIMULATION_FAILED", "QUEUED"].includes(stage) || state.startsWith("waiting for");
}

/** Hashes in the node's pool, at a moment at which the builder has nothing in it. */
function poolHashes(): Promise<string[]> {
	return system.builder.outsideBurst(async () => {
		type Part = Record<string, Record<string, { hash: string }>>;
		const { pending, queued } = (await system.chain.rpc("txpool_content")) as { pending: Part; queued: Part };
		return [pending, queued].flatMap((part) =>
			Object.values(part).flatMap((byNonce) => Object.values(byNonce).map(({ hash }) => hash)),
		);
	});
}

function rawOf(account: number, options: TxOptions): string {
	const by = accountOf(system.chain.accounts[account]?.privateKey ?? "");
	return `0x${rawTransaction({ by, ...options }).toString("hex")}`;
}
