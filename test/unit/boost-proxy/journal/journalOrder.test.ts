// Words that nobody waits for, on a disk that takes its time and fails now and then: whatever comes through, what lies
// there is whole at every moment, and the newest in the end.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { UPSTREAMS } from "../../../../boost-proxy/domain/request.ts";
import { ENDINGS } from "../../../../boost-proxy/domain/row.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import { contents, fixture, hashOf, newEntry, TTL_MS } from "./journalFixture.ts";
import { openedVerbs, type RowVerbs } from "./rowVerbs.ts";

const HASHES = [0, 1, 2].map(hashOf);

type Word = (journal: RowVerbs) => Promise<unknown>;
const n = fc.integer({ min: 0, max: HASHES.length - 1 });
const by = fc.constantFrom(...UPSTREAMS);
const word: fc.Arbitrary<Word> = fc.oneof(
	fc.tuple(n, by).map(
		([i, who]): Word =>
			(journal) =>
				journal.add(newEntry(i), who),
	),
	fc.tuple(n, by, fc.constantFrom("held", "notHeld", "told")).map(
		([i, who, what]): Word =>
			(journal) =>
				journal[what](hashOf(i), who),
	),
	fc.tuple(n, fc.boolean()).map(
		([i, yes]): Word =>
			(journal) =>
				journal.settle(hashOf(i), yes),
	),
	fc.tuple(n, fc.constantFrom(...ENDINGS), fc.subarray([...UPSTREAMS])).map(
		([i, ending, untold]): Word =>
			(journal) =>
				journal.end(hashOf(i), ending, untold),
	),
	n.map(
		(i): Word =>
			(journal) =>
				journal.reopen(hashOf(i)),
	),
);
/** A word, or writes that come to an end, well or not. */
const step = fc.oneof(
	{ weight: 3, arbitrary: word },
	{ weight: 1, arbitrary: fc.record({ ok: fc.boolean(), count: fc.integer({ min: 1, max: 4 }) }) },
);

/** What a start on what lies there now would bring; nothing of it may be unreadable or half. */
async function leftOn(disk: FakeDisk) {
	const left = new FakeDisk();
	for (const [key, value] of disk.map) left.map.set(key, value);
	const errors: string[] = [];
	const log = { ...silentLogger, error: (message: string) => errors.push(message) };
	const journal = await openedVerbs({ ttlMs: TTL_MS }, { kv: left, clock: new ManualClock(), log });
	assert.deepEqual(errors, []);
	const left3 = await contents(journal, HASHES);
	await journal.close();
	return left3;
}

test("what lies on disk is whole at every moment, and the newest in the end", async () => {
	await fc.assert(
		fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
			const { journal, disk, clock } = await fixture({ rawCacheBytes: 1 });
			disk.hold = true;
			const said: Promise<unknown>[] = [];
			for (const one of steps) {
				if (typeof one === "function") said.push(Promise.allSettled([one(journal)]));
				else {
					disk.finish(one.ok, one.count);
					await clock.advance(0);
					await leftOn(disk);
				}
			}

			disk.hold = false;
			disk.finish(true);
			await Promise.all(said);
			await clock.advance(1_000);
			assert.equal(journal.isDurable, true);
			assert.deepEqual(await leftOn(disk), await contents(journal, HASHES));
			await journal.close();
		}),
		{ numRuns: 200 },
	);
});
