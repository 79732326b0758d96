// The figures of the process, with a clock that is moved by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { History } from "../../../shared/history.ts";
import { ProcessFigures } from "../../../shared/processFigures.ts";
import { ManualClock } from "../../support/manualClock.ts";

/** Its timers fire late by `lateMs`. */
class LateClock extends ManualClock {
	lateMs = 0;

	override after(ms: number, fn: () => void) {
		return super.after(ms + this.lateMs, fn);
	}
}

test("shows how late timers fire, and the memory", async () => {
	const clock = new LateClock();
	const ofProcess = new ProcessFigures({ clock });
	const history = new History(ofProcess.figures, { clock });
	await ofProcess.start();
	await history.start();
	await clock.advance(20_000);
	const { hour } = history.report();
	assert.ok(Number(hour.columns["delay 0.99"]?.[0]) < 1, "on time");
	assert.ok(Number(hour.columns.memory?.[0]) > 10, "MiB");
	clock.lateMs = 80;
	await clock.advance(20_000);
	const late = Number(history.report().hour.columns["delay 0.99"]?.[0]);
	assert.ok(late > 50 && late <= 100, `80 ms: ${late}`);
	await ofProcess.stop();
	await history.stop();
	assert.equal(clock.timers, 0);
});
