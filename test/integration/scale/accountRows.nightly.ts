// An account with thousands of rows at one boost instance: another instance reads them without the
// transactions and without blocking its event loop. Many nonces of one account through two
// instances at once: who loses a race decides again, and that is quick.

import assert from "node:assert/strict";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { type TestContext, test } from "node:test";
import { markHeld } from "../../../boost-proxy/domain/deliveries.ts";
import { LostRaceError } from "../../../boost-proxy/domain/ports.ts";
import { Homes } from "../../../boost-proxy/homes/homes.ts";
import { Rows } from "../../../boost-proxy/rows/rows.ts";
import { Background } from "../../../shared/background.ts";
import { systemClock } from "../../../shared/clock.ts";
import { openAccounts } from "../../../shared/kv/postgres/accounts.ts";
import { silentLogger } from "../../../shared/log.ts";
import { newDatabase } from "../../support/engine.ts";
import { turnLimit } from "../../support/eventLoopTime.ts";
import { hashOf, newEntry, senderOf } from "../../unit/boost-proxy/journal/journalFixture.ts";

/** The maximum of one client, a sixteenth of all. */
const ROWS = 6_250;
/** The size of each transaction. If they were read, memory would show it. */
const BYTES = 16 * 1024;
const MIB = 1024 * 1024;
const ACCOUNT = senderOf(1);
const PATIENCE_MS = 60_000;
const NONCES = 64;
/** All nonces at once, in ms, at the median of some rounds. */
const AT_ONCE_MS = 50;
const ROUNDS = 9;

async function instances(t: TestContext): Promise<readonly { readonly rows: Rows; readonly homes: Homes }[]> {
	const url = await newDatabase();
	const open = async () => {
		const kv = await openAccounts(
			{ url, verify: false, store: "boost" },
			{ clock: systemClock, log: silentLogger },
		);
		t.after(() => kv.close());
		const rows = await Rows.load(
			{ ttlMs: 24 * 3_600_000 },
			{ kv, clock: systemClock, chainTime: { now: () => Date.now() }, log: silentLogger },
		);
		t.after(() => rows.close());
		const { shared } = rows;
		assert.ok(shared !== null);
		const background = new Background({}, { log: silentLogger });
		const dependencies = { shared, rows, clock: systemClock, background, log: silentLogger };
		return { rows, homes: new Homes({ ...dependencies, reachesRelay: () => true }) };
	};
	return [await open(), await open()];
}

/** Accepts entry `n` of `from`, as a submission does. */
async function accept(
	{ rows, homes }: { readonly rows: Rows; readonly homes: Homes },
	from: string,
	n: number,
	raw = Buffer.alloc(200, n),
) {
	const hash = hashOf(n);
	await homes.withRowsOf({ from, hash, ms: PATIENCE_MS, isCareful: false }, async () => {
		const address = `10.0.${(n >> 8) & 255}.${n & 255}`;
		assert.ok(rows.add(newEntry(n, { from, raw, address })));
		if ((await rows.claimed(hash)) !== "won") throw new LostRaceError();
		rows.change(hash, (row) => markHeld({ ...row, requests: 0 }, "relay"));
	});
}

test(`the pending nonce behind ${ROWS} rows of one account: no bodies are read, and the event loop goes on`, async (t) => {
	const [one, other] = await instances(t);
	assert.ok(one !== undefined && other !== undefined);
	for (let n = 0; n < ROWS; n += 100) {
		const some = Array.from({ length: Math.min(100, ROWS - n) }, (_, i) => n + i);
		await Promise.all(some.map((each) => accept(one, ACCOUNT, each, Buffer.alloc(BYTES, each))));
	}
	for (const [at, { homes }] of [one, other].entries()) {
		const before = process.memoryUsage().external;
		const delay = monitorEventLoopDelay({ resolution: 1 });
		delay.enable();
		const begun = performance.now();
		assert.equal((await homes.liveOf(ACCOUNT)).length, ROWS);
		const ms = performance.now() - begun;
		delay.disable();
		const [blockedMs, mib] = [delay.max / 1e6, (process.memoryUsage().external - before) / MIB];
		t.diagnostic(
			`${at === 0 ? "at its home" : "elsewhere"}: ${ms.toFixed(0)} ms, blocked for ${blockedMs.toFixed(1)} ms, ${mib.toFixed(1)} MiB more`,
		);
		assert.ok(blockedMs < turnLimit(), `blocked for ${blockedMs} ms`);
		assert.ok(mib < (ROWS * BYTES) / MIB / 8, `${mib} MiB`);
	}
});

test(`${NONCES} nonces of one account at once through two instances`, async (t) => {
	const both = await instances(t);
	const times: number[] = [];
	for (let round = 0; round < ROUNDS; round += 1) {
		const from = senderOf(100 + round);
		const begun = performance.now();
		await Promise.all(
			Array.from({ length: NONCES }, async (_, i) => {
				const one = both[i % both.length];
				assert.ok(one !== undefined);
				await accept(one, from, 10_000 + round * NONCES + i);
			}),
		);
		times.push(performance.now() - begun);
	}
	times.sort((a, b) => a - b);
	const median = times[Math.floor(ROUNDS / 2)] ?? 0;
	t.diagnostic(`median ${median.toFixed(0)} ms, at most ${times.at(-1)?.toFixed(0)} ms`);
	assert.ok(median < AT_ONCE_MS, `${median} ms`);
});
