// Rows age by the chain's time: a step of the machine's clock expires and forgets none, and while the chain's time is not known
// no life begins or ends.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ChainTime } from "../../../../boost-proxy/rows/chainTime.ts";
import { Background } from "../../../../shared/background.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import { hashOf, newEntry, openedVerbs, TTL_MS } from "./journalFixture.ts";

const DAY_MS = 24 * 3600 * 1000;
const GENESIS_MS = Date.UTC(2026, 0, 1);

/** Rows on a machine whose clock is `wrong.byMs` off, and a chain whose head's timestamp is `chain.time`; null: no answer. */
async function aging() {
	const clock = new ManualClock();
	const wrong = { byMs: 0 };
	const chain: { time: number | null } = { time: null };
	const machine = {
		now: () => clock.now() + wrong.byMs,
		monotonic: () => clock.monotonic(),
		after: clock.after.bind(clock),
	};
	const chainTime = new ChainTime({ clock: machine });
	const batch = async () =>
		chain.time === null
			? null
			: [{ ok: true as const, result: { timestamp: `0x${(chain.time / 1_000).toString(16)}` } }];
	const background = new Background({}, { log: silentLogger });
	const following = chainTime.follow(12_000, { chain: { batch }, background, clock: machine });
	await following.start?.();
	const dependencies = { kv: new FakeDisk(), clock: machine, chainTime, log: silentLogger };
	const journal = await openedVerbs({ ttlMs: TTL_MS }, dependencies);
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

test("a step of the machine's clock expires nothing and forgets nothing; the chain's time does both", async () => {
	const { clock, wrong, chain, journal, isOver, stop } = await aging();
	chain.time = GENESIS_MS;
	await clock.advance(12_000);
	await journal.add(newEntry(1), "relay");
	await journal.add(newEntry(2), "relay");
	await journal.settle(hashOf(2), true);
	await journal.end(hashOf(2), "cancelled");
	for (const days of [8, -8]) {
		wrong.byMs = days * DAY_MS;
		await clock.advance(30_000);
		assert.equal(isOver(1), false);
		assert.equal(journal.ended(hashOf(2))?.ending, "cancelled");
	}
	chain.time += TTL_MS;
	await clock.advance(12_000);
	assert.equal(isOver(1), true);
	assert.equal(journal.ended(hashOf(2))?.ending, "cancelled", "it is not revived");
	chain.time += 8 * DAY_MS;
	await clock.advance(30_000);
	assert.equal(journal.ended(hashOf(2)), null, "seven days are over");
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
	assert.equal(journal.ended(hashOf(2))?.ending, "cancelled", "it is kept from then on");
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
