// The dev network with slots of 450 ms of real time: the relay learns them as they pass, and
// transactions of all paths are mined. The short form is "the dev network with slots of 450 ms" in
// slots.test.ts, where the test has each block built. The test is skipped if the chain's own
// timestamps show late blocks, as the machine is too slow for it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RelayFixture } from "../../support/relayFixture.ts";
import { startSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const SLOT_MS = 450;
/** Blocks that a length is learnt from, and some more. */
const BLOCKS = 40;

test("the relay learns slots of 450 ms, and transactions of all paths are mined", async (t) => {
	const system = await startSystem({
		chain: { slotSeconds: SLOT_MS / 1_000 },
		builder: { manual: false },
		env: { SLOT_MS: "", SLOT_SECONDS: "", HEAD_POLL_MS: "" },
	});
	t.after(() => system.stop());
	const users = new RelayFixture(system);
	const timeOf = async (number: number) => {
		const params = [`0x${number.toString(16)}`, false];
		const block = (await system.chain.rpc("eth_getBlockByNumber", params)) as { timestamp: string };
		return Number(block.timestamp);
	};
	/**
	 * Whether the `count` slots up to `head` took as long as they should by the chain's timestamps,
	 * which are whole seconds.
	 */
	const inTime = async (head: number, count: number) =>
		(await timeOf(head)) - (await timeOf(head - count)) <= Math.ceil((count * SLOT_MS) / 1_000);
	const slotMs = async () => {
		const info = (await (await fetch(`${system.client.url}/info`)).json()) as { slotMs: number };
		return info.slotMs;
	};
	const begun = await users.head();
	await users.seesHead(begun + BLOCKS);
	if (!(await inTime(begun + BLOCKS, BLOCKS - 1))) return t.skip("the machine built the chain's blocks late");
	await until("450 ms are learnt", async () => Math.abs((await slotMs()) - SLOT_MS) <= SLOT_MS / 10);
	const first = await users.head();
	const sent = await Promise.all(
		["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"].map(async (path) => {
			const tx = (await users.actor()).sign();
			// The relay knows a new account from the next head on.
			await users.seesHead((await users.head()) + 1);
			await users.submit(path, tx);
			return tx;
		}),
	);
	for (const tx of sent) await users.reaches(tx, "INCLUDED");
	const mined = await Promise.all(sent.map(async (tx) => (await users.receipt(tx))?.block ?? Infinity));
	const last = Math.max(...mined);
	if (!(await inTime(last, last - first))) return t.skip("the machine built the chain's blocks late");
	assert.ok(last - first <= 10, `${mined} after ${first}`);
});
