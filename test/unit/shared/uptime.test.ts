// The state of the service by quarter of an hour on both engines: what a look, a noted change, a
// restart and an end leave, what is not known, several processes, and the rows that are kept.

import assert from "node:assert/strict";
import { after, describe, it, test } from "node:test";
import { nextTurn } from "../../../shared/clock.ts";
import type { KeyValueStore } from "../../../shared/kv/port.ts";
import { silentLogger } from "../../../shared/log.ts";
import { type ServiceState, Uptime } from "../../../shared/uptime.ts";
import { ManualClock } from "../../support/manualClock.ts";
import { StorePlaces } from "../../support/storeEngines.ts";
import { FakeDisk } from "../relay/fakeDisk.ts";

const MINUTE = 60_000;
const QUARTER = 15 * MINUTE;
const DAY = 86_400_000;
/** The first day of {@link ManualClock}. */
const FIRST = Date.UTC(2026, 0, 1) / DAY;
const places = new StorePlaces();
after(() => places.remove());

/** A process that looks each minute; `state` is what it sees. */
async function startUptime(kv: KeyValueStore, clock = new ManualClock()) {
	const seen = { state: "u" as ServiceState };
	const uptime = new Uptime({ kv, look: () => seen.state, clock, log: silentLogger });
	await uptime.start();
	/** Each distinct run of states of the day `day`, with its number of quarters. */
	const runs = async (day = FIRST) => {
		const [one] = await uptime.days(day, day);
		return [...(one?.quarters.matchAll(/(.)\1*/g) ?? [])]
			.map(([run, state]) => `${run.length}${state}`)
			.join(" ");
	};
	return { uptime, clock, seen, runs };
}

for (const engine of places.engines) {
	it(`${engine.name}: a restart leaves no trace, an end of minutes its quarter, and one of days is down`, async (t) => {
		const kv = await engine.open(await engine.newPlace());
		t.after(() => kv.close());
		const clock = new ManualClock(FIRST * DAY + 4 * QUARTER);
		// The engine answers in its own time, and then the next look is planned.
		clock.settled = async () => {
			do await nextTurn();
			while (clock.timers === 0);
		};
		const first = await startUptime(kv, clock);
		await clock.advance(4 * QUARTER - MINUTE);
		await first.uptime.stop();
		assert.equal(await first.runs(), "4- 4u 88d", "what is to come counts as down until it is over");
		clock.set(MINUTE);
		const second = await startUptime(kv, clock);
		await clock.advance(QUARTER - MINUTE);
		await second.uptime.stop();
		assert.equal(await second.runs(), "4- 5u 87d");
		clock.set(5 * MINUTE);
		const third = await startUptime(kv, clock);
		await clock.advance(QUARTER);
		await third.uptime.stop();
		assert.equal(await third.runs(), "4- 4u 2d 1u 85d");
		clock.set(2 * DAY);
		const last = await startUptime(kv, clock);
		await clock.advance(MINUTE);
		await last.uptime.stop();
		assert.deepEqual(
			[await last.runs(FIRST - 1), await last.runs(FIRST + 1), await last.runs(FIRST + 2)],
			["96-", "96d", "96d"],
		);
	});
}

describe("a quarter", () => {
	test("has its worst state, however short that was, also if it was noted between two looks", async () => {
		const { uptime, clock, seen, runs } = await startUptime(new FakeDisk());
		await clock.advance(QUARTER + MINUTE);
		uptime.note("f");
		await clock.advance(QUARTER);
		seen.state = "d";
		await clock.advance(MINUTE);
		seen.state = "u";
		await clock.advance(QUARTER);
		assert.equal(await runs(), "1u 1f 1d 1u 92d");
	});

	test("is written later if the disk fails, and down if that lasts", async () => {
		const kv = new FakeDisk();
		const { uptime, clock, runs } = await startUptime(kv);
		await clock.advance(10 * MINUTE);
		kv.broken = true;
		uptime.note("f");
		await clock.advance(2 * MINUTE);
		kv.broken = false;
		await clock.advance(MINUTE);
		assert.equal(await runs(), "1f 95d");
		await clock.advance(QUARTER);
		kv.broken = true;
		await clock.advance(3 * QUARTER);
		kv.broken = false;
		await clock.advance(QUARTER);
		assert.match(await runs(), /^1f 1d .*d/);
	});
});

test("of several processes on one store the worst state counts, and one that ends leaves no gap", async () => {
	const [kv, clock] = [new FakeDisk(), new ManualClock()];
	const [one, other] = [await startUptime(kv, clock), await startUptime(kv, clock)];
	await clock.advance(QUARTER);
	other.seen.state = "f";
	await clock.advance(QUARTER);
	await other.uptime.stop();
	await clock.advance(QUARTER);
	assert.equal(await one.runs(), "1u 2f 1u 92d");
});

test("a hundred days are kept, whatever the clock says in between", async () => {
	const [kv, clock] = [new FakeDisk(), new ManualClock()];
	const { uptime } = await startUptime(kv, clock);
	await clock.advance(MINUTE);
	clock.set(500 * DAY);
	await clock.advance(MINUTE);
	clock.set(-500 * DAY);
	for (let day = 0; day < 110; day += 1) {
		clock.set(DAY);
		await clock.advance(MINUTE);
	}
	assert.equal(kv.map.size, 100);
	const days = await uptime.days(FIRST, FIRST + 110);
	assert.deepEqual(
		[days[11]?.quarters, days[12]?.quarters, days[110]?.quarters[0]],
		["-".repeat(96), "d".repeat(96), "d"],
	);
});

test("a damaged row is left out", async () => {
	const kv = new FakeDisk();
	kv.map.set(`u/${String(FIRST).padStart(7, "0")}`, Buffer.from("{"));
	const { clock, runs } = await startUptime(kv);
	await clock.advance(QUARTER);
	assert.equal(await runs(), "2u 94d");
});
