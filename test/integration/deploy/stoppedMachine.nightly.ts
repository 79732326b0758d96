// A relay with LMDB that is stopped (SIGSTOP) for a minute, while the chain goes on for a dozen
// blocks, agrees with the chain when it continues: nothing that was cancelled is sent, and a life
// takes as many blocks as at a relay that is not stopped.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pause, systemClock } from "../../../shared/clock.ts";
import { type Signed, signed } from "../../support/crashFixture.ts";
import { IN_FOLDER } from "../../support/engine.ts";
import { type ProcessSystem, seesHead, startProcessSystem } from "../../support/systems.ts";
import { testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

/** Together they are a minute. */
const [BLOCKS, SLOT_SECONDS] = [12, 5];
/** More than pass while the relay is stopped. */
const TTL_BLOCKS = 18;

let system: ProcessSystem;
before(async () => {
	system = await startProcessSystem({
		chain: { slotSeconds: SLOT_SECONDS },
		env: { TX_TTL_BLOCKS: String(TTL_BLOCKS), ...IN_FOLDER },
	});
});
after(() => system?.stop());

/** How many blocks a life took, by whether the relay was stopped. */
const lives = new Map<boolean, number>();

for (const [n, isStopped] of [false, true].entries()) {
	test(`a relay that ${isStopped ? "was stopped for a minute" : "is not stopped"} agrees with the chain`, async (t) => {
		const relay = await system.start({ DATA_DIR: join(system.folder, `relay-${n}`) });
		const { client } = relay;
		const { builder, chain } = system;
		const account = (i: number) => testAccount(80_000 + 10 * n + i);
		await chain.fund(Array.from({ length: 6 }, (_, i) => account(i)));
		const [mined, used, cancelled, kept] = [0, 1, 2, 3].map((i) => signed({ by: account(i) })) as [
			...[Signed, Signed, Signed, Signed],
		];
		const other = signed({ by: account(1), to: account(1).address, maxFeePerGas: 90_000_000_000n });
		/** It reverts, so it is never sent. */
		const held = signed({ by: account(4), to: null, data: "0xfe" });
		for (const tx of [used, cancelled, kept]) await client.send(tx.raw);
		await client.send(held.raw, "/noreverts");
		await system.delivered([used.raw, cancelled.raw, kept.raw]);
		assert.equal(await client.call("eth_cancelTransaction", [cancelled.hash], "/fast"), true);
		await until("it is held", async () => (await client.stage(held.hash)) === "SIMULATION_FAILED");
		// The builder is to have only the transaction that it mines meanwhile.
		await builder.catchUp();
		builder.reset();
		await client.send(mined.raw);
		await system.delivered([mined.raw]);

		if (isStopped) relay.signal("SIGSTOP");
		t.after(() => relay.signal("SIGCONT"));
		const since = await system.lastRequest();
		await chain.rpc("eth_sendRawTransaction", [other.raw]);
		let head = 0;
		for (let i = 0; i < BLOCKS; i += 1) {
			const begun = systemClock.monotonic();
			head = (await builder.buildBlock()).number;
			if (isStopped) await pause(systemClock, SLOT_SECONDS * 1_000 - (systemClock.monotonic() - begun));
			else await seesHead(client, head);
		}
		relay.signal("SIGCONT");
		await seesHead(client, head);

		const reaches = (tx: Signed, stage: string) =>
			until(`${tx.hash} is ${stage}`, async () => (await client.stage(tx.hash)) === stage);
		await reaches(mined, "INCLUDED");
		const receipt = (await chain.rpc("eth_getTransactionReceipt", [mined.hash])) as { blockNumber: string };
		assert.equal((await client.status(mined.hash)).blockNumber, Number(receipt.blockNumber));
		await reaches(used, "DROPPED");
		assert.equal(await client.stage(cancelled.hash), "CANCELLED");
		await system.delivered([kept.raw], since);
		assert.equal(await client.stage(held.hash), "SIMULATION_FAILED", "its life is not over");
		await system.nextBlock(relay);
		await reaches(kept, "INCLUDED");

		const blockOf = async (type: string) =>
			(await client.events(held.hash)).find((one) => one.type === type)?.block;
		for (let i = 0; i < TTL_BLOCKS && (await blockOf("expired")) === undefined; i += 1)
			await system.nextBlock(relay);
		lives.set(isStopped, Number(await blockOf("expired")) - Number(await blockOf("ready")));
		assert.ok(Number(lives.get(isStopped)) >= TTL_BLOCKS - 1, `it lived for ${lives.get(isStopped)} blocks`);
		assert.equal(lives.get(isStopped), lives.get(false));

		await builder.catchUp();
		const sent = builder.requests().filter(({ params }) => JSON.stringify(params).includes(cancelled.raw));
		assert.deepEqual(sent, [], "it was cancelled");
		for (const [tx, isIn] of [
			[mined, true],
			[kept, true],
			...[used, cancelled, held].map((one) => [one, false] as const),
		] as const) {
			const found = await chain.rpc("eth_getTransactionReceipt", [tx.hash]);
			assert.equal(found !== null, isIn, `${tx.hash} is ${await client.stage(tx.hash)}`);
		}
		await relay.kill("SIGTERM");
	});
}
