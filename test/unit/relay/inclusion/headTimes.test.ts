// The age of the head and the difference of the clocks, on a clock that the test moves: chains that
// go on, stop, and are caught up with, on machines whose clock is right, ahead or behind.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { HeadTimes } from "../../../../relay/inclusion/headTimes.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";

const SLOT_S = 12;
const HOUR_MS = 3_600_000;

let clock: ManualClock;
/** The logged differences, in ms: how far the clock is ahead, or 0 once it no longer is. */
let logged: number[];
let times: HeadTimes;
beforeEach(() => {
	clock = new ManualClock();
	logged = [];
	const log: Logger = {
		...silentLogger,
		info: () => logged.push(0),
		warn: (message, { ms } = {}) => logged.push(message.includes("ahead of") ? Number(ms) : -Number(ms)),
	};
	times = new HeadTimes({ slot: { ms: SLOT_S * 1000 } }, { clock, log });
});

/**
 * `count` heads, one a slot, each `lateMs` after its time, on a machine whose clock is ahead by
 * `aheadMs`.
 */
async function follow(count: number, { aheadMs = 0, lateMs = 2_000 } = {}): Promise<void> {
	for (let i = 0; i < count; i += 1) {
		await clock.advance(SLOT_S * 1000);
		times.arrived((clock.now() - aheadMs - lateMs) / 1000);
	}
}

describe("the age of the head", () => {
	for (const aheadMs of [0, 3_000, -3_000, 5 * HOUR_MS, -5 * HOUR_MS, 30 * 24 * HOUR_MS]) {
		test(`counts from its arrival where heads keep coming, with a clock that is ${aheadMs} ms ahead`, async () => {
			await follow(2, { aheadMs });
			for (let i = 0; i < 50; i += 1) {
				await follow(1, { aheadMs });
				assert.equal(times.ageMs(), 0);
			}
			await clock.advance(61_000);
			assert.equal(times.ageMs(), 61_000, "they no longer come");
		});
	}

	test("is unknown before the first one, and by its timestamp for the first one", async () => {
		assert.equal(times.ageMs(), Number.POSITIVE_INFINITY);
		times.arrived((clock.now() - 3 * 24 * HOUR_MS) / 1000);
		assert.equal(times.ageMs(), 3 * 24 * HOUR_MS, "a node that stopped long ago");
		await clock.advance(5_000);
		assert.equal(times.ageMs(), 3 * 24 * HOUR_MS + 5_000);
	});

	test("of a first one from the future counts from its arrival", async () => {
		times.arrived((clock.now() + HOUR_MS) / 1000);
		await clock.advance(7_000);
		assert.equal(times.ageMs(), 7_000);
	});

	test("is by timestamp while the node catches up, and no longer once it has", async () => {
		const start = clock.now();
		let chain = start - 6 * HOUR_MS;
		times.arrived(chain / 1000);
		for (; chain < clock.now() - 60_000; chain += 200 * 12_000) {
			await clock.advance(1_000);
			times.arrived(chain / 1000);
			if (chain > start - 6 * HOUR_MS) assert.ok(times.ageMs() >= 60_000, `${times.ageMs()}`);
		}
		await follow(1);
		assert.ok(times.ageMs() < 60_000);
		await follow(10);
		assert.equal(times.ageMs(), 0);
		assert.deepEqual(logged, []);
	});

	test("does not jump when this machine's clock is set", async () => {
		await follow(3);
		clock.set(5 * HOUR_MS);
		await clock.advance(1_000);
		assert.equal(times.ageMs(), 1_000);
	});

	test("counts on over missed slots and a late block", async () => {
		await follow(3, { aheadMs: 2 * HOUR_MS });
		await clock.advance(4 * SLOT_S * 1000);
		assert.equal(times.ageMs(), 4 * SLOT_S * 1000);
		await follow(1, { aheadMs: 2 * HOUR_MS });
		assert.equal(times.ageMs(), 0);
	});
});

describe("the difference between the clocks", () => {
	const rows: readonly (readonly [string, number, readonly number[]])[] = [
		["none", 0, []],
		["two seconds ahead", 2_000, []],
		["an hour ahead", HOUR_MS, [HOUR_MS + 2_000]],
		["ten seconds ahead", 10_000, [12_000]],
		["ten seconds behind", -10_000, [-8_000]],
		["a day behind", -24 * HOUR_MS, [-24 * HOUR_MS + 2_000]],
	];
	for (const [name, aheadMs, expected] of rows) {
		test(`${name}: logged once`, async () => {
			await follow(30, { aheadMs });
			assert.deepEqual(logged, expected);
			assert.equal(times.differenceMs(), expected[0] ?? 0);
		});
	}

	test("is logged again when it ends, and when the clock is set anew", async () => {
		await follow(6, { aheadMs: HOUR_MS });
		clock.set(-HOUR_MS);
		await follow(6);
		clock.set(-2 * HOUR_MS);
		await follow(6, { aheadMs: -2 * HOUR_MS });
		assert.deepEqual(logged, [HOUR_MS + 2_000, 0, -2 * HOUR_MS + 2_000]);
	});

	test("is none where every block comes late in its slot, as under EIP-7732", async () => {
		for (const lateMs of [6_000, 9_000]) await follow(30, { lateMs });
		assert.deepEqual(logged, []);
		assert.ok(times.ageMs() <= SLOT_S * 1000);
	});

	test("is none where one block is late", async () => {
		await follow(5);
		await follow(1, { lateMs: 60_000 });
		await follow(5);
		assert.deepEqual(logged, []);
	});
});
