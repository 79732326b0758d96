// GET /tx/{hash}/journal: the fields that boost returns of its own row. It returns nothing of a row
// whose client got an error.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ABSENT, statesAt } from "../../../../boost-proxy/domain/deliveryState.ts";
import { newNotes, UNDATED } from "../../../../boost-proxy/domain/row.ts";
import { readJournal } from "../../../../boost-proxy/views/journalView.ts";
import { viewFixtures } from "./viewFixture.ts";

const viewFixture = viewFixtures();
const ADDRESS = "192.0.2.1";
const RECEIVED = Date.UTC(2026, 0, 1);
const iso = (ms: number) => new Date(ms).toISOString();

test("a live row: when it came, until when it lives, and who has it since when", async () => {
	const fixture = await viewFixture();
	const notes = { ...newNotes(0), fallbackSince: RECEIVED + 2_000 };
	const times = { receivedAt: RECEIVED, aliveUntil: RECEIVED + 300_000 };
	const tx = fixture.holds(5, ["fallback"], { ...times, notes });
	const told = {
		...{ hash: tx.hash, receivedAt: iso(RECEIVED), aliveUntil: iso(RECEIVED + 300_000) },
		...{ relay: "absent", fallback: "has", fallbackSince: iso(RECEIVED + 2_000) },
		...{ ended: null, endedAt: null },
	};
	assert.deepEqual(await readJournal(tx.hash, ADDRESS, fixture.dependencies), told);
	// Behind a restart it is not known since when.
	const later = fixture.holds(6, ["fallback"], { ...times, aliveUntil: UNDATED });
	assert.deepEqual(await readJournal(later.hash, ADDRESS, fixture.dependencies), {
		...told,
		...{ hash: later.hash, aliveUntil: null, fallbackSince: null },
	});
	const { at } = fixture.rows.live(tx.hash) ?? assert.fail();
	const lost = fixture.holds(7, [], {
		...times,
		notes,
		at: statesAt(at.relay, { ...at.fallback, presence: "lost" }),
	});
	assert.deepEqual(await readJournal(lost.hash, ADDRESS, fixture.dependencies), {
		...told,
		...{ hash: lost.hash, fallback: "lost", fallbackSince: null },
	});
});

test("one that has ended says when it came, how and when it ended, and who had it", async () => {
	const fixture = await viewFixture();
	const at = { relay: ABSENT, fallback: { ...ABSENT, presence: "has" as const } };
	const tx = fixture.ended(5, "cancelled", { receivedAt: RECEIVED, at });
	assert.deepEqual(await readJournal(tx.hash, ADDRESS, fixture.dependencies), {
		...{ hash: tx.hash, receivedAt: iso(RECEIVED), aliveUntil: null, relay: "absent", fallback: "has" },
		...{ fallbackSince: null, ended: "cancelled", endedAt: iso(fixture.clock.now()) },
	});
});

test("returns nothing for a transaction that boost did not accept, or refused", async () => {
	const fixture = await viewFixture();
	const refused = fixture.holds(5, ["relay"], { acknowledged: false });
	assert.equal(await readJournal(refused.hash, ADDRESS, fixture.dependencies), null);
	assert.equal(await readJournal(`0x${"1".repeat(64)}`, ADDRESS, fixture.dependencies), null);
});
