// The pauses between two connections.

import assert from "node:assert/strict";
import { test } from "node:test";
import { reconnect } from "../../../../shared/link/reconnect.ts";
import { ManualClock } from "../../../support/manualClock.ts";

/** Whether a connection was of use, and the longest and shortest pause after it, in ms. */
const CONNECTIONS = [
	[false, 500, 250],
	[false, 1_000, 500],
	[false, 2_000, 1_000],
	[true, 250, 125],
	[true, 250, 125],
	[false, 500, 250],
	[false, 1_000, 500],
	[false, 2_000, 1_000],
	[false, 4_000, 2_000],
	[false, 8_000, 4_000],
	[false, 10_000, 5_000],
	[false, 10_000, 5_000],
] as const;

for (const [random, which] of [
	[1, 0],
	[0, 1],
] as const) {
	test(`pauses double after failures, by a random part of ${random}`, async () => {
		const clock = new ManualClock();
		const stop = new AbortController();
		const begun: number[] = [];
		const connect = async (): Promise<boolean> => {
			begun.push(clock.monotonic());
			if (begun.length === CONNECTIONS.length) stop.abort();
			return CONNECTIONS[begun.length - 1]?.[0] ?? false;
		};
		const running = reconnect(connect, stop.signal, { clock, random: () => random });
		await clock.advance(120_000);
		await running;
		let at = 0;
		const expected = CONNECTIONS.map(([, ...pauses]) => {
			const now = at;
			at += pauses[which];
			return now;
		});
		assert.deepEqual(begun, expected);
		assert.equal(clock.timers, 0);
	});
}
