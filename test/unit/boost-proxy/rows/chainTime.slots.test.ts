// Boost learns how long slots are from the heads that its node or the relay tells: at its start,
// where neither answers then, and when it changes; and what waits for slots, or lives for blocks,
// follows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ChainTime } from "../../../../boost-proxy/rows/chainTime.ts";
import { Background } from "../../../../shared/background.ts";
import { Slots } from "../../../../shared/ethereum/slots.ts";
import type { RpcAnswer, RpcCall } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import { hashOf, newEntry, openedVerbs } from "../journal/journalFixture.ts";

const TTL_BLOCKS = 25;

/**
 * Boost's time on a chain that has had 100 blocks, `slotMs` from one to the next, and goes on by
 * the clock.
 */
async function following(slotMs: number) {
	const clock = new ManualClock();
	const blocks = Array.from({ length: 100 }, (_, i) => clock.now() - (99 - i) * slotMs);
	const chain = { slotMs, isOut: false, hasHistory: true, reads: 0, most: 0 };
	const grow = (): void => {
		for (let last = blocks.at(-1) ?? 0; last + chain.slotMs <= clock.now(); last = blocks.at(-1) ?? 0)
			blocks.push(last + chain.slotMs);
	};
	const batch = async (calls: readonly RpcCall[]): Promise<readonly RpcAnswer[] | null> => {
		grow();
		chain.reads += 1;
		chain.most = Math.max(chain.most, calls.length);
		if (chain.isOut || (!chain.hasHistory && calls[0]?.params[0] !== "latest")) return null;
		return calls.map(({ params: [named] }) => {
			const number = named === "latest" ? blocks.length - 1 : Number(named);
			const seconds = Math.floor((blocks[number] ?? 0) / 1_000);
			return {
				ok: true,
				result: { number: `0x${number.toString(16)}`, timestamp: `0x${seconds.toString(16)}` },
			};
		});
	};
	const slots = new Slots({ setMs: undefined }, { clock });
	const chainTime = new ChainTime({ chainId: () => null }, { clock });
	const background = new Background({}, { log: silentLogger });
	const component = chainTime.follow(slots, { chain: { batch }, background, clock });
	return { clock, chain, slots, chainTime, component };
}

const isNear = (ms: number, expected: number) => Math.abs(ms - expected) <= 0.05 * expected;

for (const slotMs of [450, 2_000, 12_000]) {
	test(`${slotMs} ms are known after the start, and stay, by few reads`, async () => {
		const { clock, chain, slots, component } = await following(slotMs);
		await component.start?.();
		assert.ok(isNear(slots.ms, slotMs), `${slots.ms}`);
		assert.ok(chain.most <= 10, "public nodes take few calls at once");
		chain.reads = 0;
		for (let i = 0; i < 100; i += 1) {
			await clock.advance(slotMs);
			assert.ok(isNear(slots.ms, slotMs), `${slots.ms}`);
		}
		assert.ok(chain.reads <= Math.max(2 * 100, (100 * slotMs) / 250), `${chain.reads} reads`);
		await component.stop();
	});

	test(`${slotMs} ms are known once somebody answers`, async () => {
		const { clock, chain, slots, component } = await following(slotMs);
		chain.isOut = true;
		await component.start?.();
		await clock.advance(60_000);
		assert.equal(slots.ms, 12_000);
		chain.isOut = false;
		await clock.advance(6_000);
		assert.ok(isNear(slots.ms, slotMs), `${slots.ms}`);
		await component.stop();
	});
}

for (const [from, to] of [
	[12_000, 2_000],
	[12_000, 450],
	[450, 12_000],
	[2_000, 450],
] as const) {
	test(`a change from ${from} to ${to} ms is followed within 64 blocks`, async () => {
		const { clock, chain, slots, component } = await following(from);
		await component.start?.();
		await clock.advance(10 * from);
		chain.slotMs = to;
		await clock.advance(64 * to);
		assert.ok(isNear(slots.ms, to), `${slots.ms}`);
		await component.stop();
	});
}

test("reads the blocks before a head again if the node did not return them", async () => {
	const { clock, chain, slots, component } = await following(2_000);
	chain.hasHistory = false;
	await component.start?.();
	chain.hasHistory = true;
	// The chain stands still meanwhile.
	chain.slotMs = 3_600_000;
	await clock.advance(12_000);
	assert.ok(isNear(slots.ms, 2_000), `${slots.ms}`);
	await component.stop();
});

test("what lives for blocks lives for as long as they take", async () => {
	const { clock, slots, chainTime, component } = await following(2_000);
	const dependencies = { kv: new FakeDisk(), clock, chainTime, log: silentLogger };
	const limits = {
		get ttlMs() {
			return TTL_BLOCKS * slots.ms;
		},
	};
	const journal = await openedVerbs(limits, dependencies);
	await component.start?.();
	await journal.add(newEntry(1), "relay");
	const isOver = (): boolean => {
		const row = journal.rows.live(hashOf(1));
		return row !== null && journal.rows.isOver(row, 0, false);
	};
	await clock.advance(48_000);
	assert.equal(isOver(), false);
	await clock.advance(4_000);
	assert.equal(isOver(), true);
	await component.stop();
	await journal.close();
});
