// Rows age by the chain's time and this machine's: a step of one of them alone expires and forgets
// none, and while the chain's time is not known no life begins or ends.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ChainTime } from "../../../../boost-proxy/rows/chainTime.ts";
import { Background } from "../../../../shared/background.ts";
import { Slots } from "../../../../shared/ethereum/slots.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import { hashOf, newEntry, openedVerbs, TTL_MS } from "../journal/journalFixture.ts";

const SLOTS = new Slots({ setMs: 12_000 }, { clock: new ManualClock() });
const DAY_MS = 24 * 3600 * 1000;
/** Ended rows are kept for so long here. */
const KEEP_MS = 3600 * 1000;
const GENESIS_MS = Date.UTC(2026, 0, 1);

/**
 * Rows on a machine whose clock is `wrong.byMs` off, and a chain whose head's timestamp is
 * `chain.time`; null: no answer.
 */
async function aging({ disk = new FakeDisk(), clock = new ManualClock() } = {}) {
	const wrong = { byMs: 0 };
	const chain: { time: number | null } = { time: null };
	const machine = {
		now: () => clock.now() + wrong.byMs,
		monotonic: () => clock.monotonic(),
		after: clock.after.bind(clock),
	};
	const chainTime = new ChainTime({ chainId: () => null }, { clock: machine });
	const batch = async () =>
		chain.time === null
			? null
			: [
					{
						ok: true as const,
						result: { number: "0x1", timestamp: `0x${(chain.time / 1_000).toString(16)}` },
					},
				];
	const background = new Background({}, { log: silentLogger });
	const following = chainTime.follow(SLOTS, { chain: { batch }, background, clock: machine });
	await following.start?.();
	const dependencies = { kv: disk, clock: machine, chainTime, log: silentLogger };
	const journal = await openedVerbs({ ttlMs: TTL_MS, endedKeepMs: KEEP_MS }, dependencies);
	const isOver = (n: number): boolean => {
		const row = journal.rows.live(hashOf(n));
		assert.ok(row !== null);
		return journal.rows.isOver(row, 0, false);
	};
	const stop = async () => {
		await following.stop?.();
		await journal.close();
	};
	return { clock, wrong, chain, journal, isOver, stop };
}

test("a step of one time alone expires nothing and forgets nothing; what is old by both is over", async () => {
	const { clock, wrong, chain, journal, isOver, stop } = await aging();
	chain.time = clock.now();
	await clock.advance(12_000);
	await journal.add(newEntry(1), "relay");
	await journal.add(newEntry(2), "relay");
	await journal.settle(hashOf(2), true);
	await journal.end(hashOf(2), "cancelled");
	const assertKept = async (when: string) => {
		assert.equal(isOver(1), false, when);
		assert.equal((await journal.ended(hashOf(2)))?.ending, "cancelled", when);
	};
	for (const days of [8, -8]) {
		wrong.byMs = days * DAY_MS;
		await clock.advance(30_000);
		await assertKept(`the machine's clock is ${days} days wrong`);
	}
	wrong.byMs = 0;
	for (const days of [8, -8, 0]) {
		chain.time = clock.now() + days * DAY_MS;
		await clock.advance(30_000);
		await assertKept(`a head is ${days} days wrong`);
	}
	chain.time = clock.now() + TTL_MS;
	await clock.advance(TTL_MS);
	assert.equal(isOver(1), true);
	assert.equal((await journal.ended(hashOf(2)))?.ending, "cancelled", "it is not revived");
	await clock.advance(KEEP_MS);
	chain.time = clock.now();
	await clock.advance(30_000);
	assert.equal(await journal.ended(hashOf(2)), null, "it has been kept long enough");
	await stop();
});

for (const days of [8, -8]) {
	for (const who of ["head", "machine"] as const) {
		test(`what came and ended while the ${who}'s time was ${days} days wrong lives and is kept as long as any other`, async () => {
			const { clock, wrong, chain, journal, isOver, stop } = await aging();
			if (who === "machine") wrong.byMs = days * DAY_MS;
			chain.time = clock.now() + (who === "head" ? days * DAY_MS : 0);
			await clock.advance(12_000);
			await journal.add(newEntry(1, { receivedAt: clock.now() + wrong.byMs }), "relay");
			await journal.add(newEntry(2), "relay");
			await journal.settle(hashOf(2), true);
			await journal.end(hashOf(2), "cancelled");
			wrong.byMs = 0;
			const goOn = async (ms: number) => {
				chain.time = clock.now();
				await clock.advance(ms);
				chain.time = clock.now();
				// The observer looks at the ages, and corrects a life that is too long.
				const row = journal.rows.live(hashOf(1));
				if (row !== null && journal.rows.isMisdated(row)) journal.rows.extendLife(row.hash);
			};
			await goOn(30_000);
			assert.equal(isOver(1), false);
			await goOn(2 * TTL_MS);
			await goOn(12_000);
			assert.equal(isOver(1), true);
			await goOn(KEEP_MS - 3 * TTL_MS);
			assert.equal((await journal.ended(hashOf(2)))?.ending, "cancelled", "it is not revived");
			await goOn(3 * TTL_MS);
			await goOn(30_000);
			assert.equal(await journal.ended(hashOf(2)), null, "it has been kept long enough");
			await stop();
		});

		test(`a restart while the ${who}'s time is ${days} days wrong expires nothing and forgets nothing`, async () => {
			const disk = new FakeDisk();
			const first = await aging({ disk });
			const { clock } = first;
			first.chain.time = clock.now();
			await clock.advance(12_000);
			await first.journal.add(newEntry(1, { receivedAt: clock.now() }), "relay");
			await first.journal.add(newEntry(2), "relay");
			await first.journal.settle(hashOf(2), true);
			await first.journal.end(hashOf(2), "cancelled");
			await first.stop();
			const again = await aging({ disk, clock });
			if (who === "machine") again.wrong.byMs = days * DAY_MS;
			again.chain.time = clock.now() + (who === "head" ? days * DAY_MS : 0);
			await clock.advance(30_000);
			assert.equal(again.isOver(1), false);
			assert.equal((await again.journal.ended(hashOf(2)))?.ending, "cancelled");
			again.wrong.byMs = 0;
			again.chain.time = clock.now() + TTL_MS;
			await clock.advance(TTL_MS);
			assert.equal(again.isOver(1), true);
			await again.stop();
		});
	}
}

test("what the journal has from before a long stop is over at once", async () => {
	const disk = new FakeDisk();
	const first = await aging({ disk });
	const { clock } = first;
	first.chain.time = clock.now();
	await clock.advance(12_000);
	await first.journal.add(newEntry(1, { receivedAt: clock.now() }), "relay");
	await first.stop();
	await clock.advance(TTL_MS);
	const again = await aging({ disk, clock });
	again.chain.time = clock.now();
	await clock.advance(12_000);
	assert.equal(again.isOver(1), true);
	await again.stop();
});

test("a node that has fallen behind and catches up makes nothing old that has just come", async () => {
	const { clock, chain, journal, isOver, stop } = await aging();
	chain.time = clock.now() - 10 * TTL_MS;
	await clock.advance(12_000);
	await journal.add(newEntry(1), "relay");
	chain.time = clock.now();
	await clock.advance(12_000);
	assert.equal(isOver(1), false);
	await stop();
});

test("while nobody of ours answers, the chain's time goes on by the monotonic clock", async () => {
	const { clock, wrong, chain, journal, isOver, stop } = await aging();
	chain.time = GENESIS_MS;
	await clock.advance(12_000);
	chain.time = null;
	await journal.add(newEntry(1), "fallback");
	wrong.byMs = 8 * DAY_MS;
	await clock.advance(TTL_MS - 1_000);
	assert.equal(isOver(1), false);
	await clock.advance(1_000);
	assert.equal(isOver(1), true);
	await stop();
});

test("a life that came before the chain's time was known begins with it", async () => {
	const { clock, chain, journal, isOver, stop } = await aging();
	await journal.add(newEntry(1), "fallback");
	await journal.add(newEntry(2), "fallback");
	await journal.settle(hashOf(2), true);
	await journal.end(hashOf(2), "cancelled");
	await clock.advance(2 * TTL_MS);
	assert.equal(isOver(1), false);
	chain.time = GENESIS_MS + 30 * DAY_MS;
	await clock.advance(30_000);
	journal.rows.extendLife(hashOf(1));
	assert.equal(isOver(1), false);
	assert.equal((await journal.ended(hashOf(2)))?.ending, "cancelled", "it is kept from then on");
	await stop();
});

test("a replacement comes after what it replaces, though the machine's clock went back between them", async () => {
	const { journal, stop } = await aging();
	await journal.add(newEntry(1, { nonce: 0n, receivedAt: GENESIS_MS }), "relay");
	await journal.add(newEntry(2, { nonce: 0n, receivedAt: GENESIS_MS - 8 * DAY_MS }), "relay");
	assert.deepEqual(
		journal.of(newEntry(1).from).map(({ hash }) => hash),
		[hashOf(1), hashOf(2)],
	);
	await stop();
});
